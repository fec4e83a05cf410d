/*
 * sandbox.c: the C library's functions after which a process may not have, or cannot use, the
 * library's background threads. They end these threads, and then make the system call.
 *
 *     unshare, setns     some of their calls fail in a process with several threads. The background
 *                        threads start again later
 *     prctl, syscall     may set a filter of system calls (seccomp). A thread that runs already
 *                        would stay outside of the filter, and the start of one afterwards could
 *                        end the process. So there is none from then on (sy_enter_sandbox)
 *
 * A program that makes these system calls without the C library has to call sy_enter_sandbox, or to
 * be started with `system-files=no,explain=no`: the first sampled object would set a handler. So
 * have programs on processors for which `syscall` is not written here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "os/os.h"
#include "reclaim/reclaim.h"

#define NAME __attribute__((visibility("default")))

/* Of linux/seccomp.h, which a compiler for musl comes without. */
enum { SET_MODE_STRICT = 0, SET_MODE_FILTER = 1, MODE_STRICT = 1, MODE_FILTER = 2 };

#if defined(__x86_64__) || defined(__aarch64__)

/* Sets errno, for the assembly below. */
__attribute__((visibility("hidden"))) long sy_shim_failed(long result);

long sy_shim_failed(long result) {
    errno = (int)-result;
    return -1;
}

/*
 * `syscall` is written in assembly, because a program may use it to start a thread on a stack that
 * it has prepared: it must not touch the stack. sy_shim_call makes the system call; `syscall`
 * passes the four calls that concern this file to sy_shim_syscall first. The arguments are those of
 * the C library: a number and six words.
 */
#    define TEXT_OF(word) #    word
#    define TEXT(word)    TEXT_OF(word)

#    if defined(__x86_64__)
#        define ENTRY ""
#        define CATCH(number)               \
            "cmp $" TEXT(number) ", %rdi\n" \
                                 "je sy_shim_syscall\n"
#        define CALL              \
            "mov %rdi, %rax\n"    \
            "mov %rsi, %rdi\n"    \
            "mov %rdx, %rsi\n"    \
            "mov %rcx, %rdx\n"    \
            "mov %r8, %r10\n"     \
            "mov %r9, %r8\n"      \
            "mov 8(%rsp), %r9\n"  \
            "syscall\n"           \
            "cmp $-4095, %rax\n"  \
            "jae 1f\n"            \
            "ret\n"               \
            "1: mov %rax, %rdi\n" \
            "jmp sy_shim_failed\n"
#    else
#        define ENTRY "hint #34\n" /* bti c: a target of indirect calls */
#        define CATCH(number)             \
            "cmp x0, #" TEXT(number) "\n" \
                                     "b.eq 2f\n"
#        define CALL                \
            "mov x8, x0\n"          \
            "mov x0, x1\n"          \
            "mov x1, x2\n"          \
            "mov x2, x3\n"          \
            "mov x3, x4\n"          \
            "mov x4, x5\n"          \
            "mov x5, x6\n"          \
            "svc #0\n"              \
            "cmn x0, #4095\n"       \
            "b.cs 1f\n"             \
            "ret\n"                 \
            "1: b sy_shim_failed\n" \
            "2: b sy_shim_syscall\n"
#    endif
#    define CATCH_ALL CATCH(__NR_prctl) CATCH(__NR_seccomp) CATCH(__NR_unshare) CATCH(__NR_setns)

__asm__(".pushsection .text.syscall,\"ax\",@progbits\n"
        ".globl syscall\n"
        ".type syscall,@function\n"
        ".balign 16\n"
        "syscall:\n"
        ".cfi_startproc\n" ENTRY CATCH_ALL ".globl sy_shim_call\n"
        ".hidden sy_shim_call\n"
        ".type sy_shim_call,@function\n"
        "sy_shim_call:\n" CALL ".cfi_endproc\n"
        ".size syscall, .-syscall\n"
        ".popsection\n");

__attribute__((visibility("hidden"))) long sy_shim_call(long number, long a, long b, long c, long d,
                                                        long e, long f);
__attribute__((visibility("hidden"))) long sy_shim_syscall(long number, long a, long b, long c,
                                                           long d, long e, long f);

/* Without a filter, the program only asks whether the system has filters. */
static bool sets_filter(long number, long a, long b, long c) {
    if (number == SYS_seccomp) return a == SET_MODE_STRICT || (a == SET_MODE_FILTER && c);
    if (number != SYS_prctl || (int)a != PR_SET_SECCOMP) return false;
    return b == MODE_STRICT || (b == MODE_FILTER && c);
}

/* The C library declares it with `...`. On these processors the words come in the same
 * registers. */
NAME int sy_shim_prctl(int option, long b, long c, long d, long e) __asm__("prctl");

NAME int sy_shim_prctl(int option, long b, long c, long d, long e) {
    return (int)sy_shim_syscall(SYS_prctl, option, b, c, d, e, 0);
}

#else

#    define sy_shim_call(number, a, b, c, d, e, f) syscall(number, a, b)

#endif

/* ---- calls of processes with one thread ---- */

static bool needs_one_thread(long number, long flags) {
    const long such = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    return number == SYS_setns || (number == SYS_unshare && flags & such);
}

/* A child of vfork has one thread, and uses the memory of its parent, whose threads go on. */
static long call_alone(long number, long a, long b) {
    if (!sy_os_is_own_thread()) return sy_shim_call(number, a, b, 0, 0, 0, 0);
    bool ran = sy_maintenance_pause();
    long result = sy_shim_call(number, a, b, 0, 0, 0, 0);
    sy_maintenance_resume(ran);
    return result;
}

#if defined(__x86_64__) || defined(__aarch64__)

long sy_shim_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (needs_one_thread(number, a)) return call_alone(number, a, b);
    if (sets_filter(number, a, b, c)) sy_enter_sandbox();
    return sy_shim_call(number, a, b, c, d, e, f);
}

#endif

NAME int unshare(int flags) {
    if (needs_one_thread(SYS_unshare, flags)) return (int)call_alone(SYS_unshare, flags, 0);
    return (int)sy_shim_call(SYS_unshare, flags, 0, 0, 0, 0, 0);
}

NAME int setns(int fd, int type) { return (int)call_alone(SYS_setns, fd, type); }
