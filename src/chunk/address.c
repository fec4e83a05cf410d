#include "chunk/address.h"

#include <errno.h>
#include <stdbool.h>

#include "base/bits.h"
#include "chunk/map.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    EXTENT_CHUNKS_FIRST = 16, /* 64 MiB */
    EXTENT_CHUNKS_MAX = 256,  /* 1 GiB */
    EXTENTS_MAX = 4096,       /* 4 TiB */
    WORDS = EXTENT_CHUNKS_MAX / 64,
};

static struct extent {
    uintptr_t start;
    unsigned chunks;
    uint64_t unused[WORDS]; /* a bit a chunk: not given out */
} extents[EXTENTS_MAX];     /* guarded by lock; start and chunks are for ever */
static unsigned extent_count;
static unsigned first_extent; /* none before it has an unused chunk */
static sy_lock lock = SY_LOCK_INIT(SY_RANK_ADDRESS);

/* The lowest unused chunk of the first extent that has one, or 0; the lock is held. */
static uintptr_t take_unused(void) {
    for (; first_extent < extent_count; first_extent++) {
        struct extent *extent = &extents[first_extent];
        for (unsigned word = 0; word < WORDS; word++) {
            if (!extent->unused[word]) continue;
            unsigned index = word * 64 + sy_lowest_bit(extent->unused[word]);
            extent->unused[word] &= extent->unused[word] - 1;
            return extent->start + (uintptr_t)index * SY_CHUNK_BYTES;
        }
    }
    return 0;
}

static unsigned next_extent_chunks(unsigned count) {
    unsigned chunks = EXTENT_CHUNKS_FIRST;
    for (; count > 0 && chunks < EXTENT_CHUNKS_MAX; count--) chunks *= 2;
    return chunks;
}

/* Adds an extent unless another thread has since there were `seen`. 0, or -1 with ENOMEM. Where
 * address space is short, a smaller one will do. */
static int add_extent(unsigned seen) {
    unsigned chunks = next_extent_chunks(seen);
    void *start = NULL;
    while (seen < EXTENTS_MAX && chunks > 0) {
        start = sy_os_reserve((size_t)chunks * SY_CHUNK_BYTES, SY_CHUNK_BYTES, "slabyard chunks");
        if (start) break;
        chunks /= 2;
    }
    if (!start) {
        errno = ENOMEM;
        return -1;
    }
    sy_lock_acquire(&lock);
    bool mine = extent_count == seen;
    if (mine) {
        extents[seen] = (struct extent){.start = (uintptr_t)start, .chunks = chunks};
        for (unsigned word = 0; word < WORDS && word * 64 < chunks; word++)
            extents[seen].unused[word] = sy_low_bits(chunks - word * 64);
        extent_count++;
    }
    sy_lock_release(&lock);
    if (!mine) sy_os_release(start, (size_t)chunks * SY_CHUNK_BYTES);
    return 0;
}

static uintptr_t take_address(void) {
    for (;;) {
        sy_lock_acquire(&lock);
        uintptr_t chunk = take_unused();
        unsigned seen = extent_count;
        sy_lock_release(&lock);
        if (chunk || add_extent(seen) != 0) return chunk;
    }
}

uintptr_t sy_address_take_chunk(void) {
    uintptr_t chunk = take_address();
    if (chunk && sy_os_commit((void *)chunk, SY_CHUNK_BYTES) != 0) {
        sy_address_give_chunk(chunk);
        errno = ENOMEM;
        return 0;
    }
    return chunk;
}

void sy_address_give_chunk(uintptr_t chunk) {
    sy_lock_acquire(&lock);
    for (unsigned i = 0; i < extent_count; i++) {
        uintptr_t index = (chunk - extents[i].start) / SY_CHUNK_BYTES;
        if (chunk < extents[i].start || index >= extents[i].chunks) continue;
        extents[i].unused[index / 64] |= UINT64_C(1) << index % 64;
        if (i < first_extent) first_extent = i;
        break;
    }
    sy_lock_release(&lock);
}

uintptr_t sy_address_chunk(size_t index) {
    uintptr_t chunk = 0;
    sy_lock_acquire(&lock);
    for (unsigned i = 0; i < extent_count; i++) {
        if (index < extents[i].chunks) {
            chunk = extents[i].start + index * SY_CHUNK_BYTES;
            break;
        }
        index -= extents[i].chunks;
    }
    sy_lock_release(&lock);
    return chunk;
}

void sy_address_lock_for_fork(void) { sy_lock_acquire(&lock); }

void sy_address_unlock_after_fork(void) { sy_lock_release(&lock); }
