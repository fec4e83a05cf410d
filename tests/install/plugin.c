/* A plug-in that uses Slabyard. Linked statically, it has a copy of its own. */
#include <slabyard/slabyard.h>

#include <stdint.h>
#include <string.h>

__attribute__((visibility("default"))) const void *plugin_create(void);
__attribute__((visibility("default"))) int plugin_work(void);

/* The address of a function in this plug-in's copy. */
const void *plugin_create(void) { return (const void *)(uintptr_t)sy_cache_create; }

int plugin_work(void) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "plugin", .size = 100});
    void *objects[500];
    if (!cache) return 1;
    for (int i = 0; i < 500; i++) {
        if (!(objects[i] = sy_cache_alloc(cache))) return 2;
        memset(objects[i], 0x55, 100);
    }
    for (int i = 0; i < 500; i++) {
        if (((unsigned char *)objects[i])[99] != 0x55) return 3;
        sy_cache_free(cache, objects[i]);
    }
    void *text = sy_malloc(5000);
    sy_free(text);
    return sy_cache_destroy(cache) == 0 ? 0 : 4;
}
