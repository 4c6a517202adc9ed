namespace Calc;

public static class Sums
{
    public static int Add(int a, int b) { return a + b; }

    public static bool Same(int c, int d) { return c == d; }

    public static int Untested(int e, int f) => e + f;

    public static int Weak(int g, int h) => g + h;

    public static int Slow(int i, int j) => i + j;

    public static int Broken(int k, int l) => k + l; // does not compile

    public static int Quiet(int m, int n) => m + n; // Stryker disable
}
