// What the server has beside LSP for clients that list mutants: docs/reference/lsp.md, "Clients that list all mutants".

import { NotificationType, RequestType, type Range } from "vscode-languageclient/node";

export type Status =
  | "Killed"
  | "Survived"
  | "NoCoverage"
  | "Timeout"
  | "CompileError"
  | "RuntimeError"
  | "Ignored"
  | "Pending";

export interface Mutant {
  id: string;
  range: Range;
  mutator: string;
  replacement: string;
  original?: string;
  status?: Status;
  statusReason?: string;
  duration?: number;
  coveredBy?: string[];
  killedBy?: string[];
  before?: string;
  after?: string;
}

export interface Files {
  files: { uri: string; project: string; mutants: Mutant[] }[];
}

export interface TestParams {
  uris?: string[];
  mutants?: { uri: string; range: Range; mutator: string; replacement: string }[];
}

export const mutants = new RequestType<{ uri?: string }, Files, void>("msp-bridge/mutants");
export const test = new RequestType<TestParams, null, void>("msp-bridge/test");
export const results = new NotificationType<Files>("msp-bridge/results");
