/* Which files of the system the library opens at the start, in the thread of the program: the
 * program runs as a traced child. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "hosts/hosts.h"

/* Kernel names that older headers lack. */
#define GET_SYSCALL_INFO 0x420e /* PTRACE_GET_SYSCALL_INFO, 5.3 */

/* The system call at which the child has stopped, as the kernel describes it. */
typedef struct call {
    uint8_t kind; /* 1: entry */
    uint8_t unused[3];
    uint32_t architecture;
    uint64_t code, stack, number, arguments[6];
} call;

static const struct {
    const char *options;
    bool opens;
} rows[] = {{"tools=off", false}, /* when it has grown, the background thread does */
            {"tools=off,maintenance=no", true},
            {"tools=off,maintenance=no,system-files=no", false}};

/* Whether the child opens a file in /proc or /sys here. */
static bool opens_file(pid_t child) {
    call now = {0};
    union {
        long word;
        char text[sizeof(long)];
    } path;
    if (ptrace(GET_SYSCALL_INFO, child, (void *)sizeof now, &now) <= 0) _exit(SKIPPED);
    if (now.kind != 1 || now.number != SYS_openat) return false;
    path.word = ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)now.arguments[1], NULL);
    return strncmp(path.text, "/proc", 5) == 0 || strncmp(path.text, "/sys", 4) == 0;
}

static unsigned count_opened(const char *program, const char *options) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(setenv("SLABYARD", options, 1) == 0);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(SKIPPED);
        execl("/proc/self/exe", program, "traced", NULL);
        _exit(1);
    }
    unsigned opened = 0;
    int status;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) opened += opens_file(child);
        CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD) == 0);
        CHECK(ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) exit(SKIPPED);
    CHECK(status == 0);
    return opened;
}

int main(int count, char **arguments) {
    if (count > 1) {
        hungry(4);
        return 0;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK((count_opened(arguments[0], rows[i].options) > 0) == rows[i].opens);
    return 0;
}
