/* What the C compiler makes of the structs and numbers that the crate declares again; read by its
 * tests alone. */
#include <slabyard/cache.h>
#include <slabyard/checks.h>
#include <slabyard/fault.h>
#include <slabyard/options.h>
#include <slabyard/pool.h>
#include <slabyard/stats.h>

const size_t slabyard_sys_layout[26] = {
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
    offsetof(sy_fault, offset),
    offsetof(sy_fault, damage_bytes),
    offsetof(sy_fault, allocated),
    offsetof(sy_fault, freed),
    sizeof(sy_trace),
    offsetof(sy_trace, age),
    sizeof(sy_option),
    offsetof(sy_option, meaning),
    sizeof(sy_cache_stats),
    offsetof(sy_cache_stats, magazine_items),
    offsetof(sy_cache_stats, waste),
    offsetof(sy_cache_stats, refills),
    offsetof(sy_cache_stats, slabs_reused),
    offsetof(sy_cache_stats, limits_hit),
    sizeof(sy_stats),
    offsetof(sy_stats, limits_hit),
};

const unsigned slabyard_sys_numbers[30] = {
    SY_COLOUR,
    SY_LIMIT_EXACT,
    SY_HANDLES,
    SY_EPOCHS,
    SY_CHECKED,
    SY_REDZONE,
    SY_POISON,
    SY_QUARANTINE,
    SY_AUDIT,
    SY_RANDOM,
    SY_EDGES,
    SY_GUARD,
    SY_ZERO,
    SY_NO_DUMP,
    SY_LOCKED,
    SY_CHECK_FLAGS,
    SY_FAULT_FOREIGN_POINTER,
    SY_FAULT_MISALIGNED_POINTER,
    SY_FAULT_WRONG_CACHE,
    SY_FAULT_DOUBLE_FREE,
    SY_FAULT_WRONG_SIZE,
    SY_FAULT_NOT_ALLOCATED,
    SY_FAULT_SEGMENT_SIZE,
    SY_FAULT_OVERFLOW,
    SY_FAULT_UNDERFLOW,
    SY_FAULT_WRITE_AFTER_FREE,
    SY_FAULT_SLAB_EDGE,
    SY_FAULT_GUARD_OVERFLOW,
    SY_FAULT_GUARD_UNDERFLOW,
    SY_FAULT_USE_AFTER_FREE,
};
