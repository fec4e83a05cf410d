/*
 * tools.h: what the programs of this folder share: a cache, and functions by whose names a tool's
 * report is judged. Each program's first comment says what has to be in the report, in this order,
 * for each mode that it is run in: "asan: ...; ..." is built with AddressSanitizer, the library
 * without it, "memcheck: ...; ..." is run by Valgrind; with "-malloc" behind the name the option is
 * tools=malloc, else tools=auto. The word "nothing" stands for no report, and an end with 0.
 */
#ifndef SY_TESTS_TOOLS_H
#define SY_TESTS_TOOLS_H

#include <slabyard/slabyard.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER_BYTES = 60 }; /* no multiple of 8: what is hidden begins in the midst of a word */

/* A function that stays one, and that the dynamic linker knows. */
#define IN_REPORT __attribute__((noinline, visibility("default")))

static sy_cache *orders;

static inline void must(int so) {
    if (so) return;
    fputs("the program itself is wrong\n", stderr);
    exit(1);
}

static inline void open_orders(void) {
    orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = ORDER_BYTES});
    must(orders != NULL);
}

volatile char sink;

/* Each ends with a write, so that none is left by a jump, out of sight of stacks. */

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
