"""C# solutions for the real Stryker.NET, and whether it is here. Those of the scripted one are in `tests/projects`."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.files import written
from support.projects import EXAMPLES

EXAMPLE = EXAMPLES / "shop-net"
SHOP, SHOP_TESTS = "src/Shop/Cart.cs", "tests/Shop.Tests/CartTests.cs"  # of the example
REAL = pytest.mark.skipif(
    not (shutil.which("dotnet") and shutil.which("dotnet-stryker")),
    reason="the real Stryker.NET is not here: `dotnet` and `dotnet-stryker` on PATH",
)
LIBRARY = (
    '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFrameworks>{frameworks}</TargetFrameworks>'
    "<LangVersion>latest</LangVersion></PropertyGroup></Project>"
)
TESTS = (
    '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework>'
    "<IsPackable>false</IsPackable>{properties}</PropertyGroup><ItemGroup>{packages}"
    '<ProjectReference Include="../../src/Calc/Calc.csproj" /></ItemGroup></Project>'
)
SDK = ("Microsoft.NET.Test.Sdk", "18.0.1")
PACKAGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "xunit": (SDK, ("xunit", "2.9.3"), ("xunit.runner.visualstudio", "3.1.5")),
    "nunit": (SDK, ("NUnit", "4.6.1"), ("NUnit3TestAdapter", "6.3.0")),
    "mstest": (SDK, ("MSTest.TestAdapter", "4.4.0"), ("MSTest.TestFramework", "4.4.0")),
    "xunit3": (("xunit.v3", "3.2.2"),),
}
PROPERTIES = {
    "xunit3": "<OutputType>Exe</OutputType><TestingPlatformDotnetTestSupport>true</TestingPlatformDotnetTestSupport>"
    "<UseMicrosoftTestingPlatformRunner>true</UseMicrosoftTestingPlatformRunner>"
}
SUMS = """namespace Calc;
public static class Sums
{
    static readonly int Limit = 5 + 5;
    public static int Add(int a, int b) => a + b;
    public static bool Free(int total) => total >= Limit;
    public static int Unused(int a) => a - 1;
    // Stryker disable once all
    public static int Hidden(int a) => a * 2;
    public static string Name(bool b) => b ? "x" + b : "y";
}
"""
ENDLESS = """namespace Calc;
public static class Endless
{
    public static int Depth(int n) => n == 0 ? 0 : Depth(n - 1) + 1;
    public static int Loop(int n)
    {
        byte i = 0;
        while (i != n) { i++; }
        return i;
    }
}
"""
ODD = (
    "\ufeff// one\u2028// \U0001f600\r\nnamespace Calc { /* \U0001f600 */ public static class Odd {\r\n"
    "  /* \U0001f600\u00e9 */ public static int Mul(int a, int b) => a * b; } }\r\n"
)
LEFT_OUT = """namespace Calc;
public static class LeftOut
{
    public static int Sub(int a, int b) => a - b;
    // Stryker disable once all
    public static int Mul(int a, int b) => a * b;
    public static bool NotCompiled(int a)
    {
        int b;
        if (a > 1 && int.TryParse("4", out b)) { return b > a; }
        return a < 3;
    }
}
"""
PAIR = """namespace Calc;
public static class Pair
{
    public static int Sub(int a, int b) => a - b;
    public static int Mul(int a, int b) => a * b;
}
"""
PAIR_TESTS = """using Calc; using Xunit;
public class PairTests {
    [Fact] public void Subtracts() => Assert.Equal(3, Pair.Sub(5, 2));
    [Fact] public void Multiplies() => Assert.NotEqual(0, Pair.Mul(5, 2));
}
"""
KEPT = """namespace Calc;
public static class Kept
{
    static readonly System.Collections.Generic.Dictionary<int, int> Known = new();
    static int sum;
    public static int Square(int n) { if (!Known.ContainsKey(n)) { Known[n] = n * n; } return Known[n]; }
    public static void Put(int n) { sum = n; }
    public static int Close() => sum > 100 ? 100 : sum;
}
"""
KEPT_TESTS = """using Calc; using NUnit.Framework;
public class KeptTests {
    [Test, Order(1)] public void Positive() => Assert.That(Kept.Square(3), Is.Positive);
    [Test, Order(2)] public void Squares() => Assert.That(Kept.Square(3), Is.EqualTo(9));
    [Test, Order(3)] public void Puts() => Kept.Put(5);
    [Test, Order(4)] public void Closes() => Assert.That(Kept.Close(), Is.EqualTo(5));
}
"""
XUNIT = """using Calc; using Xunit;
public class SumsTests {
    [Fact] public void Adds() => Assert.Equal(7, Sums.Add(5, 2));
    [Theory] [InlineData(10, true)] [InlineData(9, false)] public void Frees(int total, bool free) => Assert.Equal(free, Sums.Free(total));
    [Fact] public void Names() => Assert.NotNull(Sums.Name(true));
}
"""
STARTING = """using System; using System.Diagnostics; using Xunit; using Calc;
public class StartingTests {
    [Fact] public void Names() => Assert.NotNull(Sums.Name(true));
    [Fact] public void Adds() {
        var start = new ProcessStartInfo("dotnet", AppContext.BaseDirectory + "Tool.dll") { RedirectStandardOutput = true };
        using var process = Process.Start(start);
        Assert.Equal("7", process.StandardOutput.ReadToEnd().Trim());
    }
}
"""
PROGRAM = {
    "src/Tool/Tool.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net10.0</TargetFramework>'
    '<OutputType>Exe</OutputType></PropertyGroup><ItemGroup><ProjectReference Include="../Calc/Calc.csproj" />'
    "</ItemGroup></Project>",
    "src/Tool/Program.cs": "System.Console.WriteLine(Calc.Sums.Add(5, 2));\n",
    "Calc.slnx": '<Solution><Project Path="src/Calc/Calc.csproj" /><Project Path="src/Tool/Tool.csproj" />'
    '<Project Path="tests/xunit.Tests/xunit.Tests.csproj" /></Solution>',
}
DATA = """namespace Calc;
public static class Data
{
    public static System.Collections.Generic.IEnumerable<object[]> Rows() { for (var n = 1; n < 3; n++) yield return [n, Twice(n)]; }
    public static int Twice(int n) => n * 2;
}
"""
DATA_TESTS = """{using} using Calc;
{on_class}public class DataTests {{
    public static System.Collections.Generic.IEnumerable<object[]> Rows => Data.Rows();
    [{test}(nameof(Rows))] public void Doubles(int n, int twice) {{ if (Data.Twice(n) != twice) throw new System.Exception(); }}
}}
"""
XUNIT_DATA = DATA_TESTS.format(using="using Xunit;", on_class="", test="Theory, MemberData")
NUNIT_DATA = DATA_TESTS.format(using="using NUnit.Framework;", on_class="", test="TestCaseSource")
MSTEST_DATA = DATA_TESTS.format(
    using="using Microsoft.VisualStudio.TestTools.UnitTesting;", on_class="[TestClass] ", test="TestMethod, DynamicData"
)
NUNIT = """using Calc; using NUnit.Framework;
public class EndlessTests {
    [Test] public void Deep() => Assert.That(Endless.Depth(3), Is.EqualTo(3));
    [Test] public void Loops() => Assert.That(Endless.Loop(3), Is.EqualTo(3));
}
"""
MSTEST = """using Calc; using Microsoft.VisualStudio.TestTools.UnitTesting;
[TestClass] public class OddTests { [TestMethod] public void Multiplies() => Assert.AreEqual(6, Odd.Mul(2, 3)); }
"""


def everything(root: Path) -> Path:
    """A solution: a library of two target frameworks, and tests with xunit, NUnit and MSTest."""
    sources = {"Sums": SUMS, "Endless": ENDLESS, "Odd": ODD, "LeftOut": LEFT_OUT}
    tests = {"xunit": XUNIT, "nunit": NUNIT, "mstest": MSTEST}
    options = '"mutate": ["!**/LeftOut.cs"], "ignore-mutations": ["string"], "additional-timeout": 1000'
    return laid_out(root, sources, tests, options, "net10.0;netstandard2.0")


def laid_out(
    root: Path, sources: Mapping[str, str], tests: Mapping[str, str], options: str = "", frameworks: str = "net10.0"
) -> Path:
    """A solution at `root`: a library of `sources`, by name, and a project of `tests` for each framework."""
    files = {"src/Calc/Calc.csproj": LIBRARY.format(frameworks=frameworks)}
    files |= {f"src/Calc/{name}.cs": text for name, text in sources.items()}
    for framework, text in tests.items():
        packages = "".join(f'<PackageReference Include="{n}" Version="{v}" />' for n, v in PACKAGES[framework])
        project = TESTS.format(properties=PROPERTIES.get(framework, ""), packages=packages)
        files |= {
            f"tests/{framework}.Tests/{framework}.Tests.csproj": project,
            f"tests/{framework}.Tests/Tests.cs": text,
        }
    projects = "".join(f'<Project Path="{path}" />' for path in files if path.endswith("proj"))
    files |= {
        "Calc.slnx": f"<Solution>{projects}</Solution>",
        "stryker-config.json": f'{{"stryker-config": {{{options}}}}}',
    }
    return written(root, files)
