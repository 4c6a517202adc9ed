// Theory of operation: what the bridge adds to StrykerJS, in StrykerJS's own main process.
//
// The problem. `stryker serve` and `stryker run` report neither the names of tests, nor durations, nor why the first run of
// the tests failed. They can't wait for whoever reads the results, can't test just some mutants of a file, can't go on with
// other mutants when they are done, and one file that can't be instrumented makes them give up all files. StrykerJS has no
// extension point for any of these. So methods of its inner classes are wrapped: the class is imported by its path, its
// prototype gets a method that calls the original one. Versions 6.4 to 10 have the same classes. Should one be gone some
// day, what depends on it is lost and nothing else: no verdict is another one for it.
//
//   class                  wrapped for
//   OptionsValidator       which options nothing knows, and the threshold
//   PluginLoader           which test runners there are, for the doctor
//   ProjectReader          limit the files to those of the request; which files the `mutate` patterns match
//   Sandbox                what is in it, see sandbox.mjs
//   Instrumenter           a file that can't be instrumented is left out, with the reason; the others go on
//   MutantTestPlanner      plan just the mutants of the request
//   ChildProcessProxy      no process for checkers where there are none
//   Pool                   the turn of each mutant; durations; names of tests; why the first run failed
//   MutationTestExecutor   the open run, see below
//
// Turns. A mutant starts when it has a turn. The bridge sends `msp-bridge/next` for each result that somebody has taken,
// so StrykerJS tests no further ahead than one mutant for each worker. The wait for a turn comes before StrykerJS starts
// its time limit; otherwise a slow reader would make time-outs.
//
// The open run. The first run of the tests and the start of the processes take most of the time of a small request, and
// both are the same for the next request of the same files. So a run that is done stays open:
//
//   running --all results known--> resting --`msp-bridge/again`--> running, with the mutants that are wanted now
//                                     |----`msp-bridge/over`, or `warm` is over--> ended
//
// Invariant: no state of one request reaches the next. A verdict is what it would be in a run of its own. Therefore
// - in memory: mutants change what lives as long as their process: Object.prototype, caches of modules, open handles. When
//   a run rests, `recover` replaces each test runner that has run a mutant, as StrykerJS itself does after a time-out. The
//   processes that rest are started and initialised and have run no mutant; where a runner keeps the files of the tests
//   loaded, they are loaded. Within a request a process tests one mutant after another until one has changed it: see
//   process_state.mjs.
// - on disk: mutants may leave files in the sandbox or beside it, or miss to delete some. All files of the private copy are
//   noted after the first run of the tests. A run whose mutants have left them otherwise ends instead of resting.
// - what is not seen: `node_modules` (tools keep caches there), and what tests write outside the private copy.
// The obvious way, to let the used processes rest, changed 4 of 176 verdicts of json-pointer 0.6.2 in the second request.
//
// With checkers no run rests, for StrykerJS ends its checkers when they have seen all mutants.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';

import { addCoverage, emptyDirectory, isUncovered } from './coverage_notes.mjs';
import { filesAreUnchanged, noteFiles } from './noted_files.mjs';
import { keepsTestsLoaded, nothingToRun, sharesModules } from './process_state.mjs';
import { completeFiles, linkPackages } from './sandbox.mjs';
import { decided, noteTests } from './verdicts.mjs';

export function send(method, params = {}) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: `msp-bridge/${method}`, params }));
  process.stdout.write(Buffer.concat([Buffer.from(`\nContent-Length: ${body.length}\r\n\r\n`), body]));
}

// --- Turns: how many mutants may start -------------------------------------------------------------------------------

let turns = 0;
let waiting = [];

// Those that run, and for all workers but one the next; fewer when others need the cores.
function resetTurns(concurrency, workers) {
  turns = concurrency < workers ? concurrency : 2 * concurrency - 1;
  waiting = [];
}

function giveTurn() {
  const start = waiting.shift();
  if (start) start();
  else turns += 1;
}

function takeTurn() {
  if (turns === 0) return new Promise((resolve) => waiting.push(resolve));
  turns -= 1;
  return undefined;
}

// --- What the bridge sends on stdin, among StrykerJS's own messages --------------------------------------------------

const COMMANDS = /msp-bridge\/(next|again|over)/g;
const LONGEST = 'msp-bridge/again'.length;
let decide; // whether the open run goes on
let listening = false;
let rest = '';

// True when the bridge wants the open run to go on, false when it is over or nothing comes in time.
function decision(milliseconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds, false);
    decide = (goesOn) => {
      clearTimeout(timer);
      resolve(goesOn);
    };
  });
}

function listen() {
  if (listening) return;
  listening = true;
  process.stdin.on('data', (data) => {
    const text = rest + data.toString('latin1');
    let end = Math.max(0, text.length - LONGEST + 1);
    for (const command of text.matchAll(COMMANDS)) {
      if (command[1] === 'next') giveTurn();
      else decide?.(command[1] === 'again');
      end = Math.max(end, command.index + command[0].length);
    }
    rest = text.slice(end);
  });
  process.stdin.unref?.(); // the command line must be able to end
}

// --- Test runners ----------------------------------------------------------------------------------------------------

const used = new Map(); // those whose process has run a mutant, and the options of its last run

const changed = new Set(); // those whose process the last mutant has left changed, see process_state.mjs
let expected = []; // what the tests change there without a mutant

// Two at a time, as StrykerJS starts them. Whether all are ready.
async function replaceUsedRunners(options) {
  const pending = [...used];
  used.clear();
  changed.clear();
  const loads = keepsTestsLoaded(options);
  const replaceNext = async () => {
    for (let next; (next = pending.pop()); ) {
      const [runner, last] = next;
      await runner.recover();
      if (loads) await runner.mutantRun(nothingToRun(last));
    }
  };
  const outcomes = await Promise.allSettled([replaceNext(), replaceNext()]);
  return outcomes.every(({ status }) => status === 'fulfilled');
}

// `runner`, but for one of its methods.
function withMethod(runner, name, method) {
  return new Proxy(runner, {
    get(target, key) {
      if (key === name) return method;
      const value = target[key];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const isMutantRun = (input) => typeof input === 'object' && input !== null && 'runOptions' in input && 'mutant' in input;

// Gives the mutant's result its duration in milliseconds, and a process that no mutant before it has changed.
async function mutantRun(runner, task, input, own) {
  await takeTurn();
  const timed = async (options) => {
    const began = performance.now();
    const result = await runner.mutantRun({ ...options, expected, loadsTests: keepsTestsLoaded(own) });
    input.mutant.duration = Math.round(performance.now() - began);
    return result;
  };
  const unchanged = async (options) => {
    used.set(runner, { ...options });
    if (changed.delete(runner)) await runner.recover();
    const result = await decided(runner, timed, options, own);
    if (result.changed?.length > 0) changed.add(runner);
    return result;
  };
  return task(withMethod(runner, 'mutantRun', unchanged), input);
}

// The run of the tests without a mutant; what they have started leaves its coverage in `notes`.
async function dryRun(runner, task, input, notes, { testRunner }) {
  let result = {};
  const observed = async (options) => {
    emptyDirectory(notes);
    result = await runner.dryRun(options);
    addCoverage(result, notes, options.coverageAnalysis !== 'off' && sharesModules(testRunner));
    if (isUncovered(result)) send('uncovered');
    return result;
  };
  try {
    const output = await task(withMethod(runner, 'dryRun', observed), input);
    expected = result.changed ?? [];
    const tests = result.tests ?? [];
    noteTests(tests);
    const names = tests.filter(({ id, name }) => id !== name).map(({ id, name }) => [id, name]);
    if (names.length > 0) send('tests', { names });
    return output;
  } catch (error) {
    const failed = (result.tests ?? []).filter((test) => test.failureMessage !== undefined);
    const reasons = { error: result.errorMessage, timeout: 'the tests took too long (see dryRunTimeoutMinutes)' };
    const failing = failed.map(({ name, failureMessage }) => [name, failureMessage]);
    send('failed', { error: reasons[result.status] ?? '', failing });
    throw error;
  }
}

// --- The wrapped classes ---------------------------------------------------------------------------------------------

// As the bridge writes it.
function key({ fileName, mutatorName, location: { start, end }, replacement }) {
  return JSON.stringify([relative(fileName), mutatorName, start.line + 1, start.column + 1, end.line + 1, end.column + 1, replacement]);
}

const relative = (file) => path.relative(process.cwd(), file).split(path.sep).join('/');

// `internal` imports a module of StrykerJS's core; `wanted` reads the run's configuration, see `RunConfig` in launch.py.
// `own` are the options as the project has them; for `notes` see coverage_notes.mjs.
export async function observe(core, internal, wanted, notes, own) {
  const wrap = async (file, className, method, wrapper) => {
    const prototype = (await internal(file).catch(() => ({})))[className]?.prototype;
    const original = prototype?.[method];
    if (typeof original === 'function') prototype[method] = wrapper(original);
  };
  await wrap('config/options-validator.js', 'OptionsValidator', 'validate', (validate) =>
    function (options, mark) {
      validate.call(this, options, mark);
      const known = Object.keys(this.schema?.properties ?? {});
      if (mark) {
        const { testRunner: runner, thresholds } = own;
        send('options', { runner, threshold: thresholds?.break ?? null, known, unknown: unknownOptions(options, known) });
      }
    },
  );
  await wrap('di/plugin-loader.js', 'PluginLoader', 'load', (load) =>
    async function (...input) {
      const loaded = await load.apply(this, input);
      const { testRunner } = own;
      const runners = loaded.pluginsByKind?.get('TestRunner')?.map(({ name }) => name) ?? [];
      const found = testRunner === 'command' || runners.some((name) => name.toLowerCase() === String(testRunner).toLowerCase());
      if (loaded.pluginsByKind && !found) send('no-runner', { name: String(testRunner) });
      return loaded;
    },
  );
  await wrap('fs/project-reader.js', 'ProjectReader', 'resolveFileDescriptions', (resolve) =>
    function (...input) {
      return limited(resolve.apply(this, input), this.mutatePatterns, wanted());
    },
  );
  await wrap('sandbox/sandbox.js', 'Sandbox', 'fillSandbox', (fillSandbox) =>
    async function (...input) {
      await fillSandbox.apply(this, input);
      completeFiles(this, links);
    },
  );
  await wrap('sandbox/sandbox.js', 'Sandbox', 'symlinkNodeModulesIfNeeded', (symlink) =>
    async function (...input) {
      await symlink.apply(this, input);
      linkPackages(this);
    },
  );
  await wrap(instrumenterOf(core), 'Instrumenter', 'instrument', (instrument) =>
    function (files, options) {
      return instrumented((some) => instrument.call(this, some, options), files);
    },
  );
  await wrap('mutants/mutant-test-planner.js', 'MutantTestPlanner', 'makePlan', (makePlan) =>
    function (mutants) {
      const only = wanted().only && new Set(wanted().only.map((parts) => JSON.stringify(parts)));
      return makePlan.call(this, only ? mutants.filter((mutant) => only.has(key(mutant))) : mutants);
    },
  );
  await wrap('process/4-mutation-test-executor.js', 'MutationTestExecutor', 'execute', (execute) =>
    async function () {
      const { concurrency: workers, warm, directories } = wanted();
      if (this.dryRunResult?.tests.length === 0) send('no-tests');
      for (;;) {
        const results = await execute.call(this);
        if (!warm || this.options.checkers.length > 0 || !filesAreUnchanged(directories)) return results;
        const decided = decision(warm);
        const replaced = replaceUsedRunners(this.options);
        send('waiting');
        const [goesOn, ready] = await Promise.all([decided, replaced]);
        if (!goesOn || !ready) return results;
        resetTurns(wanted().concurrency, workers);
        send('resumed');
      }
    },
  );
  await wrap('concurrent/pool.js', 'Pool', 'schedule', (schedule) =>
    function (input$, task) {
      const observed = async (resource, input) => {
        if (isMutantRun(input) && typeof resource.mutantRun === 'function') return mutantRun(resource, task, input, own);
        if (input !== 0 || typeof resource.dryRun !== 'function') return task(resource, input);
        const { concurrency, warm, directories } = wanted();
        listen();
        resetTurns(concurrency, concurrency);
        used.clear();
        changed.clear();
        const began = Date.now();
        const output = await dryRun(resource, task, input, notes, own);
        if (warm) noteFiles(directories, began);
        return output;
      };
      return schedule.call(this, input$, observed);
    },
  );
  await spareChecker(internal);
}

// Those that StrykerJS warns of: https://github.com/stryker-mutator/stryker-js/blob/master/packages/core/src/config/options-validator.ts
function unknownOptions(options, known) {
  if (options.warnings === false || options.warnings?.unknownOptions === false) return [];
  const ignored = new Set([...known, 'set', 'configFile', '$schema']);
  return Object.keys(options).filter((name) => !ignored.has(name) && !name.endsWith('_comment'));
}

// Links to directories, and to nowhere. StrykerJS takes them for files, which it then can't copy into its sandbox: there
// they are made again, as they are. https://github.com/stryker-mutator/stryker-js/blob/master/packages/core/src/fs/project-reader.ts
let links = [];

function isLinkToNoFile(file) {
  return fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() && !leadsToFile(file);
}

function leadsToFile(link) {
  try {
    return fs.statSync(link).isFile();
  } catch {
    return false; // to nowhere, or in circles
  }
}

// `descriptions` without those links, and without the mutation of files that the request doesn't name, or that can't be
// read (a link in circles).
function limited(descriptions, patterns, { files, only }) {
  links = Object.keys(descriptions).filter(isLinkToNoFile);
  const linked = new Set(links);
  const matched = Object.keys(descriptions).filter((file) => descriptions[file].mutate);
  if (!only) send('patterns', { patterns: patterns ?? [], matched: matched.map(relative) });
  const named = files && new Set(files.map((file) => path.resolve(file)));
  const wanted = new Set(matched.filter((file) => (!named || named.has(path.resolve(file))) && isReadable(file)));
  const limit = ([file, description]) => [file, wanted.has(file) ? description : { ...description, mutate: false }];
  return Object.fromEntries(Object.entries(descriptions).filter(([file]) => !linked.has(file)).map(limit));
}

function isReadable(file) {
  try {
    fs.accessSync(file, fs.constants.R_OK);
    if (!fs.statSync(file).isFile()) throw new Error('it is no file');
    return true;
  } catch ({ message }) {
    send('broken', { file: relative(file), reason: message });
    return false;
  }
}

// The address of the class's module, which the package doesn't export.
function instrumenterOf(core) {
  try {
    const description = createRequire(path.join(core, 'package.json')).resolve('@stryker-mutator/instrumenter/package.json');
    return pathToFileURL(path.join(path.dirname(description), 'dist', 'src', 'instrumenter.js')).href;
  } catch {
    return 'nowhere.js';
  }
}

// What `instrument` gives for all files; without those for which it fails alone.
async function instrumented(instrument, files) {
  try {
    return await instrument(files);
  } catch (error) {
    const good = [];
    for (const file of files) {
      try {
        await instrument([file]);
        good.push(file);
      } catch ({ message }) {
        send('broken', { file: relative(file.name), reason: reasonOf(message, file.name) });
      }
    }
    if (good.length === files.length) throw error;
    return instrument(good);
  }
}

// Without the file, which is named beside it, and without the JSON that some messages go on with.
function reasonOf(message, file) {
  const [line] = String(message).replaceAll(file, '').replaceAll(relative(file), '').trim().split('\n');
  return line.replace(/^[:\s]+/, '');
}

// A project without checkers gets a process for them all the same, for which everything waits:
// https://github.com/stryker-mutator/stryker-js/blob/master/packages/core/src/checker/checker-factory.ts
async function spareChecker(internal) {
  const { ChildProcessProxy } = await internal('child-proxy/child-process-proxy.js').catch(() => ({}));
  const create = ChildProcessProxy?.create;
  if (typeof create !== 'function') return;
  ChildProcessProxy.create = function (...input) {
    const [module, , options] = input;
    if (!String(module).endsWith('/checker-worker.js') || options.checkers.length > 0) return create.apply(this, input);
    return { proxy: { async init() {} }, async dispose() {} };
  };
}
