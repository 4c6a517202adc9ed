// A client of the JSON-RPC Test Runner Protocol, written from its RFC: it builds the tree, and keeps each node's status.
import { cancelled, codeOf, connected, printFacts } from "./transport.mjs";

const TYPES = ["solution", "project", "namespace", "test", "subcase"];
const STATUSES = [
  "Idle", "Queued", "Building", "Discovering", "Running", "Debugging", "Cancelling", "Cancelled",
  "Passed", "Failed", "Skipped",
];
const FINAL = ["Passed", "Failed", "Skipped", "Cancelled"];

const { connection, leave } = await connected();
const nodes = new Map();
const statuses = new Map();
let history = []; // [id, status] of one operation
let wake = () => {};

connection.onNotification("registerTest", ({ test }) => {
  const { id, displayName, parentId, filePath, lineNumber, type } = test;
  if (!TYPES.includes(type) || typeof displayName !== "string") throw new Error(JSON.stringify(test));
  if (parentId !== null && !nodes.has(parentId)) throw new Error(`the parent of ${id} is not there yet`);
  if ((type === "test") !== Number.isInteger(lineNumber)) throw new Error(`the line of ${id}: ${lineNumber}`);
  if (filePath !== null && typeof filePath !== "string") throw new Error(`the file of ${id}: ${filePath}`);
  nodes.set(id, test);
});
connection.onNotification("updateStatus", ({ id, status }) => {
  if (!nodes.has(id)) throw new Error(`the status of ${id}, which is not there`);
  if (status !== null && !STATUSES.includes(status)) throw new Error(`no such status: ${status}`);
  statuses.set(id, status);
  history.push([id, status]);
  wake(id, status);
});
connection.listen();

const children = (id) => [...nodes.values()].filter((node) => node.parentId === id).map((node) => node.id);
const below = (id) => [id, ...children(id).flatMap(below)];
const ofType = (type) => [...nodes.values()].filter((node) => node.type === type);

// The answer, what happened to the node, and the statuses below it, all of them final.
async function operated(method, id) {
  history = [];
  const answer = await connection.sendRequest(`testrunner/${method}`, { id });
  const path = history.filter(([node]) => node === id).map(([, status]) => status);
  return { answer, path, below: Object.fromEntries(below(id).map((node) => [node, statuses.get(node)])) };
}

const first = await connection.sendRequest("testrunner/start", {});
const discovered = { history: [...history], nodes: [...nodes.values()] };
const again = await connection.sendRequest("testrunner/start", {});
const same = discovered.nodes.length === nodes.size;

const solution = ofType("solution")[0].id;
const run = await operated("run", solution);
if (Object.values(run.below).some((status) => !FINAL.includes(status))) throw new Error(JSON.stringify(run.below));
const failed = ofType("test").find((node) => statuses.get(node.id) === "Failed").id;
const details = await connection.sendRequest("testrunner/details", { id: failed });
const one = await operated("run", failed);
const parent = statuses.get(nodes.get(failed).parentId);
const invalidated = await operated("invalidate", nodes.get(failed).parentId);
const project = await operated("run", ofType("project")[0].id);

history = [];
const running = new Promise((resolve) => (wake = (id, status) => status === "Running" && resolve()));
const cancel = await cancelled(connection, "testrunner/run", { id: solution }, running);
const afterwards = history.filter(([node]) => node === solution).map(([, status]) => status);

const doubled = connection.sendRequest("testrunner/run", { id: solution });
const duplicate = await codeOf(connection.sendRequest("testrunner/run", { id: solution }));
const child = await operated("run", failed);
await doubled;
const debug = await codeOf(connection.sendRequest("testrunner/debug", { id: failed }));
const unknown = await codeOf(connection.sendRequest("testrunner/run", { id: "nowhere" }));

const code = await leave();
printFacts({
  first, again, same, discovered, run, failed, details, one, parent, invalidated, project, afterwards, child,
  codes: { cancel, duplicate, debug, unknown }, code,
});
