/*
 * tags.h: counts allocations by the part of the program that makes them (slabyard/audit.h).
 *
 * A tag is a number. Its counters and its name are in tables of fixed size, and it is never
 * removed. An object's record keeps the tag of its allocation, so a free by any thread counts for
 * the right tag.
 *
 * Above: watch.c. Below: os/.
 */
#ifndef SY_DEBUG_TAGS_H
#define SY_DEBUG_TAGS_H

#include <slabyard/audit.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

/* Counts an allocation by this thread. Returns the thread's tag, which the object then has. */
sy_tag sy_tag_count_allocation(size_t size);

/* Counts the free of an object with this tag. */
void sy_tag_count_free(sy_tag tag, size_t size);

/* Around a fork, no thread is adding a name. */
extern SY_HIDDEN const sy_part sy_tags_part;

#endif
