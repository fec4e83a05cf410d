/*
 * Starts a program and tells its peak of memory and its CPU time: `start PROGRAM ARGUMENTS`. No
 * workload: the parts `programs` and `truth` start every program with it.
 *
 * The kernel counts in a program's peak the memory of the process that forked it. So that has to be
 * a small one. LIBRARY is the library to be preloaded into the program, which this process does
 * without. When the program has ended, the last line of the error output is the peak of the largest
 * process in KiB, and the CPU time of all processes in us. The exit status is that of the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* TCMalloc has per-CPU caches, as its documentation recommends, if the C library leaves the
   restartable sequence to it. A setting that the environment has already stays. */
static void set_environment(void) {
    const char *library = getenv("LIBRARY");
    if (!library || !*library) return;
    setenv("LD_PRELOAD", library, 1);
    if (strstr(library, "tcmalloc")) setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 0);
}

static long us(struct timeval time) { return time.tv_sec * 1000000L + time.tv_usec; }

int main(int count, char **arguments) {
    int status;
    struct rusage used;
    if (count < 2) return 125;
    pid_t child = fork();
    if (child == 0) {
        set_environment();
        unsetenv("LIBRARY");
        execvp(arguments[1], arguments + 1);
        perror(arguments[1]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) return 125;
    fprintf(stderr, "\n%ld %ld\n", used.ru_maxrss, us(used.ru_utime) + us(used.ru_stime));
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    return 126;
}
