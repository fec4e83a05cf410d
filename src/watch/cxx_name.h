/*
 * cxx_name.h: names of C++ functions as their authors write them, by the C++ library's own
 * function. Works in a child process that is made for it: it allocates, and may load a library.
 *
 * Below: os/. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_CXX_NAME_H
#define SY_WATCH_CXX_NAME_H

/* What `mangled` stands for, kept as long as the child lives. NULL: it is no such name, or there
 * is no C++ library. */
const char *sy_cxx_name(const char *mangled);

#endif
