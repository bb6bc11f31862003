/* mappings SECONDS PROCESSES: each has nearly as many mappings as the kernel allows, every second one executable, and
 * maps a page of code more every 150 ms while it burns CPU. */
#include "hostile.h"

static void process(void) {
    long most = 65530;
    FILE *limit = fopen("/proc/sys/vm/max_map_count", "r");
    if (limit) {
        if (fscanf(limit, "%ld", &most) != 1) most = 65530;
        fclose(limit);
    }
    if (most > 65530) most = 65530;
    long pages = most - 500;
    int file = memfd_create("code", 0);
    if (file < 0 || ftruncate(file, pages * 4096)) _exit(2);
    char *at = mmap(0, pages * 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) _exit(3);
    /* Neighbours of the same rights would be merged into one. */
    for (long i = 0; i < pages; i += 2)
        if (mprotect(at + i * 4096, 4096, PROT_READ)) break;
    fact("mappings", pages);
    for (;;) {
        void *more = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 4096);
        burn(0.15);
        if (more != MAP_FAILED) munmap(more, 4096);
    }
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60, processes = argc > 2 ? atoi(argv[2]) : 5;
    for (int i = 0; i < processes; i++)
        if (!fork()) {
            end_with_parent();
            process();
        }
    sleep(seconds);
    return 0;
}
