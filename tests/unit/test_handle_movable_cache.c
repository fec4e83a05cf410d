/*
 * test_handle_movable_cache.c: test_handle_cache.c with objects that move.
 */
#include "support/movable.h"

#include "support/resident.h"
#include "test_handle_cache.c"
#include <cmocka.h>
