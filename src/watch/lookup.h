/*
 * lookup.h: the lines of the stacks that a report tells. A look-up costs a child process that reads
 * debug information (symbols.h). A caller that tells many stacks in one report therefore names the
 * later ones, and one child looks up as many as there is room for, each address once.
 *
 * Below: symbols.h. Used by report.c, under its lock.
 */
#ifndef SY_WATCH_LOOKUP_H
#define SY_WATCH_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the next stack that will be told. False: there is none. */
typedef bool sy_lookup_next(void *arg, const void *const **frames, size_t *depth);

/* Nothing is known: what an address is of may have changed since the last report. */
void sy_lookup_forget(void);

/*
 * Finds the lines of a stack (of its first SY_SYMBOLS_MAX frames), as sy_symbols_find does, unless
 * all are known. If it finds any, it also finds lines of the stacks that `next` (NULL: none) tells,
 * as far as there is room, and forgets all others.
 */
void sy_lookup_stack(const void *const *frames, size_t depth, bool deep, sy_lookup_next *next,
                     void *arg);

/* The lines of a frame; NULL: they are not known. Those of the stack that was found last are. */
const char *sy_lookup_lines(const void *frame);

#endif
