// Compiles many kinds of methods: arrays, strings, reflection, proxies, lambdas, intrinsics.
import java.lang.reflect.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;
public class Work {
    interface Shape { double area(int i); }
    public int called(int i) { return i * 31 + 7; }
    static volatile double sink;
    static double hot(int n) { double s = 0; for (int i = 0; i < n; i++) s += Math.sin(i) * Math.sqrt(i); return s; }
    static long sortSome(int n) { String[] a = new String[n]; for (int i = 0; i < n; i++) a[i] = "k" + (i * 7919 % n); Arrays.sort(a); return a[0].length(); }
    public static void main(String[] args) throws Exception {
        int seconds = args.length > 0 ? Integer.parseInt(args[0]) : 60;
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        Shape p = (Shape) Proxy.newProxyInstance(Work.class.getClassLoader(), new Class<?>[]{Shape.class}, (o, m, a) -> 1.5 * (Integer) a[0]);
        Method m = Work.class.getMethod("called", int.class);
        Work w = new Work();
        System.out.println("ready " + ProcessHandle.current().pid());
        while (System.nanoTime() < end) {
            sink += hot(2000);
            sink += sortSome(500);
            for (int i = 0; i < 200; i++) { sink += p.area(i); sink += (Integer) m.invoke(w, i); }
            sink += IntStream.range(0, 1000).mapToObj(i -> "x" + i).map(String::length).reduce(0, Integer::sum);
            Map<Integer, Integer> h = new HashMap<>(); for (int i = 0; i < 500; i++) h.merge(i % 50, 1, Integer::sum); sink += h.size();
        }
    }
}
