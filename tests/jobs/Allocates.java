import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * Allocates in four methods from several threads, and says what the JVM has on their accounts: small arrays of bytes, objects, arrays of
 * Strings, each of a class of its own; and classes of small and large objects, one among the other, whose bytes it adds up itself. Bytes of each are told by the thread's own account before and after, objects
 * are counted. The argument is how many MB each thread allocates of each. It begins when the file `go` is there, and ends with `stop`.
 */
public class Allocates {
    static final class Node {
        long a, b, c, d;
        Node next;
    }

    static Object sink;
    static final com.sun.management.ThreadMXBean THREADS = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Drawn, so that nothing is in step with TLABs: Knuth's constants, the upper bits. */
    static final class Draw {
        private long state = Thread.currentThread().getId();

        int below(int most) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            return (int) ((state >>> 33) % most);
        }
    }

    static long bytes(long wanted) {
        long made = 0, objects = 0;
        Draw draw = new Draw();
        while (made < wanted) {
            int size = 16 + draw.below(8192);
            publish(new byte[size]);
            made += size + 16;
            objects++;
        }
        return objects;
    }

    static long nodes(long wanted) {
        long made = 0, objects = 0;
        Node chain = null;
        for (int n = 0; made < wanted; n++) {
            Node node = new Node();
            node.next = n % 1000 == 0 ? null : chain;
            chain = node;
            made += 56;
            objects++;
            publish(chain);
        }
        return objects;
    }

    static long strings(long wanted) {
        long made = 0, objects = 0;
        // Of a megabyte and more now and then, of which some fit into a TLAB.
        Draw draw = new Draw();
        while (made < wanted) {
            int length = draw.below(200) == 0 ? 400_000 : 500;
            publish(new String[length]);
            made += 4L * length + 16;
            objects++;
        }
        return objects;
    }

    /** 48 bytes, with compressed references. */
    static final class Small {
        long a, b, c, d;
        Object e;
    }

    /** Bytes of small and large objects, one among the other: of Small, short[], int[] and long[]. */
    static final long[] MIXED = new long[4];

    static long mixed(long wanted) {
        long objects = 0;
        long[] made = new long[MIXED.length];
        Draw draw = new Draw();
        while (made[0] + made[1] + made[2] + made[3] < wanted) {
            int which = draw.below(10_000);
            if (which < 9_000) {
                publish(new Small());
                made[0] += 48;
            } else if (which < 9_900) {
                int length = 4 * (60 + draw.below(300));
                publish(new short[length]);
                made[1] += 16 + 2L * length;
            } else if (which < 9_995) {
                int length = 2 * (1250 + draw.below(3750));
                publish(new int[length]);
                made[2] += 16 + 4L * length;
            } else {
                int length = 12_500 + draw.below(60_000);
                publish(new long[length]);
                made[3] += 16 + 8L * length;
            }
            objects++;
        }
        synchronized (MIXED) {
            for (int i = 0; i < made.length; i++) {
                MIXED[i] += made[i];
            }
        }
        return objects;
    }

    static void publish(Object object) {
        sink = object;
    }

    /** Allocates so many bytes, about; how many objects they were is the answer. */
    interface Work {
        long run(long wanted);
    }

    static long allocated() {
        return THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    static final Work[] WORKS = {Allocates::bytes, Allocates::nodes, Allocates::strings, Allocates::mixed};

    static void all(long wanted, long[] sums, long[] objects) {
        for (int i = 0; i < WORKS.length; i++) {
            long before = allocated();
            // The second is half of the first, the third a quarter, the fourth as much as the first.
            long made = WORKS[i].run(wanted >> i % 3);
            long own = allocated() - before;
            synchronized (sums) {
                sums[i] += own;
                objects[i] += made;
            }
        }
    }

    static void await(String file) throws Exception {
        while (!Files.exists(Path.of(file))) {
            Thread.sleep(20);
        }
    }

    public static void main(String[] args) throws Exception {
        long wanted = Long.parseLong(args[0]) << 20;
        // To link and load all of it allocates hundreds of thousands of small arrays of bytes, where no archive has the classes.
        all(1, new long[4], new long[4]);
        Arrays.fill(MIXED, 0);
        System.out.println("fact ready=" + ProcessHandle.current().pid());
        await("go");
        long[] sums = new long[4];
        long[] objects = new long[4];
        long began = System.nanoTime();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> all(wanted, sums, objects), "allocates-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("fact nanos=" + (System.nanoTime() - began));
        String[] names = {"bytes", "nodes", "strings", "mixed"};
        for (int i = 0; i < names.length; i++) {
            System.out.println("fact " + names[i] + "=" + sums[i]);
            System.out.println("fact " + names[i] + ".objects=" + objects[i]);
        }
        String[] classes = {"Small", "short", "int", "long"};
        for (int i = 0; i < classes.length; i++) {
            System.out.println("fact mixed." + classes[i] + "=" + MIXED[i]);
        }
        System.out.println("fact done=1");
        await("stop");
    }
}
