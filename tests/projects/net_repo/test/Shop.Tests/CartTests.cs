public class CartTests
{
    [Fact] public void Sums() => Assert.Equal(3, Cart.Total(1, 2)); // kills: price + shipping
    [Fact] public void Covers() => Cart.Free(1, 2); // covers: total == limit
}
