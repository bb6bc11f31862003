/* threads SECONDS COUNT LIBRARY SYMBOL: COUNT threads that give themselves names as Spark's tasks have them, again and
 * again: through the function that HotSpot calls for it, in LIBRARY at SYMBOL (hexadecimal, or a name that the library
 * exports), where a profiler of JVMs looks. Without a library by prctl alone.
 *
 * Most sleep for a second in between, so that each has a name of its own all the time; HASTY of them for half a
 * millisecond, which is more names than a thread or a user may have told. If all 16,000 slept for 70 ms as they did before,
 * their 230,000 wake-ups a second alone would stop two cores: two programs that only computed got 0.12 and 0.75 s of 15 s,
 * with no profiler on the machine. */
#include "hostile.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

static void (*rename_thread)(const char *);
static long renames;
#define HASTY 32

static void *thread(void *argument) {
    uint64_t state = (uint64_t)argument;
    int hasty = state <= HASTY;
    char name[160];
    for (;;) {
        unsigned number = drawn(&state) % 100000000;
        snprintf(name, sizeof name, "Executor task launch worker for task %u.0 in stage %u.0 (TID %u)", number % 1000,
                 number % 777, number);
        prctl(PR_SET_NAME, name);
        if (rename_thread) rename_thread(name);
        __sync_fetch_and_add(&renames, 1);
        for (int i = 0; i < 2000; i++) sink += i;
        usleep(hasty ? 500 : 500000 + number % 1000000);
    }
    return 0;
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    long count = argc > 2 ? atol(argv[2]) : 1000, made = 0;
    if (argc > 4) {
        void *library = dlopen(argv[3], RTLD_NOW);
        struct link_map *map = 0;
        if (!library) fprintf(stderr, "%s\n", dlerror());
        else if (!strncmp(argv[4], "0x", 2) && !dlinfo(library, RTLD_DI_LINKMAP, &map))
            rename_thread = (void (*)(const char *))(map->l_addr + strtoul(argv[4], 0, 16));
        else rename_thread = (void (*)(const char *))dlsym(library, argv[4]);
    }
    fact("through_the_library", rename_thread != 0);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32768);
    for (; made < count; made++) {
        pthread_t one;
        if (pthread_create(&one, &small, thread, (void *)(uintptr_t)(made + 1))) break;
    }
    fact("threads", made);
    for (int i = 0; i < seconds; i++) {
        sleep(1);
        fact("renames", renames);
    }
    return 0;
}
