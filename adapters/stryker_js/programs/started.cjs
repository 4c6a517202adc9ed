// Theory of operation: mutants in the processes and threads that tests start.
//
// The problem. Tests of a command line start it (`execFile(process.execPath, ['cli.js'])`), others start threads. StrykerJS
// sees what runs in the process of the tests alone, and with most test runners a mutant is active only there: what nothing but
// such tests runs had no coverage, and a mutant that only they kill survived.
//
// The parts. Each test runner's process loads this file, which wraps what starts processes and threads. What they start, if it
// is Node.js, loads it, too, and so on. Which of them run the tests themselves, and which were started by tests, the
// variable MSP_BRIDGE_STARTED says: JSON, passed on with
// - `place`: "runner" (the tests run in what it starts), "tests", or "started" by a test,
// - `test`: the test that has started it, as StrykerJS names tests; none outside of tests, as in a hook,
// - `notes`: a directory.
// A mutant that is active where something is started is active there, too. In the run without a mutant, what was started notes
// in a file whose code it runs, when it first does, since it may be killed. observer.mjs adds that to the coverage of the tests.
// No test sees the variables: each process takes them out of its environment, and gives them to what it starts.

'use strict';

const childProcess = require('node:child_process');
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const threads = require('node:worker_threads');

const VARIABLE = 'MSP_BRIDGE_STARTED';
const ACTIVE = '__STRYKER_ACTIVE_MUTANT__'; // StrykerJS's own, which the mutated files read
const NAMESPACE = '__stryker__'; // StrykerJS's own, too
const LOAD = `--require ${JSON.stringify(__filename)}`;
const { closeSync, openSync, writeSync } = fs; // kept from before any test, which may replace them
const { env } = process;

let known = JSON.parse(env[VARIABLE] ?? 'null'); // null in a thread that shares its variables: they are hidden

function hideVariables() {
  delete env[VARIABLE];
  const options = env.NODE_OPTIONS?.replace(LOAD, '').trim();
  if (options) env.NODE_OPTIONS = options;
  else delete env.NODE_OPTIONS;
}

// Where StrykerJS says which mutant is active, and which test runs; Jest has it outside of the tests' global object.
function context() {
  const ofJest = Object.values(require.cache).find((module) => module?.filename?.endsWith('/jest-plugins/messaging.cjs'));
  return ofJest?.exports.state.instrumenterContext ?? globalThis[NAMESPACE];
}

// That a test has started something, by an empty file.
function noteStart() {
  try {
    closeSync(openSync(path.join(known.notes, 'started'), 'a'));
  } catch {
    // The directory may not be reached from here.
  }
}

// The variables of what is started now.
function additions() {
  const { activeMutant = env[ACTIVE], currentTestId } = context() ?? {};
  const place = known.place === 'runner' ? 'tests' : 'started';
  const test = known.place === 'started' ? known.test : (currentTestId ?? known.test);
  if (place === 'started') noteStart();
  const added = { [VARIABLE]: JSON.stringify({ ...known, place, test }) };
  return activeMutant === undefined ? added : { ...added, [ACTIVE]: activeMutant };
}

function ofProcess(before) {
  const options = before.NODE_OPTIONS ?? '';
  return { ...before, ...additions(), NODE_OPTIONS: options.includes(LOAD) ? options : `${LOAD} ${options}`.trim() };
}

function wrapProcesses() {
  const { prototype } = childProcess.ChildProcess;
  const { spawn } = prototype;
  prototype.spawn = function (options) {
    const pairs = (options.envPairs ?? []).map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]);
    options.envPairs = Object.entries(ofProcess(Object.fromEntries(pairs))).map((pair) => pair.join('='));
    return spawn.call(this, options);
  };
  for (const name of ['execFileSync', 'execSync', 'spawnSync']) {
    const original = childProcess[name];
    const wrapped = (...input) => {
      while (input.length > 1 && input.at(-1) === undefined) input.pop();
      const hasOptions = input.length > 1 && typeof input.at(-1) === 'object' && !Array.isArray(input.at(-1));
      const options = hasOptions ? input.pop() : undefined;
      return original(...input, { ...options, env: ofProcess(options?.env ?? env) });
    };
    childProcess[name] = Object.defineProperty(wrapped, 'name', { value: name });
  }
}

function wrapThreads() {
  const load = ['--require', __filename];
  threads.Worker = class Worker extends threads.Worker {
    constructor(file, options = {}) {
      const { env: given = env, execArgv = process.execArgv } = options;
      const variables = given === threads.SHARE_ENV ? given : { ...given, ...additions() };
      try {
        super(file, { ...options, env: variables, execArgv: [...execArgv, ...load] });
      } catch (error) {
        if (error.code !== 'ERR_WORKER_INVALID_EXEC_ARGV') throw error;
        super(file, { ...options, env: variables }); // options of the process that no thread may be given, but may inherit
      }
    }
  };
}

// A script that tests run in a context of its own (`node:vm`, jsdom) has other globals, and sees no variables: there it finds
// StrykerJS's object as it would here.
function wrapContexts() {
  const { createContext } = vm;
  const { runInNewContext } = vm.Script.prototype;
  const withMutants = (object) => {
    const value = context() ?? (globalThis[NAMESPACE] = { activeMutant: env[ACTIVE] });
    if (Object(object) === object) Reflect.defineProperty(object, NAMESPACE, { value, writable: true, configurable: true });
    return object;
  };
  vm.createContext = (...input) => withMutants(createContext(...input));
  vm.Script.prototype.runInNewContext = function (object = {}, ...input) {
    return runInNewContext.call(this, withMutants(object), ...input);
  };
}

// Counts of what runs, as StrykerJS's mutated files keep them.
function notedCounts() {
  let file;
  const note = (mutant) => {
    try {
      file ??= openSync(path.join(known.notes, `${process.pid}-${threads.threadId}`), 'a');
      writeSync(file, `${JSON.stringify([known.test ?? null, mutant])}\n`);
    } catch {
      // It may not, or has closed the file: no fault of the program's, that it should see.
    }
  };
  return new Proxy({}, {
    set(counts, mutant, count) {
      if (!(mutant in counts)) note(mutant);
      counts[mutant] = count;
      return true;
    },
  });
}

if (known?.place === 'started' && env[ACTIVE] === undefined) {
  globalThis[NAMESPACE] = { mutantCoverage: { static: notedCounts(), perTest: {} } };
}
if (known) {
  hideVariables();
  wrapProcesses();
  wrapThreads();
  wrapContexts();
  syncBuiltinESMExports();
}

// The test that what is started from now on belongs to, where the test runner itself doesn't say so.
exports.begins = (test) => {
  known = { ...known, test };
};
