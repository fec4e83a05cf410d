/*
 * pace.c: how far apart passes by age are.
 */
#include "reclaim/pace.h"

enum {
    EARLY_LEAST = 8 << 20, /* bytes used again that matter: 2,048 page faults, some milliseconds, */
    EARLY_SHARE = 4,       /* and one part in so many of the bytes returned */
    CALM_PASSES = 60,      /* without memory used again early: then passes are more frequent */
    FALL_LEAST = 2 << 20,  /* memory falls if passes return so many bytes in a decay time, */
    FALL_SHARE = 32,       /* and one part in so many of the memory in use, */
    FALL_EARLY_SHARE = 16, /* while at most one part in so many of it is used again early */
    FALLING_PASSES = 2,    /* with falling memory: then passes are more frequent */
};

void sy_pace_note(sy_pace *pace, size_t returned) {
    pace->returned += returned;
    pace->last = returned;
}

/* Whether the last pass returned much memory, for the time since the one before it. */
static bool much_was_returned(const sy_pace *pace, int stretch, size_t used) {
    size_t share = used / FALL_SHARE, much = share > FALL_LEAST ? share : FALL_LEAST;
    return pace->last >= sy_stretched(much, stretch < 0 ? stretch : 0);
}

bool sy_pace_adapt(sy_pace *pace, int *stretch, size_t early, size_t used) {
    int now = *stretch;
    bool too_early = early >= EARLY_LEAST && early > pace->returned / EARLY_SHARE;
    bool falls = much_was_returned(pace, now, used) && early <= pace->returned / FALL_EARLY_SHARE;
    bool marks_end = too_early || ++pace->marked >= 1u << (SY_STRETCH_MOST - now);
    if (marks_end) pace->returned = pace->marked = 0;
    pace->calm = too_early ? 0 : pace->calm + 1;
    pace->falling = falls ? pace->falling + 1 : 0;
    if (too_early && now < 0) now = 0;
    if (too_early && now < SY_STRETCH_MOST) now++;
    if (pace->falling >= FALLING_PASSES && now > SY_STRETCH_LEAST) now--;
    if (!falls && now < 0) now++;
    if (pace->calm >= CALM_PASSES && now > 0) {
        now--;
        pace->calm = 0;
    }
    *stretch = now;
    return marks_end;
}
