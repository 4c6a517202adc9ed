// The files of the private copy: whether mutants have left them as the first run of the tests did (see observer.mjs).

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

const RUNNERS_OWN = /^stryker-setup-\d+\.js$/; // the Vitest runner has one for each process
let noted; // each file after the dry run: its stamp, and the digest of what the dry run has written

function* filesBelow(directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name);
    if (!entry.isDirectory()) {
      if (!RUNNERS_OWN.test(entry.name)) yield file;
    } else if (entry.name !== 'node_modules') yield* filesBelow(file);
  }
}

const stampOf = ({ mtimeMs, size, ino, mode }) => `${mtimeMs} ${size} ${ino} ${mode}`;
const digestOf = (file) => createHash('sha1').update(fs.readFileSync(file)).digest('hex');

// `began` is when the dry run began, in ms since the epoch: tests often write the same file in each run.
export function noteFiles(directories, began) {
  noted = new Map();
  for (const file of directories.flatMap((directory) => [...filesBelow(directory)])) {
    const status = fs.lstatSync(file);
    const written = status.isFile() && status.mtimeMs >= began - 1000; // some file systems count seconds
    noted.set(file, { stamp: stampOf(status), digest: written ? digestOf(file) : undefined });
  }
}

function isUnchanged(file) {
  const before = noted.get(file);
  if (before === undefined) return false;
  return stampOf(fs.lstatSync(file)) === before.stamp || (before.digest !== undefined && digestOf(file) === before.digest);
}

export function filesAreUnchanged(directories) {
  try {
    const files = directories.flatMap((directory) => [...filesBelow(directory)]);
    return files.length === noted?.size && files.every(isUnchanged);
  } catch {
    return false; // something writes there still
  }
}
