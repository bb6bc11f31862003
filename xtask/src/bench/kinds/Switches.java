package org.apache.spark.deploy;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/**
 * Pairs of threads that wake each other, under names of a Spark task's thread, in what goes by its name for a driver that runs
 * tasks. Arguments: waits a second of all of them, pairs. A thread whose turn comes back at once does not wait, so the kernel's
 * own count of waits is looked at every second, and pairs take more turns or fewer. It runs until it is killed.
 */
public final class SparkSubmit {
    /** Looks at the count before the program says that it has its pace. */
    private static final int LOOKS = 6;
    /** Turns of a pair in ten milliseconds. */
    private static volatile double turns;
    private final Thread[] both = new Thread[2];
    private volatile int turn;

    public static void main(String[] args) throws Exception {
        int perSecond = Integer.parseInt(args[0]);
        int pairs = Integer.parseInt(args[1]);
        turns = Math.max(1, perSecond / pairs / 200);
        for (int pair = 0; pair < pairs; pair++) {
            new SparkSubmit().start(pair);
        }
        long begun = System.nanoTime();
        long before = waits();
        for (int look = 1;; look++) {
            Thread.sleep(1000);
            long now = System.nanoTime();
            long waits = waits();
            double rate = (waits - before) * 1e9 / (now - begun);
            // No more than twice as many at once: a second in which another program ran is no reason for more.
            turns = Math.max(1, turns * Math.max(0.5, Math.min(2, perSecond / Math.max(rate, 1))));
            before = waits;
            begun = now;
            if (look == LOOKS) {
                System.out.println("fact started=" + ProcessHandle.current().pid());
            }
        }
    }

    /** Times that threads of this process gave up their CPU by themselves (proc_pid_status(5)). */
    private static long waits() throws Exception {
        long sum = 0;
        for (File task : new File("/proc/self/task").listFiles()) {
            for (String line : Files.readAllLines(Path.of(task.getPath(), "status"))) {
                if (line.startsWith("voluntary_ctxt_switches:")) {
                    sum += Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                }
            }
        }
        return sum;
    }

    private void start(int pair) {
        for (int side = 0; side < 2; side++) {
            int own = side;
            String name = "Executor task launch worker for task " + own + ".0 in stage " + pair + ".0 (TID " + (2 * pair + own) + ")";
            both[side] = new Thread(() -> run(own), name);
        }
        both[0].start();
        both[1].start();
    }

    private void run(int own) {
        long next = System.nanoTime();
        for (long named = next - 1_000_000_000;;) {
            // A name is told when a thread that runs gives it to itself, to who watches by then.
            if (System.nanoTime() - named >= 1_000_000_000) {
                named = System.nanoTime();
                Thread.currentThread().setName(Thread.currentThread().getName());
            }
            // The first of a pair has the pace; the other one follows.
            long trips = own == 0 ? Math.round(turns) : 1;
            for (long trip = 0; trip < trips; trip++) {
                while (turn != own) {
                    LockSupport.park();
                }
                turn = 1 - own;
                LockSupport.unpark(both[1 - own]);
            }
            if (own != 0) {
                continue;
            }
            next += 10_000_000;
            // A wake-up that comes late ends a park at once: so until the time is there.
            for (long left = next - System.nanoTime(); left > 0; left = next - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            next = Math.max(next, System.nanoTime());
        }
    }
}
