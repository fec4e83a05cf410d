/*
 * cache.h: what a cache is, for the files of this layer and for the heap, whose classes are caches.
 *
 * A cache is a client of the magazine layer: refill takes slots out of slabs, flush puts them back.
 * Its slabs are runs of units from chunk/.
 *
 *     slots in all slabs == free in slabs + out;  out + guarded == live + in magazines
 */
#ifndef SY_CACHE_CACHE_H
#define SY_CACHE_CACHE_H

#include <slabyard/cache.h>
#include <slabyard/handle.h>
#include <slabyard/stats.h>

#include <slabyard/fault.h>

#include "cache/slab.h"
#include "chunk/quota.h"
#include "magazine/client.h"
#include "os/lock.h"
#include "os/start.h"

/* What is called for each object at its allocation and its free, not for each slot once: where what
 * is free is overwritten. */
typedef struct sy_rebuilds {
    int (*construct)(void *object, void *arg); /* NULL: nothing is */
    void (*destruct)(void *object, void *arg);
} sy_rebuilds;

typedef struct sy_kind sy_kind; /* kind.h */

typedef struct sy_cache_counts {
    uint64_t refills, flushes, slabs_made, slabs_released, constructed, destructed;
} sy_cache_counts;

struct sy_cache {
    union { /* what the inline fast paths read */
        struct sy_cache_head head;
        struct sy_handle_head names; /* with SY_HANDLES */
    };
    sy_client client;
    /* Fixed at creation. */
    const sy_kind *kind;  /* what the slow paths do, by the flags; */
    const sy_kind *basic; /* and for objects that are not guarded, or under their handles */
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size;
    sy_layout layout;
    int (*construct)(void *object, void *arg);
    void (*destruct)(void *object, void *arg);
    sy_rebuilds rebuilds; /* then the two above are NULL */
    void (*dispose)(void *object, void *arg);
    void *arg;
    struct sy_watch *watch; /* NULL: nothing is watched */
    sy_memory *memory;      /* where its slabs are from */
    sy_quota *quota;        /* which they count for; NULL: none */
    size_t limit;           /* SIZE_MAX: none */
    unsigned flags;
    unsigned class_number; /* in the map: the client's number for a class of the heap, else 0 */

    size_t empties_least; /* empty slabs kept in any case */
    size_t empties_batch; /* and, at most, beyond what is worth keeping, to be released together */

    _Atomic(struct sy_try *) tries; /* of sy_cache_try_free, at work */
    _Atomic size_t retired;         /* slots of which the handles are spent */
    _Atomic uint64_t limits_hit;    /* allocations refused for a limit of whatever owner */

    sy_lock lock; /* guards all below, and the slabs' descriptors */
    sy_bins bins;
    sy_slab *slabs, *last_slab; /* all of them, the one that a trim looked at longest ago first */
    size_t slab_count;
    unsigned trims;         /* whole ones, at work; trims by age wait for them */
    uint64_t seen;          /* refills and flushes, when a trim by age looked */
    bool idle;              /* there were none in between */
    size_t out;             /* slots outside the slabs */
    size_t guarded;         /* live objects in no slab (guarded.h) */
    size_t passed;          /* live objects that are blocks of the C library's, with SY_PASSED */
    size_t empties_max;     /* empty slabs kept beyond the layer's own measure: what was reserved */
    _Atomic size_t promise; /* slots out, of the cache's own slabs, up to which allocations were
                             * promised; 0: none. Written under the lock */
    bool tight;             /* no slab more was to be had for magazines beside the promise */
    uint32_t next_colour;
    uint64_t random; /* with SY_RANDOM */
    sy_cache_counts counts;
    bool torn; /* in the child of a fork: a thread was changing the above, and is not there */
};

_Static_assert(offsetof(struct sy_cache_head, loaded_offset) == 40, "where objects do not begin");
_Static_assert(sizeof(struct sy_cache_head) == 64, "a line of its own: it is hardly ever written");
_Static_assert(sizeof(struct sy_handle_head) == sizeof(struct sy_cache_head) &&
                   offsetof(struct sy_handle_head, loaded_offset) ==
                       offsetof(struct sy_cache_head, loaded_offset),
               "sy_cache_alloc finds its loaded slot in either");

/* Objects that may still come out of the slabs, be guarded, or be passed on; the lock is held. What
 * is retired is out, and no object. */
static inline size_t sy_cache_left(const sy_cache *cache) {
    return cache->limit - cache->guarded - cache->passed -
           (cache->out - atomic_load_explicit(&cache->retired, memory_order_relaxed));
}

/* ---- cache.c: creation, for the heap's static caches too ---- */

/* Opens `cache`, zeroed memory but for the quota, if it is not to be the process's; `number`: of
 * its client, 0: any. 0, or -1 as sy_cache_create. */
int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number);

/* An object of which the program wants `size` bytes of the cache's, at `align` or the cache's own
 * if that is less, and its free with the size that the program says, SIZE_MAX: none; for the heap's
 * doors. */
enum { SY_MALLOC_ALIGN = 16 }; /* what is wanted where none is named */
void *sy_cache_alloc_sized(sy_cache *cache, size_t size, size_t align);
void sy_cache_free_sized(sy_cache *cache, void *object, size_t size);

/* Has `tell` called with each cache that is to be destroyed and may have live objects. Of a heap's
 * caches the heap tells itself. */
void sy_cache_on_destroy(void (*tell)(sy_cache *cache));

/* In the child of a fork no trims of other threads are at work, and what they were guarding is not.
 * A cache whose lock could not be had is made anew from its slabs' bitmaps. */
extern SY_HIDDEN const sy_part sy_caches_part;

/* ---- zeroed.c ---- */

/* With SY_ZERO: an object is freed. What is none of the cache's is left for others to report. */
void sy_cache_wipe(const sy_cache *cache, void *object);

/* ---- refill.c: between magazines and slabs ---- */

/* The client's callbacks, where items are addresses; handle.c has those for ordinals. */
size_t sy_cache_refill(void *cache, uintptr_t *items, size_t count);
void sy_cache_flush(void *cache, uintptr_t *items, size_t count, _Atomic uint32_t *held);

/* Whether the magazines of all threads together may hold so many items: then what was reserved can
 * be had, whatever they hold. */
bool sy_cache_admit(void *cache, size_t items);

/* The cache whose client it is; NULL: the client is of another layer. */
static inline sy_cache *sy_cache_of_client(const sy_client *client) {
    return client->config.admits == sy_cache_admit ? client->config.owner : NULL;
}

/* Puts an object that is live back into its slab. False: it is none. Of calls for one object at the
 * same time one is told true. */
bool sy_cache_put_live(sy_cache *cache, uintptr_t address);

/* A new slab of `cache`, in these bins, its own or a view's; false with ENOMEM. */
bool sy_cache_add_slab(sy_cache *cache, sy_bins *bins);

/* A slab was made of so many bytes. No lock is held. */
void sy_caches_note_growth(size_t bytes);
/* Whether all caches together have made a sixteenth more of slabs, 1 MiB at least, since they had
 * last; of calls at the same time one is told true. A turn is wanted when they have. */
bool sy_caches_grew(void);

/* As sy_client_suspend. */
bool sy_cache_suspend(sy_cache *cache, void (*end)(void *arg), void *arg);

/* Releases a slab that is in no bin and no list, destructing what is constructed in it. */
void sy_cache_release_slab(sy_cache *cache, sy_slab *slab);

/* The list of slabs. The lock is held. */
void sy_cache_append_slab(sy_cache *cache, sy_slab *slab);
void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab);

/* Takes a slab out of the cache: bins, list and count. The lock is held. */
void sy_cache_unlink_slab(sy_cache *cache, sy_slab *slab);

/* Takes an empty slab of these bins out of the cache, if there are more than `keep`; else NULL. The
 * lock is held. */
sy_slab *sy_cache_unlink_empty(sy_cache *cache, sy_bins *bins, size_t keep);

/* The fault of freeing an address to the cache that lies in none of its slabs, but in `slab`, or in
 * none (NULL). In a slab that is being released all objects are free. */
sy_fault_kind sy_cache_fault_outside(const sy_cache *cache, const sy_slab *slab);

/* What is wrong with freeing `address` to the cache; `slab`: where it lies, or NULL. */
sy_fault sy_cache_fault(const sy_cache *cache, sy_fault_kind kind, uintptr_t address,
                        const sy_slab *slab);

/* Calls the destructor for the slots in `slots` (a bitmap). No lock is held. */
void sy_cache_destruct(sy_cache *cache, const sy_slab *slab, const uint64_t *slots);

/* ---- handle.c: caches with SY_HANDLES ---- */

static inline bool sy_cache_has_handles(const sy_cache *cache) { return cache->flags & SY_HANDLES; }

/* The ordinal of an object of the cache, or false with the fault that freeing it would be. */
bool sy_cache_ordinal(const sy_cache *cache, uintptr_t address, uint32_t *ordinal,
                      sy_fault_kind *fault);

/* ---- epoch.c ---- */

/* In the child of a fork other threads are in no epoch. */
extern SY_HIDDEN const sy_part sy_epochs_part;

/* ---- trim.c ---- */

/*
 * Gives empty slabs to the chunks and free pages of the others back, in steps that are bounded in
 * time; false: there is no more. *left is SIZE_MAX before the first, and belongs to this trim.
 * `aged`: only what nobody has used since such a trim looked last, and not what was reserved.
 * *bytes grows by what was discarded.
 */
bool sy_cache_trim_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes);
/* The same for empty slabs alone. */
bool sy_cache_release_step(sy_cache *cache, size_t *left, bool aged);
/* Drains the cache, and does all steps. */
size_t sy_cache_trim_slabs(sy_cache *cache);
/* What is left to do of a trim: what chunks, the library's own tables and magazines have. */
size_t sy_cache_trim_rest(sy_memory *memory, bool handles);

/* ---- count.c ---- */

/* Bytes of the slabs of a cache. */
size_t sy_cache_slab_bytes(sy_cache *cache);

/* Violations of the cache's invariants, 0 when sound. Walks every slab under the lock. */
size_t sy_cache_verify(sy_cache *cache);

#endif
