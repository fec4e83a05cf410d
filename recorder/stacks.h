/*
 * stacks.h: the stacks of allocations, and the table of them in the recording.
 */
#ifndef SLABYARD_RECORD_STACKS_H
#define SLABYARD_RECORD_STACKS_H

#include "record.h"

/* Takes the stack of the function whose frame pointer is `frame`, without that function. Returns
 * its number in the table (format.h); 0: it is not known. The buffer is the thread's own. */
HIDDEN uint32_t stacks_take(struct buffer *buffer, const uintptr_t *frame);

/* Writes what is not in the file yet; under `files`. */
HIDDEN void stacks_write(void);

/* The process is a child of a fork: its table is empty, its file another one; under `files`. */
HIDDEN void stacks_begin_anew(void);

/* The program has closed a library; others may get its addresses. */
HIDDEN void stacks_note_closed(void);

#endif
