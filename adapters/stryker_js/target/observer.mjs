// What StrykerJS doesn't tell: names of tests, durations, why the first run failed. And what it can't do: wait, leave out
// mutants that lie within the range of another one, and, before 9.3, limit the files to some of those that it would mutate.
//
// The last two are done where it plans (`MutantTestPlanner.makePlan`) and where it takes the files
// (`ProjectReader.resolveFileDescriptions`); all else where it gives work to its processes (`Pool.schedule`, the same from
// 6.0 to 10). If they are gone one day, results lack these fields, StrykerJS runs ahead of those who read them, and tests
// mutants that nobody asked for. No result is another one for it.

import path from 'node:path';
import { performance } from 'node:perf_hooks';

let allowed = 0; // how many mutants may be started
let waiting = [];

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

// On stdin, among StrykerJS's own messages, each of these lets one more mutant start.
const WORD = 'msp-bridge/next';
let listening = false;
let rest = '';

function listen() {
  if (listening) return;
  listening = true;
  process.stdin.on('data', (data) => {
    const parts = (rest + data.toString('latin1')).split(WORD);
    rest = parts[parts.length - 1].slice(1 - WORD.length);
    allow(parts.length - 1);
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

async function observePool(internal, wanted) {
  const { Pool } = await internal('concurrent/pool.js').catch(() => ({}));
  const schedule = Pool?.prototype?.schedule;
  if (typeof schedule !== 'function') return;
  Pool.prototype.schedule = function (input$, task) {
    const observed = async (resource, input) => {
      if (isMutantRun(input) && typeof resource.mutantRun === 'function') return mutantRun(resource, task, input);
      if (input === 0 && typeof resource.dryRun === 'function') {
        listen();
        allowed = 2 * wanted().concurrency - 1; // a new run: those that run, and for all workers but one the next
        waiting = [];
        return dryRun(resource, task, input, frame);
      }
      return task(resource, input);
    };
    return schedule.call(this, input$, observed);
  };
}
