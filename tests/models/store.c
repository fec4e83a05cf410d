/*
 * store.c: models of the store: a magazine is given out once, whichever thread adds the memory for
 * it, and a trim leaves magazines in use alone.
 */
#include "locks.h"

#include "magazine/store.c"

enum { SEGMENTS = 2 };

static alignas(65536) char segment_memory[SEGMENTS][SEGMENT_BYTES];
static _Atomic unsigned segments_taken;

/* Each call returns other memory, as in the system. */
void *sy_pages_take(size_t bytes, size_t align, const char *name) {
    (void)bytes, (void)align, (void)name;
    unsigned index = atomic_fetch_add_explicit(&segments_taken, 1, memory_order_relaxed);
    return index < SEGMENTS ? segment_memory[index] : NULL;
}

void sy_pages_give(void *start, size_t bytes) { (void)start, (void)bytes; }

static sy_magazine *held[3]; /* by the threads */

/* The discarded memory reads as zero, of which the first words are looked at. */
int sy_os_discard(void *start, size_t bytes) {
    uintptr_t *words = start;
    for (size_t i = 0; i < 2 && i * ITEM_BYTES < bytes; i++) words[i * SY_MAGAZINE_WORDS + 1] = 0;
    return 0;
}

/* The thread that has a magazine may write its items, and find it by its number. */
static sy_magazine *take_and_write(uintptr_t item) {
    sy_magazine *magazine = sy_store_take();
    assert(magazine && magazine->number && sy_magazine_of(magazine->number) == magazine);
    magazine->items[0] = item;
    return magazine;
}

static void take(void *arg) {
    sy_magazine **at = arg;
    *at = take_and_write((uintptr_t)at);
    assert((*at)->items[0] == (uintptr_t)at);
}

MODEL(two_threads_take_the_first_magazines) {
    model_thread other;
    model_start(&other, 1, take, &held[0]);
    take(&held[1]);
    model_join(&other);
    assert(held[0] != held[1] && held[0]->number != held[1]->number);
    assert(segment_count == 1);
}

static void take_and_put(void *arg) {
    take(arg);
    sy_store_put(*(sy_magazine **)arg);
}

MODEL(what_is_put_back_is_given_out_again) {
    model_thread first, second;
    sy_magazine *before = take_and_write(0);
    model_start(&first, 1, take_and_put, &held[0]);
    model_start(&second, 2, take_and_put, &held[1]);
    take(&held[2]);
    assert(held[2] != before);
    model_join(&first);
    model_join(&second);
    assert(held[2]->items[0] == (uintptr_t)&held[2]);
    uint64_t used = UINT64_C(1) | UINT64_C(1) << before->number | UINT64_C(1) << held[2]->number;
    assert(segment_at(0)->unused[0] == ~used);
}

static void trim_first_word(void *arg) {
    (void)arg;
    trim_word(segment_at(0), 0, false);
}

/* A trim looks while a magazine is taken. No other magazine on its page is in use. */
MODEL(a_trim_discards_what_nobody_has) {
    model_thread other;
    sy_magazine *magazine = take_and_write(1);
    assert(magazine->number == 1);
    sy_store_put(magazine);
    model_start(&other, 1, trim_first_word, NULL);
    take(&held[0]);
    model_join(&other);
    assert(held[0]->items[0] == (uintptr_t)&held[0]);
}
