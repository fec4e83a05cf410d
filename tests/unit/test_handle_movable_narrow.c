/*
 * test_handle_movable_narrow.c: test_handle_narrow.c with objects that move.
 */
#include "support/movable.h"

#include "test_handle_narrow.c"
#include <cmocka.h>
