/* A program that changes its user and its groups while it has much memory and other threads. The C
 * library makes every thread do so, the background threads among them. */
#define _GNU_SOURCE
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

/* The work of the background threads goes on: what is freed is returned. They have the new user as
 * well, so the process cannot get its rights back by them. */
static void all_threads_are_nobody(void) {
    char line[256], path[64];
    for (int thread = getpid(); thread < getpid() + 64; thread++) {
        snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        unsigned real = NOBODY, effective = NOBODY;
        while (fgets(line, sizeof line, file))
            if (sscanf(line, "Uid: %u %u", &real, &effective) == 2) break;
        fclose(file);
        CHECK(real == NOBODY && effective == NOBODY);
    }
}

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
    host_lives(drop_rights_while_young, NULL);
    return 0;
}
