/*
 * fuzz_cache.c: runs random operations on two caches, and compares them with a model.
 *
 * An input is two configurations and a list of operations. This thread or one of two others does
 * the next operation while the others wait. So several threads have magazines, which pass through
 * the depot, and an input always has the same effect. The input also says which calls to the system
 * fail, and which calls of a constructor.
 *
 * The model knows which objects are live, each filled with its own pattern, which ones were freed
 * last, and which addresses are constructed. Counts, statistics and invariants must agree with the
 * model. An allocation may fail only if the model knows a reason.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "chunk/chunk.h"
#include "fuzz.h"
#include "magazine/store.h"
#include "os/fake.h"
#include "turns.h"

enum {
    CACHES = 2,
    LIVE_MAX = 3000,
    LIVE_BYTES_MAX = 8 << 20, /* of a cache */
    FREED = 32,               /* addresses remembered after they were freed */
    BUILT = 1 << 17,          /* entries of the table of what is constructed */
    WHOLE = 512,              /* objects up to this size are filled completely */
    CPUS = 4,
};

typedef struct model {
    sy_cache *cache;
    sy_cache_config config;
    size_t align, slot;
    size_t live_count, live_most;
    unsigned char *live[LIVE_MAX];
    uint64_t stamps[LIVE_MAX];
    unsigned char *freed[FREED];
    size_t freed_next;
    bool nested;       /* a destructor frees another object of the cache */
    bool closing;      /* the cache is being destroyed: destructors do not use it, */
    bool ending;       /* and live objects are destructed too */
    size_t built;      /* objects that are constructed */
    unsigned fails_in; /* the number of the constructor's call that fails; 0: none */
} model;

static model models[CACHES];
static uint64_t last_stamp, inputs;

/* ---- what is constructed ---- */

static struct built {
    uintptr_t address;
    uint64_t input; /* the input that made the entry: entries of earlier inputs are free */
    bool now;
} built[BUILT];

static struct built *built_entry(uintptr_t address) {
    size_t at = (address / 8 * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
    for (size_t step = 0; step < BUILT; step++) {
        struct built *entry = &built[(at + step) % BUILT];
        if (entry->input == inputs && entry->address != address) continue;
        if (entry->input != inputs) *entry = (struct built){address, inputs, false};
        return entry;
    }
    fuzz_expect(false, "the table is large enough");
    return NULL;
}

static void free_one(model *m, size_t which);

static int construct(void *object, void *arg) {
    model *m = arg;
    if (m->fails_in && --m->fails_in == 0) {
        errno = ECANCELED;
        return -1;
    }
    struct built *entry = built_entry((uintptr_t)object);
    fuzz_expect(!entry->now, "an object is constructed once");
    entry->now = true;
    m->built++;
    return 0;
}

static void destruct(void *object, void *arg) {
    model *m = arg;
    struct built *entry = built_entry((uintptr_t)object);
    fuzz_expect(entry->now, "what is destructed is constructed");
    fuzz_expect(m->ending || !sy_cache_try_free(m->cache, object), "it is not live");
    entry->now = false;
    m->built--;
    if (m->nested && !m->closing) free_one(m, m->built);
}

/* ---- patterns ---- */

static uint64_t word_of(uint64_t stamp, size_t at) {
    return (stamp + at) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The bytes of an object that are written: all, or in a large one some of each page and the end. */
static size_t next_written(size_t at, size_t size) {
    if (size <= WHOLE || at % 1024 < 63) return at + 1;
    size_t next = at / 1024 * 1024 + 1024;
    return next < size ? next : at + 1 < size && at + 64 < size ? size - 64 : at + 1;
}

static void mark(const model *m, unsigned char *object, uint64_t stamp) {
    for (size_t at = 0; at < m->config.size; at = next_written(at, m->config.size))
        object[at] = (unsigned char)(word_of(stamp, at) >> 56);
}

static void expect_marked(const model *m, const unsigned char *object, uint64_t stamp) {
    for (size_t at = 0; at < m->config.size; at = next_written(at, m->config.size))
        fuzz_expect(object[at] == (unsigned char)(word_of(stamp, at) >> 56),
                    "a live object is untouched");
}

/* ---- operations on objects ---- */

static void add_live(model *m, unsigned char *object) {
    fuzz_expect((uintptr_t)object % m->align == 0, "an object is aligned");
    fuzz_expect(!m->config.construct || built_entry((uintptr_t)object)->now,
                "what is given out is constructed");
    m->stamps[m->live_count] = ++last_stamp;
    m->live[m->live_count++] = object;
    mark(m, object, last_stamp);
    fuzz_expect(!m->config.limit || m->live_count <= m->config.limit, "a limit is kept");
}

/* Whether the model knows a reason for the failed allocation; `error` is the value of errno. */
static void expect_reason(const model *m, int error) {
    size_t limit = m->config.limit;
    bool limited = limit && m->live_count + limit / 8 >= limit;
    if (m->config.flags & SY_LIMIT_EXACT) limited = m->live_count == limit;
    if (error == ECANCELED) return;
    fuzz_expect(error == ENOMEM, "what fails is said");
    fuzz_expect(limited || sy_fake_failures(SY_FAKE_ANY) > 0, "there was a reason to fail");
}

static bool may_take(const model *m) { return m->live_count < m->live_most; }

static void take_one(model *m) {
    if (!may_take(m)) return;
    errno = 0;
    unsigned char *object = sy_cache_alloc(m->cache);
    if (object)
        add_live(m, object);
    else
        expect_reason(m, errno);
}

static void take_zeroed(model *m) {
    if (!may_take(m)) return;
    errno = 0;
    unsigned char *object = sy_cache_zalloc(m->cache);
    if (m->config.construct) {
        fuzz_expect(!object && errno == EINVAL, "constructed objects are not zeroed");
        return;
    }
    if (!object) {
        expect_reason(m, errno);
        return;
    }
    for (size_t i = 0; i < m->config.size; i++) fuzz_expect(object[i] == 0, "zalloc gives zeroes");
    add_live(m, object);
}

static void take_batch(model *m, size_t count) {
    void *objects[256];
    if (count > m->live_most - m->live_count) count = m->live_most - m->live_count;
    errno = 0;
    size_t got = sy_cache_alloc_batch(m->cache, objects, count);
    int error = errno;
    fuzz_expect(got <= count, "a batch is no longer than asked for");
    for (size_t i = 0; i < got; i++) add_live(m, objects[i]);
    if (got < count) expect_reason(m, error);
}

static unsigned char *remove_live(model *m, size_t which) {
    which %= m->live_count;
    unsigned char *object = m->live[which];
    expect_marked(m, object, m->stamps[which]);
    m->live_count--;
    m->live[which] = m->live[m->live_count];
    m->stamps[which] = m->stamps[m->live_count];
    m->freed[m->freed_next++ % FREED] = object;
    return object;
}

static void free_one(model *m, size_t which) {
    if (m->live_count == 0) return;
    errno = 77;
    sy_cache_free(m->cache, remove_live(m, which));
    fuzz_expect(errno == 77, "a free keeps errno");
}

static void free_batch(model *m, size_t count, size_t which) {
    void *objects[256];
    for (size_t i = 0; i < count; i++)
        objects[i] = m->live_count && i % 8 != 7 ? remove_live(m, which + i * 31) : NULL;
    sy_cache_free_batch(m->cache, objects, count);
}

static bool is_live(const model *m, const void *object) {
    for (size_t i = 0; i < m->live_count; i++)
        if (m->live[i] == object) return true;
    return false;
}

/* ---- frees of what is none of the cache's ---- */

static unsigned faults;
static sy_fault_kind last_fault;

static void note_fault(const sy_fault *fault) {
    faults++;
    last_fault = fault->kind;
}

/* An address that is not a live object of m; NULL: there is none of this kind. */
static unsigned char *wrong_address(model *m, size_t sort, size_t which) {
    static unsigned char foreign[64];
    const model *other = &models[m == models];
    unsigned char *freed = m->freed[which % FREED];
    switch (sort % 5) {
    case 0: return foreign;
    case 1: return m->live_count ? m->live[which % m->live_count] + 1 + which % m->slot / 2 : NULL;
    case 2: return other->live_count ? other->live[which % other->live_count] : NULL;
    case 3: return freed && !is_live(m, freed) ? freed : NULL;
    default: return (unsigned char *)(uintptr_t)(which * UINT64_C(0x9e3779b97f4a7c15) | 1);
    }
}

static void try_free(model *m, size_t sort, size_t which) {
    if (sort % 2 == 0 && m->live_count) {
        fuzz_expect(sy_cache_try_free(m->cache, remove_live(m, which)), "a live object is freed");
        return;
    }
    unsigned char *address = wrong_address(m, sort / 2, which);
    if (address && !is_live(m, address))
        fuzz_expect(!sy_cache_try_free(m->cache, address), "what is not live is not freed");
}

/* With SY_CHECKED each wrong free is reported at once with its kind, and ignored. */
static void free_wrong(model *m, size_t sort, size_t which) {
    unsigned char *address = wrong_address(m, sort, which);
    if (!(m->config.flags & SY_CHECKED) || !address || is_live(m, address)) return;
    faults = 0;
    sy_cache_free(m->cache, address);
    fuzz_expect(faults == 1, "a wrong free is reported once");
    if (sort % 5 == 0) fuzz_expect(last_fault == SY_FAULT_FOREIGN_POINTER, "foreign memory");
    if (sort % 5 == 1) fuzz_expect(last_fault == SY_FAULT_MISALIGNED_POINTER, "an inner address");
    if (sort % 5 == 2) fuzz_expect(last_fault == SY_FAULT_WRONG_CACHE, "another cache's object");
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
    for (size_t before = m->live_count; m->live_count < before + count;) {
        if (m->live_count % 16 == 0) turns_wait((unsigned)m->live_count / 16);
        void *object = sy_cache_alloc(m->cache);
        fuzz_expect(object != NULL, "what was reserved is there");
        add_live(m, object);
    }
    turns_reset(CPUS);
}

static void compare_stats(const model *m) {
    sy_cache_stats stats;
    fuzz_expect(sy_cache_get_stats(m->cache, &stats) == 0, "a cache has statistics");
    fuzz_expect(stats.in_use == m->live_count, "in use is what is live");
    fuzz_expect(sy_cache_in_use(m->cache) == m->live_count, "however it is asked");
    fuzz_expect(stats.slots + stats.guarded == stats.in_use + stats.in_depot + stats.in_loaded +
                                                   stats.in_quarantine + stats.free,
                "every slot is somewhere");
    fuzz_expect(stats.slabs == stats.full + stats.partial + stats.empty, "every slab is counted");
    fuzz_expect(stats.mapped == stats.slots * stats.slot_size + stats.tail, "every byte is");
    fuzz_expect(stats.slabs_made - stats.slabs_released == stats.slabs, "slabs made and released");
    fuzz_expect(stats.discarded + stats.never_used <= stats.mapped, "what is not there is mapped");
    fuzz_expect(stats.constructed - stats.destructed == m->built, "constructed less destructed");
}

static void compare_all(void) {
    sy_stats stats;
    for (size_t i = 0; i < CACHES; i++) {
        const model *m = &models[i];
        for (size_t at = 0; at < m->live_count; at++) expect_marked(m, m->live[at], m->stamps[at]);
        fuzz_expect(sy_cache_verify(m->cache) == 0, "a cache is sound");
        compare_stats(m);
    }
    fuzz_expect(sy_chunk_verify(&sy_memory_main) == 0, "chunks are sound");
    fuzz_expect(sy_store_verify() == 0, "the store is sound");
    sy_get_stats(&stats);
    fuzz_expect(stats.mapped == stats.slabs + stats.spans + stats.units_free + stats.chunk_headers,
                "every mapped byte is accounted for");
    fuzz_expect(stats.spans == 0, "there are no spans but the heap's");
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

static void step(fuzz_input *input) {
    uint8_t operation = fuzz_byte(input), count = fuzz_byte(input);
    uint32_t which = fuzz_u16(input);
    model *m = &models[operation >> 7];
    switch (operation % 32) {
    case 0: script(m, input); break;
    case 1: compare_all(); break;
    case 2: sy_cache_trim(m->cache); break;
    case 3: sy_trim(); break;
    case 4: sy_thread_idle(); break;
    case 5: sy_thread_flush(); break;
    case 6: reserve(m, count * (size_t)(which % 8)); break;
    case 7: sy_fake_set_cpu((int)(which % CPUS)); break;
    case 8:
    case 9: try_free(m, count, which); break;
    case 10: free_wrong(m, count, which); break;
    case 11: take_zeroed(m); break;
    case 12:
    case 13: take_batch(m, count); break;
    case 14: free_batch(m, count, which); break;
    case 15: sy_cache_free(m->cache, NULL); break;
    case 16:
    case 17:
    case 18:
        for (; count > 0; count--) take_one(m);
        break;
    case 19:
    case 20: /* many objects, last in first out */
        for (; count > 0; count--) free_one(m, m->live_count - 1);
        break;
    case 21: /* many objects, at random */
        for (; count > 0; count--) free_one(m, which += 7919);
        break;
    case 22:
    case 23:
    case 24:
    case 25: free_one(m, which); break;
    default: take_one(m); break;
    }
}

/* ---- an input ---- */

static sy_cache_config make_config(fuzz_input *input, model *m) {
    sy_cache_config config = {.name = "fuzz"};
    uint8_t magnitude = fuzz_byte(input), align = fuzz_byte(input), how = fuzz_byte(input);
    config.size = 1 + fuzz_u16(input) % (1u << magnitude % 17) * (magnitude > 240 ? 9 : 1);
    if (align % 4 == 0) config.align = (size_t)1 << align / 4 % 22;
    if (align % 4 == 1) config.align = (size_t)1 << align / 4 % 8;
    if (how % 4 == 0) config.construct = construct;
    if (how % 4 == 0) config.destruct = destruct;
    config.arg = m;
    m->nested = how / 64 % 2;
    if (how / 4 % 4 == 0) config.limit = 1 + fuzz_u16(input) % 2000;
    if (how / 16 % 4 == 0) config.flags |= SY_CHECKED;
    if (how / 16 % 4 == 1) config.flags |= SY_COLOUR;
    if (how / 16 % 4 == 2 && config.limit) config.flags |= SY_LIMIT_EXACT;
    return config;
}

static void make_cache(fuzz_input *input, model *m) {
    m->config = make_config(input, m);
    m->built = m->live_count = m->freed_next = m->fails_in = 0;
    m->ending = m->closing = false;
    memset(m->freed, 0, sizeof m->freed);
    m->cache = sy_cache_create(&m->config);
    fuzz_expect(m->cache != NULL, "a sensible cache is made");
    sy_cache_stats stats;
    fuzz_expect(sy_cache_get_stats(m->cache, &stats) == 0, "a cache has statistics");
    m->slot = stats.slot_size;
    m->align = m->config.align ? m->config.align : m->config.size <= 8 ? 8 : 16;
    m->live_most = LIVE_BYTES_MAX / m->slot + 1;
    if (m->live_most > LIVE_MAX) m->live_most = LIVE_MAX;
    fuzz_expect(m->slot >= m->config.size && m->slot % m->align == 0, "a slot holds an object");
}

static void end_cache(model *m, bool all) {
    if (m->live_count) {
        errno = 0;
        fuzz_expect(sy_cache_destroy(m->cache) == -1 && errno == EBUSY, "live objects are kept");
        compare_stats(m);
    }
    while (!all && m->live_count) free_one(m, 0);
    m->closing = true;
    m->ending = all;
    if (all) {
        sy_cache_destroy_all(m->cache);
    } else {
        fuzz_expect(sy_cache_destroy(m->cache) == 0, "an unused cache is destroyed");
    }
    fuzz_expect(!m->config.construct || m->built == 0, "all are destructed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    sy_stats stats;
    turns_reset(CPUS);
    sy_set_fault_handler(note_fault);
    inputs++;
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
