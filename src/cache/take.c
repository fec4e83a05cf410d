/*
 * take.c: takes an item for an allocation that found none in its thread's magazines. The item comes
 * from the depot or, by the cache's refill, from the slabs. If there is none, memory is freed
 * (limit.c), and the client is asked once more.
 *
 *     sy_cache_take_item --> ask_client --> sy_client_alloc_rest    the depot
 *                                           --> sy_cache_refill     slabs (refill.c)
 *                        --> ask_again  --> sy_limit_make_room      limit.c
 *                                       --> ask_client
 */
#include <errno.h>

#include "cache/cache.h"
#include "cache/limit.h"
#include "debug/callback.h"

SY_TLS unsigned sy_cache_asks;

/* Runs also if a constructor throws. */
static void end_ask(const unsigned *outer) { sy_cache_asks = *outer; }

/* `again`: what made room may have put items into this thread's magazines. */
static bool ask_client(sy_cache *cache, uintptr_t *item, bool again) {
    unsigned outer SY_CLEANUP(end_ask) = sy_cache_asks++;
    bool got =
        again ? sy_client_alloc(&cache->client, item) : sy_client_alloc_rest(&cache->client, item);
    if (!got) sy_limit_end_miss(cache);
    return got;
}

static SY_COLD bool ask_again(sy_cache *cache, uintptr_t *item) {
    int error = errno;
    /* Items that a reserve promised may have been on their way from a magazine to the slabs. */
    bool promised = sy_cache_has_reserve(cache);
    if (sy_limit_make_room(cache) || promised) {
        if (ask_client(cache, item, true)) return true;
        error = errno;
    }
    sy_limit_count_refusal(cache);
    errno = error;
    return false;
}

bool sy_cache_take_item(sy_cache *cache, uintptr_t *item) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool got = ask_client(cache, item, false) || ask_again(cache, item);
    if (SY_UNLIKELY(sy_quota_crossed(cache->quota))) sy_limit_tell(cache->quota);
    path.done = true;
    return got;
}
