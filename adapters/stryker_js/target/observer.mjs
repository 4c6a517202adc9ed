// What StrykerJS doesn't tell: names of tests, durations, why the first run failed. And what it can't do: wait, test just
// these mutants, go on with others when it is done, and, before 9.3, limit the files to some of those that it would mutate.
//
// The last three are done where it plans (`MutantTestPlanner.makePlan`), where it runs (`MutationTestExecutor.execute`) and
// where it takes the files (`ProjectReader.resolveFileDescriptions`); all else where it gives work to its processes
// (`Pool.schedule`, the same from 6.0 to 10). If they are gone one day, results lack these fields, StrykerJS runs ahead of
// those who read them, tests mutants that nobody asked for, and starts anew each time. No result is another one for it.

import path from 'node:path';
import { performance } from 'node:perf_hooks';

let allowed = 0; // how many mutants may be started
let waiting = [];

// Those that run, and for all workers but one the next; fewer when others need the cores.
function begin(concurrency, workers) {
  allowed = concurrency < workers ? concurrency : 2 * concurrency - 1;
  waiting = [];
}

function allow(count) {
  allowed += count;
  while (allowed > 0 && waiting.length > 0) {
    allowed -= 1;
    waiting.shift()();
  }
}

function turn() {
  if (allowed > 0) {
    allowed -= 1;
    return undefined;
  }
  return new Promise((resolve) => waiting.push(resolve));
}

let decide; // whether the run that waits goes on

// Whether it shall; if nobody says so in time, it shan't.
function again(milliseconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds, false);
    decide = (goesOn) => {
      clearTimeout(timer);
      resolve(goesOn);
    };
  });
}

// On stdin, among StrykerJS's own messages: one more mutant may start; the run that waits goes on, or is over.
const WORDS = /msp-bridge\/(next|again|over)/g;
const LONGEST = 'msp-bridge/again'.length;
let listening = false;
let rest = '';

function hear(word) {
  if (word === 'next') allow(1);
  else decide?.(word === 'again');
}

function listen() {
  if (listening) return;
  listening = true;
  process.stdin.on('data', (data) => {
    const text = rest + data.toString('latin1');
    let end = Math.max(0, text.length - LONGEST + 1);
    for (const word of text.matchAll(WORDS)) {
      hear(word[1]);
      end = Math.max(end, word.index + word[0].length);
    }
    rest = text.slice(end);
  });
  process.stdin.unref?.(); // the command line must be able to end
}

const isMutantRun = (input) => typeof input === 'object' && input !== null && 'runOptions' in input && 'mutant' in input;

// `runner`, but for one of its methods.
function replaced(runner, name, method) {
  return new Proxy(runner, {
    get(target, key) {
      if (key === name) return method;
      const value = target[key];
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

// Waits for its turn before StrykerJS's time-out begins, and gives the mutant's result its duration in milliseconds.
async function mutantRun(runner, task, input) {
  await turn();
  const timed = async (options) => {
    const began = performance.now();
    const result = await runner.mutantRun(options);
    input.mutant.duration = Math.round(performance.now() - began);
    return result;
  };
  return task(replaced(runner, 'mutantRun', timed), input);
}

function why({ status, errorMessage, tests = [] }) {
  if (status === 'error') return errorMessage;
  if (status === 'timeout') return 'the tests took too long (see dryRunTimeoutMinutes)';
  return tests
    .filter((test) => test.failureMessage !== undefined)
    .map((test) => `${test.name}: ${test.failureMessage}`)
    .join('\n');
}

// The run of the tests without a mutant.
async function dryRun(runner, task, input, tell) {
  let result = {};
  const heard = async (options) => (result = await runner.dryRun(options));
  try {
    const output = await task(replaced(runner, 'dryRun', heard), input);
    const names = (result.tests ?? []).filter(({ id, name }) => id !== name).map(({ id, name }) => [id, name]);
    if (names.length > 0) tell({ method: 'msp-bridge/tests', params: { names } });
    return output;
  } catch (error) {
    tell({ method: 'msp-bridge/failed', params: { status: result.status ?? null, why: why(result) } });
    throw error;
  }
}

function frame(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
  process.stdout.write(Buffer.concat([Buffer.from(`\nContent-Length: ${body.length}\r\n\r\n`), body]));
}

// As the bridge writes it.
function key({ fileName, mutatorName, location: { start, end }, replacement }) {
  const file = path.relative(process.cwd(), fileName).split(path.sep).join('/');
  return JSON.stringify([file, mutatorName, start.line + 1, start.column + 1, end.line + 1, end.column + 1, replacement]);
}

export async function observe(internal, wanted) {
  await observeReader(internal, wanted);
  await observePlan(internal, wanted);
  await observeRun(internal, wanted);
  await spareChecker(internal);
  await observePool(internal, wanted);
}

// `stryker run` has no way to name files without mutating also those that the project's patterns leave out, as tests.
async function observeReader(internal, wanted) {
  const { ProjectReader } = await internal('fs/project-reader.js').catch(() => ({}));
  const resolve = ProjectReader?.prototype?.resolveFileDescriptions;
  if (typeof resolve !== 'function') return;
  ProjectReader.prototype.resolveFileDescriptions = function (...input) {
    const { files } = wanted();
    const descriptions = resolve.apply(this, input);
    if (!files) return descriptions;
    const asked = new Set(files.map((file) => path.resolve(file)));
    const limited = ([file, description]) => [file, asked.has(path.resolve(file)) ? description : { ...description, mutate: false }];
    return Object.fromEntries(Object.entries(descriptions).map(limited));
  };
}

async function observePlan(internal, wanted) {
  const { MutantTestPlanner } = await internal('mutants/mutant-test-planner.js').catch(() => ({}));
  const makePlan = MutantTestPlanner?.prototype?.makePlan;
  if (typeof makePlan !== 'function') return;
  MutantTestPlanner.prototype.makePlan = function (mutants) {
    const only = new Set(wanted().only?.map((parts) => JSON.stringify(parts)));
    return makePlan.call(this, only.size > 0 ? mutants.filter((mutant) => only.has(key(mutant))) : mutants);
  };
}

// When it is done, a run waits for a while: then its processes can go on with other mutants of the same files, as they
// would have in the course of it. With checkers it can't, for they are gone as soon as they have seen all mutants.
async function observeRun(internal, wanted) {
  const { MutationTestExecutor } = await internal('process/4-mutation-test-executor.js').catch(() => ({}));
  const execute = MutationTestExecutor?.prototype?.execute;
  if (typeof execute !== 'function') return;
  MutationTestExecutor.prototype.execute = async function () {
    const { concurrency: workers, warm } = wanted();
    for (;;) {
      const results = await execute.call(this);
      if (!warm || this.options.checkers.length > 0) return results;
      const goesOn = again(warm);
      frame({ method: 'msp-bridge/waiting', params: {} });
      if (!(await goesOn)) return results;
      begin(wanted().concurrency, workers);
      frame({ method: 'msp-bridge/resumed', params: {} });
    }
  };
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

async function observePool(internal, wanted) {
  const { Pool } = await internal('concurrent/pool.js').catch(() => ({}));
  const schedule = Pool?.prototype?.schedule;
  if (typeof schedule !== 'function') return;
  Pool.prototype.schedule = function (input$, task) {
    const observed = async (resource, input) => {
      if (isMutantRun(input) && typeof resource.mutantRun === 'function') return mutantRun(resource, task, input);
      if (input === 0 && typeof resource.dryRun === 'function') {
        listen();
        begin(wanted().concurrency, wanted().concurrency);
        return dryRun(resource, task, input, frame);
      }
      return task(resource, input);
    };
    return schedule.call(this, input$, observed);
  };
}
