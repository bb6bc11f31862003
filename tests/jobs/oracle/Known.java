/** Work whose share by method or line is known by construction, and stacks of ever other depth. */
final class Known {
    private Known() {}

    /** A fifth in one, three tenths in two, half in three: the same loop over so many steps, all inlined by C2. */
    static long split(long x) {
        for (int i = 0; i < 1_000; i++) {
            x = mix(x);
        }
        return x;
    }

    private static long mix(long x) {
        return three(two(one(x)));
    }

    private static long one(long x) {
        for (int i = 0; i < 2_000; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    private static long two(long x) {
        for (int i = 0; i < 3_000; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    private static long three(long x) {
        for (int i = 0; i < 5_000; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    static long hot(long x) {
        for (int i = 0; i < 30; i++) {
            x = line(x);
        }
        return x;
    }

    /** Nearly all of its time is the line marked HOT. */
    private static long line(long x) {
        for (int i = 0; i < 5_000;
            i++) {
            x = x * 6364136223846793005L + 1442695040888963407L; x ^= x >>> 29; x = x * 6364136223846793005L + 1442695040888963407L; x ^= x >>> 29; x = x * 6364136223846793005L + 1442695040888963407L; x ^= x >>> 29; // HOT
        }
        return x;
    }
}

/** Recursion that goes one deeper each time, from 440 to 540 and again. Keep {@code dig} from being inlined. */
final class Sweep implements Oracle.Body {
    private int turn;

    @Override
    public long once(long x) {
        return dig(440 + turn++ % 100, x);
    }

    static long dig(int depth, long x) {
        return depth == 0 ? Oracle.leaf(x) : dig(depth - 1, x) + 1;
    }
}
