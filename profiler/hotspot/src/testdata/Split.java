// Pairs of methods that do the same work in the same time, so that each has half of it, however they are
// compiled: loops that are inlined, short ones without a poll, and methods without a loop called in turn.
public class Split {
    static volatile int sink;
    static int[] data = new int[4096];

    static int loopA(int x) {
        for (int i = 0; i < 200000; i++) x = x * 31 + (x >>> 7) + i;
        return x;
    }
    static int loopB(int x) {
        for (int i = 0; i < 200000; i++) x = x * 31 + (x >>> 7) + i;
        return x;
    }
    static void loops() {
        int x = sink;
        x = loopA(x);
        x = loopB(x);
        sink = x;
    }

    static int shortA(int[] a, int x) {
        for (int i = 0; i < 900; i++) x = x * 31 + a[x & 2047] + i;
        return x;
    }
    static int shortB(int[] a, int x) {
        for (int i = 0; i < 900; i++) x = x * 31 + a[x & 2047] + i;
        return x;
    }
    static void shorts() {
        int x = sink;
        for (int i = 0; i < 200; i++) {
            x = shortA(data, x);
            x = shortB(data, x);
        }
        sink = x;
    }

    static int turnA(int[] a, int x) {
        x = x * 31 + a[x & 2047]; x = x * 33 + a[x & 1023]; x = x * 35 + a[x & 511]; x = x * 37 + a[x & 255];
        return x;
    }
    static int turnB(int[] a, int x) {
        x = x * 31 + a[x & 2047]; x = x * 33 + a[x & 1023]; x = x * 35 + a[x & 511]; x = x * 37 + a[x & 255];
        return x;
    }
    static void turns() {
        int x = sink;
        int[] a = data;
        for (int i = 0; i < 100000; i++) {
            x = turnA(a, x);
            x = turnB(a, x);
        }
        sink = x;
    }

    static void run(String which) {
        if (which.equals("loop")) loops();
        else if (which.equals("short")) shorts();
        else turns();
    }
    public static void main(String[] args) {
        for (int i = 0; i < data.length; i++) data[i] = i * 7919;
        for (int i = 0; i < 20000; i++) {
            run(args[0]);
            if (i > 3000 && args[0].equals("loop")) break;
        }
        System.out.println("ready");
        while (true) run(args[0]);
    }
}
