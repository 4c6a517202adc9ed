// A plugin that loads started.cjs in the process of each test runner. In StrykerJS's main process, which loads plugins, too,
// nothing is to be wrapped: it starts the test runners.

import { beforeRuns } from './test_runner_worker.mjs';

const started = process.env.STRYKER_MUTATOR_WORKER === undefined ? undefined : (await import('./started.cjs')).default;

// With tap a file is a test.
function observe(runner) {
  if (typeof runner.runFile !== 'function' || Object.hasOwn(runner, 'runFile')) return;
  const { runFile } = runner;
  runner.runFile = function (file, ...input) {
    started.begins(file);
    return runFile.call(this, file, ...input);
  };
}

if (started) beforeRuns(observe);

export const strykerPlugins = [];
