/*
 * machine.c: the part of os.h for processors, time, random numbers, messages and the program's
 * file, by the C library alone. C does not tell how many processors there are, and loads no
 * libraries.
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/os.h"
#include "os/random.h"

#if SY_PLATFORM_PORTABLE

#    include <errno.h>
#    include <stdio.h>
#    include <time.h>

static const uint64_t NS_PER_SECOND = 1000000000;

enum {
    PROCESSORS = 4, /* with threads: as a small machine has. More depots would be for nothing */
    STDERR = 2,
};

/* ---- processors ---- */

/* Threads that are numbered one after the other mostly run at the same time. */
unsigned sy_os_cpu(void) { return sy_os_thread() - 1; }

unsigned sy_os_affinity_count(void) { return sy_os_has(SY_OS_THREADS) ? PROCESSORS : 1; }

unsigned sy_os_cpu_count(void) { return sy_os_affinity_count(); }

/* ---- time, random numbers ---- */

#    if defined(CLOCK_MONOTONIC)

uint64_t sy_os_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

#    else

/* The time of day may be set back. Then this clock goes on from where it was. */
uint64_t sy_os_now(void) {
    static _Atomic uint64_t last, set_back;
    struct timespec day;
    timespec_get(&day, TIME_UTC);
    uint64_t now = (uint64_t)day.tv_sec * NS_PER_SECOND + (uint64_t)day.tv_nsec;
    uint64_t behind = atomic_load(&set_back), seen = atomic_load(&last);
    if (now + behind < seen) atomic_compare_exchange_strong(&set_back, &behind, seen - now);
    now += atomic_load(&set_back);
    while (seen < now && !atomic_compare_exchange_weak(&last, &seen, now)) {}
    return seen < now ? now : seen;
}

#    endif

/* The time of day includes what the thread waits. */
uint64_t sy_os_thread_time(void) { return sy_os_now(); }

uint64_t sy_os_random(void) { return sy_os_weak_random(); }

/* ---- messages ---- */

void sy_os_note_stderr(void) {}

void sy_os_keep_stderr(void) {}

int sy_os_stderr(void) { return STDERR; }

#    if !SY_PLATFORM_DESCRIPTORS

/* The two streams that have a number by custom. */
static FILE *stream_of(int fd) { return fd == STDERR ? stderr : fd == STDERR - 1 ? stdout : NULL; }

static int write_all(FILE *to, const char *text, size_t length) {
    if (!to) return EBADF;
    return fwrite(text, 1, length, to) == length && fflush(to) == 0 ? 0 : EIO;
}

int sy_os_write(int fd, const char *text, size_t length) {
    int saved = errno;
    int error = write_all(stream_of(fd), text, length);
    errno = saved;
    return error;
}

static int write_file(const char *path, const char *how, const char *text, size_t length) {
    int saved = errno;
    FILE *file = fopen(path, how);
    if (!file) return sy_os_failed(EIO);
    int error = write_all(file, text, length);
    if (fclose(file) != 0) error = EIO;
    if (error) return sy_os_failed(error);
    errno = saved;
    return 0;
}

int sy_os_append(const char *path, const char *text, size_t length) {
    return write_file(path, "a", text, length);
}

int sy_os_replace(const char *path, const char *text, size_t length) {
    return write_file(path, "w", text, length);
}

bool sy_os_is_terminal(int fd) {
    (void)fd;
    return false;
}

#    endif

/* ---- the process ---- */

void sy_os_stay_loaded(void) {}

bool sy_os_is_traced(void) { return false; }

void *sy_os_load(const char *library) {
    (void)library;
    return NULL;
}

void *sy_os_symbol(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}

bool sy_os_on_signal_stack(void) { return false; }

void sy_os_on_own_stack(void (*body)(void *arg), void *arg) { body(arg); }

#endif
