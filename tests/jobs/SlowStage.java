import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * The job of docs/why-was-this-stage-slow.md: 40 tasks that compute, of which five also wait for a connection that all tasks of an
 * executor share, and for what it answers. It ends when there is a file {@code stop}.
 */
public final class SlowStage {
    static final Object CONNECTION = new Object();

    public static void main(String[] args) throws Exception {
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("nightly enrichment"))) {
            spark.setLogLevel("ERROR");
            System.out.println("fact app=" + spark.sc().applicationId());
            List<Integer> customers = IntStream.range(0, 40).boxed().collect(Collectors.toList());
            long n = spark.parallelize(customers, 40).map(SlowStage::enrich).filter(x -> x != 0).count();
            System.out.println("fact done=" + n);
            System.out.flush();
            while (!Files.exists(Path.of("stop"))) Thread.sleep(100);
        }
    }

    static long enrich(int customer) throws Exception {
        long sum = hashOrders(customer);
        return customer % 8 == 5 ? sum ^ lookUpRates(customer) : sum;
    }

    static long hashOrders(int customer) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] block = new byte[1 << 16];
        long until = System.nanoTime() + 400_000_000L, sum = customer;
        while (System.nanoTime() < until) sum += digest.digest(block)[0];
        return sum;
    }

    /** One connection for all tasks of an executor. */
    static long lookUpRates(int customer) throws Exception {
        long sum = 0;
        for (int i = 0; i < 4; i++) {
            synchronized (CONNECTION) {
                Thread.sleep(350);
                sum += customer;
            }
        }
        return sum;
    }
}
