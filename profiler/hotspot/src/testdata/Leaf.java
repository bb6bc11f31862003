// Methods that the test's flags inline into one, each of which calls routines of its own that are no safepoints: which
// routine is called tells which method it is. Loops of fewer than 1000 rounds (LoopStripMiningIter) would have no poll.
public class Leaf {
    static final double[] T = new double[64];
    static final byte[] FROM = new byte[8192];
    static final byte[] TO = new byte[8192];
    static final java.util.zip.CRC32 SUM = new java.util.zip.CRC32();
    static volatile double sink;

    static double sines() {
        double s = 0;
        for (int i = 0; i < 4480; i++) s += Math.sin(T[i & 63]);
        return s;
    }
    static double cosines() {
        double s = 0;
        for (int i = 0; i < 1920; i++) s += Math.cos(T[i & 63]);
        return s;
    }
    static double exponents() {
        double s = 0;
        for (int i = 0; i < 3000; i++) s += Math.exp(T[i & 63]);
        return s;
    }
    static double powers() {
        double s = 0;
        for (int i = 0; i < 2000; i++) s += Math.pow(T[i & 63], 1.7);
        return s;
    }
    static double roots() {
        double s = 0;
        for (int i = 0; i < 2500; i++) s += Math.cbrt(T[i & 63]);
        return s;
    }
    static double copies() {
        double s = 0;
        for (int i = 0; i < 1800; i++) {
            System.arraycopy(FROM, i & 7, TO, 3, 70 + (i & 63));
            s += TO[5];
        }
        return s;
    }
    static double sums() {
        double s = 0;
        for (int i = 0; i < 1500; i++) {
            SUM.update(FROM, i & 7, 70 + (i & 63));
            s += SUM.getValue();
        }
        return s;
    }
    static double run() {
        return sines() + cosines() + exponents() + powers() + roots() + copies() + sums();
    }
    public static void main(String[] args) {
        for (int i = 0; i < T.length; i++) T[i] = 0.3 + i * 0.037;
        for (int i = 0; i < 1500; i++) sink = run();
        System.out.println("ready");
        while (true) sink = run();
    }
}
