/*
 * tools.h: informs Valgrind's memcheck and AddressSanitizer, if the process runs under one of them,
 * about objects. Without this they would only see slabs.
 *
 *     slab:    | hidden | object: shown, its size exactly | hidden | hidden: free slot | hidden |
 *
 * The tool is recognised at run time. AddressSanitizer: by its functions (weak references, which
 * are resolved if the program was built with it, however the library was built). memcheck: by its
 * answer to a request, which does nothing outside of Valgrind; Valgrind's other tools do not
 * answer. Before the first sy_tool_open no tool is informed. Without a tool each call costs a load
 * and a branch.
 *
 * Any thread may call these functions. The caller has to know what a range belongs to. Lowest file
 * of debug/.
 */
#ifndef SY_DEBUG_TOOLS_H
#define SY_DEBUG_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

typedef enum sy_tool { SY_TOOL_NONE, SY_TOOL_ASAN, SY_TOOL_MEMCHECK } sy_tool;

/* Returns the tool under which this process runs, whatever the option `tools` says. */
sy_tool sy_tool_present(void);

/* `owner` (any address that identifies it) begins or ends to allocate objects, with `zone` bytes at
 * each side that belong to no object. All its slabs must have ended before it ends. */
void sy_tool_open(const void *owner, size_t zone);
void sy_tool_close(const void *owner);

/* Begins a slab: its memory becomes hidden from the program, and memory that its objects point to
 * is no leak. Ends a slab: its memory may be used for anything, and counts as written. */
void sy_tool_begin(const void *slab, size_t bytes);
void sy_tool_end(const void *slab, size_t bytes);

/* Shows a part of a slab, in which no object is live, to a function of the program that may change
 * it. Hides it again. */
void sy_tool_lend(const void *part, size_t bytes);
void sy_tool_take_back(const void *part, size_t bytes);

/* Shows an object to the program, as never written; hides it again. */
void sy_tool_allocated(const void *owner, const void *object, size_t size);
void sy_tool_freed(const void *owner, const void *object, size_t size);

/* A hidden object was freed once more. memcheck reports where it was freed before. */
void sy_tool_freed_twice(const void *owner, const void *object);

/* What the library has written to an object does not count as written. */
void sy_tool_unwritten(const void *object, size_t size);

/* Between these two calls the library itself reads or writes memory that may be hidden, in
 * functions that AddressSanitizer does not check. memcheck reports no errors of this thread
 * meanwhile. The calls can be nested. */
void sy_tool_enter(void);
void sy_tool_leave(void);

extern SY_HIDDEN const sy_part sy_tools_part;

/* From now on, `explain` is called with the address of each access that AddressSanitizer reports,
 * at the end of its report. It replaces a callback of the program, and stays until the process
 * ends. */
void sy_tool_on_report(void (*explain)(uintptr_t address));

#endif
