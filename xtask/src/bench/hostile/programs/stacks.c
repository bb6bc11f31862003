/* stacks SECONDS: no two samples have the same stack. 4096 little functions, made at run time on x86-64 (as a JIT
 * would, without any table), call each other in an order drawn anew each time, a hundred deep. */
#include "hostile.h"

#define FUNCTIONS 4096
typedef void (*Stub)(void *);
static Stub stubs[FUNCTIONS];
static uint64_t state = 1;
static int depth;

NOINLINE static void step(void *self) {
    if (depth-- > 0) stubs[drawn(&state) % FUNCTIONS](self);
    else for (int i = 0; i < 30000; i++) sink += i;
    sink++;
}

#if defined(__x86_64__)
/* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
static const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x00, 0x00,
                                     0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

int main(int argc, char **argv) {
    double until = now() + (argc > 1 ? atoi(argv[1]) : 60);
    char *made = mmap(0, FUNCTIONS * 32, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return 2;
    for (int i = 0; i < FUNCTIONS; i++) memcpy(made + i * 32, code, sizeof code), stubs[i] = (Stub)(made + i * 32);
    if (mprotect(made, FUNCTIONS * 32, PROT_READ | PROT_EXEC)) return 3;
    __builtin___clear_cache(made, made + FUNCTIONS * 32);
    while (now() < until) depth = 100, step((void *)step);
    return 0;
}
