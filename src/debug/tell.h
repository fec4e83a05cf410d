/*
 * tell.h: how every layer tells the user what was found: through one table of functions. It is that
 * of report/, which writes whole reports. A library that is built without reports has the one in
 * tell.c: it writes one line, so that no process is ended without a word.
 *
 * Nothing here allocates. Callers hold no lock, except as said. Below: os/.
 */
#ifndef SY_DEBUG_TELL_H
#define SY_DEBUG_TELL_H

#include <slabyard/base.h>
#include <slabyard/fault.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sy_cache;
struct sy_callee;

typedef struct sy_teller {
    /* A misuse. False: this thread is telling something already. */
    bool (*fault)(const sy_fault *fault);
    /* A function of the program was left, in the way that `how` says; `next` says what to do.
     * False: as above. */
    bool (*callback)(const struct sy_callee *callee, const char *how, const char *next);
    /* A line, at once, even while this thread tells something. The caller may hold locks, except
     * that of the options. errno is kept. */
    void (*line)(const char *line, size_t bytes);
    /* A cache, or the separate heap that the cache belongs to, is about to be destroyed, or cannot
     * be because it has live objects. errno is kept. */
    void (*leaks)(struct sy_cache *cache);
    /* Which code allocated what survives the scope of this number (watch.h). errno is kept. */
    void (*survivors)(uint32_t scope);
    /* Writes the account of memory to where the option `stats-file` says. errno is kept. */
    void (*account)(void);
    /* Adds what lies at an address to the report of a tool (tools.h). */
    void (*address)(uintptr_t address);
} sy_teller;

/* Defined in parts.c. */
extern SY_HIDDEN const sy_teller *const sy_tell;

extern SY_HIDDEN const sy_teller sy_tell_lines;

#endif
