/*
 * tags.h: counts allocations by the part of the program that makes them (slabyard/audit.h).
 *
 * A tag is a number. Its counters and its name are in tables of fixed size, and it is never
 * removed. An object's record keeps the tag of its allocation, so a free by any thread counts for
 * the right tag.
 *
 * Above: watch.c, profile.c. Below: os/.
 */
#ifndef SY_DEBUG_TAGS_H
#define SY_DEBUG_TAGS_H

#include <slabyard/audit.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

typedef struct sy_tag_counts {
    alignas(64) _Atomic uint64_t allocations;
    _Atomic uint64_t frees;
    _Atomic size_t live_bytes, peak_bytes;
} sy_tag_counts;

enum { SY_TAGS = SY_TAGS_MAX + 1 }; /* including the tag 0, for untagged allocations */

/* All tags. Tools read them (the rows are in profile.c). */
typedef struct sy_tag_table {
    char names[SY_TAGS][SY_TAG_NAME_MAX + 1];
    _Atomic sy_tag last; /* tags up to it have a name; grows under the lock */
    sy_tag_counts counts[SY_TAGS];
} sy_tag_table;

extern SY_HIDDEN sy_tag_table sy_tags;

/* Counts an allocation by this thread. Returns the thread's tag, which the object then has. */
sy_tag sy_tag_count_allocation(size_t size);

/* Counts the free of an object with this tag. */
void sy_tag_count_free(sy_tag tag, size_t size);

/* The tag that the allocations of this thread have. */
sy_tag sy_tag_of_thread(void);

/* Around a fork, no thread is adding a name. */
extern SY_HIDDEN const sy_part sy_tags_part;

#endif
