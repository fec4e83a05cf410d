/*
 * reclaim.c: runs the steps of passes, in threads' turns and in the maintenance thread. It also
 * contains the trims that a program calls (sy_trim, sy_trim_some).
 */
#include "reclaim/reclaim.h"

#include <errno.h>
#include <limits.h>

#include "base/flag.h"
#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/mixed.h"
#include "cache/movable.h"
#include "chunk/chunk.h"
#include "chunk/pressure.h"
#include "chunk/quota.h"
#include "debug/options.h"
#include "magazine/client.h"
#include "magazine/sleepers.h"
#include "magazine/turn.h"
#include "os/facts.h"
#include "os/os.h"
#include "os/start.h"
#include "reclaim/pace.h"
#include "reclaim/slack.h"

enum {
    QUICK_STEPS = 4, /* of a pass by growth or at once in one turn, so that it keeps up with the
                      * allocations */
    PRESSING_WAITS = 500,   /* of a millisecond: very near the limit, threads wait for the pass */
    MUCH_LOADED = 64 << 10, /* a loaded slot with so many bytes of items is looked at more often */
};

/* Each pass makes a thread look through its own loaded slots, but not more often than this. If
 * small slots were flushed so often, their caches would often have to make a slab anew. */
static const uint64_t LOOKS_APART_NS = 5000000, QUICK_LOOKS_APART_NS = 300000; /* of large slots */
/* Passes at once are at least this far apart: under pressure for long, they must not take all the
 * time. */
static const uint64_t AT_ONCE_APART_NS = 50000000;
/* How long finish_pass sleeps while another thread does the step. */
static const uint64_t OTHERS_STEP_NS = 1000000;

_Atomic bool sy_reclaim_leaves_out;

/* ---- a pass ---- */

typedef enum sy_stage {
    NOTHING,
    CHUNKS_FIRST,
    CLIENTS,
    MIXED,
    CHUNKS,
    ORDINALS,
    MAGAZINES
} sy_stage;
typedef enum sy_pass_kind { BY_GROWTH, BY_AGE, AT_ONCE } sy_pass_kind;

typedef struct sy_pass {
    uint64_t number; /* different for each pass */
    sy_pass_kind kind;
    sy_stage stage;
    bool may_call;       /* the step may call functions of the program */
    bool on_request;     /* the program called for it: it ends reserves */
    uint64_t trim;       /* number of the trim of chunks; in CLIENTS, of a program's own memory */
    unsigned done;       /* clients up to this number are done */
    unsigned client;     /* the client at work; 0: none */
    bool slabs;          /* its depot is done */
    sy_compaction moves; /* of its objects */
    size_t slabs_left;   /* its slabs that are not done yet */
    uint64_t ordinals;   /* up to this ordinal, pages with words of unused ordinals are done */
    unsigned magazines;  /* done */
    size_t bytes;        /* returned to the system so far */
    size_t wanted; /* the pass ends when it has returned so many; SIZE_MAX: after all stages */
} sy_pass;

static void enter_stage(sy_pass *pass, sy_stage stage) {
    pass->stage = stage;
    pass->done = pass->client = pass->magazines = 0;
    pass->ordinals = 0;
    pass->slabs_left = SIZE_MAX;
    if (stage == CHUNKS || stage == CHUNKS_FIRST) pass->trim = sy_chunk_begin_trim(&sy_memory_main);
}

static void begin_stages(sy_pass *pass, sy_pass_kind kind) {
    static _Atomic uint64_t last_number;
    uint64_t number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    *pass = (sy_pass){.number = number, .kind = kind, .wanted = SIZE_MAX};
    enter_stage(pass, kind == AT_ONCE ? CHUNKS_FIRST : CLIENTS);
}

/* Each returns false when the client has no more of these. */
static bool depot_step(sy_pass *pass, sy_client *client, bool first) {
    if (pass->kind == AT_ONCE) return sy_client_drain_step(client, first);
    return sy_client_reap_step(client, first, pass->kind == BY_AGE);
}

/* A client's functions must not be called. Other threads would do it. */
static void leave_out(void) {
    if (sy_os_is_hidden()) atomic_store(&sy_reclaim_leaves_out, true);
}

/* Moves objects, if the pass may call the function for it, and folds blocks of ordinals. */
static bool moves_step(sy_pass *pass, sy_cache *cache, bool aged) {
    if (cache->relocate && !pass->may_call && !pass->moves.moved) {
        leave_out();
        pass->moves.moved = true;
    }
    bool more = sy_cache_compact_step(cache, &pass->moves, aged);
    pass->bytes += pass->moves.discarded;
    pass->moves.discarded = 0;
    return more;
}

/* Memory pressure ends no reserve: such a cache gives back only what a pass by age would. */
static bool slabs_step(sy_pass *pass, sy_cache *cache) {
    bool aged = pass->kind != AT_ONCE || (!pass->on_request && sy_cache_has_reserve(cache));
    if (pass->kind == BY_GROWTH) return sy_cache_release_step(cache, &pass->slabs_left, aged);
    if (moves_step(pass, cache, aged)) return true;
    return sy_cache_trim_step(cache, &pass->slabs_left, aged, &pass->bytes);
}

/* Trims the memory of a cache, if it is a program's own memory. A pass by age trims such a memory
 * only once, with its first cache. */
static bool own_memory_step(sy_pass *pass, sy_memory *memory) {
    if (pass->kind == BY_GROWTH || memory == &sy_memory_main) return false;
    bool aged = pass->kind == BY_AGE;
    if (!pass->trim) {
        uint64_t last = atomic_exchange_explicit(&memory->aged, pass->number, memory_order_relaxed);
        if (aged && last == pass->number) return false;
        pass->trim = sy_chunk_begin_trim(memory);
    }
    return sy_chunk_trim_step(memory, pass->trim, aged, &pass->bytes);
}

/* Does a step for one client; false when the client is done. */
static bool client_step(sy_pass *pass, sy_client *client) {
    bool first = pass->client != client->number;
    if (first) {
        pass->client = client->number;
        pass->slabs = false;
        pass->slabs_left = SIZE_MAX;
        pass->moves = (sy_compaction){.begun = false};
        pass->trim = 0;
    }
    if (!pass->slabs && depot_step(pass, client, first)) return true;
    pass->slabs = true;
    sy_cache *cache = sy_cache_of_client(client);
    if (!cache) return false;
    return slabs_step(pass, cache) || own_memory_step(pass, cache->memory);
}

static void clients_step(sy_pass *pass) {
    sy_client *client = sy_client_pin_next(pass->done);
    if (!client) {
        enter_stage(pass, pass->kind == BY_GROWTH ? NOTHING : MIXED);
        return;
    }
    bool left_alone = client->config.calls_back && !pass->may_call;
    if (left_alone) leave_out();
    if (left_alone || !client_step(pass, client)) pass->done = client->number;
    sy_client_unpin(client);
}

static void mixed_step(sy_pass *pass) {
    bool aged = pass->kind == BY_AGE;
    if (!sy_mixed_trim_step(&pass->slabs_left, aged, &pass->bytes)) enter_stage(pass, CHUNKS);
}

static void chunks_step(sy_pass *pass) {
    bool aged = pass->kind == BY_AGE;
    if (sy_chunk_trim_step(&sy_memory_main, pass->trim, aged, &pass->bytes)) return;
    enter_stage(pass, pass->stage == CHUNKS_FIRST ? CLIENTS : ORDINALS);
}

static void ordinals_step(sy_pass *pass) {
    if (!sy_directory_trim_step(&pass->ordinals, pass->kind == BY_AGE, &pass->bytes))
        enter_stage(pass, MAGAZINES);
}

static void magazines_step(sy_pass *pass) {
    if (!sy_magazine_trim_step(&pass->magazines, pass->kind == BY_AGE, &pass->bytes))
        enter_stage(pass, NOTHING);
}

/* Does some tens of microseconds of work. False: the pass is over. */
static bool step(sy_pass *pass) {
    if (pass->bytes >= pass->wanted) pass->stage = NOTHING;
    switch (pass->stage) {
    case NOTHING: return false;
    case CLIENTS: clients_step(pass); break;
    case MIXED: mixed_step(pass); break;
    case CHUNKS_FIRST:
    case CHUNKS: chunks_step(pass); break;
    case ORDINALS: ordinals_step(pass); break;
    case MAGAZINES: magazines_step(pass); break;
    }
    return pass->stage != NOTHING;
}

/* ---- the pass at work ---- */

static sy_flag held;                       /* a thread is doing a step; guards at_work */
static sy_pass at_work;                    /* if sy_turn_wanted is false, its stage is NOTHING */
static _Atomic uint64_t decay = 250000000; /* nanoseconds */
static _Atomic int stretch;                /* passes by age are 2^stretch decay times apart */
static sy_pace pace;                       /* guarded by `held` */
static _Atomic uint64_t returned_so_far;   /* bytes, by all passes by age */
static _Atomic uint64_t next_pass;         /* time of the next pass by age; 0: not set yet */
static _Atomic unsigned due_kinds;         /* a bit for each kind of pass that begins when the pass
                                             * at work is over */
static _Atomic uint64_t next_at_once;      /* time before which no other pass at once begins */
static _Atomic size_t wanted_at_once;      /* bytes that the pass at once that is due returns */
static _Atomic bool was_in_vain;           /* the last pass at once for a number of bytes */
static _Atomic unsigned passes;            /* number of passes begun so far */
static sy_flag taken;                      /* a thread is in sy_trim_some with `kept`; guards it */
static sy_pass kept;                       /* where the last sy_trim_some stopped */

/* Each thread has one. */
static SY_TLS struct {
    uint64_t next_look;      /* time of the next look through its own slots; earlier with a pass */
    uint64_t looked;         /* time of the last look that came with a pass */
    uint64_t looked_quickly; /* the same, if it was only for slots that hold much */
    size_t least;            /* the look is for slots that hold so many bytes of items */
    unsigned passes;         /* value of `passes` at the last turn */
    bool looking, busy;      /* looking: that look goes on; busy: it is in a turn */
    bool holds;              /* it has set `held`, is about to, or has just cleared it */
    bool has_taken;          /* the same for `taken` */
} own_turns;

static bool hold(void) {
    bool before = own_turns.holds;
    own_turns.holds = true;
    bool got = !atomic_exchange_explicit(&held, true, memory_order_acquire);
    own_turns.holds = got || before;
    return got;
}

static void let_go(void) {
    atomic_store_explicit(&held, false, memory_order_release);
    own_turns.holds = false;
}

static void begin_at_work(sy_pass_kind kind) {
    begin_stages(&at_work, kind);
    atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed);
    atomic_store_explicit(&sy_turn_wanted, true, memory_order_relaxed);
}

/* Called before each pass by age. */
static void adapt_interval(void) {
    int now = atomic_load_explicit(&stretch, memory_order_relaxed);
    size_t early = atomic_load_explicit(&sy_returned_early, memory_order_relaxed);
    size_t used = atomic_load_explicit(&sy_quota_process.used, memory_order_relaxed);
    sy_chunk_end_early(sy_pace_adapt(&pace, &now, early, used));
    atomic_store_explicit(&stretch, now, memory_order_relaxed);
}

/* Begins a pass that is due; false: none is. No pass is at work. The caller holds `held`. */
static bool begin_due(void) {
    unsigned kinds = atomic_load_explicit(&due_kinds, memory_order_relaxed);
    if (!kinds) return false;
    sy_pass_kind kind = kinds & 1u << AT_ONCE ? AT_ONCE : BY_AGE;
    atomic_fetch_and_explicit(&due_kinds, ~(1u << kind), memory_order_relaxed);
    if (kind == BY_AGE) adapt_interval();
    begin_at_work(kind);
    if (kind == AT_ONCE)
        at_work.wanted = atomic_exchange_explicit(&wanted_at_once, 0, memory_order_relaxed);
    return true;
}

/* Begins a pass, by age or at once. If another one is at work, it begins after that one. */
static void begin_pass(sy_pass_kind kind) {
    atomic_fetch_or_explicit(&due_kinds, 1u << kind, memory_order_relaxed);
    if (!hold()) return;
    if (at_work.stage == NOTHING) begin_due();
    let_go();
}

/* Begins a pass at once that returns `bytes` bytes, or as many as a pass that is due, if these are
 * more. */
static void begin_at_once(size_t bytes) {
    size_t wanted = atomic_load_explicit(&wanted_at_once, memory_order_relaxed);
    while (wanted < bytes &&
           !atomic_compare_exchange_weak_explicit(&wanted_at_once, &wanted, bytes,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    begin_pass(AT_ONCE);
}

/* Begins a pass by growth, unless a pass is at work. */
static void begin_by_growth(void) {
    if (!hold()) return;
    if (at_work.stage == NOTHING) begin_at_work(BY_GROWTH);
    let_go();
}

/* Called by the thread that did the last step. */
static void end_pass(void) {
    if (at_work.kind == AT_ONCE && at_work.wanted != SIZE_MAX)
        atomic_store_explicit(&was_in_vain, at_work.bytes < at_work.wanted / 2,
                              memory_order_relaxed);
    if (at_work.kind == BY_AGE) {
        sy_pace_note(&pace, at_work.bytes);
        atomic_fetch_add_explicit(&returned_so_far, at_work.bytes, memory_order_relaxed);
    }
    if (!begin_due()) atomic_store_explicit(&sy_turn_wanted, false, memory_order_relaxed);
}

/* Does a few steps of the pass. False: that is another thread's work. If the maintenance thread
 * runs, it does the passes by age: other threads do no step of them. */
static bool work(bool may_call) {
    if (atomic_load_explicit(&held, memory_order_relaxed) || !hold()) return false;
    int steps = at_work.kind == BY_AGE ? 1 : QUICK_STEPS;
    bool other = !may_call && !sy_os_is_hidden();
    if (at_work.kind == BY_AGE && other && sy_maintenance_runs()) {
        let_go();
        return false;
    }
    at_work.may_call = may_call;
    while (steps-- > 0)
        if (!step(&at_work)) end_pass();
    let_go();
    return true;
}

/* Does the rest of the pass, and of passes that are due. Sleeps at most `waits` times while another
 * thread does a step. */
static void finish_pass(bool may_call, unsigned waits) {
    static _Atomic uint32_t nothing;
    while (atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)) {
        if (work(may_call)) continue;
        if (waits-- == 0) break;
        sy_os_wait_for(&nothing, 0, OTHERS_STEP_NS);
    }
}

/* Before a pass, so that it sees which memory is free then. A program with the option
 * `system-files=no` may run under a filter that permits few system calls. */
static void reach_threads(bool all) {
    if (atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed))
        sy_threads_reach(all);
}

void sy_reclaim_by_age(void) {
    reach_threads(false);
    begin_pass(BY_AGE);
    finish_pass(!sy_os_is_hidden(), UINT_MAX);
}

/* Whether a pass at once may begin now. */
static bool may_be_at_once(uint64_t now) {
    uint64_t next = atomic_load_explicit(&next_at_once, memory_order_relaxed);
    return now >= next &&
           atomic_compare_exchange_strong(&next_at_once, &next, now + AT_ONCE_APART_NS);
}

void sy_reclaim_at_once(void) {
    if (!may_be_at_once(sy_os_now())) return;
    reach_threads(true);
    begin_at_once(SIZE_MAX);
    finish_pass(!sy_os_is_hidden(), UINT_MAX);
}

/* Whether the last pass at once that wanted a certain number of bytes returned less than half. */
static bool in_vain(void) { return atomic_load_explicit(&was_in_vain, memory_order_relaxed); }

static bool is_only_calculated(void) {
    return !atomic_load_explicit(&sy_facts_now.observed, memory_order_relaxed);
}

/* If chunks did not have enough free memory to release, begins a pass at once for the rest. If the
 * limit is very near, does all of the pass. But without an observer, what is calculated may be
 * wrong: after a pass in vain the next is as far away as other passes at once. */
static void relieve_pressure(void) {
    if (sy_pressure_is_due()) sy_chunk_relieve();
    if (!atomic_load_explicit(&sy_pressure_unmet, memory_order_relaxed)) return;
    bool presses = sy_pressure_presses() && !(in_vain() && is_only_calculated());
    if (!may_be_at_once(sy_os_now()) && !presses) return;
    begin_at_once(atomic_exchange_explicit(&sy_pressure_unmet, 0, memory_order_relaxed));
    if (presses) finish_pass(false, PRESSING_WAITS);
}

void sy_reclaim_near_limit(void) {
    relieve_pressure();
    finish_pass(!sy_os_is_hidden(), UINT_MAX);
}

/* In the child of a fork: ends the pass, unless this thread forked within a step of it. */
static void recover_passes(void) {
    if (!own_turns.has_taken) atomic_store(&taken, false);
    if (own_turns.holds) return;
    at_work.stage = NOTHING;
    atomic_store(&sy_turn_wanted, false);
    atomic_store(&due_kinds, 0);
    atomic_store(&wanted_at_once, 0);
    atomic_store(&held, false);
}

/* ---- by age ---- */

uint64_t sy_reclaim_interval(void) {
    return sy_stretched(atomic_load_explicit(&decay, memory_order_relaxed),
                        atomic_load_explicit(&stretch, memory_order_relaxed));
}

uint64_t sy_reclaim_returned(void) {
    return atomic_load_explicit(&returned_so_far, memory_order_relaxed);
}

void sy_set_decay(uint64_t milliseconds) {
    const uint64_t most = UINT64_MAX / 1000000 >> (2 * SY_STRETCH_MOST); /* intervals do not wrap */
    if (milliseconds > most) milliseconds = most;
    atomic_store_explicit(&decay, milliseconds * 1000000, memory_order_relaxed);
    atomic_store_explicit(&stretch, 0, memory_order_relaxed);
    atomic_store_explicit(&next_pass, 0, memory_order_relaxed);
}

/* The start applies the options. If it fails there are none. */
uint64_t sy_get_decay(void) {
    int error = errno;
    (void)sy_start();
    errno = error;
    return atomic_load_explicit(&decay, memory_order_relaxed) / 1000000;
}

/* Whether the time `when` is past. *next: the time of the next; one interval from now if it is
 * past, not set yet (0), or further away than that. */
static bool is_due(uint64_t when, uint64_t now, uint64_t interval, uint64_t *next) {
    bool due = when && now >= when;
    *next = due || !when || when > now + interval ? now + interval : when;
    return due;
}

static void begin_look(size_t least) {
    own_turns.least = least;
    own_turns.looking = true;
}

static void look_at_clock(bool allocates) {
    uint64_t interval = sy_reclaim_interval(), next;
    if (!interval) return;
    uint64_t now = sy_os_now();
    if (!own_turns.looking && is_due(own_turns.next_look, now, interval, &own_turns.next_look))
        begin_look(0);
    if (sy_maintenance_look(now, allocates)) sy_turn_soon();
    uint64_t when = atomic_load_explicit(&next_pass, memory_order_relaxed);
    bool due = is_due(when, now, interval, &next);
    if (next == when || !atomic_compare_exchange_strong(&next_pass, &when, next)) return;
    if (due && !sy_maintenance_runs()) begin_pass(BY_AGE);
}

/* If more is held than the option `slack` permits, does a pass at once for the rest. */
static void relieve_slack(void) {
    size_t wanted = SY_UNLIKELY(sy_slack_is_bounded()) ? sy_slack_look() : 0;
    if (wanted) begin_at_once(wanted);
    if (wanted) finish_pass(false, 0);
}

/* Called when a pass has begun: the thread looks through its slots too. Passes by growth may follow
 * one another quickly, and the thread still uses its items. */
static void look_with_pass(unsigned begun) {
    uint64_t now = sy_os_now();
    own_turns.passes = begun;
    if (own_turns.looking || now - own_turns.looked_quickly < QUICK_LOOKS_APART_NS) return;
    bool all = now - own_turns.looked >= LOOKS_APART_NS;
    own_turns.looked_quickly = now;
    if (all) own_turns.looked = now;
    begin_look(all ? 0 : MUCH_LOADED);
}

/* A step may call functions that end in a turn again: `busy` makes the inner turn do nothing. */
static void take_turn_of_pass(bool allocates) {
    if (own_turns.busy) return;
    own_turns.busy = true;
    if (sy_turns % SY_TURNS_PER_LOOK == 0) look_at_clock(allocates);
    relieve_pressure();
    relieve_slack();
    if (sy_caches_grew()) begin_by_growth();
    unsigned begun = atomic_load_explicit(&passes, memory_order_relaxed);
    if (own_turns.passes != begun) look_with_pass(begun);
    if (own_turns.looking) own_turns.looking = sy_thread_reap_step(own_turns.least);
    if (atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)) work(false);
    own_turns.busy = false;
}

static int serve_turns(void) {
    sy_turn_serve(take_turn_of_pass);
    return 0;
}

const sy_part sy_reclaim_part = {.start = serve_turns, .recover = recover_passes};

/* ---- on request ---- */

size_t sy_trim(void) {
    size_t bytes = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (client == &sy_mixed.client) sy_client_drain(client);
        if (cache) {
            bytes += sy_cache_trim_slabs(cache);
            if (cache->memory != &sy_memory_main) bytes += sy_chunk_trim(cache->memory);
        }
        sy_client_unpin(client);
    }
    for (size_t left = SIZE_MAX; sy_mixed_trim_step(&left, false, &bytes);) {}
    bytes += sy_directory_trim();
    return bytes + sy_chunk_trim(&sy_memory_main) + sy_magazine_trim();
}

static void begin_trim(sy_pass *pass, bool by_program) {
    begin_stages(pass, AT_ONCE);
    pass->on_request = by_program;
    pass->may_call = by_program || !sy_os_is_hidden();
}

/* Continues a pass. After its end it begins another one, which reaches the clients and chunks that
 * lie before the place where the first was continued. */
static size_t trim_until(sy_pass *pass, bool by_program, size_t bytes, uint64_t budget_ns) {
    uint64_t began = sy_os_now();
    int rounds = pass->stage == NOTHING ? 1 : 2;
    if (pass->stage == NOTHING) begin_trim(pass, by_program);
    size_t before = pass->bytes;
    while (pass->bytes - before < bytes && sy_os_now() - began < budget_ns) {
        if (step(pass)) continue;
        if (--rounds == 0) break;
        size_t so_far = pass->bytes;
        begin_trim(pass, by_program);
        pass->bytes = so_far;
    }
    return pass->bytes - before;
}

size_t sy_trim_some(size_t bytes, uint64_t budget_ns) {
    sy_pass other = {.stage = NOTHING};
    int error = errno;
    bool outer = own_turns.has_taken;
    own_turns.has_taken = true;
    bool mine = !atomic_exchange_explicit(&taken, true, memory_order_acquire);
    own_turns.has_taken = mine || outer;
    size_t done = trim_until(mine ? &kept : &other, true, bytes, budget_ns);
    if (mine) atomic_store_explicit(&taken, false, memory_order_release);
    own_turns.has_taken = outer;
    errno = error;
    return done;
}

size_t sy_reclaim_some(size_t bytes) {
    sy_pass pass = {.stage = NOTHING};
    size_t done = trim_until(&pass, false, bytes, UINT64_MAX);
    if (done >= bytes) return done;
    reach_threads(true);
    return done + trim_until(&pass, false, bytes - done, UINT64_MAX);
}
