/* What all attacks share: they end with the one who started them and after so many seconds, whatever happens. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

static inline double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

/* A child's first act. */
static inline void end_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) _exit(0);
}

static inline void burn(double seconds) {
    double until = now() + seconds;
    do {
        for (int i = 0; i < 20000; i++) sink += i;
    } while (now() < until);
}

/* The same numbers in each run (SplitMix64). */
static inline uint64_t drawn(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline void fact(const char *name, long value) {
    printf("fact %s=%ld\n", name, value);
    fflush(stdout);
}
