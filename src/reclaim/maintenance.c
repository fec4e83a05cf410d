/*
 * maintenance.c: the maintenance thread. It does the passes by age, and returns memory at once if
 * the observer (observer.h) has seen pressure. A program or an option starts it.
 *
 *     OFF --start--> STARTS --no pause--> RUNS --stop--> ENDING --the thread ends--> OFF
 *
 * A pause (below) may begin after the start has looked for one. So the start sets the state STARTS,
 * looks for a pause again, and if there is one goes back to OFF. A pause waits until the state is
 * not STARTS.
 *
 * It never keeps a process alive: when the program's threads have ended, it ends too, and the C
 * library ends the process. It also ends for system calls that need a process with one thread, and
 * before the process forbids itself system calls (sy_enter_sandbox).
 */
#include "reclaim/reclaim.h"

#include <errno.h>
#include <slabyard/limit.h>
#include <slabyard/options.h>
#include <stddef.h>

#include "base/flag.h"
#include "base/shape.h"
#include "base/text.h"
#include "chunk/chunk.h"
#include "chunk/quota.h"
#include "debug/fail.h"
#include "debug/options.h"
#include "debug/tell.h"
#include "magazine/client.h"
#include "os/background.h"
#include "os/facts.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/start.h"
#include "reclaim/observer.h"

enum { OFF, STARTS, RUNS, ENDING };

static const uint64_t LOOK_NS = 1000000000; /* the longest sleep */
static const size_t WATCHED_BYTES = 8 << 20;

/* Threads that end are still in the system's list when they wake this one, and for a moment
 * afterwards. So it looks again, so often and so far apart. */
enum { END_LOOKS = 20 };
static const uint64_t END_LOOKS_APART_NS = 5000000;

static _Atomic uint32_t state;
static _Atomic uint32_t pauses;       /* number of threads that need a process without this one */
static sy_flag forbidden;             /* by a sandbox */
static SY_TLS bool is_it;             /* this thread is the maintenance thread */
static _Atomic uint8_t account_asked; /* set by the handler of the signal of `stats-on` */
static _Atomic uint32_t listens;      /* there is this handler: how many there were; 0: none */
static bool observed;                 /* used by the maintenance thread: the observer runs */
static _Atomic bool hidden;           /* the maintenance thread that ran last was started hidden */
static _Atomic unsigned number; /* of the thread that may be in the process still; 0: of none */

/* What `slabyard trim` writes, from another process: first the amount, if it asks for one, then
 * `asked`, which is 0 again when the trim is done. */
enum { ASKS_ALL = 1, ASKS_SOME };
typedef struct trim_order {
    _Atomic uint64_t bytes;
    _Atomic uint64_t returned; /* by the last trim of an amount */
    _Atomic uint8_t asked;
} trim_order;
static trim_order order;

bool sy_maintenance_runs(void) {
    return atomic_load_explicit(&state, memory_order_relaxed) == RUNS;
}

/* Sets the state, and wakes the threads that wait for it in start and stop. */
static void become(uint32_t now) {
    atomic_store(&state, now);
    sy_os_wake(&state, 1 << 20);
}

/* Whether the process has so much free memory to release that it is worth waking up often, to look
 * for pressure. */
static bool has_free_memory(void) {
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(&sy_memory_main, &chunks);
    size_t dirty = (chunks.units_free - chunks.units_clean) * SY_UNIT_BYTES;
    return dirty + chunks.large_kept >= WATCHED_BYTES;
}

/* After so many passes that returned nothing, passes are a quarter as frequent: a process that is
 * idle is seldom woken. */
enum { QUIET_PASSES = 8, QUIET_SHIFT = 2 };

static uint64_t next_interval(unsigned quiet) {
    return sy_reclaim_interval() << (quiet >= QUIET_PASSES ? QUIET_SHIFT : 0);
}

/* Whether the program's threads have ended. Without this thread the process would have ended. Where
 * the system does not list threads, the end of the first one stands for that of all. */
static bool is_left_alone(void) {
    if (sy_background_first_has_ended() && !sy_os_lists_threads()) return true;
    return sy_os_is_left_alone(observed ? 2 : 1);
}

/* Does the trim that the tool has asked for. The tool waits until `asked` is 0. */
static void obey_tool(void) {
    uint8_t what = atomic_load_explicit(&order.asked, memory_order_acquire);
    if (what == ASKS_SOME) {
        uint64_t bytes = atomic_load_explicit(&order.bytes, memory_order_relaxed);
        size_t returned = sy_reclaim_some(bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX);
        atomic_store_explicit(&order.returned, returned, memory_order_relaxed);
    } else if (what) {
        sy_reclaim_at_once();
    }
    if (what) atomic_store_explicit(&order.asked, 0, memory_order_release);
}

/* Does what the observer's readings call for, and what the tool asked for. */
static void relieve(void) {
    unsigned saw = atomic_exchange_explicit(&sy_observer_saw, 0, memory_order_acquire);
    if (saw & SY_OBSERVER_STALL) sy_reclaim_at_once();
    obey_tool();
    if (saw & SY_OBSERVER_LIMIT) sy_reclaim_near_limit();
    bool may_write = !sy_os_is_hidden(); /* a thread that the C library knows */
    if (may_write && atomic_exchange_explicit(&account_asked, 0, memory_order_acquire))
        sy_tell->account();
}

/* ---- the signal ---- */

/* Writes, for example: slabyard: stats-on=SIGUSR2 writes nothing: ... */
static void tell_of_signal(const char *why) {
    char name[32];
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: stats-on=");
    if (sy_get_option("stats-on", name, sizeof name) > 0) sy_text_add(&text, name);
    sy_text_add(&text, " writes nothing: ");
    sy_text_add(&text, why);
    sy_text_add(&text, "\n");
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
}

/* The program may set a handler of its own at any time. One line tells that. */
static void watch_signal(void) {
    uint32_t now = atomic_load(&listens);
    if (!now || sy_os_notes_signal() || !atomic_compare_exchange_strong(&listens, &now, 0)) return;
    tell_of_signal("the program handles this signal itself");
}

/* Sleeps until the next pass by age is due, `quiet` passes after the last one that returned memory.
 * Follows changes of the decay time, and releases memory under pressure meanwhile. False: the
 * thread was stopped, or is the last one. */
static bool wait_until_due(unsigned quiet) {
    uint64_t began = sy_os_now(), now = began, look = began;
    unsigned end_looks = 0;
    for (;;) { /* what a call is about is looked at after the calls were counted */
        uint32_t calls = atomic_load_explicit(&sy_background_calls, memory_order_acquire);
        if (atomic_load_explicit(&state, memory_order_acquire) != RUNS) return false;
        uint64_t interval = next_interval(quiet), past = now - began, longest = LOOK_NS;
        if (is_left_alone()) return false;
        relieve();
        if (interval && past >= interval) return true;
        if (now >= look) {
            sy_observer_watch(has_free_memory());
            watch_signal();
            look = now + LOOK_NS;
        }
        uint64_t left = interval ? interval - past : LOOK_NS;
        if (end_looks) longest = END_LOOKS_APART_NS;
        sy_os_wait_for(&sy_background_calls, calls, left < longest ? left : longest);
        bool called = atomic_load(&sy_background_calls) != calls;
        if (end_looks) end_looks--;
        if (called && sy_background_first_has_ended()) end_looks = END_LOOKS;
        now = sy_os_now();
    }
}

/* ---- the thread ---- */

static bool may_read_files(void) {
    return atomic_load_explicit(&sy_options_now.system_files, memory_order_relaxed);
}

static void run(void) {
    is_it = true;
    atomic_store(&hidden, sy_os_is_hidden());
    atomic_store(&number, sy_os_thread());
    unsigned quiet = 0;
    observed = may_read_files() && sy_observer_start();
    while (wait_until_due(quiet)) {
        uint64_t before = sy_reclaim_returned();
        sy_reclaim_by_age();
        quiet = sy_reclaim_returned() > before ? 0 : quiet + 1;
    }
    bool last = is_left_alone();
    if (observed) sy_observer_end();
    if (last) { /* the C library ends the process when this thread has returned */
        atomic_store(&forbidden, true);
        sy_os_take_signals();
    }
    become(OFF);
}

/* In a thread that the program asked for, passes call functions of the program, which may need the
 * usual stack. In one that starts by itself they do so only if it cannot be hidden. */
static const sy_os_background on_request = {.body = run, .name = "slabyard"};
static const sy_os_background on_growth = {
    .body = run, .name = "slabyard", .stack = 256 << 10, .hidden = true};

static bool is_forbidden(void) { return atomic_load(&forbidden) || atomic_load(&pauses) > 0; }

static int begin(const sy_os_background *plan) {
    for (;;) {
        uint32_t seen = OFF;
        if (is_forbidden()) {
            errno = EPERM;
            return -1;
        }
        if (atomic_compare_exchange_strong(&state, &seen, STARTS)) break;
        if (seen == RUNS) return 0;
        if (is_it && atomic_compare_exchange_strong(&state, &seen, RUNS)) return 0; /* go on */
        if (!is_it) sy_os_wait(&state, seen);
    }
    errno = EPERM;
    if (!is_forbidden()) {
        become(RUNS);
        if (sy_os_start_thread(plan) == 0) return 0;
    }
    become(OFF);
    return -1;
}

int sy_maintenance_start(void) {
    int error = errno;
    if (!sy_os_has(SY_OS_BACKGROUND)) {
        errno = ENOTSUP;
        return -1;
    }
    if (sy_start() != 0) return -1; /* so that the hooks of fork are registered */
    int result = begin(&on_request);
    if (result == 0) errno = error;
    return result;
}

/* Tells a thread that runs to end. False: none runs, or it was told before. */
static bool tell_to_end(void) {
    for (;;) {
        uint32_t seen = RUNS;
        if (atomic_compare_exchange_strong(&state, &seen, ENDING)) {
            sy_background_call();
            return true;
        }
        if (seen != STARTS) return false;
        sy_os_wait(&state, STARTS);
    }
}

/* Ends the thread. False: none ran. */
static bool end_thread(void) {
    bool ran = tell_to_end();
    while (atomic_load(&state) == ENDING && !is_it) sy_os_wait(&state, ENDING);
    return ran;
}

static void forget_thread(void) {
    sy_os_forget_background();
    atomic_store(&state, OFF);
    atomic_store(&number, 0);
    atomic_store(&pauses, 0);
    atomic_store(&account_asked, 0);
}

/* ---- started by the library ---- */

/* A process that uses less memory does not need the thread. */
static const size_t GROWN_BYTES = (size_t)16 << 20;
static const uint64_t RETRY_NS = UINT64_C(10000000000);

static _Atomic bool waits_for_growth; /* the option is `auto` */
static _Atomic uint64_t next_try;     /* time of the next attempt after a failed one */

/* A child of vfork shares the parent's memory and must not start a thread for it. In a hook of fork
 * no thread can be started. */
static bool may_start(void) { return sy_os_is_own_thread() && !sy_lock_is_forking(); }

/* The latest setting applies: after this, the option `auto` does not start the thread again. */
void sy_maintenance_stop(void) {
    atomic_store(&waits_for_growth, false);
    (void)end_thread();
}

/* A thread that writes accounts is needed at once. */
static size_t grown_bytes(void) {
    return atomic_load_explicit(&listens, memory_order_relaxed) ? 0 : GROWN_BYTES;
}

/* A hidden thread calls no functions of the program, and none of the C library that other libraries
 * replace, as those for files. */
static bool must_be_seen(void) {
    return sy_reclaim_leaves_out || atomic_load_explicit(&listens, memory_order_relaxed);
}

static void try_later(uint64_t now) {
    atomic_store_explicit(&next_try, now + RETRY_NS, memory_order_relaxed);
}

/* A thread is not started in a free: when glibc frees the data of ended threads, it holds a lock
 * that pthread_create needs. A hidden thread ends when it has left out clients that call functions
 * of the program, and one follows that is not hidden. */
bool sy_maintenance_look(uint64_t now, bool allocates) {
    if (!atomic_load_explicit(&waits_for_growth, memory_order_relaxed)) return false;
    if (atomic_load_explicit(&state, memory_order_relaxed) != OFF) {
        if (must_be_seen() && hidden) (void)tell_to_end();
        return false;
    }
    if (is_forbidden() || !may_read_files()) return false;
    if (atomic_load_explicit(&sy_quota_process.used, memory_order_relaxed) < grown_bytes())
        return false;
    if (now < atomic_load_explicit(&next_try, memory_order_relaxed) || !may_start()) return false;
    if (!allocates) return true;
    if (begin(must_be_seen() ? &on_request : &on_growth) != 0) try_later(now);
    return false;
}

/* ---- while there must be no other thread ---- */

/* A thread that has stopped still makes system calls, and stays in the process for a moment. */
static bool end_thread_for_good(void) {
    bool ran = end_thread();
    unsigned thread = atomic_load(&number);
    if (!thread || is_it) return ran;
    sy_os_await_end(thread);
    atomic_compare_exchange_strong(&number, &thread, 0);
    return ran;
}

bool sy_maintenance_pause(void) {
    atomic_fetch_add(&pauses, 1);
    return end_thread_for_good();
}

void sy_maintenance_resume(bool ran) {
    int error = errno;
    uint32_t others = atomic_load(&pauses); /* in the child of a fork it may be 0 already */
    while (others && !atomic_compare_exchange_weak(&pauses, &others, others - 1)) {}
    if (ran && atomic_load_explicit(&waits_for_growth, memory_order_relaxed))
        try_later(sy_os_now());
    else if (ran)
        (void)sy_maintenance_start();
    errno = error;
}

/* A child of vfork does nothing: the parent, whose memory it uses, is in no sandbox. */
void sy_enter_sandbox(void) {
    int error = errno;
    if (sy_start() != 0 || atomic_load(&forbidden) || !sy_os_is_own_thread()) return;
    if (atomic_exchange(&forbidden, true)) return;
    (void)end_thread_for_good();
    if (may_read_files()) sy_facts_read();
    atomic_store(&sy_facts_now.in_sandbox, true);
    errno = error;
}

/* ---- options ---- */

static void tell_no_thread(void) {
    static const char line[] = "slabyard: the thread that the option \"maintenance\" asks for "
                               "cannot be started\n";
    sy_os_write(sy_os_stderr(), line, sizeof line - 1);
}

/* Of the option `maintenance` only `no`, said by the user, forbids the thread that writes. */
static void listen_to(unsigned which) {
    static _Atomic uint32_t count;
    uint64_t maintenance;
    atomic_store(&listens, 0);
    if (sy_os_note_signal(which, &account_asked) != 0) {
        tell_of_signal("this signal has a handler already, or is ignored");
        return;
    }
    if (which == SY_OS_NO_SIGNAL) return;
    atomic_store(&listens, atomic_fetch_add(&count, 1) + 1);
    sy_options_auto_maintenance();
    (void)sy_options_take(SY_LATE_MAINTENANCE, &maintenance);
    bool may = maintenance != SY_MAINTENANCE_NO && !atomic_load(&forbidden);
    if (may && hidden) (void)end_thread();
    if (!may || (may_start() && sy_maintenance_start() != 0))
        tell_of_signal("the background thread, which writes accounts, does not run");
}

/* Carries out the options that were set since the last call. */
static void apply_options(void) {
    int error = errno;
    uint64_t value;
    sy_fail_apply_option();
    if (sy_options_take(SY_LATE_DECAY, &value)) sy_set_decay(value);
    if (sy_options_take(SY_LATE_SLACK, &value)) sy_set_slack((size_t)value);
    if (sy_options_take(SY_LATE_LIMIT, &value)) sy_set_limit(&(sy_limit){.hard = (size_t)value});
    if (sy_options_take(SY_LATE_MAINTENANCE, &value)) {
        atomic_store(&waits_for_growth, value == SY_MAINTENANCE_AUTO);
        if (value == SY_MAINTENANCE_NO) sy_maintenance_stop();
        if (value == SY_MAINTENANCE_YES && sy_maintenance_start() != 0) tell_no_thread();
    }
    if (sy_options_take(SY_LATE_STATS_ON, &value)) listen_to((unsigned)value);
    sy_clients_profile();
    errno = error;
}

static int obey_options(void) {
    sy_options_on_change(apply_options);
    apply_options();
    return 0;
}

const sy_part sy_maintenance_part = {.finish = obey_options, .recover = forget_thread};

/* ---- for tools that read the process (base/shape.h) ---- */

#define MAINTENANCE_VARIABLES(row) row(sy_trim_order, order) row(sy_maintenance_state, state)

static const sy_shape_row maintenance_shape_rows[] = {
    {"sy_maintenance_runs", RUNS, 0},
    {"sy_trim_asks_all", ASKS_ALL, 0},
    {"sy_trim_asks_some", ASKS_SOME, 0},
    SY_SHAPE_FIELD(sy_trim_order, trim_order, bytes),
    SY_SHAPE_FIELD(sy_trim_order, trim_order, returned),
    SY_SHAPE_FIELD(sy_trim_order, trim_order, asked),
    MAINTENANCE_VARIABLES(SY_SHAPE_VARIABLE)};

static const void *const maintenance_shape_addresses[] = {MAINTENANCE_VARIABLES(SY_SHAPE_ADDRESS)};

const sy_shape_part sy_maintenance_shape =
    SY_SHAPE_PART(maintenance_shape_rows, maintenance_shape_addresses);
