const { grade } = require('../lib/grade');

test('is high or low', () => expect(['high', 'low']).toContain(grade(5)));
