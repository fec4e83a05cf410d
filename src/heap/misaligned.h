/*
 * misaligned.h: what the drop-in malloc does with a pointer that it cannot have given out, because
 * it is no multiple of 16. The heap alone would put it into a magazine, and report it when the
 * magazine is flushed.
 */
#ifndef SY_HEAP_MISALIGNED_H
#define SY_HEAP_MISALIGNED_H

#include <slabyard/base.h>

/* Frees `object`, no multiple of 16, as sy_free. If it lies in a slab, the fault is raised at once.
 * errno is kept. */
void sy_free_misaligned(void *object);

#endif
