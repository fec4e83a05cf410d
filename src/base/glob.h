/*
 * glob.h: names with * (any text) and ? (any one character), as in file names.
 *
 * Lowest layer: includes nothing of the project.
 */
#ifndef SY_BASE_GLOB_H
#define SY_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the pattern of `length` characters means `name`. Where it does not fit, the last * takes
 * one character more: that is enough, since what an earlier one could take a later one can too. */
static inline bool sy_glob(const char *pattern, size_t length, const char *name) {
    size_t at = 0, star = length; /* length: there was none */
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
