/*
 * former.c: functions for programs that were compiled with headers of an earlier version and the
 * same ABI number. The library alone exports them; the headers have inline functions or macros of
 * their names. Above: nothing.
 *
 * Earlier headers declared functions that fill a struct without being told its size. They fill the
 * first version of the struct, which those headers have.
 */
#define sy_cache_get_stats  sy_cache_get_stats_inline
#define sy_get_stats        sy_get_stats_inline
#define sy_heap_get_stats   sy_heap_get_stats_inline
#define sy_memory_get_stats sy_memory_get_stats_inline
#define sy_vmem_get_stats   sy_vmem_get_stats_inline
#include <slabyard/slabyard.h>
#undef sy_cache_get_stats
#undef sy_get_stats
#undef sy_heap_get_stats
#undef sy_memory_get_stats
#undef sy_vmem_get_stats
#undef sy_each_cache
#undef sy_each_tag
#undef sy_each_option
#undef sy_each_leak
#undef sy_vmem_walk

#include "base/sized.h"

/* ---- structs without their size ---- */

SY_API int sy_cache_get_stats(const sy_cache *cache, sy_cache_stats *stats) {
    return sy_cache_get_stats_sized(cache, stats, SY_SIZED_TO(sy_cache_stats, limits_hit));
}

SY_API void sy_get_stats(sy_stats *stats) {
    sy_get_stats_sized(stats, SY_SIZED_TO(sy_stats, limits_hit));
}

SY_API int sy_heap_get_stats(const sy_heap *heap, sy_heap_stats *stats) {
    return sy_heap_get_stats_sized(heap, stats, SY_SIZED_TO(sy_heap_stats, limits_hit));
}

SY_API int sy_memory_get_stats(const sy_memory *memory, sy_memory_stats *stats) {
    return sy_memory_get_stats_sized(memory, stats, SY_SIZED_TO(sy_memory_stats, headers));
}

SY_API int sy_vmem_get_stats(const sy_vmem *arena, sy_vmem_stats *stats) {
    return sy_vmem_get_stats_sized(arena, stats, SY_SIZED_TO(sy_vmem_stats, bytes));
}

/* ---- former names (base.h) ---- */

SY_API int sy_each_cache(int (*visit)(void *arg, const sy_cache_account *account), void *arg) {
    return sy_cache_each(visit, arg);
}

SY_API int sy_each_tag(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg) {
    return sy_tag_each(visit, arg);
}

SY_API int sy_each_option(int (*visit)(void *arg, const sy_option *option), void *arg) {
    return sy_option_each(visit, arg);
}

#ifndef SY_NO_REPORTS
SY_API int sy_each_leak(sy_cache *cache, unsigned flags,
                        int (*visit)(void *arg, const sy_leak *leak), void *arg) {
    return sy_leak_each(cache, flags, visit, arg);
}
#endif

SY_API int sy_vmem_walk(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg) {
    return sy_vmem_each(arena, what, visit, arg);
}
