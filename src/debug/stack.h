/*
 * stack.h: takes stacks and keeps each different one once, by number.
 *
 * A stack is taken by frame pointers if they give a stack that unwinding tables have confirmed;
 * else by tables (sy_os_unwind_own, or _Unwind_Backtrace). The option `unwind` can demand either.
 * Stacks are kept in a table that only grows. Its address space is reserved at the first use, and
 * gets memory as it fills. The same stack has the same number until the process ends, and is found
 * without a lock.
 *
 * Takes no memory from malloc. Below: options.h, os/.
 */
#ifndef SY_DEBUG_STACK_H
#define SY_DEBUG_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

enum { SY_STACK_DEPTH_MAX = 64 };

/* Takes the calling thread's stack and returns its number. The library's own innermost frames are
 * included; reports leave them out by name. Returns 0 if the stack could not be taken or kept: for
 * example if this thread is taking one already, or if tables are needed while the process forks or
 * before main. errno is kept. */
uint32_t sy_stack_here(void);

/* Takes the stack with up to SY_STACK_DEPTH_MAX frames, whatever the option `stack-depth` says. */
uint32_t sy_stack_whole(void);

/* Whether a frame is on the thread's own stack, rather than on a signal stack or on that of a
 * coroutine, whose bounds are unknown. */
bool sy_stack_is_own(uintptr_t frame);

/* As sy_stack_whole, from `code` outwards: the instruction that a signal interrupted whose handler
 * calls this function. Returns 0 also if the stack does not contain `code`. */
uint32_t sy_stack_from(uintptr_t code);

/* Keeps the stack of `depth` frames (1 to SY_STACK_DEPTH_MAX) and returns its number; 0: it could
 * not be kept. errno is kept. */
uint32_t sy_stack_keep(const void *const *frames, size_t depth);

/*
 * As sy_stack_here, but its frames are found by the first call that wants them (sy_stack_frames):
 * until then, words of the stack are kept in a place of their own. So nothing is read of the
 * unwinding tables. What is read of a file counts as memory of the process: up to a megabyte in a
 * compiler, whose functions have no frame pointers. A copy in the same place replaces the previous
 * one. One thread at a time copies to a place; others may read meanwhile. Returns 0 if there is no
 * such place, or the bounds of the stack are not known: then sy_stack_here may work. Takes no lock.
 * errno is kept.
 */
uint32_t sy_stack_copy(uint32_t place);

/* Only tests change it. True: the copy begins at the caller. Else it begins at the library's
 * function that the program has called, and there is none if the library is linked into the
 * program: then its functions and the program's are not told apart. */
extern SY_HIDDEN bool sy_stack_copies_here;

/* Makes so many places for copies, once. Without memory for them, where stacks cannot be unwound
 * from copies, or if the library is linked into the program, there are none. */
void sy_stack_make_places(uint32_t count);
bool sy_stack_has_places(void);
size_t sy_stack_place_bytes(void); /* of one place; 0: there are none */

/* Says which words of a stack are not copied, because they lead to objects: there are many, and
 * room for few words. */
void sy_stack_leave_out(bool (*is_object)(uintptr_t word));

/* A number that is the same for the same innermost functions, as far as frame pointers tell. */
uint32_t sy_stack_site(void);

/* Sets *frames to a stack's return addresses, the innermost first. Returns their number; 0 for the
 * number 0, and for any value that is not the number of a stack. For a copy that was replaced these
 * are the frames of the new one. */
size_t sy_stack_frames(uint32_t stack, const void *const **frames);

/* The bytes that the table has committed, and the number of stacks in it. */
size_t sy_stack_bytes(void);
size_t sy_stack_count(void);

/* A fork waits until no other thread is in the unwinder. */
extern SY_HIDDEN const sy_part sy_stack_part;

/* How long it waits at most. So a thread that was stopped in the unwinder, or that left it by a
 * jump, does not stop all forks. Only tests change it. */
extern SY_HIDDEN uint64_t sy_stack_patience_ns;

#endif
