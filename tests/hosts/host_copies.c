/* Children of vfork, and copies of the process that are made without hooks of fork, while
 * background threads run. They set a filter of system calls and leave namespaces, as programs do
 * that start others in a sandbox. The parent and its background threads go on. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "hosts/sandbox.h"

static void rest(void) { nanosleep(&(struct timespec){0, 1000000}, NULL); }

static unsigned count_threads(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 ? (unsigned)tasks.st_nlink - 2 : 0;
}

static void grow(void) {
    static void *kept;
    if (!kept) kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    for (int i = 0; count_threads() < 3 && i < 5000; i++) {
        hungry(1);
        rest();
    }
}

static int status_of(pid_t child) {
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* Programs ask in this way whether the system has filters. */
static void asking_for_filters_changes_nothing(void) {
    CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0);
    errno = 0;
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1 && errno == EFAULT);
    errno = 0;
    CHECK(syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, NULL) == -1 && errno == EFAULT);
    CHECK(count_threads() == 3);
}

static void a_child_of_vfork_changes_nothing(void) {
    pid_t child = vfork();
    if (child == 0) {
        set_filter(forbidden_to_renderers, COUNT_OF(forbidden_to_renderers), false, KILL);
        (void)unshare(CLONE_NEWUSER);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(count_threads() == 3);
}

static void a_copy_waits_for_no_thread(void) {
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        alarm(30);
        (void)unshare(CLONE_NEWUSER);
        set_filter(forbidden_to_renderers, COUNT_OF(forbidden_to_renderers), false, KILL);
        hungry(1);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(count_threads() == 3);
}

int main(void) {
    grow();
    if (count_threads() != 3) return SKIPPED;
    asking_for_filters_changes_nothing();
    a_child_of_vfork_changes_nothing();
    a_copy_waits_for_no_thread();
    return 0;
}
