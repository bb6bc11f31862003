/* A library with a function that works, and the one by which HotSpot names its threads. */
static volatile unsigned long sink;
void work(void) {
    for (int i = 0; i < 1000000; i++) sink += i;
}
__attribute__((noinline)) void set_name(const char *name) __asm__("_ZN2os22set_native_thread_nameEPKc");
void set_name(const char *name) { sink += *name; }
