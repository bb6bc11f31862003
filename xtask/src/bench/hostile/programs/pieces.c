/* pieces SECONDS COUNT [FILE]: COUNT processes with 8,192 executable mappings each, which a profiler may keep. They are pages of
 * FILE, or of memory, the last one first: so the kernel joins none to its neighbour. Each process burns a little CPU. */
#include "hostile.h"

#define PIECES 8192L

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60, count = argc > 2 ? atoi(argv[2]) : 300, made = 0;
    int file = argc > 3 ? open(argv[3], O_RDONLY) : memfd_create("code", 0);
    if (file < 0 || (argc <= 3 && ftruncate(file, PIECES * 4096))) return 2;
    char *at = mmap(0, PIECES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 3;
    long pieces = 0;
    for (; pieces < PIECES; pieces++)
        if (mmap(at + pieces * 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
                 (PIECES - 1 - pieces) * 4096) == MAP_FAILED)
            break;
    fact("pieces", pieces);
    for (; made < count; made++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (!pid) {
            end_with_parent();
            for (;;) {
                burn(0.01);
                usleep(1000000);
            }
        }
    }
    fact("processes", made);
    sleep(seconds);
    return 0;
}
