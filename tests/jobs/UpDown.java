/** Java that calls C that calls Java, by JNI (tests/fixtures/updown.c): the argument is the library's path. */
public class UpDown {
    static volatile long sink;

    static native void around(int times);

    public static void main(String[] args) {
        System.load(args[0]);
        new Thread(() -> { while (true) around(10); }, "worker").start();
        System.out.println("ready");
    }

    static void back(long x) {
        sink += down(8, x);
    }

    static long down(int depth, long x) {
        if (depth > 0) return down(depth - 1, x + depth) + 1;
        for (int i = 0; i < 100_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
}
