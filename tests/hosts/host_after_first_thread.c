/* What goes on after the first thread has ended by pthread_exit: threads allocate, start others,
 * fork, make mistakes, and end the process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "hosts/hosts.h"

typedef void *thread_body(void *);

static void leave_to(thread_body *body) {
    pthread_t thread;
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(8);
    CHECK(pthread_create(&thread, NULL, body, kept) == 0);
    CHECK(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

static void *eat(void *kept) {
    host_rest(50);
    hungry(32);
    free(kept);
    hungry(32);
    return NULL;
}

static void *exit_with_7(void *kept) {
    eat(kept);
    exit(7);
}

static void eat_in_child(void *unused) {
    (void)unused;
    hungry(32);
}

static void *have_children(void *kept) {
    host_rest(50);
    for (int i = 0; i < 5; i++) host_lives(eat_in_child, NULL);
    free(kept);
    return NULL;
}

static void *err(void *kept) {
    host_rest(50);
    free(kept);
    host_free_twice(NULL);
    return NULL;
}

/* Each starts the next one, and ends: at any time one or two threads live. */
static _Atomic int generations;

static void *pass_on(void *kept) {
    pthread_t next;
    hungry(1);
    if (generations++ == 100) {
        free(kept);
        return NULL;
    }
    CHECK(pthread_create(&next, NULL, pass_on, kept) == 0);
    CHECK(pthread_detach(next) == 0);
    return NULL;
}

static void run(void *body) { leave_to(*(thread_body **)body); }

int main(void) {
    thread_body *good[] = {eat, have_children, pass_on};
    for (int i = 0; i < 3; i++) host_lives(run, &good[i]);
    thread_body *other = exit_with_7;
    int status = host_end_of(host_start(run, &other));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    other = err;
    host_reports(run, &other);
    return 0;
}
