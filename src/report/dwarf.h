/*
 * dwarf.h: finds functions, files and lines of an address in debug information, by libdw. It runs
 * in a child process made for this purpose, because it allocates, may hang, and closes nothing.
 *
 * Below: rust_name.h, cxx_name.h, whose.h, os/. Used by symbols.c.
 */
#ifndef SY_REPORT_DWARF_H
#define SY_REPORT_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "report/whose.h"

/* Loads libdw and opens a session for this process. Returns false if either fails. */
bool sy_dwarf_open(void);

typedef void sy_dwarf_line(void *arg, sy_whose whose, const char *function, const char *path,
                           int line);

/*
 * Calls `tell` for each function that has code at `address`: first for inlined functions, the
 * innermost first, then for the function that contains them. A path is as the compiler got it; of
 * an absolute path, the last two names. The path of a source of this library begins with
 * slabyard/src/. Returns false, without a call, if there is no debug information for the address.
 */
bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg);

/* Returns the function from the symbol tables that libdw finds, also in separate files of debug
 * information, with its name as it is there. *behind is the distance from its start to `address`.
 * NULL: there is none. */
const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind);

#endif
