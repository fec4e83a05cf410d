/*
 * sandbox.h: filters of system calls (seccomp), as sandboxes set them.
 */
#ifndef SLABYARD_TESTS_HOSTS_SANDBOX_H
#define SLABYARD_TESTS_HOSTS_SANDBOX_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "hosts/hosts.h"

enum { FILTER_MAX = 200 };

/* Ways in which a filter refuses a call. */
static const unsigned KILL = SECCOMP_RET_KILL_PROCESS, TRAP = SECCOMP_RET_TRAP,
                      REFUSE = SECCOMP_RET_ERRNO | EPERM;

static inline bool has_argument(int argc, char **argv, const char *word) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0) return true;
    return false;
}

/* Writes a filter, and returns its length: only the calls of the list succeed (`allow`), or all but
 * them. The others meet `action`. */
static inline unsigned short filter_code(struct sock_filter code[FILTER_MAX], const long *calls,
                                         size_t count, bool allow, unsigned action) {
    const unsigned listed = allow ? SECCOMP_RET_ALLOW : action,
                   other = allow ? action : SECCOMP_RET_ALLOW;
    unsigned short length = 0;
    code[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        code[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
    return length;
}

/* Such a filter holds from now on. Ends the program if the system has no filters. */
static inline void set_filter(const long *calls, size_t count, bool allow, unsigned action) {
    static struct sock_filter code[FILTER_MAX];
    struct sock_fprog program = {filter_code(code, calls, count, allow, action), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        _exit(SKIPPED);
}

/* The calls of a privilege-separated child, as OpenSSH's sandbox allows them: memory, time, random
 * numbers, input and output on descriptors that it has, and the end. */
static const long memory_calls[] = {
    SYS_brk,           SYS_mmap,         SYS_munmap,     SYS_mremap,       SYS_madvise,
    SYS_mprotect,      SYS_futex,        SYS_read,       SYS_write,        SYS_writev,
    SYS_close,         SYS_exit,         SYS_exit_group, SYS_getpid,       SYS_getrandom,
    SYS_clock_gettime, SYS_gettimeofday, SYS_nanosleep,  SYS_rt_sigreturn, SYS_clock_nanosleep,
    SYS_rt_sigprocmask};

#ifndef SYS_newfstatat /* with 32 bits */
#    define SYS_newfstatat SYS_fstatat64
#endif

/* What a renderer of a browser may not do: files, processes, names. It has threads. */
static const long forbidden_to_renderers[] = {SYS_openat,    SYS_execve,
                                              SYS_socket,    SYS_connect,
                                              SYS_ptrace,    SYS_prctl,
                                              SYS_prlimit64, SYS_sched_getaffinity,
                                              SYS_unlinkat,  SYS_sched_setaffinity,
                                              SYS_setuid,    SYS_mincore,
                                              SYS_kill,      SYS_newfstatat};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

#endif
