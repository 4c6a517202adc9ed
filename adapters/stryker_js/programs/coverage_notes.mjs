// What the processes and threads that tests have started note of their coverage, see started.cjs: a file for each of them.

import fs from 'node:fs';
import path from 'node:path';

export function emptyDirectory(notes) {
  fs.rmSync(notes, { recursive: true, force: true });
  fs.mkdirSync(notes, { recursive: true });
}

// Add the noted coverage to the `result` of a run without a mutant. What no test has started counts as run while files are loaded.
// `reports` says whether the test runner leaves coverage out only where it has met no mutated code. Without any, StrykerJS
// runs all tests with each mutant. That stays so where tests have started something that has noted nothing: it may be no Node.js.
export function addCoverage(result, notes, reports) {
  const found = noted(notes);
  if (reports && (found.length > 0 || fs.readdirSync(notes).length === 0)) result.mutantCoverage ??= { static: {}, perTest: {} };
  const { tests = [], mutantCoverage } = result;
  if (mutantCoverage === undefined) return;
  for (const [raw, mutant] of found) {
    const test = raw && tests.find(({ id }) => raw === id || raw.endsWith(`/${id}`)); // Vitest's begin with the directory
    const counts = test ? (mutantCoverage.perTest[test.id] ??= {}) : mutantCoverage.static;
    counts[mutant] = (counts[mutant] ?? 0) + 1;
  }
}

// Whether no test has run any mutated code, as far as coverage is known.
export const isUncovered = ({ tests = [], mutantCoverage: found }) =>
  tests.length > 0 && found !== undefined && [found.static, ...Object.values(found.perTest)].every((counts) => Object.keys(counts).length === 0);

function noted(notes) {
  const lines = fs.readdirSync(notes).flatMap((name) => fs.readFileSync(path.join(notes, name), 'utf-8').split('\n'));
  return lines.filter(Boolean).map((line) => JSON.parse(line));
}
