/*
 * rust_name.h: demangles names of Rust functions. The compiler mangles them in one of two ways. A
 * program may contain both, because the standard library is compiled separately:
 *
 *     _ZN4shop5order17h20d18f73558f62dfE     legacy:  shop::order
 *     _RNvCs1234_4shop5order                 v0:      shop::order   (Rust RFC 2603)
 *
 * It allocates nothing, and reads nothing but the name, which may be any text. Below: nothing. Used
 * by symbols.c and dwarf.c.
 */
#ifndef SY_REPORT_RUST_NAME_H
#define SY_REPORT_RUST_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { SY_RUST_NAME_MAX = 1024 }; /* bytes: enough for a function with the names of its types */

/* Writes the name that `mangled` stands for, without hashes, cut off if it does not fit. Returns
 * false if it is no name of Rust; the content of `name` is then undefined. */
bool sy_rust_name(const char *mangled, char name[SY_RUST_NAME_MAX]);

#endif
