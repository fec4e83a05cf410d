/*
 * unwind.h: finds the caller of a frame. stacks.c is the only caller.
 */
#ifndef SLABYARD_RECORD_UNWIND_H
#define SLABYARD_RECORD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "os/linux/rows.h"
#include "record.h"

/* A file that is mapped with code in it, or executable memory of no file. */
struct module {
    uintptr_t start, end;
    uintptr_t bias;        /* what is added to the file's addresses */
    uintptr_t table;       /* its .eh_frame_hdr; 0: there is none */
    uint64_t name;         /* hash of its path */
    _Atomic bool unmapped; /* its addresses may be another module's now */
};

enum step { STEP_OUT, STEP_END, STEP_CUT };

/* Makes *frame its caller's. STEP_END: it has none, being the first of its thread. STEP_CUT: the
 * caller cannot be found. */
HIDDEN enum step unwind_step(sy_row_frame *frame, const sy_row_bounds *stack);

/* Forgets what is known of all addresses, since other modules lie there now. */
HIDDEN void unwind_forget(void);

/* The module with this address; looks for new ones once if there is none. */
HIDDEN const struct module *stacks_module(uintptr_t code);

#endif
