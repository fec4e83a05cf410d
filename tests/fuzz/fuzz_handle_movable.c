/*
 * fuzz_handle_movable.c: fuzz_handle.c with objects that move.
 */
#include "support/movable.h"

#include "fuzz_handle.c"
#include "os/fake.h"
