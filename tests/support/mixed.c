/*
 * mixed.c: has slabs of the general heap converted into mixed units at every chance.
 */
#include "cache/mixed.h"

__attribute__((constructor)) static void mix(void) { sy_mixed_least = 0; }
