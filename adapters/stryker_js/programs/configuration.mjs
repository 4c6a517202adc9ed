// The configuration file that StrykerJS is given: the project's own, with what the bridge must have otherwise.
//
// It is read in StrykerJS's main process only. MSP_BRIDGE_STRYKER is JSON: `config`, the project's own file, absolute, or
// null; `core`, the directory of @stryker-mutator/core; `run`, a JSON file with what is wanted of the present run: it is
// read anew whenever StrykerJS takes its options, for `serve` imports this file only once.

import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { observe } from './observer.mjs';
import { runsTestsItself } from './process_state.mjs';

const { config, core, run } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);

const internal = (file) => import(file.startsWith('file:') ? file : pathToFileURL(path.join(core, 'dist', 'src', file)));

async function projectsOwn() {
  if (config === null) return {};
  if (path.extname(config).toLowerCase() === '.json') return JSON.parse(fs.readFileSync(config, 'utf-8'));
  const { default: options } = await import(pathToFileURL(config));
  if (typeof options !== 'object' || options === null) throw new Error('it must have an object as its default export');
  return options;
}

async function withName() {
  try {
    return await projectsOwn();
  } catch (error) {
    throw new Error(`Invalid config file "${config}": ${error.message}`, { cause: error });
  }
}

// Whether the test runner looks only for tests that import the files to mutate. Then no test at all means no coverage.
function looksForRelatedTests({ testRunner, vitest, jest }) {
  if (testRunner === 'vitest') return vitest?.related !== false;
  return testRunner === 'jest' && jest?.enableFindRelatedTests !== false;
}

const own = await withName();
const { defaultOptions } = await internal('config/options-validator.js');
const wanted = () => JSON.parse(fs.readFileSync(run, 'utf-8'));

await observe(core, internal, wanted, { ...defaultOptions, ...own });

const options = {
  ...own,
  // Nothing is written but into the private copy, and nothing is reported but to the bridge.
  allowConsoleColors: false,
  cleanTempDir: true,
  dryRunOnly: false,
  fileLogLevel: 'off',
  inPlace: false,
  incremental: false, // old results would come back as new ones
  reporters: [],
  tempDirName: '.stryker-tmp',
  thresholds: { ...own.thresholds, break: null }, // else a low score looks like a failure
};
if (looksForRelatedTests(own)) options.allowEmpty = true;
for (const [name, value] of Object.entries(wanted().options ?? {})) {
  if (value === null) delete options[name];
  else options[name] = value;
}
const ours = (name) => fileURLToPath(new URL(name, import.meta.url));
const isVitest = own.testRunner === 'vitest';
const plugins = [wanted().plugin, runsTestsItself(own) && ours('process_state.mjs'), isVitest && ours('vitest_files.mjs')];
options.appendPlugins = [...(own.appendPlugins ?? []), ...plugins.filter(Boolean)];

export default Object.defineProperty(options, 'concurrency', { enumerable: true, get: () => wanted().concurrency });
