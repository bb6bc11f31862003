import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;

/**
 * Java that calls C that calls Java, by java.lang.foreign: `qsort` of the C library with a comparator, or the function
 * of tests/fixtures/updown.c in the library that the argument names.
 */
public class Upcalls {
    static volatile long sink;

    public static void main(String[] args) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandles.Lookup own = MethodHandles.lookup();
        Arena arena = Arena.global();
        boolean sorts = args[0].equals("qsort");
        SymbolLookup library = sorts ? linker.defaultLookup() : SymbolLookup.libraryLookup(Path.of(args[0]), arena);
        MethodHandle down;
        MemorySegment up;
        if (sorts) {
            down = linker.downcallHandle(library.find("qsort").get(),
                FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS));
            var type = MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class);
            var number = ADDRESS.withTargetLayout(JAVA_INT);
            up = linker.upcallStub(own.findStatic(Upcalls.class, "compare", type),
                FunctionDescriptor.of(JAVA_INT, number, number), arena);
        } else {
            down = linker.downcallHandle(library.find("updown_apply").get(),
                FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS));
            var type = MethodType.methodType(long.class, long.class);
            up = linker.upcallStub(own.findStatic(Upcalls.class, "back", type),
                FunctionDescriptor.of(JAVA_LONG, JAVA_LONG), arena);
        }
        Thread worker = new Thread(() -> {
            try {
                while (true) {
                    if (sorts) sort(arena, down, up);
                    else sink += (long) down.invokeExact(10L, up);
                }
            } catch (Throwable e) {
                throw new AssertionError(e);
            }
        }, "worker");
        worker.start();
        System.out.println("ready");
    }

    static final MemorySegment NUMBERS = Arena.global().allocate(JAVA_INT, 64);

    static void sort(Arena arena, MethodHandle down, MemorySegment up) throws Throwable {
        for (int i = 0; i < 64; i++) NUMBERS.setAtIndex(JAVA_INT, i, i * 7919 % 64);
        down.invokeExact(NUMBERS, 64L, 4L, up);
    }

    static int compare(MemorySegment a, MemorySegment b) {
        sink += burn(sink);
        return Integer.compare(a.get(JAVA_INT, 0), b.get(JAVA_INT, 0));
    }

    static long back(long x) {
        return burn(x) + 1;
    }

    static long burn(long x) {
        for (int i = 0; i < 100_000; i++) x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
}
