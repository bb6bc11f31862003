/* drivers SECONDS COUNT: COUNT processes that look like drivers by their words and variables, and sleep. The names of their
 * applications come before all others'. The program's file has to be called java. */
#include "hostile.h"

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "org.apache.spark.deploy.SparkSubmit")) {
        for (;;) pause();
    }
    int seconds = argc > 1 ? atoi(argv[1]) : 60, count = argc > 2 ? atoi(argv[2]) : 300, made = 0;
    for (; made < count; made++) {
        pid_t pid = fork();
        if (pid < 0) break;
        if (!pid) {
            char app[64];
            end_with_parent();
            snprintf(app, sizeof app, "aaa-%04d", made);
            setenv("SPARK_APPLICATION_ID", app, 1);
            setenv("SPARK_DRIVER_BIND_ADDRESS", "127.0.0.1", 1);
            execl("/proc/self/exe", "java", "org.apache.spark.deploy.SparkSubmit", "x.jar", (char *)0);
            _exit(2);
        }
    }
    fact("processes", made);
    sleep(seconds);
    return 0;
}
