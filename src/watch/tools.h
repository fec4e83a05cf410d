/*
 * tools.h: what Valgrind and AddressSanitizer are told, if the process runs under them; so that
 * they see objects where they would see slabs.
 *
 * Recognised at run time: AddressSanitizer by its functions (weak references, resolved where the
 * program was built with it, whatever the library was built with), Valgrind by its client requests
 * (no operation outside of it). All calls cost a test and nothing else where there is no tool.
 *
 * Lowest of watch/.
 */
#ifndef SY_WATCH_TOOLS_H
#define SY_WATCH_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum sy_tool { SY_TOOL_NONE, SY_TOOL_ASAN, SY_TOOL_VALGRIND } sy_tool;

/* The tool this process runs under, and that is to be told (option `tools`). Found once. */
sy_tool sy_tool_present(void);

/* `owner` (any address that names it) begins and ends to give out objects. */
void sy_tool_open(const void *owner, size_t zone, bool zeroed);
void sy_tool_close(const void *owner);

/* Memory that holds slots and no object: inaccessible to the program. */
void sy_tool_hide(const void *owner, const void *start, size_t bytes);
/* Memory that goes to somebody else, who may use it as he likes. */
void sy_tool_show(const void *start, size_t bytes);

/* An object was given to the program, at the end of the door; taken from it, at its beginning. */
void sy_tool_allocated(const void *owner, const void *object, size_t size);
void sy_tool_freed(const void *owner, const void *object, size_t size);

/* The library itself reads or writes what is hidden, between these two. (For Valgrind: does not
 * report errors of this thread.) */
void sy_tool_enter(const void *start, size_t bytes);
void sy_tool_leave(const void *start, size_t bytes);

#endif
