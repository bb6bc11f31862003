// A chain of calls that the test's flags inline. Comments mark the lines: `Chain.x>y` calls y from x.
public class Chain {
    static volatile int sink;
    static int d(int x) {
        int s = x; // in d
        for (int i = 0; i < 100000; i++) { // in d
            s = s * 31 + (s >>> 7) + i; // in d
        }
        return s; // in d
    }
    static int c(int x) {
        int y = x + 1; // in c
        return d(y) ^ 5; // c>d
    }
    static int b(int x) {
        if (x == 77777) return 1; // in b
        return c(x) + 3; // b>c
    }
    static int a(int x) {
        int y = b(x); // a>b
        return y * 7 + e(y); // a>e
    }
    static int e(int x) {
        int s = x; // in e
        for (int i = 0; i < 50000; i++) s += s << 3 ^ i; // in e
        return s; // in e
    }
    static int run(int x) {
        int s = 0; // in run
        for (int i = 0; i < 10; i++) { // in run
            s += a(x + i); // run>a
        }
        return s; // in run
    }
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2000; i++) sink = run(i);
        System.out.println("ready");
        while (true) sink = run(sink);
    }
}
