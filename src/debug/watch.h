/*
 * watch.h: checks the objects of one cache or pool.
 *
 * Each slot of a watched slab has a record, out of the program's reach. It holds the state of the
 * object, the size asked for, and, with audit, the stacks of its allocation and its free:
 *
 *     FRESH --taken--> TAKEN --given--> LIVE --claimed--> FREEING --filled--> FREE --taken--> TAKEN
 *       ^                                        (one thread wins)             |
 *       +------------------------ its memory was released ---------------------+
 *
 *     slot:  | left zone | object: asked for | rest | right zone |        zones: `zone` bytes each
 *                        ^ object            ^ size ^ watch->size
 *
 * The zone behind an object begins where the size asked for ends. A free object is filled with
 * SY_PATTERN_FREE. The zones have a pattern of the cache's own, which is random. The functions work
 * on objects and records that the caller passes. The caller decides where these lie, and must hold
 * no lock.
 *
 * With SY_TOLD, a tool is informed (tools.h): a live object is shown to the program, `size` bytes
 * of it. The rest of its slot, and free slots, are hidden.
 *
 * Above: pool/, cache/, guard.c. Below: access.h, fault.h, stack.h, options.h, tools.h.
 */
#ifndef SY_DEBUG_WATCH_H
#define SY_DEBUG_WATCH_H

#include <slabyard/checks.h>
#include <slabyard/fault.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/flag.h"

typedef enum sy_object_state {
    SY_OBJECT_FRESH, /* never allocated, or its memory was released */
    SY_OBJECT_TAKEN,
    SY_OBJECT_LIVE,
    SY_OBJECT_FREEING,
    SY_OBJECT_FREE,
} sy_object_state;

/* When, where and by which thread an object was allocated or freed. */
typedef struct sy_stamp {
    uint64_t time;  /* of sy_os_now; 0: not recorded */
    uint32_t stack; /* number of a stack (stack.h) */
    uint32_t thread;
} sy_stamp;

typedef struct sy_record {
    _Atomic uint32_t word; /* the state, and above it a count of its changes */
    uint32_t tag : 8;      /* of the allocation (audit.h) */
    uint32_t scope : 24;   /* of the allocation, with audit: sy_watch_scope */
    _Atomic size_t size;   /* bytes asked for */
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

/* The data about a live object. */
typedef struct sy_live {
    size_t size;    /* asked for */
    uint32_t scope; /* as in the record */
    sy_stamp allocated;
} sy_live;

/* The number of the scope that this thread allocates in (heap/scope.h), which records keep; 0: in
 * none. */
enum { SY_WATCH_SCOPES = 1 << 24 };
extern SY_HIDDEN SY_TLS uint32_t sy_watch_scope;

/* Returns false if the object is not live. Other threads may free and reallocate it meanwhile. */
bool sy_record_live(const sy_record *record, sy_live *live);

typedef struct sy_history sy_history;

typedef struct sy_watch {
    const char *name;
    void *owner;     /* the cache, for code that finds the watch by an object; not used here */
    size_t size;     /* bytes of an object at most */
    unsigned checks; /* SY_CHECKED and other flags of checks */
    uint32_t zone;   /* bytes before and behind each object; 0: none */
    uint64_t pattern;
    sy_history *history; /* NULL: no history is kept */
    /* The quarantine: freed items in no order. Under the owner's lock. */
    uintptr_t *waiting;
    uint32_t waiting_count, waiting_max;
    uint64_t random;
} sy_watch;

/* The flags for which objects, slabs or addresses have to be examined. */
enum { SY_WATCH_FLAGS = SY_CHECKED | SY_EDGES | SY_GUARD | SY_ZERO };

/* Flags that the option `tools` adds; configurations cannot have them. Both include SY_CHECKED. */
enum {
    SY_TOLD = 1 << 29,   /* the tool that is present is informed about slabs and objects */
    SY_PASSED = 1 << 30, /* objects are blocks of the C library's malloc; no other check */
};

/* Returns a configuration's flags with those that the options add for a cache or pool of this name,
 * and all flags that these include. The option `tools` is left out. */
unsigned sy_watch_untold(unsigned flags, const char *name);

/* As sy_watch_untold, with what the option `tools` adds. `passable`: the result may be SY_PASSED,
 * which removes all other flags of checks. */
unsigned sy_watch_checks(unsigned flags, const char *name, bool passable);

/* Whether options, or a tool, have objects of some caches checked, guarded, or passed on. */
bool sy_watch_changes_any(void);

/* Whether a cache that is created now, and may be SY_PASSED, would be. */
bool sy_watch_passes(void);

/* Bytes of each zone for these flags. */
size_t sy_watch_zone(unsigned checks);

/* Begins to watch. `name` must stay valid. Returns 0, or -1 with ENOMEM. */
int sy_watch_open(sy_watch *watch, const char *name, size_t size, unsigned checks);
void sy_watch_close(sy_watch *watch);

/* A verification when the process ends. */
typedef struct sy_exit_check {
    void (*verify)(void);
    sy_flag registered;
} sy_exit_check;

/* From now on `check->verify` is called when the process ends by exit() or by a return from main().
 * It has to look at the option `exit-check` itself. Returns 0, or -1 with ENOMEM. Any thread may
 * call this, any number of times. */
int sy_watch_at_exit(sy_exit_check *check);

/* ---- an object's life ---- */

/* A slot was taken for an allocation. Verifies it if it was free (SY_FAULT_WRITE_AFTER_FREE). */
void sy_watch_taken(const sy_watch *watch, sy_record *record, void *object);

/* With SY_TOLD: shows `size` bytes of the object to the program, before it is constructed. */
void sy_watch_show(const sy_watch *watch, sy_record *record, const void *object, size_t size);

/* The object goes to the program, for `size` bytes. `built`: it keeps its constructed content. */
void sy_watch_given(const sy_watch *watch, sy_record *record, void *object, size_t size,
                    bool built);

/* The program frees the object. Returns true in one caller. If the object is not live, or `told`
 * (SIZE_MAX: size not given) is not its size, raises the fault and returns false. Damage in its
 * zones is raised too. */
bool sy_watch_claim(const sy_watch *watch, sy_record *record, void *object, size_t told);
/* sy_watch_claim in two parts, for callers that hold a lock during the first: try_claim tells
 * whether the object was live and is now the caller's to free; claimed does the rest, without the
 * lock. */
bool sy_watch_try_claim(sy_record *record);
void sy_watch_claimed(const sy_watch *watch, sy_record *record, const void *object);

/* The object is free now: it is filled if a flag asks for it, and hidden. */
void sy_watch_fill(const sy_watch *watch, sy_record *record, void *object);

/* The slot's memory is released, or the object did not reach the program after all. A free object
 * is verified; a live or taken one is hidden. */
void sy_watch_forget(const sy_watch *watch, sy_record *record, void *object);

/* Whether the object is damaged at present, and how. It may be in use. */
bool sy_watch_look(const sy_watch *watch, const sy_record *record, const void *object,
                   sy_fault *fault);

/* Adds to a fault what the record knows: the object's size and stacks. */
void sy_watch_describe(const sy_record *record, sy_fault *fault);

/* Raises a fault about an object, with the data of its record, which may be NULL. */
void sy_watch_raise(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                    const void *address, const void *object);

/* ---- quarantine, under the owner's lock ---- */

/* Puts `item` into the quarantine. If it is full, returns true with an item to free in *out. */
bool sy_watch_wait(sy_watch *watch, uintptr_t item, uintptr_t *out);

/* Takes an item out of the quarantine. Returns false if it is empty. */
bool sy_watch_next(sy_watch *watch, uintptr_t *out);

/* ---- patterns ---- */

/* Fills the edge of a slab; examines whether it is unchanged. */
void sy_watch_lay(const sy_watch *watch, void *start, size_t bytes);
bool sy_watch_look_at_edge(const sy_watch *watch, const void *start, size_t bytes, sy_fault *fault);

/* ---- audit ---- */

/* A stamp of this moment and place; all zero without audit. */
sy_stamp sy_stamp_here(const sy_watch *watch);

/* The stamp in the form that the program gets, with its age at `now`. What is told together has one
 * `now`, from before any stack is looked up, which takes long. */
sy_trace sy_stamp_trace(const sy_stamp *stamp, uint64_t now);

#endif
