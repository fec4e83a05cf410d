/*
 * background.c: the part of os.h for background threads: how they start, where they run, and
 * how they find out that the program's threads have ended.
 *
 * The threads make system calls by `syscall`: other libraries replace open, read, stat or unshare
 * with functions that take locks, which a hidden thread must not do (hidden.c).
 */
#define _GNU_SOURCE

#include "os/failing.h"
#include "os/linux/limits.h"
#include "os/linux/thread.h"
#include "os/os.h"
#include "os/race.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <fcntl.h>
#    include <limits.h>
#    include <link.h>
#    include <pthread.h>
#    include <sched.h>
#    include <signal.h>
#    include <string.h>
#    include <sys/prctl.h>
#    include <sys/stat.h>
#    include <sys/syscall.h>
#    include <unistd.h>

#    if defined(__SANITIZE_THREAD__)
#        define RACES_ARE_WATCHED true
#    elif defined(__has_feature)
#        if __has_feature(thread_sanitizer)
#            define RACES_ARE_WATCHED true
#        endif
#    endif
#    ifndef RACES_ARE_WATCHED
#        define RACES_ARE_WATCHED false
#    endif

/* ---- processors ---- */

/* A set of processors. The C library's cpu_set_t has a fixed size of 1,024; this has room for
 * 65,536. The kernel writes only as many words as it has processors, so the rest takes no
 * memory. */
typedef struct set {
    long bytes; /* 0: not read yet; negative: the kernel does not tell */
    unsigned long words[65536 / (CHAR_BIT * sizeof(unsigned long))];
} set;

static set first_set; /* of the process, by the first reading */

/* Reads the processors of a thread; 0 is the calling one. The result is their number. */
static unsigned read_set(pid_t thread, set *into) {
    unsigned count = 0;
    into->bytes = syscall(SYS_sched_getaffinity, thread, sizeof into->words, into->words);
    for (long i = 0; i < into->bytes / (long)sizeof *into->words; i++)
        for (unsigned long bits = into->words[i]; bits != 0; bits &= bits - 1) count++;
    return count;
}

/* A thread that uses the library first may have bound itself to one processor. The first thread of
 * the process, whose thread id is the process id, seldom does. */
unsigned sy_os_affinity_count(void) {
    static set later;
    int saved = errno;
    unsigned first = read_set(getpid(), first_set.bytes ? &later : &first_set);
    unsigned own = syscall(SYS_gettid) == getpid() ? first : read_set(0, &later);
    unsigned count = own > first ? own : first;
    errno = saved;
    return count == 0 ? 1 : count;
}

unsigned sy_os_cpu_count(void) {
    int saved = errno;
    unsigned affinity = sy_os_affinity_count();
    unsigned quota = sy_linux_group_cpus("");
    errno = saved;
    return quota < affinity ? quota : affinity;
}

/* ---- a thread ---- */

/* Kernel names that older headers lack. */
#    define CLOSE_RANGE       436 /* 5.9 */
#    define CLOSE_AND_UNSHARE 2   /* CLOSE_RANGE_UNSHARE */

/* A thread inherits the processors and the policy of the thread that starts it. A policy for real
 * time would let the background thread delay the program's threads. Other policies stay. */
static void run_anywhere(void) {
    const struct sched_param none = {0};
    if (first_set.bytes > 0)
        (void)syscall(SYS_sched_setaffinity, 0, first_set.bytes, first_set.words);
    long policy = syscall(SYS_sched_getscheduler, 0);
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

static void *run(void *plan) {
    const sy_os_background *thread = plan;
    (void)syscall(SYS_prctl, PR_SET_NAME, thread->name, 0L, 0L, 0L);
    run_anywhere();
    thread->body();
    return NULL;
}

/* An entry of a directory, as getdents64 returns it. */
typedef struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
} entry;

/* For Linux before 5.9: closes what the thread's own list of descriptors shows, until it shows
 * itself alone. */
static bool close_one_by_one(void) {
    _Alignas(entry) char list[512];
    int directory = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/fd",
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    bool closed = true;
    while (closed) {
        closed = false;
        syscall(SYS_lseek, directory, 0L, SEEK_SET);
        long bytes = syscall(SYS_getdents64, directory, list, sizeof list);
        for (long at = 0; at < bytes; at += ((entry *)(list + at))->length) {
            const char *name = ((entry *)(list + at))->name;
            int fd = 0;
            for (; *name >= '0' && *name <= '9'; name++) fd = fd * 10 + (*name - '0');
            if (*name || fd == directory) continue;
            closed = syscall(SYS_close, fd) == 0 || closed;
        }
    }
    syscall(SYS_close, directory);
    return true;
}

/* The table has to be empty: a thread that had a copy would keep the program's pipes and sockets
 * open. */
static bool leave_descriptors(void) {
    if (syscall(CLOSE_RANGE, 0, UINT_MAX, CLOSE_AND_UNSHARE) == 0) return true;
    return syscall(SYS_unshare, CLONE_FILES) == 0 && close_one_by_one();
}

/* Whether the last reader has left the program's descriptors: one starts at a time. */
static _Atomic uint32_t departure;
enum { TRIES, LEFT, FAILED };

static void *run_apart(void *plan) {
    bool left = leave_descriptors();
    atomic_store_explicit(&departure, left ? LEFT : FAILED, memory_order_release);
    sy_os_wake(&departure, 1);
    return left ? run(plan) : NULL;
}

/* The mask of the thread that started the last detached thread. */
static sigset_t starters_mask;

/* Bytes of the program's thread-local variables, which a C library may put into each stack. */
static size_t variables;

static int add_variables(struct dl_phdr_info *object, size_t bytes, void *unused) {
    (void)bytes;
    (void)unused;
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_TLS)
            variables += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
    return 0;
}

__attribute__((constructor(103))) static void count_variables(void) {
    dl_iterate_phdr(add_variables, NULL);
}

/* A new thread inherits the signal mask. So all signals are blocked while it is made. If the system
 * refuses the size of the stack, the thread gets the usual one. */
static int start(void *(*body)(void *), const sy_os_background *plan, int state,
                 pthread_t *thread) {
    sigset_t all, before;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return error;
    pthread_attr_setdetachstate(&attributes, state);
    bool small =
        plan->stack && pthread_attr_setstacksize(&attributes, plan->stack + variables) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (state == PTHREAD_CREATE_DETACHED) starters_mask = before;
    error = pthread_create(thread, &attributes, body, (void *)plan);
    if (error == EINVAL && small) {
        pthread_attr_destroy(&attributes);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, state);
        error = pthread_create(thread, &attributes, body, (void *)plan);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static int result_of(int error) {
    if (error == 0) return 0;
    errno = error;
    return -1;
}

static sy_linux_room own_room, readers_room;

void sy_os_forget_background(void) {
    sy_linux_forget_hidden(&own_room);
    sy_linux_forget_hidden(&readers_room);
}

static bool hides(const sy_os_background *thread) { return thread->hidden && sy_linux_can_hide(); }

int sy_os_start_thread(const sy_os_background *thread) {
    pthread_t started;
    if (sy_os_is_failing("start_thread")) return -1;
    if (hides(thread)) {
        pthread_sigmask(SIG_SETMASK, NULL, &starters_mask);
        return sy_linux_start_hidden(&own_room, thread->stack, run, (void *)thread);
    }
    return result_of(start(run, thread, PTHREAD_CREATE_DETACHED, &started));
}

/* A hidden reader is named by its room. */
static int make_reader(const sy_os_background *thread, uintptr_t *reader) {
    if (hides(thread)) {
        *reader = (uintptr_t)&readers_room;
        return sy_linux_start_hidden(&readers_room, thread->stack, run_apart, (void *)thread);
    }
    pthread_t started = 0;
    int error = start(run_apart, thread, PTHREAD_CREATE_JOINABLE, &started);
    *reader = (uintptr_t)started;
    return result_of(error);
}

int sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader) {
    if (sy_os_is_failing("start_reader")) return -1;
    atomic_store_explicit(&departure, TRIES, memory_order_relaxed);
    if (make_reader(thread, reader) != 0) return -1;
    while (atomic_load_explicit(&departure, memory_order_acquire) == TRIES)
        sy_os_wait(&departure, TRIES);
    if (atomic_load_explicit(&departure, memory_order_relaxed) == LEFT) return 0;
    sy_os_end_reader(*reader);
    return result_of(EPERM);
}

void sy_os_end_reader(uintptr_t reader) {
    if (reader != (uintptr_t)&readers_room) {
        pthread_join((pthread_t)reader, NULL);
        return;
    }
    sy_linux_await_hidden(&readers_room);
    sy_linux_clear_room(&readers_room);
}

void sy_os_take_signals(void) { pthread_sigmask(SIG_SETMASK, &starters_mask, NULL); }

/* ---- the program's threads ---- */

/* Commands of membarrier, which older headers lack. Linux 4.14; the call itself is older. */
enum { BARRIER_PRIVATE = 1 << 3, BARRIER_REGISTER = 1 << 4 };

static bool run_barrier(void) { return syscall(SYS_membarrier, BARRIER_PRIVATE, 0, 0) == 0; }

/* A process has to register first: EPERM. A detector of races sees the accesses of both threads,
 * and no order between them. */
static bool run_first_barrier(void) {
    if (sy_race_detector || RACES_ARE_WATCHED) return false;
    if (run_barrier()) return true;
    return errno == EPERM && syscall(SYS_membarrier, BARRIER_REGISTER, 0, 0) == 0 && run_barrier();
}

int sy_os_barrier_threads(void) {
    static _Atomic bool refused;
    int saved = errno;
    if (!atomic_load_explicit(&refused, memory_order_relaxed) && run_first_barrier()) {
        errno = saved;
        return 0;
    }
    atomic_store_explicit(&refused, true, memory_order_relaxed);
    return result_of(ENOSYS);
}

static int get_status(const char *path, struct stat *status) {
#    if defined(SYS_newfstatat)
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
#    else
    return stat(path, status);
#    endif
}

/* The directory has a subdirectory for each thread. Its number of links is two more. */
static unsigned count_threads(void) {
    struct stat tasks;
    return get_status("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2
               ? (unsigned)tasks.st_nlink - 2
               : 0;
}

bool sy_os_lists_threads(void) {
    int saved = errno;
    bool told = count_threads() > 0;
    errno = saved;
    return told;
}

/* If the first thread ends before the others, the kernel keeps it in the list until they have
 * ended, without its memory: then the process's link to the program's file leads nowhere. */
static bool first_thread_has_ended(void) {
    char file;
    return syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", &file, 1L) < 0 && errno == ENOENT;
}

/* In this order: while the first thread lives, it may start another one and end. */
bool sy_os_is_left_alone(unsigned background) {
    int saved = errno;
    bool alone = first_thread_has_ended() && count_threads() == background + 1;
    errno = saved;
    return alone;
}

void sy_os_await_end(unsigned thread) {
    enum { LOOKS = 10000 };
    static const uint64_t APART_NS = 100000;
    static _Atomic uint32_t nothing;
    int saved = errno;
    for (int left = LOOKS; left > 0 && syscall(SYS_tgkill, getpid(), thread, 0) == 0; left--)
        sy_os_wait_for(&nothing, 0, APART_NS);
    errno = saved;
}

#endif
