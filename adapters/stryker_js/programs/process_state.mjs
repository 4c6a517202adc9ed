// Theory of operation: does a mutant leave the process of its test runner as it was?
//
// The problem. StrykerJS tests many mutants in one process. A mutant that changes what lives as long as the process (say
// Object.prototype) changes the verdicts of those after it: 5 of 176 of json-pointer 0.6.2, others at each request.
//
// The parts. This file is a plugin, so StrykerJS loads it in the process of each test runner before the tests. It wraps the
// class there that runs the tests, notes the state of the process before the first mutant, and compares it after each:
// properties of globalThis, of the built-in classes, their prototypes and a few modules of Node.js; listeners of `process`,
// the environment, the working directory, and what keeps the process alive (timers, servers).
// - The note is taken when the files of the tests are loaded. A process that has no such run behind it runs no test first.
// - What the tests change without a mutant is no fault of a mutant. The dry run says what that is.
// - Each result says what has changed, and whether the mutant was the first of its process. observer.mjs, in StrykerJS's
//   main process, replaces a changed process before the next mutant. If the mutant was not the first, it is tested again in
//   the new process: a change may come late, by a timer of the mutant before, and then the verdict is not its own.
//
// The variables of modules, and objects that only the project knows, can't be compared. Two signs show that an earlier run
// has changed them: a mutant survives whose code ran less often than in the dry run (a cache has its values), or the tests
// that have killed a mutant fail without it, too (a counter goes on). Such a mutant is tested again in a new process. What
// is not seen: a mutant that survives all tests there are, its code runs as often, and the state of an earlier run hides it.

import childProcess from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import util from 'node:util';

import { TestRunnerWorker } from './test_runner_worker.mjs';

// The test runners whose tests run in a process or thread for each run, or in a browser.
const RUN_ELSEWHERE = new Set(['command', 'karma', 'tap', 'vitest']);
export const runsTestsItself = ({ testRunner = 'command' }) => !RUN_ELSEWHERE.has(testRunner);

// Those that keep the files of the tests in memory from one run to the next. Others load them in each run.
const KEEP_TESTS_LOADED = new Set(['mocha', 'jasmine', 'cucumber']);
export const sharesModules = (testRunner) => KEEP_TESTS_LOADED.has(testRunner);
export const keepsTestsLoaded = ({ testRunner, maxTestRunnerReuse }) => sharesModules(testRunner) && !maxTestRunnerReuse;

const NO_TEST = 'msp-bridge: the name of no test';
const NO_MUTANT = '-1';
const CONTROL_FACTOR = 3; // a run without a mutant that is to be timed may take so many times the time of one with it
const HIT_LIMIT_FACTOR = 100; // StrykerJS's `hitLimit` is so many times the runs of the mutant's code in the dry run

// No mutant is active, not while the files of the tests are loaded either, as in the first run of the tests.
function withoutMutant(options) {
  const activeMutant = { ...options.activeMutant, id: NO_MUTANT };
  return { ...options, activeMutant, hitLimit: undefined, mutantActivation: 'runtime', reloadEnvironment: false };
}

// A run of no test.
export const nothingToRun = (options) => ({ ...withoutMutant(options), testFilter: [NO_TEST] });

// Whether the tests that have killed a mutant, in the run with `options`, fail without it in the same process, too. Where no
// test has, but a hook of some, all tests of that run decide.
export async function failsWithoutMutant(runner, options, { status, killedBy }) {
  if (status !== 'killed') return false;
  const killers = [killedBy].flat();
  const testFilter = options.testFilter && killers.every((test) => options.testFilter.includes(test)) ? killers : options.testFilter;
  const control = await runner.mutantRun({ ...withoutMutant(options), testFilter, isControl: true });
  return control.status !== 'survived';
}

// How long (ms) the tests of the run with `options` take without the mutant, as busy as the machine is now.
export async function timeWithoutMutant(runner, options) {
  const began = performance.now();
  await runner.mutantRun({ ...withoutMutant(options), timeout: CONTROL_FACTOR * options.timeout });
  return performance.now() - began;
}

// Kept from before any mutant, which may replace them.
const { apply, getOwnPropertyDescriptor, getPrototypeOf, isExtensible, ownKeys } = Reflect;
const { is } = Object;
const immediate = setImmediate;

// The values that no name of globalThis leads to.
const HIDDEN = {
  process,
  Buffer,
  AsyncFunction: async function () {}.constructor,
  GeneratorFunction: function* () {}.constructor,
  Generator: (function* () {})(),
  AsyncGeneratorFunction: async function* () {}.constructor,
  AsyncGenerator: (async function* () {})(),
  ArrayIterator: [][Symbol.iterator](),
  MapIterator: new Map()[Symbol.iterator](),
  SetIterator: new Set()[Symbol.iterator](),
  StringIterator: ''[Symbol.iterator](),
  childProcess,
  fs,
  path,
  util,
};
const UNSTEADY = new Set(['_events', '_eventsCount']); // of `process`: the listeners are compared by their names

// Each built-in object with its name.
function builtIns() {
  const found = new Map();
  const add = (name, object) => {
    if (object === null || !['object', 'function'].includes(typeof object) || found.has(object)) return;
    found.set(object, name);
    add(`${name}.prototype`, getOwnPropertyDescriptor(object, 'prototype')?.value);
    add(`${name}.[[Prototype]]`, getPrototypeOf(object));
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) add(name, getOwnPropertyDescriptor(globalThis, name).value);
  for (const name of Object.keys(HIDDEN)) add(name, HIDDEN[name]);
  return found;
}

const BUILT_INS = builtIns();

function note() {
  const objects = [];
  for (const [object, name] of BUILT_INS) {
    const properties = new Map(ownKeys(object).map((key) => [key, getOwnPropertyDescriptor(object, key)]));
    objects.push({ object, name, properties, prototype: getPrototypeOf(object), extensible: isExtensible(object) });
  }
  return { objects, values: values() };
}

// What is no property of an object, by names.
function values() {
  const { stdout, stderr } = process;
  const found = new Map([['cwd', process.cwd()], ['stdout.write', stdout.write], ['stderr.write', stderr.write]]);
  for (const name of Object.keys(process.env)) found.set(`env.${name}`, process.env[name]);
  for (const name of process.eventNames()) found.set(`listeners.${String(name)}`, process.listenerCount(name));
  for (const type of process.getActiveResourcesInfo?.() ?? []) found.set(`open.${type}`, (found.get(`open.${type}`) ?? 0) + 1);
  return found;
}

// The names of what has changed since `noted`. What was open and is no more changes nothing.
function changesSince(noted) {
  const changed = new Set();
  for (const { object, name, properties, prototype, extensible } of noted.objects) {
    if (getPrototypeOf(object) !== prototype || isExtensible(object) !== extensible) changed.add(name);
    const keys = ownKeys(object);
    for (const key of keys) {
      if (!isSame(object, properties.get(key), getOwnPropertyDescriptor(object, key)) && !UNSTEADY.has(key))
        changed.add(`${name}.${String(key)}`);
    }
    if (keys.length < properties.size) changed.add(name);
  }
  const now = values();
  for (const [name, value] of now) {
    const before = noted.values.get(name);
    if (name.startsWith('open.') ? value > (before ?? 0) : value !== before) changed.add(name);
  }
  for (const name of noted.values.keys()) if (!now.has(name) && !name.startsWith('open.')) changed.add(name);
  return [...changed];
}

function isSame(object, before, after) {
  if (before === undefined) return false;
  if (before.get !== after.get) return isLoadedNow(object, before, after);
  const { writable, enumerable, configurable } = after;
  const flags = before.writable === writable && before.enumerable === enumerable && before.configurable === configurable;
  return flags && before.set === after.set && is(before.value, after.value);
}

// Whether it is one of the globals that Node.js puts in the place of a getter when they are first used.
const isLoadedNow = (object, before, after) => before.get !== undefined && after.value === apply(before.get, object, []);

// --- The wrapped class -----------------------------------------------------------------------------------------------

let noted;
let isFirst = true;

const settled = () => new Promise((resolve) => immediate(resolve));

// The main process sends with each mutant what is expected to change, and whether the files of the tests are loaded first.
function observe({ prototype }) {
  const { dryRun, mutantRun } = prototype;
  prototype.dryRun = async function (options) {
    const before = note();
    const result = await dryRun.call(this, options);
    await settled();
    noted = note();
    return { ...result, changed: changesSince(before) };
  };
  prototype.mutantRun = async function ({ expected = [], loadsTests = false, isControl = false, ...options }) {
    if (isControl) return mutantRun.call(this, options);
    if (options.activeMutant.id === NO_MUTANT) return loaded(await mutantRun.call(this, options));
    if (!noted) {
      const isStatic = options.reloadEnvironment || options.mutantActivation === 'static'; // active while tests are loaded
      loaded(loadsTests && !isStatic ? await mutantRun.call(this, nothingToRun(options)) : undefined);
    }
    const wasFirst = isFirst;
    isFirst = false;
    const result = await mutantRun.call(this, options);
    await settled();
    const skipped = result.status === 'survived' && globalThis.__stryker__?.hitCount * HIT_LIMIT_FACTOR < options.hitLimit;
    return { ...result, wasFirst, skipped, changed: changesSince(noted).filter((name) => !expected.includes(name)) };
  };
}

function loaded(result) {
  noted = note();
  return result;
}

if (TestRunnerWorker) observe(TestRunnerWorker);

export const strykerPlugins = [];
