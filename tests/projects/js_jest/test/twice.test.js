const { seen, twice } = require('../lib/twice');

describe('twice', () => {
  test('is a number', () => expect(typeof twice(2)).toBe('number'));
  test('is seen', () => expect(seen).toEqual([3]));
});
