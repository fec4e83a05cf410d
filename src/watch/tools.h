/*
 * tools.h: what Valgrind's memcheck and AddressSanitizer are told, if the process runs under them;
 * so that they see objects where they would see slabs.
 *
 *     slab:    | hidden | object: shown, its size exactly | hidden | hidden: free slot | hidden |
 *
 * Recognised at run time: AddressSanitizer by its functions (weak references, resolved where the
 * program was built with it, whatever the library was built with), memcheck by its answer to a
 * request (no operation outside of it; Valgrind's other tools do not answer). Nobody is told before
 * the first sy_tool_open, and without a tool each call costs a load and a branch.
 *
 * Any thread; what a range belongs to is the caller's affair. Lowest of watch/.
 */
#ifndef SY_WATCH_TOOLS_H
#define SY_WATCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

typedef enum sy_tool { SY_TOOL_NONE, SY_TOOL_ASAN, SY_TOOL_MEMCHECK } sy_tool;

/* The tool this process runs under, whatever the option `tools` says. */
sy_tool sy_tool_present(void);

/* `owner` (any address that names it) begins and ends to give out objects, with `zone` bytes at
 * each side that are nobody's. Before it ends all its slabs have. */
void sy_tool_open(const void *owner, size_t zone);
void sy_tool_close(const void *owner);

/* A slab: from now on its memory is hidden from the program, and what objects in it point to is no
 * leak; from now on it is anybody's, and reads as if it had been written. */
void sy_tool_begin(const void *slab, size_t bytes);
void sy_tool_end(const void *slab, size_t bytes);

/* An object is shown to the program, as never written; is hidden from it. */
void sy_tool_allocated(const void *owner, const void *object, size_t size);
void sy_tool_freed(const void *owner, const void *object, size_t size);

/* An object that is hidden was freed once more: memcheck says who did so before. */
void sy_tool_freed_twice(const void *owner, const void *object);

/* What the library has written to an object is not to count as written. */
void sy_tool_unwritten(const void *object, size_t size);

/* Between these two the library itself reads or writes what may be hidden (in functions that
 * AddressSanitizer does not watch): memcheck reports no errors of this thread. They nest. */
void sy_tool_enter(void);
void sy_tool_leave(void);

extern SY_HIDDEN const sy_part sy_tools_part;

/* Has `explain` called with the address of each access that AddressSanitizer reports, at the end of
 * its report; for ever, in the place of a callback of the program's. */
void sy_tool_on_report(void (*explain)(uintptr_t address));

#endif
