import java.util.Random;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Spends its time in the JDK's zlib, below Java, in two threads. */
public class Zip {
    static volatile long sink;

    public static void main(String[] args) {
        byte[] text = new byte[1 << 20];
        Random random = new Random(7);
        for (int i = 0; i < text.length; i++) text[i] = (byte) ('a' + random.nextInt(1 + i % 17));
        for (int i = 0; i < 2; i++) {
            boolean in = i == 0;
            new Thread(() -> { for (;;) sink += in ? squeeze(text) : swell(text); }, "worker").start();
        }
        System.out.println("ready");
    }

    static long squeeze(byte[] text) {
        Deflater deflater = new Deflater(6);
        deflater.setInput(text);
        deflater.finish();
        byte[] out = new byte[1 << 16];
        long all = 0;
        while (!deflater.finished()) all += deflater.deflate(out);
        deflater.end();
        return all;
    }

    static long swell(byte[] text) {
        Deflater deflater = new Deflater(1);
        deflater.setInput(text);
        deflater.finish();
        byte[] packed = new byte[2 << 20];
        int len = deflater.deflate(packed);
        deflater.end();
        long all = 0;
        byte[] out = new byte[1 << 16];
        for (int i = 0; i < 20; i++) {
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, len);
            try {
                while (!inflater.finished()) all += inflater.inflate(out);
            } catch (java.util.zip.DataFormatException e) {
                throw new IllegalStateException(e);
            }
            inflater.end();
        }
        return all;
    }
}
