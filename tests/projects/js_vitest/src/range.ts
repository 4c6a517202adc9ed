export interface Range {
  from: number;
  to: number;
}

export function within({ from, to }: Range, value: number): boolean {
  return from <= value && value < to;
}
