/*
 * watch.h: what is checked of one cache or pool, object by object.
 *
 * Beside each slot of a watched slab there is a record, out of the program's reach. It says whether
 * the object is live, how large it was asked to be, and, with audit, who allocated and freed it:
 *
 *     FRESH --taken--> TAKEN --given--> LIVE --claimed--> FREEING --filled--> FREE --taken--> TAKEN
 *       ^                                        (one thread wins)             |
 *       +------------------------ its memory was given back -------------------+
 *
 *     slot:  | left zone | object: asked for | rest | right zone |        zones: `zone` bytes each
 *                        ^ object            ^ size ^ watch->size
 *
 * The zone behind an object begins where the size asked for ends. A free object is full of
 * SY_PATTERN_FREE; a zone has the pattern of its cache, which nobody can foresee. All functions
 * here work on memory and records that the caller gives; where they lie is his affair, and he holds
 * no lock.
 *
 * With SY_TOLD a tool knows of all this (tools.h): a live object is shown to the program, `size`
 * bytes of it, and the rest of its slot, like a free slot, is hidden.
 *
 * Above: pool/, cache/, guard.c. Below: access.h, report.h, stack.h, options.h, tools.h.
 */
#ifndef SY_WATCH_WATCH_H
#define SY_WATCH_WATCH_H

#include <slabyard/checks.h>
#include <slabyard/fault.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sy_object_state {
    SY_OBJECT_FRESH, /* never given out, or its memory was given back */
    SY_OBJECT_TAKEN,
    SY_OBJECT_LIVE,
    SY_OBJECT_FREEING,
    SY_OBJECT_FREE,
} sy_object_state;

/* Somebody did something. */
typedef struct sy_stamp {
    uint64_t time;  /* of sy_os_now; 0: not noted */
    uint32_t stack; /* of stack.h */
    uint32_t thread;
} sy_stamp;

typedef struct sy_record {
    _Atomic uint32_t word; /* the state, and above it a count of its changes */
    uint32_t tag;          /* of audit.h, at its allocation */
    _Atomic size_t size;   /* asked for, bytes */
    sy_stamp allocated, freed;
} sy_record;

enum { SY_OBJECT_STATES = 8 };

static inline sy_object_state sy_record_state(const sy_record *record) {
    return (sy_object_state)(atomic_load_explicit(&record->word, memory_order_acquire) %
                             SY_OBJECT_STATES);
}

static inline size_t sy_record_size(const sy_record *record) {
    return atomic_load_explicit(&record->size, memory_order_relaxed);
}

/* What is known of a live object. */
typedef struct sy_live {
    size_t size; /* asked for */
    sy_stamp allocated;
} sy_live;

/* False if it is not live. Others may free it, and allocate it anew, meanwhile. */
bool sy_record_live(const sy_record *record, sy_live *live);

typedef struct sy_history sy_history;

typedef struct sy_watch {
    const char *name;
    void *owner;     /* the cache, for who finds it by an object; its affair */
    size_t size;     /* bytes of an object at most */
    unsigned checks; /* SY_CHECKED and its kin */
    uint32_t zone;   /* bytes before and behind; 0: none */
    uint64_t pattern;
    sy_history *history; /* NULL: none is kept */
    /* Quarantine: freed items in no order. Under the owner's lock. */
    uintptr_t *waiting;
    uint32_t waiting_count, waiting_max;
    uint64_t random;
} sy_watch;

/* Those for which objects, slabs or addresses have to be looked at. */
enum { SY_WATCH_FLAGS = SY_CHECKED | SY_EDGES | SY_GUARD | SY_ZERO };

/* What the option `tools` adds; no flags of configurations. Both bring SY_CHECKED. */
enum {
    SY_TOLD = 1 << 29,   /* the tool that is present is told of slabs and objects */
    SY_PASSED = 1 << 30, /* each object is a block of the C library's; no other check is made */
};

/* The flags of a configuration and what the options add for a cache or pool of this name, with what
 * each brings along, whatever tools are to be told. */
unsigned sy_watch_untold(unsigned flags, const char *name);

/* The same, and what the option `tools` adds. `passable`: it may be SY_PASSED, with which all other
 * flags of checks go. */
unsigned sy_watch_checks(unsigned flags, const char *name, bool passable);

/* Whether caches that are made now and may be SY_PASSED are. */
bool sy_watch_passes(void);

/* Bytes of each zone that these checks want. */
size_t sy_watch_zone(unsigned checks);

/* Begins to watch; `name` stays where it is. 0, or -1 with ENOMEM. */
int sy_watch_open(sy_watch *watch, const char *name, size_t size, unsigned checks);
void sy_watch_close(sy_watch *watch);

/* What is to be verified once more when the process ends. */
typedef struct sy_exit_check {
    void (*verify)(void);
    _Atomic bool registered;
} sy_exit_check;

/* From now on `check->verify` is called when the process ends by exit() or from main(). It asks
 * whether the option `exit-check` wants it. 0, or -1 with ENOMEM. Any thread, any number of times.
 */
int sy_watch_at_exit(sy_exit_check *check);

/* ---- an object's life ---- */

/* A slot was taken for an allocation: what was free is verified (SY_FAULT_WRITE_AFTER_FREE). */
void sy_watch_taken(const sy_watch *watch, sy_record *record, void *object);

/* With SY_TOLD: it is shown, `size` bytes of it; before it is constructed. */
void sy_watch_show(const sy_watch *watch, sy_record *record, const void *object, size_t size);

/* It is given to the program, for `size` bytes; `built`: it is constructed, and stays as it is. */
void sy_watch_given(const sy_watch *watch, sy_record *record, void *object, size_t size,
                    bool built);

/* It comes back: true for one caller. False, with the fault raised, if it is not live or `told` (a
 * size, SIZE_MAX: not said) is not the size. What its zones have suffered is raised too. */
bool sy_watch_claim(const sy_watch *watch, sy_record *record, void *object, size_t told);
/* The same in two parts, for callers that hold a lock in the first: whether it is live and now the
 * caller's, and what is done then. */
bool sy_watch_try_claim(sy_record *record);
void sy_watch_claimed(const sy_watch *watch, sy_record *record, const void *object);

/* It is free now, filled if that is wanted, and hidden. */
void sy_watch_fill(const sy_watch *watch, sy_record *record, void *object);

/* Its memory goes, or it was not given to the program after all: what is free is verified, what is
 * not is hidden. */
void sy_watch_forget(const sy_watch *watch, sy_record *record, void *object);

/* Whether something is wrong with it at present, and what. It may be in use. */
bool sy_watch_look(const sy_watch *watch, const sy_record *record, const void *object,
                   sy_fault *fault);

/* Adds what a record knows of its object, who had it and how large it is. */
void sy_watch_describe(const sy_record *record, sy_fault *fault);

/* Raises a fault about an object, with what its record knows; record may be NULL. */
void sy_watch_raise(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                    const void *address, const void *object);

/* Tells at the end of a tool's report whose slot `address` lies in, and who had the object. */
void sy_watch_explain(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object);

/* ---- quarantine, under the owner's lock ---- */

/* Puts `item` among those that wait. True with one that has waited in *out, if they are too many.
 */
bool sy_watch_wait(sy_watch *watch, uintptr_t item, uintptr_t *out);

/* Takes one that waits; false: there is none. */
bool sy_watch_next(sy_watch *watch, uintptr_t *out);

/* ---- patterns ---- */

/* Fills the edge of a slab; looks whether it is as it was. */
void sy_watch_lay(const sy_watch *watch, void *start, size_t bytes);
bool sy_watch_look_at_edge(const sy_watch *watch, const void *start, size_t bytes, sy_fault *fault);

/* ---- audit ---- */

/* Now, here; zeroes without audit. */
sy_stamp sy_stamp_here(const sy_watch *watch);

/* What the program is told of it. */
sy_trace sy_stamp_trace(const sy_stamp *stamp);

#endif
