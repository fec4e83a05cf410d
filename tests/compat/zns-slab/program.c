/*
 * program.c: an ordinary program for ZNS-Slab: a session store that threads share, by handle, with
 * the sessions' names by pointer. It includes what such a program includes.
 */
#include <slab_alloc.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, SESSIONS = 512, ROUNDS = 100000 };

struct session {
    uint64_t since;
    uint32_t number;
    char *name;
};

static SlabAllocator *allocator;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static SlabHandle handles[SESSIONS];
static struct session *sessions[SESSIONS];

static void end_session(uint32_t place) {
    struct session *session = sessions[place];
    if (!session) return;
    slab_free(allocator, session->name);
    assert(free_obj(allocator, handles[place]) && !free_obj(allocator, handles[place]));
    sessions[place] = NULL;
}

static void begin_session(uint32_t place) {
    struct session *session = alloc_obj(allocator, sizeof *session, &handles[place]);
    assert(session && handles[place]);
    session->since = now_ns();
    session->number = place;
    session->name = slab_malloc(allocator, 100);
    assert(session->name);
    memset(session->name, (int)place % 100, 100);
    sessions[place] = session;
}

static void *work(void *arg) {
    uint32_t random = *(uint32_t *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * UINT32_C(1664525) + UINT32_C(1013904223);
        uint32_t place = random >> 16 & (SESSIONS - 1);
        pthread_mutex_lock(&lock);
        assert(!sessions[place] || sessions[place]->number == place);
        end_session(place);
        begin_session(place);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];
    PerfCounters counters;
    allocator = slab_allocator_create();
    assert(allocator);
    for (uint32_t i = 0; i < THREADS; i++) {
        seeds[i] = i;
        pthread_create(&threads[i], NULL, work, &seeds[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < SESSIONS; i++) end_session(i);
    get_perf_counters(allocator, 0, &counters);
    printf("%llu slabs, %llu bytes resident\n", (unsigned long long)counters.new_slab_count,
           (unsigned long long)read_rss_bytes_linux());
    slab_allocator_free(allocator);
    return counters.new_slab_count == 0;
}
