/* timer FROM UNTIL PID...: how many samples of each process the kernel's clock of a CPU (PERF_COUNT_SW_CPU_CLOCK) takes from
 * one Unix millisecond to another, without any profiler: what a daemon's samples are compared with where they are not as
 * /proc has it. In the end a fact `PID=SECONDS` for each. */
#include "hostile.h"
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* A prime, so that it keeps no step with ticks. Of a CPU's samples, each 16 bytes, 512 pages hold four minutes. */
#define HZ 499
#define PAGES 512

static void sleep_until(long ms) {
    struct timespec then = {ms / 1000, ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &then, 0)) {}
}

int main(int argc, char **argv) {
    long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
    struct sched_param first = {1};
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = 1000000000 / HZ, .sample_type = PERF_SAMPLE_TID, .disabled = 1};
    int fds[cpus];
    char *rings[cpus];
    if (argc < 4) return 2;
    sched_setscheduler(0, SCHED_FIFO, &first);
    for (long cpu = 0; cpu < cpus; cpu++) {
        fds[cpu] = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fds[cpu] < 0) continue; /* A CPU that is off. */
        rings[cpu] = mmap(0, page * (1 + PAGES), PROT_READ | PROT_WRITE, MAP_SHARED, fds[cpu], 0);
        if (rings[cpu] == MAP_FAILED) return 1;
    }
    fact("ready", 1);
    sleep_until(atol(argv[1]));
    for (long cpu = 0; cpu < cpus; cpu++) ioctl(fds[cpu], PERF_EVENT_IOC_ENABLE, 0);
    sleep_until(atol(argv[2]));
    for (long cpu = 0; cpu < cpus; cpu++) ioctl(fds[cpu], PERF_EVENT_IOC_DISABLE, 0);
    for (int i = 3; i < argc; i++) {
        uint32_t pid = atol(argv[i]);
        long samples = 0;
        for (long cpu = 0; cpu < cpus; cpu++) {
            if (fds[cpu] < 0) continue;
            uint64_t end = ((struct perf_event_mmap_page *)rings[cpu])->data_head;
            struct perf_event_header *record;
            for (uint64_t at = 0; at < end && at < (uint64_t)page * PAGES; at += record->size) {
                record = (void *)(rings[cpu] + page + at);
                if (!record->size) break;
                if (record->type == PERF_RECORD_SAMPLE) samples += *(uint32_t *)(record + 1) == pid;
            }
        }
        printf("fact %u=%.3f\n", pid, (double)samples / HZ);
    }
    return 0;
}
