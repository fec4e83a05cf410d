/* A program that changes its user and its groups while it has much memory and other threads. The C
 * library makes every thread do so that it knows, and the background threads have to follow. */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "hosts/hosts.h"

enum { NOBODY = 65534 };

static _Atomic bool over;

static void *eat(void *unused) {
    while (!over) hungry(2);
    CHECK(getuid() == NOBODY && getgid() == NOBODY);
    return unused;
}

static void become_nobody(void) {
    if (setgroups(0, NULL) != 0) _exit(SKIPPED);
    CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    CHECK(setuid(0) != 0 && seteuid(0) != 0);
}

/* Calls visit(arg, status) for each thread of the process, with its file of figures. Returns how
 * many threads there are. */
static unsigned each_thread(void (*visit)(void *arg, FILE *status), void *arg) {
    unsigned count = 0;
    struct dirent *entry;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads);
    while ((entry = readdir(threads)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = visit ? fopen(path, "r") : NULL;
        if (status) {
            visit(arg, status);
            fclose(status);
        }
        count++;
    }
    closedir(threads);
    return count;
}

static void expect_nobody(void *unused, FILE *status) {
    (void)unused;
    char line[256];
    unsigned real = NOBODY, effective = NOBODY;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) break;
    CHECK(real == NOBODY && effective == NOBODY);
}

/* The work of the background threads goes on: what is freed is returned. They have the new user as
 * well, so the process cannot get its rights back by them. */
static void all_threads_are_nobody(void) { each_thread(expect_nobody, NULL); }

static void drop_rights(void *arg) {
    size_t threads = *(size_t *)arg;
    pthread_t others[4];
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(8);
    for (size_t i = 0; i < threads; i++) CHECK(pthread_create(&others[i], NULL, eat, NULL) == 0);
    become_nobody();
    all_threads_are_nobody();
    hungry(32);
    over = true;
    for (size_t i = 0; i < threads; i++) CHECK(pthread_join(others[i], NULL) == 0);
    free(kept);
    hungry(32);
}

/* Whether a background thread runs. */
static bool is_in_background(void) { return each_thread(NULL, NULL) > 1; }

static int by_setuid(void) { return setuid(NOBODY); }
static int by_seteuid(void) { return seteuid(NOBODY); }
static int by_setreuid(void) { return setreuid(NOBODY, NOBODY); }
static int by_setresuid(void) { return setresuid(NOBODY, NOBODY, NOBODY); }
static int by_setgid(void) { return setgid(NOBODY); }
static int by_setegid(void) { return setegid(NOBODY); }
static int by_setregid(void) { return setregid(NOBODY, NOBODY); }
static int by_setresgid(void) { return setresgid(NOBODY, NOBODY, NOBODY); }
static int by_setgroups(void) { return setgroups(1, (gid_t[]){NOBODY}); }
#ifndef LINKED_STATICALLY /* it loads libraries */
static int by_initgroups(void) { return initgroups("no such user", NOBODY); }
#endif

static const struct change {
    int (*call)(void);
    const char *format; /* of the line that shows it */
} changes[] = {
    {by_setuid, "Uid: %*u %u"},    {by_seteuid, "Uid: %*u %u"},   {by_setreuid, "Uid: %*u %u"},
    {by_setresuid, "Uid: %*u %u"}, {by_setgid, "Gid: %*u %u"},    {by_setegid, "Gid: %*u %u"},
    {by_setregid, "Gid: %*u %u"},  {by_setresgid, "Gid: %*u %u"}, {by_setgroups, "Groups: %u"},
#ifndef LINKED_STATICALLY
    {by_initgroups, "Groups: %u"},
#endif
};

static void expect_changed(void *arg, FILE *status) {
    const struct change *change = arg;
    char line[256];
    unsigned effective = NOBODY;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, change->format, &effective) == 1) break;
    CHECK(effective == NOBODY);
}

/* Each function, while background threads run: afterwards no thread has the old user or group. */
static void change_all_threads(void *arg) {
    const struct change *change = arg;
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    while (!is_in_background()) hungry(2);
    if (change->call() != 0) _exit(SKIPPED);
    each_thread(expect_changed, arg);
    free(kept);
    hungry(32);
}

static void drop_rights_while_young(void *unused) {
    (void)unused;
    become_nobody();
    hungry(64);
    prctl(PR_SET_DUMPABLE, 0);
    hungry(64);
    host_reports(host_free_twice, NULL);
}

int main(void) {
    if (geteuid() != 0) return SKIPPED;
    size_t threads[] = {0, 1, 4};
    for (int i = 0; i < 3; i++) host_lives(drop_rights, &threads[i]);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        host_lives(change_all_threads, (void *)&changes[i]);
    host_lives(drop_rights_while_young, NULL);
    return 0;
}
