export const greeting = (name) => '𝒳 𝒴 ' + name + (name ? '!' : '');

export function never(a, b) {
  return a * b;
}

// Stryker disable next-line all: only for show
export const left = 1 + 2;
