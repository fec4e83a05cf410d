/* Programs that have no /proc, /sys or /dev: they change their root directory while they have some
 * memory, or are started in a root without these. And programs whose /proc can only be read. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#include "hosts/hosts.h"

static void *eat(void *unused) {
    hungry(16);
    return unused;
}

/* glibc loads a library for the end of a thread, which is not there in another root. */
static void run_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, eat, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void live(void) {
    hungry(64);
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(8);
    run_thread();
    free(kept);
}

/* Whoever is not root is it in a namespace of users. */
static void become_root(void) {
    if (unshare(CLONE_NEWNS) == 0) return;
    CHECK(errno == EPERM);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(SKIPPED);
}

static void change_root(const char *empty) {
    if (chroot(empty) != 0) _exit(SKIPPED);
    CHECK(chdir("/") == 0);
}

typedef struct host {
    const char *program;
    size_t before; /* MiB in use when the root changes */
} host;

static void leave_files(void *arg) {
    const host *here = arg;
    void *kept = malloc(1 + (here->before << 20));
    CHECK(kept != NULL);
    memset(kept, 1, here->before << 20);
    run_thread();
    become_root();
    change_root("/sys/kernel");
    live();
    free(kept);
    live();
}

static void leave_files_and_err(void *arg) {
    leave_files(arg);
    host_free_twice(NULL);
}

/* Hides /proc, /sys and /dev, and runs the program once more. */
static void start_without(void *arg) {
    static const char *const hidden[] = {"/proc", "/sys", "/dev"};
    const host *here = arg;
    become_root();
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) _exit(SKIPPED);
    for (int i = 0; i < 3; i++)
        if (mount("none", hidden[i], "tmpfs", 0, NULL) != 0) _exit(SKIPPED);
    execl(here->program, here->program, "inner", (char *)NULL);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

static void start_read_only(void *arg) {
    const host *here = arg;
    become_root();
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) _exit(SKIPPED);
    if (mount("/proc", "/proc", NULL, MS_BIND | MS_REC, NULL) != 0) _exit(SKIPPED);
    if (mount("none", "/proc", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) _exit(SKIPPED);
    execl(here->program, here->program, "inner", (char *)NULL);
    host_failed(__FILE__, __LINE__, "the program can be started again");
}

static void err(void *unused) {
    live();
    host_free_twice(unused);
}

static void run_inner(void) {
    live();
    host_reports(err, NULL);
}

int main(int count, char **arguments) {
    if (count > 1) {
        run_inner();
        return 0;
    }
    const size_t before[] = {0, 1, 40};
    for (int i = 0; i < 3; i++) {
        host here = {arguments[0], before[i]};
        host_lives(leave_files, &here);
        host_reports(leave_files_and_err, &here);
    }
    host here = {arguments[0], 0};
    host_lives(start_without, &here);
    host_lives(start_read_only, &here);
    return 0;
}
