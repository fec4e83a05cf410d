/*
 * test_handle_movable.c: test_handle.c with objects that move.
 */
#include "support/movable.h"

#include "test_handle.c"
#include <cmocka.h>
