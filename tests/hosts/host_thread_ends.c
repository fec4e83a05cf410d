/* Threads that end in unusual ways, and programs that end while threads allocate. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>

#include "hosts/hosts.h"

static void begin(pthread_t *thread, void *(*body)(void *), void *arg) {
    CHECK(pthread_create(thread, NULL, body, arg) == 0);
}

static void run(void *(*body)(void *), void *arg) {
    pthread_t thread;
    begin(&thread, body, arg);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Destructors of keys allocate and free in every round that POSIX allows. */
static pthread_key_t keys[8];
static _Atomic int destructions;

static void destruct(void *block) {
    destructions++;
    free(block);
    hungry(1);
    void *again = malloc(3000);
    CHECK(again != NULL);
    size_t key = (size_t)destructions % 8;
    void *old = pthread_getspecific(keys[key]);
    CHECK(pthread_setspecific(keys[key], again) == 0);
    free(old);
}

static void *use_keys(void *unused) {
    for (int i = 0; i < 8; i++) pthread_setspecific(keys[i], malloc(100));
    return unused;
}

static void keys_allocate(void *unused) {
    (void)unused;
    for (int i = 0; i < 8; i++) CHECK(pthread_key_create(&keys[i], destruct) == 0);
    for (int i = 0; i < 20; i++) run(use_keys, NULL);
    CHECK(destructions > 20 * 8);
}

/* Cancelled at any instruction of its own work, but not of malloc's. */
static void *turn_for_ever(void *blocks) {
    int before;
    memset(blocks, 0, 100);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    for (volatile unsigned turns = 0;; turns++) {}
    return NULL;
}

static void asynchronous_cancels(void *unused) {
    (void)unused;
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *block = malloc(100), *result;
        begin(&thread, turn_for_ever, block);
        hungry(1);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        free(block);
    }
}

/* A thread that the C library does not see end: its magazines stay with it. */
static void *end_unseen(void *unused) {
    hungry(1);
    syscall(SYS_exit, 0L);
    return unused;
}

static void ends_unseen(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        begin(&thread, end_unseen, NULL);
        CHECK(pthread_join(thread, NULL) == 0);
        hungry(1);
    }
}

static void *eat_for_ever(void *unused) {
    for (;;) hungry(1);
    return unused;
}

static void *exit_from_here(void *way) {
    hungry(20);
    switch ((size_t)way) {
    case 0: exit(0);
    case 1: _exit(0);
    case 2: quick_exit(0);
    default: execl("/bin/true", "true", (char *)NULL);
    }
    return NULL;
}

static void free_at_exit(void) { hungry(2); }

/* Other threads allocate while the process ends. */
static void exits(void *way) {
    pthread_t threads[3];
    CHECK(atexit(free_at_exit) == 0 && at_quick_exit(free_at_exit) == 0);
    for (int i = 0; i < 2; i++) begin(&threads[i], eat_for_ever, NULL);
    begin(&threads[2], exit_from_here, way);
    for (;;) hungry(1);
}

static void *leave_block(void *arg) {
    *(void **)arg = malloc(5000);
    return NULL;
}

/* Short lives: the memory of ended threads is used again. */
static void many_threads(void *unused) {
    (void)unused;
    pthread_t threads[64];
    void *blocks[64];
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 64; i++) begin(&threads[i], leave_block, &blocks[i]);
        for (int i = 0; i < 64; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < 64; i++) free(blocks[i]);
    }
}

static int c11_body(void *arg) {
    hungry(1);
    thrd_exit(*(int *)arg);
}

static void threads_of_c11(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        thrd_t thread;
        int result = 0;
        CHECK(thrd_create(&thread, c11_body, &i) == thrd_success);
        CHECK(thrd_join(thread, &result) == thrd_success && result == i);
    }
}

int main(void) {
    host_lives(keys_allocate, NULL);
    host_lives(asynchronous_cancels, NULL);
    host_lives(ends_unseen, NULL);
    for (size_t way = 0; way < 4; way++)
        for (int i = 0; i < 5; i++) host_lives(exits, (void *)way);
    host_lives(many_threads, NULL);
    host_lives(threads_of_c11, NULL);
    return 0;
}
