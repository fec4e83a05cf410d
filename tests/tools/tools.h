/*
 * tools.h: for the programs of this folder: a cache, and functions whose names have to be in the
 * report of a sanitizer or Valgrind. The first comment of a program has a line for each mode
 * in which run.sh runs it, with the texts that the report has to contain, in this order:
 *
 *     asan: text; text; ...       the program is built with AddressSanitizer, the library is not;
 *                                 SLABYARD=tools=auto
 *     memcheck: text; text; ...   the program runs under Valgrind; SLABYARD=tools=auto
 *     asan-malloc: ...            the same two with SLABYARD=tools=malloc
 *     memcheck-malloc: ...
 *     tsan: ...                   the program is built with ThreadSanitizer, the library is not
 *     helgrind: ...               the program runs under this tool of Valgrind, with the shared
 *     drd: ...                    library
 *
 * The text "nothing" means that there is no report and the exit status is 0.
 */
#ifndef SY_TESTS_TOOLS_H
#define SY_TESTS_TOOLS_H

#include <slabyard/slabyard.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER_BYTES = 60 }; /* not a multiple of 8: the inaccessible part begins within a word */

/* A function that is not inlined, and that reports can name. */
#define IN_REPORT __attribute__((noinline, visibility("default")))

static sy_cache *orders;

static inline void must(int so) {
    if (so) return;
    fputs("the test program is wrong\n", stderr);
    exit(1);
}

static inline void open_orders(void) {
    orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = ORDER_BYTES});
    must(orders != NULL);
}

volatile char sink;

/* Each of these functions ends with a write. Otherwise its last call could be a jump (a tail call),
 * and the function would be missing in the stack. */

IN_REPORT char *make_order(void);
IN_REPORT void drop_order(char *order);
IN_REPORT void read_order(const char *order, int at);
IN_REPORT void write_order(char *order, int at);

char *make_order(void) {
    char *order = sy_cache_alloc(orders);
    must(order != NULL);
    return order;
}

void drop_order(char *order) {
    sy_cache_free(orders, order);
    sink = 0;
}

void read_order(const char *order, int at) {
    sink = *(const volatile char *)(order + at);
    sink = 0;
}

void write_order(char *order, int at) {
    *(volatile char *)(order + at) = 1;
    sink = 0;
}

#endif
