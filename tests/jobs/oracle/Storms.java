import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.LongUnaryOperator;

/** Classes made by the thousand: a compiled class file whose {@code 000000} becomes a number, each in a loader of its own. */
final class Made extends ClassLoader {
    private static final byte[] ZEROS = "000000".getBytes(StandardCharsets.US_ASCII);

    private Made() {
        super(Made.class.getClassLoader());
    }

    /** The class file of a template. */
    static byte[] template(String name) {
        try (InputStream in = Made.class.getResourceAsStream(name + ".class")) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            for (int b = in.read(); b >= 0; b = in.read()) {
                out.write(b);
            }
            return out.toByteArray();
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** An object of the class that the template becomes with this number in its name and its methods' names. */
    static Object number(byte[] template, int number) {
        byte[] digits = String.format("%06d", number).getBytes(StandardCharsets.US_ASCII);
        byte[] bytes = template.clone();
        for (int at = 0; at + ZEROS.length <= bytes.length; at++) {
            boolean here = true;
            for (int i = 0; i < ZEROS.length; i++) {
                here &= template[at + i] == ZEROS[i];
            }
            if (here) {
                System.arraycopy(digits, 0, bytes, at, digits.length);
            }
        }
        try {
            Class<?> made = new Made().defineClass(null, bytes, 0, bytes.length);
            java.lang.reflect.Constructor<?> constructor = made.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }
}

/** Overrides what {@link Deopt} calls, and is never called. */
class Shape000000 extends Deopt.Shape {
    public Shape000000() {}

    @Override
    public long work(long x) {
        return x + 1;
    }
}

/**
 * A storm of deoptimisation: compiled callers hold that nothing overrides {@link Shape#work}, and every few
 * milliseconds a class is loaded that does. The stack is the same all the time.
 */
final class Deopt implements Oracle.Body {
    private static final int MOST = 20_000;
    private static final long EVERY_MS = 5;
    private final Shape shape = new Shape();

    Deopt() {
        Thread storm = new Thread(Deopt::storm, "storm");
        storm.setDaemon(true);
        storm.start();
    }

    /** Apart from the thread whose stack is told. */
    private static void storm() {
        byte[] template = Made.template("Shape000000");
        for (int number = 1; number < MOST && (number == 1 || System.currentTimeMillis() < Oracle.deadline); number++) {
            Made.number(template, number);
            try {
                Thread.sleep(EVERY_MS);
            } catch (InterruptedException ended) {
                return;
            }
        }
    }

    /** Public, as its subclasses are of other loaders and so of other packages. */
    public static class Shape {
        /** Works. */
        public long work(long x) {
            return Oracle.leaf(x);
        }
    }

    @Override
    public long once(long x) {
        return through(shape, x);
    }

    private static long through(Shape shape, long x) {
        return again(shape, x) ^ 1;
    }

    private static long again(Shape shape, long x) {
        return shape.work(x) + 1;
    }
}

/**
 * A storm of unloading: class after class is made, works for some milliseconds in methods that carry its number,
 * and is forgotten. Tells every so often {@code storm NUMBER MILLISECONDS}, so that one knows which may be seen when.
 */
final class Unload implements Oracle.Body {
    private static final long NANOS = 4_500_000;
    private final byte[] template = Made.template("Storm000000");
    private int number;

    @Override
    public long once(long x) {
        if (number % 10 == 0) {
            System.out.println("storm " + number + " " + System.currentTimeMillis());
        }
        if (number % 500 == 0) {
            System.gc();
        }
        LongUnaryOperator made = (LongUnaryOperator) Made.number(template, number++);
        long end = System.nanoTime() + NANOS;
        do {
            x = made.applyAsLong(x);
        } while (System.nanoTime() < end);
        return x;
    }
}

/** A class of the storm of unloading. */
class Storm000000 implements LongUnaryOperator {
    public Storm000000() {}

    @Override
    public long applyAsLong(long x) {
        return burn000000(12, x);
    }

    private static long burn000000(int depth, long x) {
        if (depth > 0) {
            return burn000000(depth - 1, x) + 1;
        }
        for (int i = 0; i < 20_000; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }
}
