import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Threads that name themselves and burn CPU under each name, and say what the kernel and the JVM have on their account
 * just before: "step|tid|CPU by ThreadMXBean|schedstat|name". Waits for the file "go" first; stays until killed.
 */
public class Names {
    static volatile long sink;
    static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();

    static void burn(long ms) {
        for (long end = BEAN.getCurrentThreadCpuTime() + ms * 1_000_000; BEAN.getCurrentThreadCpuTime() < end; )
            for (int i = 0; i < 10_000; i++) sink += i;
    }

    static String tid() throws Exception {
        return Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
    }

    static void say(String step, String name) throws Exception {
        String tid = tid();
        String stat = new String(Files.readAllBytes(Path.of("/proc/thread-self/schedstat"))).trim();
        String line = step + "|" + tid + "|" + BEAN.getCurrentThreadCpuTime() + "|" + stat + "|" + name;
        synchronized (Names.class) {
            System.out.println(line);
        }
    }

    static void work() {
        try {
            for (int i = 0; i < 12; i++) {
                String name = "Executor task launch worker for task " + i + ".0 in stage 0.0 (TID " + i + ")";
                if (i == 3) name = "gr\u00f6\u00dfe";
                if (i == 4) name = "\u7dda\u7a0b";
                if (i == 5) name = "";
                if (i == 6) name = "x".repeat(300);
                say("named", name);
                Thread.currentThread().setName(name);
                burn(25);
            }
            say("ended", "");
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    /** Where fields are, as the JVM itself uses them: "value coder length data narrow eetop". */
    static String layout() throws Exception {
        Field instance = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        sun.misc.Unsafe unsafe = (sun.misc.Unsafe) instance.get(null);
        long data = unsafe.arrayBaseOffset(byte[].class);
        long value = unsafe.objectFieldOffset(String.class.getDeclaredField("value"));
        long coder = unsafe.objectFieldOffset(String.class.getDeclaredField("coder"));
        long eetop = unsafe.objectFieldOffset(Thread.class.getDeclaredField("eetop"));
        int narrow = unsafe.arrayIndexScale(Object[].class) == 4 ? 1 : 0;
        return value + " " + coder + " " + data + " " + narrow + " " + eetop;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("fact layout=" + layout());
        while (!Files.exists(Path.of("go"))) Thread.sleep(20);
        // The first time, the JVM links what puts such a line together.
        for (int i = 0; i < 3; i++) say("warm", "");
        Thread worker = new Thread(Names::work, "the worker");
        worker.start();
        // Another thread's name is not the kernel's business.
        Thread waits = new Thread(() -> { while (true) try { Thread.sleep(100000); } catch (InterruptedException e) { } });
        waits.setDaemon(true);
        waits.start();
        String own = tid();
        Thread.currentThread().setName("the main thread");
        for (int i = 0; i < 100; i++) {
            Thread.sleep(5);
            waits.setName("renamed from outside " + i);
        }
        worker.join();
        System.out.println("fact main=" + own);
        System.out.println("fact done=yes");
        Thread.sleep(1_000_000);
    }
}
