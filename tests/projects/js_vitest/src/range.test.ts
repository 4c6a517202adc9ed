import { expect, test } from 'vitest';

import { within } from './range';

test('the start is in it, the end is not', () => {
  expect(within({ from: 1, to: 3 }, 1)).toBe(true);
  expect(within({ from: 1, to: 3 }, 3)).toBe(false);
});
