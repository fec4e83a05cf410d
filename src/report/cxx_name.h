/*
 * cxx_name.h: demangles names of C++ functions with the C++ library's own function. It runs in a
 * child process made for this purpose, because it allocates and may load a library.
 *
 * Below: os/. Used by symbols.c and dwarf.c.
 */
#ifndef SY_REPORT_CXX_NAME_H
#define SY_REPORT_CXX_NAME_H

/* Returns the name that `mangled` stands for. It is kept as long as the child lives. Returns NULL
 * if it is no such name, or if there is no C++ library. */
const char *sy_cxx_name(const char *mangled);

#endif
