namespace Calc.Tests;

public class SumsTests
{
    [Fact] public void Adds() => Assert.Equal(3, Sums.Add(1, 2)); // kills: a + b
    [Fact] public void Compares() => Assert.True(Sums.Same(1, 1)); // kills: c == d // covers: c == d
    [Fact] public void IsWeak() => Sums.Weak(1, 2); // covers: g + h
    [Fact] public void IsSlow() => Sums.Slow(1, 2); // times out: i + j
    [Fact] public void Greets() => Assert.Equal("Hello", Names.Greeting("x")); // kills: "Hello"
}
