/*
 * host.c: a program that is linked with Slabyard and loads a plug-in that has a copy of its own. It
 * uses both copies, in threads and in the child of a fork.
 *
 * Usage: host PLUGIN
 */
#define _GNU_SOURCE
#include <slabyard/slabyard.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*plugin_work)(void);

static int host_work(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "host", .size = 100});
    void *objects[500];
    if (!cache) return 11;
    for (int i = 0; i < 500; i++) {
        if (!(objects[i] = sy_cache_alloc(cache))) return 12;
        memset(objects[i], 0xaa, 100);
    }
    int plugin = plugin_work();
    for (int i = 0; i < 500; i++) {
        if (((unsigned char *)objects[i])[99] != 0xaa) return 13;
        sy_cache_free(cache, objects[i]);
    }
    if (sy_cache_destroy(cache) != 0) return 14;
    return plugin;
}

static void *work(void *arg) {
    (void)arg;
    intptr_t failed = 0;
    for (int i = 0; i < 200 && !failed; i++) failed = host_work();
    return (void *)failed;
}

static int work_in_threads(void) {
    pthread_t threads[4];
    intptr_t failed = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result) failed = (intptr_t)result;
    }
    return (int)failed;
}

int main(int argc, char **argv) {
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin) {
        fprintf(stderr, "host: %s\n", dlerror());
        return 1;
    }
    const void *(*create_of_plugin)(void) =
        (const void *(*)(void))(uintptr_t)dlsym(plugin, "plugin_create");
    plugin_work = (int (*)(void))(uintptr_t)dlsym(plugin, "plugin_work");
    if (!create_of_plugin || !plugin_work) return 2;
    if (create_of_plugin() == (const void *)(uintptr_t)sy_cache_create) {
        fprintf(stderr, "host: there is one copy of the library, not two\n");
        return 3;
    }
    int failed = work_in_threads();
    if (failed) return failed;
    pid_t child = fork();
    if (child == 0) _exit(work_in_threads());
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 4;
    return WEXITSTATUS(status);
}
