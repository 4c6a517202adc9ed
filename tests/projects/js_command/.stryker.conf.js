console.log('a configuration may say Content-Length: what it likes');

module.exports = {
  mutate: ['src/*.js'],
  testRunner: 'command',
  commandRunner: { command: 'node check.js' },
  plugins: [],
  inPlace: true,
  incremental: true,
  reporters: ['html', 'json', 'clear-text'],
  thresholds: { high: 100, low: 99, break: 98 },
  fileLogLevel: 'trace',
};
