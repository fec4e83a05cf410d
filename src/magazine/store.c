/*
 * store.c: hands out empty magazines, creates them in segments of 4,096 (of 256 where address space
 * takes memory), and gives the memory of unused ones to the system.
 */
#include "magazine/store.h"

#include "magazine/client.h"

#include <errno.h>
#include <stdbool.h>

#include "base/bits.h"
#include "base/shape.h"
#include "os/invariant.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

enum {
    WORDS = SY_MAGAZINES_PER_SEGMENT / 64,
    ITEM_BYTES = SY_MAGAZINE_WORDS * sizeof(uintptr_t),
    STEP_WORDS = 8, /* trimmed in one step: half a MiB of items */
    FEW_WORDS = 4,  /* the first 256 magazines get memory page by page, the others in 64 KiB */
};

_Static_assert(sizeof(sy_magazine) == 64, "one cache line a header");

/* The beginning of a segment. A program with few magazines touches its first page only. */
typedef struct segment {
    uint64_t unused[WORDS]; /* a bit a magazine: in the store */
    uint64_t dirty[WORDS];  /* a bit a magazine: its items may hold memory, */
    uint64_t recent[WORDS]; /* a bit a magazine: it came back, or got memory, since the last trim */
    unsigned first_word;    /* no unused bit in a word before it */
    unsigned made;          /* from here on no magazine was ever given out: no header is written */
    sy_magazine headers[SY_MAGAZINES_PER_SEGMENT];
} segment; /* the fields before the headers are guarded by lock */

enum {
    ITEMS_AT = (sizeof(segment) + 65535) / 65536 * 65536, /* on a page, whatever its size */
    SEGMENT_BYTES = ITEMS_AT + SY_MAGAZINES_PER_SEGMENT * ITEM_BYTES,
};

_Static_assert(ITEMS_AT >= sizeof(segment), "the items lie behind the headers");

_Atomic(sy_magazine *) sy_magazine_segments[SY_MAGAZINE_SEGMENTS];

static sy_lock lock = SY_LOCK_INIT(SY_RANK_STORE);
static unsigned segment_count; /* guarded by lock */

static segment *segment_at(unsigned index) {
    sy_magazine *headers = atomic_load_explicit(&sy_magazine_segments[index], memory_order_relaxed);
    return (segment *)((char *)headers - offsetof(segment, headers));
}

static char *items_of_word(segment *in, unsigned word) {
    return (char *)in + ITEMS_AT + (size_t)word * 64 * ITEM_BYTES;
}

/* Headers are written when first given out, so that a segment costs no memory before. */
static sy_magazine *with_header(unsigned number, segment *in, unsigned index) {
    sy_magazine *magazine = &in->headers[index];
    if (!magazine->items) {
        magazine->number = number * SY_MAGAZINES_PER_SEGMENT + index;
        uintptr_t *words = (uintptr_t *)((char *)in + ITEMS_AT);
        magazine->items = words + (size_t)index * SY_MAGAZINE_WORDS + 1;
    }
    return magazine;
}

/* Whether the items of all magazines of `word` get their memory with one system call. The first
 * few words do not, so that a program with few magazines takes only the pages it needs. */
static bool is_backed(unsigned number, unsigned word) { return number || word >= FEW_WORDS; }

/* The lowest unused magazine, or NULL; the lock is held. *back: the caller is to call back_items
 * for it. */
static sy_magazine *take_lowest(bool *back) {
    SY_HOLDS(&lock);
    for (unsigned number = 0; number < segment_count; number++) {
        segment *in = segment_at(number);
        for (; in->first_word < WORDS; in->first_word++) {
            uint64_t *word = &in->unused[in->first_word];
            if (!*word) continue;
            unsigned bit = sy_lowest_bit(*word);
            *word &= *word - 1;
            uint64_t *dirty = &in->dirty[in->first_word];
            *back = !*dirty && is_backed(number, in->first_word);
            *dirty |= *back ? ~UINT64_C(0) : UINT64_C(1) << bit;
            if (*back) in->recent[in->first_word] = ~UINT64_C(0);
            unsigned made = in->first_word * 64 + bit + 1;
            if (in->made < made) in->made = made;
            return with_header(number, in, made - 1);
        }
    }
    return NULL;
}

/* Adds a segment unless another thread has done so since there were `seen`. 0, or -1 with ENOMEM.
 */
static int add_segment(unsigned seen) {
    if (seen == SY_MAGAZINE_SEGMENTS) {
        errno = ENOMEM;
        return -1;
    }
    segment *added = sy_pages_take(SEGMENT_BYTES, 65536, "slabyard magazines");
    if (!added) return -1;
    sy_lock_acquire(&lock);
    bool mine = segment_count == seen;
    if (mine) {
        for (unsigned word = 0; word < WORDS; word++) added->unused[word] = ~UINT64_C(0);
        if (seen == 0) added->unused[0] &= ~UINT64_C(1); /* number 0 names none */
        atomic_store_explicit(&sy_magazine_segments[seen], added->headers, memory_order_release);
        segment_count++;
    }
    sy_lock_release(&lock);
    if (!mine) sy_pages_give(added, SEGMENT_BYTES);
    return 0;
}

/* Backs the items of the magazine's whole word with one system call, in place of a page fault for
 * each page. If that fails, each page gets its memory when it is first written. */
static void back_items(const sy_magazine *first) {
    unsigned word = first->number % SY_MAGAZINES_PER_SEGMENT / 64;
    int error = errno;
    segment *in = segment_at(first->number / SY_MAGAZINES_PER_SEGMENT);
    sy_os_populate(items_of_word(in, word), (size_t)64 * ITEM_BYTES);
    errno = error;
}

sy_magazine *sy_store_take(void) {
    for (;;) {
        bool back = false;
        sy_lock_acquire(&lock);
        sy_magazine *magazine = take_lowest(&back);
        unsigned seen = segment_count;
        sy_lock_release(&lock);
        if (back) back_items(magazine);
        if (magazine) return magazine;
        if (add_segment(seen) != 0) return NULL;
    }
}

/* Whether the magazine was given out and has not come back. The lock is held. */
static bool magazine_is_out(const sy_magazine *magazine) {
    SY_HOLDS(&lock);
    const segment *in = segment_at(magazine->number / SY_MAGAZINES_PER_SEGMENT);
    unsigned index = magazine->number % SY_MAGAZINES_PER_SEGMENT;
    return index < in->made && !(in->unused[index / 64] >> index % 64 & 1);
}

void sy_store_put(sy_magazine *magazine) {
    unsigned index = magazine->number % SY_MAGAZINES_PER_SEGMENT;
    sy_lock_acquire(&lock);
    SY_INVARIANT(magazine_is_out(magazine));
    segment *in = segment_at(magazine->number / SY_MAGAZINES_PER_SEGMENT);
    in->unused[index / 64] |= UINT64_C(1) << index % 64;
    in->recent[index / 64] |= UINT64_C(1) << index % 64;
    if (index / 64 < in->first_word) in->first_word = index / 64;
    sy_lock_release(&lock);
}

/*
 * Discards the pages of one bitmap word that hold items of unused magazines only. `aged`: only
 * pages whose magazines have been unused since the last trim looked at the word. The magazines are
 * out of the store meanwhile, so that no lock is held during the system call. A word is 64 KiB of
 * items, a whole number of pages of every size that Linux has.
 */
static size_t trim_word(segment *in, unsigned word, bool aged) {
    size_t page = sy_os_page_size();
    unsigned per_page = page > ITEM_BYTES ? (unsigned)(page / ITEM_BYTES) : 1;
    uint64_t claimed = 0;

    sy_lock_acquire(&lock);
    for (unsigned first = 0; first < 64; first += per_page) {
        uint64_t group = sy_low_bits(per_page) << first;
        bool recent = aged && in->recent[word] & group;
        if ((in->unused[word] & group) == group && in->dirty[word] & group && !recent)
            claimed |= group;
    }
    in->recent[word] = 0;
    in->unused[word] &= ~claimed;
    sy_lock_release(&lock);
    if (!claimed) return 0;

    char *items = items_of_word(in, word);
    uint64_t discarded = 0;
    for (unsigned first = 0; first < 64;) {
        uint64_t rest = claimed >> first;
        if (!(rest & 1)) {
            first++;
            continue;
        }
        unsigned run = ~rest ? sy_lowest_bit(~rest) : 64;
        if (run > 64 - first) run = 64 - first;
        if (sy_os_discard(items + (size_t)first * ITEM_BYTES, (size_t)run * ITEM_BYTES) == 0)
            discarded |= sy_low_bits(run) << first;
        first += run;
    }

    sy_lock_acquire(&lock);
    in->unused[word] |= claimed;
    in->dirty[word] &= ~discarded;
    if (word < in->first_word) in->first_word = word;
    sy_lock_release(&lock);
    return sy_count_bits(discarded) * (size_t)ITEM_BYTES;
}

bool sy_store_trim_step(unsigned *at, bool aged, size_t *bytes) {
    if (!sy_os_has(SY_OS_DISCARDS)) return false;
    sy_lock_acquire(&lock);
    unsigned end = segment_count * WORDS;
    sy_lock_release(&lock);
    for (unsigned i = 0; i < STEP_WORDS && *at < end; i++, ++*at)
        *bytes += trim_word(segment_at(*at / WORDS), *at % WORDS, aged);
    return *at < end;
}

size_t sy_store_trim(void) {
    size_t bytes = 0;
    for (unsigned at = 0; sy_store_trim_step(&at, false, &bytes);) {}
    return bytes;
}

/* Magazines whose items lie on a page with some that may hold memory; the lock is held. */
static size_t count_backed(const segment *in) {
    SY_HOLDS(&lock);
    size_t page = sy_os_page_size(), count = 0;
    unsigned per_page = page > ITEM_BYTES ? (unsigned)(page / ITEM_BYTES) : 1;
    for (unsigned word = 0; word < WORDS; word++)
        for (unsigned first = 0; first < 64; first += per_page)
            if (in->dirty[word] & sy_low_bits(per_page) << first) count += per_page;
    return count;
}

size_t sy_store_bytes(void) {
    size_t bytes = 0;
    sy_lock_acquire(&lock);
    for (unsigned number = 0; number < segment_count; number++) {
        const segment *in = segment_at(number);
        bytes += sy_round_up(offsetof(segment, headers[in->made]), sy_os_page_size());
        bytes += count_backed(in) * ITEM_BYTES;
    }
    sy_lock_release(&lock);
    return bytes;
}

void sy_store_each_segment(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&lock);
    for (unsigned number = 0; number < segment_count; number++)
        visit(segment_at(number), SEGMENT_BYTES, arg);
    sy_lock_release(&lock);
}

size_t sy_store_verify(void) {
    size_t wrong = 0;
    sy_lock_acquire(&lock);
    for (unsigned number = 0; number < segment_count; number++) {
        const segment *in = segment_at(number);
        for (unsigned word = 0; word < in->first_word; word++) wrong += in->unused[word] != 0;
        for (unsigned i = 0; i < SY_MAGAZINES_PER_SEGMENT; i++) {
            const sy_magazine *magazine = &in->headers[i];
            wrong += magazine->items && magazine->number != number * SY_MAGAZINES_PER_SEGMENT + i;
        }
    }
    sy_lock_release(&lock);
    return wrong;
}

static void hold_store(void) { sy_lock_hold(&lock); }

/* A fork may happen after a magazine came back and before first_word was lowered. So in the child
 * the search begins at word 0 again. */
static void drop_store(void) {
    if (!sy_lock_drop(&lock)) return;
    for (unsigned number = 0; number < segment_count; number++) segment_at(number)->first_word = 0;
}

const sy_part sy_store_part = {.hold = hold_store, .drop = drop_store};

/* ---- for tools that read the process (base/shape.h) ---- */

#define STORE_VARIABLES(row) row(sy_magazine_segments, sy_magazine_segments)

static const sy_shape_row store_shape_rows[] = {
    SY_SHAPE_FIELD(sy_magazine, sy_magazine, next),
    SY_SHAPE_FIELD(sy_magazine, sy_magazine, count),
    SY_SHAPE_FIELD(sy_magazine, sy_magazine, items),
    SY_SHAPE_FIELD(sy_magazine, sy_magazine, chain),
    SY_SHAPE_TYPE(sy_magazine, sy_magazine),
    SY_SHAPE_CONSTANT(SY_MAGAZINE_ITEMS),
    SY_SHAPE_CONSTANT(SY_MAGAZINES_PER_SEGMENT),
    SY_SHAPE_CONSTANT(SY_MAGAZINE_SEGMENTS),
    SY_SHAPE_FIELD(sy_magazine_segment, segment, headers),
    {"sy_magazine_segment.bytes", SEGMENT_BYTES, 0},
    STORE_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const store_shape_addresses[] = {STORE_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_store_shape = SY_SHAPE_PART(store_shape_rows, store_shape_addresses);
