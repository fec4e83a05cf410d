/*
 * program.c: an ordinary program for magazine-slab. Threads take requests from a cache with a
 * constructor and put them into a queue, and other threads serve them. It includes what such a
 * program includes: magazine-slab's headers bring those of threads and atomics.
 */
#include <slab.h>
#include <vmem.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PRODUCERS = 2, CONSUMERS = 2, REQUESTS = 20000 };

struct request {
    pthread_mutex_t lock;
    uintptr_t id;
    char body[SLAB_CACHE_LINE];
    struct request *next;
};

static atomic_int built, torn, served;
static _Atomic(struct request *) queue;
static struct slab_cache *requests;
static vmem_t *ids;
static _Alignas(SLAB_CACHE_LINE) char page[SLAB_PAGE_SIZE]; /* the answer for id 1 */

static void build(void *object) {
    struct request *request = object;
    pthread_mutex_init(&request->lock, NULL);
    atomic_fetch_add(&built, 1);
}

static void tear(void *object) {
    struct request *request = object;
    pthread_mutex_destroy(&request->lock);
    atomic_fetch_add(&torn, 1);
}

static void *produce(void *unused) {
    (void)unused;
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = slab_alloc(requests);
        assert(request);
        pthread_mutex_lock(&request->lock);
        int failed = vmem_alloc(ids, 1, &request->id);
        assert(!failed && request->id >= 1);
        memset(request->body, i, sizeof request->body);
        pthread_mutex_unlock(&request->lock);
        request->next = atomic_load(&queue);
        while (!atomic_compare_exchange_weak(&queue, &request->next, request)) {}
    }
    return NULL;
}

static void serve(struct request *request) {
    void *answer = slab_kmalloc(100);
    assert(answer && pthread_mutex_trylock(&request->lock) == 0);
    memcpy(answer, request->body, sizeof request->body);
    if (request->id == 1) memcpy(page, answer, sizeof request->body);
    vmem_free(ids, request->id, 1);
    pthread_mutex_unlock(&request->lock);
    slab_free(requests, request);
    slab_kfree(answer, 128); /* the size of its class */
    atomic_fetch_add(&served, 1);
}

static void *consume(void *unused) {
    (void)unused;
    while (atomic_load(&served) < PRODUCERS * REQUESTS) {
        struct request *next = atomic_exchange(&queue, NULL);
        for (struct request *request = next; request; request = next) {
            next = request->next;
            serve(request);
        }
        sched_yield();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[PRODUCERS + CONSUMERS];
    slab_system_init();
    requests =
        slab_cache_create("requests", sizeof(struct request), SLAB_ALIGN_DEFAULT, 0, build, tear);
    ids = vmem_create("ids", 1, PRODUCERS * REQUESTS, 1);
    assert(requests && ids);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
        pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, NULL);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) pthread_join(threads[i], NULL);
    slab_cache_stats(requests);
    vmem_stats(ids);
    if (ids->n_allocs != 0 || ids->alloc_size != 0 || ids->total_size != PRODUCERS * REQUESTS)
        return 1;
    vmem_destroy(ids);
    slab_cache_destroy(requests);
    slab_system_fini();
    printf("%d requests served, %d built, byte %d\n", served, built, page[0]);
    return built != torn || served != PRODUCERS * REQUESTS;
}
