exports.clamp = function clamp(value, low, high) {
  if (value < low) return low;
  return value > high ? high : value;
};
