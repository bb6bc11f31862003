import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * A Spark job whose tasks have many lengths, and each of which waits for everything in turn, computes in between, and measures for how
 * long it waited for what: by the wall clock, less its CPU time and what the kernel has on its account for waiting for a CPU. First a
 * task reads lines that a program prints late ({@code python}: an RDD is piped through it). Then it goes round until its time is over:
 * it computes, enters a monitor and takes a lock that a thread of its own keeps most of the time ({@code lock}), sleeps, reads a file that
 * is in no cache ({@code storage}), and asks a server that answers late ({@code network}).
 *
 * Arguments: how many tasks, and the lengths of the shortest and of the longest in milliseconds. Those between are spread
 * geometrically, and the longest begin first.
 *
 * Prints the facts {@code app}, {@code mixed.stage}, {@code REASON.waited} (nanoseconds of each task: {@code TID:NS,..}), and
 * {@code done}. It ends when a file {@code stop} is there.
 */
public final class MixedWaits {
    /** What is waited for; a task's sums are in this order. */
    private static final String[] REASONS = {"python", "lock", "sleep", "storage", "network"};
    /** How long a part of a round takes, milliseconds. */
    private static final int PART = 30;
    /** How long a line takes, milliseconds; one of seven parts of a task are lines. */
    private static final int LINE = 50;
    /** Reads how many lines it shall print. */
    private static final String PRINTS_LATE =
        "read n; while [ \"$n\" -gt 0 ]; do sleep 0.05; echo; n=$((n - 1)); done";
    /** The file's blocks, each of which is read once: 256 MiB, of which 50 tasks of 0.2 to 20 s read some 200. */
    private static final long BLOCKS = 16_384;
    private static final int BLOCK = 16 << 10;
    /** Odd, so that all blocks are met; the kernel reads nothing ahead of such steps. */
    private static final long STRIDE = 7_919;
    private static final int READS = 8;
    private static final AtomicLong NEXT = new AtomicLong();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(String[] args) throws Exception {
        List<Integer> millis =
            lengths(Integer.parseInt(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]));
        Path file = uncached();
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("mixed waits"))) {
            spark.setLogLevel("ERROR");
            WaitJobs.fact("app", spark.sc().applicationId());
            run(spark, lengths(8, 300, 300), file.toString());
            List<long[]> tasks = run(spark, millis, file.toString());
            WaitJobs.fact("mixed.stage", tasks.get(0)[0]);
            for (int i = 0; i < REASONS.length; i++) {
                List<String> waited = new ArrayList<>();
                for (long[] task : tasks) {
                    waited.add(task[1] + ":" + task[2 + i]);
                }
                WaitJobs.fact(REASONS[i] + ".waited", String.join(",", waited));
            }
            WaitJobs.fact("done", "yes");
            while (!Files.exists(Path.of("stop"))) {
                Thread.sleep(50);
            }
        } finally {
            Files.delete(file);
        }
    }

    /** The longest first. */
    private static List<Integer> lengths(int count, double shortest, double longest) {
        List<Integer> millis = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            millis.add((int) Math.round(longest * Math.pow(shortest / longest, i / (count - 1.0))));
        }
        return millis;
    }

    /** A file of which nothing is in the page cache. */
    private static Path uncached() throws Exception {
        Path file = Path.of("blocks.data").toAbsolutePath();
        ByteBuffer data = ByteBuffer.allocateDirect(1 << 20);
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            for (long at = 0; at < BLOCKS * BLOCK; at += data.capacity()) {
                data.clear();
                channel.write(data, at);
            }
            channel.force(true);
        }
        // posix_fadvise(2) by coreutils.
        String[] drops = {"dd", "if=" + file, "iflag=nocache", "count=0"};
        int status = new ProcessBuilder(drops).inheritIO().start().waitFor();
        if (status != 0) {
            throw new IllegalStateException("dd of " + file + " ended with " + status);
        }
        return file;
    }

    /** A task for each length; a row has its stage, its id, and what it waited for each reason. */
    private static List<long[]> run(JavaSparkContext spark, List<Integer> millis, String file) {
        List<Integer> lines = new ArrayList<>();
        for (int length : millis) {
            lines.add(Math.max(1, length / 7 / LINE));
        }
        List<Integer> lengths = new ArrayList<>(millis);
        return spark.parallelize(lines, lines.size()).pipe(List.of("sh", "-c", PRINTS_LATE))
            .mapPartitionsWithIndex((index, printed) -> {
                TaskContext task = TaskContext.get();
                long[] waited = works(printed, lengths.get(index), file);
                long[] row = new long[2 + waited.length];
                row[0] = task.stageId();
                row[1] = task.taskAttemptId();
                System.arraycopy(waited, 0, row, 2, waited.length);
                return List.of(row).iterator();
            }, false).collect();
    }

    private static long[] works(Iterator<String> printed, int millis, String path) throws Exception {
        // Less half a round.
        long end = System.nanoTime() + (millis - 2 * PART) * 1_000_000L;
        long python = readsLines(printed);
        long lock = 0;
        long sleep = 0;
        long storage = 0;
        long network = 0;
        ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
        Kept kept = new Kept();
        Thread keeper = new Thread(kept::keeps, "keeper");
        keeper.setDaemon(true);
        keeper.start();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.READ)) {
            Thread answers = new Thread(() -> answer(server), "late server");
            answers.setDaemon(true);
            answers.start();
            try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
                socket.setTcpNoDelay(true);
                do {
                    WaitJobs.burn(PART);
                    lock += entersMonitor(kept);
                    sleep += sleeps();
                    storage += readsFile(file, block);
                    lock += takesLock(kept);
                    network += readsSocket(socket);
                } while (System.nanoTime() < end);
            }
        } finally {
            kept.over = true;
        }
        return new long[] {python, lock, sleep, storage, network};
    }

    /** Nanoseconds for which the current thread has been there and neither ran nor wanted to. */
    private static long stoodStill() throws IOException {
        return System.nanoTime() - THREADS.getCurrentThreadCpuTime() - WaitJobs.account(1);
    }

    private static long readsLines(Iterator<String> printed) throws IOException {
        long begun = stoodStill();
        while (printed.hasNext()) {
            printed.next();
        }
        return stoodStill() - begun;
    }

    private static long sleeps() throws Exception {
        long begun = stoodStill();
        Thread.sleep(PART);
        return stoodStill() - begun;
    }

    private static long entersMonitor(Kept kept) throws IOException {
        long begun = stoodStill();
        synchronized (kept.monitor) {
            return stoodStill() - begun;
        }
    }

    private static long takesLock(Kept kept) throws IOException {
        long begun = stoodStill();
        kept.lock.lock();
        try {
            return stoodStill() - begun;
        } finally {
            kept.lock.unlock();
        }
    }

    private static long readsFile(FileChannel file, ByteBuffer block) throws IOException {
        long begun = stoodStill();
        for (int i = 0; i < READS; i++) {
            block.clear();
            file.read(block, NEXT.getAndIncrement() * STRIDE % BLOCKS * BLOCK);
        }
        return stoodStill() - begun;
    }

    private static long readsSocket(Socket socket) throws IOException {
        socket.getOutputStream().write(1);
        long begun = stoodStill();
        socket.getInputStream().read();
        return stoodStill() - begun;
    }

    private static void answer(ServerSocket server) {
        try (Socket socket = server.accept()) {
            socket.setTcpNoDelay(true);
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            while (in.read() != -1) {
                Thread.sleep(PART);
                out.write(1);
            }
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** A monitor and a lock that one thread keeps, but for moments. */
    private static final class Kept {
        final Object monitor = new Object();
        final ReentrantLock lock = new ReentrantLock();
        volatile boolean over;

        void keeps() {
            try {
                while (!over) {
                    synchronized (monitor) {
                        lock.lock();
                        try {
                            Thread.sleep(PART);
                        } finally {
                            lock.unlock();
                        }
                    }
                    Thread.sleep(2);
                }
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
