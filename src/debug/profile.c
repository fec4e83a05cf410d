/*
 * profile.c: see profile.h. One lock guards the whole table: it is taken for a sample and for the
 * free of one, which are rare, and for all that a thread allocates while it counts.
 *
 *     table:  | heads | heads of sites | sites | counters | records ... committed when used |
 *
 * Records and sites hang in chains, by a hash of the address or stack. A record that is free hangs
 * in the list of free ones.
 */
#include "debug/profile.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "base/random.h"
#include "base/shape.h"
#include "debug/options.h"
#include "debug/probes.h"
#include "debug/stack.h"
#include "debug/tags.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    HEADS = 1 << 15,
    /* With the usual mean of 512 KiB: the samples of 512 GiB of live objects. */
    RECORDS = (int)SY_ADDRESS_SPACE(1048576, 65536),
    SITE_HEADS = 1 << 12,
    SITES = 1 << 15,
    RECORDS_AT_A_TIME = 1 << 13, /* committed by one system call */
};

/* Weights of objects are kept in parts of an object, so that sums have no rounding error that
 * matters. */
enum { PARTS = 1 << 16 };

typedef struct record {
    uintptr_t object;
    size_t size;
    uint64_t weight; /* objects that it stands for, in 1 / PARTS */
    uint64_t time;   /* of the allocation: sy_os_now */
    uint32_t thread; /* that allocated it: sy_os_thread */
    uint32_t site;   /* SY_PROFILE_COUNTED: number of the counter */
    uint32_t next;   /* number of the next record in its chain, or of the next free one; 0: none */
    uint16_t frees;  /* sy_profile_frees */
    uint16_t tag;    /* of the allocation (tags.h) */
} record;

typedef struct site {
    uint32_t stack, next;
    uint64_t allocated, freed; /* in 1 / PARTS objects */
    uint64_t allocated_bytes, freed_bytes;
} site;

/* Numbers of records begin with 1; site 0 is the one of stacks that are not known. */
typedef struct table {
    _Atomic uint32_t heads[HEADS];
    uint32_t site_heads[SITE_HEADS];
    site sites[SITES];
    sy_profile_counts counters[SY_PROFILE_COUNTERS + 1]; /* by number */
    record records[RECORDS];
} table;

_Atomic uint32_t sy_profile_records;

/* The mean as the functions below set it; UNSET: the option says it. */
static const uint64_t UNSET = UINT64_MAX;
static _Atomic uint64_t mean_set = UINT64_MAX;
static _Atomic uint64_t mean_before; /* the profile ended */

static sy_lock lock = SY_LOCK_INIT(SY_RANK_PROFILE);
static _Atomic(table *) the_table; /* written once */
/* Guarded by the lock. */
static uint32_t used, ready; /* records below them were used once; are committed */
static uint32_t free_record; /* the first in the list; 0: none */
static uint32_t site_count;
static uint64_t left_out;
static uint64_t settled_bytes; /* of records that have ended while their objects were live */
static uint32_t counting;      /* a bit for each counter in use, by its number less 1 */
static bool torn; /* in the child of a fork: another thread was changing what the lock guards */

static table *known_table(void) { return atomic_load_explicit(&the_table, memory_order_acquire); }

/* ---- memory ---- */

static const size_t FIXED_BYTES = offsetof(table, records);

static size_t table_bytes(void) { return sy_round_up(sizeof(table), sy_os_page_size()); }

/* If two threads make a table, one gives its own back. */
static table *make_table(void) {
    table *known = NULL;
    table *made = sy_os_reserve(table_bytes(), sy_os_page_size(), "slabyard profile");
    if (!made) return NULL;
    if (sy_os_commit(made, sy_round_up(FIXED_BYTES, sy_os_page_size())) != 0) {
        sy_os_release(made, table_bytes());
        errno = ENOMEM;
        return NULL;
    }
    if (atomic_compare_exchange_strong_explicit(&the_table, &known, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    sy_os_release(made, table_bytes());
    return known;
}

size_t sy_profile_bytes(void) {
    sy_lock_acquire(&lock);
    size_t bytes = known_table() ? FIXED_BYTES + ready * sizeof(record) : 0;
    sy_lock_release(&lock);
    return bytes;
}

static table *need_table(void) {
    table *in = known_table();
    return in ? in : make_table();
}

/* Commits the records that come after `have`. The lock is not held: two threads may do it. */
static bool commit_records(table *in, uint32_t have) {
    size_t page = sy_os_page_size();
    uintptr_t start = sy_round_down((uintptr_t)&in->records[have], page);
    uintptr_t end = sy_round_up((uintptr_t)(&in->records[have] + RECORDS_AT_A_TIME), page);
    uintptr_t most = sy_round_up((uintptr_t)(in + 1), page);
    return have < RECORDS && sy_os_commit((void *)start, (end < most ? end : most) - start) == 0;
}

/* Takes a record; 0: there is none. The lock is held before and after, not in between. */
static uint32_t take_record(table *in) {
    while (!free_record && used == ready) {
        uint32_t have = ready;
        sy_lock_release(&lock);
        bool done = commit_records(in, have);
        sy_lock_acquire(&lock);
        if (!done && ready == have) return 0;
        if (ready == have) ready += RECORDS_AT_A_TIME;
    }
    uint32_t number = free_record;
    if (!number) return ++used;
    free_record = in->records[number - 1].next;
    return number;
}

static record *record_of(table *in, uint32_t number) { return &in->records[number - 1]; }

/* ---- chains ---- */

static uint32_t head_of(const void *object) {
    return (uint32_t)(sy_random_mix((uintptr_t)object) % HEADS);
}

/* The number of the stack's site. The lock is held. */
static uint32_t find_site(table *in, uint32_t stack) {
    SY_HOLDS(&lock);
    uint32_t *head = &in->site_heads[sy_random_mix(stack) % SITE_HEADS];
    if (!site_count) in->sites[site_count++] = (site){.stack = 0};
    for (uint32_t at = stack ? *head : 0; at; at = in->sites[at].next)
        if (in->sites[at].stack == stack) return at;
    if (!stack || site_count == SITES) return 0;
    in->sites[site_count] = (site){.stack = stack, .next = *head};
    return *head = site_count++;
}

static uint64_t bytes_of(const record *it) {
    return (uint64_t)((double)it->weight * (double)it->size / (double)PARTS + 0.5);
}

static void count_out(uint32_t more) {
    atomic_fetch_add_explicit(&sy_profile_records, more, memory_order_relaxed);
}

/* Adds the record to the chain of its object. The lock is held. */
static void enter_chain(table *in, uint32_t number) {
    SY_HOLDS(&lock);
    record *it = record_of(in, number);
    _Atomic uint32_t *head = &in->heads[head_of((const void *)it->object)];
    it->next = atomic_load_explicit(head, memory_order_relaxed);
    atomic_store_explicit(head, number, memory_order_relaxed);
}

/* Takes the record `at`, which comes after `before` (0: none) in its chain, out of it. Returns the
 * next one in the chain. The lock is held. */
static uint32_t leave_chain(table *in, _Atomic uint32_t *head, uint32_t before, uint32_t at) {
    SY_HOLDS(&lock);
    uint32_t next = record_of(in, at)->next;
    if (before)
        record_of(in, before)->next = next;
    else
        atomic_store_explicit(head, next, memory_order_relaxed);
    return next;
}

/* Adds the record to its chain and its site. The lock is held. */
static void link_record(table *in, uint32_t number) {
    SY_HOLDS(&lock);
    record *it = record_of(in, number);
    enter_chain(in, number);
    count_out(1);
    if (it->frees == SY_PROFILE_COUNTED) return;
    in->sites[it->site].allocated += it->weight;
    in->sites[it->site].allocated_bytes += bytes_of(it);
}

/* The same, and frees the record. */
static uint32_t unlink_record(table *in, _Atomic uint32_t *head, uint32_t before, uint32_t at) {
    SY_HOLDS(&lock);
    record *it = record_of(in, at);
    uint32_t next = leave_chain(in, head, before, at);
    it->object = 0;
    it->next = free_record;
    free_record = at;
    count_out((uint32_t)-1);
    return next;
}

/* The object of the record is freed. The lock is held. */
static void count_freed(table *in, const record *it) {
    SY_HOLDS(&lock);
    if (it->frees == SY_PROFILE_COUNTED) {
        in->counters[it->site].frees++;
        in->counters[it->site].live_bytes -= it->size;
        return;
    }
    in->sites[it->site].freed += it->weight;
    in->sites[it->site].freed_bytes += bytes_of(it);
}

/* The program does not get the object of the record. The lock is held. */
static void count_undone(table *in, const record *it) {
    SY_HOLDS(&lock);
    if (it->frees == SY_PROFILE_COUNTED) {
        in->counters[it->site].allocations--;
        in->counters[it->site].bytes -= it->size;
        in->counters[it->site].live_bytes -= it->size;
        return;
    }
    in->sites[it->site].allocated -= it->weight;
    in->sites[it->site].allocated_bytes -= bytes_of(it);
}

/* Whether a record ends now; if so, it is counted. The lock is held. */
typedef bool ends_record(table *in, const record *it, void *arg);

/* Ends records in a chain. */
static void end_in_chain(table *in, _Atomic uint32_t *head, ends_record *ends, void *arg) {
    SY_HOLDS(&lock);
    uint32_t before = 0, at = atomic_load_explicit(head, memory_order_relaxed);
    while (at) {
        if (ends(in, record_of(in, at), arg)) {
            at = unlink_record(in, head, before, at);
        } else {
            before = at;
            at = record_of(in, at)->next;
        }
    }
}

static void end_in_all_chains(table *in, ends_record *ends, void *arg) {
    SY_HOLDS(&lock);
    for (uint32_t i = 0; i < HEADS; i++) end_in_chain(in, &in->heads[i], ends, arg);
}

static void end_records(ends_record *ends, void *arg) {
    table *in = known_table();
    if (!in || !atomic_load_explicit(&sy_profile_records, memory_order_relaxed)) return;
    sy_lock_acquire(&lock);
    end_in_all_chains(in, ends, arg);
    sy_lock_release(&lock);
}

static bool is_in_profile(table *in, const record *it, void *arg) {
    (void)in, (void)arg;
    return it->frees != SY_PROFILE_COUNTED;
}

/* Objects that are counted stay. The lock is held. */
static void clear_profile(table *in) {
    SY_HOLDS(&lock);
    end_in_all_chains(in, is_in_profile, NULL);
    memset(in->site_heads, 0, sizeof in->site_heads);
    site_count = 0;
    left_out = settled_bytes = 0;
}

/* Another thread was changing the table when the process was forked. The lock is held. */
static void clear_table(table *in) {
    SY_HOLDS(&lock);
    for (uint32_t i = 0; i < HEADS; i++)
        atomic_store_explicit(&in->heads[i], 0, memory_order_relaxed);
    for (uint32_t i = 1; i <= SY_PROFILE_COUNTERS; i++) in->counters[i].lost = true;
    used = free_record = 0;
    atomic_store_explicit(&sy_profile_records, 0, memory_order_relaxed);
    clear_profile(in);
}

/* ---- an object's life ---- */

/* The lock is held. */
static bool still_notes(sy_profile_frees frees) {
    SY_HOLDS(&lock);
    return frees == SY_PROFILE_FREES_SEEN || sy_profile_mean();
}

void sy_profile_note(const void *object, size_t size, double chance, sy_profile_frees frees) {
    sy_cpu_keep_frame();
    int error = errno;
    record made = {.object = (uintptr_t)object,
                   .size = size,
                   .weight = (uint64_t)((double)PARTS / chance + 0.5),
                   .time = sy_os_now(),
                   .thread = sy_os_thread(),
                   .frees = (uint16_t)frees,
                   .tag = (uint16_t)sy_tag_of_thread()};
    table *in = need_table();
    uint32_t stack = in ? sy_stack_whole() : 0;
    sy_lock_acquire(&lock);
    bool notes = still_notes(frees);
    uint32_t number = in && notes ? take_record(in) : 0;
    if (number) {
        made.site = find_site(in, stack);
        *record_of(in, number) = made;
        link_record(in, number);
    }
    left_out += notes && !number;
    sy_lock_release(&lock);
    SY_PROBE_ALLOC(object, size, bytes_of(&made));
    errno = error;
}

typedef struct freed {
    const void *object;
    bool sampled; /* it was in the profile */
} freed;

/* An object that is counted may be in the profile, too: it has two records then. */
static bool is_freed(table *in, const record *it, void *arg) {
    freed *which = arg;
    if (it->object != (uintptr_t)which->object) return false;
    which->sampled |= it->frees != SY_PROFILE_COUNTED;
    count_freed(in, it);
    return true;
}

static bool is_undone(table *in, const record *it, void *arg) {
    freed *which = arg;
    if (it->object != (uintptr_t)which->object) return false;
    which->sampled |= it->frees != SY_PROFILE_COUNTED;
    count_undone(in, it);
    return true;
}

static void end_of_object(const void *object, ends_record *ends) {
    table *in = known_table();
    _Atomic uint32_t *head = in ? &in->heads[head_of(object)] : NULL;
    if (!head || !atomic_load_explicit(head, memory_order_relaxed)) return;
    freed it = {.object = object};
    sy_lock_acquire(&lock);
    end_in_chain(in, head, ends, &it);
    sy_lock_release(&lock);
    if (it.sampled) SY_PROBE_FREE(object);
}

void sy_profile_forget_slow(const void *object) { end_of_object(object, is_freed); }

void sy_profile_undo(const void *object) {
    if (atomic_load_explicit(&sy_profile_records, memory_order_relaxed))
        end_of_object(object, is_undone);
}

/* Takes the records of an object out of its chain; returns them in a chain of their own. The lock
 * is held. */
static uint32_t take_records(table *in, const void *object) {
    SY_HOLDS(&lock);
    _Atomic uint32_t *head = &in->heads[head_of(object)];
    uint32_t taken = 0, before = 0, at = atomic_load_explicit(head, memory_order_relaxed);
    while (at) {
        record *it = record_of(in, at);
        if (it->object != (uintptr_t)object) {
            before = at;
            at = it->next;
            continue;
        }
        uint32_t next = leave_chain(in, head, before, at);
        it->next = taken;
        taken = at;
        at = next;
    }
    return taken;
}

void sy_profile_follow_slow(const void *object, const void *moved) {
    table *in = known_table();
    record sampled = {.object = 0};
    if (!in) return;
    sy_lock_acquire(&lock);
    for (uint32_t at = take_records(in, object), next; at; at = next) {
        record *it = record_of(in, at);
        next = it->next;
        it->object = (uintptr_t)moved;
        if (it->frees != SY_PROFILE_COUNTED) sampled = *it;
        enter_chain(in, at);
    }
    sy_lock_release(&lock);
    if (!sampled.object) return;
    SY_PROBE_FREE(object);
    SY_PROBE_ALLOC(moved, sampled.size, bytes_of(&sampled));
}

static bool settles(table *in, const record *it, void *arg) {
    (void)in, (void)arg;
    if (it->frees != SY_PROFILE_FREES_SEEN_NOW) return false;
    settled_bytes += bytes_of(it);
    return true;
}

void sy_profile_settle(void) { end_records(settles, NULL); }

typedef struct gone {
    bool (*is_gone)(const void *object, const void *arg);
    const void *arg;
} gone;

static bool goes(table *in, const record *it, void *arg) {
    const gone *which = arg;
    if (!which->is_gone((const void *)it->object, which->arg)) return false;
    count_freed(in, it);
    return true;
}

void sy_profile_forget_all(bool (*is_gone)(const void *object, const void *arg), const void *arg) {
    end_records(goes, &(gone){is_gone, arg});
}

/* ---- counts of a thread ---- */

SY_TLS uint32_t sy_profile_counter;

static _Atomic uint32_t counting_threads;

bool sy_profile_watches(void) {
    return sy_profile_mean() || atomic_load_explicit(&counting_threads, memory_order_relaxed);
}

int sy_profile_begin_count(void) {
    table *in = sy_profile_counter ? NULL : need_table();
    if (!in) {
        errno = sy_profile_counter ? EBUSY : ENOMEM;
        return -1;
    }
    sy_lock_acquire(&lock);
    unsigned free = counting != UINT32_MAX ? (unsigned)__builtin_ctz(~counting) : 0;
    bool found = !(counting & UINT32_C(1) << free);
    if (found) {
        counting |= UINT32_C(1) << free;
        in->counters[free + 1] = (sy_profile_counts){.allocations = 0};
        sy_profile_counter = free + 1;
    }
    sy_lock_release(&lock);
    if (!found) errno = EAGAIN;
    if (found) atomic_fetch_add_explicit(&counting_threads, 1, memory_order_relaxed);
    return found ? 0 : -1;
}

static bool is_of_counter(table *in, const record *it, void *number) {
    (void)in;
    return it->frees == SY_PROFILE_COUNTED && it->site == *(const uint32_t *)number;
}

static bool is_of_another_counter(table *in, const record *it, void *own) {
    return it->frees == SY_PROFILE_COUNTED && !is_of_counter(in, it, own);
}

/* In the child of a fork: no other thread counts. The clients stay `profiled` until a profile or a
 * count begins or ends. The lock is held. */
static void forget_counters(table *in) {
    SY_HOLDS(&lock);
    uint32_t own = sy_profile_counter ? UINT32_C(1) << (sy_profile_counter - 1) : 0;
    if (counting & ~own) end_in_all_chains(in, is_of_another_counter, &sy_profile_counter);
    counting = own;
    atomic_store_explicit(&counting_threads, own != 0, memory_order_relaxed);
}

void sy_profile_end_count(sy_profile_counts *counts) {
    table *in = known_table();
    uint32_t number = sy_profile_counter;
    sy_profile_counter = 0;
    sy_lock_acquire(&lock);
    *counts = in->counters[number];
    end_in_all_chains(in, is_of_counter, &number);
    counting &= ~(UINT32_C(1) << (number - 1));
    sy_lock_release(&lock);
    atomic_fetch_sub_explicit(&counting_threads, 1, memory_order_relaxed);
}

/* Adds an object of `size` bytes. The lock is held. */
static void count_allocated(sy_profile_counts *counts, size_t size) {
    SY_HOLDS(&lock);
    counts->allocations++;
    counts->bytes += size;
    counts->live_bytes += size;
    if (counts->live_bytes > counts->peak_bytes) counts->peak_bytes = counts->live_bytes;
}

void sy_profile_count(const void *object, size_t size) {
    int error = errno;
    table *in = known_table();
    sy_lock_acquire(&lock);
    uint32_t number = take_record(in);
    if (number) {
        *record_of(in, number) = (record){.object = (uintptr_t)object,
                                          .size = size,
                                          .site = sy_profile_counter,
                                          .frees = SY_PROFILE_COUNTED};
        link_record(in, number);
        count_allocated(&in->counters[sy_profile_counter], size);
    }
    in->counters[sy_profile_counter].lost |= !number;
    sy_lock_release(&lock);
    errno = error;
}

/* ---- profiles ---- */

uint64_t sy_profile_mean(void) {
    uint64_t mean = atomic_load_explicit(&mean_set, memory_order_relaxed);
    if (SY_LIKELY(mean != UNSET)) return mean;
    return atomic_load_explicit(&sy_options_now.profile, memory_order_relaxed);
}

int sy_profile_begin(uint64_t mean) {
    table *in = sy_start() == 0 ? need_table() : NULL;
    if (!in) {
        errno = ENOMEM;
        return -1;
    }
    if (!sy_profile_mean()) {
        sy_lock_acquire(&lock);
        clear_profile(in);
        sy_lock_release(&lock);
    }
    atomic_store_explicit(&mean_set, mean, memory_order_relaxed);
    return 0;
}

void sy_profile_end(void) {
    uint64_t mean = sy_profile_mean();
    if (mean) atomic_store_explicit(&mean_before, mean, memory_order_relaxed);
    atomic_store_explicit(&mean_set, 0, memory_order_relaxed);
}

uint64_t sy_profile_period(void) {
    uint64_t mean = sy_profile_mean();
    return mean ? mean : atomic_load_explicit(&mean_before, memory_order_relaxed);
}

static uint64_t whole(uint64_t parts) { return (uint64_t)((double)parts / (double)PARTS + 0.5); }

bool sy_profile_get_site(uint32_t number, sy_profile_site *copy) {
    table *in = known_table();
    if (!in) return false;
    sy_lock_acquire(&lock);
    bool there = number < site_count;
    site found = there ? in->sites[number] : (site){.stack = 0};
    sy_lock_release(&lock);
    *copy = (sy_profile_site){found.stack, whole(found.allocated), whole(found.freed),
                              found.allocated_bytes, found.freed_bytes};
    return there;
}

uint64_t sy_profile_left_out(void) {
    sy_lock_acquire(&lock);
    uint64_t count = left_out;
    sy_lock_release(&lock);
    return count;
}

/* ---- invariants ---- */

/* The bytes of records, also of settled ones, are those allocated and not freed. The lock is
 * held. */
static size_t verify_table(table *in) {
    SY_HOLDS(&lock);
    size_t wrong = 0;
    uint32_t linked = 0, waiting = 0;
    uint64_t live = 0, expected = 0;
    for (uint32_t head = 0; head < HEADS; head++)
        for (uint32_t at = in->heads[head]; at && linked <= used; at = record_of(in, at)->next) {
            const record *it = record_of(in, at);
            bool counted = it->frees == SY_PROFILE_COUNTED;
            wrong += head_of((const void *)it->object) != head;
            wrong += it->site >= (counted ? SY_PROFILE_COUNTERS + 1 : site_count);
            live += counted ? 0 : bytes_of(it);
            linked++;
        }
    for (uint32_t at = free_record; at && waiting <= used; at = record_of(in, at)->next) waiting++;
    for (uint32_t i = 0; i < site_count; i++)
        expected += in->sites[i].allocated_bytes - in->sites[i].freed_bytes;
    wrong += linked + waiting != used || used > ready;
    return wrong + (live + settled_bytes != expected) + (linked != sy_profile_records);
}

size_t sy_profile_verify(void) {
    table *in = known_table();
    if (!in) return 0;
    sy_lock_acquire(&lock);
    size_t wrong = verify_table(in);
    sy_lock_release(&lock);
    return wrong;
}

/* ---- fork ---- */

static void hold_profile(void) { sy_lock_hold(&lock); }

static void drop_profile(void) {
    if (sy_lock_drop(&lock)) torn = true;
}

static void recover_profile(void) {
    table *in = known_table();
    if (!in) return;
    sy_lock_acquire(&lock);
    if (torn) clear_table(in);
    torn = false;
    forget_counters(in);
    sy_lock_release(&lock);
}

const sy_part sy_profile_part = {
    .hold = hold_profile, .drop = drop_profile, .recover = recover_profile};

/* ---- for tools that read the process (base/shape.h) ---- */

#define PROFILE_VARIABLES(row)                                                                    \
    row(sy_profile_place, the_table) row(sy_profile_used, used) row(sy_profile_sites, site_count) \
        row(sy_tags, sy_tags)

static const sy_shape_row profile_shape_rows[] = {
    {"sy_profile_parts", PARTS, 0},
    SY_SHAPE_TYPE(sy_profile_table, table),
    SY_SHAPE_FIELD(sy_profile_table, table, sites),
    SY_SHAPE_FIELD(sy_profile_table, table, records),
    SY_SHAPE_TYPE(sy_profile_record, record),
    SY_SHAPE_FIELD(sy_profile_record, record, object),
    SY_SHAPE_FIELD(sy_profile_record, record, size),
    SY_SHAPE_FIELD(sy_profile_record, record, weight),
    SY_SHAPE_FIELD(sy_profile_record, record, time),
    SY_SHAPE_FIELD(sy_profile_record, record, thread),
    SY_SHAPE_FIELD(sy_profile_record, record, site),
    SY_SHAPE_FIELD(sy_profile_record, record, tag),
    SY_SHAPE_TYPE(sy_profile_site, site),
    SY_SHAPE_FIELD(sy_profile_site, site, stack),
    SY_SHAPE_FIELD(sy_profile_site, site, allocated),
    SY_SHAPE_FIELD(sy_profile_site, site, freed),
    SY_SHAPE_FIELD(sy_profile_site, site, allocated_bytes),
    SY_SHAPE_FIELD(sy_profile_site, site, freed_bytes),
    {"sy_tag_name", 0, SY_TAG_NAME_MAX + 1},
    SY_SHAPE_FIELD(sy_tags, sy_tag_table, last),
    SY_SHAPE_FIELD(sy_tags, sy_tag_table, names),
    SY_SHAPE_FIELD(sy_tags, sy_tag_table, counts),
    SY_SHAPE_TYPE(sy_tag_counts, sy_tag_counts),
    SY_SHAPE_FIELD(sy_tag_counts, sy_tag_counts, allocations),
    SY_SHAPE_FIELD(sy_tag_counts, sy_tag_counts, frees),
    SY_SHAPE_FIELD(sy_tag_counts, sy_tag_counts, live_bytes),
    PROFILE_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const profile_shape_addresses[] = {PROFILE_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_profile_shape = SY_SHAPE_PART(profile_shape_rows, profile_shape_addresses);
