export const mutate = ['src/**/*.ts', '!src/**/*.test.ts'];
