/* A program under the drop-in malloc that loads and unloads libraries: some take all room that the
 * C library has for static thread-local variables, and a library audits the loader (LD_AUDIT). Its
 * arguments are a library, one that takes such room, and the one that audits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "hosts/hosts.h"

enum { COPIES = 8 };

static const char *library, *in_static_block;

typedef void *take_function(size_t bytes);

static void *load_and_unload(void *unused) {
    for (int round = 0; round < 50; round++) {
        void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!loaded) host_say(dlerror());
        CHECK(loaded != NULL);
        take_function *take = (take_function *)(size_t)dlsym(loaded, "take");
        CHECK(take != NULL);
        free(take(100)); /* allocated by the library, freed here */
        free(take(100000));
        CHECK(dlclose(loaded) == 0);
        hungry(1);
    }
    return unused;
}

/* Copies have other names, so the loader takes them for other libraries. The last one does not find
 * room in the static block, whether Slabyard is there or not. */
static void use_up_static_block(const char *folder) {
    char command[512], copy[256];
    int loaded = 0;
    for (int i = 0; i < COPIES; i++) {
        snprintf(copy, sizeof copy, "%s/copy%d.so", folder, i);
        snprintf(command, sizeof command, "cp '%s' '%s'", in_static_block, copy);
        CHECK(system(command) == 0);
        loaded += dlopen(copy, RTLD_NOW | RTLD_LOCAL) != NULL;
        hungry(1);
    }
    CHECK(loaded >= 1 && loaded < COPIES);
}

static void run(void) {
    char folder[] = "/tmp/slabyard-host-XXXXXX", command[64];
    pthread_t threads[2];
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    load_and_unload(NULL);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, load_and_unload, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(mkdtemp(folder) != NULL);
    use_up_static_block(folder);
    load_and_unload(NULL);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    free(kept);
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    library = arguments[1];
    in_static_block = arguments[2];
    run();
    if (count < 4) return 0;
    CHECK(setenv("LD_AUDIT", arguments[3], 1) == 0);
    execv("/proc/self/exe", (char *[]){arguments[0], arguments[1], arguments[2], NULL});
    return 1;
}
