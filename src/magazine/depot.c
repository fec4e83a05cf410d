/*
 * depot.c: pushes and pops magazines on a shard's stack without a lock. A thread comes here when
 * its own two magazines are both full or both empty.
 */
#include "magazine/depot.h"

#include "base/bits.h"
#include "base/shape.h"
#include "os/invariant.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/race.h"

static const uint64_t NUMBER_MASK = (UINT64_C(1) << SY_DEPOT_TAG_SHIFT) - 1;

unsigned sy_depot_shard_count = 1;
static sy_depot_shard *shards;

static void *take_shards(unsigned count, unsigned clients) {
    size_t bytes = (size_t)clients * count * sizeof(sy_depot_shard), page = sy_os_page_size();
    return sy_pages_take(sy_round_up(bytes, page), page, "slabyard depots");
}

/* Fewer shards will do where address space is short. */
int sy_depot_start(unsigned cpus, unsigned clients) {
    unsigned count = 1;
    while (count < cpus && count < SY_DEPOT_SHARDS_MAX) count *= 2;
    void *memory;
    while (!(memory = take_shards(count, clients)))
        if ((count /= 2) == 0) return -1;
    sy_depot_shard_count = count;
    shards = memory;
    return 0;
}

sy_depot_shard *sy_depot_shards_of(unsigned client) {
    return &shards[(size_t)client * sy_depot_shard_count];
}

static uint64_t with_next_tag(uint64_t top, uint32_t number) {
    return ((top | NUMBER_MASK) + 1) | number;
}

/* The invariants of a magazine in a depot, which the calling thread alone holds: it has 1 to
 * SY_MAGAZINE_ITEMS items, its number leads to it, and the word before its items is 0. */
static bool magazine_is_bounded(const sy_magazine *magazine) {
    uint32_t items = atomic_load_explicit(&magazine->count, memory_order_relaxed);
    return items > 0 && items <= SY_MAGAZINE_ITEMS && magazine->number &&
           sy_magazine_of(magazine->number) == magazine && magazine->items[-1] == 0;
}

void sy_depot_push(sy_depot_shard *shard, sy_magazine *magazine) {
    SY_INVARIANT(magazine_is_bounded(magazine));
    sy_race_before(magazine);
    uint64_t items = atomic_load_explicit(&magazine->count, memory_order_relaxed);
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    do {
        uint32_t below = (uint32_t)(top & NUMBER_MASK);
        uint64_t items_below =
            below ? atomic_load_explicit(&sy_magazine_of(below)->items_down, memory_order_relaxed)
                  : 0;
        atomic_store_explicit(&magazine->next, below, memory_order_release);
        atomic_store_explicit(&magazine->items_down, items_below + items, memory_order_release);
    } while (!atomic_compare_exchange_weak_explicit(&shard->top, &top,
                                                    with_next_tag(top, magazine->number),
                                                    memory_order_acq_rel, memory_order_acquire));
}

sy_magazine *sy_depot_pop(sy_depot_shard *shard) {
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    for (;;) {
        uint32_t number = (uint32_t)(top & NUMBER_MASK);
        if (!number) return NULL;
        sy_magazine *magazine = sy_magazine_of(number);
        uint32_t next = atomic_load_explicit(&magazine->next, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&shard->top, &top, with_next_tag(top, next),
                                                  memory_order_acq_rel, memory_order_acquire)) {
            SY_INVARIANT(magazine_is_bounded(magazine));
            sy_race_after(magazine);
            return magazine;
        }
    }
}

uint64_t sy_depot_items(sy_depot_shard *shard) {
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    for (;;) {
        uint32_t number = (uint32_t)(top & NUMBER_MASK);
        if (!number) return 0;
        uint64_t items =
            atomic_load_explicit(&sy_magazine_of(number)->items_down, memory_order_acquire);
        uint64_t again = atomic_load_explicit(&shard->top, memory_order_relaxed);
        if (again == top) return items;
        top = atomic_load_explicit(&shard->top, memory_order_acquire);
    }
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define DEPOT_VARIABLES(row) \
    row(sy_depot_shards, shards) row(sy_depot_shard_count, sy_depot_shard_count)

static const sy_shape_row depot_shape_rows[] = {SY_SHAPE_FIELD(sy_depot_shard, sy_depot_shard, top),
                                                SY_SHAPE_TYPE(sy_depot_shard, sy_depot_shard),
                                                SY_SHAPE_CONSTANT(SY_DEPOT_TAG_SHIFT),
                                                DEPOT_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const depot_shape_addresses[] = {DEPOT_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_depot_shape = SY_SHAPE_PART(depot_shape_rows, depot_shape_addresses);
