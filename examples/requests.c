/*
 * requests.c: an epoch for each batch of requests, so that its memory comes back when it is over.
 *
 *     cc requests.c $(pkg-config --cflags --libs slabyard) -pthread && ./a.out
 *
 * A server takes objects for each request and frees them when it is answered. A few outlive their
 * batch: sessions, which the program knows of beforehand and takes outside of the epoch, and now
 * and then an answer to a slow client. The same requests are served twice, from caches with epochs
 * and without, and it is counted which slabs came back whole. What it shows it checks itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/slabyard.h>

enum {
    BATCHES = 60,
    REQUESTS = 2000,     /* in a batch, of which half are open at a time */
    SESSION_EVERY = 50,  /* requests: one begins a session, */
    SESSION_BATCHES = 20 /* which lasts so long */
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
    sy_cache *requests, *sessions; /* one and the same when nothing is grouped */
    int grouped;
    request *open[REQUESTS / 2];
    session *lasting[SESSION_BATCHES][REQUESTS / SESSION_EVERY]; /* by batch in which they began */
} server;

static sy_cache *make_cache(const char *name, unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = name, .size = sizeof(request), .flags = flags});
    expect(cache != NULL, "a cache is made");
    return cache;
}

static request *begin_request(server *me, uint64_t id) {
    request *it = sy_cache_alloc(me->requests);
    expect(it != NULL, "there is memory for a request");
    it->id = id;
    memset(it->text, (int)(id % 251), sizeof it->text);
    return it;
}

static void end_request(server *me, request *it, uint64_t id) {
    expect(it->id == id && it->text[239] == (char)(id % 251), "a request is as it was left");
    sy_cache_free(me->requests, it);
}

static session *begin_session(server *me, uint64_t user) {
    session *it = sy_cache_alloc(me->sessions);
    expect(it != NULL, "there is memory for a session");
    *it = (session){.user = user};
    return it;
}

/* Those that began so many batches ago. */
static void end_sessions(server *me, unsigned batch) {
    session **old = me->lasting[batch % SESSION_BATCHES];
    for (unsigned i = 0; i < REQUESTS / SESSION_EVERY; i++) {
        if (old[i]) sy_cache_free(me->sessions, old[i]);
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

/* All but the last, which is to a slow client. */
static void end_open_requests(server *me, unsigned batch) {
    const unsigned most = REQUESTS / 2;
    for (unsigned i = REQUESTS - most; i < REQUESTS - 1; i++)
        end_request(me, me->open[i % most], (uint64_t)batch * REQUESTS + i);
}

static void serve_batch(server *me, unsigned batch) {
    const unsigned last = (REQUESTS - 1) % (REQUESTS / 2);
    static request *slow;
    char name[SY_EPOCH_NAME_MAX + 1];
    end_sessions(me, batch);
    snprintf(name, sizeof name, "batch %u", batch);
    sy_epoch *epoch = me->grouped ? sy_epoch_create(name) : NULL;
    expect(sy_epoch_begin(epoch) == 0, "a batch begins");
    serve_requests(me, batch);
    end_open_requests(me, batch);
    expect(sy_epoch_end(epoch) == 0, "and ends");
    size_t left = sy_epoch_close(epoch);
    expect(left == (me->grouped ? 1 : 0), "the slow client's request is all that is left of it");

    /* It is freed in the batch after, long after the epoch was closed. */
    if (slow) end_request(me, slow, (uint64_t)batch * REQUESTS - 1);
    slow = me->open[last];
    if (batch == BATCHES - 1) {
        end_request(me, slow, (uint64_t)BATCHES * REQUESTS - 1);
        slow = NULL;
    }
}

/* ---- what came of it ---- */

static void expect_no_epoch_left(void) {
    sy_thread_flush(); /* what this thread has just freed is in its outbox */
    expect(sy_epoch_report_stuck(0) == 0, "no epoch is stuck");
}

/* Percent of the slabs that were made for requests and came back empty while it ran. */
static double serve_all(server *me, const char *how) {
    sy_cache_stats stats;
    for (unsigned batch = 0; batch < BATCHES; batch++) serve_batch(me, batch);
    sy_cache_get_stats(me->requests, &stats);
    double percent = 100.0 * (double)stats.slabs_released / (double)stats.slabs_made;
    printf("%-8s %5" PRIu64 " slabs made, %5" PRIu64 " came back whole: %.1f %%\n", how,
           stats.slabs_made, stats.slabs_released, percent);
    for (unsigned batch = 0; batch < SESSION_BATCHES; batch++) end_sessions(me, batch);
    expect_no_epoch_left();
    expect(sy_cache_in_use(me->requests) == 0, "all was freed");
    return percent;
}

int main(void) {
    static server grouped, mixed;
    mixed.requests = mixed.sessions = make_cache("request", 0);
    grouped.requests = make_cache("request", SY_EPOCHS);
    grouped.sessions = make_cache("session", 0);
    grouped.grouped = 1;
    double without = serve_all(&mixed, "mixed"), with = serve_all(&grouped, "grouped");
    expect(without < 50 && with > 90, "in epochs nearly all of it comes back");
    expect(sy_cache_destroy(mixed.requests) == 0, "a cache of which nothing is out is destroyed");
    expect(sy_cache_destroy(grouped.requests) == 0 && sy_cache_destroy(grouped.sessions) == 0,
           "so are these");
    return 0;
}
