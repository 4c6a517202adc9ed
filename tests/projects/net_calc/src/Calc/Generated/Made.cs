public static class Made { public static int Sum(int x, int y) => x + y; }
