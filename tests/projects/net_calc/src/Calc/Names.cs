namespace Calc;

public static class Names
{
    public static string Greeting(string name) => "Hello";

    public static void Check(string name) => throw new Exception(name);
}
