/*
 * lru_cache.c: an LRU cache whose entries expire. Entries come from an object cache, so the memory
 * of expired entries goes back to the system, even while other entries live.
 *
 *     cc -DSY_STATIC lru_cache.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * An entry is in two intrusive structures: a bucket of the hash table, and a ring in order of use.
 * If the table is full, the entry that was used least recently makes room. `./a.out malloc` takes
 * the entries from malloc, for comparison. The program checks its results: the exit status is 0
 * only if all of them are right.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slabyard/cache.h>
#include <slabyard/options.h>
#include <slabyard/stats.h>

enum {
    ENTRIES_MAX = 100000,
    BUCKETS = 1 << 17,
    KEYS = 400000,
    VALUE_BYTES = 200,
    TICK_MS = 100,
    LIFETIME_MS = 60000,            /* of an entry, at most; at least half of it */
    BUCKETS_A_TICK = BUCKETS / 100, /* searched for expired entries: all of them in 10 s */
    BUSY_TICKS = 2000,              /* 200 s */
    QUIET_TICKS = 2000,             /* 200 s, in which few keys are asked for */
    BUSY_REQUESTS = 1000,           /* a tick */
    QUIET_REQUESTS = 10,            /* a tick */
    QUIET_KEYS = 1000,
};

typedef struct ring_link {
    struct ring_link *older, *newer;
} ring_link;

typedef struct entry {
    ring_link use;      /* the ring in order of use; it is the first member */
    struct entry *next; /* in its bucket */
    uint64_t key;
    uint64_t expires; /* ms */
    uint64_t used;    /* the number of the last request for it */
    char value[VALUE_BYTES];
} entry;

typedef struct table {
    sy_cache *entries; /* NULL: entries come from malloc */
    entry *buckets[BUCKETS];
    ring_link ring; /* ring.older is the entry used last, ring.newer the one used least recently */
    size_t count, next_bucket; /* entries; the bucket where the next search begins */
    uint64_t now, requests;    /* ms; number */
    uint64_t hits, stored, evicted, expired;
} table;

static void expect(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- entries ---- */

static entry *new_entry(table *of) {
    entry *made = of->entries ? sy_cache_alloc(of->entries) : malloc(sizeof *made);
    expect(made != NULL, "there is memory for an entry");
    return made;
}

static void free_entry(table *of, entry *gone) {
    if (of->entries)
        sy_cache_free(of->entries, gone);
    else
        free(gone);
}

static entry **bucket_of(table *of, uint64_t key) {
    return &of->buckets[key * 0x9e3779b97f4a7c15u >> 47]; /* the upper 17 bits */
}

static void unlink_use(entry *it) {
    it->use.older->newer = it->use.newer;
    it->use.newer->older = it->use.older;
}

static void link_as_newest(table *of, entry *it) {
    ring_link *head = &of->ring;
    it->use = (ring_link){.older = head->older, .newer = head};
    head->older->newer = &it->use;
    head->older = &it->use;
}

/* Removes the entry that *place points to. */
static void remove_entry(table *of, entry **place) {
    entry *gone = *place;
    *place = gone->next;
    unlink_use(gone);
    free_entry(of, gone);
    of->count--;
}

static entry **find(table *of, uint64_t key) {
    entry **place = bucket_of(of, key);
    while (*place && (*place)->key != key) place = &(*place)->next;
    return place;
}

/* ---- the cache ---- */

/* The value of a key, or NULL if it is not there or has expired. */
static const char *look_up(table *of, uint64_t key) {
    entry **place = find(of, key), *it = *place;
    of->requests++;
    if (!it) return NULL;
    if (it->expires <= of->now) {
        remove_entry(of, place);
        of->expired++;
        return NULL;
    }
    it->used = of->requests;
    unlink_use(it);
    link_as_newest(of, it);
    of->hits++;
    return it->value;
}

static void evict_least_used(table *of) {
    entry *oldest = (entry *)of->ring.newer; /* the ring's link is an entry's first member */
    entry **place = find(of, oldest->key);
    expect(*place == oldest, "the entry used least recently is in its bucket");
    remove_entry(of, place);
    of->evicted++;
}

/* Stores a value for a key that is not there, for `lifetime` ms. */
static void store(table *of, uint64_t key, const char *value, uint64_t lifetime) {
    if (of->count == ENTRIES_MAX) evict_least_used(of);
    entry *it = new_entry(of), **bucket = bucket_of(of, key);
    it->next = *bucket;
    it->key = key;
    it->expires = of->now + lifetime;
    it->used = of->requests;
    memcpy(it->value, value, VALUE_BYTES);
    *bucket = it;
    link_as_newest(of, it);
    of->count++;
    of->stored++;
}

/* Removes the expired entries of some buckets. Most of them are never looked up again, so without
 * this they would stay until the table is full. */
static void remove_expired(table *of) {
    for (size_t i = 0; i < BUCKETS_A_TICK; i++) {
        entry **place = &of->buckets[of->next_bucket];
        of->next_bucket = (of->next_bucket + 1) % BUCKETS;
        while (*place) {
            if ((*place)->expires > of->now) {
                place = &(*place)->next;
            } else {
                remove_entry(of, place);
                of->expired++;
            }
        }
    }
}

/* ---- requests, and the memory that is left ---- */

static uint64_t random_below(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Small keys are asked for more often. */
static uint64_t random_key(uint64_t *state, uint64_t keys) {
    uint64_t a = random_below(state, keys), b = random_below(state, keys);
    return a * b / keys;
}

static void make_value(char *value, uint64_t key) {
    memset(value, (int)(key % 251), VALUE_BYTES);
    memcpy(value, &key, sizeof key);
}

static void serve_ticks(table *of, uint64_t *state, int ticks, int requests, uint64_t keys) {
    char value[VALUE_BYTES];
    for (int tick = 0; tick < ticks; tick++) {
        for (int i = 0; i < requests; i++) {
            uint64_t key = random_key(state, keys);
            const char *found = look_up(of, key);
            make_value(value, key); /* the answer that a database would give */
            if (found)
                expect(memcmp(found, value, VALUE_BYTES) == 0, "a hit has the key's value");
            else
                store(of, key, value, LIFETIME_MS / 2 + key % (LIFETIME_MS / 2));
        }
        remove_expired(of);
        of->now += TICK_MS;
    }
}

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %zu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) >> 10;
}

/* Bytes of the object cache that the system has not got back. */
static size_t held_bytes(const table *of) {
    sy_cache_stats stats;
    if (!of->entries || sy_cache_get_stats(of->entries, &stats) != 0) return 0;
    return stats.mapped - stats.discarded - stats.never_used;
}

static void report(const table *of, const char *when) {
    printf("%-6s %6zu entries, %6zu KiB resident\n", when, of->count, resident_kib());
}

static void check_order_of_use(const table *of) {
    uint64_t before = 0;
    size_t count = 0;
    for (const ring_link *at = of->ring.newer; at != &of->ring; at = at->newer, count++) {
        const entry *it = (const entry *)at;
        expect(it->used > before, "the ring is in order of use");
        before = it->used;
    }
    expect(count == of->count, "each entry is in the ring");
}

int main(int argc, char **argv) {
    static table it;
    uint64_t state = 1;
    it.ring = (ring_link){&it.ring, &it.ring};
    if (argc < 2 || strcmp(argv[1], "malloc") != 0) {
        it.entries = sy_cache_create(&(sy_cache_config){.name = "entry", .size = sizeof(entry)});
        expect(it.entries != NULL, "a cache is created");
    }
    serve_ticks(&it, &state, BUSY_TICKS, BUSY_REQUESTS, KEYS);
    report(&it, "busy");
    expect(it.evicted > 0 && it.expired > 0 && it.hits > it.requests / 4, "the table is in use");
    check_order_of_use(&it);
    size_t busy = it.count, held = held_bytes(&it);

    serve_ticks(&it, &state, QUIET_TICKS, QUIET_REQUESTS, QUIET_KEYS);
    report(&it, "quiet");
    if (it.entries)
        sy_cache_trim(it.entries);
    else
        malloc_trim(0);
    report(&it, "trim");
    check_order_of_use(&it);
    printf("%ju requests: %ju hits, %ju stored, %ju evicted, %ju expired\n", (uintmax_t)it.requests,
           (uintmax_t)it.hits, (uintmax_t)it.stored, (uintmax_t)it.evicted, (uintmax_t)it.expired);
    expect(it.count > 0 && it.count < busy / 10, "what nobody asks for has expired");
    expect(it.requests == it.hits + it.stored, "each request hits or stores");
    expect(it.stored == it.evicted + it.expired + it.count, "each entry is accounted for");
    if (!it.entries) return 0;
    expect(sy_cache_in_use(it.entries) == it.count, "the cache has as many objects");
    if (sy_platform_has("discards") == 1)
        expect(held_bytes(&it) <= held / 4, "most of the memory is the system's again");
    while (it.count > 0) evict_least_used(&it);
    expect(sy_cache_destroy(it.entries) == 0, "a cache without objects is destroyed");
    return 0;
}
