/*
 * pace.h: how far apart passes by age are. Pure functions of what the passes returned and of what
 * was used again.
 *
 * Used by reclaim.c.
 */
#ifndef SY_RECLAIM_PACE_H
#define SY_RECLAIM_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Passes by age are 2^stretch decay times apart. */
enum { SY_STRETCH_MOST = 2, SY_STRETCH_LEAST = -2 };

/* Zero at first. */
typedef struct sy_pace {
    size_t returned;  /* bytes, by passes by age since the marks were ended (chunk.h) */
    size_t last;      /* bytes, by the last pass by age */
    unsigned calm;    /* number of passes since memory was returned too early */
    unsigned marked;  /* number of passes since the marks were ended */
    unsigned falling; /* number of the last passes in which memory fell */
} sy_pace;

/* A time, or what is used in it, that is stretched: `value` times 2^by. */
static inline uint64_t sy_stretched(uint64_t value, int by) {
    return by < 0 ? value >> -by : value << by;
}

/* Called after each pass by age, which returned so many bytes. */
void sy_pace_note(sy_pace *pace, size_t returned);

/*
 * Called before each pass by age: sets *stretch anew. `early`: the bytes that were returned and
 * used again since the marks were ended; `used`: the bytes in use. Returns whether the marks end
 * now.
 *
 * If the program soon used again much of the memory that passes had returned, passes become half as
 * frequent; if that has not happened for some passes, twice as frequent. So a program that uses the
 * same memory every second does not get it anew each time, and memory that is not needed again goes
 * early. "Soon" is within 2^SY_STRETCH_MOST decay times.
 *
 * If the last passes returned much, and hardly any of it was used again, the program's memory
 * falls: passes become twice as frequent, so that resident memory follows, whatever was used again
 * earlier. After each pass that
 * returned less, they become half as frequent, until they are a decay time apart again.
 */
bool sy_pace_adapt(sy_pace *pace, int *stretch, size_t early, size_t used);

#endif
