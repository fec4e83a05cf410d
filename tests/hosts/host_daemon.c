/* A program that becomes a daemon after it has used much memory: two forks, a new session, and no
 * open descriptors. What it asks the system afterwards it gets, and its mistakes end it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "hosts/hosts.h"

static _Atomic int *ended; /* shared with the daemon */

static void *eat(void *unused) {
    hungry(32);
    return unused;
}

static void serve(void) {
    pthread_t thread;
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(32);
    CHECK(pthread_create(&thread, NULL, eat, NULL) == 0 && pthread_join(thread, NULL) == 0);
    free(kept);
    hungry(32);
}

static void use_daemon(void) {
    alarm(60);
    CHECK(daemon(0, 0) == 0);
}

/* As old daemons do it. */
static void use_forks(void) {
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) _exit(0);
        if (i == 0) CHECK(setsid() > 0);
    }
    alarm(60);
    umask(0);
    CHECK(chdir("/") == 0);
    for (int fd = 0; fd < 1024; fd++) close(fd);
    for (int fd = 0; fd < 3; fd++) CHECK(open("/dev/null", O_RDWR) == fd);
}

static void live(void *arg) {
    void (*become_daemon)(void) = *(void (**)(void))arg;
    serve();
    become_daemon();
    serve();
    CHECK(open("/dev/null", O_RDONLY) == 3);
    *ended = 1;
    _exit(0);
}

/* The parent of a daemon is not its parent any more, so the end is seen in shared memory. */
static void run(void (*become_daemon)(void)) {
    *ended = 0;
    host_lives(live, &become_daemon);
    for (int wait = 0; wait < 6000 && !*ended; wait++) host_rest(10);
    CHECK(*ended);
}

int main(void) {
    host_close_others();
    ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(ended != MAP_FAILED);
    run(use_daemon);
    run(use_forks);
    serve();
    run(use_daemon);
    return 0;
}
