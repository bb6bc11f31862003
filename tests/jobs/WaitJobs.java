import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * A Spark job whose tasks wait for things of a known kind and measure how long: by the wall clock, less what the kernel has on
 * the thread's account for waiting for a CPU and running. What samples of waits are held against. A stage for each kind: {@code sleep}, {@code monitor}, {@code lock}, {@code socket}, {@code file} (writes that
 * are forced to the disk), {@code short} (parks of 200 us, thousands of them, and one of a second), those of {@link KeptLocks}, and {@code shuffle}.
 * Arguments: how many waits a task has, and how long one is, in milliseconds.
 *
 * Prints the facts {@code app}, {@code KIND.stages}, {@code KIND.waited} (nanoseconds of each task: {@code TID:NS,..}) and
 * {@code KIND.contended} (how often each waited for a lock: {@code TID:N,..}), and {@code done}. It ends when a file {@code stop} is there.
 */
public final class WaitJobs {
    private static final Object MONITOR = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    /** How often the current thread waited for a lock, in its task. */
    private static final ThreadLocal<Long> CONTENDED = ThreadLocal.withInitial(() -> 0L);

    /** Waits so often, so long; how long it waited is the answer. */
    private interface Waits extends java.io.Serializable {
        long of(int times, int millis) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int times = Integer.parseInt(args[0]);
        int millis = Integer.parseInt(args[1]);
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("wait jobs"))) {
            spark.setLogLevel("ERROR");
            fact("app", spark.sc().applicationId());
            run(spark, "warm-up", 1, 10, WaitJobs::sleeps);
            run(spark, "sleep", times, millis, WaitJobs::sleeps);
            run(spark, "monitor", times, millis, WaitJobs::entersMonitor);
            run(spark, "lock", times, millis, WaitJobs::takesLock);
            run(spark, "socket", times, millis, WaitJobs::readsSocket);
            run(spark, "file", times, millis, WaitJobs::writesFile);
            run(spark, "short", times, millis, WaitJobs::parksShortly);
            for (String kept : KeptLocks.NAMES) {
                run(spark, kept, 1, times, millis, (n, ms) -> KeptLocks.waits(kept, n, ms));
            }
            List<Integer> numbers = new ArrayList<>(Collections.nCopies(200_000, 7));
            long sum = spark.parallelize(numbers, 4).mapToPair(n -> new Tuple2<>(n, n)).repartition(8).count();
            fact("shuffled", sum);
            fact("done", "yes");
            while (!Files.exists(Path.of("stop"))) {
                Thread.sleep(50);
            }
        }
    }

    static void fact(String name, Object value) {
        System.out.println("fact " + name + "=" + value);
        System.out.flush();
    }

    private static void run(JavaSparkContext spark, String kind, int times, int millis, Waits waits) {
        run(spark, kind, 4, times, millis, waits);
    }

    private static void run(JavaSparkContext spark, String kind, int count, int times, int millis, Waits waits) {
        List<Integer> none = Collections.emptyList();
        List<long[]> tasks = spark.parallelize(none, count).mapPartitionsWithIndex((index, nothing) -> {
            TaskContext task = TaskContext.get();
            CONTENDED.set(0L);
            long waited = waits.of(times, millis);
            long[] row = {task.stageId(), task.taskAttemptId(), waited, CONTENDED.get()};
            return List.of(row).iterator();
        }, false).collect();
        fact(kind + ".stages", tasks.get(0)[0]);
        fact(kind + ".waited", ofTasks(tasks, 2));
        fact(kind + ".contended", ofTasks(tasks, 3));
    }

    private static String ofTasks(List<long[]> tasks, int place) {
        List<String> values = new ArrayList<>();
        for (long[] row : tasks) {
            values.add(row[1] + ":" + row[place]);
        }
        return String.join(",", values);
    }

    /** A lock was had after so many nanoseconds. In less than a millisecond it was free, or was had while the thread spun. */
    static void had(long nanos) {
        if (nanos > 1_000_000) {
            CONTENDED.set(CONTENDED.get() + 1);
        }
    }

    /** Nanoseconds for which the current thread has been there and did not run and did not want to. */
    private static long stoodStill() throws IOException {
        return System.nanoTime() - account(0) - account(1);
    }

    /** The same, but for time on a CPU: that of a thread that runs is told up to the last tick only. */
    static long didNotWantToRun() throws IOException {
        return System.nanoTime() - account(1);
    }

    /** CPU time (place 0), or time waiting for a CPU (1). */
    static long account(int place) throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).trim().split(" ")[place]);
    }

    static long sleeps(int times, int millis) throws Exception {
        long begun = stoodStill();
        for (int i = 0; i < times; i++) {
            Thread.sleep(millis);
        }
        return stoodStill() - begun;
    }

    /** Two tasks at a time: one has the monitor, in which it computes, and the other waits. */
    static long entersMonitor(int times, int millis) throws IOException {
        long waited = 0;
        for (int i = 0; i < times; i++) {
            long begun = didNotWantToRun();
            synchronized (MONITOR) {
                long own = didNotWantToRun() - begun;
                waited += own;
                had(own);
                burn(millis);
            }
        }
        return waited;
    }

    static long takesLock(int times, int millis) throws IOException {
        long waited = 0;
        for (int i = 0; i < times; i++) {
            long begun = didNotWantToRun();
            LOCK.lock();
            long own = didNotWantToRun() - begun;
            waited += own;
            had(own);
            try {
                burn(millis);
            } finally {
                LOCK.unlock();
            }
        }
        return waited;
    }

    /** From a server that answers late. */
    static long readsSocket(int times, int millis) throws Exception {
        long begun = stoodStill();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread answers = new Thread(() -> answer(server, times, millis), "late server");
            answers.start();
            try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
                InputStream in = socket.getInputStream();
                for (int i = 0; i < times; i++) {
                    in.read();
                }
            }
            answers.join();
            return stoodStill() - begun;
        }
    }

    private static void answer(ServerSocket server, int times, int millis) {
        try (Socket socket = server.accept()) {
            OutputStream out = socket.getOutputStream();
            for (int i = 0; i < times; i++) {
                Thread.sleep(millis);
                out.write(1);
            }
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static long writesFile(int times, int millis) throws IOException {
        long begun = stoodStill();
        Path path = Files.createTempFile("wait", ".data");
        // One for all writes: a collector that makes room for more is a wait for the collector.
        ByteBuffer data = ByteBuffer.allocate(256 << 10);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            for (int i = 0; i < 20 * times; i++) {
                data.clear();
                channel.write(data);
                channel.force(true);
            }
        } finally {
            Files.delete(path);
        }
        return stoodStill() - begun;
    }

    /** Most of it in one wait that nothing announces. */
    static long parksShortly(int times, int millis) throws IOException {
        long begun = stoodStill();
        for (int i = 0; i < 100 * times; i++) {
            LockSupport.parkNanos(200_000);
            if (i == 50 * times) {
                LockSupport.parkNanos(1_000_000_000);
            }
        }
        // Each park is a wait.
        CONTENDED.set(100L * times + 1);
        return stoodStill() - begun;
    }

    static void burn(int millis) {
        long until = System.nanoTime() + millis * 1_000_000L;
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
    }
}
