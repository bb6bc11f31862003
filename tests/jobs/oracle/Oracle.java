import java.security.AccessController;
import java.security.MessageDigest;
import java.security.PrivilegedAction;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32;

/**
 * Programs whose stack is known: each works in a thread of its own, {@code oracle NAME}, and tells the stacks it
 * works in, as {@code Throwable} sees them in that thread at that place. Source level 8; needs nothing.
 *
 * Arguments: seconds that each program is measured, the step of the clock in milliseconds on which this begins,
 * then names of {@link Programs}. Prints for each {@code fact NAME.started=} and {@code NAME.ended=} (Unix
 * milliseconds: between them it is warm and does nothing else), {@code NAME.match=} (see {@link Programs}) and the
 * stacks as {@code stack NAME a.B.c;d.E.f}, outermost first; {@code fact NAME.skipped=WHY} where this JVM cannot.
 *
 * Run with {@code -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames}, so that nothing is left out.
 */
public final class Oracle {
    /** A call of {@link #leaf} takes tens of milliseconds, and what leads there next to nothing. */
    static final int STEPS = 20_000_000;
    private static final long WARM_UP_MS = 2500;
    private static final long LATE_MS = 100;
    private static final int MOST_STACKS = 500;

    private static final Set<String> stacks = new LinkedHashSet<>();
    private static int calls;
    /** When the running program ends, for those that are called once. */
    static volatile long deadline;
    static volatile long sink;

    private Oracle() {}

    /** What a program does again and again. */
    interface Body {
        long once(long x) throws Throwable;
    }

    public static void main(String[] args) throws Exception {
        long millis = Long.parseLong(args[0]) * 1000;
        long step = Long.parseLong(args[1]);
        for (int i = 2; i < args.length; i++) {
            String name = args[i];
            Body body = Programs.body(name);
            if (body == null) {
                fact(name + ".skipped", "this JVM has no virtual threads");
                continue;
            }
            stacks.clear();
            Thread thread = new Thread(() -> measure(name, body, millis, step), "oracle " + name);
            thread.start();
            thread.join();
        }
        fact("done", "yes");
        while (System.in.read() >= 0) { }
        Thread.sleep(3_600_000);
    }

    private static void measure(String name, Body body, long millis, long step) {
        long begin = border(System.currentTimeMillis() + WARM_UP_MS, step);
        try {
            if (!Programs.runsOnce(name)) {
                drive(body, begin);
                // The first calls may have taken longer than the warm-up. What comes until the next border is the same work.
                if (System.currentTimeMillis() > begin + LATE_MS) {
                    begin = border(System.currentTimeMillis(), step);
                }
            }
            fact(name + ".started", begin);
            drive(body, begin + millis);
        } catch (Throwable problem) {
            fact(name + ".failed", problem);
            return;
        }
        synchronized (stacks) {
            stacks.forEach(stack -> System.out.println("stack " + name + " " + stack));
        }
        fact(name + ".match", Programs.match(name));
        fact(name + ".ended", begin + millis);
    }

    private static long border(long millis, long step) {
        return millis / step * step + step;
    }

    private static void drive(Body body, long until) throws Throwable {
        deadline = until;
        calls = 0;
        long x = until;
        while (System.currentTimeMillis() < until) {
            x = body.once(x);
        }
        sink = x;
    }

    static void fact(String name, Object value) {
        System.out.println("fact " + name + "=" + value);
        System.out.flush();
    }

    /** Whether to tell the stack: ever less often. */
    static boolean due() {
        int n = ++calls;
        return (n & (n - 1)) == 0;
    }

    /** Tells the caller's stack. */
    static void note() {
        StackTraceElement[] trace = new Throwable().getStackTrace();
        StringBuilder text = new StringBuilder();
        for (int i = trace.length - 1; i > 0; i--) {
            text.append(trace[i].getClassName()).append('.').append(trace[i].getMethodName());
            text.append(i > 1 ? ";" : "");
        }
        synchronized (stacks) {
            if (stacks.size() < MOST_STACKS) {
                stacks.add(text.toString());
            }
        }
    }

    /** Where most programs work: a loop without a call. */
    static long leaf(long x) {
        if (due()) {
            note();
        }
        for (int i = 0; i < STEPS; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            x ^= x >>> 29;
        }
        return x;
    }
}

/**
 * The programs by name, and how the stack of a sample compares with those told: {@code whole}, or with words of
 * {@code jdk} (it may go on in methods of the JDK), {@code prefix} (it may end early: frames come and go all the
 * time), {@code tail} (a carrier thread's frames come before), {@code gap} (frames that are frozen may lack), {@code none} (other figures are taken of it).
 */
final class Programs {
    private static final byte[] FROM = new byte[256 * 1024];
    private static final byte[] TO = new byte[256 * 1024];
    private static final String LEFT = new String(new char[50_000]).replace('\0', 'a') + "b";
    private static final String RIGHT = new String(new char[50_000]).replace('\0', 'a') + "c";
    private static final Comparator<Long> COMPARES = (a, b) -> {
        Oracle.leaf(a);
        return Long.compare(a, b);
    };

    private static final ClassNotFoundException NOTHING = new ClassNotFoundException("nothing");
    private static final ClassLoader FINDS_NOTHING = new ClassLoader(null) {
        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            Oracle.sink = Oracle.leaf(Oracle.sink);
            throw NOTHING;
        }
    };

    private Programs() {}

    static String match(String name) {
        switch (name) {
            case "copy": case "crc": case "strings": case "digest": case "maths": case "allocate":
                return "jdk";
            case "exceptions":
                return "prefix jdk";
            case "virtual":
                return "tail";
            case "thaw":
                return "tail gap jdk";
            case "split": case "line": case "sweep": case "unload":
                return "none";
            default:
                return "whole";
        }
    }

    /** Whether the first call lasts to the end: its warm-up is its beginning. */
    static boolean runsOnce(String name) {
        return name.equals("initialiser") || name.equals("osr");
    }

    static Oracle.Body body(String name) throws Exception {
        if (name.startsWith("deep")) {
            int depth = Integer.parseInt(name.substring(4));
            return x -> down(depth, x);
        }
        switch (name) {
            case "lambdas": return lambdas();
            case "streams": return x -> Arrays.stream(new long[] {x, 2, 3}).map(y -> y + 1).map(Oracle::leaf).sum();
            case "inlined": return Programs::first;
            case "reflect": return reflect();
            case "privileged": return Programs::privileged;
            case "sort": return Programs::sort;
            case "initialiser": return x -> Initialiser.VALUE + x;
            case "loader": return Programs::load;
            case "osr": return Programs::osr;
            case "copy": return Programs::copy;
            case "crc": return Programs::crc;
            case "strings": return Programs::strings;
            case "digest": return Programs::digest;
            case "maths": return Programs::maths;
            case "allocate": return Programs::allocate;
            case "exceptions": return Programs::exceptions;
            case "deopt": return new Deopt();
            case "virtual": return Virtual.of(x -> down(30, x));
            case "thaw": return Virtual.of(x -> rest(40, x));
            case "split": return Known::split;
            case "line": return Known::hot;
            case "unload": return new Unload();
            case "sweep": return new Sweep();
            default: throw new IllegalArgumentException("no program " + name);
        }
    }

    static long down(int depth, long x) {
        return depth == 0 ? Oracle.leaf(x) : down(depth - 1, x) + 1;
    }

    /** Lets go of its carrier at the bottom, so that few frames are back on the stack while it works. */
    static long rest(int depth, long x) {
        if (depth > 0) {
            return rest(depth - 1, x) + 1;
        }
        if (Oracle.due()) {
            Oracle.note();
        }
        LockSupport.parkNanos(100_000);
        return Oracle.leaf(x);
    }

    private static Oracle.Body lambdas() {
        LongUnaryOperator made = Oracle::leaf;
        for (int i = 0; i < 8; i++) {
            LongUnaryOperator inner = made;
            made = i % 2 == 0 ? x -> inner.applyAsLong(x) + 1 : inner.andThen(y -> y ^ 1);
        }
        LongUnaryOperator all = made;
        return x -> all.applyAsLong(x);
    }

    static long first(long x) {
        return second(x) + 1;
    }

    static long second(long x) {
        return third(x) ^ 3;
    }

    static long third(long x) {
        return Oracle.leaf(x) + 5;
    }

    private static Oracle.Body reflect() throws Exception {
        java.lang.reflect.Method leaf = Oracle.class.getDeclaredMethod("leaf", long.class);
        return x -> (Long) leaf.invoke(null, x);
    }

    @SuppressWarnings({"deprecation", "removal"})
    static long privileged(long x) {
        return AccessController.doPrivileged((PrivilegedAction<Long>) () -> Oracle.leaf(x));
    }

    static long sort(long x) {
        Long[] two = {x, x + 1};
        Arrays.sort(two, COMPARES);
        return two[0];
    }

    /** The JVM calls a loader, which works and finds nothing. */
    static long load(long x) {
        try {
            Class.forName("is.not.There", false, FINDS_NOTHING);
        } catch (ClassNotFoundException expected) {
            return x + 1;
        }
        return x;
    }

    static long osr(long x) {
        Oracle.note();
        while (System.currentTimeMillis() < Oracle.deadline) {
            for (int i = 0; i < Oracle.STEPS; i++) {
                x = x * 6364136223846793005L + 1442695040888963407L;
                x ^= x >>> 29;
            }
        }
        return x;
    }

    static long copy(long x) {
        if (Oracle.due()) {
            Oracle.note();
        }
        for (int i = 0; i < 1000; i++) {
            System.arraycopy(FROM, (int) (x + i & 7), TO, 3, FROM.length - 16);
        }
        return x + TO[5];
    }

    static long crc(long x) {
        if (Oracle.due()) {
            Oracle.note();
        }
        CRC32 sum = new CRC32();
        for (int i = 0; i < 500; i++) {
            sum.update(FROM, 0, FROM.length);
        }
        return x + sum.getValue();
    }

    static long strings(long x) {
        if (Oracle.due()) {
            Oracle.note();
        }
        for (int i = 0; i < 5000; i++) {
            x += LEFT.compareTo(RIGHT);
        }
        return x;
    }

    static long digest(long x) throws Exception {
        if (Oracle.due()) {
            Oracle.note();
        }
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int i = 0; i < 20; i++) {
            digest.update(FROM);
        }
        return x + digest.digest()[0];
    }

    static long maths(long x) {
        if (Oracle.due()) {
            Oracle.note();
        }
        double y = x;
        for (int i = 0; i < 100_000; i++) {
            y = Math.sin(y) + Math.pow(1.0001, y) + Math.log(y + 3);
        }
        return (long) (y * 1000);
    }

    static long allocate(long x) {
        if (Oracle.due()) {
            Oracle.note();
        }
        Object[] kept = new Object[1000];
        for (int i = 0; i < 200_000; i++) {
            kept[i % kept.length] = new Object[] {kept[(i * 7) % kept.length == 0 ? 1 : 0], new int[5]};
            ((Object[]) kept[i % kept.length])[0] = null;
        }
        return x + kept.hashCode();
    }

    static long exceptions(long x) {
        for (int i = 0; i < 50; i++) {
            try {
                x = thrower(40, x);
            } catch (IllegalStateException thrown) {
                x += thrown.getMessage().length();
            }
        }
        return x;
    }

    private static long thrower(int depth, long x) {
        if (depth > 0) {
            return thrower(depth - 1, x) + 1;
        }
        if (Oracle.due()) {
            Oracle.note();
        }
        throw new IllegalStateException("thrown");
    }

    /** Works while it is being initialised: Java called from the JVM, which Java called. */
    static final class Initialiser {
        static final long VALUE;

        static {
            long x = 1;
            while (System.currentTimeMillis() < Oracle.deadline) {
                x = Oracle.leaf(x);
            }
            VALUE = x;
        }

        private Initialiser() {}
    }
}

/** A body run in a virtual thread, where the JVM has them (21 and newer). */
final class Virtual {
    private Virtual() {}

    static Oracle.Body of(Oracle.Body body) throws Exception {
        java.lang.reflect.Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException none) {
            return null;
        }
        return x -> {
            Thread thread = (Thread) start.invoke(null, (Runnable) () -> work(body, x));
            thread.join();
            return x + 1;
        };
    }

    private static void work(Oracle.Body body, long x) {
        try {
            while (System.currentTimeMillis() < Oracle.deadline) {
                x = body.once(x);
            }
        } catch (Throwable problem) {
            throw new IllegalStateException(problem);
        }
        Oracle.sink = x;
    }
}
