/*
 * misaligned.h: reports the free of an address that is no multiple of 16. The drop-in malloc never
 * returns such an address. Without this check, the heap would put the address into a magazine, and
 * report it only when the magazine is flushed.
 *
 * Above: shim/. Below: the heap.
 */
#ifndef SY_HEAP_MISALIGNED_H
#define SY_HEAP_MISALIGNED_H

#include <slabyard/base.h>

/* Raises the fault of a free of `object`, which is no multiple of 16. If blocks are passed on to
 * the next malloc and the address is unknown, that malloc's free is called. errno is kept. */
void sy_free_misaligned(void *object);

#endif
