/* `loader LIBRARY`: a program that knows nothing of Slabyard when it starts, and loads it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *(*take)(size_t);
static void (*give)(void *);

static void *work(void *arg) {
    (void)arg;
    for (size_t i = 1; i < 5000; i++) {
        char *object = take(i);
        if (!object) return (void *)1;
        memset(object, 1, i);
        give(object);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *failed, *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "loader: %s\n", dlerror());
        return 1;
    }
    take = (void *(*)(size_t))(uintptr_t)dlsym(library, "sy_malloc");
    give = (void (*)(void *))(uintptr_t)dlsym(library, "sy_free");
    if (!take || !give) return 2;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 3;
    if (work(NULL)) return 4;
    pthread_join(thread, &failed);
    return failed ? 5 : 0;
}
