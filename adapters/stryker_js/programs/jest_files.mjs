// Jest loads all files of tests that import the mutated one, or all there are, to find tests by their names. Where the files are
// known, these are enough.

import fs from 'node:fs';

import { beforeRuns } from './test_runner_worker.mjs';

let files; // of the tests of the next run, if each is in StrykerJS's sandbox, where the test runner works

function observe({ jestWrapper }, { testFiles }) {
  files = testFiles?.every((file) => fs.existsSync(file)) ? testFiles : undefined;
  if (!jestWrapper?.runCLI || Object.hasOwn(jestWrapper, 'runCLI')) return;
  const { runCLI } = jestWrapper;
  jestWrapper.runCLI = function (options, roots) {
    const chosen = files && options.testNamePattern ? { _: files, findRelatedTests: false, runTestsByPath: true } : {};
    return runCLI.call(this, { ...options, ...chosen }, roots);
  };
}

beforeRuns(observe);

export const strykerPlugins = [];
