/*
 * slack.c: counts what is held and what is live as memory is taken, and says when too much is held.
 */
#include "reclaim/slack.h"

#include <errno.h>
#include <slabyard/reclaim.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/flag.h"
#include "cache/cache.h"
#include "cache/mixed.h"
#include "chunk/chunk.h"
#include "chunk/pressure.h"
#include "magazine/client.h"
#include "magazine/turn.h"
#include "os/os.h"
#include "os/start.h"

enum {
    SPARE = 4 << 20,      /* held in any case: slabs of many classes, with an object each */
    ROOM_LEAST = 1 << 20, /* bytes that are taken from one look to the next, at least, */
    ROOM_PART = 64,       /* and one part in so many of the bound */
    AIM_PART = 16,        /* a pass goes so far below the bound, and the next look is there */
};

static const uint64_t WINDOW_NS = 1000000000, LOOK_NS = 100000000; /* looks are no further apart */

_Atomic size_t sy_slack_percent;

static _Atomic size_t look_at; /* the next look is when so much has been taken, */
static _Atomic uint64_t
    look_time; /* or at this time: free memory that is used again is not taken */

static sy_flag looking; /* a thread looks; guards the fields below */
/* The highest live bytes of this window of time, and of the previous one. */
static size_t peak_now, peak_before;
static uint64_t began; /* this window */

void sy_set_slack(size_t percent) {
    atomic_store_explicit(&sy_turn_span, percent ? ROOM_LEAST : SIZE_MAX, memory_order_relaxed);
    atomic_store_explicit(&sy_slack_percent, percent, memory_order_relaxed);
    atomic_store_explicit(&look_at, 0, memory_order_relaxed);
}

/* As sy_get_decay. */
size_t sy_get_slack(void) {
    int error = errno;
    (void)sy_start();
    errno = error;
    return atomic_load_explicit(&sy_slack_percent, memory_order_relaxed);
}

/* Adds up the caches over the system's memory. */
static void weigh_caches(size_t *idle, size_t *discarded) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache && cache->memory == &sy_memory_main) sy_cache_weigh(cache, idle, discarded);
        sy_client_unpin(client);
    }
}

/* Other threads change what is counted meanwhile. */
static size_t less(size_t bytes, size_t part) { return bytes > part ? bytes - part : 0; }

static void weigh(size_t *held, size_t *live) {
    sy_mixed_bytes mixed = sy_mixed_count();
    size_t idle = mixed.holes, discarded = mixed.discarded;
    weigh_caches(&idle, &discarded);
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(&sy_memory_main, &chunks);
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    size_t used = units * SY_UNIT_BYTES + chunks.large_bytes;
    size_t free = less(chunks.units_free, chunks.units_clean) * SY_UNIT_BYTES + chunks.large_kept;
    *live = less(used, idle);
    *held = less(used + free, discarded);
}

/* The highest live bytes of the last one to two windows. */
static size_t note_peak(size_t live, uint64_t now) {
    if (now - began >= WINDOW_NS) {
        peak_before = now - began < 2 * WINDOW_NS ? peak_now : live;
        peak_now = 0;
        began = now;
    }
    if (live > peak_now) peak_now = live;
    return peak_now > peak_before ? peak_now : peak_before;
}

static size_t bound_for(size_t peak) {
    size_t share = atomic_load_explicit(&sy_slack_percent, memory_order_relaxed), more;
    if (__builtin_mul_overflow(peak / 100, share, &more)) return SIZE_MAX / 2;
    if (more < SPARE) more = SPARE;
    return more > SIZE_MAX / 2 - peak ? SIZE_MAX / 2 : peak + more;
}

/* Returns the bytes that are held beyond the bound's aim, if the bound is passed. */
static size_t compare(size_t taken, uint64_t now) {
    size_t held, live;
    weigh(&held, &live);
    size_t bound = bound_for(note_peak(live, now)), aim = bound - bound / AIM_PART;
    size_t room = held < bound ? bound - held : bound / AIM_PART;
    if (room < bound / ROOM_PART) room = bound / ROOM_PART;
    if (room < ROOM_LEAST) room = ROOM_LEAST;
    atomic_store_explicit(&look_at, taken + room, memory_order_relaxed);
    atomic_store_explicit(&look_time, now + LOOK_NS, memory_order_relaxed);
    return held > bound ? held - aim : 0;
}

size_t sy_slack_look(void) {
    uint64_t now = sy_os_now();
    size_t taken = atomic_load_explicit(&sy_pressure_taken, memory_order_relaxed);
    bool due = taken >= atomic_load_explicit(&look_at, memory_order_relaxed) ||
               now >= atomic_load_explicit(&look_time, memory_order_relaxed);
    if (!due || atomic_exchange_explicit(&looking, true, memory_order_acquire)) return 0;
    size_t bytes = compare(taken, now);
    atomic_store_explicit(&looking, false, memory_order_release);
    return bytes;
}

static void recover(void) { atomic_store(&looking, false); }

const sy_part sy_slack_part = {.recover = recover};
