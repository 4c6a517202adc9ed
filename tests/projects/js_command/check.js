const fs = require('fs');

if (process.env.JS_COMMAND_LOG) fs.appendFileSync(process.env.JS_COMMAND_LOG, 'started\n');
const { clamp } = require('./src/clamp');
const ok = clamp(5, 1, 3) === 3 && clamp(0, 1, 3) === 1 && clamp(2, 1, 3) === 2;
process.exitCode = ok ? 0 : 1;
