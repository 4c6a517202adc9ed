const { execFileSync } = require('node:child_process');
const path = require('node:path');

const file = path.join(__dirname, '../lib/grade.js');

test('prints', () => expect(execFileSync(process.execPath, [file, '5'], { encoding: 'utf8' })).toBe('low'));
