/*
 * directory.c: the tables of ordinals. A new slab of a cache with handles takes a range of ordinals
 * here. A released slab gives its range back. A trim returns the memory of unused ranges to the
 * system.
 */
#include "cache/directory.h"

#include <errno.h>
#include <slabyard/handle.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/race.h"
#include "os/start.h"
#include "vmem/arena.h"

enum {
    GROUP = 64, /* ordinals that have a place and a highest generation together */
    GROW_SHIFT = 16,
    GROW = 1 << GROW_SHIFT, /* ordinals that are committed at a time */
    LEAST_SHIFT = 20,
    MOST_SHIFT = !(SY_OS_SERVICES & SY_OS_FREE_ADDRESSES) ? LEAST_SHIFT
                 : UINTPTR_MAX > UINT32_MAX               ? 32
                                                          : 24, /* 33 GiB; with 32 bits 130 MiB */
    SHARE_SHIFT = 3,                              /* an eighth */
    SHIFT_BITS = 64,   /* values of the shift, which fit in the low bits of a page's address */
    MARKED = 512,      /* ordinals that share a mark: their words fill a page of 4 KiB */
    TRIM_LOOKS = 1024, /* pages of words that one step of a trim looks at, */
    TRIM_PAGES = 128,  /* and the most of them that one system call discards */
};

/*
 * The mark of a page of words says whether a slab has released ordinals whose words lie on it.
 *
 *     NOT_LEFT         no slab has, since the page was discarded
 *     LEFT             a slab has, and a trim by age has looked since
 *     LEFT_JUST_NOW    a slab has, since a trim by age last looked
 */
enum { NOT_LEFT, LEFT, LEFT_JUST_NOW };

static _Atomic uintptr_t directory; /* address of the tables + log2 of the ordinals they are for */
static _Atomic uint64_t limit;
static _Atomic uint64_t lost;
static sy_vmem arena;        /* of ordinals */
static _Atomic bool is_open; /* whether the arena is; written under the lock of the start */

/* ---- where the tables are ---- */

static unsigned shift_of(uintptr_t base) { return base % SHIFT_BITS; }

static size_t words_bytes(unsigned shift) { return sizeof(uint64_t) << shift; }

static size_t places_bytes(unsigned shift) { return (sizeof(uintptr_t) << shift) / GROUP; }

static size_t highest_bytes(unsigned shift) { return (sizeof(uint32_t) << shift) / GROUP; }

static size_t blocks_bytes(unsigned shift) {
    return (sizeof(sy_block_entry) << shift) / SY_BLOCK_ORDINALS;
}

static size_t marks_bytes(unsigned shift) { return ((size_t)1 << shift) / MARKED; }

static size_t all_bytes(unsigned shift) {
    size_t bytes = words_bytes(shift) + places_bytes(shift) + highest_bytes(shift) +
                   blocks_bytes(shift) + marks_bytes(shift);
    return sy_round_up(bytes, sy_os_page_size());
}

static uintptr_t tables(void) { return atomic_load_explicit(&directory, memory_order_acquire); }

uint64_t *sy_directory_words(void) {
    uintptr_t base = tables();
    return (uint64_t *)(base - shift_of(base));
}

uintptr_t *sy_directory_places(void) {
    unsigned shift = shift_of(tables());
    return (uintptr_t *)((char *)sy_directory_words() + words_bytes(shift));
}

static uint32_t *highest_generations(void) {
    unsigned shift = shift_of(tables());
    return (uint32_t *)((char *)sy_directory_places() + places_bytes(shift));
}

sy_block_entry *sy_directory_blocks(void) {
    unsigned shift = shift_of(tables());
    return (sy_block_entry *)((char *)highest_generations() + highest_bytes(shift));
}

static _Atomic uint8_t *marks(void) {
    unsigned shift = shift_of(tables());
    return (_Atomic uint8_t *)((char *)sy_directory_blocks() + blocks_bytes(shift));
}

size_t sy_directory_range(const void **start) {
    if (!tables()) return 0;
    *start = sy_directory_words();
    return all_bytes(shift_of(tables()));
}

uint64_t sy_ordinals_limit(void) { return atomic_load_explicit(&limit, memory_order_acquire); }

uint64_t sy_ordinals_lost(void) { return atomic_load_explicit(&lost, memory_order_relaxed); }

/* ---- marks ---- */

static size_t page_ordinals(void) { return sy_os_page_size() / sizeof(uint64_t); }

static _Atomic uint8_t *mark_of(uint64_t ordinal) {
    return marks() + ordinal / page_ordinals() * page_ordinals() / MARKED;
}

static void mark_left(uint32_t first, uint32_t count) {
    for (uint64_t at = first; at < (uint64_t)first + count; at += MARKED)
        atomic_store_explicit(mark_of(at), LEFT_JUST_NOW, memory_order_relaxed);
    uint64_t last = (uint64_t)first + count - 1;
    atomic_store_explicit(mark_of(last), LEFT_JUST_NOW, memory_order_relaxed);
}

/* ---- start and growth ---- */

static void *reserve_for(unsigned shift) {
    return sy_os_reserve(all_bytes(shift), sy_os_page_size(), "slabyard handles");
}

/* Reserves tables for all 2^MOST_SHIFT ordinals. If the address space has no room for them, they
 * take an eighth of the largest size that fits, and leave the rest for objects. NULL with
 * ENOMEM. */
static void *reserve_most(unsigned *shift) {
    void *base;
    for (*shift = MOST_SHIFT; !(base = reserve_for(*shift)); --*shift)
        if (*shift == LEAST_SHIFT) return NULL;
    if (*shift == MOST_SHIFT || *shift == LEAST_SHIFT) return base;
    sy_os_release(base, all_bytes(*shift));
    *shift = *shift > LEAST_SHIFT + SHARE_SHIFT ? *shift - SHARE_SHIFT : LEAST_SHIFT;
    return reserve_for(*shift);
}

/* 0, or -1 with ENOMEM. */
static int reserve_tables(void) {
    unsigned shift;
    void *base = reserve_most(&shift);
    if (!base) return -1;
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&directory, &none, (uintptr_t)base + shift))
        sy_os_release(base, all_bytes(shift));
    return 0;
}

int sy_directory_start(void) {
    if (atomic_load_explicit(&is_open, memory_order_acquire)) return 0;
    if (!tables() && reserve_tables() != 0) return -1;
    if (!sy_start_lock()) {
        errno = ENOMEM;
        return -1;
    }
    int result = 0;
    if (!atomic_load_explicit(&is_open, memory_order_relaxed))
        result = sy_vmem_open(&arena, &(sy_vmem_config){.name = "handles", .quantum = GROUP});
    if (result == 0) atomic_store_explicit(&is_open, true, memory_order_release);
    sy_start_unlock();
    return result;
}

/* Commits the part of a table that serves the next GROW ordinals, from `from` on. Rounding outward
 * is safe: bytes before `from` on the same page are committed already. */
static int commit_part(void *table, uint64_t from, size_t bytes_each, size_t ordinals_each) {
    uintptr_t start = (uintptr_t)table + (uintptr_t)from / ordinals_each * bytes_each;
    uintptr_t end = start + GROW / ordinals_each * bytes_each;
    start = sy_round_down(start, sy_os_page_size());
    end = sy_round_up(end, sy_os_page_size());
    if (sy_os_commit((void *)start, end - start) != 0) return -1;
    sy_race_own((void *)start, end - start);
    return 0;
}

/* Adds GROW ordinals to the arena. Another thread may have added them already. */
static bool add_pages(uint64_t from) {
    const uintptr_t first = (uintptr_t)from;
    return sy_vmem_add(&arena, first, GROW) == 0 || sy_vmem_contains(&arena, first, GROW);
}

/* Adds ordinals that lie below the limit but not in the arena, since there was no memory for their
 * tags when the tables grew. False: there is still none. */
static bool add_missing(uint64_t seen) {
    for (uintptr_t at = 0; at < seen; at += GROW)
        if (!sy_vmem_contains(&arena, at, GROW)) return add_pages(at);
    return true;
}

/* Backs the words of GROW new ordinals with memory at once: a program that has used up the previous
 * ones will use more, and then faults no page. If that fails, each page gets memory at its first
 * use. */
static void back_words(uint64_t from) {
    int error = errno;
    sy_os_populate(sy_directory_words() + from, GROW * sizeof(uint64_t));
    mark_left((uint32_t)from, GROW);
    errno = error;
}

/* Adds ordinals, unless another thread has added some since the limit was `seen`. */
static bool grow_directory(uint64_t seen) {
    if (seen && !sy_vmem_contains(&arena, 0, (uintptr_t)seen)) return add_missing(seen);
    if (seen + GROW > UINT64_C(1) << shift_of(tables()) ||
        commit_part(sy_directory_words(), seen, sizeof(uint64_t), 1) != 0 ||
        commit_part(sy_directory_places(), seen, sizeof(uintptr_t), GROUP) != 0 ||
        commit_part(highest_generations(), seen, sizeof(uint32_t), GROUP) != 0 ||
        commit_part(sy_directory_blocks(), seen, sizeof(sy_block_entry), SY_BLOCK_ORDINALS) != 0 ||
        commit_part((void *)marks(), seen, sizeof(uint8_t), MARKED) != 0) {
        errno = ENOMEM;
        return false;
    }
    if (!atomic_compare_exchange_strong(&limit, &seen, seen + GROW)) return true;
    if (seen) back_words(seen);
    /* If tags cannot be allocated now, add_missing tries again at the next growth. */
    return add_pages(seen);
}

static bool take(uint32_t count, const sy_vmem_constraints *constraints, uint32_t *first) {
    uintptr_t ordinal;
    for (;;) {
        uint64_t seen = sy_ordinals_limit();
        int result = constraints
                         ? sy_vmem_xalloc(&arena, count, constraints, SY_VMEM_INSTANT, &ordinal)
                         : sy_vmem_alloc(&arena, count, SY_VMEM_INSTANT, &ordinal);
        if (result == 0) break;
        if (!grow_directory(seen)) return false;
    }
    *first = (uint32_t)ordinal;
    return true;
}

bool sy_ordinals_take(uint32_t count, uint32_t *first) { return take(count, NULL, first); }

bool sy_ordinals_take_aligned(uint32_t count, uint32_t *first) {
    return take(count, &(sy_vmem_constraints){.align = count}, first);
}

void sy_ordinals_place(uint32_t first, uint32_t count, uintptr_t place, size_t slot) {
    uintptr_t *places = sy_directory_places() + first / GROUP;
    for (uint32_t done = 0; done < count; done += GROUP)
        __atomic_store_n(places++, place + done * slot, __ATOMIC_RELAXED);
}

int sy_ordinals_populate(uint32_t first, uint32_t count) {
    uint64_t *words = sy_directory_words() + first;
    uintptr_t start = sy_round_down((uintptr_t)words, sy_os_page_size());
    uintptr_t end = sy_round_up((uintptr_t)(words + count), sy_os_page_size());
    return sy_os_populate((void *)start, end - start);
}

/* ---- the end of a range ---- */

/* Zeroes the words; before, *highest rises to the highest generation of one: a child that is forked
 * in between has no word without it. */
static void clear_words(uint64_t *words, uint32_t count, uint32_t *highest) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        uint32_t generation = (uint32_t)(word >> SY_HANDLE_GENERATION);
        if (generation > *highest) *highest = generation;
    }
    sy_fork_order();
    for (uint32_t i = 0; i < count; i++)
        if (__atomic_load_n(&words[i], __ATOMIC_RELAXED))
            __atomic_store_n(&words[i], 0, __ATOMIC_RELEASE);
}

size_t sy_ordinals_clear(uint32_t first, uint32_t count, uint32_t *highest) {
    clear_words(sy_directory_words() + first, count, highest);
    uintptr_t start = (uintptr_t)(sy_directory_words() + first);
    size_t bytes = count * sizeof(uint64_t), page = sy_os_page_size();
    bool pages = start % page == 0 && bytes % page == 0;
    return pages && sy_os_discard((void *)start, bytes) == 0 ? bytes : 0;
}

/* `count`: a multiple of GROUP. Returns the highest generation of the ordinals. */
static uint32_t clear_groups(uint32_t first, uint32_t count, uint32_t least) {
    uint64_t *words = sy_directory_words() + first;
    uint32_t *highest = highest_generations() + first / GROUP, most = 0;
    for (uint32_t done = 0; done < count; done += GROUP, highest++) {
        if (*highest < least) *highest = least;
        clear_words(words + done, GROUP, highest);
        if (*highest > most) most = *highest;
    }
    return most;
}

void sy_ordinals_give(uint32_t first, uint32_t count, uint32_t least) {
    count = (uint32_t)sy_round_up(count, GROUP);
    uint32_t most = clear_groups(first, count, least);
    if (most < SY_HANDLE_GENERATIONS_MAX) {
        sy_vmem_free(&arena, first, count);
        mark_left(first, count);
    } else {
        atomic_fetch_add_explicit(&lost, count, memory_order_relaxed);
    }
}

/* ---- trim ---- */

/*
 * When a slab is released, the pages of its words keep their memory until a trim discards them, so
 * that a free makes no system call. A page's mark is set when ordinals of the page go back to the
 * arena, and cleared by the trim that tries to discard the page. While a page is being discarded
 * the trim takes its ordinals from the arena, so that no slab gets them. If it cannot take them, a
 * slab has some of them; its release sets the mark again.
 */

/* Takes the ordinals of these pages from the arena; false: some are in use. */
static bool claim_pages(uint64_t first, size_t count) {
    uintptr_t taken;
    const uintptr_t start = (uintptr_t)first;
    const sy_vmem_constraints there = {.min = start, .max = start + count};
    return sy_vmem_xalloc(&arena, count, &there, SY_VMEM_INSTANT, &taken) == 0;
}

/* Discards the words of these pages. False, and nothing is discarded: a slab uses some of them. */
static bool discard_unused(uint64_t first, size_t count, size_t *bytes) {
    size_t of_words = count * sizeof(uint64_t);
    if (!claim_pages(first, count)) return false;
    if (sy_os_discard(sy_directory_words() + first, of_words) == 0)
        *bytes += of_words;
    else
        mark_left((uint32_t)first, (uint32_t)count);
    sy_vmem_xfree(&arena, (uintptr_t)first, count);
    return true;
}

/* Whether a slab has left the page and the page is to be discarded now; then its mark is cleared.
 * A trim by age discards pages that were left before the last trim by age. */
static bool was_left(uint64_t first, bool aged) {
    _Atomic uint8_t *mark = mark_of(first);
    uint8_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    if (seen == NOT_LEFT) return false;
    bool now = seen == LEFT || !aged;
    atomic_store_explicit(mark, now ? NOT_LEFT : LEFT, memory_order_relaxed);
    return now;
}

/* Moves *at to the next page that is to be discarded; returns how many ordinals it and the pages to
 * be discarded directly behind it have; 0: there is no such page among those looked at. */
static size_t next_run(uint64_t *at, uint64_t end, bool aged) {
    size_t page = page_ordinals(), pages = 0;
    uint64_t most = *at + TRIM_LOOKS * page;
    if (end > most) end = most;
    while (*at < end && !was_left(*at, aged)) *at += page;
    if (*at < end) pages = 1;
    while (pages && pages < TRIM_PAGES && *at + pages * page < end &&
           was_left(*at + pages * page, aged))
        pages++;
    return pages * page;
}

bool sy_directory_trim_step(uint64_t *at, bool aged, size_t *bytes) {
    if (!atomic_load_explicit(&is_open, memory_order_acquire)) return false;
    uint64_t end = sy_ordinals_limit();
    int error = errno;
    size_t count = next_run(at, end, aged), page = page_ordinals();
    if (count && !discard_unused(*at, count, bytes))
        for (size_t done = 0; count > page && done < count; done += page)
            discard_unused(*at + done, page, bytes);
    *at += count;
    errno = error;
    return *at < end;
}

size_t sy_directory_trim(void) {
    size_t bytes = 0;
    for (uint64_t at = 0; sy_directory_trim_step(&at, false, &bytes);) {}
    return bytes;
}

void sy_ordinal_prepare(uint32_t ordinal, unsigned cache_number) {
    sy_ordinal_prepare_above(ordinal, cache_number, 0);
}

void sy_ordinal_prepare_above(uint32_t ordinal, unsigned cache_number, uint32_t least) {
    uint64_t *word = sy_directory_words() + ordinal;
    if (__atomic_load_n(word, __ATOMIC_RELAXED)) return;
    uint64_t generation = highest_generations()[ordinal / GROUP];
    if (generation < least) generation = least;
    __atomic_store_n(word,
                     generation << SY_HANDLE_GENERATION | (uint64_t)cache_number << SY_HANDLE_CACHE,
                     __ATOMIC_RELAXED);
}

/* ---- for tools that read the process (base/shape.h) ---- */

#define DIRECTORY_VARIABLES(row) row(sy_directory, directory) row(sy_directory_limit, limit)

static const sy_shape_row directory_shape_rows[] = {{"sy_directory_group", GROUP, 0},
                                                    {"sy_directory_shift_bits", SHIFT_BITS, 0},
                                                    {"sy_directory_block", SY_BLOCK_ORDINALS, 0},
                                                    DIRECTORY_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const directory_shape_addresses[] = {DIRECTORY_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_directory_shape =
    SY_SHAPE_PART(directory_shape_rows, directory_shape_addresses);
