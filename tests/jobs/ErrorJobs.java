import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A Spark job whose tasks are runs of one program, each with other random numbers: what stated errors are held against. A stage for each
 * kind of samples, in which a task does much of its work in one place and less in another, by drawing each time, 7 to 3:
 *
 * <pre>
 * cpu      computesMore and computesLess, the same loop; nanoseconds by the thread's own clock
 * off-cpu  waitsMore and waitsLess, the same park of 0.2 to 8 ms; nanoseconds by the wall clock. Run them interpreted
 *          (-XX:CompileCommand=exclude,ErrorJobs::waits*): so a stack is as deep in either, whatever the JIT did
 * alloc    arrays of More and of Less, as large; bytes
 * </pre>
 *
 * Arguments: how many tasks, milliseconds of a task that computes or waits, MB of one that allocates.
 *
 * Prints the facts {@code app}; {@code executor}, the executor's pid, and waits for a file {@code go}; {@code KIND.stage},
 * {@code KIND.more} and {@code KIND.less} (the sum of each task: {@code TID:SUM,..}); and {@code done}. It ends when a file {@code stop} is
 * there.
 */
public final class ErrorJobs {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int STEPS = 100_000;
    /** Length of the arrays, and their size: a head of 16 bytes, and compressed references. */
    private static final int LENGTH = 1020;
    private static final int BYTES = 16 + 4 * LENGTH;

    private static volatile long number;
    private static volatile Object object;

    static final class More {}

    static final class Less {}

    /** What the task of an index did in the one place and in the other. */
    private interface Work extends java.io.Serializable {
        long[] of(int index) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int tasks = Integer.parseInt(args[0]);
        long nanos = Long.parseLong(args[1]) * 1_000_000;
        long bytes = Long.parseLong(args[2]) << 20;
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("error jobs"))) {
            spark.setLogLevel("ERROR");
            fact("app", spark.sc().applicationId());
            fact("executor", run(spark, 4, index -> warmsUp(index)).get(0)[2]);
            await("go");
            tell("cpu", run(spark, tasks, index -> computes(index, nanos)));
            tell("off-cpu", run(spark, tasks, index -> waits(index, nanos)));
            tell("alloc", run(spark, tasks, index -> allocates(index, bytes)));
            fact("done", "yes");
            await("stop");
        }
    }

    private static void fact(String name, Object value) {
        System.out.println("fact " + name + "=" + value);
        System.out.flush();
    }

    private static void await(String file) throws InterruptedException {
        while (!Files.exists(Path.of(file))) {
            Thread.sleep(50);
        }
    }

    /** A row for each task: its stage, its id, and what it did in the one place and in the other. */
    private static List<long[]> run(JavaSparkContext spark, int tasks, Work work) {
        List<Integer> none = Collections.emptyList();
        return spark.parallelize(none, tasks).mapPartitionsWithIndex((index, nothing) -> {
            TaskContext task = TaskContext.get();
            long[] done = work.of(index);
            long[] row = {task.stageId(), task.taskAttemptId(), done[0], done[1]};
            return List.of(row).iterator();
        }, false).collect();
    }

    private static void tell(String kind, List<long[]> rows) {
        fact(kind + ".stage", rows.get(0)[0]);
        List<String> more = new ArrayList<>();
        List<String> less = new ArrayList<>();
        for (long[] row : rows) {
            more.add(row[1] + ":" + row[2]);
            less.add(row[1] + ":" + row[3]);
        }
        fact(kind + ".more", String.join(",", more));
        fact(kind + ".less", String.join(",", less));
    }

    /** All methods are compiled that will be. The answer begins with the process's id. */
    private static long[] warmsUp(int index) {
        computes(index, 700_000_000L);
        waits(index, 200_000_000L);
        allocates(index, 64 << 20);
        return new long[] {ProcessHandle.current().pid(), 0};
    }

    private static boolean isMore(SplittableRandom random) {
        return random.nextInt(10) < 7;
    }

    private static long[] computes(int index, long nanos) {
        SplittableRandom random = new SplittableRandom(index);
        long[] sums = new long[2];
        long end = System.nanoTime() + nanos;
        long x = index;
        while (System.nanoTime() < end) {
            boolean more = isMore(random);
            long begun = THREADS.getCurrentThreadCpuTime();
            x = more ? computesMore(x) : computesLess(x);
            sums[more ? 0 : 1] += THREADS.getCurrentThreadCpuTime() - begun;
        }
        number = x;
        return sums;
    }

    static long computesMore(long x) {
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    static long computesLess(long x) {
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }

    /** Both methods are called with nothing else on the operand stack: their frames lie at the same place. */
    private static long[] waits(int index, long nanos) {
        SplittableRandom random = new SplittableRandom(index);
        long[] sums = new long[2];
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) {
            boolean more = isMore(random);
            long length = 200_000 + random.nextLong(7_800_000);
            long waited = more ? waitsMore(length) : waitsLess(length);
            sums[more ? 0 : 1] += waited;
        }
        return sums;
    }

    static long waitsMore(long length) {
        long begun = System.nanoTime();
        LockSupport.parkNanos(length);
        return System.nanoTime() - begun;
    }

    static long waitsLess(long length) {
        long begun = System.nanoTime();
        LockSupport.parkNanos(length);
        return System.nanoTime() - begun;
    }

    /** Of a size, so that which array finds its thread's buffer full is chance alone. */
    private static long[] allocates(int index, long bytes) {
        SplittableRandom random = new SplittableRandom(index);
        long[] sums = new long[2];
        for (long made = 0; made < bytes; made += BYTES) {
            boolean more = isMore(random);
            object = more ? new More[LENGTH] : new Less[LENGTH];
            sums[more ? 0 : 1] += BYTES;
        }
        return sums;
    }
}
