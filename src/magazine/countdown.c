/*
 * countdown.c: what a count of allocations begins with, and what its end means. See countdown.h.
 */
#include "magazine/countdown.h"

#include "base/random.h"
#include "debug/interval.h"

int32_t sy_countdown_tag(uint64_t settings) {
    return (int32_t)(1 + sy_random_mix(settings) % SY_COUNTDOWN_TAG);
}

/* The next sample is the allocation with this number, from 1 on; or, if that is too far, there is
 * no sample among the next ones. */
static void begin_count(int32_t *word, int32_t tag, int64_t number, int32_t most) {
    bool samples = number <= most;
    int32_t passing = samples ? (int32_t)number - 1 : most;
    *word = passing * SY_COUNTDOWN_ONE + (samples ? tag : 0);
}

bool sy_countdown_end(int32_t *word, int32_t tag, double chance, int32_t most) {
    if (chance <= 0) tag = 0;
    bool due = tag && (*word & SY_COUNTDOWN_TAG) == tag;
    int64_t number = (int64_t)most + 1;
    if (chance > 0) number = sy_interval_of_chance(chance);
    if (!due && number == 1) {
        due = true;
        number = sy_interval_of_chance(chance);
    } else if (!due) {
        number--;
    }
    begin_count(word, tag, number, most);
    return due;
}
