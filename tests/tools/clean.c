/*
 * asan: nothing
 *
 * memcheck: nothing
 *
 * asan-malloc: nothing
 *
 * memcheck-malloc: nothing
 */
#include <errno.h>
#include <pthread.h>

#include "tools.h"

enum { OBJECTS = 300 };

/* ---- constructed objects keep their contents until the destructor runs ---- */

typedef struct account {
    char *name;
    int balance;
} account;

static int open_account(void *object, void *arg) {
    account *fresh = object;
    (void)arg;
    fresh->name = strdup("nobody");
    fresh->balance = 7;
    return 0;
}

static void close_account(void *object, void *arg) {
    (void)arg;
    free(((account *)object)->name);
}

static void use_accounts(unsigned flags) {
    account *all[OBJECTS];
    sy_cache *accounts = sy_cache_create(&(sy_cache_config){.name = "account",
                                                            .size = sizeof(account),
                                                            .construct = open_account,
                                                            .destruct = close_account,
                                                            .flags = flags});
    for (int round = 0; round < 3; round++) {
        must(sy_cache_alloc_batch(accounts, (void **)all, OBJECTS) == OBJECTS);
        for (int i = 0; i < OBJECTS; i++) must(all[i]->balance == 7 && all[i]->name[0] == 'n');
        sy_cache_free_batch(accounts, (void *const *)all, OBJECTS);
        sy_cache_trim(accounts);
    }
    must(sy_cache_alloc(accounts) != NULL && sy_cache_destroy(accounts) == -1 && errno == EBUSY);
    must(sy_cache_in_use(accounts) == 1);
    sy_cache_destroy_all(accounts);
}

/* ---- sizes ---- */

static void use_heap(void) {
    for (size_t size = 0; size < 400000; size = size * 2 + 1) {
        char *text = sy_malloc(size);
        memset(text, 1, size);
        text = sy_realloc(text, size + 100);
        memset(text + size, 1, 100);
        sy_free_sized(text, size + 100);
        char *zeroes = sy_calloc(1, size + 1);
        for (size_t i = 0; i <= size; i++) must(zeroes[i] == 0);
        sy_free(zeroes);
        char *aligned = sy_aligned_alloc(4096, size);
        must((uintptr_t)aligned % 4096 == 0);
        memset(aligned, 1, size);
        sy_free(aligned);
    }
    must(sy_trim() < SIZE_MAX);
}

static void use_heap_of_its_own(void) {
    sy_heap *heap = sy_heap_create(&(sy_heap_config){.name = "tenant"});
    char *text = sy_heap_alloc(heap, 100);
    strcpy(text, "hello");
    text = sy_heap_realloc(heap, text, 200000);
    must(strcmp(text, "hello") == 0 && sy_heap_usable_size(heap, text) >= 200000);
    must(sy_heap_try_free(heap, text) && !sy_heap_try_free(heap, &heap));
    must(sy_heap_alloc(heap, 17) != NULL && sy_heap_destroy(heap) == -1);
    sy_heap_destroy_all(heap);
}

/* ---- handles ---- */

static void use_handles(void) {
    sy_handle handles[OBJECTS];
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "named", .size = 40, .flags = SY_HANDLES});
    for (int i = 0; i < OBJECTS; i++) memset(sy_handle_alloc(cache, &handles[i]), i, 40);
    for (int i = 0; i < OBJECTS; i++)
        must(*(unsigned char *)sy_handle_get(cache, handles[i]) == (unsigned char)i);
    for (int i = 0; i < OBJECTS; i++) must(sy_handle_free(cache, handles[i]));
    must(sy_handle_get(cache, handles[0]) == NULL);
    sy_cache_destroy(cache);
}

/* ---- orders: memory that only an order points to is not a leak; threads free each other's ---- */

static void *drop_all(void *all) {
    for (int i = 0; i < OBJECTS; i++) sy_cache_free(orders, ((char **)all)[i]);
    return NULL;
}

static void use_orders(void) {
    static char *all[OBJECTS];
    pthread_t thread;
    for (int i = 0; i < OBJECTS; i++)
        must((all[i] = sy_cache_zalloc(orders)) != NULL && !all[i][59]);
    must(pthread_create(&thread, NULL, drop_all, all) == 0 && pthread_join(thread, NULL) == 0);
    must(sy_cache_try_free(orders, make_order()) && !sy_cache_try_free(orders, all));
    must(sy_cache_in_use(orders) == 1);
}

static char *volatile kept; /* an order that is never freed */

static void keep_order(void) {
    kept = make_order();
    char *note = strdup("of the order");
    memset(kept, 0, ORDER_BYTES);
    memcpy(kept, &note, sizeof note);
}

int main(void) {
    open_orders();
    keep_order();
    use_accounts(0);
    use_accounts(SY_REDZONE | SY_POISON | SY_EDGES | SY_AUDIT | SY_RANDOM);
    use_accounts(SY_ZERO | SY_COLOUR);
    use_heap();
    use_heap_of_its_own();
    use_handles();
    use_orders();
    return 0;
}
