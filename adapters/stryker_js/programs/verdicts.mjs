// Theory of operation: which tests decide on a mutant.
//
// The problem. StrykerJS runs the tests that run the mutant's code, as the dry run has seen, in which all tests share a process.
// Others may need that code, or be needed: the first test computes what is kept for all later ones, and a test may need what an
// earlier one has left. And with mocha the mutants share a process, too, in which an earlier one has left something.
//
// The rule. A survivor, and a mutant whose killers fail alone without it, is tested once more, by all tests that share modules
// with these: all of their files, or all there are where one process loads all files. They kill a survivor if they do so twice,
// the second time with modules that are loaded anew. A run is no answer where the mutant, or another before it, has changed the
// process: see process_state.mjs.
//
// A mutant that has passed its time limit is tested again: the limit is one by the clock, and the machine may be busy, or the
// process may have loaded the tests just then. The second limit allows for the time that they take at that moment without the
// mutant, in a new process. A loop that has run too often, which StrykerJS counts, needs no clock.

import path from 'node:path';

import { failsWithoutMutant, keepsTestsLoaded, sharesModules, timeWithoutMutant } from './process_state.mjs';

let tests = []; // as the run without a mutant has met them
const passAlone = new Set(); // tests that have killed, and pass alone without a mutant

export function noteTests(found) {
  tests = found;
  passAlone.clear();
}

// The result of the mutant of `options`; `runOnce` tests it with such options, `own` are those of the project.
export async function decided(runner, runOnce, planned, own) {
  const run = async (asked) => {
    const result = await runOnce(asked);
    return result.status === 'timeout' && !result.reason ? runOnce(await withLimitOfNow(runner, asked, own)) : result;
  };
  const options = { ...planned, testFiles: withinProject(filesOf(new Set(planned.testFilter))) };
  const loadsTests = keepsTestsLoaded(own);
  let result = await run(options);
  if (!result.wasFirst && result.changed?.length > 0) {
    await runner.recover();
    result = await run(options);
  }
  const whole = withCompanions(options, own);
  let isOpen = result.status === 'survived' ? result.skipped : await isDoubtful(runner, options, result, loadsTests);
  if (result.status === 'survived' && !isOpen && whole !== options) {
    const together = await run(whole);
    isOpen = together.status !== 'survived'; // or they fail by chance, or by what the run before has left
    if (!isOpen) result = together;
  }
  if (!isOpen || (whole === options && result.wasFirst)) return result;
  if (loadsTests || result.skipped) await runner.recover();
  return run(whole);
}

// StrykerJS has replaced the process itself. Where it keeps modules, the mutant gets one without what the timed run has left.
async function withLimitOfNow(runner, options, own) {
  const time = await timeWithoutMutant(runner, options);
  if (keepsTestsLoaded(own)) await runner.recover();
  return withMoreTime(options, own, time);
}

const withMoreTime = (options, { timeoutFactor = 1.5 }, ms) => ({ ...options, timeout: options.timeout + timeoutFactor * ms });

const filesOf = (chosen) => new Set(tests.filter(({ id }) => chosen.has(id)).map(({ fileName }) => fileName));

// Their paths from the project on, which are those from StrykerJS's sandbox on; nothing where not all are known, or there.
function withinProject(files) {
  const found = [...files].map((file) => file && path.relative(process.cwd(), file));
  return found.length > 0 && found.every((file) => file && !file.startsWith('..')) ? found : undefined;
}

// Run all tests that share a process or a module registry with the ones of `options`; `options` itself where these are all.
function withCompanions(options, own) {
  if (!options.testFilter) return options;
  const chosen = new Set(options.testFilter);
  const files = filesOf(chosen);
  const together = sharesModules(own.testRunner) || files.has(undefined) ? tests : tests.filter(({ fileName }) => files.has(fileName));
  const others = together.filter(({ id }) => !chosen.has(id));
  if (others.length === 0) return options;
  const time = others.reduce((total, { timeSpentMs }) => total + timeSpentMs, 0);
  return { ...withMoreTime(options, own, time), testFilter: together.map(({ id }) => id) };
}

// Whether a kill may not be the mutant's. Where nothing is left of other runs, the answer is the same for each mutant.
async function isDoubtful(runner, options, result, loadsTests) {
  const isAlone = result.wasFirst || !loadsTests;
  const killers = JSON.stringify(result.killedBy);
  if (result.status !== 'killed' || (isAlone && (!options.testFilter || passAlone.has(killers)))) return false;
  if (result.changed?.length > 0) {
    await runner.recover(); // else they may fail by what the mutant has left
    result.changed = [];
  }
  const fails = await failsWithoutMutant(runner, options, result);
  if (!fails) passAlone.add(killers);
  return fails;
}
