package org.apache.spark.deploy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/**
 * A driver, by its name, that runs one task of a stage 2. Has a JVM that stops its threads often: keeps some of what it allocates, asks for a collection now and then, and has one thread
 * with the name of a task. The arguments are for how many seconds, and how many MB are kept. It begins when the file `go` is
 * there.
 */
public class SparkSubmit {
    static volatile Object sink;

    public static void main(String[] arguments) throws Exception {
        System.out.println("fact ready=1");
        System.out.flush();
        while (!Files.exists(Path.of("go"))) {
            Thread.sleep(10);
        }
        long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        int kept = Integer.parseInt(arguments[1]) * 1024 / 3;
        Thread task = new Thread(() -> {
            Thread.currentThread().setName("Executor task launch worker for task 1.0 in stage 2.0 (TID 3)");
            Random sizes = new Random(2);
            while (System.nanoTime() < until) {
                sink = new byte[sizes.nextInt(4000)];
            }
            Thread.currentThread().setName("Executor task launch worker-0");
        });
        task.start();
        Map<Integer, byte[]> live = new HashMap<>();
        Random random = new Random(1);
        long asked = System.nanoTime();
        while (System.nanoTime() < until) {
            live.put(random.nextInt(kept), new byte[1000 + random.nextInt(4000)]);
            if (System.nanoTime() - asked > 700_000_000L) {
                System.gc();
                asked = System.nanoTime();
            }
        }
        task.join();
        System.out.println("fact done=1");
        System.out.flush();
        while (!Files.exists(Path.of("stop"))) {
            Thread.sleep(10);
        }
    }
}
