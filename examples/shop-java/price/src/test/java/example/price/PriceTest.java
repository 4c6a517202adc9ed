package example.price;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PriceTest {
    @Test
    void multiplies() {
        assertEquals(10, Price.total(2, 3, 2));
    }

    @Test
    void largeOrdersAreFree() {
        assertTrue(Price.isFree(6000));
    }
}
