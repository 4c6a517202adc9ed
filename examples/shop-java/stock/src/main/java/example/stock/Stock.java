package example.stock;

import example.price.Price;
import java.util.ArrayList;
import java.util.List;

/** What is there. It is kept for as long as the JVM runs. */
public final class Stock {
    private static final List<Integer> PRICES = new ArrayList<>();

    private Stock() {}

    static int add(int price) {
        if (PRICES.isEmpty()) {
            PRICES.add(price);
        }
        return Price.total(price, PRICES.size(), 0);
    }

    static int steps(long from) {
        int steps = 0;
        while (from > 0) {
            from = from - 1;
            steps++;
        }
        return steps;
    }
}
