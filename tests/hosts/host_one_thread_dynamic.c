/* A program with one thread, and much memory in use: the background threads return its memory, and
 * the C library still takes its locks as in a program with one thread. Then the program starts
 * threads, which use locks and streams of the C library. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hosts/hosts.h"

extern __attribute__((weak)) char __libc_single_threaded;

/* The number of the process's threads that have this name. */
static unsigned threads_named(const char *name) {
    unsigned found = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) exit(SKIPPED);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        found += fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) == 0 &&
                 line[strlen(name)] == '\n';
        fclose(file);
    }
    closedir(tasks);
    return found;
}

static size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t all = 0, pages = 0;
    CHECK(file && fscanf(file, "%zu %zu", &all, &pages) == 2);
    fclose(file);
    return pages * (size_t)getpagesize();
}

static void until_both_run(void) {
    while (threads_named("slabyard") + threads_named("slabyard-facts") < 2) hungry(2);
}

enum { BLOCKS = 40000, BYTES = 1000, THREADS = 4, ROUNDS = 20000 };

static void grow_and_shrink(void) {
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
    until_both_run();
    CHECK(resident() > BLOCKS * BYTES);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    while (resident() > BLOCKS * BYTES / 2) host_rest(10);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned counted;
static FILE *shared;

static void *hammer(void *errors) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
        if (putc('x', shared) != 'x') ++*(_Atomic unsigned *)errors;
        free(memset(malloc(100 + (size_t)i), 1, 100));
        if (errno == EBADF) ++*(_Atomic unsigned *)errors; /* of another thread */
    }
    return NULL;
}

static void use_threads(void) {
    pthread_t threads[THREADS];
    _Atomic unsigned errors = 0;
    counted = 0;
    CHECK((shared = tmpfile()) != NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, hammer, &errors) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(errors == 0 && counted == THREADS * ROUNDS);
    CHECK(fflush(shared) == 0 && ftell(shared) == THREADS * ROUNDS);
    fclose(shared);
}

static void live_in_child(void *unused) {
    (void)unused;
    CHECK(threads_named("slabyard") == 0);
    bool alone = __libc_single_threaded;
    grow_and_shrink();
    CHECK(__libc_single_threaded == alone);
    use_threads();
}

int main(void) {
    if (!&__libc_single_threaded) return SKIPPED;
    CHECK(__libc_single_threaded);
    grow_and_shrink();
    CHECK(__libc_single_threaded);
    for (int i = 0; i < 3; i++) host_lives(live_in_child, NULL);
    use_threads();
    CHECK(!__libc_single_threaded);
    CHECK(threads_named("slabyard") == 1);
    grow_and_shrink();
    host_lives(live_in_child, NULL);
    return 0;
}
