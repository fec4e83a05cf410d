/*
 * rust_name.h: names of Rust functions as their authors write them. The compiler mangles them in
 * one of two ways, both of which are found in one program (the standard library is compiled apart):
 *
 *     _ZN4shop5order17h20d18f73558f62dfE     legacy:  shop::order
 *     _RNvCs1234_4shop5order                 v0:      shop::order   (Rust RFC 2603)
 *
 * Allocates nothing and follows no pointer but those that it is given; the name may be any text.
 * Below: nothing. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_RUST_NAME_H
#define SY_WATCH_RUST_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { SY_RUST_NAME_MAX = 1024 }; /* of a function with the names of its types: room enough */

/* Writes the name that `mangled` stands for, without hashes; what does not fit is cut off. False:
 * it is no name of Rust's, and `name` holds nothing of use. */
bool sy_rust_name(const char *mangled, char name[SY_RUST_NAME_MAX]);

#endif
