/* Each part of the public interface, as the first in its process, in a thread whose stack has 16
 * KiB (PTHREAD_STACK_MIN), with nothing below. The thread has been cancelled, which no function
 * heeds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

#include <slabyard/slabyard.h>

#include "hosts/hosts.h"

enum {
    COUNT = 20000,
    BYTES = 200,
#ifdef HOSTS_OPTIMISED
    STACK = 16 << 10,
#else
    STACK = 64 << 10,
#endif
    NOTHING = 64 << 10, /* bytes below the stack */
};

static void *objects[COUNT];

static sy_cache *make(unsigned flags) {
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "host", .size = BYTES, .flags = flags});
    CHECK(cache != NULL);
    return cache;
}

static void fill(sy_cache *cache) {
    for (int i = 0; i < COUNT; i++) {
        CHECK((objects[i] = sy_cache_alloc(cache)) != NULL);
        memset(objects[i], 1, BYTES);
    }
}

static void empty(sy_cache *cache) {
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    CHECK(sy_cache_destroy(cache) == 0);
}

static void use_cache(void) {
    sy_cache *cache = make(0);
    fill(cache);
    empty(cache);
}

static void use_checked_cache(void) {
    sy_cache *cache = make(SY_CHECKED);
    fill(cache);
    empty(cache);
}

static void use_zeroed_cache(void) {
    sy_cache *cache = make(SY_ZERO);
    fill(cache);
    empty(cache);
}

static void use_guarded_cache(void) {
    sy_cache *cache = make(SY_GUARD);
    for (int i = 0; i < 100; i++) sy_cache_free(cache, sy_cache_alloc(cache));
    CHECK(sy_cache_destroy(cache) == 0);
}

static void use_audit(void) {
    sy_cache *cache = make(SY_AUDIT);
    fill(cache);
    sy_report_leaks(cache, 0);
    empty(cache);
}

static void use_reserve(void) {
    sy_cache *cache = make(0);
    CHECK(sy_cache_reserve(cache, COUNT) == 0);
    fill(cache);
    empty(cache);
}

static int visit(void *object, sy_handle handle, void *arg) {
    return (void)object, (void)handle, (void)arg, 0;
}

static void use_handles(void) {
    sy_cache *cache = make(SY_HANDLES);
    static sy_handle handles[COUNT];
    for (int i = 0; i < COUNT; i++) CHECK(sy_handle_alloc(cache, &handles[i]) != NULL);
    (void)sy_handle_each(cache, visit, NULL);
    for (int i = 0; i < COUNT; i++) CHECK(sy_handle_free(cache, handles[i]) == 0);
    CHECK(sy_cache_destroy(cache) == 0);
}

static void use_epochs(void) {
    sy_cache *cache = make(SY_EPOCHS);
    sy_epoch *epoch = sy_epoch_create("host");
    CHECK(epoch && sy_epoch_begin(epoch) == 0);
    fill(cache);
    sy_epoch_end(epoch);
    for (int i = 0; i < COUNT; i++) sy_cache_free(cache, objects[i]);
    sy_epoch_close(epoch);
    CHECK(sy_cache_destroy(cache) == 0);
}

static void use_trims(void) {
    sy_cache *cache = make(0);
    fill(cache);
    for (int i = 0; i < COUNT; i += 2) sy_cache_free(cache, objects[i]);
    sy_cache_trim(cache);
    sy_trim();
    for (int i = 1; i < COUNT; i += 2) sy_cache_free(cache, objects[i]);
    sy_trim();
    CHECK(sy_cache_destroy(cache) == 0);
}

static void use_statistics(void) {
    sy_cache *cache = make(0);
    int file = open("/dev/null", O_WRONLY);
    fill(cache);
    sy_print_stats(file);
    (void)sy_verify();
    close(file);
    empty(cache);
}

static void use_pool(void) {
    sy_pool *pool = sy_pool_create(&(sy_pool_config){.size = BYTES});
    CHECK(pool != NULL);
    for (int i = 0; i < COUNT; i++) CHECK((objects[i] = sy_pool_alloc(pool)) != NULL);
    for (int i = 0; i < COUNT; i++) sy_pool_free(pool, objects[i]);
    sy_pool_destroy(pool);
}

static void use_arena(void) {
    enum { SPANS = 200 };
    uintptr_t spans[SPANS];
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.name = "host"});
    CHECK(arena && sy_vmem_add(arena, 1 << 20, 1 << 28) == 0);
    for (int i = 0; i < SPANS; i++) CHECK(sy_vmem_alloc(arena, 4096, 0, &spans[i]) == 0);
    for (int i = 0; i < SPANS; i++) sy_vmem_free(arena, spans[i], 4096);
    CHECK(sy_vmem_destroy(arena) == 0);
}

static void use_heap(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "host"});
    CHECK(heap != NULL);
    for (size_t i = 0; i < COUNT; i++) CHECK(sy_heap_alloc(heap, 1 + i % 3000) != NULL);
    sy_heap_destroy_all(heap);
}

static void use_malloc(void) {
    for (size_t i = 0; i < COUNT; i++) CHECK((objects[i] = sy_malloc(1 + i % 5000)) != NULL);
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_realloc(objects[i], 1 + i % 9000);
    for (size_t i = 0; i < COUNT; i++) sy_free(objects[i]);
    sy_free(sy_malloc(50 << 20));
}

static void use_maintenance(void) {
    CHECK(sy_maintenance_start() == 0);
    use_cache();
    sy_maintenance_stop();
}

static void *work(void *arg) {
    CHECK(pthread_cancel(pthread_self()) == 0);
    (*(void (**)(void))arg)();
    for (;;) pthread_testcancel();
    return NULL;
}

static void run(void *arg) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    char *start = mmap(NULL, NOTHING + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED && mprotect(start + NOTHING, STACK, PROT_READ | PROT_WRITE) == 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, start + NOTHING, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, work, arg) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

/* Their numbers, from 0, are shown if one fails. */
static void (*const parts[])(void) = {
    use_cache,   use_checked_cache, use_zeroed_cache, use_guarded_cache, use_audit,
    use_reserve, use_handles,       use_epochs,       use_trims,         use_statistics,
    use_pool,    use_arena,         use_heap,         use_malloc,        use_maintenance};

int main(void) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        printf("part %zu\n", i);
        fflush(stdout);
        host_lives(run, (void *)&parts[i]);
    }
    return 0;
}
