/*
 * cache.h: struct sy_cache, and the functions that the files of cache/ share with each other, with
 * heap/ (size classes are caches) and with reclaim/.
 *
 * A cache is a client of the magazine layer: refill takes slots out of slabs, flush puts them back.
 * Its slabs are runs of units from chunk/.
 *
 *     slots in all slabs == free in slabs + out
 *     out + in mixed units + guarded == live + in magazines
 */
#ifndef SY_CACHE_CACHE_H
#define SY_CACHE_CACHE_H

#include <slabyard/cache.h>
#include <slabyard/handle.h>
#include <slabyard/stats.h>

#include <slabyard/fault.h>

#include "cache/blocks.h"
#include "cache/slab.h"
#include "chunk/quota.h"
#include "magazine/client.h"
#include "os/lock.h"
#include "os/start.h"

/* Constructor and destructor that are called at each allocation and each free. Caches that
 * overwrite free objects have them; other caches construct a slot once. */
typedef struct sy_rebuilds {
    int (*construct)(void *object, void *arg); /* NULL: no function is called */
    void (*destruct)(void *object, void *arg);
} sy_rebuilds;

typedef struct sy_kind sy_kind; /* kind.h */

typedef struct sy_cache_counts {
    uint64_t moves, moves_put_off, move_bytes; /* compact.c */
    uint64_t refills, flushes, slabs_made, slabs_released, constructed, destructed;
} sy_cache_counts;

struct sy_cache {
    union { /* what the inline fast paths read */
        struct sy_cache_head head;
        struct sy_handle_head names; /* with SY_HANDLES */
    };
    sy_client client;
    /* Fixed at creation. */
    const sy_kind *kind;  /* the functions of the slow paths, chosen by the flags; */
    const sy_kind *basic; /* and those for objects that are not guarded, or below the handles */
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size;
    sy_layout layout;
    int (*construct)(void *object, void *arg);
    void (*destruct)(void *object, void *arg);
    sy_rebuilds rebuilds; /* then the two above are NULL */
    void (*dispose)(void *object, void *arg);
    void (*relocate)(void *from, void *to, void *arg);
    void *arg;
    struct sy_watch *watch; /* NULL: neither checked nor watched */
    sy_memory *memory;      /* its slabs are taken from here */
    sy_quota *quota;        /* its slabs count for this quota; NULL: none */
    sy_cache *of_quota;     /* the next cache of a heap */
    size_t limit;           /* in objects; SIZE_MAX: none */
    unsigned flags;
    unsigned class_number; /* in the map: the client's number for a class of the heap, else 0 */

    size_t empties_least; /* empty slabs that every flush keeps */
    size_t empties_batch; /* most empty slabs beyond those worth keeping, to be released together */

    _Atomic(struct sy_try_free_call *) tries; /* calls of sy_cache_try_free at work */
    _Atomic size_t retired;                   /* slots whose generations of handles are used up */
    _Atomic bool profiled;                    /* an object was noted in the profile, or counted */
    _Atomic uint64_t limits_hit; /* allocations refused by the cache's limit or a quota */
    /* Of slabs that stand *apart*, for sampled objects: they have no class in the map, so each free
     * of their objects is a call. NULL: there were none. Only classes of the heap have them. */
    _Atomic(sy_bins *) apart;

    sy_lock lock; /* guards all below, and the slabs' descriptors */
    sy_bins bins;
    sy_slab *slabs, *last_slab; /* all slabs; trims look at the first and move it to the end */
    size_t slab_count;
    unsigned trims;         /* whole trims at work; trims by age discard no pages meanwhile */
    uint64_t seen;          /* refills and flushes when the last trim by age looked */
    bool idle;              /* no refill or flush between the last two trims by age */
    size_t out;             /* slots outside the slabs */
    size_t guarded;         /* live objects in no slab (guarded.h) */
    size_t passed;          /* live objects that are blocks of the C library, with SY_PASSED */
    size_t empties_max;     /* empty slabs kept for a reserve, beyond those kept in any case */
    _Atomic size_t promise; /* allocations are promised until so many slots of the cache's own slabs
                             * are out; 0: no promise. Written under the lock */
    bool no_slab_for_slack; /* no slab could be added for magazines beside the promise */
    sy_blocks blocks;       /* of ordinals, with SY_MOVABLE */
    uint32_t next_colour;
    _Atomic uint32_t moving; /* of `out`, what a mover has taken for its objects (compact.c) */
    uint64_t random;         /* with SY_RANDOM */
    sy_cache_counts counts;
    bool torn; /* in the child of a fork: a thread of the parent was changing the fields above */
};

_Static_assert(offsetof(struct sy_cache_head, loaded_offset) == 40, "where objects do not begin");
_Static_assert(sizeof(struct sy_cache_head) == 64, "a line of its own: it is hardly ever written");
_Static_assert(sizeof(struct sy_handle_head) == sizeof(struct sy_cache_head) &&
                   offsetof(struct sy_handle_head, loaded_offset) ==
                       offsetof(struct sy_cache_head, loaded_offset),
               "sy_cache_alloc finds its loaded slot in either");

/* Slots that are out of their slabs, but for a mover's. The lock is held. */
static inline size_t sy_cache_out(const sy_cache *cache) {
    return cache->out - atomic_load_explicit(&cache->moving, memory_order_relaxed);
}

/* How many more objects the cache's limit allows, in slabs, guarded or passed on. Retired slots are
 * out of their slabs, but are no objects. The lock is held. */
static inline size_t sy_cache_left(const sy_cache *cache) {
    return cache->limit - cache->guarded - cache->passed -
           (sy_cache_out(cache) - atomic_load_explicit(&cache->retired, memory_order_relaxed));
}

/* Whether the bins, which slabs of the cache are in, are those of a view. */
static inline bool sy_cache_has_view(const sy_cache *cache, const sy_bins *bins) {
    return cache->flags & SY_EPOCHS && bins != &cache->bins;
}

/* ---- cache.c: creation, for the heap's static caches too ---- */

/* Whether a separate heap owns the cache, as one of its size classes. */
static inline bool sy_cache_is_of_heap(const sy_cache *cache) {
    return cache->quota && cache->quota != &sy_quota_process;
}

/* Opens a cache in `cache`, which is zeroed memory; only the quota may be set, if it is not the
 * process's. `number`: the number of its client; 0: any. 0, or -1 as sy_cache_create. */
int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number);
/* Whether sy_cache_open has come to its end for a cache of a size class: its last store says so. */
static inline bool sy_cache_is_open(const sy_cache *class_cache) {
    return class_cache->head.loaded_offset != 0;
}

/* Allocation and free for the heap. The program asks for `size` bytes, at most the cache's size, at
 * `align` or at the cache's alignment if that is less. It frees with the size that it believes the
 * object to have; SIZE_MAX: it names no size. */
enum { SY_MALLOC_ALIGN = 16 }; /* the alignment if the program names none */
void *sy_cache_alloc_sized(sy_cache *cache, size_t size, size_t align);
void sy_cache_free_sized(sy_cache *cache, void *object, size_t size);
/* Allocates an object of a cache without flags that lies in one of its slabs, not in a mixed unit:
 * it has the cache's alignment. NULL with ENOMEM. */
void *sy_cache_alloc_in_slab(sy_cache *cache);
/* The same, in a slab apart. It is freed by the cache's flush, and never waits in a magazine. */
void *sy_cache_alloc_apart(sy_cache *cache);
/* Moves a live object of a cache without flags into a free slot of the fullest slab, past the
 * magazines. NULL: there is none, and it stays. */
void *sy_cache_move(sy_cache *cache, void *object);
/* If a profile is taken or the thread counts: counts an object of sy_cache_alloc_in_slab, which no
 * slot has counted, and notes it by its chance. */
void sy_cache_profile_in_slab(sy_cache *cache, size_t size, const void *object);

/* Around a fork, holds the lock of each cache. In the child it forgets the trims and the guarded
 * objects that threads of the parent had begun; if the lock of a cache could not be taken, it
 * rebuilds the cache from its slabs' bitmaps. */
extern SY_HIDDEN const sy_part sy_caches_part;

/* ---- zeroed.c ---- */

/* With SY_ZERO: overwrites an object that is being freed with zeros. If no object of the cache
 * begins there, it does nothing; the caller reports the fault. */
void sy_cache_wipe(const sy_cache *cache, void *object);

/* ---- take.c ---- */

/* Takes an item of the client, for an allocation that found none in this thread's magazines. Slow
 * paths call it in place of sy_client_alloc_rest. False with errno, and the reason is kept. */
bool sy_cache_take_item(sy_cache *cache, uintptr_t *item);

/* Calls of sy_cache_take_item by this thread that ask the client at present. They nest if a
 * constructor allocates. Then no callback of a limit is called. */
extern SY_HIDDEN SY_TLS unsigned sy_cache_asks;

/* ---- refill.c: between magazines and slabs ---- */

/* The client's callbacks for items that are addresses; handle.c has those for ordinals. */
size_t sy_cache_refill(void *cache, uintptr_t *items, size_t count);
void sy_cache_flush(void *cache, uintptr_t *items, size_t count, _Atomic uint32_t *held);

/* Whether allocations are promised (sy_cache_reserve). */
static inline bool sy_cache_has_reserve(const sy_cache *cache) {
    return atomic_load_explicit(&cache->promise, memory_order_relaxed) != 0;
}

/* Whether the magazines of all threads together may hold so many items: the objects that a reserve
 * promised can then be allocated whatever the magazines hold. Adds slabs if need be. (cache.c) */
bool sy_cache_admit(void *cache, size_t items);

/* Fills the account of the client's cache. The client is pinned. False: the client is no cache. */
bool sy_cache_take_account(const sy_client *client, sy_cache_account *account);

/* The cache that has this client; NULL: the client belongs to another layer. */
static inline sy_cache *sy_cache_of_client(const sy_client *client) {
    return client->config.admits == sy_cache_admit ? client->config.owner : NULL;
}

/* Puts a live object back into its slab; false: no live object begins at `address`. If several
 * threads call it for one object at the same time, it returns true to one of them. */
bool sy_cache_put_live(sy_cache *cache, uintptr_t address);

/* Adds a slab to `cache`, in these bins: its own or those of a view. False with ENOMEM. */
bool sy_cache_add_slab(sy_cache *cache, sy_bins *bins);

/* Counts a new slab of so many bytes. No lock is held. */
void sy_caches_note_growth(size_t bytes);
/* Whether new slabs amount to a sixteenth of all memory in use, at least to 1 MiB, since this last
 * was true. Of several threads that ask at the same time one gets true. A turn is requested when
 * the new slabs reach that size. */
bool sy_caches_grew(void);

/* As sy_client_suspend. */
bool sy_cache_suspend(sy_cache *cache, void (*end)(void *arg), void *arg);

/* Destructs the objects constructed in a slab that is in no bin and no list, and releases it. */
void sy_cache_release_slab(sy_cache *cache, sy_slab *slab);

/* The list of slabs. The lock is held. */
void sy_cache_append_slab(sy_cache *cache, sy_slab *slab);
void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab);

/* Takes a slab out of the cache: bins, list and count. The lock is held. */
void sy_cache_unlink_slab(sy_cache *cache, sy_slab *slab);

/* Takes an empty slab of these bins out of the cache, if there are more than `keep`; else NULL. The
 * lock is held. */
sy_slab *sy_cache_unlink_empty(sy_cache *cache, sy_bins *bins, size_t keep);

/* The same for all bins that are no view's: those of the slabs apart keep none. */
sy_slab *sy_cache_unlink_any_empty(sy_cache *cache, size_t keep);
/* Releases the cache's empty slabs, except those that a reserve keeps. Returns whether there were
 * any. */
bool sy_cache_release_empty(sy_cache *cache);

/* The fault of freeing to the cache an address that lies in none of its slabs, but in `slab` or in
 * no slab (NULL). If the slab is being released, all of its objects were free: a double free. */
sy_fault_kind sy_cache_fault_outside(const sy_cache *cache, const sy_slab *slab);

/* Describes the fault of freeing `address`, which lies in `slab` (NULL: in none), to the cache. */
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

/* In the child of a fork, takes the threads of the parent out of their epochs. */
extern SY_HIDDEN const sy_part sy_epochs_part;

/* ---- trim.c ---- */

/*
 * Does one step, bounded in time, of a trim: gives empty slabs to the chunks, and discards pages of
 * other slabs whose slots are all free. False: there is no more to do. *left is SIZE_MAX before the
 * first step, and belongs to this trim. `aged`: it takes only memory unused since the last trim by
 * age, and nothing from a reserve. *bytes grows by the bytes discarded.
 */
bool sy_cache_trim_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes);
/* Does one step of a trim of the empty slabs alone. */
bool sy_cache_release_step(sy_cache *cache, size_t *left, bool aged);
/* Whether a trim of this thread has set the slab aside. */
bool sy_cache_is_aside(const sy_slab *slab);
/* Drains the cache, and does all steps; returns the bytes discarded. */
size_t sy_cache_trim_slabs(sy_cache *cache);
/* Does the rest of a trim: the free memory of chunks, of the directory (`handles`) and of
 * magazines. Returns bytes. */
size_t sy_cache_trim_rest(sy_memory *memory, bool handles);

/* ---- count.c ---- */

/* Bytes of the slabs of a cache. */
size_t sy_cache_slab_bytes(sy_cache *cache);

/* Adds the bytes of slabs that are no slots that are out, and those that were discarded. */
void sy_cache_weigh(sy_cache *cache, size_t *idle, size_t *discarded);

/* Violations of the cache's invariants, 0 when sound. Walks every slab under the lock. */
size_t sy_cache_verify(sy_cache *cache);

#endif
