using Xunit;

namespace Shop.Tests;

public class CartTests
{
    [Fact]
    public void AddsShipping() => Assert.Equal(15, Cart.Total(5, 2));

    [Fact]
    public void ShipsLargeOrdersForFree() => Assert.Equal(60, Cart.Total(20, 3));

    [Fact]
    public void Discounts() => Assert.True(Cart.Discounted(100, 10) < 100);
}
