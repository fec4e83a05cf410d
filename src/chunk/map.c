#include "chunk/map.h"

#include <errno.h>

#include "os/os.h"
#include "os/pages.h"

enum {
    CLASS_MAP_SHIFT = SY_ADDRESS_BITS - SY_UNIT_SHIFT,
    OWNER_MAP_SHIFT = SY_ADDRESS_BITS - SY_CHUNK_SHIFT + 3,
};

_Atomic(_Atomic uint8_t *) sy_class_map;
_Atomic(_Atomic(void *) *) sy_owner_map;

static void *take_map(size_t bytes, const char *name) {
    return sy_pages_take(bytes, sy_os_page_size(), name);
}

int sy_map_start(void) {
    void *classes = take_map((size_t)1 << CLASS_MAP_SHIFT, "slabyard class map");
    if (!classes) return -1;
    void *owners = take_map((size_t)1 << OWNER_MAP_SHIFT, "slabyard owner map");
    if (!owners) {
        int error = errno;
        sy_os_release(classes, (size_t)1 << CLASS_MAP_SHIFT);
        errno = error;
        return -1;
    }
    atomic_store_explicit(&sy_class_map, classes, memory_order_release);
    atomic_store_explicit(&sy_owner_map, owners, memory_order_release);
    return 0;
}

void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number) {
    _Atomic uint8_t *map = atomic_load_explicit(&sy_class_map, memory_order_relaxed);
    for (size_t unit = 0; unit < units; unit++)
        atomic_store_explicit(&map[(start >> SY_UNIT_SHIFT) + unit], (uint8_t)class_number,
                              memory_order_relaxed);
}

void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner) {
    _Atomic(void *) *map = atomic_load_explicit(&sy_owner_map, memory_order_relaxed);
    for (uintptr_t at = start; at < start + bytes; at += SY_CHUNK_BYTES)
        atomic_store_explicit(&map[at >> SY_CHUNK_SHIFT], owner, memory_order_release);
}
