import assert from 'node:assert';

import { label, total } from '../lib/price.js';
import { greeting } from '../lib/unicode.js';

describe('price', () => {
  it('adds up', () => assert.equal(total([1, 2, 3]), 6));
  it('gives a discount', () => assert.equal(total([5], 2), 3));
  it('labels', () => assert.deepEqual([label(0), label(50), label(200)], ['free', 'cheap', 'expensive']));
});

describe('greeting', () => {
  it('greets', () => assert.equal(greeting('you'), '𝒳 𝒴 you!'));
});
