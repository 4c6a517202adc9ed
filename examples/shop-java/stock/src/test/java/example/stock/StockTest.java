package example.stock;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class StockTest {
    @Test
    public void aPriceIsKept() {
        assertEquals(7, Stock.add(7));
    }

    @Test
    public void countsDown() {
        assertEquals(2, Stock.steps(2));
    }
}
