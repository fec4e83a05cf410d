/*
 * flag.h: a flag that threads exchange: the one that finds it false and makes it true has the turn.
 * A word, because some compilers (gcc before 13 for RISC-V) call a function of another library,
 * libatomic, to exchange a byte.
 *
 * Lowest layer: includes no other header of the project.
 */
#ifndef SY_BASE_FLAG_H
#define SY_BASE_FLAG_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint32_t sy_flag; /* 0 or 1 */

#endif
