/* forks SECONDS fork|exec: as many short processes as there is time for, no more than 64 at once; with exec each runs
 * the program anew. */
#include "hostile.h"

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60, exec = argc > 2 && !strcmp(argv[2], "exec");
    if (argc > 2 && !strcmp(argv[2], "leaf")) {
        burn(0.003);
        return 0;
    }
    double until = now() + seconds;
    long begun = 0, alive = 0;
    while (now() < until) {
        pid_t pid = fork();
        if (!pid) {
            end_with_parent();
            if (exec) execl("/proc/self/exe", argv[0], "1", "leaf", (char *)0);
            burn(0.003);
            _exit(0);
        }
        if (pid > 0) begun++, alive++;
        while (alive > 0 && waitpid(-1, 0, alive < 64 && pid > 0 ? WNOHANG : 0) > 0) alive--;
        if (begun % 1000 == 0) fact("begun", begun);
    }
    fact("begun", begun);
    return 0;
}
