/*
 * fuzz_heap_instance.c: runs random operations on two heaps, by address and by handle, with limits
 * of the heaps and of the process, and compares them with models.
 *
 * An input is two configurations and a list of operations. This thread or one of two others does
 * the next operation while the others wait. The input also says which calls to the system fail.
 *
 * The model knows which objects are live, and which ones were freed while pinned, each filled with
 * its own pattern. Stale handles are kept and tried on each later heap. A refusal must have a
 * reason: the limit that it names would have been exceeded, or the system has failed. The callbacks
 * for limits free objects of both heaps.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "debug/watch.h"
#include "fuzz.h"
#include "heap/instance.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "turns.h"

enum {
    HEAPS = 2,
    LIVE_MAX = 600,
    DYING_MAX = 40,
    STALE = 1 << 12, /* handles that are kept */
    ENDS = 48,       /* bytes of an object that are filled, at either end */
    CPUS = 4,
    MIB = 1 << 20,
};

typedef struct record {
    sy_handle handle; /* 0: of a heap without */
    unsigned char *object;
    size_t size;
    uint64_t stamp;
    unsigned pins;
    bool visited;
} record;

typedef struct model {
    sy_heap *heap;
    sy_heap_config config;
    size_t live_count, dying_count;
    record live[LIVE_MAX], dying[DYING_MAX];
} model;

static model models[HEAPS];
static const record *held; /* the callback does not free it: it is being reallocated */
static bool told_frees;
static uint64_t last_stamp;
static size_t process_hard;
static unsigned telling;

static sy_handle stale[STALE];
static uint64_t stale_count;

static bool named(const model *m) { return m->config.flags & SY_HANDLES; }

/* ---- patterns ---- */

static unsigned char byte_of(uint64_t stamp, size_t at) {
    return (unsigned char)((stamp + at) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void mark(const record *it) {
    size_t end = it->size < ENDS ? it->size : ENDS;
    for (size_t at = 0; at < end; at++) it->object[at] = byte_of(it->stamp, at);
    for (size_t at = it->size - end; at < it->size; at++) it->object[at] = byte_of(it->stamp, at);
}

/* The first `size` bytes of it. */
static bool is_marked(const record *it, size_t size) {
    size_t end = it->size < ENDS ? it->size : ENDS;
    bool whole = true;
    for (size_t at = 0; at < end && at < size; at++)
        whole &= it->object[at] == byte_of(it->stamp, at);
    for (size_t at = it->size - end; at < it->size && at < size; at++)
        whole &= it->object[at] == byte_of(it->stamp, at);
    return whole;
}

static void expect_live(const model *m, const record *it) {
    fuzz_expect(is_marked(it, it->size), "an object that is live or pinned is untouched");
    fuzz_expect(sy_heap_usable_size(m->heap, it->object) >= it->size, "an object has its size");
    if (!named(m)) return;
    fuzz_expect(sy_heap_get(m->heap, it->handle) == it->object, "a live handle is got");
    fuzz_expect(sy_handle_of(it->object) == it->handle, "an object has its handle");
}

/* ---- what must be refused ---- */

static bool is_live_handle(const model *m, sy_handle handle) {
    for (size_t i = 0; i < m->live_count; i++)
        if (m->live[i].handle == handle) return true;
    return false;
}

static void refuse(model *m, sy_handle handle) {
    if (handle && is_live_handle(m, handle)) return;
    errno = 77;
    fuzz_expect(!sy_heap_get(m->heap, handle), "what is not live is not got");
    fuzz_expect(!sy_heap_free_handle(m->heap, handle), "nor freed");
    fuzz_expect(errno == 77, "errno is kept");
    fuzz_expect(!sy_heap_pin(m->heap, handle), "nor pinned");
}

static void keep_stale(sy_handle handle) {
    if (handle) stale[stale_count++ % STALE] = handle;
}

static void try_stale(model *m, size_t count, uint64_t from) {
    size_t most = stale_count < STALE ? (size_t)stale_count : STALE;
    for (size_t i = 0; most && i < count; i++) refuse(m, stale[(from + i * 7) % most]);
    for (size_t i = 0; i < count; i++)
        refuse(m, from * i * UINT64_C(0x9e3779b97f4a7c15) >> from % 64);
}

/* ---- allocation ---- */

static void add_live(model *m, void *object, size_t size, sy_handle handle) {
    record *it = &m->live[m->live_count++];
    *it = (record){.object = object, .size = size, .stamp = ++last_stamp};
    it->handle = handle ? handle : sy_handle_of(object);
    fuzz_expect((it->handle != 0) == named(m), "objects have handles where they should");
    fuzz_expect((uintptr_t)object % (size <= 8 ? 8 : 16) == 0, "an object is aligned");
    mark(it);
    expect_live(m, it);
}

static size_t used_of(const model *m) {
    sy_heap_stats stats;
    fuzz_expect(sy_heap_get_stats(m->heap, &stats) == 0, "a heap has statistics");
    return stats.used;
}

static bool is_checked(const model *m) {
    return sy_watch_checks(m->config.flags, m->config.name, true) & SY_CHECKED;
}

/* Bytes of the slab that an object of that size lies in; 0: not known, as with red zones it depends
 * on the alignment. */
static size_t slab_for(const model *m, size_t size) {
    if (is_checked(m)) return 0;
    const sy_cache *cache = sy_heap_cache_for(m->heap, size);
    return cache ? cache->layout.slab_bytes : 0;
}

/* The reason is right, or a callback has freed something since.
 * `size`: of its class. */
static void expect_reason(const model *m, size_t size) {
    sy_refusal reason = sy_last_refusal();
    fuzz_expect(errno == ENOMEM, "what fails is said");
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    size_t bytes = slab_for(m, size), hard = m->config.limit.hard;
    switch (reason) {
    case SY_REFUSAL_HEAP_LIMIT:
        fuzz_expect(hard && (told_frees || !bytes || used_of(m) + bytes > hard),
                    "the heap was full");
        break;
    case SY_REFUSAL_PROCESS_LIMIT:
        fuzz_expect(process_hard &&
                        (told_frees || !bytes || sy_limit_used() + bytes > process_hard),
                    "the process's memory was used up");
        break;
    default:
        fuzz_expect(reason == SY_REFUSAL_SYSTEM && failed, "there was a reason to fail");
        break;
    }
}

/* Sizes of all orders of magnitude, small ones more often. */
static size_t size_from(uint32_t which, uint8_t how) {
    static const size_t most[] = {16, 128, 128, 1000, 1000, 8000, 50000, 300000};
    if (how == 255) return (size_t)which * 100;
    return which % (most[how % 8] + 1);
}

static void take(model *m, uint32_t which, uint8_t how) {
    size_t size = size_from(which, how), align = (size_t)1 << how / 8 % 22;
    sy_handle handle = 0;
    void *object;
    if (m->live_count == LIVE_MAX) return;
    errno = 0;
    if (which % 4 == 0 && named(m)) {
        object = sy_heap_alloc_handle(m->heap, size, &handle);
    } else if (which % 16 == 1) {
        object = sy_heap_aligned_alloc(m->heap, align, size);
        fuzz_expect((uintptr_t)object % align == 0, "an object is aligned as it was asked for");
    } else if (which % 16 == 2) {
        unsigned char *bytes = object = sy_heap_calloc(m->heap, size, 1);
        for (size_t at = 0; object && at < size; at += 97)
            fuzz_expect(bytes[at] == 0, "it is zero");
    } else {
        object = sy_heap_alloc(m->heap, size);
    }
    if (object)
        add_live(m, object, size, handle);
    else if (which % 16 != 1)
        expect_reason(m, size);
}

/* ---- free ---- */

static void forget(model *m, record *it) {
    keep_stale(it->handle);
    *it = m->live[--m->live_count];
}

static bool free_by_handle(model *m, record *it) {
    if (it->pins && m->dying_count == DYING_MAX) return false;
    fuzz_expect(sy_heap_free_handle(m->heap, it->handle), "a live handle is freed");
    if (it->pins) m->dying[m->dying_count++] = *it;
    return true;
}

/* A sized free is for objects of the class of their size: not those that were aligned, unless it is
 * known what was asked for. */
static bool can_be_told(const model *m, const record *it) {
    if (is_checked(m) && !named(m)) return true;
    const sy_cache *cache = sy_heap_cache_for(m->heap, it->size);
    return cache && sy_heap_usable_size(m->heap, it->object) == cache->size;
}

static void free_one(model *m, size_t which, unsigned how) {
    if (!m->live_count) return;
    record *it = &m->live[which % m->live_count];
    if (it == held) return;
    expect_live(m, it);
    bool told = how % 8 == 4 && can_be_told(m, it);
    errno = 77;
    if (it->pins || (named(m) && how % 2)) {
        if (!free_by_handle(m, it)) return;
    } else if (how % 8 == 2) {
        fuzz_expect(sy_heap_try_free(m->heap, it->object), "a live object is freed");
    } else if (told) {
        sy_heap_free_sized(m->heap, it->object, it->size);
    } else {
        sy_heap_free(m->heap, it->object);
    }
    fuzz_expect(errno == 77, "a free keeps errno");
    sy_handle handle = it->handle;
    forget(m, it);
    refuse(m, handle);
}

static void resize(model *m, size_t which, uint8_t how) {
    if (!m->live_count) return;
    record *it = &m->live[which % m->live_count];
    if (it->pins) return;
    size_t size = size_from((uint32_t)which, how);
    size_t had = it->size, common = had < size ? had : size;
    record before = *it;
    held = it;
    errno = 0;
    void *moved = sy_heap_realloc(m->heap, it->object, size);
    held = NULL;
    /* The callback may have moved the record. */
    for (it = m->live; it->stamp != before.stamp; it++) {}
    if (!moved) {
        expect_reason(m, size);
        expect_live(m, it);
        return;
    }
    it->object = moved;
    fuzz_expect(is_marked(it, common), "an object keeps its content");
    if (moved != before.object) keep_stale(before.handle);
    *it = m->live[--m->live_count];
    add_live(m, moved, size, 0);
}

/* None of these is a live object of the heap. */
static void free_wrong(model *m, size_t which) {
    const model *other = &models[m == models];
    unsigned char local;
    fuzz_expect(!sy_heap_try_free(m->heap, &local), "what is foreign is refused");
    if (other->live_count) {
        const record *it = &other->live[which % other->live_count];
        fuzz_expect(!sy_heap_try_free(m->heap, it->object), "another heap's is refused");
        fuzz_expect(!sy_heap_usable_size(m->heap, it->object), "and has no size here");
        refuse(m, it->handle);
    }
    if (m->live_count) {
        const record *it = &m->live[which % m->live_count];
        fuzz_expect(!sy_heap_try_free(m->heap, it->object + 1), "what is within is refused");
    }
}

/* ---- pins, iteration ---- */

static void pin(model *m, size_t which) {
    if (!m->live_count || !named(m)) return;
    record *it = &m->live[which % m->live_count];
    fuzz_expect(sy_heap_pin(m->heap, it->handle) == it->object, "a live handle is pinned");
    it->pins++;
}

static void unpin(model *m, size_t which) {
    record *it = m->live_count ? &m->live[which % m->live_count] : NULL;
    if (it && it->pins) {
        sy_heap_unpin(m->heap, it->handle);
        it->pins--;
    }
    if (!m->dying_count) return;
    it = &m->dying[which % m->dying_count];
    fuzz_expect(is_marked(it, it->size), "what is pinned is untouched");
    sy_heap_unpin(m->heap, it->handle);
    if (--it->pins == 0) *it = m->dying[--m->dying_count];
}

static int visit(void *arg, sy_handle handle, void *object) {
    model *m = arg;
    record *it = m->live;
    while (it < m->live + m->live_count && it->handle != handle) it++;
    fuzz_expect(it < m->live + m->live_count && it->object == object, "what is visited is live");
    fuzz_expect(!it->visited, "and visited once");
    it->visited = true;
    return 0;
}

static void iterate(model *m) {
    for (size_t i = 0; i < m->live_count; i++) m->live[i].visited = false;
    errno = 0;
    int result = sy_heap_each(m->heap, visit, m);
    if (!named(m)) fuzz_expect(result == -1 && errno == EINVAL, "without handles there is no walk");
    if (result != 0) return;
    for (size_t i = 0; i < m->live_count; i++)
        fuzz_expect(m->live[i].visited, "what is live is visited");
}

/* ---- limits ---- */

static void tell(void *arg, size_t used, size_t soft) {
    model *m = arg;
    fuzz_expect(telling++ == 0, "nobody is told within being told");
    if (m) {
        fuzz_expect(soft == m->config.limit.soft, "the mark is the heap's");
        fuzz_expect(used <= m->config.limit.hard, "and so is the limit");
    }
    for (size_t i = 0; told_frees && i < HEAPS; i++) {
        model *freed = &models[i];
        for (unsigned j = 0; j < 3 && freed->live_count; j++)
            free_one(freed, freed->live_count - 1, j * 3);
    }
    sy_free(sy_malloc(used % 400000));
    telling--;
}

static void limit_process(uint32_t which) {
    sy_limit limit = {.callback = tell};
    if (which % 4) limit.hard = sy_limit_used() + which % 64 * SY_UNIT_BYTES;
    if (which % 8 > 4) limit.soft = limit.hard / 2;
    fuzz_expect(sy_set_limit(which % 16 ? &limit : NULL) == 0, "a limit is set");
    process_hard = which % 16 ? limit.hard : 0;
}

/* ---- the whole ---- */

/* Checked, or guarded now and then. */
static bool looks_at_objects(const model *m) {
    return sy_watch_checks(m->config.flags, m->config.name, true) & (SY_CHECKED | SY_GUARD);
}

static void compare(const model *m) {
    sy_heap_stats stats;
    size_t used = 0, bytes = 0;
    fuzz_expect(sy_heap_get_stats(m->heap, &stats) == 0, "a heap has statistics");
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(m->heap, i);
        if (!cache) continue;
        fuzz_expect(sy_cache_verify(cache) == 0, "a cache is sound");
        used += sy_cache_slab_bytes(cache);
    }
    for (size_t i = 0; i < m->live_count; i++) expect_live(m, &m->live[i]);
    for (size_t i = 0; i < m->live_count; i++)
        bytes += sy_heap_usable_size(m->heap, m->live[i].object);
    for (size_t i = 0; i < m->dying_count; i++)
        bytes += sy_heap_usable_size(m->heap, m->dying[i].object);
    fuzz_expect(stats.objects == m->live_count + m->dying_count, "what is live is counted");
    /* Where objects are checked or guarded, no more may be used of them than was asked for. */
    fuzz_expect(looks_at_objects(m) ? stats.live_bytes >= bytes : stats.live_bytes == bytes,
                "its bytes too");
    fuzz_expect(stats.used == used, "what counts is what the caches have");
    fuzz_expect(!m->config.limit.hard || used <= m->config.limit.hard, "a limit is kept");
}

static void compare_all(void) {
    sy_stats stats;
    for (size_t i = 0; i < HEAPS; i++) compare(&models[i]);
    sy_get_stats(&stats);
    fuzz_expect(sy_limit_used() == stats.slabs + stats.spans, "all that is held counts");
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0, "chunks are sound");
    fuzz_expect(sy_store_verify() == 0, "the store is sound");
}

/* Sets which calls to the system will fail: none in half of the cases. */
static void script(fuzz_input *input) {
    uint8_t choice = fuzz_byte(input);
    turns_reset(CPUS);
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 200, choice);
}

static void make_heap(fuzz_input *input, model *m) {
    static const unsigned flags[] = {0, SY_HANDLES, SY_HANDLES, SY_CHECKED,
                                     SY_CHECKED | SY_HANDLES};
    uint8_t how = fuzz_byte(input);
    memset(m, 0, sizeof *m);
    m->config.name = "fuzz";
    m->config.flags = flags[how % 5];
    if (how / 8 % 2) m->config.limit.hard = (1 + how / 16) * (size_t)SY_UNIT_BYTES * 8;
    if (how / 8 % 4 == 3) m->config.limit.soft = m->config.limit.hard / 2;
    m->config.limit.callback = tell;
    m->config.limit.arg = m;
    m->heap = sy_heap_create(&m->config);
    fuzz_expect(m->heap != NULL, "a sensible heap is made");
}

static void end_heap(model *m, bool all) {
    if (m->live_count + m->dying_count) {
        errno = 0;
        fuzz_expect(sy_heap_destroy(m->heap) == -1 && errno == EBUSY, "live objects are kept");
        compare(m);
    }
    while (!all && m->dying_count) unpin(m, 0);
    while (!all && m->live_count) m->live[0].pins ? unpin(m, 0) : free_one(m, 0, 0);
    for (size_t i = 0; i < m->live_count; i++) keep_stale(m->live[i].handle);
    if (all)
        sy_heap_destroy_all(m->heap);
    else
        fuzz_expect(sy_heap_destroy(m->heap) == 0, "an unused heap is destroyed");
    m->live_count = m->dying_count = 0;
}

static void replace(model *m, fuzz_input *input, uint8_t how) {
    if (how % 8) return;
    turns_reset(CPUS);
    end_heap(m, how / 8 % 2);
    make_heap(input, m);
    try_stale(m, 50, how);
}

static void step(fuzz_input *input) {
    uint8_t operation = fuzz_byte(input), count = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    model *m = &models[operation >> 5 & 1];
    switch (operation % 32) {
    case 0: script(input); break;
    case 1: compare_all(); break;
    case 2: sy_heap_trim(m->heap); break;
    case 3: sy_trim(); break;
    case 4: sy_thread_idle(); break;
    case 5: sy_thread_flush(); break;
    case 6: sy_fake_set_cpu((int)(which % CPUS)); break;
    case 7: limit_process(which); break;
    case 8: try_stale(m, count / 4, which); break;
    case 9: free_wrong(m, which); break;
    case 10: replace(m, input, count); break;
    case 11: iterate(m); break;
    case 12: told_frees = which % 2; break;
    case 13:
    case 14: pin(m, which); break;
    case 15:
    case 16: unpin(m, which); break;
    case 17:
    case 18: resize(m, which, count); break;
    case 19:
    case 20:
    case 21: /* many of a size */
        for (count /= 2; count > 0; count--) take(m, which, (uint8_t)(which >> 8));
        break;
    case 22:
    case 23: /* many objects, at random */
        for (; count > 0; count--) free_one(m, which += 7919, count);
        break;
    case 24:
    case 25:
    case 26: free_one(m, which, count); break;
    default: take(m, which, count); break;
    }
}

static void note_fault(const sy_fault *fault) {
    (void)fault;
    fuzz_expect(false, "nothing is misused");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    sy_stats stats;
    turns_reset(CPUS);
    sy_set_fault_handler(note_fault);
    told_frees = true;
    for (size_t i = 0; i < HEAPS; i++) make_heap(&input, &models[i]);
    turns_run(&input, step);
    turns_reset(CPUS);
    limit_process(0);
    compare_all();
    bool last = size % 2; /* whether the threads end after the heaps are destroyed, or before */
    if (!last) turns_end_all();
    for (size_t i = 0; i < HEAPS; i++) end_heap(&models[i], size / 2 % 3 == i);
    turns_end_all();
    sy_trim();
    sy_get_stats(&stats);
    fuzz_expect(stats.mapped == 0 && sy_limit_used() == 0, "a trim leaves nothing mapped");
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0, "all is sound");
    return 0;
}
