public static class Cart
{
    public static int Total(int price, int shipping) => price + shipping;

    public static bool Free(int total, int limit) => total == limit;
}
