/* onfuse SECONDS DIR: neighbours whose files and memory are those of a file system that dies in a moment. One runs code
 * of a library there; one has its arguments in pages of a file there (`ps` waits for it, too). */
#include "hostile.h"
#include <dlfcn.h>

static void runs_a_library(const char *dir) {
    char path[4096];
    snprintf(path, sizeof path, "%s/lib.so", dir);
    void *library = dlopen(path, RTLD_NOW);
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "work") : 0;
    if (!work) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(2);
    }
    work();
    fact("library", 1);
    for (;;) work();
}

/* Its own arguments are on pages that are not its stack's last ones: the second is 64 KiB long. */
static void has_its_arguments_there(const char *dir, char *large) {
    char path[4096];
    snprintf(path, sizeof path, "%s/args", dir);
    int fd = open(path, O_RDONLY);
    char *from = (char *)(((uintptr_t)large + 4095) & ~4095UL), *until = (char *)(((uintptr_t)large + 65000) & ~4095UL);
    if (fd < 0 || mmap(from, until - from, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) _exit(3);
    fact("arguments", until - from);
    for (;;) burn(0.05), usleep(10000);
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    if (argc < 3) return 2;
    if (argc > 3) has_its_arguments_there(argv[2], argv[3]);
    if (!fork()) {
        end_with_parent();
        runs_a_library(argv[2]);
    }
    if (!fork()) {
        end_with_parent();
        char *large = malloc(65001);
        memset(large, 'x', 65000);
        large[65000] = 0;
        execl("/proc/self/exe", argv[0], argv[1], argv[2], large, (char *)0);
        _exit(4);
    }
    sleep(seconds);
    return 0;
}
