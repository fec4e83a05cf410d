/* Filters of system calls in the ways in which programs get them: by a service manager before the
 * program starts, for one thread or for all, by a number of a system call, one after another, and
 * without the C library. */
#define _GNU_SOURCE
#include <pthread.h>

#include "hosts/sandbox.h"

/* What systemd's @system-service leaves out, as far as a processor has it. */
static const long not_for_services[] = {
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_ptrace,
    SYS_perf_event_open,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_quotactl,
    SYS_chroot,
    SYS_personality,
    SYS_vhangup,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_syslog,
    SYS_setns,
    SYS_unshare,
    SYS_open_by_handle_at,
};

/* What Docker refuses beside these, without privileges. */
static const long not_in_containers[] = {
    SYS_add_key,           SYS_request_key,     SYS_keyctl, SYS_move_pages,     SYS_mbind,
    SYS_set_mempolicy,     SYS_get_mempolicy,   SYS_kcmp,   SYS_io_uring_setup, SYS_io_uring_enter,
    SYS_io_uring_register, SYS_process_madvise, SYS_clone3, SYS_close_range,    SYS_rseq,
};

static const char *program;

static void err(void *unused) {
    host_live();
    host_free_twice(unused);
}

typedef struct filter {
    const long *calls;
    size_t count;
    bool allow;
    unsigned action;
} filter;

static void start_in(void *arg) {
    const filter *here = arg;
    set_filter(here->calls, here->count, here->allow, here->action);
    execl(program, program, "inner", (char *)NULL);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

/* ---- ways to set a filter ---- */

static struct sock_fprog strict_program(void) {
    static struct sock_filter code[FILTER_MAX];
    return (struct sock_fprog){filter_code(code, memory_calls, COUNT_OF(memory_calls), true, KILL),
                               code};
}

/* As libseccomp does it. */
static void by_number(void *arg) {
    size_t before = *(size_t *)arg;
    void *kept = malloc(1 + (before << 20));
    memset(kept, 1, before << 20);
    hungry(before);
    struct sock_fprog strict = strict_program();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, &strict) != 0)
        _exit(SKIPPED);
    host_live();
    free(kept);
    host_live();
}

static void for_all_threads(void *arg) {
    size_t before = *(size_t *)arg;
    hungry(before);
    struct sock_fprog strict = strict_program();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, (long)SECCOMP_FILTER_FLAG_TSYNC,
                &strict) != 0)
        _exit(SKIPPED);
    host_live();
}

static void *live_in_thread(void *before) {
    by_number(before);
    syscall(SYS_exit, 0L); /* the filter forbids what a thread's end needs in the C library */
    return NULL;
}

/* The other threads may do what they like. */
static void in_one_thread(void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, live_in_thread, arg) == 0);
    for (int i = 0; i < 10; i++) hungry(16);
}

static void one_after_another(void *arg) {
    hungry(*(size_t *)arg);
    set_filter(forbidden_to_renderers, COUNT_OF(forbidden_to_renderers) - 8, false, KILL);
    host_live();
}

/* Without the C library, so nothing sees it coming. The options have to say so. */
static long raw(long number, long a, long b, long c) {
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = 0, fifth __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long call __asm__("x8") = number, first __asm__("x0") = a, second __asm__("x1") = b,
                       third __asm__("x2") = c, fourth __asm__("x3") = 0, fifth __asm__("x4") = 0;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth)
                     : "memory");
    return first;
#else
    (void)number, (void)a, (void)b, (void)c;
    _exit(SKIPPED);
#endif
}

static void unseen(void *arg) {
    size_t before = *(size_t *)arg;
    hungry(before);
    struct sock_fprog strict = strict_program();
    if (raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) != 0 ||
        raw(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&strict) != 0)
        _exit(SKIPPED);
    host_live();
}

static void run_unseen(void) {
    size_t before[] = {0, 1, 40};
    for (int i = 0; i < 3; i++) host_lives(unseen, &before[i]);
}

static void start_unseen(void *unused) {
    (void)unused;
    CHECK(setenv("SLABYARD", "system-files=no,explain=no", 1) == 0);
    execl(program, program, "unseen", (char *)NULL);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "unseen") == 0) {
        run_unseen();
        return 0;
    }
    if (count > 1) {
        host_live();
        host_reports(err, NULL);
        return 0;
    }
    program = arguments[0];
    const unsigned actions[] = {KILL, TRAP, REFUSE};
    for (int i = 0; i < 3; i++)
        host_lives(start_in,
                   &(filter){not_for_services, COUNT_OF(not_for_services), false, actions[i]});
    host_lives(start_in, &(filter){not_in_containers, COUNT_OF(not_in_containers), false, REFUSE});
    host_lives(start_in, &(filter){(const long[]){SYS_membarrier}, 1, false, REFUSE});
    size_t before[] = {0, 1, 40};
    for (int i = 0; i < 3; i++) {
        host_lives(by_number, &before[i]);
        host_lives(for_all_threads, &before[i]);
        host_lives(in_one_thread, &before[i]);
        host_lives(one_after_another, &before[i]);
    }
    host_lives(start_unseen, NULL);
    return 0;
}
