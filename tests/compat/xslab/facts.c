/*
 * facts.c: what a program gets from the header of xslab (5ed9bc0 of mivinci/x) besides functions:
 * other headers, macros and types. This program includes no other header first.
 */
#include <x/base/slab.h>

static bool from_stdbool = true;
static ptrdiff_t from_stddef = 1;

#define MACROS(M)              \
    M(XSLAB_DEFAULT_ALIGN, 16) \
    M(XSLAB_DEFAULT_CHUNK_BYTES, 65536)

#define HAS_VALUE(macro, value) _Static_assert((macro) == (value), #macro);
MACROS(HAS_VALUE)

/* The macros of x/base/base.h. */
XDEF_STRUCT(pair) {
    int key;
    int value;
};
XDEF_ENUM(colour){red, green};
XDEF_HANDLE(thing);
XDEF_HANDLE_EXPLICIT(explicit_thing);
XCAPI(int) twice(int number);
XCAPI_INLINE(int) thrice(int number) { return 3 * number; }

int twice(int number) { return 2 * number; }

/* The next include would bring headers that xslab's does not. */
#include "compat/compat.h"

int main(void) {
    pair one = {1, 2};
    colour shade = green;
    thing any = &one;
    explicit_thing none = NULL;
    EXPECT(from_stdbool && from_stddef && any && !none && shade == 1);
    EXPECT(xContainerOf(&one.value, pair, value)->key == 1 && twice(2) + thrice(1) == 7);
    return 0;
}
