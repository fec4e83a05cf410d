/* What the C compiler makes of the structs that lib.rs declares again; read by its tests alone. */
#include <slabyard/cache.h>
#include <slabyard/fault.h>
#include <slabyard/pool.h>
#include <slabyard/stats.h>

const size_t slabyard_sys_layout[18] = {
    sizeof(sy_pool_config),
    offsetof(sy_pool_config, flags),
    offsetof(sy_pool_config, reserved),
    sizeof(sy_cache_config),
    offsetof(sy_cache_config, construct),
    offsetof(sy_cache_config, flags),
    offsetof(sy_cache_config, reserved),
    sizeof(sy_fault),
    offsetof(sy_fault, found_cache),
    offsetof(sy_fault, found_size),
    sizeof(sy_cache_stats),
    offsetof(sy_cache_stats, magazine_items),
    offsetof(sy_cache_stats, waste),
    offsetof(sy_cache_stats, refills),
    offsetof(sy_cache_stats, slabs_reused),
    offsetof(sy_cache_stats, limits_hit),
    sizeof(sy_stats),
    offsetof(sy_stats, limits_hit),
};
