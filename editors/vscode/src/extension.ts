// The extension: one language server for all folders of the window, and the Testing view of its mutants.
//
// Diagnostics, code lenses, code actions, hovers and progress are vscode-languageclient's. The server is started,
// stopped and restarted one after another (`turn`), so that there is never a second one.

import * as vscode from "vscode";
import { LanguageClient, RevealOutputChannelOn } from "vscode-languageclient/node";
import { Explorer } from "./explorer";
import { NotFound, SECTION, executable, sayNotFound } from "./server";

let turn: Promise<void> = Promise.resolve();
let client: LanguageClient | undefined;
let explorer: Explorer;
let output: vscode.LogOutputChannel;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  output = vscode.window.createOutputChannel("Mutation testing", { log: true });
  explorer = new Explorer(output);
  context.subscriptions.push(
    output,
    explorer,
    vscode.commands.registerCommand("msp-bridge.restart", restart),
    vscode.commands.registerCommand("msp-bridge.showOutput", () => output.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.path`) || event.affectsConfiguration(`${SECTION}.args`)) {
        void restart();
      }
    }),
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      const folders = vscode.workspace.workspaceFolders ?? [];
      // vscode-languageclient notifies a server that runs; the first folder starts it, and the last one ends it.
      if ((client === undefined) === folders.length > 0) {
        void restart();
      } else {
        explorer.forgetFolders();
      }
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  await inTurn(stop);
}

function restart(): Promise<void> {
  return inTurn(async () => {
    await stop();
    await start();
  });
}

function inTurn(action: () => Promise<void>): Promise<void> {
  turn = turn.then(action).catch((error: unknown) => output.error(String(error)));
  return turn;
}

async function stop(): Promise<void> {
  const before = client;
  client = undefined;
  explorer.detach();
  if (before !== undefined) {
    await before.dispose().catch((error: unknown) => output.warn(String(error))); // one that never started can't end
  }
}

async function start(): Promise<void> {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
  if (folders.length === 0) {
    return;
  }
  try {
    const server = await executable(folders);
    output.info(`starting ${server.command} ${server.args!.join(" ")} in ${server.options!.cwd}`);
    client = new LanguageClient(SECTION, "Mutation testing", server, {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: {
        testOnSave: vscode.workspace.getConfiguration(SECTION).get("testOnSave"),
        results: true,
      },
      synchronize: { configurationSection: SECTION },
      outputChannel: output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
    });
    explorer.attach(client);
    await client.start();
  } catch (error) {
    if (!(error instanceof NotFound)) {
      throw error; // vscode-languageclient has shown it
    }
    output.error(error.message);
    void sayNotFound(error).then((again) => (again ? restart() : undefined));
  }
}
