/*
 * ends.c: tests that a thread which ends in a constructor of a cache unwinds through the drop-in
 * malloc, whose cleanups run, though libgcc_s is loaded only then. Linked with
 * libslabyard-malloc.so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <slabyard/slabyard.h>

#include "malloc/malloc.h"

static bool libgcc_is_loaded(void) {
    void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library) dlclose(library);
    return library != NULL;
}

enum { LAST = 40 };

static int made, ended;

static int make_or_end(void *object, void *arg) {
    (void)object, (void)arg;
    if (++made == LAST) pthread_exit(&made);
    return 0;
}

static void end(void *object, void *arg) {
    (void)object, (void)arg;
    ended++;
}

static void *alloc_until_the_end(void *cache) {
    while (sy_cache_alloc(cache)) {}
    return NULL;
}

int main(void) {
    must_be_slabyard();
    must(!libgcc_is_loaded());
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = "ends", .size = 100, .construct = make_or_end, .destruct = end});
    pthread_t thread;
    void *result;
    must(pthread_create(&thread, NULL, alloc_until_the_end, cache) == 0);
    must(pthread_join(thread, &result) == 0 && result == &made && made == LAST);
    must(libgcc_is_loaded());
    must(sy_verify() == 0 && sy_cache_in_use(cache) < LAST);
    sy_cache_destroy_all(cache);
    must(ended == LAST - 1);
    return 0;
}
