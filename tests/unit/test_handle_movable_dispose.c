/*
 * test_handle_movable_dispose.c: test_handle_dispose.c with objects that move.
 */
#include "support/movable.h"

#include "test_handle_dispose.c"
#include <cmocka.h>
