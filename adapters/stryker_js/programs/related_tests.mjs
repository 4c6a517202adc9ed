// Vitest and Jest are asked for the tests that import a mutated file, unless the project's configuration says otherwise. A
// test that starts a program imports no file of it: it wasn't run, and what only the program runs had no coverage. So where
// files of tests start processes or threads, all tests are run.

import fs from 'node:fs';
import path from 'node:path';

const OF_TESTS = /(?:^|[/._-])(?:tests?|specs?|__tests__|e2e)(?:[/._-]|$)/i;
const CODE = /\.[cm]?[jt]sx?$/;
const STARTS = /['"](?:(?:node:)?(?:child_process|worker_threads)|cross-spawn|execa|nano-spawn|shelljs|tinyexec|zx)['"/]/;

// The options that have all tests run, by the names of the test runners; the options of a runner have its name, too.
const OPTIONS = { jest: 'enableFindRelatedTests', vitest: 'related' };

// Whether only tests that import the files to mutate are run, as the project has it. Then no test at all means no coverage.
export function looksForRelatedTests(own) {
  const option = OPTIONS[own.testRunner];
  return option !== undefined && own[own.testRunner]?.[option] !== false;
}

// The options of the test runner: the project's own, but all tests are run where some below `root` start something.
export function optionsOfRunner({ testRunner, ...own }, root) {
  const all = own[testRunner]?.[OPTIONS[testRunner]] === undefined && startsSomething(root, '');
  return all ? { ...own[testRunner], [OPTIONS[testRunner]]: false } : { ...own[testRunner] };
}

function startsSomething(root, folder) {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true }).some((entry) => {
    const { name } = entry;
    const place = folder ? `${folder}/${name}` : name;
    if (entry.isDirectory()) return name !== 'node_modules' && !name.startsWith('.') && startsSomething(root, place);
    return entry.isFile() && CODE.test(name) && OF_TESTS.test(place) && STARTS.test(fs.readFileSync(path.join(root, place), 'utf-8'));
  });
}
