// What StrykerJS's sandbox, a copy of the project below it, lacks: who may execute a mutated file, links that StrykerJS can't
// copy, and the packages of a workspace. Node.js finds these in `node_modules`, as links to where they lie in the project. In the
// sandbox `node_modules` is a link as a whole, so tests of one package ran the code of another without its mutants.

import fs from 'node:fs';
import path from 'node:path';

const NAMED = /"([^"*]+)"/g; // in JSON, what may be the path of a file

// `links` are absolute, as the files of StrykerJS's `sandbox` are.
export function completeFiles({ project, workingDirectory }, links) {
  const placeOf = (file) => path.join(workingDirectory, path.relative(process.cwd(), file));
  for (const link of links) makeLink(fs.readlinkSync(link), placeOf(link));
  for (const file of project.files.keys()) {
    const { mode } = fs.statSync(file);
    if (mode & 0o111) fs.chmodSync(placeOf(file), mode);
  }
}

function makeLink(target, place) {
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.symlinkSync(target, place);
}

// Where a `node_modules` has packages of the project, that of the sandbox gets links to these in the sandbox.
export function linkPackages({ project, workingDirectory }) {
  const root = process.cwd();
  const folders = [...project.files.keys()].filter((file) => path.basename(file) === 'package.json').map(path.dirname);
  for (const folder of new Set([root, ...folders])) {
    const modules = path.join(folder, 'node_modules');
    const place = path.join(workingDirectory, path.relative(root, modules));
    const found = fs.lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() ? packagesIn(modules) : [];
    const targets = found.map((name) => [name, inSandbox(path.join(modules, name), root, workingDirectory)]);
    if (!targets.some(([, target]) => target)) continue;
    fs.unlinkSync(place);
    for (const [name, target] of targets) makeLink(target ?? path.join(modules, name), path.join(place, name));
  }
}

// The names of what is in `modules`, with those in scopes.
function packagesIn(modules) {
  const within = (name) => fs.readdirSync(path.join(modules, name)).map((inner) => `${name}/${inner}`);
  return fs.readdirSync(modules).flatMap((name) => (name.startsWith('@') ? within(name) : [name]));
}

// Where the package that the link `entry` leads to is in the sandbox; undefined where it is no part of the project, or lacks
// something there that its package.json names: `ignorePatterns` may leave out what is built.
function inSandbox(entry, root, sandbox) {
  if (!fs.lstatSync(entry).isSymbolicLink() || !fs.existsSync(path.join(entry, 'package.json'))) return undefined;
  const source = fs.realpathSync(entry);
  const relative = path.relative(root, source);
  if (relative.startsWith('..') || relative.split(path.sep).includes('node_modules')) return undefined;
  const place = path.join(sandbox, relative);
  const { main = 'index.js', module, exports } = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf-8'));
  const names = [...JSON.stringify([main, module, exports]).matchAll(NAMED)].map(([, name]) => name);
  const isThere = (name) => !fs.existsSync(path.join(source, name)) || fs.existsSync(path.join(place, name));
  return ['package.json', ...names].every(isThere) ? place : undefined;
}
