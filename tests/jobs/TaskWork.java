import org.apache.spark.TaskContext;

/**
 * What tasks do, each kind of work in a method of its own name, so that a sample's stack says what its labels
 * should say. Keep the methods from being inlined with {@code -XX:CompileCommand=dontinline,TaskWork::*}: a perf
 * map knows no inlined frame.
 *
 * Time is measured by {@code System.nanoTime}, never by the thread's CPU clock: reading that clock brings the
 * kernel's account of the thread up to date, and the ledger would look better than it is.
 */
final class TaskWork {
    private static final int STEP = 8_000;

    private TaskWork() {}

    static long even(long nanos) {
        return burn(nanos);
    }

    static long odd(long nanos) {
        return burn(nanos);
    }

    static long left(long nanos) {
        return burn(nanos);
    }

    static long right(long nanos) {
        return burn(nanos);
    }

    /** First attempt of a task. */
    static long original(long nanos) {
        return burn(nanos);
    }

    /** Second attempt of a task: the speculative copy. */
    static long copy(long nanos) {
        return burn(nanos);
    }

    /** First attempt of a stage. */
    static long firstTry(long nanos) {
        return burn(nanos);
    }

    /** Second attempt of a stage. */
    static long secondTry(long nanos) {
        return burn(nanos);
    }

    /** In threads with bad names. */
    static long misnamed(long nanos) {
        return burn(nanos);
    }

    static long usual(long steps) {
        return calls(steps);
    }

    /** What makes a skewed task slow: so many steps by itself. */
    static long slowPath(long steps) {
        long x = steps;
        for (long i = 0; i < steps * STEP; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    static long fixed(long steps) {
        return calls(steps);
    }

    /** Parity of the task's index is the method's. */
    static long byIndex(long nanos) {
        return TaskContext.get().partitionId() % 2 == 0 ? even(nanos) : odd(nanos);
    }

    /** Called often enough that all are compiled, and not for the first time in a measured task. */
    static long warmUp() {
        long x = 0;
        for (int i = 0; i < 6000; i++) {
            x += even(1) + odd(1) + left(1) + right(1) + original(1) + copy(1) + firstTry(1) + secondTry(1);
            x += usual(1) + slowPath(1) + fixed(1);
        }
        return x + burn(300_000_000L) + calls(50_000);
    }

    /** Works for so long. */
    private static long burn(long nanos) {
        long end = System.nanoTime() + nanos;
        long x = nanos;
        do {
            x = step(x);
        } while (System.nanoTime() < end);
        return x;
    }

    /** Makes so many calls, whatever time they take. */
    private static long calls(long steps) {
        long x = steps;
        for (long i = 0; i < steps; i++) {
            x = step(x);
        }
        return x;
    }

    /** Some ten microseconds. */
    private static long step(long x) {
        for (int i = 0; i < STEP; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }
}
