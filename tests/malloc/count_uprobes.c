/*
 * count_uprobes.c: counts how often a program reaches two places of a library, by the kernel's
 * uprobes (perf_event_open), as profilers do at the probes of debug/probes.h. Unlike
 * count_probes.c, it does not stop the program.
 *
 * Usage: count_uprobes LIBRARY OFFSET OFFSET PROGRAM ARGUMENT
 * The offsets are those in the library's file. The program gets LD_PRELOAD=LD_PRELOAD_OF_CHILD.
 * Prints the two counts. Status 77: uprobes are not permitted here; what is printed says what was
 * refused.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char TYPE_OF_UPROBES[] = "/sys/bus/event_source/devices/uprobe/type";

/* Says what failed. Returns the status to end with: 77 if the kernel or a sandbox refused it. */
static int say(const char *what) {
    int error = errno;
    printf("%s: %s\n", what, strerror(error));
    return error == ENOENT || error == EACCES || error == EPERM || error == ENOSYS ? 77 : 1;
}

static int read_type(uint32_t *type) {
    FILE *file = fopen(TYPE_OF_UPROBES, "r");
    int found = file ? fscanf(file, "%u", type) : 0;
    if (file) fclose(file);
    return found == 1 ? 0 : -1;
}

/* Counts from the child's next program on. */
static int open_counter(uint32_t type, const char *library, uint64_t offset, pid_t child) {
    struct perf_event_attr wanted = {.type = type,
                                     .size = sizeof wanted,
                                     .uprobe_path = (uintptr_t)library,
                                     .probe_offset = offset,
                                     .disabled = 1,
                                     .enable_on_exec = 1,
                                     .inherit = 1};
    return (int)syscall(SYS_perf_event_open, &wanted, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The child runs the program once it has read a byte. It ends if the parent ends before. */
static pid_t start_child(const int go[2], char **command) {
    char byte;
    pid_t child = fork();
    if (child != 0) return child;
    close(go[1]);
    if (read(go[0], &byte, 1) != 1) _exit(1);
    setenv("LD_PRELOAD", getenv("LD_PRELOAD_OF_CHILD"), 1);
    execv(command[0], command);
    _exit(1);
}

/* Lets the child run to its end, and prints the counts. */
static int count(int go, pid_t child, const int counters[2]) {
    uint64_t counts[2] = {0, 0};
    int status = 0;
    if (write(go, "", 1) != 1 || waitpid(child, &status, 0) != child) return 1;
    for (int i = 0; i < 2; i++)
        if (read(counters[i], &counts[i], sizeof counts[i]) != sizeof counts[i]) return 1;
    printf("%llu %llu\n", (unsigned long long)counts[0], (unsigned long long)counts[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
    int go[2], counters[2];
    uint32_t type;
    if (argc != 6) return 2;
    if (read_type(&type) != 0) return say(TYPE_OF_UPROBES);
    pid_t child = pipe(go) == 0 ? start_child(go, &argv[4]) : -1;
    if (child < 0) return 1;
    for (int i = 0; i < 2; i++) {
        counters[i] = open_counter(type, argv[1], strtoull(argv[2 + i], NULL, 0), child);
        if (counters[i] < 0) return say("perf_event_open of a uprobe");
    }
    return count(go[1], child, counters);
}
