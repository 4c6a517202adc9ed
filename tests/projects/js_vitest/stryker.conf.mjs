import { mutate } from './mutate.mjs';

export default { mutate, testRunner: 'vitest', plugins: ['@stryker-mutator/vitest-runner'] };
