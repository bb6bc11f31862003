/* mapper SECONDS FILE...: maps the second page of each file as code and runs it, 5 ms at a time, in turn. The page has
 * a function that counts its argument down. */
#include "hostile.h"

int main(int argc, char **argv) {
    double until = now() + (argc > 1 ? atoi(argv[1]) : 60);
    void (*code[4096])(unsigned long);
    long files = 0;
    for (int i = 2; i < argc && files < 4096; i++) {
        int file = open(argv[i], O_RDONLY);
        void *at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 4096);
        if (file >= 0) close(file);
        if (at != MAP_FAILED) code[files++] = (void (*)(unsigned long))at;
    }
    fact("files", files);
    if (!files) return 2;
    while (now() < until)
        for (long i = 0; i < files; i++)
            for (double end = now() + 0.005; now() < end;) code[i](100000);
    return 0;
}
