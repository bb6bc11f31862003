import java.io.IOException;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Three monitors and two locks, each of a class of its own, which a thread {@code keeper of NAME} holds most of the time: a task
 * that wants one waits for that thread and no other.
 */
final class KeptLocks {
    static final String[] NAMES = {"red", "green", "blue", "fair", "unfair"};

    private static final class Red {}

    private static final class Green {}

    private static final class Blue {}

    private static final Object[] MONITORS = {new Red(), new Green(), new Blue()};
    private static final Lock[] LOCKS = {new ReentrantLock(true), new ReentrantLock(false)};

    private KeptLocks() {}

    /** Nanoseconds for which the current thread waited for the lock of this name, so often for so long. */
    static long waits(String name, int times, int millis) throws Exception {
        int number = java.util.Arrays.asList(NAMES).indexOf(name);
        boolean[] over = {false};
        Thread keeper = new Thread(() -> keeps(number, millis, over), "keeper of " + name);
        keeper.start();
        long waited = 0;
        for (int i = 0; i < times; i++) {
            Thread.sleep(3);
            long own = number < MONITORS.length ? entersKept(number) : takesKept(number);
            WaitJobs.had(own);
            waited += own;
        }
        synchronized (over) {
            over[0] = true;
        }
        keeper.join();
        return waited;
    }

    private static long entersKept(int number) throws IOException {
        long begun = WaitJobs.didNotWantToRun();
        synchronized (MONITORS[number]) {
            return WaitJobs.didNotWantToRun() - begun;
        }
    }

    private static long takesKept(int number) throws IOException {
        Lock lock = LOCKS[number - MONITORS.length];
        long begun = WaitJobs.didNotWantToRun();
        lock.lock();
        try {
            return WaitJobs.didNotWantToRun() - begun;
        } finally {
            lock.unlock();
        }
    }

    private static void keeps(int number, int millis, boolean[] over) {
        try {
            while (!isOver(over)) {
                if (number < MONITORS.length) {
                    synchronized (MONITORS[number]) {
                        Thread.sleep(millis);
                    }
                } else {
                    Lock lock = LOCKS[number - MONITORS.length];
                    lock.lock();
                    try {
                        Thread.sleep(millis);
                    } finally {
                        lock.unlock();
                    }
                }
                Thread.sleep(1);
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private static boolean isOver(boolean[] over) {
        synchronized (over) {
            return over[0];
        }
    }
}
