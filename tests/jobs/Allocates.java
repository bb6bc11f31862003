import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Allocates in three methods, each of a class of its own, from several threads, and says what the JVM has on their accounts:
 * small arrays of bytes, objects, arrays of Strings. Bytes of each are told by the thread's own account before and after, objects
 * are counted. The argument is how many MB each thread allocates of each. It begins when the file `go` is there, and ends with `stop`.
 */
public class Allocates {
    static final class Node {
        long a, b, c, d;
        Node next;
    }

    static Object sink;
    static final com.sun.management.ThreadMXBean THREADS = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    static long bytes(long wanted) {
        long made = 0, objects = 0;
        Object last = null;
        for (int size = 64; made < wanted; size = size * 5 % 8191 + 16) {
            last = new byte[size];
            made += size + 16;
            objects++;
            publish(last);
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
        // Of a megabyte and more now and then: outside of a TLAB.
        for (int n = 0; made < wanted; n++) {
            int length = n % 200 == 0 ? 400_000 : 500;
            publish(new String[length]);
            made += 4L * length + 16;
            objects++;
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

    static void all(long wanted, long[] sums, long[] objects) {
        Work[] works = {Allocates::bytes, Allocates::nodes, Allocates::strings};
        for (int i = 0; i < works.length; i++) {
            long before = allocated();
            // The second is half of the first, the third a quarter.
            long made = works[i].run(wanted >> i);
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
        System.out.println("fact ready=" + ProcessHandle.current().pid());
        await("go");
        long[] sums = new long[3];
        long[] objects = new long[3];
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
        String[] names = {"bytes", "nodes", "strings"};
        for (int i = 0; i < names.length; i++) {
            System.out.println("fact " + names[i] + "=" + sums[i]);
            System.out.println("fact " + names[i] + ".objects=" + objects[i]);
        }
        System.out.println("fact done=1");
        await("stop");
    }
}
