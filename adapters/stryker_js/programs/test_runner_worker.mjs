// The class of StrykerJS that runs the tests in the process of a test runner, for the plugins that wrap it. StrykerJS loads
// a plugin in that process before the tests. Undefined, where a version has no such class.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { core } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);
const file = path.join(core, 'dist', 'src', 'test-runner', 'child-process-test-runner-worker.js');
export const { ChildProcessTestRunnerWorker: TestRunnerWorker } = await import(pathToFileURL(file)).catch(() => ({}));

// `observe` is given StrykerJS's test runner, and the options of the run, before each.
export function beforeRuns(observe) {
  for (const method of TestRunnerWorker ? ['dryRun', 'mutantRun'] : []) {
    const original = TestRunnerWorker.prototype[method];
    TestRunnerWorker.prototype[method] = function (options) {
      if (this.underlyingTestRunner) observe(this.underlyingTestRunner, options);
      return original.call(this, options);
    };
  }
}
