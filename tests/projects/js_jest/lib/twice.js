const seen = [];

const twice = (number) => {
  seen.push(number + 1);
  return number * 2;
};
const half = (number) => number / 2;

module.exports = { half, seen, twice };
