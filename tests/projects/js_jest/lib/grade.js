const grade = (points) => (points > 5 ? 'high' : 'low');

module.exports = { grade };

if (require.main === module) process.stdout.write(grade(Number(process.argv[2])));
