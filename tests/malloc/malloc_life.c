/*
 * malloc_life.c: tests the drop-in malloc in all phases of a process: before main and in
 * constructors, in destructors of thread-specific data, in atexit handlers, in children of fork and
 * vfork, in many threads, and while libraries are loaded and unloaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "malloc/malloc.h"
#include "support/emulated.h"

extern char **environ;

/* ---- before main and after it ---- */

static void *before_main;

__attribute__((constructor(101))) static void allocate_first(void) {
    before_main = malloc(1000);
    fill(before_main, 1000, 1);
}

__attribute__((destructor(101))) static void free_last(void) {
    must_be_whole(before_main, 1000, 1);
    free(before_main);
    void *block = opaque(malloc(500));
    free(block);
    static const char line[] = "the last destructor has run\n";
    must(write(1, line, sizeof line - 1) > 0);
}

static void *at_exit;

static void use_at_exit(void) {
    must_be_whole(at_exit, 300000, 2);
    at_exit = realloc(at_exit, 600000);
    must_be_whole(at_exit, 300000, 2);
    free(at_exit);
}

/* ---- the end of threads ---- */

static pthread_key_t keys[8];
static _Atomic unsigned destructed;

/* Sets a value again, so that it runs again: then also after the library's own destructor. */
static void use_in_destructor(void *value) {
    unsigned *left = value;
    must_be_whole(left + 1, 60, 4);
    void *block = opaque(malloc(200)), *large = opaque(malloc(200000));
    free(large);
    free(block);
    for (int i = 0; i < 8 && *left; i++)
        if (!pthread_getspecific(keys[i])) {
            --*left;
            pthread_setspecific(keys[i], value);
            return;
        }
    free(value);
    atomic_fetch_add(&destructed, 1);
}

static void *leave_values(void *arg) {
    for (int i = 0; i < 8; i += 2) {
        unsigned *value = malloc(64);
        *value = 3;
        fill(value + 1, 60, 4);
        pthread_setspecific(keys[i], value);
    }
    return arg;
}

static void values_outlive_the_threads_part(void) {
    enum { THREADS = 50 };
    for (int i = 0; i < 8; i++) must(pthread_key_create(&keys[i], use_in_destructor) == 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, leave_values, NULL) == 0);
        must(pthread_join(thread, NULL) == 0);
    }
    must(atomic_load(&destructed) == THREADS * 4);
}

/* ---- many threads ---- */

enum { LIVE = 1000, BLOCKS = 40 };
static pthread_barrier_t all_there;

/* Each block holds its thread's number, so the test fails if two threads get the same block. */
static void *come_and_go(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        fill(blocks[i] = malloc(16 + i * 8), 16 + i * 8, seed + i);
    pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < BLOCKS; i++) {
        must_be_whole(blocks[i], 16 + i * 8, seed + i);
        free(blocks[i]);
    }
    return NULL;
}

static void a_thousand_threads_at_once(void) {
    static pthread_t threads[LIVE];
    pthread_attr_t small;
    must(pthread_barrier_init(&all_there, NULL, LIVE) == 0);
    must(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 128 << 10) == 0);
    for (int round = 0; round < 2; round++) {
        for (uintptr_t i = 0; i < LIVE; i++)
            must(pthread_create(&threads[i], &small, come_and_go, (void *)(i * 41)) == 0);
        for (int i = 0; i < LIVE; i++) must(pthread_join(threads[i], NULL) == 0);
    }
}

/* ---- children ---- */

static _Atomic bool stop;

static void *keep_busy(void *arg) {
    while (!atomic_load(&stop)) {
        void *blocks[32];
        for (unsigned i = 0; i < 32; i++) fill(blocks[i] = malloc(i * 300), i * 300, i);
        for (unsigned i = 0; i < 32; i++) {
            must_be_whole(blocks[i], i * 300, i);
            free(blocks[i]);
        }
    }
    return arg;
}

static void must_end_well(pid_t pid) {
    int status;
    must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Allocates, starts a thread, and does the same in `depth` generations of children. */
static void live_on_in_child(int depth) {
    pthread_t thread;
    for (unsigned i = 0; i < 2000; i++) free(opaque(malloc(i * 50)));
    must(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    if (depth > 0) {
        pid_t pid = fork();
        if (pid == 0) {
            live_on_in_child(depth - 1);
            _exit(0);
        }
        must_end_well(pid);
    }
}

static void children_of_a_busy_process(void) {
    enum { BUSY = 3, FORKS = 30 };
    pthread_t threads[BUSY];
    must(pthread_barrier_init(&all_there, NULL, 1) == 0);
    for (int i = 0; i < BUSY; i++) must(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            live_on_in_child(1);
            _exit(0);
        }
        must_end_well(pid);
    }
    char *const arguments[] = {"true", NULL};
    pid_t pid;
    must(posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) == 0);
    must_end_well(pid);
    pid = vfork();
    if (pid == 0) {
        execvp("true", arguments);
        _exit(1);
    }
    must_end_well(pid);
    atomic_store(&stop, true);
    for (int i = 0; i < BUSY; i++) must(pthread_join(threads[i], NULL) == 0);
}

/* ---- libraries ---- */

/* Loads plugin.c, which allocates when it is loaded and frees when it is unloaded. */
#ifndef LINKED_STATICALLY
static void libraries_come_and_go(const char *path) {
    for (int i = 0; path && i < 20; i++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        must(library != NULL);
        void *(*give)(size_t) = (void *(*)(size_t))(uintptr_t)dlsym(library, "plugin_give");
        must(give != NULL);
        void *block = give(700);
        must(malloc_usable_size(block) == 704);
        must(dlclose(library) == 0);
        free(block);
    }
}
#else
static void libraries_come_and_go(const char *path) { (void)path; }
#endif

int main(int count, char **arguments) {
    must_be_slabyard();
    must_be_whole(before_main, 1000, 1);
    at_exit = malloc(300000);
    fill(at_exit, 300000, 2);
    must(atexit(use_at_exit) == 0);
    values_outlive_the_threads_part();
    a_thousand_threads_at_once();
    /* An emulator has locks of its own, which the child of a busy process may find taken. */
    if (!is_emulated()) children_of_a_busy_process();
    libraries_come_and_go(count > 1 ? arguments[1] : NULL);
    return 0;
}
