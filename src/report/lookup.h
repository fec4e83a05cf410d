/*
 * lookup.h: finds the lines (function, file, line number) for the stacks of a report. A look-up
 * costs a child process that reads debug information (symbols.h). So a caller with many stacks in
 * one report also names the later ones, and one child looks up as many as there is room for, each
 * address once.
 *
 * Below: symbols.h. Used by report.c, under its lock.
 */
#ifndef SY_REPORT_LOOKUP_H
#define SY_REPORT_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

/* Sets *frames and *depth to the next stack of the report. Returns false if there is none. */
typedef bool sy_lookup_next(void *arg, const void *const **frames, size_t *depth);

/* Forgets all lines: other code may have been loaded at an address since the last report. */
void sy_lookup_forget(void);

/*
 * Finds the lines of a stack (of its first SY_SYMBOLS_MAX frames), as sy_symbols_find does, unless
 * all of them are known. When it looks up any, it also looks up the stacks that `next` (NULL: none)
 * names, as far as there is room, and forgets all lines from before.
 */
void sy_lookup_stack(const void *const *frames, size_t depth, bool deep, sy_lookup_next *next,
                     void *arg);

/* Returns the lines of a frame; NULL: they are not known. Those of the stack of the last
 * sy_lookup_stack are known. */
const char *sy_lookup_lines(const void *frame);

#endif
