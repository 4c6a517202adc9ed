import { sum } from '@tests/math';

export function price(items, discount) {
  const total = sum(items) - discount;
  return total > 0 ? total : 0;
}
