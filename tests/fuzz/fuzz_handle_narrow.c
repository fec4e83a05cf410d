/*
 * fuzz_handle_narrow.c: fuzz_handle.c with a library in which an ordinal has few generations, so
 * that ordinals often run out of generations and are retired.
 */
#include "fuzz_handle.c"
#include "os/fake.h"
