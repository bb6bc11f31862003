import java.util.concurrent.locks.ReentrantLock;

/** Four threads that want the same monitor and the same lock for so many seconds, each held for 30 ms, and allocate meanwhile. */
public class Contends {
    static final Object MONITOR = new Object();
    static final ReentrantLock LOCK = new ReentrantLock();
    static volatile Object sink;

    static void hold() throws InterruptedException {
        for (int i = 0; i < 2_000; i++) {
            sink = new byte[4_096];
            sink = new Contends[64];
        }
        Thread.sleep(30);
    }

    static void work(long until) {
        try {
            while (System.nanoTime() < until) {
                synchronized (MONITOR) {
                    hold();
                }
                LOCK.lock();
                try {
                    hold();
                } finally {
                    LOCK.unlock();
                }
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        long until = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Thread[] others = new Thread[3];
        for (int i = 0; i < others.length; i++) {
            others[i] = new Thread(() -> work(until), "other " + i);
            others[i].start();
        }
        work(until);
        for (Thread other : others) {
            other.join();
        }
    }
}
