// How a client reaches its server: `stdio COMMAND…`, `socket PORT`, `websocket PORT`, or `listen COMMAND…` (the server
// connects to us).
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { connect as connectTo, createServer } from "node:net";

const modules = new URL("../../npm/jsonrpc/package.json", import.meta.url);
const require = createRequire(modules);
export const rpc = require("vscode-jsonrpc/node");

const once = (emitter, event) => new Promise((resolve) => emitter.once(event, resolve));

function started(command, stdio) {
  const child = spawn(command[0], command.slice(1), { stdio });
  return { child, exit: once(child, "exit") };
}

// By the packages of others: ws for the WebSocket, vscode-ws-jsonrpc for the messages in its frames.
async function overWebSocket(port) {
  const found = new URL("node_modules/vscode-ws-jsonrpc/lib/index.js", modules);
  const { toSocket, WebSocketMessageReader, WebSocketMessageWriter } = await import(found);
  const WebSocket = require("ws");
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  const exit = once(client, "close").then(() => null);
  await once(client, "open");
  const socket = toSocket(client);
  return {
    reader: new WebSocketMessageReader(socket),
    writer: new WebSocketMessageWriter(socket),
    close: () => client.close(),
    exit,
  };
}

async function reached([how, ...rest]) {
  if (how === "websocket") return await overWebSocket(rest[0]);
  const { input, output, exit } = await streams(how, rest);
  const reader = new rpc.StreamMessageReader(input);
  const writer = new rpc.StreamMessageWriter(output);
  return { reader, writer, close: () => output.end(), exit };
}

async function streams(how, rest) {
  if (how === "stdio") {
    const { child, exit } = started(rest, ["pipe", "pipe", "inherit"]);
    return { input: child.stdout, output: child.stdin, exit };
  }
  if (how === "socket") {
    const socket = connectTo(Number(rest[0]), "127.0.0.1");
    await once(socket, "connect");
    return { input: socket, output: socket, exit: once(socket, "close").then(() => null) };
  }
  const listening = createServer();
  listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { exit } = started([...rest, String(listening.address().port)], ["ignore", "inherit", "inherit"]);
  const socket = await Promise.race([once(listening, "connection"), exit]);
  listening.close();
  return { input: socket, output: socket, exit };
}

// The connection, and `leave`, which closes our side and returns the server's exit code (null on a socket).
export async function connected() {
  const { reader, writer, close, exit } = await reached(process.argv.slice(2));
  const connection = rpc.createMessageConnection(reader, writer);
  connection.onError(([error]) => {
    throw error;
  });
  const leave = async () => {
    close();
    return await exit;
  };
  return { connection, leave, exit };
}

// The code of the error that a request is answered with.
export async function codeOf(request) {
  try {
    const result = await request;
    throw new Error(`answered, and not by an error: ${JSON.stringify(result)}`);
  } catch (error) {
    if (error.code === undefined) throw error;
    return error.code;
  }
}

// Sends a request and cancels it when `when` has come; the code that it is answered with.
export async function cancelled(connection, method, params, when) {
  const source = new rpc.CancellationTokenSource();
  const answer = codeOf(connection.sendRequest(method, params, source.token));
  await when;
  source.cancel();
  return await answer;
}

export const printFacts = (facts) => process.stdout.write(JSON.stringify(facts));
