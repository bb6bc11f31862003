package org.apache.spark.deploy;

import java.io.File;

/**
 * What goes by its name for a driver that runs tasks: threads that compute, one after the other, under names of a Spark task's
 * thread. Arguments: seconds of wall time of each task, how many. Each waits for a file go0, go1, .. and tells when it has
 * begun and ended.
 */
public final class SparkSubmit {
    private static volatile long sum;

    public static void main(String[] args) throws Exception {
        long nanos = Long.parseLong(args[0]) * 1_000_000_000L;
        System.out.println("fact ready=" + ProcessHandle.current().pid());
        for (int task = 0; task < Integer.parseInt(args[1]); task++) {
            while (!new File("go" + task).exists()) {
                Thread.sleep(20);
            }
            int number = task;
            Thread thread = new Thread(() -> computes(number, nanos));
            thread.start();
            thread.join();
        }
    }

    private static void computes(int task, long nanos) {
        String name = "Executor task launch worker for task 0.0 in stage " + task + ".0 (TID " + (100 + task) + ")";
        Thread.currentThread().setName(name);
        System.out.println("fact begun" + task + "=1");
        long until = System.nanoTime() + nanos;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 10_000; i++) {
                sum += i;
            }
        }
        System.out.println("fact ended" + task + "=1");
        Thread.currentThread().setName("idle");
    }
}
