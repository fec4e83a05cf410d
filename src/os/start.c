/*
 * start.c: starts the parts on the first call of the process, in order, and takes and releases all
 * locks around a fork.
 */
#include "os/start.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "os/lock.h"
#include "os/os.h"
#include "os/race.h"

enum { NOT_STARTED, STARTING, STARTED };

static _Atomic uint32_t state;
static SY_TLS bool starting; /* this thread is the one that starts the parts */
/* How far the start has come. If it fails, a later one goes on from here. */
static bool survives_forks; /* the hooks of fork are registered, or are being registered */
static size_t parts_started, parts_finished;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_START);

bool sy_start_lock(void) {
    if (sy_lock_is_mine(&lock)) return false;
    sy_lock_acquire(&lock);
    return true;
}

void sy_start_unlock(void) { sy_lock_release(&lock); }

/* ---- fork ---- */

static void settle_all(void) {
    for (size_t i = 0; i < sy_part_count; i++)
        if (sy_parts[i]->settle) sy_parts[i]->settle();
}

static void hold_all(void) {
    sy_lock_hold(&lock);
    for (size_t i = 0; i < sy_part_count; i++)
        if (sy_parts[i]->hold) sy_parts[i]->hold();
}

static void drop_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->drop) sy_parts[i]->drop();
    sy_lock_drop(&lock);
}

/* If a fork came while another thread starts the library, the child would lack that thread and have
 * a half-done start. So a fork waits for the start, unless this thread holds a lock that the other
 * one may need. */
static void wait_for_start(void) {
    while (atomic_load_explicit(&state, memory_order_acquire) == STARTING && !starting &&
           sy_lock_self.held == 0)
        sy_os_wait(&state, STARTING);
}

/* Takes all locks; with `streams`, takes the C library's lock of its streams before them. */
static void lock_all(bool streams) {
    int error = errno;
    for (;;) {
        settle_all();
        sy_lock_begin_fork();
        if (streams) sy_os_hold_streams();
        hold_all();
        if (!sy_lock_gave_way()) break;
        drop_all();
        if (streams) sy_os_drop_streams(false);
        sy_lock_end_fork();
        sy_lock_wait_for_way();
    }
    errno = error;
}

void sy_start_lock_all(void) { lock_all(false); }

void sy_start_unlock_all(void) {
    drop_all();
    sy_lock_end_fork();
}

static void before_fork(void) {
    wait_for_start();
    lock_all(true);
}

static void after_fork_in_parent(void) {
    sy_start_unlock_all();
    sy_os_drop_streams(false);
}

static void inherit_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->inherit) sy_parts[i]->inherit();
}

static void recover_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->recover) sy_parts[i]->recover();
}

static void after_fork_in_child(void) {
    int error = errno;
    sy_lock_begin_child();
    drop_all();
    inherit_all();
    if (atomic_load(&state) == STARTING && !starting) atomic_store(&state, NOT_STARTED);
    sy_lock_end_child(recover_all);
    sy_os_drop_streams(true);
    errno = error;
}

/* musl's pthread_atfork allocates. If this library is the program's malloc, that call may start the
 * library, which comes here again: then the first call registers the hooks. */
static int survive_forks(void) {
    if (survives_forks) return 0;
    survives_forks = true;
    if (sy_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child) == 0) return 0;
    survives_forks = false;
    return -1;
}

/* Registers the hooks of fork before the program's hooks, so that the program's run before the
 * locks are held and after they are released. Only other libraries' constructors can come earlier.
 * If this fails, or a call starts the library before it, the start registers the hooks. Priority
 * 101 is the fake OS's (os/fake.c). The library stays loaded from then on, with its hooks. */
__attribute__((constructor(102))) static void survive_forks_early(void) {
    int error = errno;
    sy_os_stay_loaded();
    (void)survive_forks();
    errno = error;
}

/* ---- start ---- */

static const sy_part *from_innermost(size_t i) { return sy_parts[sy_part_count - 1 - i]; }

/* The first attempt to register the hooks of fork fails where pthread_atfork allocates from this
 * library, because no part has started. The second one can allocate. */
static int start_parts(void) {
    if (!parts_started) sy_race_start();
    (void)survive_forks();
    for (; parts_started < sy_part_count; parts_started++) {
        const sy_part *part = from_innermost(parts_started);
        if (part->start && part->start() != 0) return -1;
    }
    if (survive_forks() != 0) return -1;
    for (; parts_finished < sy_part_count; parts_finished++) {
        const sy_part *part = from_innermost(parts_finished);
        if (part->finish && part->finish() != 0) return -1;
    }
    return 0;
}

/* If this library is the program's malloc, functions of the system that the start calls may
 * allocate from it. Such an allocation is served when all parts have started. */
static int start_within(void) {
    if (parts_started == sy_part_count) return 0;
    errno = ENOMEM;
    return -1;
}

int sy_start(void) {
    for (;;) {
        uint32_t seen = NOT_STARTED;
        if (atomic_load_explicit(&state, memory_order_acquire) == STARTED) return 0;
        if (starting) return start_within();
        if (atomic_compare_exchange_strong(&state, &seen, STARTING)) break;
        if (seen == STARTING) sy_os_wait(&state, STARTING);
    }
    starting = true;
    int result = start_parts();
    if (result != 0) errno = ENOMEM;
    starting = false;
    atomic_store_explicit(&state, result == 0 ? STARTED : NOT_STARTED, memory_order_release);
    sy_os_wake(&state, 1 << 20);
    return result;
}
