/* large SECONDS CODE FUNCTIONS FILE..: a process for each library, which runs all its FUNCTIONS, CODE bytes from one to the next,
 * in another order each time: of each another part of the tables and another name is wanted. */
#include "hostile.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int seconds = atoi(argv[1]), made = 0;
    long code = atol(argv[2]), functions = atol(argv[3]);
    for (int i = 4; i < argc; i++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (!pid) {
            end_with_parent();
            void *library = dlopen(argv[i], RTLD_NOW);
            char *first = library ? dlsym(library, "large_code") : 0;
            uint64_t state = i;
            while (first) ((void (*)(void))(first + drawn(&state) % functions * code))();
            _exit(1);
        }
        made++;
    }
    fact("processes", made);
    sleep(seconds);
    return 0;
}
