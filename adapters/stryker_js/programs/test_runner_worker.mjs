// The class of StrykerJS that runs the tests in the process of a test runner, for the plugins that wrap it. StrykerJS loads
// a plugin in that process before the tests. Undefined, where a version has no such class.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { core } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);
const file = path.join(core, 'dist', 'src', 'test-runner', 'child-process-test-runner-worker.js');
export const { ChildProcessTestRunnerWorker: TestRunnerWorker } = await import(pathToFileURL(file)).catch(() => ({}));
