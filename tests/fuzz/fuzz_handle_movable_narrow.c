/*
 * fuzz_handle_movable_narrow.c: fuzz_handle_narrow.c with objects that move.
 */
#include "support/movable.h"

#include "fuzz_handle_narrow.c"
#include "os/fake.h"
