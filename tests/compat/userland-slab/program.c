/*
 * program.c: an ordinary program for userland_slab: a dictionary with nodes from a cache, and
 * threads that each have one. userland_slab left locking to its programs, so this one locks. It
 * includes what such a program includes.
 */
#include <slab.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, WORDS = 20000, BUCKETS = 1024 };

struct word {
    uint32_t number, count, state; /* 12 bytes, then the links */
    struct word *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Objs_cache words;

static void construct(void *object) { memset(object, 0, sizeof(struct word)); }

static void add(struct word **table, uint32_t number) {
    struct word **bucket = &table[number % BUCKETS], *found = *bucket;
    while (found && found->number != number) found = found->next;
    if (!found) {
        pthread_mutex_lock(&lock);
        found = objs_cache_alloc(&words);
        pthread_mutex_unlock(&lock);
        assert(found && found->count == 0);
        found->number = number;
        found->next = *bucket;
        *bucket = found;
    }
    found->count++;
}

static void *count(void *unused) {
    struct word *table[BUCKETS] = {NULL};
    uint64_t total = 0;
    (void)unused;
    for (uint32_t i = 0; i < WORDS; i++) add(table, i * UINT32_C(2654435761) >> 20);
    for (unsigned i = 0; i < BUCKETS; i++)
        while (table[i]) {
            struct word *word = table[i];
            table[i] = word->next;
            total += word->count;
            pthread_mutex_lock(&lock);
            objs_cache_free(&words, word);
            pthread_mutex_unlock(&lock);
        }
    assert(total == WORDS);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    if (!slab_allocator_init() || !objs_cache_init(&words, sizeof(struct word), construct)) exit(1);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    display_cache_info(&words);
    int wrong = words.used_objs_count != 0;
    objs_cache_destroy(&words);
    slab_allocator_destroy();
    return wrong;
}
