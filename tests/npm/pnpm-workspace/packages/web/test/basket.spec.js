import assert from 'node:assert';
import { price } from '../lib/basket.js';

it('has a price', () => assert.equal(price([3, 4], 2), 5));
it('is never negative', () => assert.equal(price([1], 2), 0));
