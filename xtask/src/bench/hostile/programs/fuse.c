/* A file system that dies. `fuse user|admin DIR LIBRARY JAR UID`, begun by root, mounts it on DIR and goes on as UID:
 * `user` for UID alone, with the options that fusermount3 gives a user's (it opens /dev/fuse as root, too, where that is
 * not everybody's); `admin` for everybody, as one of an administrator (s3fs, gcsfuse) is. It has `lib.so` and
 * `extra.jar` with the contents of the two files, and `args`, a megabyte that never comes: who
 * watches the machine would have read it, and the kernel kept it. It serves until SIGUSR1, then never again: who asks it waits
 * until this process ends.
 *
 * Speaks the kernel's protocol itself (include/uapi/linux/fuse.h, 7.31). */
#include "hostile.h"
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/uio.h>

static volatile sig_atomic_t dead;
static void die(int number) { dead = number; }

static struct { const char *name; char *bytes; uint64_t size; } files[] = {{"lib.so", 0, 0}, {"extra.jar", 0, 0}, {"args", 0, 1 << 20}};

static void take(int i, const char *path) {
    struct stat found;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &found)) exit(2);
    files[i].size = found.st_size;
    files[i].bytes = mmap(0, found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (files[i].bytes == MAP_FAILED) exit(2);
}

static int mounted(const char *dir, int uid, int for_all) {
    char options[128];
    int fd = open("/dev/fuse", O_RDWR);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s", fd, uid, uid,
             for_all ? ",allow_other" : "");
    if (fd < 0 || mount("hostile", dir, "fuse", MS_NOSUID | MS_NODEV, options)) return -1;
    if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)) exit(3);
    /* The kernel forgets it where the ids change. */
    end_with_parent();
    return fd;
}

static void attributes(struct fuse_attr *a, uint64_t node) {
    memset(a, 0, sizeof *a);
    a->ino = node, a->nlink = 1, a->blksize = 4096, a->uid = getuid(), a->gid = getgid();
    a->mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755;
    if (node >= 2 && node <= 4) a->size = files[node - 2].size, a->blocks = (a->size + 511) / 512;
}

static void answer(int fd, uint64_t unique, int error, const void *body, size_t size) {
    struct fuse_out_header head = {sizeof head + (error ? 0 : size), -error, unique};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)body, error ? 0 : size}};
    if (writev(fd, parts, 2) < 0 && errno != ENOENT) perror("answering");
}

static void serve(int fd) {
    static char in[1 << 18];
    for (;;) {
        while (dead) pause();
        ssize_t n = read(fd, in, sizeof in);
        if (n < 0 && errno == EINTR) continue;
        if (n < (ssize_t)sizeof(struct fuse_in_header)) return;
        struct fuse_in_header *head = (void *)in;
        const char *rest = in + sizeof *head;
        uint64_t node = head->nodeid, i = node - 2;
        switch (head->opcode) {
        case FUSE_INIT: {
            const struct fuse_init_in *asked = (const void *)rest;
            struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = asked->max_readahead, .max_write = 65536};
            answer(fd, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_LOOKUP: {
            struct fuse_entry_out out = {0};
            for (int k = 0; k < 3; k++)
                if (!strcmp(rest, files[k].name)) out.nodeid = k + 2;
            attributes(&out.attr, out.nodeid);
            answer(fd, head->unique, out.nodeid ? 0 : ENOENT, &out, sizeof out);
            break;
        }
        case FUSE_GETATTR: {
            struct fuse_attr_out out = {0};
            attributes(&out.attr, node);
            answer(fd, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_OPEN:
        case FUSE_OPENDIR: {
            /* What was read once stays: a program runs on, though its file is dead. */
            struct fuse_open_out out = {.fh = node, .open_flags = FOPEN_KEEP_CACHE};
            answer(fd, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_READ: {
            const struct fuse_read_in *asked = (const void *)rest;
            uint64_t size = i < 3 ? files[i].size : 0, from = asked->offset < size ? asked->offset : size;
            uint64_t count = size - from < asked->size ? size - from : asked->size;
            if (i < 2) answer(fd, head->unique, 0, files[i].bytes + from, count);
            break;
        }
        case FUSE_STATFS: {
            /* Without it nothing can be mounted above. */
            struct fuse_statfs_out out = {.st = {.bsize = 4096, .frsize = 4096, .namelen = 255}};
            answer(fd, head->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT: break;
        case FUSE_RELEASE:
        case FUSE_RELEASEDIR:
        case FUSE_FLUSH:
        case FUSE_ACCESS: answer(fd, head->unique, 0, "", 0); break;
        case FUSE_READDIR: answer(fd, head->unique, 0, "", 0); break;
        default: answer(fd, head->unique, ENOSYS, "", 0);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    struct sigaction action = {.sa_handler = die};
    sigaction(SIGUSR1, &action, 0);
    take(0, argv[3]);
    take(1, argv[4]);
    int fd = mounted(argv[2], atoi(argv[5]), !strcmp(argv[1], "admin"));
    if (fd < 0) {
        perror("mounting");
        return 3;
    }
    fact("mounted", 1);
    serve(fd);
    return 0;
}
