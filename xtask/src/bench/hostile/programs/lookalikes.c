/* lookalikes SECONDS COUNT LIBRARY...: COUNT processes, each of which maps one of the libraries, in turn, as a JVM has
 * libjvm.so, calls nothing in it, and burns a little CPU. */
#include "hostile.h"

static void process(const char *library) {
    int file = open(library, O_RDONLY);
    struct stat found;
    if (file < 0 || fstat(file, &found)) _exit(2);
    if (mmap(0, found.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) _exit(3);
    for (;;) {
        burn(0.01);
        usleep(1000000);
    }
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60, count = argc > 2 ? atoi(argv[2]) : 300, made = 0;
    for (; argc > 3 && made < count; made++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (!pid) {
            end_with_parent();
            process(argv[3 + made % (argc - 3)]);
        }
    }
    fact("processes", made);
    sleep(seconds);
    return 0;
}
