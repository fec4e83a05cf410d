/*
 * tsan: nothing
 *
 * helgrind: nothing
 *
 * drd: nothing
 */
#include <pthread.h>

#include "tools.h"

/* A correct threaded program: each object is written by one thread at a time, and goes from thread
 * to thread under a mutex, or through the library's free objects. */

enum { THREADS = 4, ROUNDS = 8, HELD = 300, SHARED = 64 };

static sy_cache *limited, *zeroed, *named, *phased;
static sy_vmem *arena;

typedef struct swap {
    pthread_mutex_t mutex;
    void *place[SHARED];
} swap;

static swap shared_orders = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static swap shared_blocks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Puts an object in the place of another thread's, which it returns. */
static void *exchange(swap *with, int at, void *object) {
    pthread_mutex_lock(&with->mutex);
    void *other = with->place[at];
    with->place[at] = object;
    pthread_mutex_unlock(&with->mutex);
    return other;
}

static void use_cache(sy_cache *cache, void **held) {
    for (int i = 0; i < HELD; i++) {
        held[i] = sy_cache_alloc(cache);
        if (held[i]) memset(held[i], i, ORDER_BYTES);
    }
    for (int i = 0; i < HELD; i++) sy_cache_free(cache, held[i]);
}

static void exchange_orders(void) {
    for (int i = 0; i < HELD; i++) {
        char *order = make_order(), *other;
        memset(order, i, ORDER_BYTES);
        if (!(other = exchange(&shared_orders, i % SHARED, order))) continue;
        other[0]++;
        sy_cache_free(orders, other);
    }
}

static void use_heap(int round, void **held) {
    static const size_t sizes[] = {16, 100, 3000, 20000, 150000};
    size_t size = sizes[round % 5], count = size < 20000 ? HELD : 8;
    for (size_t i = 0; i < count; i++) memset(held[i] = sy_malloc(size), 1, size);
    for (size_t i = 0; i < count; i++) {
        char *other = exchange(&shared_blocks, (int)i % SHARED, held[i]);
        if (other) other[0]++;
        sy_free(other);
    }
}

static void use_handles(void) {
    sy_handle handles[SHARED];
    for (int i = 0; i < SHARED; i++) memset(sy_handle_alloc(named, &handles[i]), i, ORDER_BYTES);
    for (int i = 0; i < SHARED; i++) {
        char *object = sy_handle_pin(named, handles[i]);
        must(object && *object == (char)i);
        sy_handle_unpin(named, handles[i]);
        must(sy_handle_free(named, handles[i]));
    }
}

static void use_epoch(void **held) {
    sy_epoch *request = sy_epoch_create("request");
    must(sy_epoch_begin(request) == 0);
    use_cache(phased, held);
    must(sy_epoch_end(request) == 0);
    sy_epoch_close(request);
}

static void use_arena(void) {
    uintptr_t values[SHARED];
    for (int i = 0; i < SHARED; i++)
        must(sy_vmem_alloc(arena, 1, SY_VMEM_INSTANT, &values[i]) == 0);
    for (int i = 0; i < SHARED; i++) must(sy_vmem_free(arena, values[i], 1) == 0);
}

static void *work(void *arg) {
    void *held[HELD];
    for (int round = 0; round < ROUNDS; round++) {
        use_cache(orders, held);
        use_cache(limited, held);
        use_cache(zeroed, held);
        exchange_orders();
        use_heap(round, held);
        use_handles();
        use_epoch(held);
        use_arena();
        if (round % 8 == 3) sy_thread_idle();
        if (round % 8 == 5) sy_trim();
    }
    return arg;
}

/* More threads come than live at a time, so that they get records of threads that have ended. */
static void run_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) must(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
}

static sy_cache *make(const char *name, unsigned flags, size_t limit) {
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = name, .size = ORDER_BYTES, .flags = flags, .limit = limit});
    must(cache != NULL);
    return cache;
}

int main(void) {
    open_orders();
    limited = make("limited", 0, 1000);
    zeroed = make("zeroed", SY_ZERO, 0);
    named = make("named", SY_HANDLES, 0);
    phased = make("phased", SY_EPOCHS, 0);
    arena = sy_vmem_create(&(sy_vmem_config){.base = 1, .size = 100000, .cached_max = 8});
    must(arena && sy_maintenance_start() == 0);
    run_threads();
    run_threads();
    for (int i = 0; i < SHARED; i++) {
        sy_cache_free(orders, shared_orders.place[i]);
        sy_free(shared_blocks.place[i]);
    }
    must(sy_vmem_destroy(arena) == 0 && sy_cache_destroy(phased) == 0);
    must(sy_cache_destroy(orders) == 0 && sy_cache_destroy(named) == 0);
    return sy_cache_destroy(limited) | sy_cache_destroy(zeroed);
}
