/*
 * symbols.h: finds function, file and line of return addresses. If the machine has elfutils' libdw
 * (libdw.so.1, loaded when it is first needed), it reads debug information with it. If not, it uses
 * the file that is mapped at the address: the function in its symbol table, or the file's name and
 * the address in it.
 *
 * libdw allocates, and may be needed in a process whose malloc is broken, or is Slabyard. So a
 * child process does this work and writes into memory that it shares with the parent. An alarm ends
 * the child if it hangs. The parent adds the addresses that the child has not done, without libdw.
 * Under a debugger there is no child, because the debugger would stop in it or wait for it. A
 * program that is linked statically can load no library: its child knows functions, but no lines.
 *
 * Names of Rust are always demangled, names of C++ by the child alone.
 *
 * Below: dwarf.h, rust_name.h, cxx_name.h, whose.h, os/. Used by lookup.c.
 */
#ifndef SY_REPORT_SYMBOLS_H
#define SY_REPORT_SYMBOLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/whose.h"

enum { SY_SYMBOLS_MAX = 1024, SY_SYMBOLS_TEXT = 256 << 10 };

/* The lines of addresses. The struct is large, so a caller has one for the process, under its own
 * lock. */
typedef struct sy_symbols {
    _Atomic size_t count;      /* addresses whose lines are complete */
    size_t length;             /* bytes of `text` */
    size_t at[SY_SYMBOLS_MAX]; /* where each address's lines begin in `text` */
    char text[SY_SYMBOLS_TEXT];
} sy_symbols;

/*
 * Finds the lines of `count` return addresses, of SY_SYMBOLS_MAX at most. The first `needed`
 * addresses always get lines. Those behind them get lines if the child has room and time.
 * symbols->count becomes the number of addresses with lines. Each has one line, or several if
 * functions were inlined there, the innermost first:
 *
 *     parse_header at src/parser.c:120
 *     main at server.c:17
 *     qsort_r+0x1f3 in /usr/lib/libc.so.6     (no line is known)
 *     0x5581 in /usr/lib/libfoo.so            (no function; as addr2line -e libfoo.so takes it)
 *     0x7f0012345640                          (no file)
 *
 * The lines are those of the call, the instruction before the address. Paths are as in dwarf.h. The
 * first character of each line, before the function, is a sy_whose. If the text of needed addresses
 * is too long, it is cut off.
 *
 * If `deep` is false, or the process is traced, the parent does all the work without debug
 * information and without a child. The function calls no malloc of this process, takes no lock, and
 * needs a few KiB of stack. errno is kept.
 */
void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep);

/* Returns the lines of address `index` (below symbols->count). Each line ends with \n, and a 0
 * follows the last one. "" if there was no room left. */
const char *sy_symbols_lines(const sy_symbols *symbols, size_t index);

#endif
