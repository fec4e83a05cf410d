/*
 * symbols.h: return addresses in words: function, file and line, by elfutils' libdw where the
 * machine has it (libdw.so.1, loaded when it is first needed), else what the file says that is
 * mapped there: the function in its table of symbols, or the file and the address in it.
 *
 * The library allocates, and may be asked in a process whose malloc is broken, or is Slabyard; so a
 * child process does that work and writes into memory that both have, with an alarm for the case
 * that it hangs. What it has not said when it ends is told without it, and so is everything under a
 * debugger, which would stop in the child, or wait for it. A program that is linked statically can
 * load no library: its child knows functions, and no lines.
 *
 * Names of Rust are in its own words always, those of C++ by the child.
 *
 * Below: dwarf.h, rust_name.h, cxx_name.h, whose.h, os/. Used by lookup.c.
 */
#ifndef SY_WATCH_SYMBOLS_H
#define SY_WATCH_SYMBOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "watch/whose.h"

enum { SY_SYMBOLS_MAX = 1024, SY_SYMBOLS_TEXT = 256 << 10 };

/* Text of addresses; large, so callers have one for the process, under their own lock. */
typedef struct sy_symbols {
    _Atomic size_t count;      /* addresses whose lines are there */
    size_t length;             /* bytes of `text` */
    size_t at[SY_SYMBOLS_MAX]; /* where its lines begin in `text` */
    char text[SY_SYMBOLS_TEXT];
} sy_symbols;

/*
 * Words for `count` return addresses (not more than SY_SYMBOLS_MAX are taken). The first `needed`
 * have words in any case; those behind them have words if the child finds room and time for them.
 * symbols->count says how many have. Each has one line, or several where functions were inlined
 * there, the innermost first:
 *
 *     parse_header at src/parser.c:120
 *     main at server.c:17
 *     qsort_r+0x1f3 in /usr/lib/libc.so.6     (no line is known)
 *     0x5581 in /usr/lib/libfoo.so            (no function; as addr2line -e libfoo.so takes it)
 *     0x7f0012345640                          (no file)
 *
 * They are of the call, the instruction before the address. Paths are as dwarf.h says. Before each
 * line stands a character, whose function it is: a sy_whose. Text that is too long is cut, if it is
 * of an address that is needed.
 *
 * `deep` false, or the process is traced: only what the files say, without a child. Calls no malloc
 * of this process, takes no lock, and needs a few KiB of stack. errno is kept.
 */
void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep);

/* The lines of address `index` (below symbols->count), each ended by \n, the last by a 0 besides;
 * "" where there was no more room. */
const char *sy_symbols_lines(const sy_symbols *symbols, size_t index);

#endif
