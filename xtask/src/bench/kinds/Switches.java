package org.apache.spark.deploy;

import java.util.concurrent.locks.LockSupport;

/**
 * Pairs of threads that wake each other so often a second together, under names of a Spark task's thread, in what goes by its
 * name for a driver that runs tasks. Arguments: switches a second, pairs. It runs until it is killed.
 */
public final class SparkSubmit {
    private final Thread[] both = new Thread[2];
    private volatile int turn;

    public static void main(String[] args) {
        int perSecond = Integer.parseInt(args[0]);
        int pairs = Integer.parseInt(args[1]);
        for (int pair = 0; pair < pairs; pair++) {
            new SparkSubmit().start(pair, perSecond / pairs);
        }
        System.out.println("fact started=" + ProcessHandle.current().pid());
    }

    /** A trip is a wait of each. */
    private void start(int pair, int perSecond) {
        long tripsInTen = Math.max(1, perSecond / 200);
        for (int side = 0; side < 2; side++) {
            int own = side;
            String name = "Executor task launch worker for task " + own + ".0 in stage " + pair + ".0 (TID " + (2 * pair + own) + ")";
            both[side] = new Thread(() -> run(own, tripsInTen), name);
        }
        both[0].start();
        both[1].start();
    }

    private void run(int own, long tripsInTen) {
        long next = System.nanoTime();
        for (int tens = 0;; tens++) {
            // A name is told when a thread that runs gives it to itself, to who watches by then.
            if (tens % 100 == 0) {
                Thread.currentThread().setName(Thread.currentThread().getName());
            }
            for (long trip = 0; trip < tripsInTen; trip++) {
                while (turn != own) {
                    LockSupport.park();
                }
                turn = 1 - own;
                LockSupport.unpark(both[1 - own]);
            }
            next += 10_000_000;
            // A wake-up that comes late ends a park at once: so until the time is there.
            for (long left = next - System.nanoTime(); own == 0 && left > 0; left = next - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            next = Math.max(next, System.nanoTime());
        }
    }
}
