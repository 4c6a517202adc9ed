// What the processes and threads that tests have started note of their coverage, see started.cjs: a file for each of them.

import fs from 'node:fs';
import path from 'node:path';

export function emptyDirectory(notes) {
  fs.rmSync(notes, { recursive: true, force: true });
  fs.mkdirSync(notes, { recursive: true });
}

// Add the noted coverage to the `result` of a run without a mutant. What no test has started counts as run while files are loaded.
export function addCoverage({ tests = [], mutantCoverage }, notes) {
  if (mutantCoverage === undefined) return;
  for (const [raw, mutant] of noted(notes)) {
    const test = raw && tests.find(({ id }) => raw === id || raw.endsWith(`/${id}`)); // Vitest's begin with the directory
    const counts = test ? (mutantCoverage.perTest[test.id] ??= {}) : mutantCoverage.static;
    counts[mutant] = (counts[mutant] ?? 0) + 1;
  }
}

function noted(notes) {
  const lines = fs.readdirSync(notes).flatMap((name) => fs.readFileSync(path.join(notes, name), 'utf-8').split('\n'));
  return lines.filter(Boolean).map((line) => JSON.parse(line));
}
