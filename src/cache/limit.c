/*
 * limit.c: what slow paths do if a limit or the system refuses memory. The functions here free
 * unused memory, call the limit's callback, and note the reason of a failure for sy_last_refusal.
 * Spans of the heap are taken and resized here too; take.c tries again for caches.
 */
#include "cache/limit.h"

#include <errno.h>

#include "base/bits.h"
#include "cache/watched.h"
#include "debug/callback.h"
#include "os/start.h"

/* Of each thread. */
static SY_TLS struct {
    sy_refusal reason;       /* why the last refill got nothing */
    sy_refusal last;         /* why the last refused allocation was refused: sy_last_refusal */
    bool busy;               /* this thread is making room, or is in a callback */
    const sy_quota *refused; /* the quota that caused `reason`; NULL: none did */
} own_limit;

/* ---- reasons ---- */

void sy_refuse(sy_refusal reason) {
    own_limit.reason = reason;
    own_limit.refused = NULL;
}

void sy_refuse_run(const sy_quota *refused) {
    sy_refuse(!refused                       ? SY_REFUSAL_SYSTEM
              : refused == &sy_quota_process ? SY_REFUSAL_PROCESS_LIMIT
                                             : SY_REFUSAL_HEAP_LIMIT);
    own_limit.refused = refused;
}

void sy_limit_refuse(sy_refusal reason) { own_limit.last = reason; }

sy_refusal sy_last_refusal(void) { return own_limit.last; }

const char *sy_refusal_text(sy_refusal refusal) {
    switch (refusal) {
    case SY_REFUSAL_NONE: return "not refused";
    case SY_REFUSAL_SYSTEM: return "out of memory";
    case SY_REFUSAL_CACHE_LIMIT: return "the limit of the cache is reached";
    case SY_REFUSAL_HEAP_LIMIT: return "the limit of the heap is reached";
    case SY_REFUSAL_PROCESS_LIMIT: return "the limit of the process is reached";
    case SY_REFUSAL_CONSTRUCTOR: return "a constructor failed";
    case SY_REFUSAL_CACHES: return "the heaps have too many size classes";
    }
    return "refused";
}

/* ---- callbacks ---- */

/* Calls the callback of the quota; whether it has one. The callback may itself be refused memory.
 * That must not overwrite the sy_last_refusal of the allocation that called it. */
static bool call_back(sy_quota *quota) {
    sy_refusal last = own_limit.last;
    bool locked = sy_start_lock();
    sy_limit_callback callback = quota->callback;
    void *arg = quota->arg;
    size_t soft = atomic_load_explicit(&quota->soft, memory_order_relaxed);
    if (locked) sy_start_unlock();
    size_t used = atomic_load_explicit(&quota->used, memory_order_relaxed);
    if (callback) {
        SY_CALLBACK(call, .function = "callback of a limit");
        callback(arg, used, soft == SIZE_MAX ? 0 : soft);
        call.returned = true;
    }
    own_limit.last = last;
    return callback != NULL;
}

/* The parent is read before the callback is called, since the callback may destroy the heap. */
void sy_limit_tell(sy_quota *quota) {
    int error = errno;
    if (own_limit.busy || sy_cache_asks) return;
    own_limit.busy = true;
    for (sy_quota *parent; quota; quota = parent) {
        parent = quota->parent;
        if (atomic_exchange(&quota->crossed, false)) call_back(quota);
    }
    own_limit.busy = false;
    errno = error;
}

/* ---- making room ---- */

static bool counts_for(const sy_cache *cache, const sy_quota *quota) {
    for (const sy_quota *next = cache->quota; next; next = next->parent)
        if (next == quota) return true;
    return false;
}

/* Whether the cache gives its free slots back, where a quota or the system (NULL) has refused
 * memory. The system may refuse it to a thread that has nothing to do with the cache, and that may
 * hold a lock which the cache's destructor needs. */
static bool gives_back(const sy_cache *cache, const sy_quota *quota, const sy_memory *memory) {
    if (quota) return counts_for(cache, quota);
    return cache->memory == memory && !cache->destruct;
}

static bool drain(sy_cache *cache) {
    sy_watched_drain(cache);
    sy_client_drain(&cache->client);
    return sy_cache_release_empty(cache);
}

/* Drains the caches of a heap. Their list may grow meanwhile; the heap is not destroyed, since this
 * thread allocates from it. */
static bool drain_heap(const sy_quota *quota) {
    bool any = false;
    sy_cache *cache = atomic_load_explicit(&quota->caches, memory_order_acquire);
    for (; cache; cache = cache->of_quota) {
        if (!sy_client_pin(&cache->client)) continue;
        any |= drain(cache);
        sy_client_unpin(&cache->client);
    }
    return any;
}

/* This thread's last drain of caches other than a heap's: whose, and what sy_drained_still needs to
 * say whether another one could bring more back. */
static SY_TLS struct {
    const sy_quota *quota;
    const sy_memory *memory;
    uint32_t watch;
} own_drain;

/* Drains these caches, and releases their empty slabs. Returns whether there were any. A program
 * that is refused again and again does not wait for that each time: all caches are drained again
 * only if some have got something to give back. */
static bool bring_back(const sy_quota *quota, const sy_memory *memory) {
    sy_client *client;
    bool any = false;
    if (quota && quota != &sy_quota_process) return drain_heap(quota);
    if (own_drain.quota == quota && own_drain.memory == memory && sy_drained_still(own_drain.watch))
        return false;
    own_drain.quota = quota;
    own_drain.memory = memory;
    own_drain.watch = sy_drained_begin();
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache && gives_back(cache, quota, memory)) any |= drain(cache);
        sy_client_unpin(client);
    }
    return any;
}

/* Called when a quota (`refused`) or the system (NULL) has refused memory. Frees unused memory,
 * calls the callback of the quota and frees what the callback has freed (objects may wait in a
 * quarantine, or in a magazine of another size class); whether a second try may succeed. The
 * callback is not called from a constructor, since the constructor's cache is being refilled. The
 * system may have refused memory for the library's own tables. Chunks without runs make room for
 * these. */
static bool make_room(sy_quota *refused, const sy_memory *memory) {
    if (own_limit.busy || (!refused && own_limit.reason != SY_REFUSAL_SYSTEM)) return false;
    own_limit.busy = true;
    bool released = bring_back(refused, memory);
    if (!refused) released |= sy_chunk_find_room(&sy_memory_main);
    if (refused && !sy_cache_asks && call_back(refused)) bring_back(refused, memory);
    own_limit.busy = false;
    return refused || released;
}

/* ---- after a refusal ---- */

/* The quota that refused the last refill; NULL: none. It is `quota` or a parent, so it exists. */
static sy_quota *refusing(sy_quota *quota) {
    while (quota && quota != own_limit.refused) quota = quota->parent;
    return quota;
}

static void count_hit(sy_quota *refused) {
    if (refused) atomic_fetch_add_explicit(&refused->hits, 1, memory_order_relaxed);
    own_limit.last = own_limit.reason;
}

bool sy_limit_make_room(const sy_cache *cache) {
    return make_room(refusing(cache->quota), cache->memory);
}

void sy_limit_count_refusal(sy_cache *cache) {
    count_hit(refusing(cache->quota));
    if (own_limit.reason != SY_REFUSAL_SYSTEM && own_limit.reason != SY_REFUSAL_CONSTRUCTOR)
        atomic_fetch_add_explicit(&cache->limits_hit, 1, memory_order_relaxed);
}

void sy_limit_end_miss(sy_cache *cache) {
    if (own_drain.watch && gives_back(cache, own_drain.quota, own_drain.memory))
        sy_client_close_slot(&cache->client);
}

static sy_slab *take_span(size_t bytes, size_t align, size_t room, bool *clean) {
    sy_quota *refused;
    sy_slab *span =
        sy_quota_take_run(&sy_quota_process, &sy_memory_main, bytes, align, room, clean, &refused);
    if (!span) sy_refuse_run(refused);
    return span;
}

sy_slab *sy_limit_take_span(size_t bytes, size_t align, size_t room, bool *clean) {
    if (sy_limit_fail_due("heap", bytes)) return NULL;
    sy_slab *span = take_span(bytes, align, room, clean);
    if (!span && make_room(refusing(&sy_quota_process), &sy_memory_main))
        span = take_span(bytes, align, room, clean);
    if (!span) count_hit(refusing(&sy_quota_process));
    if (SY_UNLIKELY(sy_quota_crossed(&sy_quota_process))) sy_limit_tell(&sy_quota_process);
    if (!span) errno = ENOMEM;
    return span;
}

static bool charge(size_t bytes) {
    sy_quota *refused = sy_quota_charge(&sy_quota_process, bytes);
    return !refused ||
           (make_room(refused, &sy_memory_main) && !sy_quota_charge(&sy_quota_process, bytes));
}

bool sy_limit_resize_span(sy_slab *span, size_t bytes) {
    size_t had = span->bytes, wanted = sy_round_up(bytes, SY_UNIT_BYTES);
    size_t most = wanted > had ? wanted : had;
    if (bytes > SIZE_MAX / 2 || (wanted > had && !charge(wanted - had))) return false;
    sy_quota_in_hand += most;
    bool done = sy_run_resize(span, bytes);
    if (span->bytes < most) sy_quota_uncharge(&sy_quota_process, most - span->bytes);
    sy_quota_in_hand -= most;
    if (span->bytes > had) sy_quota_note(&sy_quota_process);
    if (SY_UNLIKELY(sy_quota_crossed(&sy_quota_process))) sy_limit_tell(&sy_quota_process);
    return done;
}

/* ---- the process's limit ---- */

int sy_set_limit(const sy_limit *limit) {
    static const sy_limit none = {0};
    if (!limit) limit = &none;
    if (!sy_limit_valid(limit)) {
        errno = EINVAL;
        return -1;
    }
    if (sy_start() != 0) return -1;
    bool locked = sy_start_lock();
    sy_quota_set(&sy_quota_process, limit);
    if (locked) sy_start_unlock();
    return 0;
}

int sy_get_limit(sy_limit *limit) {
    if (!limit) {
        errno = EINVAL;
        return -1;
    }
    if (sy_start() != 0) return -1;
    bool locked = sy_start_lock();
    *limit = sy_quota_limit(&sy_quota_process);
    if (locked) sy_start_unlock();
    return 0;
}

size_t sy_limit_used(void) {
    return atomic_load_explicit(&sy_quota_process.used, memory_order_relaxed);
}

/* ---- fork ---- */

/* Calls for each cache; the child has one thread. */
static void each_cache(void (*visit)(sy_cache *cache)) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) visit(cache);
        sy_client_unpin(client);
    }
}

static bool has_own_quota(const sy_cache *cache) {
    return cache->quota && cache->quota != &sy_quota_process;
}

static void begin_recount(sy_cache *cache) {
    if (has_own_quota(cache)) cache->quota->found = sy_quota_in_hand;
}

static void recount_slabs(sy_cache *cache) {
    if (has_own_quota(cache)) cache->quota->found += sy_cache_slab_bytes(cache);
}

static void end_recount(sy_cache *cache) {
    if (has_own_quota(cache)) sy_quota_recount(cache->quota);
}

static void recover_quotas(void) {
    each_cache(begin_recount);
    each_cache(recount_slabs);
    each_cache(end_recount);
    sy_chunk_stats stats = {0};
    sy_chunk_count_of(&sy_memory_main, &stats);
    size_t units = stats.chunks * SY_RUN_UNITS_MAX - stats.units_free;
    sy_quota_process.found = units * SY_UNIT_BYTES + stats.large_bytes + sy_quota_in_hand;
    sy_quota_recount(&sy_quota_process);
}

const sy_part sy_limits_part = {.recover = recover_quotas};
