/*
 * plugin.c: a library that allocates when it is loaded, when it is called and when it is unloaded.
 */
#include <stdlib.h>

static void *held;

__attribute__((constructor)) static void begin(void) { held = malloc(3000); }

__attribute__((destructor)) static void end(void) {
    free(held);
    free(malloc(50));
}

__attribute__((visibility("default"))) void *plugin_give(size_t bytes);
void *plugin_give(size_t bytes) { return malloc(bytes); }
