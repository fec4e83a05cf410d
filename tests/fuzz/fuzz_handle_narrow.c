/*
 * fuzz_handle_narrow.c: the same inputs with a library whose generations are soon spent, so that
 * places retire all the time.
 */
#include "fuzz_handle.c"
#include "os/fake.h"
