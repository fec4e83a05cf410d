/*
 * count_probes.c: counts how often a process reaches two places of a library, by breakpoints, as a
 * profiler does at the probes of debug/probes.h. For x86-64 and 64-bit Arm.
 *
 * Usage: count_probes LIBRARY ADDRESS ADDRESS PROGRAM ARGUMENT
 * The addresses are those of the library's file. The program gets LD_PRELOAD=LD_PRELOAD_OF_CHILD.
 * Prints the two counts. Status 77: no process may be traced here.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CODE_BYTES = 1 };
static const uint32_t BREAKPOINT = 0xcc; /* int3; the process stops behind it */
#else
#    include <elf.h>
enum { CODE_BYTES = 4 };
static const uint32_t BREAKPOINT = 0xd4200000; /* brk 0; the process stops at it */
#endif

/* The address at which the library's file begins, once its code is mapped; before that 0. */
static uintptr_t start_of(pid_t child, const char *library) {
    char path[64], line[4096];
    uintptr_t start = 0;
    int has_code = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)child);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, library)) continue;
        if (!start) start = strtoull(line, NULL, 16);
        has_code |= strstr(line, " r-xp ") != NULL;
    }
    if (maps) fclose(maps);
    return has_code ? start : 0;
}

static void set_breakpoint(pid_t child, uintptr_t place) {
    long word = ptrace(PTRACE_PEEKTEXT, child, place, NULL);
    memcpy(&word, &BREAKPOINT, CODE_BYTES);
    ptrace(PTRACE_POKETEXT, child, place, word);
}

/* Where the process has stopped. If it is at a breakpoint, the instruction that was there does
 * nothing, and is skipped. */
static uintptr_t stopped_at(pid_t child) {
#if defined(__x86_64__)
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    return registers.rip - CODE_BYTES;
#else
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all);
    uintptr_t place = registers.pc;
    registers.pc += CODE_BYTES;
    ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all);
    return place;
#endif
}

/* The loader maps the library, so its code is looked for at each system call until it is there. */
static int follow(pid_t child, const char *library, const uintptr_t places[2]) {
    long counts[2] = {0, 0};
    uintptr_t start = 0;
    int status;
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (int signal = 0;; signal = 0) {
        ptrace(start ? PTRACE_CONT : PTRACE_SYSCALL, child, NULL, signal);
        if (waitpid(child, &status, 0) != child) return 1;
        if (WIFEXITED(status)) break;
        if (!WIFSTOPPED(status)) return 1;
        signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            start = start_of(child, library);
            for (int i = 0; start && i < 2; i++) set_breakpoint(child, start + places[i]);
        } else if (signal == SIGTRAP && start) {
            uintptr_t place = stopped_at(child) - start;
            for (int i = 0; i < 2; i++) counts[i] += place == places[i];
        } else {
            ptrace(PTRACE_CONT, child, NULL, signal);
            return 1;
        }
    }
    printf("%ld %ld\n", counts[0], counts[1]);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    const uintptr_t places[2] = {strtoull(argv[2], NULL, 16), strtoull(argv[3], NULL, 16)};
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            dprintf(STDOUT_FILENO, "no permission to trace\n");
            _exit(77);
        }
        setenv("LD_PRELOAD", getenv("LD_PRELOAD_OF_CHILD"), 1);
        execv(argv[4], &argv[4]);
        _exit(1);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return follow(child, argv[1], places);
}
