export const currency = 'EUR';

export function total(prices, discount = 0) {
  let sum = 0;
  for (const price of prices) {
    sum += price;
  }
  return sum - discount;
}

export function label(amount) {
  if (amount > 100) {
    return 'expensive';
  }
  return amount === 0 ? 'free' : 'cheap';
}
