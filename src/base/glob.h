/*
 * glob.h: compares a name with a pattern, in which * stands for any text and ? for any one
 * character.
 *
 * Lowest layer: includes no other header of the project.
 */
#ifndef SY_BASE_GLOB_H
#define SY_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern of `length` characters matches `name`. At a mismatch the last * takes one
 * more character and the comparison goes on from there. Earlier ones need not be tried again, since
 * the last * can take any text that an earlier one could. */
static inline bool sy_glob(const char *pattern, size_t length, const char *name) {
    size_t at = 0, star = length; /* the place of the last *; length: none yet */
    const char *resume = name;
    while (*name) {
        if (at < length && pattern[at] == '*') {
            star = at++;
            resume = name;
        } else if (at < length && (pattern[at] == '?' || pattern[at] == *name)) {
            at++;
            name++;
        } else if (star < length) {
            at = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (at < length && pattern[at] == '*') at++;
    return at == length;
}

#endif
