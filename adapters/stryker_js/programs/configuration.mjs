// The configuration file that StrykerJS is given: the project's own, with what the bridge must have otherwise.
//
// It is read in StrykerJS's main process only. MSP_BRIDGE_STRYKER is JSON: `config`, the project's own file, absolute, or
// null; `core`, the directory of @stryker-mutator/core; `run`, a JSON file with what is wanted of the present run: it is
// read anew whenever StrykerJS takes its options, for `serve` imports this file only once.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { IGNORER } from './import_meta_glob.mjs';
import { observe } from './observer.mjs';
import { runsTestsItself } from './process_state.mjs';
import { looksForRelatedTests, optionsOfRunner } from './related_tests.mjs';

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

// StrykerJS looks for a plugin from where it lies itself. Where packages are kept apart (pnpm with `hoist=false`), only the
// project finds it.
function resolves(from, name) {
  try {
    return createRequire(path.join(from, 'package.json')).resolve(name);
  } catch {
    return undefined;
  }
}
const placeOf = (plugin) => (resolves(core, plugin) ? plugin : resolves(process.cwd(), plugin) ?? plugin);

const own = await withName();
const { defaultOptions } = await internal('config/options-validator.js');
const wanted = () => JSON.parse(fs.readFileSync(run, 'utf-8'));

const notes = path.join(path.dirname(run), 'msp-bridge-started');
process.env.MSP_BRIDGE_STARTED = JSON.stringify({ notes, place: runsTestsItself(own) ? 'tests' : 'runner' }); // see started.cjs

await observe(core, internal, wanted, notes, { ...defaultOptions, ...own });

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
const canIgnore = 'ignorers' in defaultOptions; // from StrykerJS 7 on
if (canIgnore) options.ignorers = [...(own.ignorers ?? []), IGNORER];
if (Array.isArray(own.plugins)) options.plugins = own.plugins.map(placeOf);
if (looksForRelatedTests(own)) options.allowEmpty = true;
for (const [name, value] of Object.entries(wanted().options ?? {})) {
  if (value === null) delete options[name];
  else options[name] = value;
}
const ours = (name) => fileURLToPath(new URL(name, import.meta.url));
const plugins = [
  wanted().plugin,
  ours('started_by_tests.mjs'),
  runsTestsItself(own) && ours('process_state.mjs'),
  canIgnore && ours('import_meta_glob.mjs'),
  own.testRunner === 'vitest' && ours('vitest_files.mjs'),
  own.testRunner === 'jest' && ours('jest_files.mjs'),
];
options.appendPlugins = [...(own.appendPlugins ?? []).map(placeOf), ...plugins.filter(Boolean)];

const root = process.cwd();
const anew = (name, get) => Object.defineProperty(options, name, { enumerable: true, get });
if (looksForRelatedTests(own)) anew(own.testRunner, () => optionsOfRunner(own, root));
export default anew('concurrency', () => wanted().concurrency);
