#include "chunk/address.h"

#include <stdbool.h>

#include "base/bits.h"
#include "chunk/map.h"
#include "os/lock.h"
#include "os/os.h"

static const size_t EXTENT_BYTES_MIN = (size_t)64 << 20, EXTENT_BYTES_MAX = (size_t)1 << 30;

enum { EXTENTS_MAX = 4096 }; /* of 1 GiB most of them: 4 TiB */

static struct extent {
    uintptr_t start; /* 0: none */
    size_t bytes;
    bool imported;            /* the arena has it; else it waits for the next import */
    bool chunks;              /* has had one */
} extents[EXTENTS_MAX];       /* guarded by lock, as are all below */
static unsigned extent_count; /* none from here on */
static size_t bytes_reserved;
static sy_lock lock = SY_LOCK_INIT(SY_RANK_ADDRESS);

/* The smallest extent that waits and is large enough, or NULL; the lock is held. */
static struct extent *find_waiting(size_t bytes) {
    struct extent *best = NULL;
    for (unsigned i = 0; i < extent_count; i++) {
        struct extent *extent = &extents[i];
        if (!extent->start || extent->imported || extent->bytes < bytes) continue;
        if (!best || extent->bytes < best->bytes) best = extent;
    }
    return best;
}

/* False: there are too many. */
static bool note_extent(uintptr_t start, size_t bytes) {
    unsigned i = 0;
    sy_lock_acquire(&lock);
    while (i < extent_count && extents[i].start) i++;
    bool room = i < EXTENTS_MAX;
    if (room) {
        extents[i] = (struct extent){.start = start, .bytes = bytes, .imported = true};
        if (i == extent_count) extent_count++;
        bytes_reserved += bytes;
    }
    sy_lock_release(&lock);
    return room;
}

/* Where address space is short, less than `most` will do. */
static int reserve(size_t least, size_t most, uintptr_t *start, size_t *got) {
    size_t bytes = most > least ? most : least;
    void *extent;
    while (!(extent = sy_os_reserve(bytes, SY_CHUNK_BYTES, "slabyard")) && bytes > least) {
        bytes = sy_round_down(bytes / 2, SY_CHUNK_BYTES);
        if (bytes < least) bytes = least;
    }
    if (!extent) return -1;
    *start = (uintptr_t)extent;
    *got = bytes;
    if (note_extent(*start, bytes)) return 0;
    sy_os_release(extent, bytes);
    return -1;
}

int sy_address_import(sy_vmem *source, void *arg, size_t bytes, uintptr_t *start, size_t *got) {
    (void)source, (void)arg;
    sy_lock_acquire(&lock);
    struct extent *waiting = find_waiting(bytes);
    size_t more = bytes_reserved;
    if (waiting) {
        waiting->imported = true;
        *start = waiting->start;
        *got = waiting->bytes;
    }
    sy_lock_release(&lock);
    if (waiting) return 0;
    if (more < EXTENT_BYTES_MIN) more = EXTENT_BYTES_MIN;
    if (more > EXTENT_BYTES_MAX) more = EXTENT_BYTES_MAX;
    more = sy_round_down(more, SY_CHUNK_BYTES);
    return reserve(bytes, more, start, got);
}

/* The extent that the address is in; the lock is held. */
static struct extent *extent_at(uintptr_t address) {
    struct extent *extent = extents;
    while (address < extent->start || address - extent->start >= extent->bytes) extent++;
    return extent;
}

void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes) {
    (void)source, (void)arg;
    sy_lock_acquire(&lock);
    struct extent *extent = extent_at(start);
    bool keep = extent->chunks;
    extent->imported = false;
    if (!keep) {
        *extent = (struct extent){0};
        bytes_reserved -= bytes;
    }
    sy_lock_release(&lock);
    /* If that takes one mapping too many, the address space is lost; there is no memory in it. */
    if (!keep) sy_os_release((void *)start, bytes);
}

void sy_address_has_chunk(uintptr_t address) {
    sy_lock_acquire(&lock);
    extent_at(address)->chunks = true;
    sy_lock_release(&lock);
}

void sy_address_lock_for_fork(void) { sy_lock_acquire(&lock); }

void sy_address_unlock_after_fork(void) { sy_lock_release(&lock); }
