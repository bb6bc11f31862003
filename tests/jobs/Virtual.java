import java.util.concurrent.Executors;

/** Virtual threads that compute at the depth given, and park in between: some stacks are thawed in part. */
public class Virtual {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        int depth = Integer.parseInt(args[0]);
        System.out.println("ready");
        try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 4; i++) {
                executor.submit(() -> {
                    while (true) sink += down(depth, 1, 2, 3, 4, 5, 6, 7, 8);
                });
            }
        }
    }

    /** More arguments than registers, so that some are on the stack. */
    static long down(int depth, long a, long b, long c, long d, long e, long f, long g, long h) throws Exception {
        if (depth > 0) return down(depth - 1, b, c, d, e, f, g, h, a + depth) + 1;
        Thread.sleep(1);
        long x = a + h;
        for (int i = 0; i < 3_000_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
}
