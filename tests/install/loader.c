/*
 * loader.c: a program that loads Slabyard, or a plug-in that uses it, with dlopen. It uses the
 * library in threads, and one of these threads ends only after dlclose.
 *
 * Usage: loader LIBRARY
 *        loader LIBRARY REFUSED FOLDER
 *
 * With REFUSED, it first uses up the C library's surplus of static thread-local storage with the
 * modules 0.so, 1.so, ... of FOLDER, and checks that dlopen of REFUSED fails for this reason.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* With WITH_OWN, the program exports a copy of its own, and uses it as well as the loaded one. */
#ifdef WITH_OWN
#    include <slabyard/heap.h>
static void use_own(size_t size) {
    void *objects[8];
    for (int i = 0; i < 8; i++) objects[i] = sy_malloc(size);
    for (int i = 0; i < 8; i++) sy_free(objects[i]);
}
#else
static void use_own(size_t size) { (void)size; }
#endif

enum { ROUNDS = 20, THREADS = 4, MODULES_MAX = 200, SIZE_MAX_ASKED = 3000 };

static void *(*take)(size_t);
static void (*give)(void *);
static int (*plugin_work)(void);

static pthread_barrier_t used, closed;

static bool is_refused(const char *path) {
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL)) return false;
    const char *why = dlerror();
    if (strstr(why, "static TLS")) return true;
    fprintf(stderr, "loader: %s\n", why);
    return false;
}

static bool spend(const char *folder) {
    for (int i = 0; i < MODULES_MAX; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.so", folder, i);
        if (is_refused(path)) return true;
    }
    return false;
}

static bool find_functions(void *library) {
    plugin_work = (int (*)(void))(uintptr_t)dlsym(library, "plugin_work");
    if (plugin_work) return true;
    take = (void *(*)(size_t))(uintptr_t)dlsym(library, "sy_malloc");
    give = (void (*)(void *))(uintptr_t)dlsym(library, "sy_free");
    return take && give;
}

static bool works(void) {
    if (plugin_work) return plugin_work() == 0;
    for (size_t i = 1; i < SIZE_MAX_ASKED; i++) {
        char *object = take(i);
        if (!object) return false;
        memset(object, 1, i);
        use_own(i);
        give(object);
    }
    return true;
}

static void *come_and_go(void *result) {
    *(bool *)result = works();
    return NULL;
}

static void *outlive(void *result) {
    *(bool *)result = works();
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return NULL;
}

static bool works_in_threads(void) {
    bool all = works();
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        bool fine[THREADS] = {false};
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, come_and_go, &fine[i]) != 0) return false;
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            all = all && fine[i];
        }
    }
    return all;
}

static bool can_be_outlived(void *library) {
    pthread_t thread;
    bool fine = false;
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&closed, NULL, 2);
    if (pthread_create(&thread, NULL, outlive, &fine) != 0) return false;
    pthread_barrier_wait(&used);
    int result = dlclose(library);
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);
    return fine && result == 0;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4) return 1;
    if (argc == 4 && !spend(argv[3])) return 2;
    if (argc == 4 && !is_refused(argv[2])) return 3;
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "loader: %s\n", dlerror());
            return 4;
        }
        if (!find_functions(library)) return 5;
        if (!works_in_threads()) return 6;
        if (!can_be_outlived(library)) return 7;
    }
    return 0;
}
