/*
 * fuzz_epoch.c: runs random operations on epochs and caches, and compares them with a model.
 *
 * An input is the configurations of some caches and a list of operations on caches and epochs. This
 * thread or one of two others does the next operation while the others wait. Each thread enters and
 * leaves epochs, so threads share epochs and free objects of other threads. The input also says
 * which calls to the system fail.
 *
 * The model knows which objects are live, each filled with its own pattern, the epoch of each
 * object, which epochs are open, and which threads are in them. Each object must lie in a slab of
 * its epoch. The results of sy_epoch_each and sy_epoch_close must agree with the model, except for
 * objects in magazines.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/slabyard.h>

#include "cache/epoch.h"
#include "chunk/chunk.h"
#include "fuzz.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "reclaim/reclaim.h"
#include "turns.h"

enum {
    CACHES = 4,
    EPOCHS = 12, /* that are open or have objects at a time */
    LIVE_MAX = 4000,
    LIVE_BYTES_MAX = 6 << 20, /* of a cache */
    WHOLE = 256,              /* bytes that are filled of an object */
    CPUS = 4,
};

typedef struct model_epoch {
    sy_epoch *epoch; /* NULL: unused. Invalid once it is closed without objects and threads */
    unsigned name;
    bool closed, seen;
    unsigned threads;
    size_t live;
} model_epoch;

typedef struct record {
    unsigned char *object;
    unsigned cache;
    int epoch; /* NONE: of none */
    uint64_t stamp;
} record;

enum { NONE = -1 };

static struct {
    sy_cache *cache;
    sy_cache_config config;
    size_t live, most;
} models[CACHES];

static model_epoch epochs[EPOCHS];
static record live[LIVE_MAX];
static size_t live_count;
static unsigned names;
static uint64_t stamps;

/* The epochs that this thread is in, the innermost last. */
static _Thread_local struct {
    int in[SY_EPOCH_DEPTH_MAX];
    unsigned depth;
} own;

/* ---- epochs ---- */

static int current(void) { return own.depth ? own.in[own.depth - 1] : NONE; }

static sy_epoch *epoch_of(int which) { return which == NONE ? NULL : epochs[which].epoch; }

/* The list has no closed epoch without a live object and without a thread in it. */
static void forget_if_over(int which) {
    model_epoch *it = &epochs[which];
    if (it->closed && !it->live && !it->threads) *it = (model_epoch){0};
}

static void create_epoch(size_t which) {
    char name[SY_EPOCH_NAME_MAX + 1];
    model_epoch *it = &epochs[which % EPOCHS];
    if (it->epoch) return;
    snprintf(name, sizeof name, "%u", ++names);
    errno = 0;
    sy_epoch *epoch = sy_epoch_create(name);
    if (!epoch) {
        fuzz_expect(errno == ENOMEM && sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason");
        return;
    }
    *it = (model_epoch){.epoch = epoch, .name = names};
}

static void begin(int which) {
    if (which != NONE && !epochs[which].epoch) return;
    bool within = false;
    for (unsigned i = 0; i < own.depth; i++) within |= own.in[i] == which;
    bool is_closed = which != NONE && epochs[which].closed;
    if (is_closed && !within) return; /* the epoch may have ended */
    errno = 0;
    int result = sy_epoch_begin(epoch_of(which));
    if (is_closed) {
        fuzz_expect(result == -1 && errno == EINVAL, "what is closed is not begun");
    } else if (own.depth == SY_EPOCH_DEPTH_MAX) {
        fuzz_expect(result == -1 && errno == EAGAIN, "so many at most");
    } else {
        fuzz_expect(result == 0, "an epoch begins");
        own.in[own.depth++] = which;
        if (which != NONE) epochs[which].threads++;
    }
    fuzz_expect(sy_epoch_current() == epoch_of(current()), "the innermost counts");
}

static void end_innermost(void) {
    if (!own.depth) return;
    int which = own.in[own.depth - 1];
    fuzz_expect(sy_epoch_end(epoch_of(which)) == 0, "the innermost ends");
    own.depth--;
    fuzz_expect(sy_epoch_current() == epoch_of(current()), "the one around it counts");
    if (which == NONE) return;
    epochs[which].threads--;
    forget_if_over(which);
}

static void end_wrong(int which) {
    if (own.depth && which == current()) return;
    if (which != NONE && !epochs[which].epoch) return;
    errno = 0;
    fuzz_expect(sy_epoch_end(epoch_of(which)) == -1 && errno == EINVAL, "no other ends");
    fuzz_expect(sy_epoch_current() == epoch_of(current()), "nothing has changed");
}

static size_t waiting_in_magazines(void) {
    size_t items = 0;
    for (unsigned c = 0; c < CACHES; c++) {
        sy_cache_stats stats;
        sy_cache_get_stats(models[c].cache, &stats);
        items += stats.in_loaded + stats.in_depot + stats.in_quarantine;
    }
    return items;
}

static void close_epoch(int which) {
    model_epoch *it = &epochs[which];
    if (!it->epoch || it->closed) return;
    size_t left = sy_epoch_close(it->epoch);
    fuzz_expect(left >= it->live, "what is live counts as live");
    fuzz_expect(left - it->live <= waiting_in_magazines(), "else what waits");
    it->closed = true;
    forget_if_over(which);
}

/* ---- objects ---- */

static size_t filled(const record *it) {
    size_t size = models[it->cache].config.size;
    return size < WHOLE ? size : WHOLE;
}

static unsigned char byte_of(uint64_t stamp, size_t at) {
    return (unsigned char)((stamp + at) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void expect_whole(const record *it) {
    for (size_t at = 0; at < filled(it); at++)
        fuzz_expect(it->object[at] == byte_of(it->stamp, at), "an object is its owner's alone");
    const sy_bins *bins = sy_slab_at((uintptr_t)it->object)->bins;
    if (it->epoch == NONE)
        fuzz_expect(bins == &models[it->cache].cache->bins, "an object of no epoch");
    else
        fuzz_expect(sy_view_of(bins)->epoch == epochs[it->epoch].epoch, "an object of its epoch");
}

static void expect_reason(unsigned cache) {
    sy_cache_stats stats;
    sy_cache_get_stats(models[cache].cache, &stats);
    bool limited = stats.limit && stats.slots - stats.free >= stats.limit;
    fuzz_expect(limited || sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
}

static void enter(unsigned cache, unsigned char *object) {
    record *it = &live[live_count++];
    *it = (record){object, cache, current(), ++stamps};
    for (size_t at = 0; at < filled(it); at++) object[at] = byte_of(it->stamp, at);
    models[cache].live++;
    if (it->epoch != NONE) epochs[it->epoch].live++;
    expect_whole(it);
}

static bool has_room(unsigned cache) {
    return live_count < LIVE_MAX && models[cache].live < models[cache].most;
}

static void take_one(unsigned cache) {
    if (!has_room(cache)) return;
    errno = 0;
    unsigned char *object = sy_cache_alloc(models[cache].cache);
    if (object) {
        enter(cache, object);
        return;
    }
    fuzz_expect(errno == ENOMEM, "what fails is said");
    expect_reason(cache);
}

static void take_batch(unsigned cache, size_t count) {
    void *objects[256];
    if (count > LIVE_MAX - live_count) count = LIVE_MAX - live_count;
    if (!has_room(cache)) return;
    size_t got = sy_cache_alloc_batch(models[cache].cache, objects, count);
    if (got < count) expect_reason(cache);
    for (size_t i = 0; i < got; i++) enter(cache, objects[i]);
}

static void leave(record *it) {
    int which = it->epoch;
    models[it->cache].live--;
    *it = live[--live_count];
    if (which == NONE) return;
    epochs[which].live--;
    forget_if_over(which);
}

static void free_one(size_t which, size_t how) {
    if (!live_count) return;
    record *it = &live[which % live_count];
    sy_cache *cache = models[it->cache].cache;
    unsigned char *object = it->object;
    expect_whole(it);
    leave(it);
    if (how % 8 == 0)
        fuzz_expect(sy_cache_try_free(cache, object), "a live object is freed");
    else
        sy_cache_free(cache, object);
    if (how % 32 == 0) fuzz_expect(!sy_cache_try_free(cache, object), "once");
}

static void free_of_epoch(int which) {
    for (size_t i = live_count; i-- > 0;)
        if (live[i].epoch == which) free_one(i, i);
}

/* ---- the whole ---- */

static int compare(void *arg, const sy_epoch_stats *stats) {
    uint64_t *before = arg;
    fuzz_expect(stats->number > *before, "in order of creation");
    *before = stats->number;
    unsigned name = (unsigned)strtoul(stats->name, NULL, 10);
    for (int which = 0; which < EPOCHS; which++) {
        model_epoch *it = &epochs[which];
        if (!it->epoch || it->name != name) continue;
        it->seen = true;
        fuzz_expect(stats->threads == it->threads, "who is in it");
        fuzz_expect((stats->closed_ns != 0) == it->closed, "whether it is closed");
        fuzz_expect(stats->objects >= it->live, "what is live in it");
        fuzz_expect(stats->objects - it->live <= waiting_in_magazines(), "or waits");
        return 0;
    }
    fuzz_expect(stats->closed_ns && !stats->threads, "of others there are slabs alone");
    fuzz_expect(stats->objects <= waiting_in_magazines(), "with what waits");
    return 0;
}

static void compare_epochs(void) {
    uint64_t number = 0;
    for (int which = 0; which < EPOCHS; which++) epochs[which].seen = false;
    fuzz_expect(sy_epoch_each(compare, &number) == 0, "all are shown");
    for (int which = 0; which < EPOCHS; which++)
        fuzz_expect(!epochs[which].epoch || epochs[which].seen, "each is shown");
}

static void compare_all(void) {
    for (size_t i = 0; i < live_count; i++) expect_whole(&live[i]);
    for (unsigned c = 0; c < CACHES; c++) {
        sy_cache_stats stats;
        fuzz_expect(sy_cache_verify(models[c].cache) == 0, "a cache is sound");
        fuzz_expect(sy_cache_get_stats(models[c].cache, &stats) == 0, "it has statistics");
        fuzz_expect(stats.in_use == models[c].live, "in use is what is there");
        fuzz_expect(stats.slabs_made - stats.slabs_released == stats.slabs, "made less released");
        fuzz_expect(stats.slabs == stats.full + stats.partial + stats.empty, "all are counted");
    }
    compare_epochs();
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0, "chunks are sound");
    fuzz_expect(sy_store_verify() == 0, "the store is sound");
}

/* Sets which calls to the system will fail: none in half of the cases. */
static void script(uint8_t choice) {
    turns_reset(CPUS);
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 200, choice);
}

static void make_cache(fuzz_input *input, unsigned c) {
    uint8_t magnitude = fuzz_byte(input), how = fuzz_byte(input);
    sy_cache_config config = {.name = "fuzz", .flags = SY_EPOCHS};
    config.size = 1 + fuzz_u16(input) % (1u << magnitude % 16) * (magnitude > 240 ? 9 : 1);
    if (how % 4 == 0) config.limit = 1 + fuzz_u16(input) % 1000;
    if (how / 4 % 4 == 0) config.flags |= SY_CHECKED;
    if (how / 4 % 4 == 1) config.flags |= SY_COLOUR;
    if (how / 4 % 4 == 2 && config.limit) config.flags |= SY_LIMIT_EXACT;
    if (how / 16 % 4 == 0) config.flags |= SY_HANDLES;
    models[c].cache = sy_cache_create(&config);
    fuzz_expect(models[c].cache != NULL, "a sensible cache is made");
    models[c].config = config;
    models[c].live = 0;
    models[c].most = LIVE_BYTES_MAX / config.size + 1;
}

/* With the objects, or when they are freed. */
static void end_cache(unsigned c, bool all) {
    if (models[c].live && !all)
        fuzz_expect(sy_cache_destroy(models[c].cache) == -1 && errno == EBUSY, "it is in use");
    for (size_t i = live_count; i-- > 0;)
        if (live[i].cache == c) all ? leave(&live[i]) : free_one(i, i);
    if (all)
        sy_cache_destroy_all(models[c].cache);
    else
        fuzz_expect(sy_cache_destroy(models[c].cache) == 0, "an unused cache is destroyed");
}

static void age(void) {
    sy_reclaim_by_age();
    sy_reclaim_by_age();
}

/* ---- threads ---- */

static pthread_key_t at_end;

/* A thread ends the epochs that it is in before it ends itself. */
static void leave_all(void *argument) {
    (void)argument;
    while (own.depth) end_innermost();
}

static void step(fuzz_input *input) {
    uint8_t operation = fuzz_byte(input), count = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    unsigned c = operation / 32 % CACHES;
    int epoch = (int)(which % (EPOCHS + 1)) - 1;
    pthread_setspecific(at_end, &own);
    switch (operation % 32) {
    case 0: script(count); break;
    case 1: compare_all(); break;
    case 2: sy_cache_trim(models[c].cache); break;
    case 3: count % 2 ? (void)sy_trim() : (void)sy_trim_some((size_t)count << 12, 100000); break;
    case 4: sy_thread_idle(); break;
    case 5: sy_thread_flush(); break;
    case 6: sy_fake_set_cpu((int)(which % CPUS)); break;
    case 7: age(); break;
    case 8:
    case 9:
    case 10: create_epoch(which); break;
    case 11:
    case 12:
    case 13:
    case 14: begin(epoch); break;
    case 15:
    case 16:
    case 17: end_innermost(); break;
    case 18: end_wrong(epoch); break;
    case 19:
    case 20:
        if (epoch != NONE) close_epoch(epoch);
        break;
    case 21: free_of_epoch(epoch); break;
    case 22:
        if (count % 8) break;
        turns_reset(CPUS);
        end_cache(c, count / 8 % 2);
        make_cache(input, c);
        break;
    case 23: take_batch(c, count); break;
    case 24:
    case 25:
    case 26:
        for (; count > 0; count--) take_one(c);
        break;
    case 27:
    case 28: /* many objects, at random */
        for (; count > 0; count--) free_one(which += 7919, count);
        break;
    case 29: /* one object, again and again */
        for (; count > 0; count--) {
            take_one(c);
            if (live_count) free_one(live_count - 1, count);
        }
        break;
    case 30: free_one(which, count); break;
    default: take_one(c); break;
    }
}

static int any_epoch(void *arg, const sy_epoch_stats *stats) {
    (void)arg, (void)stats;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    static bool started;
    sy_stats stats;
    if (!started) fuzz_expect(pthread_key_create(&at_end, leave_all) == 0, "a key is made");
    started = true;
    turns_reset(CPUS);
    for (unsigned c = 0; c < CACHES; c++) make_cache(&input, c);
    turns_run(&input, step);
    turns_reset(CPUS);
    compare_all();
    bool last = size % 2; /* whether the threads end after the caches are destroyed, or before */
    if (!last) turns_end_all();
    leave_all(NULL);
    for (int which = 0; which < EPOCHS && size / 2 % 2; which++) close_epoch(which);
    for (unsigned c = 0; c < CACHES; c++) end_cache(c, size / 4 % 5 == c);
    turns_end_all();
    for (int which = 0; which < EPOCHS; which++) close_epoch(which);
    fuzz_expect(sy_epoch_each(any_epoch, NULL) == 0, "no epoch is left");
    sy_trim();
    sy_get_stats(&stats);
    fuzz_expect(stats.mapped == 0, "a trim leaves nothing mapped");
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0, "all is sound");
    return 0;
}
