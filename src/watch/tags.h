/*
 * tags.h: allocations counted by the part of the program that makes them (slabyard/audit.h).
 *
 * A tag is a number; its counters and its name are in tables of fixed size, for ever. An object's
 * record keeps the tag of its allocation, so that a free by any thread counts where it belongs.
 *
 * Above: watch.c. Below: os/.
 */
#ifndef SY_WATCH_TAGS_H
#define SY_WATCH_TAGS_H

#include <slabyard/audit.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

/* Counts an allocation by this thread; the tag that it has. */
sy_tag sy_tag_count_allocation(size_t size);

/* Counts the end of an object of that tag. */
void sy_tag_count_free(sy_tag tag, size_t size);

/* Around a fork nobody is in the midst of adding a name. */
extern SY_HIDDEN const sy_part sy_tags_part;

#endif
