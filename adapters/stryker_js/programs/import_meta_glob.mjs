// A plugin that leaves the arguments of import.meta.glob() unmutated. Vite reads them when it compiles the file, and takes
// literals alone: with one mutant there no test that imports the file could be run, with whatever mutant.

const isGlob = ({ type, callee }) =>
  type === 'CallExpression' && callee.type === 'MemberExpression' && callee.object.type === 'MetaProperty' && /^glob/.test(callee.property.name);

const ignorer = {
  shouldIgnore: ({ node }) => (isGlob(node) ? 'Vite reads what import.meta.glob() is given without running it' : undefined),
};

export const IGNORER = 'import.meta.glob';
export const strykerPlugins = [{ kind: 'Ignore', name: IGNORER, value: ignorer }];
