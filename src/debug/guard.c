/*
 * guard.c: see guard.h.
 *
 *     region:  | guard | slot 0: a page | guard | slot 1 | ... | slot n - 1 | guard |
 *     slots:   carved into runs up to `fresh`, committed up to `ready`, n in all
 *
 * A run has 1, 2, 4 ... slots, and its length never changes. A run is in one of three states: it is
 * live; it waits in the queue of its length; or one thread is taking or freeing it (TAKEN,
 * FREEING), and makes the system calls for it without the lock. The lock guards the queues, the
 * counts, `fresh` and `ready`. The state in a run's record decides which thread may free it.
 *
 * Slots held by live objects do not come back while these live, and a program may keep each object
 * that is sampled. So `ready` grows until more than half of the slots wait. Where `ready` has
 * reached n, the spare slots, a quarter of n, go to few objects of each site:
 *
 *     |<------ held: live, taken ------>|<-------- left -------->|
 *     |<------- to any site ------->|<- spare: to sites that hold less than left / 64 ->|
 *
 * Sites whose objects live long soon hold more than this. An object that lives shortly needs a slot
 * for a moment only, so its site holds few. (A site is a stack that allocates.)
 */
#include "debug/guard.h"

#include <errno.h>

#include "base/bits.h"
#include "base/fork.h"
#include "base/shape.h"
#include "debug/access.h"
#include "debug/fault.h"
#include "debug/interval.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/pages.h"

enum {
    NAME_BYTES = 32,    /* of a cache's name, copied for reports after the cache is gone */
    ORDER_MAX = 7,      /* runs of up to 128 slots: almost 1 MiB of pages */
    ORDER_NONE,         /* no run is long enough */
    STEP_SLOTS = 256,   /* slots committed at a time: 2 MiB, the memory of one page table */
    SPARE_OF_STEP = 64, /* of each step, slots that are left to sites that hold few */
    SPARE_SHARES = 64,  /* sites that may hold a share of the slots that are left */
    SITES = 1 << 10,    /* counts of sites; two sites may share one */
    ALL_SLOTS =         /* slots for guard=all: 8 GiB, and 128 MiB of records, if all are used; */
    UINTPTR_MAX > UINT32_MAX ? 1 << 20 : 32 << 10, /* with 32 bits 256 MiB and 4 MiB */
    SPLIT_SLOTS = 8 << 10, /* slots where guards split mappings: a quarter of Linux's 65,530 */
    EVERY = 1000,          /* one allocation in so many, if only SY_GUARD asks for guards */
};
static const uint32_t NONE = UINT32_MAX;

_Static_assert(STEP_SLOTS >= 2 << (ORDER_MAX - 1), "one step has room for the longest run");

/* The record of a run's first slot. Of the other slots' records only `head` is used. */
typedef struct sy_guarded {
    sy_record record;
    _Atomic(sy_watch *) watch; /* of the last object; NULL: none, or its cache is gone */
    _Atomic uintptr_t object;  /* start of the last object; 0: there was none */
    uint32_t head;             /* number of the run's first slot */
    uint32_t next;             /* next run in the queue */
    uint32_t order;            /* the run has 1 << order slots */
    uint32_t site;             /* index of its count, while the run is no free one */
    size_t object_size;        /* bytes of the cache's objects; this object may be smaller */
    char name[NAME_BYTES];
} sy_guarded;

/* A queue of runs that wait, the one freed longest ago first. */
typedef struct sy_queue {
    uint32_t first, last;
} sy_queue;

_Atomic uintptr_t sy_guard_start;
_Atomic size_t sy_guard_bytes;
SY_TLS int64_t sy_guard_left;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_GUARD);
/* Written once, under the lock. */
static sy_guarded *slots;
static uint32_t slot_count;
static _Atomic uint32_t ready; /* written under the lock */
/* Guarded by the lock. */
static bool growing;            /* a thread is committing more slots */
static SY_TLS bool own_growing; /* this thread is */
static bool left_side;          /* the next object lies at the left end of its run */
static sy_queue queues[ORDER_NONE];
static uint32_t waiting;          /* slots of the runs in the queues */
static uint32_t site_runs[SITES]; /* runs of each site that do not wait */
static _Atomic uint32_t fresh;    /* also read without the lock: slots below it belong to runs */
static _Atomic uint64_t left_out; /* objects that were to be guarded and found no run */

/* ---- chance ---- */

static SY_TLS bool counting; /* an interval has begun */

static int64_t next_interval(void) {
    uint32_t every = atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed);
    return sy_interval_next(every ? every : EVERY);
}

static SY_COLD bool begin_interval(void) {
    if (!counting) {
        counting = true;
        sy_guard_left = next_interval() - 1;
        if (sy_guard_left > 0) return false;
    }
    sy_guard_left += next_interval();
    return true;
}

bool sy_guard_due(void) { return SY_UNLIKELY(--sy_guard_left <= 0) && begin_interval(); }

/* ---- geometry ---- */

static size_t page_bytes(void) { return sy_os_page_size(); }

static uintptr_t region_start(void) {
    return atomic_load_explicit(&sy_guard_start, memory_order_relaxed);
}

static size_t region_bytes_of(uint32_t count) { return (2 * (size_t)count + 1) * page_bytes(); }

static uint32_t number_of(const sy_guarded *run) { return (uint32_t)(run - slots); }

static uintptr_t slot_start(uint32_t slot) {
    return region_start() + (2 * (uintptr_t)slot + 1) * page_bytes();
}

static uint32_t run_slots(const sy_guarded *run) { return UINT32_C(1) << run->order; }

static uintptr_t run_end(const sy_guarded *run) {
    return slot_start(number_of(run) + run_slots(run)) - page_bytes();
}

/* The run that a slot belongs to; NULL: none yet. */
static sy_guarded *run_of_slot(size_t slot) {
    bool carved = slot < atomic_load_explicit(&fresh, memory_order_acquire);
    return carved ? &slots[slots[slot].head] : NULL;
}

/* The run at the address; NULL: the address lies in a guard between two runs, or in slots that
 * belong to no run yet. */
static sy_guarded *run_at(uintptr_t address) {
    size_t page = (address - region_start()) / page_bytes();
    sy_guarded *run = page ? run_of_slot((page - 1) / 2) : NULL;
    return run && address < run_end(run) ? run : NULL;
}

static uintptr_t object_end(const sy_guarded *run) {
    return run->object + sy_record_size(&run->record);
}

/* The pages that the run's object touches. */
static uintptr_t open_start(const sy_guarded *run) {
    return sy_round_down(run->object, page_bytes());
}

static uintptr_t open_end(const sy_guarded *run) {
    return sy_round_up(object_end(run), page_bytes());
}

/* ---- the region ---- */

static uint32_t slots_wanted(bool all) {
    uint32_t count = atomic_load_explicit(&sy_options_now.guard_slots, memory_order_relaxed);
    if (all && count < ALL_SLOTS) count = ALL_SLOTS;
    if (sy_os_guards_split() && count > SPLIT_SLOTS) count = SPLIT_SLOTS;
    return count;
}

static size_t table_bytes_of(uint32_t count) {
    return sy_round_up(count * sizeof(sy_guarded), page_bytes());
}

/* Makes this the region of the process. Returns false if another thread was first. */
static bool publish(void *start, sy_guarded *table, uint32_t count) {
    sy_lock_acquire(&lock);
    bool first = !slots;
    if (first) {
        slot_count = count;
        for (unsigned order = 0; order <= ORDER_MAX; order++) queues[order].first = NONE;
        atomic_store_explicit(&sy_guard_start, (uintptr_t)start, memory_order_relaxed);
        slots = table;
        atomic_store_explicit(&sy_guard_bytes, region_bytes_of(count), memory_order_release);
    }
    sy_lock_release(&lock);
    return first;
}

static bool make_region_of(uint32_t count) {
    sy_guarded *table =
        sy_pages_take(table_bytes_of(count), page_bytes(), "slabyard guard records");
    if (!table) return false;
    void *start = sy_os_reserve(region_bytes_of(count), page_bytes(), "slabyard guarded");
    bool mine = start && publish(start, table, count);
    if (mine) return true;
    if (start) sy_os_release(start, region_bytes_of(count));
    sy_pages_give(table, table_bytes_of(count));
    return start;
}

/* Makes the region, once. If there are no addresses for so many slots, it makes a smaller one.
 * Returns whether there is a region. */
static bool make_region(bool all) {
    if (atomic_load_explicit(&sy_guard_bytes, memory_order_acquire)) return true;
    uint32_t count = slots_wanted(all), fewer = slots_wanted(false);
    if (!all) sy_stack_make_places(2 * count);
    bool made = make_region_of(count) || (fewer < count && make_region_of(fewer)) ||
                (STEP_SLOTS < fewer && make_region_of(STEP_SLOTS));
    if (made) sy_access_expect_guards(sy_guard_explain);
    return made;
}

/* Commits more slots, all as guards: from the first new slot to the guard behind the last. */
static void grow_guards(void) {
    uint32_t more = slot_count - ready < STEP_SLOTS ? slot_count - ready : STEP_SLOTS;
    void *start = (void *)slot_start(ready);
    size_t bytes = 2 * (size_t)more * page_bytes();
    bool grown = sy_os_commit(start, bytes) == 0 && sy_os_guard(start, bytes, true) == 0;
    sy_lock_acquire(&lock);
    growing = own_growing = false;
    if (grown) ready += more;
    sy_lock_release(&lock);
}

/* ---- runs; the lock is held ---- */

static sy_guarded *carve(unsigned order) {
    SY_HOLDS(&lock);
    uint32_t first = atomic_load_explicit(&fresh, memory_order_relaxed), count = 1u << order;
    if (ready - first < count) return NULL;
    for (uint32_t slot = first; slot < first + count; slot++) slots[slot].head = first;
    slots[first].order = order;
    atomic_store_explicit(&fresh, first + count, memory_order_release);
    return &slots[first];
}

static void enqueue(sy_guarded *run) {
    sy_queue *queue = &queues[run->order];
    run->next = NONE;
    if (queue->first == NONE)
        queue->first = number_of(run);
    else
        slots[queue->last].next = number_of(run);
    queue->last = number_of(run);
    waiting += run_slots(run);
}

/* Takes a waiting run of this length, or else a longer one. */
static sy_guarded *dequeue(unsigned order) {
    while (order <= ORDER_MAX && queues[order].first == NONE) order++;
    if (order > ORDER_MAX) return NULL;
    sy_guarded *run = &slots[queues[order].first];
    queues[order].first = run->next;
    waiting -= run_slots(run);
    return run;
}

static uint32_t held_slots(void) {
    return atomic_load_explicit(&fresh, memory_order_relaxed) - waiting;
}

/* Whether all slots are committed, and the site holds enough of them. */
static bool holds_enough(uint32_t site) {
    uint32_t left = slot_count - held_slots(), spare = slot_count / STEP_SLOTS * SPARE_OF_STEP;
    return left <= spare && site_runs[site] >= (left + SPARE_SHARES - 1) / SPARE_SHARES;
}

/* Whether there have to be more slots before a run is reused. Runs of samples are reused if more
 * than half of the slots wait, others only if there can be no more slots. */
static bool wants_growth(bool all) {
    return ready < slot_count && !growing && (all || waiting <= ready / 2);
}

/* ---- runs ---- */

static void set_run_state(sy_guarded *run, sy_object_state state) {
    atomic_store_explicit(&run->record.word, state, memory_order_release);
}

/* Runs that this thread is taking or freeing, while it calls the system or the program. */
static SY_TLS sy_own own_runs;

static sy_object_state state_of(const sy_guarded *run) { return sy_record_state(&run->record); }

/* Claims a live object for this thread to free. Returns false if it is not live, or another thread
 * was first. */
static bool win(sy_guarded *run) {
    uint32_t live = SY_OBJECT_LIVE;
    sy_own_replace(&own_runs, NULL, run);
    bool won = atomic_compare_exchange_strong(&run->record.word, &live, SY_OBJECT_FREEING);
    if (!won) sy_own_replace(&own_runs, run, NULL);
    return won;
}

/* The object that a run is needed for. */
typedef struct sy_guard_need {
    unsigned order;
    bool all;      /* all objects are guarded */
    uint32_t site; /* index of its count */
} sy_guard_need;

/* Takes a fresh run; or with `reused`, if there is none, one that waits. */
static sy_guarded *try_run(const sy_guard_need *need, bool reused) {
    if (!need->all && holds_enough(need->site)) return NULL;
    sy_guarded *run = carve(need->order);
    if (!run && reused) run = dequeue(need->order);
    if (!run) return NULL;
    run->site = need->site;
    site_runs[run->site]++;
    set_run_state(run, SY_OBJECT_TAKEN);
    sy_own_replace(&own_runs, NULL, run);
    return run;
}

static sy_guarded *take_run(const sy_guard_need *need, bool *left) {
    sy_lock_acquire(&lock);
    bool grows = wants_growth(need->all);
    sy_guarded *run = try_run(need, !grows);
    own_growing = !run && grows;
    growing |= own_growing;
    *left = left_side;
    left_side = !left_side;
    sy_lock_release(&lock);
    if (run || !grows) return run;
    grow_guards();
    sy_lock_acquire(&lock);
    run = try_run(need, true);
    sy_lock_release(&lock);
    return run;
}

static void put_run(sy_guarded *run) {
    sy_lock_acquire(&lock);
    set_run_state(run, SY_OBJECT_FREE);
    site_runs[run->site]--;
    enqueue(run);
    sy_own_replace(&own_runs, run, NULL);
    sy_lock_release(&lock);
}

/* Returns the order of a run in which an object fits wherever the run begins. Runs of several slots
 * are used only if all allocations are guarded. */
static unsigned order_for(size_t size, size_t align, bool all) {
    size_t page = page_bytes(), slack = align > page ? align - page : 0;
    size_t most = all ? (2 * (size_t)(1 << ORDER_MAX) - 1) * page : page;
    unsigned order = 0;
    if (size > most || slack > most - size) return ORDER_NONE;
    while ((2 * ((size_t)1 << order) - 1) * page < sy_round_up(size, page) + slack) order++;
    return order;
}

/* ---- stamps and faults ---- */

/* Records a stack with or without audit. */
static sy_stamp stamp(void) {
    static const sy_watch noting = {.checks = SY_AUDIT};
    return sy_stamp_here(&noting);
}

/* Guarded objects are many, and faults few. So their stacks are copied (stack.h), but with audit,
 * which shows them without a fault, and when slots are scarce: then each goes to a whole stack.
 * Each run has a place for the stack of its object's allocation, and one for that of the free. */
static bool copies_stacks(const sy_watch *watch) {
    bool scarce = atomic_load_explicit(&ready, memory_order_relaxed) == slot_count;
    return sy_stack_has_places() && !scarce && !(watch->checks & SY_AUDIT);
}

static sy_stamp stamp_copy(const sy_guarded *run, bool freed) {
    uint32_t copy = sy_stack_copy(2 * number_of(run) + freed);
    if (!copy) return stamp();
    return (sy_stamp){.time = sy_os_now(), .stack = copy, .thread = sy_os_thread()};
}

static sy_fault fault_of(const sy_guarded *run, sy_fault_kind kind, uintptr_t address) {
    uint64_t now = sy_os_now();
    return (sy_fault){
        .kind = kind,
        .cache = run->name,
        .object_size = run->object_size,
        .found_size = sy_record_size(&run->record),
        .address = (void *)address,
        .object = (void *)run->object,
        .offset = (ptrdiff_t)(address - run->object),
        .allocated = sy_stamp_trace(&run->record.allocated, now),
        .freed = sy_stamp_trace(&run->record.freed, now),
    };
}

/* ---- allocation ---- */

static uintptr_t place(const sy_guarded *run, size_t size, size_t align, bool left) {
    if (left) return sy_round_up(slot_start(number_of(run)), align);
    return sy_round_down(run_end(run) - size, align);
}

static void fill_beside(const sy_watch *watch, const sy_guarded *run) {
    sy_watch_lay(watch, (void *)open_start(run), run->object - open_start(run));
    sy_watch_lay(watch, (void *)object_end(run), open_end(run) - object_end(run));
}

static void note_owner(sy_guarded *run, sy_watch *watch) {
    size_t length = 0;
    for (; length < NAME_BYTES - 1 && watch->name[length]; length++)
        run->name[length] = watch->name[length];
    run->name[length] = 0;
    run->object_size = watch->size;
    atomic_store_explicit(&run->watch, watch, memory_order_relaxed);
}

/* Makes an object in a run that this thread has taken. If its pages cannot be made accessible, it
 * returns NULL and leaves the run as it was. `allocated`: NULL: the stack is copied. */
static void *begin_object(sy_guarded *run, sy_watch *watch, uintptr_t object, size_t size,
                          const sy_stamp *allocated) {
    uintptr_t start = sy_round_down(object, page_bytes());
    if (sy_os_guard((void *)start, sy_round_up(object + size, page_bytes()) - start, false) != 0)
        return NULL;
    run->object = object;
    atomic_store_explicit(&run->record.size, size, memory_order_relaxed);
    run->record.allocated = allocated ? *allocated : stamp_copy(run, false);
    run->record.freed = (sy_stamp){0};
    note_owner(run, watch);
    fill_beside(watch, run);
    set_run_state(run, SY_OBJECT_LIVE);
    sy_own_replace(&own_runs, run, NULL);
    return (void *)object;
}

/* NULL: there is no run for it. */
static void *make_object(sy_watch *watch, size_t size, size_t align, sy_guard_need need) {
    bool left, copies = copies_stacks(watch);
    sy_stamp allocated = {0};
    if (!copies) allocated = stamp();
    need.site = (copies ? sy_stack_site() : allocated.stack) % SITES;
    sy_guarded *run = take_run(&need, &left);
    if (!run) return NULL;
    uintptr_t at = place(run, size, align, left);
    void *object = begin_object(run, watch, at, size, copies ? NULL : &allocated);
    if (!object) put_run(run);
    return object;
}

void *sy_guard_alloc(sy_watch *watch, size_t size, size_t align) {
    int error = errno;
    bool all = atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed) == 1;
    sy_guard_need need = {.order = order_for(size, align, all), .all = all};
    if (need.order == ORDER_NONE) return NULL;
    void *object = make_region(all) ? make_object(watch, size, align, need) : NULL;
    if (!object) atomic_fetch_add_explicit(&left_out, 1, memory_order_relaxed);
    errno = error;
    return object;
}

/* ---- free ---- */

/* Returns the fault in a free, except for a double free; 0: none. */
static sy_fault_kind misuse(const sy_guarded *run, const sy_watch *owner, const sy_watch *watch,
                            uintptr_t object, size_t told) {
    if (!run || !owner) return SY_FAULT_FOREIGN_POINTER;
    if (owner != watch) return SY_FAULT_WRONG_CACHE;
    if (object != run->object) return SY_FAULT_MISALIGNED_POINTER;
    return told != SIZE_MAX && told != sy_record_size(&run->record) ? SY_FAULT_WRONG_SIZE : 0;
}

static SY_COLD void raise_misuse(const sy_guarded *run, const sy_watch *watch, uintptr_t object,
                                 size_t told, sy_fault_kind kind) {
    sy_fault fault = {.kind = kind, .address = (void *)object};
    if (kind != SY_FAULT_FOREIGN_POINTER) fault = fault_of(run, kind, object);
    fault.cache = watch->name;
    fault.object_size = watch->size;
    if (kind == SY_FAULT_WRONG_CACHE) fault.found_cache = run->name;
    if (kind == SY_FAULT_WRONG_SIZE) fault.told_size = told;
    sy_fault_raise(&fault);
}

/* Claims the run for this thread. If the free is wrong, raises the fault and returns false. */
static bool claim_run(sy_guarded *run, const sy_watch *watch, uintptr_t object, size_t told) {
    const sy_watch *owner = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    sy_fault_kind kind = misuse(run, owner, watch, object, told);
    if (!kind && !win(run)) kind = SY_FAULT_DOUBLE_FREE;
    if (kind) raise_misuse(run, watch, object, told, kind);
    return !kind;
}

static void verify_beside(const sy_guarded *run, const sy_watch *watch, sy_fault_kind kind,
                          uintptr_t start, uintptr_t end) {
    sy_fault found;
    if (!sy_watch_look_at_edge(watch, (void *)start, end - start, &found)) return;
    sy_fault fault = fault_of(run, kind, (uintptr_t)found.damage);
    fault.damage = found.damage;
    fault.damage_bytes = found.damage_bytes;
    sy_fault_raise(&fault);
}

/* Frees the run, even if its pages cannot be made inaccessible. */
static void end(sy_guarded *run, const sy_watch *watch, sy_guard_visit *last, void *arg) {
    uintptr_t start = open_start(run);
    if (last) last((void *)run->object, arg);
    run->record.freed = copies_stacks(watch) ? stamp_copy(run, true) : stamp();
    sy_os_guard((void *)start, open_end(run) - start, true);
    put_run(run);
}

static void sy_guard_free_claimed(sy_guarded *run, const sy_watch *watch, sy_guard_visit *last,
                                  void *arg) {
    int error = errno;
    verify_beside(run, watch, SY_FAULT_UNDERFLOW, open_start(run), run->object);
    verify_beside(run, watch, SY_FAULT_OVERFLOW, object_end(run), open_end(run));
    end(run, watch, last, arg);
    errno = error;
}

bool sy_guard_free(sy_watch *watch, void *object, size_t told, sy_guard_visit *last, void *arg) {
    sy_guarded *run = run_at((uintptr_t)object);
    bool claimed = claim_run(run, watch, (uintptr_t)object, told);
    if (claimed) sy_guard_free_claimed(run, watch, last, arg);
    return claimed;
}

bool sy_guard_try_free(sy_watch *watch, void *object, sy_guard_visit *last, void *arg) {
    sy_guarded *run = run_at((uintptr_t)object);
    const sy_watch *owner = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    bool won = !misuse(run, owner, watch, (uintptr_t)object, SIZE_MAX) && win(run);
    if (won) sy_guard_free_claimed(run, watch, last, arg);
    return won;
}

size_t sy_guard_size(const void *object, sy_watch **watch) {
    const sy_guarded *run = run_at((uintptr_t)object);
    *watch = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    bool live = run && state_of(run) == SY_OBJECT_LIVE && run->object == (uintptr_t)object;
    return live ? sy_record_size(&run->record) : 0;
}

sy_record *sy_guard_record(uintptr_t address, uintptr_t *object, sy_watch **watch) {
    sy_guarded *run = run_at(address);
    if (!run || !run->object) return NULL;
    *object = run->object;
    *watch = atomic_load_explicit(&run->watch, memory_order_acquire);
    return &run->record;
}

/* ---- all of a cache ---- */

/* The run behind this one; for NULL the first. NULL: there are no more. */
static sy_guarded *next_run(const sy_guarded *run) {
    return run_of_slot(run ? number_of(run) + run_slots(run) : 0);
}

static bool belongs(const sy_guarded *run, const sy_watch *watch) {
    return atomic_load_explicit(&run->watch, memory_order_acquire) == watch;
}

size_t sy_guard_live(const sy_watch *watch) {
    size_t count = 0;
    for (const sy_guarded *run = next_run(NULL); run; run = next_run(run))
        count +=
            belongs(run, watch) && state_of(run) == SY_OBJECT_LIVE && !sy_own_times(&own_runs, run);
    return count;
}

void sy_guard_each(const sy_watch *watch,
                   void (*visit)(void *arg, const void *object, const sy_record *record),
                   void *arg) {
    for (const sy_guarded *run = next_run(NULL); run; run = next_run(run))
        if (belongs(run, watch)) visit(arg, (const void *)atomic_load(&run->object), &run->record);
}

void sy_guard_forget(sy_watch *watch, sy_guard_visit *last, void *arg) {
    for (sy_guarded *run = next_run(NULL); run; run = next_run(run)) {
        if (!belongs(run, watch)) continue;
        if (win(run)) end(run, watch, last, arg);
        atomic_store_explicit(&run->watch, NULL, memory_order_release);
    }
}

/* ---- statistics ---- */

bool sy_guard_get_counts(sy_guard_counts *counts) {
    sy_lock_acquire(&lock);
    *counts = (sy_guard_counts){.held = held_slots(), .freed = waiting};
    sy_lock_release(&lock);
    counts->left_out = atomic_load_explicit(&left_out, memory_order_relaxed);
    return counts->held || counts->freed || counts->left_out;
}

/* ---- bad accesses ---- */

/* Bytes between the run's object and the address. */
static size_t distance(const sy_guarded *run, uintptr_t address) {
    if (address < run->object) return run->object - address;
    return address >= object_end(run) ? address - object_end(run) : 0;
}

/* The run for whose object an access to the guard between two runs was most likely meant. */
static const sy_guarded *nearest(uintptr_t address) {
    size_t page = (address - region_start()) / page_bytes();
    const sy_guarded *left = page ? run_of_slot(page / 2 - 1) : NULL;
    const sy_guarded *right = run_of_slot(page / 2);
    if (!left || !left->object) return right;
    if (!right || !right->object) return left;
    return distance(right, address) < distance(left, address) ? right : left;
}

/* The fault that an access to the address is; SY_FAULT_NONE: the access is allowed. */
static sy_fault_kind bad_access(const sy_guarded *run, uintptr_t address) {
    if (state_of(run) != SY_OBJECT_LIVE) return SY_FAULT_USE_AFTER_FREE;
    if (address < open_start(run)) return SY_FAULT_GUARD_UNDERFLOW;
    return address >= open_end(run) ? SY_FAULT_GUARD_OVERFLOW : SY_FAULT_NONE;
}

bool sy_guard_explain(const sy_os_access *access) {
    uintptr_t address = access->address;
    if (!access->placed || !sy_guard_owns(address)) return false;
    const sy_guarded *run = run_at(address);
    if (!run) run = nearest(address);
    if (!run || !run->object) return false;
    sy_fault_kind kind = bad_access(run, address);
    if (kind == SY_FAULT_NONE) return false;
    sy_fault fault = fault_of(run, kind, address);
    fault.access = (sy_access)access->way;
    sy_fault_tell(&fault);
    return true;
}

/* ---- invariants ---- */

const void *sy_guard_table(size_t *bytes) {
    *bytes = slots ? table_bytes_of(slot_count) : 0;
    return slots;
}

/* Counts the runs of a queue. If the queue has no end, it stops behind the number of slots. */
static size_t verify_queue(unsigned order, size_t *wrong) {
    size_t count = 0;
    for (uint32_t at = queues[order].first; at != NONE && count <= slot_count; count++) {
        const sy_guarded *run = &slots[at];
        *wrong += state_of(run) != SY_OBJECT_FREE || run->order != order;
        *wrong += (run->next == NONE) != (at == queues[order].last);
        at = run->next;
    }
    return count;
}

static size_t verify_sites(void) {
    size_t counted = 0;
    for (unsigned site = 0; site < SITES; site++) counted += site_runs[site];
    for (const sy_guarded *run = next_run(NULL); run; run = next_run(run))
        counted -= state_of(run) != SY_OBJECT_FREE;
    return counted != 0;
}

static size_t verify_run(const sy_guarded *run) {
    size_t wrong = 0;
    for (uint32_t i = 0; i < run_slots(run); i++) wrong += run[i].head != number_of(run);
    if (state_of(run) == SY_OBJECT_TAKEN) return wrong; /* another thread is writing it */
    if (!run->object) return wrong + (state_of(run) == SY_OBJECT_LIVE);
    bool inside = run->object >= slot_start(number_of(run)) && object_end(run) <= run_end(run);
    return wrong + !inside;
}

size_t sy_guard_verify(void) {
    size_t wrong = 0, queued = 0, free_runs = 0, free_slots = 0;
    sy_lock_acquire(&lock);
    wrong += atomic_load(&fresh) > ready || ready > slot_count;
    for (const sy_guarded *run = next_run(NULL); run; run = next_run(run)) {
        wrong += verify_run(run);
        free_runs += state_of(run) == SY_OBJECT_FREE;
        free_slots += state_of(run) == SY_OBJECT_FREE ? run_slots(run) : 0;
    }
    for (unsigned order = 0; slots && order <= ORDER_MAX; order++)
        queued += verify_queue(order, &wrong);
    wrong += queued != free_runs;
    wrong += waiting != free_slots;
    wrong += verify_sites();
    sy_lock_release(&lock);
    return wrong;
}

/* ---- fork ---- */

static void hold_guarded(void) { sy_lock_hold(&lock); }

static bool torn; /* in the child: another thread was changing what the lock guards */

static void drop_guarded(void) {
    if (sy_lock_drop(&lock)) torn = true;
}

/* The region may be half published: then it is lost. The queues and counts are made again from the
 * runs. */
static void mend_queues(void) {
    torn = false;
    if (!atomic_load(&sy_guard_bytes)) slots = NULL;
    for (unsigned order = 0; order <= ORDER_MAX; order++) queues[order].first = NONE;
    for (unsigned site = 0; site < SITES; site++) site_runs[site] = 0;
    waiting = 0;
    for (sy_guarded *run = next_run(NULL); run; run = next_run(run))
        if (state_of(run) == SY_OBJECT_FREE)
            enqueue(run);
        else
            site_runs[run->site]++;
}

/* Another thread was making an object in the run, so its fields may be partly those of the object
 * before. */
static void forget_object(sy_guarded *run) {
    run->object = 0;
    atomic_store_explicit(&run->watch, NULL, memory_order_relaxed);
}

static void recover_guarded(void) {
    growing = own_growing;
    if (torn) mend_queues();
    for (sy_guarded *run = next_run(NULL); run; run = next_run(run)) {
        sy_object_state state = state_of(run);
        if (state != SY_OBJECT_TAKEN && state != SY_OBJECT_FREEING) continue;
        if (sy_own_times(&own_runs, run)) continue;
        if (state == SY_OBJECT_TAKEN) forget_object(run);
        uintptr_t start = slot_start(number_of(run));
        sy_os_guard((void *)start, run_end(run) - start, true);
        put_run(run);
    }
}

const sy_part sy_guard_part = {
    .hold = hold_guarded, .drop = drop_guarded, .recover = recover_guarded};

/* ---- for tools that read the process (base/shape.h) ---- */

#define GUARD_VARIABLES(row)                                                \
    row(sy_guard_start, sy_guard_start) row(sy_guard_bytes, sy_guard_bytes) \
        row(sy_guard_slots, slots) row(sy_guard_slot_count, slot_count)

static const sy_shape_row guard_shape_rows[] = {SY_SHAPE_TYPE(sy_guarded, sy_guarded),
                                                GUARD_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const guard_shape_addresses[] = {GUARD_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_guard_shape = SY_SHAPE_PART(guard_shape_rows, guard_shape_addresses);
