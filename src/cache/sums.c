/*
 * sums.c: sy_get_account adds up what the layers have counted: objects from the caches, units and
 * spans from the chunks, the library's own memory from its tables. No thread is stopped: each layer
 * is asked under its own lock, one after the other, so a sum is a snapshot if the process runs on.
 */
#include <slabyard/stats.h>
#include <string.h>

#include "base/sized.h"
#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/mixed.h"
#include "chunk/headers.h"
#include "chunk/side.h"
#include "debug/guard.h"
#include "debug/profile.h"
#include "debug/stack.h"
#include "magazine/client.h"
#include "os/os.h"
#include "vmem/arena.h"

static size_t less(size_t bytes, size_t part) { return bytes > part ? bytes - part : 0; }

/* Objects of malloc count with their slots: the size that was asked for is not known. */
static void add_live(sy_account *to, const sy_cache_account *of) {
    const sy_cache_stats *stats = &of->stats;
    size_t objects = less(stats->in_use, stats->guarded) + stats->retired;
    size_t object = of->kind == SY_CACHE_OF_SIZES ? stats->slot_size : stats->object_size;
    to->live_bytes += objects * object;
    to->rounding_bytes += objects * (stats->slot_size - object);
}

static void add_cache(sy_account *to, const sy_cache_account *of) {
    const sy_cache_stats *stats = &of->stats;
    size_t untouched = stats->discarded + stats->never_used;
    add_live(to, of);
    to->quarantine_bytes += stats->in_quarantine * stats->slot_size;
    to->thread_magazines_bytes += stats->in_loaded * stats->slot_size;
    to->depot_magazines_bytes += stats->in_depot * stats->slot_size;
    to->free_in_slabs_bytes += less(stats->free * stats->slot_size, untouched);
    to->tails_bytes += stats->tail;
    to->address_space_bytes += untouched;
}

static void add_caches(sy_account *to) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_account one;
        number = client->number;
        if (sy_cache_take_account(client, &one)) add_cache(to, &one);
        sy_client_unpin(client);
    }
}

/* Slabs with one slot are units or spans too, and counted as objects of their cache. */
static void add_chunks(sy_account *to) {
    sy_stats stats;
    sy_get_stats(&stats);
    sy_chunk_stats chunks = sy_chunk_count();
    sy_mixed_bytes mixed = sy_mixed_count();
    to->large_bytes = stats.spans;
    to->holes_bytes = less(mixed.holes, mixed.discarded);
    to->free_units_bytes = (chunks.units_free - chunks.units_clean) * SY_UNIT_BYTES;
    to->kept_spans_bytes = chunks.large_kept;
    to->headers_bytes = sy_header_bytes();
    to->address_space_bytes +=
        mixed.discarded + (chunks.units_clean + chunks.chunks) * SY_UNIT_BYTES;
}

static void add_arena(sy_vmem *arena, void *bytes) {
    sy_vmem_stats stats;
    if (sy_vmem_get_stats(arena, &stats) == 0) *(size_t *)bytes += stats.bytes;
}

static void add_own(sy_account *to) {
    sy_guard_counts guarded;
    (void)sy_guard_get_counts(&guarded);
    (void)sy_guard_table(&to->guard_records_bytes);
    to->guarded_bytes = guarded.held * sy_os_page_size();
    to->records_bytes = sy_side_bytes();
    to->magazines_bytes = sy_magazine_bytes();
    to->handles_bytes = (size_t)sy_ordinals_limit() * sizeof(uint64_t);
    to->traces_bytes = sy_stack_bytes() + sy_profile_bytes() +
                       2 * (guarded.held + guarded.freed) * sy_stack_place_bytes();
    sy_vmem_each_arena(add_arena, &to->arenas_bytes);
}

/* The fields from `live_bytes` to `guard_records_bytes` are the rows. */
static size_t sum_of_rows(const sy_account *account) {
    size_t sum = 0;
    for (size_t at = 0; at < offsetof(sy_account, address_space_bytes); at += sizeof sum) {
        size_t row;
        memcpy(&row, (const char *)account + at, sizeof row);
        sum += row;
    }
    return sum;
}

static void fill_account(const void *process, void *account_) {
    (void)process;
    sy_account *account = account_;
    *account = (sy_account){0};
    add_caches(account);
    add_chunks(account);
    add_own(account);
    account->resident_bytes = sy_os_resident();
    account->other_bytes = less(account->resident_bytes, sum_of_rows(account));
}

int sy_get_account_sized(sy_account *account, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_account, other_bytes, fill_account);
    return sy_sized_fill(&sized, &sy_quota_process, account, size);
}
