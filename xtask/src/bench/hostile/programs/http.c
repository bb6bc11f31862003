/* http SECONDS PORT SOCKET|- [TOKEN]: one who wants nobody else to get an answer, on TCP and on a Unix socket: idle
 * connections, headers a byte a second, patterns that compile into gigabytes, answers that are not read, wrong tokens,
 * headers without end, and hundreds of requests at once for what anybody may have, read a few bytes a second. With a token:
 * one who may ask. */
#include "hostile.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static int port;
static const char *path, *permitted = "";
static long statuses[600], refused;

static int dial(int turn) {
    int fd;
    if (path && turn % 2) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        strncpy(to.sun_path, path, sizeof to.sun_path - 1);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd >= 0 && !connect(fd, (void *)&to, sizeof to)) goto up;
    } else {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && !connect(fd, (void *)&to, sizeof to)) goto up;
    }
    if (fd >= 0) close(fd);
    __sync_fetch_and_add(&refused, 1);
    usleep(50000);
    return -1;
up:;
    struct timeval patience = {10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return fd;
}

static void ask(int turn, const char *target, const char *headers, int read_it) {
    char *text = 0, answer[4096];
    int fd = dial(turn), n, status = 0;
    if (fd < 0) return;
    if (asprintf(&text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", target, headers) < 0) _exit(1);
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) > 0) {
        if (!read_it) {
            sleep(5);
        } else if ((n = recv(fd, answer, sizeof answer - 1, 0)) > 12) {
            answer[n] = 0;
            status = atoi(answer + 9);
            while (recv(fd, answer, sizeof answer, 0) > 0) {}
        }
    }
    if (status > 0 && status < 600) __sync_fetch_and_add(&statuses[status], 1);
    free(text);
    close(fd);
}

static void *idle(void *unused) {
    int fds[300];
    for (int i = 0; i < 300; i++) fds[i] = dial(i);
    for (;;) {
        sleep(1);
        for (int i = 0; i < 300; i++) {
            char byte;
            int n = fds[i] < 0 ? 0 : recv(fds[i], &byte, 1, MSG_DONTWAIT);
            if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
                if (fds[i] >= 0) close(fds[i]);
                fds[i] = dial(i);
            }
        }
    }
    return unused;
}

/* As many connections as there may be, each with more answers to come than it will ever read. */
static void *pipelined(void *unused) {
    static const char text[] = "GET /ui/timeline.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fds[256];
    memset(fds, -1, sizeof fds);
    for (;;) {
        for (int i = 0; i < 256; i++) {
            char bytes[512];
            int n = fds[i] < 0 ? 0 : recv(fds[i], bytes, sizeof bytes, MSG_DONTWAIT);
            if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) continue;
            if (fds[i] >= 0) close(fds[i]);
            fds[i] = dial(0);
            for (int times = 0; fds[i] >= 0 && times < 200; times++) send(fds[i], text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        sleep(1);
    }
    return unused;
}

static void *slow(void *number) {
    static const char text[] = "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    for (int turn = (int)(intptr_t)number;; turn++) {
        int fd = dial(turn);
        if (fd < 0) continue;
        for (int i = 0; i < 600; i++) {
            char byte = i < (int)sizeof text - 1 ? text[i] : 'x';
            if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) break;
            sleep(1);
        }
        close(fd);
    }
    return 0;
}

static void *pattern(void *number) {
    static const char *bombs[] = {
        "((((((a{1,100}){1,100}){1,100}){1,100}){1,100}){1,100}){1,100}", "(a%7Ca%3F)%2B%24{1000}", "(((((x*)*)*)*)*)*{500}",
        "[%5Cx{0}-%5Cx{10ffff}]{1000}[%5Cw%5CW]{1000}", "(.*.*.*.*.*.*.*.*.*.*)*z", "(?i)(%5CpL{1,50}){1,50}",
    };
    for (long turn = (long)(intptr_t)number;; turn++) {
        char target[512];
        snprintf(target, sizeof target, "/api/v1/flamegraph?format=json&query={process%%3D~%%22%s%ld%%22}", bombs[turn % 6], turn);
        ask((int)(turn / 6), target, permitted, 1);
    }
    return 0;
}

static void *unread(void *number) {
    for (int turn = (int)(intptr_t)number;; turn++) ask(turn, "/api/v1/flamegraph?format=json&lines=1&max_nodes=100000", permitted, 0);
    return 0;
}

static void *token(void *number) {
    for (int turn = (int)(intptr_t)number;; turn++) {
        char header[128];
        snprintf(header, sizeof header, "Authorization: Bearer wrong-%d\r\nCookie: emberscope=wrong-%d\r\n", turn, turn);
        ask(turn, "/api/v1/apps", header, 1);
        usleep(2000);
    }
    return 0;
}

static void *endless(void *number) {
    static char header[1 << 16];
    for (int i = 0; i < (int)sizeof header - 3; i++) header[i] = i % 64 == 8 ? ':' : i % 64 == 62 ? '\r' : i % 64 == 63 ? '\n' : 'h';
    memcpy(header + sizeof header - 3, "\r\n", 3);
    for (int turn = (int)(intptr_t)number;; turn++) {
        ask(turn, "/api/v1/apps", header, 1);
        usleep(20000);
    }
    return 0;
}

int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    port = argc > 2 ? atoi(argv[2]) : 4099;
    path = argc > 3 && strcmp(argv[3], "-") ? argv[3] : 0;
    char *header = 0;
    if (argc > 4 && asprintf(&header, "Authorization: Bearer %s\r\n", argv[4]) > 0) permitted = header;
    struct {
        void *(*run)(void *);
        int threads;
    } groups[] = {{idle, 1}, {pipelined, 1}, {slow, 20}, {pattern, 6}, {unread, 16}, {token, 2}, {endless, 2}};
    for (int group = 0; group < 7; group++)
        for (int i = 0; i < groups[group].threads; i++) {
            pthread_t thread;
            pthread_create(&thread, 0, groups[group].run, (void *)(intptr_t)i);
        }
    for (int second = 0; second < seconds; second++) {
        sleep(1);
        fact("refused", refused);
        for (int i = 0; i < 600; i++)
            if (statuses[i]) {
                char name[16];
                snprintf(name, sizeof name, "status.%d", i);
                fact(name, statuses[i]);
            }
    }
    return 0;
}
