// A client of the MSTest Runner Protocol (Microsoft.Testing.Platform), written from its text.
import { randomUUID } from "node:crypto";
import { cancelled, codeOf, connected, printFacts } from "./transport.mjs";

const STATES = ["discovered", "in-progress", "passed", "skipped", "failed", "timed-out", "error", "cancelled"];
const { connection, exit, leave } = await connected();
const runs = new Map(); // runId -> the changes, and whether the last one has come
connection.onNotification("testing/testUpdates/tests", ({ runId, changes }) => {
  const run = runs.get(runId);
  if (!run || run.complete) throw new Error(`an update for the run ${runId}`);
  if (changes === null) {
    run.complete = true;
    return;
  }
  for (const { parent, node } of changes) {
    if (parent !== null && !run.nodes.has(parent)) throw new Error(`the parent of ${node.uid} is not there yet`);
    if (!STATES.includes(node["execution-state"])) throw new Error(JSON.stringify(node));
    if (!["action", "group"].includes(node["node-type"])) throw new Error(JSON.stringify(node));
    run.states.push([node.uid, node["execution-state"]]);
    run.nodes.set(node.uid, node);
  }
  run.started();
});
connection.listen();

function begun() {
  const runId = randomUUID();
  const run = { nodes: new Map(), states: [], complete: false };
  run.first = new Promise((resolve) => (run.started = resolve));
  runs.set(runId, run);
  return { runId, run };
}

async function asked(what, params = {}) {
  const { runId, run } = begun();
  const answer = await connection.sendRequest(`testing/${what}`, { runId, ...params });
  if (!run.complete) throw new Error("the answer came before the update that completes the run");
  return { answer, nodes: [...run.nodes.values()], states: run.states };
}

const early = await codeOf(connection.sendRequest("testing/discoverTests", { runId: randomUUID() }));
const client = {
  processId: process.pid,
  clientInfo: { name: "a client", version: "1.0.0" },
  capabilities: { testing: { debuggerProvider: true, batchLoggingSupport: true, attachmentsSupport: true } },
};
const initialized = await connection.sendRequest("initialize", client);
const twice = await codeOf(connection.sendRequest("initialize", client));
const discovered = await asked("discoverTests");
const tests = discovered.nodes.filter((node) => node["node-type"] === "action");
const groups = discovered.nodes.filter((node) => node["node-type"] === "group");
const filtered = await asked("discoverTests", { tests: tests.slice(0, 1) });
const everything = await asked("runTests");
const some = await asked("runTests", { testCases: tests.slice(0, 2) });
const group = await asked("runTests", { tests: groups.slice(0, 1) });

const { runId, run } = begun();
const cancel = await cancelled(connection, "testing/runTests", { runId }, Promise.resolve());
const unknown = await codeOf(connection.sendRequest("testing/nonsense", {}));
const last = asked("discoverTests");
await connection.sendNotification("exit", {});
const completed = (await last).nodes.length;
const code = process.argv[2] === "socket" ? (await exit, null) : await exit;
printFacts({
  codes: { early, twice, cancel, unknown }, initialized, discovered, tests, groups, filtered, everything, some, group,
  completed, code,
});
process.exit(0);
