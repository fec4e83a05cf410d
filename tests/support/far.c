/*
 * far.c: places the map's window where no memory lies. So all objects of the program lie outside of
 * it, as those of a program with more than 64 GiB do.
 */
#include "chunk/map.h"

__attribute__((constructor)) static void place_far(void) { sy_map_place(SY_ADDRESS_MAX / 128 + 1); }
