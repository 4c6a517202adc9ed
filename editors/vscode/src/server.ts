// The server: where its command lies, and how it is started.

import { access, constants } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";

export const SECTION = "msp-bridge";
const INSTALL = "pip install msp-bridge";
const PROGRAM = process.platform === "win32" ? "msp-bridge.exe" : "msp-bridge";
const ENVIRONMENTS = [".venv", "venv"];
const SCRIPTS = process.platform === "win32" ? "Scripts" : "bin";

/** No command was found. The message says where it was looked for. */
export class NotFound extends Error {}

/** How to start the server for the folders of the window. Throws NotFound. */
export async function executable(folders: readonly vscode.WorkspaceFolder[]): Promise<Executable> {
  const roots = folders.map((folder) => folder.uri.fsPath);
  const settings = vscode.workspace.getConfiguration(SECTION);
  const command = await find(settings.get<string>("path", ""), roots);
  const args = ["serve", "stdio", "--dialect", "lsp", ...settings.get<string[]>("args", [])];
  return { command, args, options: { cwd: roots[0]! } };
}

async function find(named: string, roots: readonly string[]): Promise<string> {
  if (named !== "") {
    const file = path.resolve(roots[0]!, named);
    if (await runs(file)) {
      return file;
    }
    throw new NotFound(`The setting msp-bridge.path names ${file}, which is no program.`);
  }
  const inFolders = roots.flatMap((root) => ENVIRONMENTS.map((name) => path.join(root, name, SCRIPTS)));
  const onPath = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  for (const folder of [...inFolders, ...onPath]) {
    if (await runs(path.join(folder, PROGRAM))) {
      return path.join(folder, PROGRAM);
    }
  }
  throw new NotFound("msp-bridge was found neither in .venv or venv of this workspace nor on PATH.");
}

async function runs(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Say why there is no server, with the command that installs it. Returns whether the user wants to try again. */
export async function sayNotFound(error: NotFound): Promise<boolean> {
  const text = `${error.message} Install it with \`${INSTALL}\`, beside your project's tools, or set msp-bridge.path.`;
  const [copy, settings, again] = ["Copy the Command", "Open the Settings", "Try Again"];
  const chosen = await vscode.window.showErrorMessage(text, copy, settings, again);
  if (chosen === copy) {
    await vscode.env.clipboard.writeText(INSTALL);
  } else if (chosen === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", `${SECTION}.path`);
  }
  return chosen === again;
}
