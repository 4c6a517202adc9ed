// A plugin for StrykerJS before 9.3, which has no server: a reporter that sends each event as a message on stdout, as
// `serve` does, and a test runner that runs nothing, so that `stryker run` only finds mutants.

import { send } from './observer.mjs';

const fromOne = ({ line, column }) => ({ line: line + 1, column: column + 1 });

class BridgeReporter {
  #places = new Map(); // by the mutants' ids: 0-based in the plan of every version, 1-based in the results since 7.0

  onMutationTestingPlanReady({ mutantPlans }) {
    const mutants = mutantPlans.map(({ mutant: { location, ...mutant } }) => ({
      ...mutant,
      location: { start: fromOne(location.start), end: fromOne(location.end) },
    }));
    if (process.env.MSP_BRIDGE_DISCOVER) send('plan', { mutants });
    this.#places = new Map(mutants.map(({ id, location }) => [id, location]));
  }

  onMutantTested(mutant) {
    if (process.env.MSP_BRIDGE_DISCOVER) return;
    send('tested', { ...mutant, location: this.#places.get(mutant.id) });
  }
}

class NoTests {
  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun() {
    return { status: 'complete', tests: [{ id: 'none', name: 'none', status: 0, timeSpentMs: 0 }] };
  }

  async mutantRun() {
    return { status: 'survived', nrOfTests: 0 };
  }
}

export const strykerPlugins = [
  { kind: 'Reporter', name: 'msp-bridge', injectableClass: BridgeReporter },
  { kind: 'TestRunner', name: 'msp-bridge-no-tests', injectableClass: NoTests },
];
