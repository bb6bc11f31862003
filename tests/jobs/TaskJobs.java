import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.shuffle.FetchFailedException;
import scala.Tuple2;

/**
 * Spark jobs whose tasks do their work in the JVM, in the methods of {@link TaskWork}: what samples and the
 * ledger are held against. Arguments are phases, done in turn, {@code NAME[:NUMBER]...}:
 *
 * <pre>
 * short:TASKS:ROUNDS     stages of tasks of 5 to 10 ms, methods alternating by the task's index
 * range:ROUNDS           tasks of 5 ms to 10 s in one job
 * steady:SECONDS:TASKS   a stage of tasks that work so long each
 * two:TASKS              two stages at once (spark.scheduler.mode=FAIR), of tasks of 20 ms
 * speculate              a task whose speculative copy wins (two hosts, spark.speculation=true)
 * retry                  a stage that is tried twice, for a block that cannot be fetched
 * skew:TASKS             a stage in which one task does three times the work of the others, two parts in slowPath
 * names:NUMBER           a task that gives threads names that nobody should, the last so many of tasks that are none
 * fixed:TASKS:STEPS      a fixed number of calls, whenever a file go.N appears
 * </pre>
 *
 * Prints the facts {@code app}; {@code NAME.started} and {@code NAME.ended}, Unix milliseconds;
 * {@code NAME.stages}, the ids of its stages; and {@code done}. The application has the name that {@code spark.task.jobs.name}
 * has, else "task jobs". It ends when a file {@code stop} is there. A
 * stage {@code warm-up} goes before all phases: its tasks work in every method.
 */
public final class TaskJobs {
    private final JavaSparkContext spark;

    private TaskJobs(JavaSparkContext spark) {
        this.spark = spark;
    }

    public static void main(String[] phases) throws Exception {
        SparkConf conf = new SparkConf();
        conf.setAppName(conf.get("spark.task.jobs.name", "task jobs"));
        try (JavaSparkContext spark = new JavaSparkContext(conf)) {
            spark.setLogLevel("ERROR");
            fact("app", spark.sc().applicationId());
            TaskJobs jobs = new TaskJobs(spark);
            fact("warm-up.stages", jobs.run(2 * spark.defaultParallelism(), index -> TaskWork.warmUp()));
            for (String phase : phases) {
                String[] words = phase.split(":");
                long[] numbers = new long[words.length - 1];
                for (int i = 0; i < numbers.length; i++) {
                    numbers[i] = Long.parseLong(words[i + 1]);
                }
                fact(words[0] + ".started", System.currentTimeMillis());
                List<String> stages = jobs.phase(words[0], numbers);
                fact(words[0] + ".ended", System.currentTimeMillis());
                fact(words[0] + ".stages", String.join(",", stages));
            }
            fact("done", "yes");
            while (!Files.exists(Path.of("stop"))) {
                Thread.sleep(50);
            }
        }
    }

    private static void fact(String name, Object value) {
        System.out.println("fact " + name + "=" + value);
        System.out.flush();
    }

    /** What the task of an index does. */
    private interface Work extends java.io.Serializable {
        long of(int index);
    }

    private JavaRDD<Integer> working(int tasks, Work work) {
        List<Integer> none = Collections.emptyList();
        return spark.parallelize(none, tasks).mapPartitionsWithIndex((index, nothing) -> {
            sink = work.of(index);
            return List.of(TaskContext.get().stageId()).iterator();
        }, false);
    }

    private static volatile long sink;

    /** Runs a stage; its id is the answer. */
    private String run(int tasks, Work work) {
        return String.valueOf(working(tasks, work).collect().get(0));
    }

    private List<String> phase(String name, long[] n) throws Exception {
        List<String> stages = new ArrayList<>();
        switch (name) {
            case "short":
                for (int round = 0; round < n[1]; round++) {
                    stages.add(run((int) n[0], i -> TaskWork.byIndex((5 + i * 7 % 11 / 2) * 1_000_000L)));
                }
                return stages;
            case "range":
                int[] millis = {10_000, 5, 5, 7, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 5, 10, 15, 30, 5};
                for (int round = 0; round < n[0]; round++) {
                    stages.add(run(millis.length, i -> TaskWork.byIndex(millis[i] * 1_000_000L)));
                }
                return stages;
            case "steady":
                stages.add(run((int) n[1], i -> TaskWork.byIndex(n[0] * 1_000_000_000L)));
                return stages;
            case "two":
                return together((int) n[0]);
            case "speculate":
                stages.add(run(4, i -> {
                    int attempt = TaskContext.get().attemptNumber();
                    return i > 0 ? TaskWork.even(400_000_000L)
                        : attempt == 0 ? TaskWork.original(6_000_000_000L) : TaskWork.copy(1_500_000_000L);
                }));
                return stages;
            case "retry":
                return retried();
            case "skew":
                stages.add(run((int) n[0], i -> TaskWork.usual(30_000) + (i == 3 ? TaskWork.slowPath(60_000) : 0)));
                return stages;
            case "names":
                stages.add(run(1, i -> BadNames.all(60_000_000L, (int) n[0])));
                return stages;
            case "fixed":
                onRequest((int) n[0], n[1]);
                return stages;
            default:
                throw new IllegalArgumentException("no phase " + name);
        }
    }

    /** Two stages at once in the same executors: the first id is left's, the second right's. */
    private List<String> together(int tasks) throws Exception {
        String[] ids = new String[2];
        Thread[] threads = new Thread[2];
        for (int side = 0; side < 2; side++) {
            boolean left = side == 0;
            threads[side] = new Thread(() -> {
                spark.setLocalProperty("spark.scheduler.pool", left ? "left" : "right");
                ids[left ? 0 : 1] =
                    run(tasks, i -> left ? TaskWork.left(20_000_000L) : TaskWork.right(20_000_000L));
            });
            threads[side].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return List.of(ids);
    }

    private static long tried(long nanos) {
        return TaskContext.get().stageAttemptNumber() == 0 ? TaskWork.firstTry(nanos) : TaskWork.secondTry(nanos);
    }

    /** The first attempt's first reducer says that it cannot fetch: Spark does maps and reducers again. */
    private List<String> retried() {
        JavaPairRDD<Integer, Integer> sums = working(4, i -> tried(700_000_000L))
            .mapToPair(stage -> new Tuple2<>(TaskContext.getPartitionId(), stage))
            .reduceByKey(Integer::max, 4);
        int shuffle = ((ShuffleDependency<?, ?, ?>) sums.rdd().dependencies().head()).shuffleId();
        List<String> seen = sums.mapPartitionsWithIndex((index, stages) -> {
            TaskContext task = TaskContext.get();
            sink = tried(1_000_000_000L);
            if (task.stageAttemptNumber() == 0 && index == 0) {
                throw new FetchFailedException(SparkEnv.get().blockManager().blockManagerId(), shuffle, 0L, 0, 0,
                    "a block that is not there", null);
            }
            List<String> ids = new ArrayList<>();
            stages.forEachRemaining(stage -> ids.add(stage._2.toString()));
            ids.add(String.valueOf(task.stageId()));
            return ids.iterator();
        }, false).distinct().collect();
        List<String> sorted = new ArrayList<>(seen);
        Collections.sort(sorted);
        return sorted;
    }

    /** Until a file stop: at each file go.N the same calls, and as fact run.N what Spark says of them. */
    private void onRequest(int tasks, long steps) throws Exception {
        AtomicLong cpu = new AtomicLong();
        spark.sc().addSparkListener(new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                cpu.addAndGet(end.taskMetrics().executorCpuTime() + end.taskMetrics().executorDeserializeCpuTime());
            }
        });
        for (int n = 1; !Files.exists(Path.of("stop")); ) {
            if (!Files.exists(Path.of("go." + n))) {
                Thread.sleep(20);
                continue;
            }
            cpu.set(0);
            long begun = System.nanoTime();
            run(tasks, i -> TaskWork.fixed(steps));
            double wall = (System.nanoTime() - begun) / 1e9;
            Thread.sleep(200);
            fact("run." + n, "{\"wall_s\": " + wall + ", \"spark_cpu_s\": " + cpu.get() / 1e9 + "}");
            n++;
        }
    }
}
