/*
 * dwarf.h: what debug information says of an address, by libdw. Works in a child process that is
 * made for it: it allocates, may hang, and leaves all of it open.
 *
 * Below: rust_name.h, cxx_name.h, whose.h, os/. Used by symbols.c.
 */
#ifndef SY_WATCH_DWARF_H
#define SY_WATCH_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/whose.h"

/* Loads the library and tells it of this process. False: there is none, or it could not. */
bool sy_dwarf_open(void);

typedef void sy_dwarf_line(void *arg, sy_whose whose, const char *function, const char *path,
                           int line);

/*
 * Tells the functions that the code at `address` is of: those inlined there, the innermost first,
 * then the one they are in. A path is what the compiler was given, or the last two names of it if
 * that was an absolute one; of a source of this library it begins with slabyard/src/. False: there
 * is no debug information of it; nothing was told.
 */
bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg);

/* The function by the tables of symbols that the library finds, those in files of debug information
 * included, as it stands there; NULL: none. It lies `*behind` bytes before. */
const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind);

#endif
