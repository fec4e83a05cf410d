/*
 * address.c: takes address space for chunks and large spans from the system, in large extents, and
 * gives it back.
 */
#include "chunk/address.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "chunk/map.h"
#include "os/os.h"

enum {
    EXTENT_PART = 4, /* of the bytes reserved so far: 23 extents make 1 GiB */
    FREE = SY_OS_SERVICES & SY_OS_FREE_ADDRESSES, /* else an extent is as large as what it holds, */
    EXTENT_BYTES_MIN = FREE ? 8 << 20 : SY_CHUNK_BYTES, /* and not too large to go back soon */
    EXTENT_BYTES_MAX = FREE ? 1 << 30 : 16 << 20,
};

static _Atomic size_t bytes_reserved;

/* The size of the next extent, if at least `least` bytes are needed. */
static size_t extent_bytes(size_t least) {
    size_t bytes = atomic_load_explicit(&bytes_reserved, memory_order_relaxed) / EXTENT_PART;
    if (bytes < EXTENT_BYTES_MIN) bytes = EXTENT_BYTES_MIN;
    if (bytes > EXTENT_BYTES_MAX) bytes = EXTENT_BYTES_MAX;
    bytes = sy_round_down(bytes, SY_CHUNK_BYTES);
    return bytes > least ? bytes : least;
}

/* An extent that the map covers. NULL: there is no address space for it, or none is left for the
 * map's leaf. */
static void *reserve_extent(size_t bytes) {
    void *extent = sy_os_reserve(bytes, SY_CHUNK_BYTES, "slabyard");
    if (extent) sy_map_place((uintptr_t)extent);
    if (!extent || sy_map_cover((uintptr_t)extent, bytes) == 0) return extent;
    sy_os_release(extent, bytes);
    return NULL;
}

/* If the system refuses an extent, half as much is tried, down to `least`. */
int sy_address_import(sy_vmem *source, void *arg, size_t least, uintptr_t *start, size_t *got) {
    (void)source, (void)arg;
    size_t bytes = extent_bytes(least);
    void *extent;
    while (!(extent = reserve_extent(bytes)) && bytes > least) {
        bytes = sy_round_down(bytes / 2, SY_CHUNK_BYTES);
        if (bytes < least) bytes = least;
    }
    if (!extent) return -1;
    atomic_fetch_add_explicit(&bytes_reserved, bytes, memory_order_relaxed);
    *start = (uintptr_t)extent;
    *got = bytes;
    return 0;
}

void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes) {
    (void)source, (void)arg;
    atomic_fetch_sub_explicit(&bytes_reserved, bytes, memory_order_relaxed);
    /* Fails if it would make one mapping too many. Then the address space is lost, but no
     * memory. */
    sy_os_release((void *)start, bytes);
}
