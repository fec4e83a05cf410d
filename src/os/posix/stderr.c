/*
 * stderr.c: the part of os.h that finds the file descriptor for messages to the user.
 *
 * Number 2 is not always stderr. A program may close it, as the tools of coreutils do at exit, and
 * the next file that it opens gets the number 2. So the file that is stderr at the start is noted
 * by its device and inode, and a message goes only to a descriptor of this file. For messages at
 * exit there is a second descriptor of it, which closing number 2 does not close.
 *
 * Everything here may run in the handler of a signal: it calls fstat, fcntl and lseek only.
 */
#define _GNU_SOURCE

#include "os/facts.h"
#include "os/os.h"

#if SY_PLATFORM_POSIX

#    include <errno.h>
#    include <fcntl.h>
#    include <stdatomic.h>
#    include <sys/stat.h>
#    include <unistd.h>

enum {
    HIGH = 1000, /* above the numbers that programs choose or close one by one, below FD_SETSIZE */
};

typedef enum noted_state { NOT_NOTED, CLOSED, NOTED } noted_state;

/* The file that was stderr at the start; valid if `start` is NOTED. */
static dev_t device;
static ino_t inode;
static _Atomic unsigned start; /* noted_state */

static _Atomic int kept; /* the second descriptor; 0: there is none */

void sy_os_note_stderr(void) {
    if (atomic_load_explicit(&start, memory_order_relaxed) != NOT_NOTED) return;
    int saved = errno;
    struct stat about;
    bool open = fstat(STDERR_FILENO, &about) == 0;
    if (open) {
        device = about.st_dev;
        inode = about.st_ino;
    }
    atomic_store_explicit(&start, open ? NOTED : CLOSED, memory_order_release);
    errno = saved;
}

static bool is_stderr(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && about.st_dev == device && about.st_ino == inode;
}

/* A pipe to the process that collects the messages, such as a test's parent, or a terminal. */
static bool is_stream(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode));
}

/* A file that is opened for appending; unless `strict`, also one that the program only writes, and
 * has written up to its end. So a message overwrites nothing. */
static bool is_log(int fd, bool strict) {
    struct stat about;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    if (flags & O_APPEND) return true;
    return !strict && (flags & O_ACCMODE) == O_WRONLY && lseek(fd, 0, SEEK_CUR) == about.st_size;
}

/*
 * Servers and tests put a log or a pipe in place of stderr, by dup2 or freopen. There a report of
 * misuse is looked for: the process aborts after it, and nothing else says why. Any other file may
 * have got the number 2 by chance. A report would overwrite a part of its data, or, on a socket,
 * show memory of the program to another machine. For these programs there is the option `report`.
 *
 * A log may still be a file of data. So the second descriptor comes before it. If the program has
 * closed that one too, the message may be one of a program that ends well, and whose files have to
 * stay as they are: then only a file for appending is a log.
 */
static int find_stderr(void) {
    switch (atomic_load_explicit(&start, memory_order_acquire)) {
    case NOT_NOTED: return STDERR_FILENO;
    case CLOSED: return -1; /* whatever has number 2 now: it is not meant for messages */
    default: break;
    }
    if (sy_is_in_sandbox()) return STDERR_FILENO; /* no other call but write may be allowed */
    int second = atomic_load_explicit(&kept, memory_order_relaxed);
    if (is_stderr(STDERR_FILENO) || is_stream(STDERR_FILENO)) return STDERR_FILENO;
    if (second && is_stderr(second)) return second;
    return is_log(STDERR_FILENO, second != 0) ? STDERR_FILENO : -1;
}

int sy_os_stderr(void) {
    int saved = errno;
    int fd = find_stderr();
    errno = saved;
    return fd;
}

/* Where so high a number is not allowed (RLIMIT_NOFILE), a lower one is tried. */
void sy_os_keep_stderr(void) {
    int saved = errno, none = 0, fd = -1;
    bool wanted = atomic_load_explicit(&start, memory_order_acquire) == NOTED &&
                  atomic_load_explicit(&kept, memory_order_relaxed) == 0 &&
                  is_stderr(STDERR_FILENO);
    for (int from = HIGH; wanted && fd < 0 && from > STDERR_FILENO; from /= 2)
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, from);
    if (fd >= 0 && !atomic_compare_exchange_strong(&kept, &none, fd)) close(fd);
    errno = saved;
}

#endif
