/** Burns CPU thirty calls deep, in a thread of its own; tests/layouts.rs names the class after the process it is in. */
public class Turns {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(Turns::work, "worker");
        worker.start();
        worker.join();
    }

    static void work() {
        for (long round = 0; ; round++) sink += turn(30, round);
    }

    static long turn(int depth, long x) {
        return depth == 0 ? burn(x) : turn(depth - 1, x + depth) + 1;
    }

    static long burn(long x) {
        for (int i = 0; i < 200_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
}
