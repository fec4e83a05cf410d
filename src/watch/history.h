/*
 * history.h: the last operations of a cache, in a ring.
 *
 * Written without a lock, by any number of threads: each takes the next number, and with it a place
 * in the ring, of which the sequence tells the state:
 *
 *     0             nothing was ever written
 *     2 n + 1       operation n is being written, by whoever made it so
 *     2 n + 2       operation n is there
 *
 * Who finds his place being written (by a thread that was stopped for a whole round of the ring),
 * or written by a later one, lets his operation be lost. Who reads looks at the sequence before and
 * after, and passes by what is not there.
 *
 * Above: watch.c, cache/. Below: stack.h, os/.
 */
#ifndef SY_WATCH_HISTORY_H
#define SY_WATCH_HISTORY_H

#include <slabyard/audit.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/watch.h"

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

/* A ring of `operations`, a power of two. NULL with ENOMEM. */
sy_history *sy_history_make(size_t operations);
void sy_history_end(sy_history *history);

/* Notes an operation on an object of `size` bytes. */
void sy_history_note(sy_history *history, bool freed, const void *object, size_t size,
                     const sy_stamp *stamp);

/* Calls for each, the latest first, until `visit` returns something else than 0; returns that, or
 * -1 with ENOMEM. */
int sy_history_each(const sy_history *history,
                    int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* The memory of it. */
size_t sy_history_bytes(const sy_history *history);

#endif
