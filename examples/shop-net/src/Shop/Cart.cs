namespace Shop;

public static class Cart
{
    private static readonly int FreeShippingFrom = 40 + 10;

    /// <summary>What a customer pays, in euros.</summary>
    public static int Total(int price, int quantity)
    {
        var sum = price * quantity;
        return sum >= FreeShippingFrom ? sum : sum + 5;
    }

    /// <summary>The price after a discount in percent.</summary>
    public static int Discounted(int price, int percent) => price - price * percent / 100;
}
