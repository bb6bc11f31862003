import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * A job that runs again and again: rows that are scored, and a query. Arguments: by how many percent scoring takes longer than
 * usual; whether rows are cached first, in a stage of its own, which gives all later stages other numbers; whether it stays. Most of
 * its tasks' CPU time is that of {@code Nightly.score}, and fixed work. Prints the facts {@code app} and {@code done}; one
 * that stays ends when there is a file {@code stop}.
 */
public final class Nightly {
    /** Rounds of a row as usual. */
    static final int ROUNDS = 12_000_000;
    static final int TASKS = 16;

    public static void main(String[] args) throws Exception {
        int rounds = ROUNDS / 100 * (100 + Integer.parseInt(args[0]));
        boolean cached = Boolean.parseBoolean(args[1]);
        boolean stays = Boolean.parseBoolean(args[2]);
        try (JavaSparkContext spark = new JavaSparkContext(new SparkConf().setAppName("nightly scores"))) {
            spark.setLogLevel("ERROR");
            System.out.println("fact app=" + spark.sc().applicationId());
            List<Integer> numbers = IntStream.range(0, TASKS * 20).boxed().collect(Collectors.toList());
            JavaRDD<Integer> rows = spark.parallelize(numbers, TASKS);
            if (cached) {
                rows = rows.cache();
                warmed(rows);
            }
            long sum = scored(rows, rounds);
            sum += queried(SparkSession.builder().getOrCreate());
            System.out.println("fact done=" + sum);
            System.out.flush();
            while (stays && !Files.exists(Path.of("stop"))) Thread.sleep(100);
        }
    }

    static long warmed(JavaRDD<Integer> rows) {
        return rows.count();
    }

    static long scored(JavaRDD<Integer> rows, int rounds) {
        return rows.map(row -> score(row, rounds)).reduce(Long::sum);
    }

    static long queried(SparkSession spark) {
        return spark.range(0, 4_000_000, 1, 4).selectExpr("id % 1000 AS k", "id").groupBy("k").sum("id").collectAsList().size();
    }

    /** A row's score, of so many rounds. */
    static long score(int row, int rounds) {
        long score = row + 1;
        for (int i = 0; i < rounds; i++) {
            score ^= score << 13;
            score ^= score >>> 7;
            score ^= score << 17;
        }
        return score;
    }
}
