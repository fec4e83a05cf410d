/*
 * handle.c: models of handles: an object is freed once, its slot is not given out while it is
 * pinned, a thread that finds it alive finds it constructed, and a stale handle stays stale, even
 * if its ordinal belongs to another slab by now.
 *
 * The magazines are a list under a lock here, and the slab is one slot, with ordinal 0.
 */
#include "locks.h"

#include "cache/handle.c"
#include "cache/plain.c"

/* Both source files have static functions with these names. */
#define claim directory_claim
#include "cache/directory.c"

#include "one_ordinal.h"

enum { CACHE_NUMBER = 1, SHIFT = 9, NONE = 0 };

/* The model has caches of plain slots and caches with handles. Slabs are neither made nor freed. */
const sy_slab_kind sy_slabs_plain;

static alignas(64) uint64_t directory_memory[(1 << SHIFT) + 32];
static uint64_t object;
static sy_cache cache;

/* ---- what models are made of ---- */

static void begin_thread(void) { sy_abi_1 = &shut; }

/* The slab exists, and its slot is in a magazine. */
static void begin(void) {
    begin_thread();
    atomic_store_explicit(&directory, (uintptr_t)directory_memory + SHIFT, memory_order_release);
    sy_ordinals_place(0, 1, (uintptr_t)&object, sizeof object);
    sy_ordinal_prepare(0, CACHE_NUMBER);
    cache.flags = SY_HANDLES;
    cache.client.config.kind = &list;
    atomic_store_explicit(&cache.client.kind, &list, memory_order_relaxed);
    cache.kind = &sy_kind_named;
    cache.basic = &sy_kind_plain;
    cache.names.words = sy_directory_words();
    cache.names.places = sy_directory_places();
    cache.names.limit = 1;
    cache.names.live = CACHE_NUMBER << SY_HANDLE_CACHE | SY_HANDLE_LIVE;
    cache.names.plain = cache.names.live;
    cache.names.slot = sizeof object;
    waits = true;
}

/* A new object with this content, or NONE. */
static sy_handle allocate(uint64_t content) {
    sy_handle handle;
    uint64_t *made = sy_handle_alloc(&cache, &handle);
    if (!made) return NONE;
    assert(made == &object);
    *made = content;
    return handle;
}

static sy_handle first; /* told to the threads before they are started */

/* ---- free ---- */

static void free_first(void *arg) {
    begin_thread();
    *(bool *)arg = sy_handle_free(&cache, first);
}

static void two_free(void (*free_other)(void *arg)) {
    static bool there;
    model_thread other;
    begin();
    first = allocate(1);
    model_start(&other, 1, free_other, &there);
    bool here = sy_handle_free(&cache, first);
    sy_handle next = allocate(2);
    model_join(&other);
    assert(here != there && "freed once");
    assert(next != first);
    assert(!sy_handle_free(&cache, first) && !sy_handle_get(&cache, first));
    assert(next == NONE || sy_handle_free(&cache, next));
}

MODEL(an_object_is_freed_once) { two_free(free_first); }

/* By the function that the inline one calls if the word is not what it expects. */
static void free_first_slowly(void *arg) {
    begin_thread();
    *(bool *)arg = SY_ABI_NAME(sy_handle_free_slow)(&cache, first);
}

MODEL(an_object_is_freed_once_by_the_slow_path) { two_free(free_first_slowly); }

static void pin_and_unpin(void *arg) {
    (void)arg;
    begin_thread();
    if (sy_handle_pin(&cache, first)) sy_handle_unpin(&cache, first);
    allocate(2);
}

/* The owner writes until it frees; another one has the object pinned, and may be the next owner. */
static void write_until(bool (*free_it)(sy_cache *cache, sy_handle handle)) {
    model_thread other;
    begin();
    first = allocate(1);
    model_start(&other, 1, pin_and_unpin, NULL);
    object = 5;
    assert(free_it(&cache, first));
    model_join(&other);
}

static bool free_inline(sy_cache *of, sy_handle handle) { return sy_handle_free(of, handle); }

MODEL(what_was_written_before_a_free_is_done) { write_until(free_inline); }

MODEL(what_was_written_before_a_slow_free_is_done) {
    write_until(SY_ABI_NAME(sy_handle_free_slow));
}

/* ---- pins ---- */

static void pin_and_read(void *arg) {
    (void)arg;
    begin_thread();
    const uint64_t *pinned = sy_handle_pin(&cache, first);
    if (!pinned) return;
    assert(*pinned == 1);
    sy_handle_unpin(&cache, first);
}

/* Others read the object while it is freed and its slot has its next owner. */
static void pins_beside_free(int pinners) {
    model_thread others[2];
    begin();
    first = allocate(1);
    for (int i = 0; i < pinners; i++) model_start(&others[i], 1 + (uint32_t)i, pin_and_read, NULL);
    assert(sy_handle_free(&cache, first));
    sy_handle next = allocate(2);
    for (int i = 0; i < pinners; i++) model_join(&others[i]);
    assert(next != first && !sy_handle_pin(&cache, first));
    if (next == NONE) next = allocate(3);
    assert(next != NONE && "the last pin gave it back");
    assert(sy_handle_free(&cache, next));
}

MODEL(a_pinned_object_stays) { pins_beside_free(1); }

MODEL(the_last_of_two_pins_gives_it_back) { pins_beside_free(2); }

/* ---- what is seen of a new object ---- */

static _Atomic sy_handle told; /* as a number that orders nothing */

static void construct_and_put(void *arg) {
    (void)arg;
    begin_thread();
    object = 7;
    sy_client_free_second(&cache.client, 0);
}

static void tell_new(void *arg) {
    (void)arg;
    begin_thread();
    sy_handle handle;
    if (sy_handle_alloc(&cache, &handle))
        atomic_store_explicit(&told, handle, memory_order_relaxed);
}

/* An object is constructed by one thread, allocated by another, and looked for by a third. */
static void construct_and_look(void (*look)(void)) {
    model_thread constructs, allocates;
    begin();
    waits = false;
    model_start(&constructs, 1, construct_and_put, NULL);
    model_start(&allocates, 2, tell_new, NULL);
    look();
    model_join(&constructs);
    model_join(&allocates);
}

static sy_handle what_is_told(void) { return atomic_load_explicit(&told, memory_order_relaxed); }

static void get_told(void) {
    const uint64_t *got = sy_handle_get(&cache, what_is_told());
    assert(!got || *got == 7);
}

static void pin_told(void) {
    const uint64_t *got = sy_handle_pin(&cache, what_is_told());
    assert(!got || *got == 7);
}

static void name_live(void) { assert(!live_handle(&cache, 0) || object == 7); }

MODEL(whoever_gets_an_object_finds_it_constructed) { construct_and_look(get_told); }

MODEL(whoever_pins_an_object_finds_it_constructed) { construct_and_look(pin_told); }

MODEL(whoever_names_an_object_finds_it_constructed) { construct_and_look(name_live); }

static void look_at_guessed(void *arg) {
    (void)arg;
    begin_thread();
    sy_handle guessed = UINT64_C(1) << SY_HANDLE_GENERATION;
    const uint64_t *got = sy_handle_get(&cache, guessed);
    assert(!got || *got == 7);
}

/* An object that is being prepared is not seen before it is published, by whatever handle. */
MODEL(what_is_prepared_is_not_seen) {
    model_thread other;
    sy_handle handle;
    begin();
    model_start(&other, 1, look_at_guessed, NULL);
    uint64_t *made = sy_handle_prepare(&cache, &handle);
    *made = 7;
    assert(!sy_handle_get(&cache, handle) && !sy_handle_free(&cache, handle));
    sy_handle_publish(&cache, handle);
    assert(sy_handle_get(&cache, handle) == made);
    model_join(&other);
}

/* ---- slabs that go ---- */

static void try_stale(void *arg) {
    (void)arg;
    begin_thread();
    assert(!sy_handle_pin(&cache, first) && "a stale handle is not pinned");
    assert(!sy_handle_get(&cache, first) && "a stale handle names nothing");
    assert(!sy_handle_free(&cache, first) && "a stale handle frees nothing");
}

/* The slab is freed while a stale handle is tried. Then another slab has its ordinal. */
MODEL(a_stale_handle_stays_so_in_the_next_slab) {
    model_thread other;
    begin();
    first = allocate(1);
    assert(sy_handle_free(&cache, first));
    model_start(&other, 1, try_stale, NULL);
    sy_ordinals_give(0, 1, 0);
    sy_ordinal_prepare(0, CACHE_NUMBER);
    sy_handle next = allocate(2);
    assert(next != NONE && next != first);
    model_join(&other);
    assert(sy_handle_get(&cache, next) == &object && sy_handle_free(&cache, next));
}

/* The next object in the slot is one that is being prepared. */
MODEL(a_stale_handle_is_not_that_of_what_is_prepared_next) {
    model_thread other;
    sy_handle next;
    begin();
    first = allocate(1);
    assert(sy_handle_free(&cache, first));
    model_start(&other, 1, try_stale, NULL);
    assert(sy_handle_prepare(&cache, &next) && next != first);
    sy_handle_publish(&cache, next);
    model_join(&other);
    assert(sy_handle_free(&cache, next));
}
