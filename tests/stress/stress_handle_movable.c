/*
 * stress_handle_movable.c: stress_handle.c with objects that move between the steps of threads.
 */
#define MOVABLE_BETWEEN_STEPS
#include "support/movable.h"

#include "stress_handle.c"
