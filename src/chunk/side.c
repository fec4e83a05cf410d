/*
 * side.c: memory for the library's own records: caches, long bitmaps, descriptors. Blocks are
 * reused by size and never given back to the system.
 */
#include "chunk/side.h"

#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "chunk/pressure.h"
#include "os/lock.h"
#include "os/pages.h"

enum {
    LEAST_SHIFT = 5, /* 32 bytes */
    CLASSES = 15,    /* up to 512 KiB */
    AREA_BYTES_MAX = SY_OS_SERVICES & SY_OS_FREE_ADDRESSES ? 4 << 20 : 1 << 20,
    AREA_BYTES_MIN = 64 << 10, /* where memory is short */
    AREA_OFFSET = 5 * 64, /* keeps caches out of the CPU cache's sets where large objects begin */
};

_Static_assert(SY_SIDE_MAX == 1 << (LEAST_SHIFT + CLASSES - 1), "the last class is the largest");

struct block {
    struct block *next;
};

/* It lies in the first AREA_OFFSET bytes of an area. */
struct area {
    struct area *previous;
    size_t bytes;
};

_Static_assert(AREA_BYTES_MAX >= 2 * SY_SIDE_MAX, "any block finds room in a new area");
_Static_assert(sizeof(struct area) <= AREA_OFFSET, "no block lies there");

static sy_lock lock = SY_LOCK_INIT(SY_RANK_SIDE);
/* All guarded by lock. Each change takes effect by one store, for the child of a fork
 * (base/fork.h). */
static struct block *unused[CLASSES];
static uintptr_t area, area_end; /* never given out; reads as zero */
static size_t bytes_taken;
static struct area *last_area; /* the list of all areas */

static unsigned class_of(size_t bytes) {
    if (bytes <= (size_t)1 << LEAST_SHIFT) return 0;
    return sy_highest_bit(bytes - 1) + 1 - LEAST_SHIFT;
}

/* Takes an unused block, or one from the area. NULL: the area has no room. The caller holds the
 * lock. */
static void *take_block(unsigned class_index) {
    SY_HOLDS(&lock);
    struct block *block = unused[class_index];
    size_t size = (size_t)1 << (class_index + LEAST_SHIFT);
    if (block) {
        unused[class_index] = block->next;
        return block;
    }
    uintptr_t start = sy_round_up(area, size < 64 ? size : 64);
    if (!area || start + size > area_end) return NULL;
    bytes_taken += start + size - area;
    sy_pressure_note(start + size - area);
    area = start + size;
    return (void *)start;
}

/* Makes a new area, with room for a block of this class, unless another thread has made one since
 * this thread saw that the old one ended at `seen`. The unused end of the old area is lost. 0, or
 * -1 with ENOMEM. */
static int add_area(uintptr_t seen, unsigned class_index) {
    size_t bytes = AREA_BYTES_MAX, least = (size_t)2 << (class_index + LEAST_SHIFT);
    void *memory;
    while (!(memory = sy_pages_take(bytes, 65536, "slabyard side")))
        if ((bytes /= 2) < least || bytes < AREA_BYTES_MIN) return -1;
    sy_lock_acquire(&lock);
    bool mine = area_end == seen;
    if (mine) {
        struct area *added = memory;
        added->previous = last_area;
        added->bytes = bytes;
        last_area = added;
        area = 0; /* none, until its end is known */
        sy_fork_order();
        area_end = (uintptr_t)memory + bytes;
        sy_fork_order();
        area = (uintptr_t)memory + AREA_OFFSET;
    }
    sy_lock_release(&lock);
    if (!mine) sy_pages_give(memory, bytes);
    return 0;
}

void *sy_side_take(size_t bytes) {
    unsigned class_index = class_of(bytes);
    for (;;) {
        sy_lock_acquire(&lock);
        void *block = take_block(class_index);
        uintptr_t seen = area_end;
        sy_lock_release(&lock);
        if (block) return memset(block, 0, (size_t)1 << (class_index + LEAST_SHIFT));
        if (add_area(seen, class_index) != 0) return NULL;
    }
}

void sy_side_give(void *memory, size_t bytes) {
    struct block *block = memory;
    unsigned class_index = class_of(bytes);
    sy_lock_acquire(&lock);
    block->next = unused[class_index];
    sy_fork_order();
    unused[class_index] = block;
    sy_lock_release(&lock);
}

size_t sy_side_bytes(void) {
    sy_lock_acquire(&lock);
    size_t bytes = bytes_taken;
    sy_lock_release(&lock);
    return bytes;
}

void sy_side_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&lock);
    for (const struct area *each = last_area; each; each = each->previous)
        visit(each, each->bytes, arg);
    sy_lock_release(&lock);
}

void sy_side_lock_for_fork(void) { sy_lock_hold(&lock); }

void sy_side_unlock_after_fork(void) { sy_lock_drop(&lock); }

/* ---- for tools that read the process (base/shape.h) ---- */

#define SIDE_VARIABLES(row) row(sy_side_areas, last_area)

static const sy_shape_row side_shape_rows[] = {SY_SHAPE_FIELD(sy_side_area, struct area, previous),
                                               SY_SHAPE_FIELD(sy_side_area, struct area, bytes),
                                               SIDE_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const side_shape_addresses[] = {SIDE_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_side_shape = SY_SHAPE_PART(side_shape_rows, side_shape_addresses);
