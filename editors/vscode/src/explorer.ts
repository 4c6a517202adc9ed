// The Testing view: project > file > mutant. A mutant passes when the tests notice it.
//
// The server knows what there is and what came of it, and is asked when the view is first shown, when it is refreshed,
// and about a file that is saved. Results come by notifications, whoever has asked for the test: a result belongs to
// the runs of the view that wait for it, else to one that is opened for it and closed when no more come.

import * as vscode from "vscode";
import { type LanguageClient, State } from "vscode-languageclient/node";
import * as protocol from "./protocol";

const QUIET_MS = 1000; // after which a run that nobody in the view has started is closed

interface Place {
  uri: string;
  mutant: protocol.Mutant;
}

export class Explorer implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("msp-bridge", "Mutants");
  private readonly places = new WeakMap<vscode.TestItem, Place>();
  private readonly files = new Map<string, vscode.TestItem>(); // by URI
  private readonly waiting = new Map<vscode.TestRun, Set<vscode.TestItem>>();
  private readonly saves = new Map<string, vscode.CancellationTokenSource>();
  private readonly subscriptions: vscode.Disposable[] = [];
  private wanted = false; // whether the view has been shown
  private listed: Promise<void> | undefined; // all there is, since the server has started
  private client: LanguageClient | undefined;
  private other: { run: vscode.TestRun; timer: NodeJS.Timeout } | undefined;

  constructor(private readonly output: vscode.LogOutputChannel) {
    this.controller.resolveHandler = (item) => (item === undefined ? this.list() : undefined);
    this.controller.refreshHandler = (token) => this.refresh(token);
    this.controller.createRunProfile(
      "Test the Mutants",
      vscode.TestRunProfileKind.Run,
      (request, token) => this.run(request, token),
      true,
    );
    this.subscriptions.push(
      this.controller,
      vscode.workspace.onDidSaveTextDocument((document) => this.listSaved(document.uri.toString())),
    );
  }

  dispose(): void {
    this.detach();
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** Show the mutants of this server. */
  attach(client: LanguageClient): void {
    this.client = client;
    client.onNotification(protocol.results, (found) => this.take(found));
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client) {
        return;
      }
      if (newState === State.Stopped) {
        this.listed = undefined; // the next server knows nothing of what this one has listed
      } else if (newState === State.Running && this.wanted && this.listed === undefined) {
        void this.refresh();
      }
    });
  }

  /** The server ends: what is known stays to be seen until there is another one. */
  detach(): void {
    this.client = undefined;
    this.listed = undefined;
    this.closeOther();
  }

  /** Other folders are open. */
  forgetFolders(): void {
    if (this.listed !== undefined) {
      void this.refresh();
    }
  }

  private async list(): Promise<void> {
    this.wanted = true;
    await (this.listed ?? this.refresh());
  }

  private async refresh(token?: vscode.CancellationToken): Promise<void> {
    const client = this.client;
    if (client === undefined) {
      return;
    }
    this.listed = this.ask(client, {}, token).then((found) => {
      if (found === undefined) {
        this.listed = undefined; // the next look asks again
        return;
      }
      const gone = new Set(this.files.keys());
      for (const file of found.files) {
        this.replace(file);
        gone.delete(file.uri);
      }
      gone.forEach((uri) => this.remove(uri));
    });
    await this.listed;
  }

  private async listSaved(uri: string): Promise<void> {
    const client = this.client;
    if (client === undefined || this.listed === undefined) {
      return;
    }
    this.saves.get(uri)?.cancel();
    const source = new vscode.CancellationTokenSource();
    this.saves.set(uri, source);
    const found = await this.ask(client, { uri }, source.token);
    if (this.saves.get(uri) === source) {
      this.saves.delete(uri);
      found?.files.forEach((file) => this.replace(file));
    }
  }

  private async ask(
    client: LanguageClient,
    params: { uri?: string },
    token?: vscode.CancellationToken,
  ): Promise<protocol.Files | undefined> {
    try {
      return await client.sendRequest(protocol.mutants, params, token);
    } catch (error) {
      if (token?.isCancellationRequested !== true) {
        this.output.error(`the mutants can't be listed: ${message(error)}`);
      }
      return undefined;
    }
  }

  /** The file has exactly these mutants. */
  private replace(file: protocol.Files["files"][number]): void {
    if (file.mutants.length === 0) {
      this.remove(file.uri);
      return;
    }
    const parent = this.file(file.uri, file.project);
    const before = new Map([...parent.children].map(([id, item]) => [id, item]));
    const items = file.mutants.map((mutant) => [this.mutant(parent, file.uri, mutant), mutant] as const);
    parent.children.replace(items.map(([item]) => item));
    for (const [item, mutant] of items) {
      if (mutant.status !== undefined && !before.has(item.id)) {
        this.show(item, mutant, true); // an edit has moved it: to the view it is another one
      }
    }
  }

  private remove(uri: string): void {
    const item = this.files.get(uri);
    if (item === undefined) {
      return;
    }
    this.files.delete(uri);
    const project = item.parent;
    project?.children.delete(item.id);
    if (project?.children.size === 0) {
      this.controller.items.delete(project.id);
    }
  }

  private file(uri: string, project: string): vscode.TestItem {
    const place = vscode.Uri.parse(uri);
    const folder = vscode.workspace.getWorkspaceFolder(place);
    const id = `${folder?.uri.toString() ?? ""} ${project}`;
    let known = this.files.get(uri);
    if (known !== undefined && known.parent?.id !== id) {
      this.remove(uri);
      known = undefined;
    }
    if (known === undefined) {
      const several = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
      const label = several && folder !== undefined ? `${folder.name}: ${project}` : project;
      const parent = this.controller.items.get(id) ?? this.controller.createTestItem(id, label);
      this.controller.items.add(parent);
      known = this.controller.createTestItem(uri, vscode.workspace.asRelativePath(place, false), place);
      parent.children.add(known);
      this.files.set(uri, known);
    }
    return known;
  }

  private mutant(file: vscode.TestItem, uri: string, mutant: protocol.Mutant): vscode.TestItem {
    const id = `${uri}#${mutant.id}`;
    let item = file.children.get(id);
    if (item === undefined) {
      const { start, end } = mutant.range;
      item = this.controller.createTestItem(id, label(mutant), file.uri);
      item.description = `line ${start.line + 1}, ${mutant.mutator}`;
      item.range = new vscode.Range(start.line, start.character, end.line, end.character);
      item.sortText = [start.line, start.character].map((number) => String(number).padStart(8, "0")).join(":");
    }
    this.places.set(item, { uri, mutant });
    return item;
  }

  private take(found: protocol.Files): void {
    for (const { uri, project, mutants } of found.files) {
      const file = this.file(uri, project);
      for (const mutant of mutants) {
        const item = this.mutant(file, uri, mutant);
        file.children.add(item);
        this.show(item, mutant, false);
      }
    }
  }

  private show(item: vscode.TestItem, mutant: protocol.Mutant, again: boolean): void {
    const runs = again ? [] : [...this.waiting].filter(([, items]) => items.delete(item)).map(([run]) => run);
    for (const run of runs.length > 0 ? runs : [this.openOther()]) {
      report(run, item, mutant);
    }
  }

  private openOther(): vscode.TestRun {
    if (this.other === undefined) {
      const run = this.controller.createTestRun(new vscode.TestRunRequest([]), "Tested on save, or by a command", false);
      this.other = { run, timer: setTimeout(() => this.closeOther(), QUIET_MS) };
    } else {
      this.other.timer.refresh();
    }
    return this.other.run;
  }

  private closeOther(): void {
    if (this.other !== undefined) {
      clearTimeout(this.other.timer);
      this.other.run.end();
      this.other = undefined;
    }
  }

  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    await this.list();
    const items = this.leaves(request);
    const run = this.controller.createTestRun(request);
    this.waiting.set(run, items);
    items.forEach((item) => run.enqueued(item));
    let left = (item: vscode.TestItem) =>
      run.errored(item, new vscode.TestMessage("This mutant does not exist any more. Refresh the tests."));
    try {
      if (this.client === undefined) {
        throw new Error("The server does not run. See the output `Mutation testing`.");
      }
      await this.client.sendRequest(protocol.test, this.params(request, items), token);
    } catch (error) {
      const why = new vscode.TestMessage(message(error));
      left = token.isCancellationRequested ? (item) => run.skipped(item) : (item) => run.errored(item, why);
    } finally {
      items.forEach(left);
      this.waiting.delete(run);
      run.end();
    }
  }

  /** The mutants that are asked for. */
  private leaves(request: vscode.TestRunRequest): Set<vscode.TestItem> {
    const excluded = new Set(request.exclude);
    const found = new Set<vscode.TestItem>();
    const add = (item: vscode.TestItem): void => {
      if (excluded.has(item)) {
        return;
      }
      if (this.places.has(item)) {
        found.add(item);
      }
      item.children.forEach(add);
    };
    (request.include ?? [...this.controller.items].map(([, item]) => item)).forEach(add);
    return found;
  }

  /** The same for the server: by files where whole files are meant, for that names less, and finds new mutants too. */
  private params(request: vscode.TestRunRequest, items: Set<vscode.TestItem>): protocol.TestParams {
    const whole = (request.exclude ?? []).length === 0;
    if (whole && request.include === undefined) {
      return {};
    }
    if (whole && request.include!.every((item) => !this.places.has(item))) {
      return { uris: [...new Set([...items].map((item) => this.places.get(item)!.uri))] };
    }
    const mutants = [...items].map((item) => {
      const { uri, mutant } = this.places.get(item)!;
      return { uri, range: mutant.range, mutator: mutant.mutator, replacement: mutant.replacement };
    });
    return { mutants };
  }
}

function report(run: vscode.TestRun, item: vscode.TestItem, mutant: protocol.Mutant): void {
  switch (mutant.status) {
    case "Killed":
    case "Timeout":
      run.passed(item, mutant.duration);
      break;
    case "Survived":
      run.failed(item, survived(item, mutant), mutant.duration);
      break;
    case "CompileError":
    case "RuntimeError":
      run.errored(item, new vscode.TestMessage(mutant.statusReason ?? mutant.status), mutant.duration);
      break;
    default:
      run.skipped(item);
  }
  run.appendOutput(`${details(mutant)}\r\n`, undefined, item); // with its place, each line of the text would show it
}

function survived(item: vscode.TestItem, mutant: protocol.Mutant): vscode.TestMessage {
  const count = mutant.coveredBy?.length;
  const tests = count === undefined ? "" : `; ${count} test${count === 1 ? "" : "s"} ran through it`;
  const text = `survived: no test fails with this change${tests}`;
  const { before, after } = mutant;
  const shown =
    before === undefined || after === undefined
      ? new vscode.TestMessage(text)
      : vscode.TestMessage.diff(text, before, after);
  if (item.uri !== undefined && item.range !== undefined) {
    shown.location = new vscode.Location(item.uri, item.range);
  }
  return shown;
}

/** One line for the output of the run. */
function details(mutant: protocol.Mutant): string {
  const killers = mutant.killedBy?.length ? `, killed by ${mutant.killedBy.join(", ")}` : "";
  const reason = mutant.statusReason === undefined ? "" : `: ${mutant.statusReason.split("\n", 1)[0]}`;
  return `${mutant.status} ${label(mutant)} (${mutant.mutator})${killers}${reason}`;
}

function label(mutant: protocol.Mutant): string {
  return mutant.original === undefined ? mutant.mutator : `${short(mutant.original)} → ${short(mutant.replacement)}`;
}

function short(code: string): string {
  const text = code.trim().replace(/\s+/g, " ");
  return text === "" ? "(nothing)" : text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
