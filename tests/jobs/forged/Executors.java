package org.apache.spark.executor;

// Lookalikes of Spark's executors: the main class and the arguments of one, and nothing else.
class CoarseGrainedExecutorBackend {
    public static void main(String[] args) {
        System.out.println("fact started=1");
        long sum = 0;
        for (long i = 0; ; i++) {
            sum = work(sum + i);
        }
    }

    static long work(long from) {
        long sum = from;
        for (int i = 0; i < 100_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }
}

class YarnCoarseGrainedExecutorBackend {
    public static void main(String[] args) {
        CoarseGrainedExecutorBackend.main(args);
    }
}
