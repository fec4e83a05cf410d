/*
 * stack.h: where the program is: stacks, each kept once, by number.
 *
 * A stack is taken by frame pointers where they lead along one that unwinding tables have
 * confirmed, else by tables (_Unwind_Backtrace); the option `unwind` can demand either. Those taken
 * are kept in a table that only grows, of address space reserved at first use and touched as it
 * fills: the same stack has the same number for as long as the process lives, and is found without
 * a lock.
 *
 * Takes no memory of malloc's. Below: options.h, os/.
 */
#ifndef SY_WATCH_STACK_H
#define SY_WATCH_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SY_STACK_DEPTH_MAX = 64 };

/* The number of the calling thread's stack, the library's own innermost frames included (they are
 * left out by name when it is shown); 0: it could not be taken or kept, or this thread is taking
 * one already. errno is kept. */
uint32_t sy_stack_here(void);

/* The same, however deep it is. */
uint32_t sy_stack_whole(void);

/* Whether a frame is on the thread's own stack, and not on one of signals or of coroutines, whose
 * bounds nobody knows. Reads a file at a thread's first call. */
bool sy_stack_is_own(uintptr_t frame);

/* The same from `code` outwards, an instruction that the signal interrupted whose handler calls
 * this; 0 also if it is not found there. */
uint32_t sy_stack_from(uintptr_t code);

/* The number of a stack that is given, `depth` frames of it (1 to SY_STACK_DEPTH_MAX); 0: it could
 * not be kept. errno is kept. */
uint32_t sy_stack_keep(const void *const *frames, size_t depth);

/* The frames of a stack: return addresses, the innermost first. How many; 0 for number 0 and for
 * what is no number. */
size_t sy_stack_frames(uint32_t stack, const void *const **frames);

/* Bytes that the table has committed, and stacks in it. */
size_t sy_stack_bytes(void);
size_t sy_stack_count(void);

#endif
