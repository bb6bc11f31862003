import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Java stacks of many kinds: the argument says which; runs until it is killed. */
public class Walk {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        String what = args[0];
        int depth = args.length > 1 ? Integer.parseInt(args[1]) : 0;
        int threads = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        Runnable work = () -> {
            for (long round = 0; ; round++) {
                switch (what) {
                    case "mix": mix(round); break;
                    case "deep": sink += deep(depth, -round); break;
                    case "throw": thrown(depth); break;
                    case "reflect": reflect(); break;
                    case "deopt": deopt(round); break;
                    case "entries": entries(); break;
                    default: throw new IllegalArgumentException(what);
                }
            }
        };
        for (int i = 0; i < threads; i++) new Thread(work, "worker").start();
        System.out.println("ready");
    }

    /** One class of many loaders: as many compiled methods, whose entries a collector's cycle arms. */
    static final Runnable[] BODIES = new Runnable[400];

    /** What each of them runs. */
    public static final class Body implements Runnable {
        int x;

        @Override
        public void run() {
            for (int i = 0; i < 40; i++) x = x * 31 + i;
        }
    }

    /** Finds {@link Body} anew. */
    static final class Loader extends ClassLoader {
        Runnable body() throws Exception {
            try (java.io.InputStream in = Walk.class.getResourceAsStream("Walk$Body.class")) {
                byte[] bytes = new byte[in.available()];
                int read = in.read(bytes);
                return (Runnable) defineClass("Walk$Body", bytes, 0, read).getDeclaredConstructor().newInstance();
            }
        }
    }

    /** Calls all, and has the next calls go through what a collector's cycle arms. */
    static void entries() {
        try {
            for (int i = 0; i < BODIES.length; i++) if (BODIES[i] == null) BODIES[i] = new Loader().body();
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
        for (int turn = 0; turn < 300; turn++) for (Runnable body : BODIES) body.run();
        System.gc();
        for (int turn = 0; turn < 3; turn++) for (Runnable body : BODIES) body.run();
    }

    static void mix(long seed) {
        Random random = new Random(seed);
        List<String> words = new ArrayList<>();
        for (int i = 0; i < 2000; i++) words.add(Integer.toString(random.nextInt(), 36));
        Collections.sort(words);
        Map<String, Integer> hash = new HashMap<>();
        Map<String, Integer> tree = new TreeMap<>();
        for (String word : words) {
            hash.merge(word.substring(0, 2), word.length(), Integer::sum);
            tree.merge(word.substring(0, 2), word.length(), Integer::sum);
        }
        Map<Integer, List<String>> grouped =
            words.stream().filter(w -> w.length() > 3).collect(Collectors.groupingBy(String::length));
        int[] numbers = IntStream.range(0, 5000).map(i -> random.nextInt()).toArray();
        Arrays.sort(numbers);
        StringBuilder text = new StringBuilder();
        words.forEach(w -> text.append(w).append(','));
        sink += hash.hashCode() + tree.hashCode() + grouped.size() + numbers[17] + text.toString().hashCode()
            + deep(60, seed + 1_000_000) + (long) (Math.sin(seed) * 100) + text.indexOf("zzzz");
    }

    static long deep(int depth, long x) {
        if (depth == 0) return leaf(x);
        IntUnaryOperator plus = i -> i + 1;
        return deep(depth - 1, x + plus.applyAsInt(depth)) + 1;
    }

    static long leaf(long x) {
        byte[] bytes = new byte[64];
        int steps = x <= 500_000 ? 2_000_000 : 20_000;
        for (int i = 0; i < steps; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            bytes[(int) (x >>> 58)]++;
        }
        return x + Arrays.hashCode(bytes);
    }

    static void thrown(int depth) {
        try {
            falls(depth);
        } catch (IllegalStateException e) {
            sink += e.getStackTrace().length;
        }
    }

    static void falls(int depth) {
        if (depth == 0) throw new IllegalStateException("at the bottom");
        try {
            falls(depth - 1);
        } finally {
            sink++;
        }
    }

    static void reflect() {
        try {
            java.lang.reflect.Method method = Walk.class.getDeclaredMethod("leaf", long.class);
            for (int i = 0; i < 50; i++) sink += (Long) method.invoke(null, 1_000_000L + i);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    interface Shape { double area(); }

    static void deopt(long round) {
        // Classes that the compiled code has not seen, so that it is thrown away again and again.
        Shape[] shapes = new Shape[1000];
        for (int i = 0; i < shapes.length; i++) {
            double side = i;
            switch ((int) ((round / 200 + (i == 999 ? 1 : 0)) % 4)) {
                case 0: shapes[i] = () -> side; break;
                case 1: shapes[i] = () -> side * side; break;
                case 2: shapes[i] = () -> side + 1; break;
                default: shapes[i] = () -> Math.sqrt(side);
            }
        }
        double sum = 0;
        for (Shape shape : shapes) sum += shape.area();
        sink += (long) sum + deep(20, round + 1_000_000);
    }
}
