// A file of tests that Vitest can't load fails the run. StrykerJS's plugin for Vitest sees only the tests in it, of which
// there are none: a mutant that breaks its import survives, and without a mutant it seems that no test runs the code.
// So here such a file counts as a failed test.
//
// For tests in a browser's environment (jsdom) Vite loads only files below its root, which is StrykerJS's sandbox. Packages lie
// above it: a set-up file in one, as of @testing-library/svelte, wasn't found. So here Vite may load all files.

import { beforeRuns } from './test_runner_worker.mjs';

const FAILED = 1; // StrykerJS's TestStatus.Failed

function failedFiles(files) {
  const failed = files.filter(({ tasks, result }) => tasks.length === 0 && result?.state === 'fail' && result.errors?.length > 0);
  return failed.map(({ name, filepath, result }) => {
    const failureMessage = result.errors.map(({ message }) => message).join('\n');
    return { id: name, name, fileName: filepath, timeSpentMs: 0, status: FAILED, failureMessage };
  });
}

// An error outside of tests, as that a thread can't be started, may have its reason in its cause, which StrykerJS leaves out.
function withCauses(result, errors) {
  const causes = new Set([...errors].map((error) => error?.cause?.message).filter(Boolean));
  return { ...result, errorMessage: [...causes, result.errorMessage].join('\n') };
}

function mayLoadPackages(vitest) {
  for (const { vite, server } of [vitest, ...(vitest.projects ?? [])]) (vite ?? server).config.server.fs.strict = false;
}

function observe(runner) {
  if (!runner.run || Object.hasOwn(runner, 'run')) return;
  const run = runner.run;
  if (runner.ctx) mayLoadPackages(runner.ctx);
  runner.run = async function (...input) {
    const result = await run.apply(this, input);
    if (result.errorMessage) return withCauses(result, this.ctx?.state.errorsSet ?? []);
    return result.tests ? { ...result, tests: [...result.tests, ...failedFiles(this.ctx?.state.getFiles() ?? [])] } : result;
  };
}

beforeRuns(observe);

export const strykerPlugins = [];
