/*
 * fuzz_handle.c: runs random operations on two caches with handles and one without, and compares
 * them with models.
 *
 * An input is three configurations and a list of operations. This thread or one of two others does
 * the next operation while the others wait. The input also says which calls to the system fail, and
 * which calls of a constructor.
 *
 * The model knows which objects are live, each filled with its own pattern, and which ones were
 * freed while pinned and exist until they are unpinned. Stale handles of all inputs are kept and
 * tried on each later cache: every function must refuse them. The generation of a new handle must
 * be above all earlier ones of its ordinal.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "cache/directory.h"
#include "chunk/chunk.h"
#include "fuzz.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "turns.h"

enum {
    CACHES = 3,
    PLAIN = 2, /* which of them has no handles */
    LIVE_MAX = 2500,
    LIVE_BYTES_MAX = 6 << 20, /* of a cache */
    DYING_MAX = 100,
    STALE = 1 << 18, /* handles that are kept */
    PLACES = 1 << 24,
    WHOLE = 128, /* bytes of an object that are filled, at either end */
    BATCH = 256,
    CPUS = 4,
};

typedef struct record {
    sy_handle handle;
    unsigned char *object;
    uint64_t stamp;
    unsigned pins;
    bool visited;
} record;

typedef struct model {
    sy_cache *cache;
    sy_cache_config config;
    size_t align, slot;
    size_t live_count, live_most, dying_count;
    record live[LIVE_MAX], dying[DYING_MAX];
    size_t retired;
    size_t built;      /* objects that are constructed */
    unsigned fails_in; /* the number of the constructor's call that fails; 0: none */
} model;

static model models[CACHES];
static uint64_t last_stamp;

/* For each ordinal; kept while the process runs. */
static struct place {
    uint32_t highest; /* generation that was given out */
    uint32_t live;    /* which record it is now, counted from 1 through all models; 0: none */
} places[PLACES];

static sy_handle stale[STALE];
static uint64_t stale_count;

static bool named(const model *m) { return m != &models[PLAIN]; }

/* ---- what is live ---- */

static void set_place(const model *m, size_t index) {
    if (!named(m)) return;
    uint32_t number = (uint32_t)((size_t)(m - models) * LIVE_MAX + index + 1);
    places[(uint32_t)m->live[index].handle].live = number;
}

static record *live_record(const model *m, sy_handle handle) {
    uint32_t number = (uint32_t)handle < PLACES ? places[(uint32_t)handle].live : 0;
    model *owner = number ? &models[(number - 1) / LIVE_MAX] : NULL;
    record *it = owner ? &owner->live[(number - 1) % LIVE_MAX] : NULL;
    return owner == m && it->handle == handle ? it : NULL;
}

static bool is_live_object(const model *m, const void *object) {
    for (size_t i = 0; i < m->live_count; i++)
        if (m->live[i].object == object) return true;
    return false;
}

static void keep_stale(sy_handle handle) {
    if (handle) stale[stale_count++ % STALE] = handle;
}

/* Every function refuses what is not a live handle of the cache. */
static void refuse(model *m, sy_handle handle) {
    if (named(m) && live_record(m, handle)) return;
    errno = 77;
    fuzz_expect(!sy_handle_get(m->cache, handle), "what is not live is not got");
    fuzz_expect(!sy_handle_free(m->cache, handle), "nor freed");
    fuzz_expect(errno == 77, "errno is kept");
    fuzz_expect(!sy_handle_pin(m->cache, handle), "nor pinned");
}

/* ---- constructors ---- */

static int construct(void *object, void *arg) {
    model *m = arg;
    (void)object;
    if (m->fails_in && --m->fails_in == 0) {
        errno = ECANCELED;
        return -1;
    }
    m->built++;
    return 0;
}

static void destruct(void *object, void *arg) {
    model *m = arg;
    (void)object;
    fuzz_expect(m->built > 0, "what is destructed was constructed");
    m->built--;
}

/* ---- patterns ---- */

static unsigned char byte_of(uint64_t stamp, size_t at) {
    return (unsigned char)((stamp + at) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void mark(const model *m, const record *it) {
    size_t size = m->config.size, ends = size < WHOLE ? size : WHOLE;
    for (size_t at = 0; at < ends; at++) it->object[at] = byte_of(it->stamp, at);
    for (size_t at = size - ends; at < size; at++) it->object[at] = byte_of(it->stamp, at);
}

static void expect_marked(const model *m, const record *it) {
    size_t size = m->config.size, ends = size < WHOLE ? size : WHOLE;
    bool whole = true;
    for (size_t at = 0; at < ends; at++) whole &= it->object[at] == byte_of(it->stamp, at);
    for (size_t at = size - ends; at < size; at++)
        whole &= it->object[at] == byte_of(it->stamp, at);
    fuzz_expect(whole, "an object that is live or pinned is untouched");
}

static void expect_live(const model *m, const record *it) {
    expect_marked(m, it);
    if (!named(m)) return;
    fuzz_expect(sy_handle_get(m->cache, it->handle) == it->object, "a live handle is got");
    fuzz_expect(sy_handle_of(it->object) == it->handle, "an object has its handle");
}

/* ---- allocation ---- */

static void check_new_handle(sy_handle handle) {
    uint64_t generation = handle >> SY_HANDLE_GENERATION;
    fuzz_expect((uint32_t)handle < PLACES, "ordinals are used again");
    struct place *place = &places[(uint32_t)handle];
    fuzz_expect(generation > place->highest, "a handle is above all that were");
    fuzz_expect(generation <= SY_HANDLE_GENERATIONS_MAX, "and within its generations");
    place->highest = (uint32_t)generation;
}

static void add_live(model *m, void *object, sy_handle handle) {
    fuzz_expect((uintptr_t)object % m->align == 0, "an object is aligned");
    if (named(m)) check_new_handle(handle);
    record *it = &m->live[m->live_count];
    *it = (record){.handle = handle, .object = object, .stamp = ++last_stamp};
    set_place(m, m->live_count++);
    mark(m, it);
    expect_live(m, it);
    size_t there = m->live_count + m->dying_count;
    fuzz_expect(!m->config.limit || there <= m->config.limit, "a limit is kept");
}

/* Whether the model knows a reason for the failed allocation; `error` is the value of errno. */
static void expect_reason(const model *m, int error) {
    size_t limit = m->config.limit, there = m->live_count + m->dying_count;
    bool limited = limit && there + limit / 8 >= limit;
    if (m->config.flags & SY_LIMIT_EXACT) limited = there == limit;
    if (error == ECANCELED) return;
    fuzz_expect(error == ENOMEM, "what fails is said");
    /* With tables for few ordinals, spent ones use them up. */
    bool few = !(SY_OS_SERVICES & SY_OS_FREE_ADDRESSES);
    fuzz_expect(limited || few || sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
}

static bool may_take(const model *m) { return m->live_count < m->live_most; }

static void take_by_handle(model *m) {
    sy_handle handle = 4711;
    errno = 0;
    void *object = sy_handle_alloc(m->cache, &handle);
    int error = errno;
    fuzz_expect(object || handle == 4711, "a handle that is not given is as it was");
    if (object)
        add_live(m, object, handle);
    else if (named(m))
        expect_reason(m, error);
    else
        fuzz_expect(error == EINVAL, "a plain cache has no handles");
}

static void take_by_address(model *m) {
    errno = 0;
    void *object = sy_cache_alloc(m->cache);
    if (object)
        add_live(m, object, sy_handle_of(object));
    else
        expect_reason(m, errno);
}

static void take_one(model *m, size_t way) {
    if (!may_take(m)) return;
    if (named(m) && way % 4)
        take_by_handle(m);
    else
        take_by_address(m);
}

static void take_batch(model *m, size_t count) {
    void *objects[BATCH];
    if (count > m->live_most - m->live_count) count = m->live_most - m->live_count;
    errno = 0;
    size_t got = sy_cache_alloc_batch(m->cache, objects, count);
    int error = errno;
    fuzz_expect(got <= count, "a batch is no longer than asked for");
    for (size_t i = 0; i < got; i++) add_live(m, objects[i], sy_handle_of(objects[i]));
    if (got < count) expect_reason(m, error);
}

/* ---- pins and frees ---- */

/* After the cache is destroyed, none of the model's handles finds an object. */
static void note_free(model *m, sy_handle handle) {
    if (named(m) && handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX) m->retired++;
}

/* Removes a record from the live ones. If the object is pinned, the record becomes a dying one. */
static record remove_live(model *m, size_t which) {
    record it = m->live[which];
    expect_live(m, &it);
    if (named(m)) places[(uint32_t)it.handle].live = 0;
    m->live[which] = m->live[--m->live_count];
    if (which < m->live_count) set_place(m, which);
    keep_stale(it.handle);
    if (it.pins)
        m->dying[m->dying_count++] = it;
    else
        note_free(m, it.handle);
    return it;
}

static void free_one(model *m, size_t which, size_t way) {
    if (!m->live_count) return;
    which %= m->live_count;
    if (m->live[which].pins && m->dying_count == DYING_MAX) return;
    record it = remove_live(m, which);
    errno = 77;
    if (named(m) && way % 4)
        fuzz_expect(sy_handle_free(m->cache, it.handle), "a live handle is freed");
    else if (named(m) && way % 8)
        fuzz_expect(sy_cache_try_free(m->cache, it.object), "or its object");
    else
        sy_cache_free(m->cache, it.object);
    fuzz_expect(errno == 77, "a free keeps errno");
    if (named(m)) refuse(m, it.handle);
}

static void free_batch(model *m, size_t count, size_t which) {
    void *objects[BATCH];
    for (size_t i = 0; i < count; i++) {
        size_t at = m->live_count ? (which + i * 31) % m->live_count : 0;
        bool may = m->live_count && i % 8 != 7;
        may = may && !(m->live[at].pins && m->dying_count == DYING_MAX);
        objects[i] = may ? remove_live(m, at).object : NULL;
    }
    sy_cache_free_batch(m->cache, objects, count);
}

static void pin(model *m, size_t which) {
    if (!named(m) || !m->live_count) return;
    record *it = &m->live[which % m->live_count];
    fuzz_expect(sy_handle_pin(m->cache, it->handle) == it->object, "a live object is pinned");
    it->pins++;
    expect_live(m, it);
}

static void unpin_dying(model *m, size_t which) {
    if (!m->dying_count) return;
    record *it = &m->dying[which % m->dying_count], was = *it;
    expect_marked(m, it);
    refuse(m, it->handle);
    if (--it->pins == 0) {
        *it = m->dying[--m->dying_count];
        note_free(m, was.handle);
    }
    sy_handle_unpin(m->cache, was.handle);
}

static void unpin_live(model *m, size_t which) {
    for (size_t i = 0; i < 50 && i < m->live_count; i++) {
        record *it = &m->live[(which + i) % m->live_count];
        if (!it->pins) continue;
        it->pins--;
        sy_handle_unpin(m->cache, it->handle);
        expect_live(m, it);
        return;
    }
}

static void unpin(model *m, size_t way, size_t which) {
    if (way % 2)
        unpin_dying(m, which);
    else
        unpin_live(m, which);
}

/* ---- what is wrong ---- */

static unsigned faults;
static sy_fault_kind last_fault;

static void note_fault(const sy_fault *fault) {
    faults++;
    last_fault = fault->kind;
}

static void try_stale(model *m, size_t count, size_t which) {
    uint64_t kept = stale_count < STALE ? stale_count : STALE;
    for (size_t i = 0; i < count && kept; i++, which += 7919) {
        refuse(m, stale[which % kept]);
        refuse(m, stale[(stale_count - 1 - i % kept) % STALE]); /* the newest */
    }
}

static void try_forged(model *m, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
        bits ^= bits >> 29;
        refuse(m, bits);
        refuse(m, (bits & UINT64_C(0xf00000fff)));
        for (size_t c = 0; c < CACHES; c++) {
            const model *other = &models[c];
            if (!other->live_count) continue;
            const record *it = &other->live[bits % other->live_count];
            refuse(m, it->handle);
            refuse(m, it->handle ^ UINT64_C(1) << bits % 64);
            refuse(m, (uintptr_t)it->object);
        }
    }
}

/* An address at which no live object of m begins; NULL: there is none of that sort. */
static unsigned char *wrong_address(model *m, size_t sort, size_t which, sy_fault_kind *kind) {
    static unsigned char foreign[64];
    const model *other = &models[(size_t)(m - models + 1) % CACHES];
    switch (sort % 4) {
    case 0: *kind = SY_FAULT_FOREIGN_POINTER; return foreign;
    case 1:
        *kind = SY_FAULT_MISALIGNED_POINTER;
        return m->live_count ? m->live[which % m->live_count].object + 1 + which % m->slot / 2
                             : NULL;
    case 2:
        *kind = SY_FAULT_WRONG_CACHE;
        return other->live_count ? other->live[which % other->live_count].object : NULL;
    default:
        *kind = SY_FAULT_DOUBLE_FREE;
        return m->dying_count ? m->dying[which % m->dying_count].object : NULL;
    }
}

static void free_wrong(model *m, size_t sort, size_t which) {
    sy_fault_kind kind;
    unsigned char *address = wrong_address(m, sort, which, &kind);
    if (!named(m) || !address || is_live_object(m, address)) return;
    faults = 0;
    fuzz_expect(!sy_cache_try_free(m->cache, address) && faults == 0, "it is not freed");
    if (kind != SY_FAULT_WRONG_CACHE)
        fuzz_expect(sy_handle_of(address) == 0, "no object, no handle");
    sy_cache_free(m->cache, address);
    fuzz_expect(faults == 1 && last_fault == kind, "a wrong free is reported once, and named");
}

static void unpin_wrong(model *m, size_t which) {
    uint64_t kept = stale_count < STALE ? stale_count : STALE;
    sy_handle handle = kept ? stale[which % kept] : 0;
    for (size_t i = 0; i < m->dying_count; i++)
        if (m->dying[i].handle == handle) return;
    if (which % 2 && m->live_count) {
        const record *it = &m->live[which % m->live_count];
        if (it->pins) return;
        handle = it->handle;
    }
    faults = 0;
    sy_handle_unpin(m->cache, handle);
    fuzz_expect(faults == 1 && last_fault == SY_FAULT_NOT_PINNED, "nothing is unpinned twice");
}

/* ---- iteration ---- */

static struct walk {
    model *m;
    size_t frees, takes, stops_at, visits; /* every n-th visit frees, allocates; 0: none */
} walk;

static int visit(void *arg, sy_handle handle, void *object) {
    model *m = walk.m;
    record *it = live_record(m, handle);
    fuzz_expect(arg == &walk && it && it->object == object, "what is visited is live");
    fuzz_expect(!it->visited, "once");
    it->visited = true;
    expect_marked(m, it);
    walk.visits++;
    if (walk.frees && walk.visits % walk.frees == 0 && m->dying_count < DYING_MAX) {
        size_t which = (size_t)(it - m->live);
        bool pinned = it->pins > 0;
        record was = *it;
        it->pins++; /* pinned by the walk, so it exists until the visit ends */
        free_one(m, which, 1);
        expect_marked(m, &m->dying[m->dying_count - 1]);
        m->dying[m->dying_count - 1].pins--;
        if (!pinned) m->dying_count--, note_free(m, was.handle);
    }
    if (walk.takes && walk.visits % walk.takes == 0) take_one(m, 1);
    return walk.visits == walk.stops_at ? 4711 : 0;
}

static void iterate(model *m, size_t how, size_t which) {
    uint64_t newest = last_stamp;
    walk = (struct walk){.m = m};
    if (how % 4 == 1) walk.frees = 1 + which % 16;
    if (how % 4 == 2) walk.takes = 1 + which % 16;
    if (how % 4 == 3) walk.stops_at = 1 + which % 2000;
    for (size_t i = 0; i < m->live_count; i++) m->live[i].visited = false;
    errno = 0;
    int result = sy_handle_each(m->cache, visit, &walk), error = errno;
    if (!named(m)) {
        fuzz_expect(result == -1 && error == EINVAL, "a plain cache is not iterated");
    } else if (result == -1) {
        fuzz_expect(error == ENOMEM && walk.visits == 0, "no memory, no visits");
        fuzz_expect(sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
    } else if (walk.stops_at && walk.visits == walk.stops_at) {
        fuzz_expect(result == 4711, "it says what ended it");
    } else {
        fuzz_expect(result == 0, "it came to its end");
        for (size_t i = 0; i < m->live_count; i++)
            fuzz_expect(m->live[i].visited || m->live[i].stamp > newest, "all were visited");
    }
}

/* ---- operations on the whole ---- */

/* Reserved objects can be allocated even if the system fails, time passes and memory is short. */
static void reserve(model *m, size_t count) {
    if (count > m->live_most - m->live_count) count = m->live_most - m->live_count;
    if (sy_cache_reserve(m->cache, count) != 0) {
        fuzz_expect(errno == ENOMEM, "what fails is said");
        return;
    }
    turns_reset(CPUS);
    m->fails_in = 0;
    turns_press(count % 2);
    sy_fake_fail_from(SY_FAKE_ANY, 1);
    size_t want = m->live_count + count;
    while (m->live_count < want) {
        size_t before = m->live_count;
        if (before % 16 == 0) turns_wait((unsigned)before / 16);
        take_one(m, m->live_count);
        fuzz_expect(m->live_count == before + 1, "what was reserved is there");
    }
    turns_reset(CPUS);
}

static void compare_stats(const model *m) {
    sy_cache_stats stats;
    fuzz_expect(sy_cache_get_stats(m->cache, &stats) == 0, "a cache has statistics");
    fuzz_expect(stats.in_use == m->live_count + m->dying_count, "in use is what is there");
    fuzz_expect(sy_cache_in_use(m->cache) == stats.in_use, "however it is asked");
    fuzz_expect(stats.slots == stats.in_use + stats.in_depot + stats.in_loaded +
                                   stats.in_quarantine + stats.free + stats.retired,
                "every slot is somewhere");
    fuzz_expect(stats.retired == m->retired, "what is spent is counted");
    fuzz_expect(stats.slabs == stats.full + stats.partial + stats.empty, "every slab is counted");
    fuzz_expect(stats.mapped == stats.slots * stats.slot_size + stats.tail, "every byte is");
    fuzz_expect(stats.constructed - stats.destructed == m->built, "constructed less destructed");
}

static void compare_all(void) {
    for (size_t i = 0; i < CACHES; i++) {
        const model *m = &models[i];
        for (size_t at = 0; at < m->live_count; at++) expect_live(m, &m->live[at]);
        for (size_t at = 0; at < m->dying_count; at++) expect_marked(m, &m->dying[at]);
        fuzz_expect(sy_cache_verify(m->cache) == 0, "a cache is sound");
        compare_stats(m);
    }
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0, "chunks are sound");
    fuzz_expect(sy_store_verify() == 0, "the store is sound");
}

/* Sets which calls to the system will fail: none in half of the cases. */
static void script(model *m, fuzz_input *input) {
    uint8_t choice = fuzz_byte(input);
    turns_reset(CPUS);
    m->fails_in = 0;
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 200, choice);
    if (choice % 8 == 2) m->fails_in = 1 + choice / 8;
}

/* ---- caches come and go ---- */

static sy_cache_config make_config(fuzz_input *input, model *m) {
    sy_cache_config config = {.name = "fuzz", .arg = m};
    uint8_t magnitude = fuzz_byte(input), align = fuzz_byte(input), how = fuzz_byte(input);
    config.size = 1 + fuzz_u16(input) % (1u << magnitude % 17) * (magnitude > 240 ? 9 : 1);
    if (align % 4 == 0) config.align = (size_t)1 << align / 4 % 22;
    if (how % 4 == 0) config.construct = construct;
    if (how % 4 == 0) config.destruct = destruct;
    if (how / 4 % 4 == 0) config.limit = 1 + fuzz_u16(input) % 2000;
    if (how / 16 % 4 == 0) config.flags |= SY_CHECKED;
    if (how / 16 % 4 == 1) config.flags |= SY_COLOUR;
    if (how / 16 % 4 == 2 && config.limit) config.flags |= SY_LIMIT_EXACT;
    if (named(m)) config.flags |= SY_HANDLES;
    return config;
}

static void make_cache(fuzz_input *input, model *m) {
    m->config = make_config(input, m);
    m->built = m->live_count = m->dying_count = m->retired = m->fails_in = 0;
    m->cache = sy_cache_create(&m->config);
    fuzz_expect(m->cache != NULL, "a sensible cache is made");
    sy_cache_stats stats;
    fuzz_expect(sy_cache_get_stats(m->cache, &stats) == 0, "a cache has statistics");
    m->slot = stats.slot_size;
    m->align = m->config.align ? m->config.align : m->config.size <= 8 ? 8 : 16;
    m->live_most = LIVE_BYTES_MAX / m->slot + 1;
    if (m->live_most > LIVE_MAX) m->live_most = LIVE_MAX;
}

static void end_cache(model *m, bool all) {
    if (m->live_count + m->dying_count) {
        errno = 0;
        fuzz_expect(sy_cache_destroy(m->cache) == -1 && errno == EBUSY, "live objects are kept");
        compare_stats(m);
    }
    while (!all && m->dying_count) unpin_dying(m, 0);
    while (!all && m->live_count) {
        m->live[0].pins ? unpin_live(m, 0) : free_one(m, 0, m->live_count);
    }
    if (all) {
        sy_cache_destroy_all(m->cache);
    } else {
        fuzz_expect(sy_cache_destroy(m->cache) == 0, "an unused cache is destroyed");
    }
    for (size_t i = 0; i < m->live_count; i++) {
        keep_stale(m->live[i].handle);
        if (named(m)) places[(uint32_t)m->live[i].handle].live = 0;
    }
    m->live_count = m->dying_count = 0;
    fuzz_expect(!m->config.construct || m->built == 0, "all are destructed");
}

/* Only now and then, since no other thread's magazines are ever filled for what lives shortly. */
static void replace(model *m, fuzz_input *input, size_t how) {
    if (how % 8) return;
    turns_reset(CPUS);
    end_cache(m, how / 8 % 2);
    make_cache(input, m);
    try_stale(m, 50, how);
}

static void step(fuzz_input *input) {
    uint8_t operation = fuzz_byte(input), count = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    model *m = &models[operation >> 5 < 7 ? operation >> 5 & 1 : PLAIN];
    switch (operation % 32) {
    case 0: script(m, input); break;
    case 1: compare_all(); break;
    case 2: sy_cache_trim(m->cache); break;
    case 3: sy_trim(); break;
    case 4: sy_thread_idle(); break;
    case 5: sy_thread_flush(); break;
    case 6: reserve(m, count * (size_t)(which % 8)); break;
    case 7: sy_fake_set_cpu((int)(which % CPUS)); break;
    case 8: try_stale(m, count, which); break;
    case 9: try_forged(m, count / 4, which); break;
    case 10: free_wrong(m, count, which); break;
    case 11: unpin_wrong(m, which); break;
    case 12: take_batch(m, count); break;
    case 13: free_batch(m, count, which); break;
    case 14:
    case 15:
        for (; count > 0; count--) pin(m, which += 7919);
        break;
    case 16:
    case 17:
    case 18:
        for (; count > 0; count--) unpin(m, count, which++);
        break;
    case 19: iterate(m, count, which); break;
    case 20: replace(m, input, count); break;
    case 21:
    case 22:
    case 23:
        for (; count > 0; count--) take_one(m, count);
        break;
    case 24: /* many objects, last in first out */
        for (; count > 0 && m->live_count; count--) free_one(m, m->live_count - 1, which++);
        break;
    case 25:
    case 26: /* many objects, at random */
        for (; count > 0; count--) free_one(m, which += 7919, count);
        break;
    case 27: /* one object, again and again */
        for (; count > 0; count--) {
            take_one(m, 1);
            if (m->live_count) free_one(m, m->live_count - 1, 1);
        }
        break;
    case 28:
    case 29: free_one(m, which, count); break;
    default: take_one(m, count); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    sy_stats stats;
    turns_reset(CPUS);
    sy_set_fault_handler(note_fault);
    for (size_t i = 0; i < CACHES; i++) make_cache(&input, &models[i]);
    turns_run(&input, step);
    turns_reset(CPUS);
    compare_all();
    bool last = size % 2; /* whether the threads end after the caches are destroyed, or before */
    if (!last) turns_end_all();
    for (size_t i = 0; i < CACHES; i++) end_cache(&models[i], size / 2 % 3 == i);
    turns_end_all();
    sy_trim();
    sy_get_stats(&stats);
    fuzz_expect(stats.mapped == 0, "a trim leaves nothing mapped");
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0 && sy_store_verify() == 0, "all is sound");
    return 0;
}
