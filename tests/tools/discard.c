/*
 * asan: nothing
 *
 * memcheck: nothing
 */
#include <sys/mman.h>

#include "tools.h"

/* A function that returns memory may write to its range, and read what it has written. */

enum { OBJECTS = 2000 };
static const size_t REGION_BYTES = (size_t)16 << 20;
static size_t discarded;

static int wipe(void *arg, void *start, size_t bytes) {
    (void)arg;
    memset(start, 0, bytes);
    for (size_t i = 0; i < bytes; i++) must(((char *)start)[i] == 0);
    discarded += bytes;
    return 0;
}

int main(void) {
    static char *all[OBJECTS];
    void *region =
        mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(region != MAP_FAILED);
    sy_memory *memory = sy_memory_create(&(sy_memory_config){
        .name = "own", .start = region, .bytes = REGION_BYTES, .discard = wipe});
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = ORDER_BYTES, .memory = memory});
    must(memory && cache);
    for (int i = 0; i < OBJECTS; i++) memset(all[i] = sy_cache_alloc(cache), i, ORDER_BYTES);
    for (int i = 0; i < OBJECTS; i++)
        if (i % 1000) sy_cache_free(cache, all[i]); /* two keep their slabs */
    sy_cache_trim(cache);
    must(discarded > 0);
    for (int i = 0; i < OBJECTS; i++)
        if (i % 1000) memset(all[i] = sy_cache_alloc(cache), i, ORDER_BYTES);
    for (int i = 0; i < OBJECTS; i++) sy_cache_free(cache, all[i]);
    must(sy_cache_destroy(cache) == 0);
    return sy_memory_destroy(memory);
}
