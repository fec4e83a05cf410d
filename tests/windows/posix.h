/*
 * posix.h: functions of POSIX that Windows lacks and the tests use. It is included in front of each
 * test that is built for Windows (windows.cmake), so the tests need no conditions. What the system
 * can do in another way is done so. What it cannot do, such as a fork, ends the test as skipped: in
 * a program of cmocka this test, else the program, with status 77.
 */
#ifndef SLABYARD_TESTS_WINDOWS_POSIX_H
#define SLABYARD_TESTS_WINDOWS_POSIX_H

/* A name that tests use for functions of theirs. */
#define tell posix_tell

#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#undef tell

#ifdef __cplusplus
extern "C" {
#    define _Noreturn [[noreturn]]
#endif

/* Ends the test. */
_Noreturn void posix_lacks(const char *function);

#define POSIX_LACKS(type, function, ...) \
    static inline type function(__VA_ARGS__) { posix_lacks(#function); }

/* ---- processes ---- */

#define WNOHANG             1
#define WIFEXITED(status)   ((status) == 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) ((status) != 0)
#define WTERMSIG(status)    (status)

pid_t fork(void);
pid_t waitpid(pid_t pid, int *status, int how);
POSIX_LACKS(pid_t, vfork, void)
POSIX_LACKS(pid_t, wait, int *status)
POSIX_LACKS(int, kill, pid_t pid, int signal)

/* A test that hangs is ended by ctest. */
static inline unsigned alarm(unsigned seconds) { return seconds * 0; }

/* ---- signals ---- */

#ifndef SIGALRM
#    define SIGALRM 14
#endif
#define SIGKILL      9
#define SIGBUS       10
#define SIGUSR1      12
#define SIGUSR2      13
#define SIGPIPE      15
#define SIGCHLD      17
#define SS_ONSTACK   1
#define SS_DISABLE   2
#define SA_RESETHAND 1
#define SA_SIGINFO   4
#define SA_ONSTACK   8
#define SA_RESTART   16
#define SA_NODEFER   32
#ifndef SIG_SETMASK
#    define SIG_SETMASK 0
#    define SIG_BLOCK   1
#    define SIG_UNBLOCK 2
#endif

typedef struct siginfo_t {
    int si_signo, si_code;
    void *si_addr;
} siginfo_t;

typedef uint64_t sigset_t;

struct sigaction {
    void (*sa_handler)(int);
    void (*sa_sigaction)(int, siginfo_t *, void *);
    sigset_t sa_mask;
    int sa_flags;
};

typedef struct stack_t {
    void *ss_sp;
    int ss_flags;
    size_t ss_size;
} stack_t;

POSIX_LACKS(int, sigemptyset, sigset_t *set)
POSIX_LACKS(int, sigfillset, sigset_t *set)
POSIX_LACKS(int, sigaddset, sigset_t *set, int signal)
POSIX_LACKS(int, sigismember, const sigset_t *set, int signal)
POSIX_LACKS(int, sigpending, sigset_t *set)
POSIX_LACKS(int, sigwait, const sigset_t *set, int *signal)
#undef pthread_sigmask
POSIX_LACKS(int, pthread_sigmask, int how, const sigset_t *now, sigset_t *before)

static inline int sigaction(int signal, const struct sigaction *now, struct sigaction *before) {
    (void)signal, (void)now, (void)before;
    posix_lacks("sigaction");
}

POSIX_LACKS(int, sigaltstack, const stack_t *now, stack_t *before)

/* ---- memory ---- */

#define PROT_NONE       0
#define PROT_READ       1
#define PROT_WRITE      2
#define PROT_EXEC       4
#define MAP_SHARED      1
#define MAP_PRIVATE     2
#define MAP_FIXED       16
#define MAP_ANONYMOUS   32
#define MAP_NORESERVE   64
#define MAP_FAILED      ((void *)-1)
#define MADV_DONTNEED   4
#define MADV_REMOVE     9
#define MADV_NOHUGEPAGE 15
#define MFD_CLOEXEC     1

/* Private memory only. All of a mapping is unmapped at once. */
void *mmap(void *place, size_t bytes, int access, int how, int file, off_t offset);
int munmap(void *start, size_t bytes);
int mprotect(void *start, size_t bytes, int access);

POSIX_LACKS(int, madvise, void *start, size_t bytes, int advice)
POSIX_LACKS(int, mincore, void *start, size_t bytes, unsigned char *there)

POSIX_LACKS(void *, sbrk, ptrdiff_t bytes)

int posix_memalign(void **block, size_t align, size_t bytes);

/* ---- the process ---- */

#define _SC_PAGESIZE 30

typedef uint64_t rlim_t;

struct rlimit {
    rlim_t rlim_cur, rlim_max;
};

#define RLIM_INFINITY  UINT64_MAX
#define RLIMIT_AS      9
#define RLIMIT_DATA    2
#define RLIMIT_CORE    4
#define RLIMIT_STACK   3
#define RLIMIT_NOFILE  7
#define RLIMIT_MEMLOCK 8

POSIX_LACKS(int, getrlimit, int which, struct rlimit *limit)
POSIX_LACKS(int, setrlimit, int which, const struct rlimit *limit)

long sysconf(int which);
int getpagesize(void);
int setenv(const char *name, const char *value, int over);
int unsetenv(const char *name);

POSIX_LACKS(int, memfd_create, const char *name, unsigned how)
POSIX_LACKS(ssize_t, pread, int file, void *into, size_t bytes, off_t offset)

/* The C library's returns 0. */
#define dup2 posix_dup2
static inline int posix_dup2(int file, int number) {
    return _dup2(file, number) == 0 ? number : -1;
}

static inline int pipe(int ends[2]) { return _pipe(ends, 1 << 16, _O_BINARY | _O_NOINHERIT); }

#ifdef __cplusplus
}
#endif
#endif
