/*
 * requests.c: an epoch for each batch of requests, so that its memory comes back when the batch is
 * over.
 *
 *     cc -DSY_STATIC requests.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * A server allocates an object for each request and frees it when the request is answered. A few
 * objects outlive their batch: sessions, which the program allocates outside of the epoch, and the
 * answer to a slow client. After some hundred batches comes a burst of many open requests, of which
 * only the sessions are left.
 *
 * The program serves the same requests from a cache for both kinds of objects ("mixed"), and from
 * two caches, one of them with epochs ("grouped"). Then it compares the memory that they hold after
 * the burst. `./a.out mixed`, `./a.out grouped` and `./a.out malloc` do one of these alone. The
 * program checks its results: the exit status is 0 only if all of them are right.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

enum {
    BATCHES = 600,
    REQUESTS = 2000,      /* in a batch; half of them are open at a time */
    SESSION_EVERY = 50,   /* one request of so many begins a session */
    SESSION_BATCHES = 20, /* the session ends so many batches later */
    BURST = 100000,       /* requests that are open at the same time */
};

typedef struct request {
    uint64_t id;
    char text[240];
} request;

typedef struct session {
    uint64_t user;
    char state[240];
} session;

static void expect(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- the server ---- */

typedef struct server {
    sy_cache *requests, *sessions; /* the same one if they are mixed; NULL: malloc */
    int grouped;                   /* each batch has an epoch */
    request *open[REQUESTS / 2];
    request *slow; /* of the batch before: its client is slow */
    session *lasting[SESSION_BATCHES][REQUESTS / SESSION_EVERY]; /* by batch in which they began */
} server;

static void *take(sy_cache *cache, size_t bytes) {
    void *object = cache ? sy_cache_alloc(cache) : malloc(bytes);
    expect(object != NULL, "there is memory");
    return object;
}

static void give(sy_cache *cache, void *object) {
    if (cache)
        sy_cache_free(cache, object);
    else
        free(object);
}

static sy_cache *make_cache(const char *name, unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = name, .size = sizeof(request), .flags = flags});
    expect(cache != NULL, "a cache is created");
    return cache;
}

static request *begin_request(server *me, uint64_t id) {
    request *it = take(me->requests, sizeof *it);
    it->id = id;
    memset(it->text, (int)(id % 251), sizeof it->text);
    return it;
}

static void end_request(server *me, request *it, uint64_t id) {
    expect(it->id == id && it->text[239] == (char)(id % 251), "a request is as it was written");
    give(me->requests, it);
}

static session *begin_session(server *me, uint64_t user) {
    session *it = take(me->sessions, sizeof *it);
    *it = (session){.user = user};
    return it;
}

/* Ends the sessions that began SESSION_BATCHES ago. */
static void end_sessions(server *me, unsigned batch) {
    session **old = me->lasting[batch % SESSION_BATCHES];
    for (unsigned i = 0; i < REQUESTS / SESSION_EVERY; i++) {
        if (old[i]) give(me->sessions, old[i]);
        old[i] = NULL;
    }
}

static void serve_requests(server *me, unsigned batch) {
    const unsigned most = REQUESTS / 2;
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t id = (uint64_t)batch * REQUESTS + i;
        if (i >= most) end_request(me, me->open[i % most], id - most);
        me->open[i % most] = begin_request(me, id);
        if (i % SESSION_EVERY == 0)
            me->lasting[batch % SESSION_BATCHES][i / SESSION_EVERY] = begin_session(me, id);
    }
}

/* Answers all open requests but the last one, whose client is slow. */
static void end_open_requests(server *me, unsigned batch) {
    const unsigned most = REQUESTS / 2;
    for (unsigned i = REQUESTS - most; i < REQUESTS - 1; i++)
        end_request(me, me->open[i % most], (uint64_t)batch * REQUESTS + i);
}

static void serve_batch(server *me, unsigned batch) {
    const unsigned last = (REQUESTS - 1) % (REQUESTS / 2);
    char name[SY_EPOCH_NAME_MAX + 1];
    end_sessions(me, batch);
    snprintf(name, sizeof name, "batch %u", batch);
    sy_epoch *epoch = me->grouped ? sy_epoch_create(name) : NULL;
    expect(sy_epoch_begin(epoch) == 0, "an epoch begins");
    serve_requests(me, batch);
    end_open_requests(me, batch);
    expect(sy_epoch_end(epoch) == 0, "it ends");
    size_t left = sy_epoch_close(epoch);
    expect(left == (me->grouped ? 1 : 0), "only the slow client's request is live");

    /* It is freed in the next batch, after its epoch was closed. */
    if (me->slow) end_request(me, me->slow, (uint64_t)batch * REQUESTS - 1);
    me->slow = me->open[last];
}

static void serve_batches(server *me) {
    for (unsigned batch = 0; batch < BATCHES; batch++) serve_batch(me, batch);
    end_request(me, me->slow, (uint64_t)BATCHES * REQUESTS - 1);
    me->slow = NULL;
}

/* ---- a burst ---- */

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %zu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) >> 10;
}

/* Bytes of a cache that hold memory. */
static size_t held_bytes(const sy_cache *cache) {
    sy_cache_stats stats;
    expect(sy_cache_get_stats(cache, &stats) == 0, "statistics are read");
    return stats.mapped - stats.discarded - stats.never_used;
}

static void give_memory_back(const server *me) {
    if (me->requests) {
        sy_thread_flush();
        sy_trim();
    } else {
        malloc_trim(0);
    }
}

/* Opens many requests, answers them all, and gives memory back. Returns the bytes that the caches
 * hold then; the sessions that the burst began are live. */
static size_t serve_burst(server *me, const char *how) {
    static request *open[BURST];
    static session *sessions[BURST / SESSION_EVERY];
    size_t held = 0, before = resident_kib();
    sy_epoch *epoch = me->grouped ? sy_epoch_create("burst") : NULL;
    expect(sy_epoch_begin(epoch) == 0, "an epoch begins");
    for (uint64_t i = 0; i < BURST; i++) {
        open[i] = begin_request(me, i);
        if (i % SESSION_EVERY == 0) sessions[i / SESSION_EVERY] = begin_session(me, i);
    }
    size_t peak = resident_kib();
    for (uint64_t i = 0; i < BURST; i++) end_request(me, open[i], i);
    expect(sy_epoch_end(epoch) == 0 && sy_epoch_close(epoch) == 0, "no request is live");
    give_memory_back(me);
    printf("%-8s %6zu KiB resident before a burst, %6zu at its peak, %6zu after it\n", how, before,
           peak, resident_kib());
    if (me->requests) held = held_bytes(me->requests);
    if (me->sessions != me->requests) held += held_bytes(me->sessions);
    for (unsigned i = 0; i < BURST / SESSION_EVERY; i++) give(me->sessions, sessions[i]);
    return held;
}

/* ---- the whole program ---- */

/* Returns the bytes that the caches hold after the burst. */
static size_t serve_all(server *me, const char *how) {
    serve_batches(me);
    size_t held = serve_burst(me, how);
    for (unsigned batch = 0; batch < SESSION_BATCHES; batch++) end_sessions(me, batch);
    if (!me->requests) return 0;
    sy_thread_flush(); /* frees of this thread may wait for their slabs */
    expect(sy_epoch_report_stuck(0) == 0, "no epoch is stuck");
    if (me->sessions != me->requests)
        expect(sy_cache_destroy(me->sessions) == 0, "a cache without objects is destroyed");
    expect(sy_cache_destroy(me->requests) == 0, "a cache without objects is destroyed");
    return held;
}

int main(int argc, char **argv) {
    static server plain, grouped, mixed;
    const char *only = argc > 1 ? argv[1] : "";
    size_t held_mixed = 0, held_grouped = 0;
    if (strcmp(only, "malloc") == 0) serve_all(&plain, only);
    if (!*only || strcmp(only, "mixed") == 0) {
        mixed.requests = mixed.sessions = make_cache("request", 0);
        held_mixed = serve_all(&mixed, "mixed");
    }
    if (!*only || strcmp(only, "grouped") == 0) {
        grouped.requests = make_cache("request", SY_EPOCHS);
        grouped.sessions = make_cache("session", 0);
        grouped.grouped = 1;
        held_grouped = serve_all(&grouped, "grouped");
    }
    if (!*only) {
        printf("after the burst: %zu KiB in the mixed cache, %zu KiB in the two\n",
               held_mixed >> 10, held_grouped >> 10);
        expect(held_grouped <= held_mixed / 2, "an epoch leaves less than half of the memory");
    }
    return 0;
}
