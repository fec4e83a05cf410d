/*
 * system.h: replaces os/ in the models.
 */
#ifndef MODEL_SYSTEM_H
#define MODEL_SYSTEM_H

#include <slabyard/base.h>
#include <stddef.h>

#include "model.h"

/* Here the thread's number finds its own data, because GenMC has thread-local variables of simple
 * types only. This turns their declarations into declarations of functions. */
#undef SY_TLS
#define SY_TLS
#define sy_lock_self    (*model_lock_self())
#define sy_callback_now (*model_callback_now())
#include "debug/callback.h"
#include "os/lock.h"
#undef SY_TLS
#define SY_TLS __thread

#include "os/os.h"
#include "os/pages.h"

sy_lock_holder *model_lock_self(void) {
    static sy_lock_holder selves[MODEL_THREADS];
    return &selves[model_number];
}

/* ---- detectors of races: there is none ---- */

uint8_t sy_race_detector;

void sy_race_tell_before(const void *where) { (void)where; }

void sy_race_tell_after(const void *where) { (void)where; }

/* ---- calls of the program's functions ---- */

sy_callback_note *model_callback_now(void) {
    static sy_callback_note now[MODEL_THREADS];
    return &now[model_number];
}

/* ---- memory ---- */

#ifndef MODEL_PAGE
#    define MODEL_PAGE 4096
#endif

size_t sy_os_page_size(void) { return MODEL_PAGE; }

int sy_os_huge(void *start, size_t bytes, bool wanted) {
    return (void)start, (void)bytes, (void)wanted, 0;
}

int sy_os_populate(void *start, size_t bytes) { return (void)start, (void)bytes, 0; }

#endif
