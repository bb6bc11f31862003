// Threads with names of all kinds. Prints "<tid> <name as UTF-8, in hexadecimal>" for each, then "ready".
// With an argument it never rests: threads come, rename themselves by their own tid, and go, and the
// collectors have work.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
public class Threads {
    static final AtomicLong made = new AtomicLong();
    static volatile Object sink;
    static String tid() throws IOException { return java.nio.file.Files.readSymbolicLink(java.nio.file.Paths.get("/proc/thread-self")).getFileName().toString(); }
    static String repeat(String s, int n) { StringBuilder b = new StringBuilder(); for (int i = 0; i < n; i++) b.append(s); return b.toString(); }
    static synchronized void tell(String name) throws IOException {
        StringBuilder b = new StringBuilder();
        for (byte x : name.getBytes(StandardCharsets.UTF_8)) b.append(String.format("%02x", x));
        System.out.println(tid() + " " + b);
    }
    static void named(String name, boolean renamed) throws Exception {
        java.util.concurrent.CountDownLatch told = new java.util.concurrent.CountDownLatch(1);
        Thread t = new Thread(() -> {
            try {
                if (renamed) Thread.currentThread().setName(name);
                tell(name);
                told.countDown();
                Thread.sleep(1000000);
            } catch (Exception e) { }
        }, renamed ? "before" : name);
        t.setDaemon(true);
        t.start();
        told.await();
    }
    // The name tells the tid, so that a name read for another thread shows.
    static void worker() {
        try {
            String me = tid();
            for (int i = 0; i < 20; i++) {
                Thread.currentThread().setName("own " + me + " turn " + i + " of " + me + (i % 3 == 0 ? " \u540d" : " end"));
                sink = new byte[1 << (i % 12)];
                Thread.sleep(i % 5);
            }
        } catch (Exception e) { }
    }
    public static void main(String[] args) throws Exception {
        String[] names = {"plain", "", " ", "caf\u00e9 \u00ff", "\u540d\u524d \u65e5\u672c", "fire \ud83d\udd25 burning", "lone \ud83d surrogate",
            "new\nline \u001b[31m", "x", repeat("0123456789", 1000), repeat("\u540d", 5000),
            "Executor task launch worker for task 3.0 in stage 1.0 (TID 77)",
            "Executor task launch worker for task evil"};
        for (String name : names) { named(name, false); named(name, true); }
        tell(Thread.currentThread().getName());
        System.out.println("ready");
        if (args.length == 0) Thread.sleep(1000000);
        java.util.ArrayList<byte[]> live = new java.util.ArrayList<>();
        while (true) {
            Thread[] some = new Thread[12];
            for (int i = 0; i < some.length; i++) { some[i] = new Thread(Threads::worker, "fresh " + made.incrementAndGet()); some[i].start(); }
            for (int i = 0; i < 3000; i++) {
                byte[] b = new byte[1024 + i % 4096];
                if (live.size() < 4000) live.add(b); else live.set((i * 7919) % 4000, b);
            }
            for (Thread t : some) t.join();
        }
    }
}
