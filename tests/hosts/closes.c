/*
 * closes.c: a host that closes its plug-ins while its threads use them. Each plug-in has a function
 * plugin_work, which returns 0, and a copy of Slabyard.
 *
 * Usage: closes PLUGIN...
 *
 * A plug-in is opened by one thread. Then, of three others, one has used the plug-in and is alive,
 * one is in it, and one has ended, when dlclose is called. This is done twice for each plug-in,
 * while the other plug-ins stay open.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "hosts/hosts.h"

enum { TIMES = 2, PLUGINS_MAX = 16 };

typedef int work_function(void);

static void *library;
static work_function *work;
static pthread_barrier_t used, closed;
static atomic_bool stop;

static void *open_plugin(void *path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) host_say(dlerror());
    CHECK(library);
    work = (work_function *)(uintptr_t)dlsym(library, "plugin_work");
    CHECK(work && work() == 0);
    return NULL;
}

static void *use_and_end(void *unused) {
    CHECK(work() == 0);
    return unused;
}

static void *outlive(void *unused) {
    CHECK(work() == 0);
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return unused;
}

static void *stay_inside(void *unused) {
    CHECK(work() == 0);
    pthread_barrier_wait(&used);
    while (!atomic_load(&stop)) CHECK(work() == 0);
    return unused;
}

static pthread_t start(void *(*task)(void *), void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, task, arg) == 0);
    return thread;
}

static void use_and_close(char *path) {
    pthread_join(start(open_plugin, path), NULL);
    pthread_join(start(use_and_end, NULL), NULL);
    atomic_store(&stop, false);
    pthread_t outliving = start(outlive, NULL), inside = start(stay_inside, NULL);
    pthread_barrier_wait(&used);
    CHECK(dlclose(library) == 0);
    CHECK(work() == 0);
    atomic_store(&stop, true);
    pthread_barrier_wait(&closed);
    pthread_join(outliving, NULL);
    pthread_join(inside, NULL);
}

int main(int argc, char **argv) {
    pthread_barrier_init(&used, NULL, 3);
    pthread_barrier_init(&closed, NULL, 2);
    CHECK(argc > 1 && argc <= PLUGINS_MAX);
    void *open[PLUGINS_MAX]; /* they are all open at the same time */
    for (int i = 1; i < argc; i++) {
        open_plugin(argv[i]);
        open[i] = library;
    }
    for (int time = 0; time < TIMES; time++)
        for (int i = 1; i < argc; i++) use_and_close(argv[i]);
    for (int i = 1; i < argc; i++) CHECK(dlclose(open[i]) == 0);
    for (int i = 1; i < argc; i++) use_and_close(argv[i]);
    return 0;
}
