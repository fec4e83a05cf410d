/*
 * mover.h: the thread that moves objects, or folds blocks of their ordinals. There is one at a
 * time, for one cache, and only for the length of a step. A fork waits for the end of the step.
 *
 * Below: movable.h. Above: compact.c, fold.c.
 */
#ifndef SY_CACHE_MOVER_H
#define SY_CACHE_MOVER_H

#include "cache/movable.h"

/* Objects of a step. They take 12 KiB, whole pages, so what all programs use stays on few pages. */
enum { SY_MOVES_MOST = 384 };

/* What a step works on. In the child of a fork, the objects that another thread had chosen are live
 * again, where they were. */
typedef struct sy_moves {
    sy_cache *cache;
    size_t chosen;
    sy_moving objects[SY_MOVES_MOST];
} sy_moves;

/* Begins a step; NULL: another thread is in one, this thread is in a read guard, or the process
 * forks. Waits up to `wait_ns` for the other thread's step; meanwhile no thread begins one with 0.
 * No lock is held. */
sy_moves *sy_mover_begin(sy_cache *cache, uint64_t wait_ns);
void sy_mover_end(void);

extern SY_HIDDEN const sy_part sy_mover_part;

#endif
