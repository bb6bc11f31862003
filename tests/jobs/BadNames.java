import java.util.concurrent.locks.LockSupport;

/**
 * Threads with names that nobody should give: look-alikes of Spark's, too long, with what terminals, lines and
 * decoders trip over. Each thread works a while under its name.
 */
final class BadNames {
    private static final String LIKE = "Executor task launch worker for task ";

    static final String[] NAMES = {
        LIKE + "evil",
        LIKE + "1.0 in stage 2.0 (TID evil)",
        LIKE + "1.0 in stage ../../etc.0 (TID 3)",
        LIKE + "99999999999999999999.0 in stage 1.0 (TID 1)",
        LIKE + "-1.0 in stage -2.0 (TID -3)",
        LIKE + "1.0 in stage 2.0 (TID 3)\nfact evil=1",
        LIKE + "9".repeat(10_240),
        "x".repeat(10_240),
        "line\nbreak\r\ttab \u001b[31mred \u0007bell \u0000nul",
        "\ud800 half a pair \udc00\udbff",
        "<script>alert(1)</script>\"};,\\{}`$(id)",
        "stage=evil;task=evil;thread_class=evil",
        "\u202eright to left",
        "",
    };

    /** Names that are given without a pause. */
    private static final int AT_ONCE = 5_000;

    private BadNames() {}

    /** Each name for so long, then {@code many} names of tasks that there are not, one after the other. */
    static long all(long nanos, int many) {
        for (String name : NAMES) {
            in(name, () -> TaskWork.misnamed(nanos));
        }
        in("renames", () -> {
            for (int i = 0; i < many; i++) {
                // Slow enough that a ring takes them; the last ones at once, more than a thread is listened to
                // in a second on however slow a machine.
                if (i < many - AT_ONCE) {
                    LockSupport.parkNanos(100_000);
                }
                Thread.currentThread().setName(LIKE + i + ".0 in stage " + (900_000 + i) + ".0 (TID " + i + ")");
            }
            TaskWork.misnamed(nanos);
        });
        String own = Thread.currentThread().getName();
        Thread.currentThread().setName(LIKE + "evil");
        long x = TaskWork.misnamed(nanos);
        Thread.currentThread().setName(own);
        return x;
    }

    private static void in(String name, Runnable work) {
        // The thread names itself: what another thread calls it does not reach the kernel.
        Thread thread = new Thread(() -> {
            Thread.currentThread().setName(name);
            work.run();
        });
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
