/* jvmlies SECONDS LIBJVM [FILE]: real JVMs that tell lies in the tables by which a profiler reads them: one process a
 * lie. The JVM itself never looks at these tables. With FILE, one whose lies lie in a page of that file. */
#include "hostile.h"
#include <dlfcn.h>

typedef struct { int version, options; void *list; char ignore; } Arguments;
typedef struct { const char *option; void *extra; } Option;

enum { ENDLESS, HUGE_COUNTS, LOOPS, LONG_NAMES, HUGE_OFFSETS, ANOTHERS_PAGE, LIES };

static void *library;
static uint64_t value(const char *name) {
    uint64_t *at = dlsym(library, name);
    return at ? *at : 0;
}
static void set(const char *name, uint64_t to) {
    uint64_t *at = dlsym(library, name);
    if (at) *at = to;
}

static void lie(int which, const char *file) {
    uint64_t stride = value("gHotSpotVMStructEntryArrayStride"), first = value("gHotSpotVMStructs");
    uint64_t type_at = value("gHotSpotVMStructEntryTypeNameOffset"), static_at = value("gHotSpotVMStructEntryIsStaticOffset");
    uint64_t offset_at = value("gHotSpotVMStructEntryOffsetOffset"), address_at = value("gHotSpotVMStructEntryAddressOffset");
    if (!stride || !first) _exit(4);
    long rows = 0;
    while (*(char **)(first + rows * stride + type_at)) rows++;
    fact("rows", rows);
    long room = which == ENDLESS ? 64 << 20 : (rows + 1) * stride;
    char *copy = mmap(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* 64 KB of words that hold the address of the first one, and so point at themselves. */
    uint64_t *loop = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED || loop == MAP_FAILED) _exit(5);
    for (int i = 0; i < 8192; i++) loop[i] = which == HUGE_COUNTS ? 0x7fffffff7fffffff : (uint64_t)loop;
    if (which == ANOTHERS_PAGE) {
        int fd = open(file, O_RDONLY);
        loop = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        if (loop == MAP_FAILED) _exit(6);
    }
    for (long at = 0; at + (long)stride <= room; at += stride) memcpy(copy + at, (char *)first + at / stride % rows * stride, stride);
    if (which != ENDLESS) memset(copy + rows * stride, 0, stride);
    char *name = 0;
    if (which == LONG_NAMES) {
        name = mmap(0, 1 << 28, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (name == MAP_FAILED) _exit(7);
        memset(name, 'n', 16 << 20);
    }
    for (long row = 0; which != ENDLESS && row < rows; row++) {
        char *entry = copy + row * stride;
        if (*(int *)(entry + static_at)) *(void **)(entry + address_at) = loop;
        else if (which == HUGE_OFFSETS) *(uint64_t *)(entry + offset_at) = 0x7ffffffffff0 + row;
        if (name && row % 3 == 0) *(char **)(entry + type_at) = name + row;
    }
    set("gHotSpotVMStructs", (uint64_t)copy);
    if (which == HUGE_COUNTS) set("gHotSpotVMTypeEntryArrayStride", 0), set("gHotSpotVMIntConstantEntryArrayStride", 1);
}

static void process(const char *libjvm, int which, const char *file) {
    library = dlopen(libjvm, RTLD_NOW);
    int (*create)(void **, void **, void *) = library ? (int (*)(void **, void **, void *))dlsym(library, "JNI_CreateJavaVM") : 0;
    if (!create) _exit(2);
    void *vm, *env;
    Option options[] = {{"-Xint", 0}, {"-Xmx32m", 0}, {"-XX:+UseSerialGC", 0}, {"-Xshare:auto", 0}};
    Arguments arguments = {0x00010008, 4, options, 1};
    /* Known to nobody before the lie is told. */
    lie(which, file);
    int made = create(&vm, &env, &arguments);
    fact("created", made);
    for (;;) burn(0.2), usleep(50000);
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    if (argc < 3) return 2;
    for (int which = 0; which < (argc > 3 ? LIES : ANOTHERS_PAGE); which++)
        if (!fork()) {
            end_with_parent();
            process(argv[2], which, argc > 3 ? argv[3] : 0);
        }
    fact("processes", argc > 3 ? LIES : ANOTHERS_PAGE);
    sleep(seconds);
    return 0;
}
