// A client of the Mutation Server Protocol 0.0.1-alpha.1, written from its specification.
import { cancelled, codeOf, connected, printFacts } from "./transport.mjs";

const { connection, leave } = await connected();
const partial = new Map(); // token -> the results that were reported against it
const answered = new Set(); // tokens that are no longer valid
let wake = () => {};
connection.onNotification("progress", ({ token, value }) => {
  if (!partial.has(token) || answered.has(token)) throw new Error(`no request runs with the token ${token}`);
  partial.get(token).push(...value);
  wake();
});
connection.listen();

async function streamed(method, token, params = {}) {
  partial.set(token, []);
  const answer = await connection.sendRequest(method, { ...params, partialResultToken: token });
  answered.add(token);
  if (answer.length) throw new Error("the answer must be empty when partial results were reported");
  return partial.get(token);
}

const initialize = (params) => connection.sendRequest("initialize", params);
const client = { clientInfo: { version: "0.2.0" } };

const early = await codeOf(connection.sendRequest("mutate", {}));
await connection.sendNotification("progress", { token: 1, value: [] });
const tooNew = await codeOf(initialize({ clientInfo: { version: "1.0.0" } }));
const initialized = await initialize(client);
const twice = await codeOf(initialize(client));
const unknown = await codeOf(connection.sendRequest("$/unheardOf", {}));

const instrumented = await connection.sendRequest("instrument", {});
const streamedPending = await streamed("instrument", "5f6f349e-4f81-4a3b-afff-ee04bff96804");
const mutated = await streamed("mutate", 7, { globPatterns: ["src/**"] });
const [first] = instrumented;
const one = await connection.sendRequest("mutate", { globPatterns: [first.fileName, "nowhere/*.py"] });
const none = await connection.sendRequest("mutate", { globPatterns: ["*.py"] });

partial.set("cancelled", []);
const report = new Promise((resolve) => (wake = resolve));
const cancel = await cancelled(connection, "mutate", { partialResultToken: "cancelled" }, report);

const code = await leave();
printFacts({
  codes: { early, tooNew, twice, unknown, cancel },
  initialized, instrumented, streamedPending, mutated, one, none, code,
});
