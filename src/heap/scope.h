/*
 * scope.h: the slow paths of allocations in a scope (slabyard/scope.h).
 *
 *     sy_scope_enter --> the thread's second record (magazine/client.h): another sy_abi_1
 *     sy_malloc      --> a placed slot of this record: inline, while the buffer has objects
 *                    --> sy_scope_alloc: fills the buffer from the scope's lots (cache/lots.h)
 *     sy_free        --> the magazine of SY_CLASS_MIXED, whatever scope the thread is in
 *     sy_scope_leave --> what the buffers have goes back; the first record
 *
 *     buffer of a class:  | object | object | object |             addresses fall: the lowest is
 *                         ^ base                     ^ top         given out first
 *
 * Above: heap.c. Below: cache/lots.h.
 */
#ifndef SY_HEAP_SCOPE_H
#define SY_HEAP_SCOPE_H

#include <slabyard/scope.h>

#include "cache/lots.h"

/* Where this thread allocates; NULL: in no scope. */
extern SY_HIDDEN SY_TLS sy_scope *sy_scope_now;

/* Allocates an object of the cache, which takes part in mixed units, in this thread's scope, for
 * its slot of the class. NULL with ENOMEM. */
void *sy_scope_alloc(sy_cache *cache, unsigned class_number, size_t size);

/* The same past the slot, at a multiple of `align`, up to SY_SCOPE_ALIGN_MAX. */
enum { SY_SCOPE_ALIGN_MAX = SY_LOT_BYTES };
void *sy_scope_alloc_aligned(sy_cache *cache, size_t size, size_t align);

#endif
