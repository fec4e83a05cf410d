/*
 * sums.c: adds up the figures of all caches, for glibc.c and jemalloc.c.
 */
#include "shim/sums.h"

static int add_cache(void *sums_, const sy_cache_account *account) {
    sy_shim_sums *sums = sums_;
    const sy_cache_stats *stats = &account->stats;
    sums->used += stats->in_use * stats->slot_size;
    sums->free_slots += stats->free + stats->in_depot + stats->in_loaded + stats->in_quarantine;
    sums->untouched += stats->discarded + stats->never_used;
    if (account->kind != SY_CACHE_OF_SIZES) return 0;
    unsigned class_number = sy_class_for(stats->object_size);
    sums->classes[class_number].live += stats->in_use;
    sums->classes[class_number].slabs += stats->slabs;
    return 0;
}

void sy_shim_add_up(sy_shim_sums *sums) {
    *sums = (sy_shim_sums){.used = 0};
    sy_get_stats(&sums->memory);
    sy_cache_each(add_cache, sums);
}
