import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.zip.CRC32;

/**
 * Intrinsics that stand in loops of inlined methods, each in a thread of its own: of every hundred rounds' work seventy are
 * in {@code seven} and thirty in {@code three}, which do the same over the same data and differ in how often. Source level 8.
 * Let C2 inline them with {@code -XX:CompileCommand=inline,Intrinsics*::*}.
 *
 * Prints {@code ready} when each has run for a while; then runs until it is killed.
 */
public final class Intrinsics {
    /** Rounds after which all is compiled. */
    private static final int WARM = 200;
    private static final long AT_LEAST_MS = 3_000;

    static final double[] T = new double[64];
    static final byte[] FROM = new byte[8192];
    static final byte[] TO = new byte[8192];
    static final Object[] OBJECTS = new Object[2048];
    static final Object[] COPIES = new Object[2048];
    static final String[] TEXTS = new String[64];
    static final BigInteger[] NUMBERS = new BigInteger[64];

    private Intrinsics() {}

    /** One of the threads. */
    abstract static class Worker implements Runnable {
        volatile long rounds;
        volatile double sink;
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 64; i++) {
            T[i] = 0.3 + i * 0.037;
            TEXTS[i] = new String(new char[400 + i]).replace('\0', 'a') + "needle";
            NUMBERS[i] = BigInteger.ONE.shiftLeft(3000 + i).subtract(BigInteger.TEN);
        }
        java.util.Arrays.fill(OBJECTS, "object");
        Worker[] all = {
            new Sin(), new Cos(), new Tan(), new Exp(), new Log(), new Log10(), new Pow(), new Cbrt(), new
            Fmod(), new BytesCopied(), new ObjectsCopied(), new Filled(), new Crc(), new Compared(), new
            Found(), new Multiplied(), new Digested(), new Encrypted(),
        };
        for (Worker worker : all) {
            Thread thread = new Thread(worker, worker.getClass().getSimpleName());
            thread.setDaemon(true);
            thread.start();
        }
        long begun = System.currentTimeMillis();
        for (Worker worker : all) {
            while (worker.rounds < WARM || System.currentTimeMillis() < begun + AT_LEAST_MS) {
                Thread.sleep(20);
            }
        }
        System.out.println("ready");
        Thread.sleep(3_600_000);
    }

    static final class Sin extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.sin(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.sin(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Cos extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.cos(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.cos(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Tan extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.tan(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.tan(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Exp extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.exp(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.exp(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Log extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.log(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.log(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Log10 extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.log10(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.log10(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Pow extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.pow(T[i & 63], 1.7);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.pow(T[i & 63], 1.7);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Cbrt extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += Math.cbrt(T[i & 63]);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += Math.cbrt(T[i & 63]);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Fmod extends Worker {
        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += T[i & 63] % 1.7;
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += T[i & 63] % 1.7;
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class BytesCopied extends Worker {
        static double once(int i) {
            System.arraycopy(FROM, i & 7, TO, 3, 4000 + (i & 63));
            return TO[5];
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class ObjectsCopied extends Worker {
        static double once(int i) {
            System.arraycopy(OBJECTS, i & 7, COPIES, 3, 1500 + (i & 63));
            return COPIES[5] == null ? 0 : 1;
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Filled extends Worker {
        static double once(int i) {
            java.util.Arrays.fill(TO, i & 7, 4000 + (i & 63), (byte) i);
            return TO[9];
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Crc extends Worker {
        static final CRC32 SUM = new CRC32();

        static double once(int i) {
            SUM.update(FROM, i & 7, 4000 + (i & 63));
            return SUM.getValue();
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Compared extends Worker {
        static double once(int i) {
            return TEXTS[i & 63].compareTo(TEXTS[i + 1 & 63]);
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Found extends Worker {
        static double once(int i) {
            return TEXTS[i & 63].indexOf("needle");
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 512; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Multiplied extends Worker {
        static double once(int i) {
            return NUMBERS[i & 63].multiply(NUMBERS[i + 1 & 63]).signum();
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Digested extends Worker {
        static final MessageDigest DIGEST = sha();

        static MessageDigest sha() {
            try {
                return MessageDigest.getInstance("SHA-256");
            } catch (java.security.NoSuchAlgorithmException never) {
                throw new IllegalStateException(never);
            }
        }

        static double once(int i) {
            DIGEST.update(FROM, i & 7, 4096);
            return i;
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }

    static final class Encrypted extends Worker {
        static final javax.crypto.Cipher CIPHER = aes();

        static javax.crypto.Cipher aes() {
            try {
                javax.crypto.Cipher cipher = javax.crypto.Cipher.getInstance("AES/CBC/NoPadding");
                cipher.init(javax.crypto.Cipher.ENCRYPT_MODE, new javax.crypto.spec.SecretKeySpec(new byte[16], "AES"));
                return cipher;
            } catch (java.security.GeneralSecurityException never) {
                throw new IllegalStateException(never);
            }
        }

        static final byte[] OUT = new byte[8192];

        static double once(int i) {
            try {
                return CIPHER.update(FROM, (i & 7) * 16, 4096, OUT);
            } catch (javax.crypto.ShortBufferException never) {
                throw new IllegalStateException(never);
            }
        }

        static double seven() {
            double s = 0;
            for (int i = 0; i < 7 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        static double three() {
            double s = 0;
            for (int i = 0; i < 3 * 8; i++) {
                s += once(i);
            }
            return s;
        }

        @Override
        public void run() {
            while (true) {
                sink = seven() + three();
                rounds++;
            }
        }
    }
}
