/*
 * history.h: the last operations of a cache, in a ring.
 *
 * Any number of threads write the ring without a lock. A writer takes the next number n, which
 * gives its operation a place in the ring. The sequence of the place has the state:
 *
 *     0             nothing was ever written
 *     2 n + 1       a thread is writing operation n
 *     2 n + 2       operation n is complete
 *
 * A place may be busy with another operation, whose thread was stopped for a whole round of the
 * ring, or may already have a later operation. Then the writer drops its own operation. A reader
 * looks at the sequence before and after it reads, and skips an operation that is not complete.
 *
 * Above: watch.c, cache/. Below: stack.h, os/.
 */
#ifndef SY_DEBUG_HISTORY_H
#define SY_DEBUG_HISTORY_H

#include <slabyard/audit.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debug/watch.h"

typedef struct sy_entry {
    _Atomic uint64_t sequence;
    _Atomic uint64_t object;
    _Atomic uint64_t size_and_freed; /* bit 0: freed */
    _Atomic uint64_t time;
    _Atomic uint64_t stack_and_thread; /* 32 bits each, the stack above */
} sy_entry;

struct sy_history {
    size_t operations, bytes;
    _Atomic uint64_t next; /* number of the next operation */
    sy_entry entries[];
};

/* Makes a ring of `operations`, a power of two. Returns NULL with ENOMEM. */
sy_history *sy_history_make(size_t operations);
void sy_history_end(sy_history *history);

/* Notes an operation on an object of `size` bytes. */
void sy_history_note(sy_history *history, bool freed, const void *object, size_t size,
                     const sy_stamp *stamp);

/* Calls `visit` for each operation, the latest first, until it returns a value other than 0.
 * Returns this value, or -1 with ENOMEM. */
int sy_history_each(const sy_history *history,
                    int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* Bytes of memory of the history. */
size_t sy_history_bytes(const sy_history *history);

#endif
