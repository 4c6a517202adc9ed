// The configuration file that StrykerJS is given: the project's own, with what the bridge must have otherwise.
//
// It is read in StrykerJS's main process only. MSP_BRIDGE_STRYKER is JSON: `config`, the project's own file, absolute, or
// null; `core`, the directory of @stryker-mutator/core; `run`, a JSON file with what is wanted of the present run: it is
// read anew whenever StrykerJS takes its options, for `serve` imports this file only once.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { observe } from './observer.mjs';

const { config, core, run } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);

const internal = (file) => import(pathToFileURL(path.join(core, 'dist', 'src', file)));

async function projectsOwn() {
  if (config === null) return {};
  if (path.extname(config).toLowerCase() === '.json') return JSON.parse(fs.readFileSync(config, 'utf-8'));
  const { default: options } = await import(pathToFileURL(config));
  if (typeof options !== 'object' || options === null) throw new Error('it must have an object as its default export');
  return options;
}

async function named() {
  try {
    return await projectsOwn();
  } catch (error) {
    throw new Error(`Invalid config file "${config}": ${error.message}`, { cause: error });
  }
}

const own = await named();
const defaults = (await internal('config/options-validator.js')).defaultOptions;
const wanted = () => JSON.parse(fs.readFileSync(run, 'utf-8'));

await observe(internal, wanted);

const options = {
  ...own,
  // Nothing is written but into the private copy, and nothing is told but to the bridge.
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
for (const [name, value] of Object.entries(wanted().options ?? {})) {
  if (value === null) delete options[name];
  else options[name] = value;
}
if (wanted().plugin) options.appendPlugins = [...(own.appendPlugins ?? []), wanted().plugin];

export default Object.defineProperties(options, {
  concurrency: { enumerable: true, get: () => wanted().concurrency },
  mutate: {
    enumerable: true,
    get() {
      const { mutate, left_out: leftOut } = wanted();
      const all = mutate ?? own.mutate ?? defaults.mutate;
      return Array.isArray(all) ? [...all, ...leftOut.map((file) => `!${file}`)] : all; // what is wrong, StrykerJS says
    },
  },
});
