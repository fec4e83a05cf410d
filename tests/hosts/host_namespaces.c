/* System calls that only a process with one thread may make: unshare and setns of a user namespace.
 * A program without threads may make them, however much memory it uses, and is hungry before and
 * after. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "hosts/hosts.h"

static int by_function(int flags) { return unshare(flags); }
static int by_number(int flags) { return (int)syscall(SYS_unshare, (long)flags); }

/* In a child, since there is no way back. */
static void enter(int (*call)(int flags), int flags) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        hungry(40);
        void *kept = malloc(40 << 20);
        memset(kept, 1, 40 << 20);
        hungry(40);
        errno = 0;
        if (call(flags) != 0) _exit(errno == EPERM || errno == ENOSPC ? SKIPPED : 1);
        hungry(40);
        free(kept);
        hungry(40);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) exit(SKIPPED);
    CHECK(status == 0);
}

static int enter_own_user_namespace(int flags) {
    int file = open("/proc/self/ns/user", O_RDONLY);
    int result = setns(file, flags);
    /* The kernel refuses the namespace that the process is in already, by EINVAL, but a process
     * with several threads by EINVAL, too. So this only has to return. */
    close(file);
    (void)result;
    return 0;
}

int main(void) {
    for (int round = 0; round < 5; round++) {
        enter(by_function, CLONE_NEWUSER);
        enter(by_number, CLONE_NEWUSER);
        enter(by_function, CLONE_NEWUSER | CLONE_NEWNS);
    }
    enter(enter_own_user_namespace, CLONE_NEWUSER);
    CHECK(unshare(0) == 0);
    errno = 0;
    CHECK(setns(-1, 0) == -1 && errno == EBADF);
    errno = 0;
    CHECK(unshare(1) == -1 && errno == EINVAL);
    return 0;
}
