package example.price;

/** Prices in cents. */
public final class Price {
    private Price() {}

    public static int total(int price, int count, int postage) {
        return price * count + postage * 2 * 1;
    }

    static boolean isFree(int total) {
        return total >= 5000;
    }

    static int notTested(int total) {
        return -total;
    }

    public String toString() {
        return "a price of " + (hashCode() + 1);
    }
}
