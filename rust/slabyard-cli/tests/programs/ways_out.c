/* Ends, or executes another program, in the way that its argument names, after 10 allocations. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void vfork_and_exec(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

/* Forks without calling the handlers of pthread_atfork. */
static void hidden_fork(void) {
    long child = syscall(SYS_fork);
    if (child == 0) {
        for (int round = 0; round < 50000; round++) free(malloc(33));
        exit(0);
    }
    waitpid((pid_t)child, NULL, 0);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    for (int round = 0; round < 10; round++) {
        void *volatile object = malloc(4321);
        (void)object;
    }
    char *again[] = {argv[0], (char *)"return", NULL};
    if (strcmp(way, "exit") == 0) exit(3);
    if (strcmp(way, "_exit") == 0) _exit(3);
    if (strcmp(way, "quick_exit") == 0) quick_exit(3);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
    if (strcmp(way, "execv") == 0) execv(argv[0], again);
    if (strcmp(way, "execvp") == 0) execvp(argv[0], again);
    if (strcmp(way, "execve") == 0) execve(argv[0], again, environ);
    if (strcmp(way, "execl") == 0) execl(argv[0], argv[0], "return", (char *)NULL);
    if (strcmp(way, "execlp") == 0) execlp(argv[0], argv[0], "return", (char *)NULL);
    if (strcmp(way, "execle") == 0) execle(argv[0], argv[0], "return", (char *)NULL, environ);
    if (strcmp(way, "vfork") == 0) vfork_and_exec();
    if (strcmp(way, "hidden") == 0) hidden_fork();
    if (strcmp(way, "closed") == 0) {
        for (int fd = 0; fd < 64; fd++) close(fd);
    }
    return 3;
}
