/**
 * A program of a known split: of every ten rounds, seven do their work in {@code seven} and three in
 * {@code three}. Both run the same loop over the same number of steps, so the CPU time splits 70 to 30 by
 * construction. Keep them from being inlined with {@code -XX:CompileCommand=dontinline,Split::*}: a perf
 * map knows no inlined frame.
 *
 * Argument: seconds to run. Prints {@code fact started=PID}, then the rounds done and a value that keeps the
 * work alive.
 */
public final class Split {
    private static final int STEPS = 200_000;

    static long seven(long x) {
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    static long three(long x) {
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    static long round(int n, long x) {
        return n % 10 < 7 ? seven(x) : three(x);
    }

    public static void main(String[] args) {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        System.out.println("fact started=" + ProcessHandle.current().pid());
        long x = 1;
        int n = 0;
        // Whole groups of ten only, so that the split is exact.
        while (System.nanoTime() < end) {
            for (int i = 0; i < 10; i++) {
                x = round(n++, x);
            }
        }
        System.out.println("fact rounds=" + n + "\nfact value=" + x);
    }
}
