/*
 * pressure.c: watches how near the process is to its memory limit, and how long tasks wait for
 * memory.
 *
 * The resident memory is read from a file, so it is read seldom: after each reading a number of
 * bytes may be taken before the next one, `room`. Far from the limit this is half of the distance
 * to the mark; near it, a 64th of the mark.
 *
 *     0                          resident                      mark            limit
 *     |--------------------------|<------ room ----->|----------|<-- an eighth ->|
 */
#include "chunk/pressure.h"

#include "os/os.h"

enum {
    SPARE_PART = 8, /* an eighth of the limit is left for stacks, code and other processes */
    NEAR_PART = 64, /* of the mark: the smallest growth between two looks */
    STALL_PART = 10,
};

static const int64_t FIRST_ROOM = 16 << 20;  /* a smaller process does not read its limit */
static const size_t FREE_ROOM = 64 << 20;    /* from one look to the next, without a limit */
static const uint64_t LIMIT_NS = 1000000000; /* from one reading of the limit to the next */

_Atomic int64_t sy_pressure_room = FIRST_ROOM;
_Atomic size_t sy_pressure_unmet;

static _Atomic bool looking;       /* a thread is taking a look */
static _Atomic int64_t patience;   /* bytes that others may take meanwhile, without a look */
static _Atomic size_t limit;       /* bytes; SIZE_MAX: there is none */
static _Atomic uint64_t limit_due; /* time of the next reading of the limit */
static _Atomic bool pressing;      /* at the last look, half of the spare part was used */
static _Atomic bool far_below;     /* at the last look, the mark was far */

static size_t read_limit(void) {
    uint64_t now = sy_os_now(), due = atomic_load_explicit(&limit_due, memory_order_relaxed);
    if (now >= due) {
        atomic_store_explicit(&limit, sy_os_memory_limit(), memory_order_relaxed);
        atomic_store_explicit(&limit_due, now + LIMIT_NS, memory_order_relaxed);
    }
    return atomic_load_explicit(&limit, memory_order_relaxed);
}

static void set_room(size_t bytes) {
    int64_t most = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    atomic_store_explicit(&sy_pressure_room, most, memory_order_relaxed);
}

static size_t look(size_t coming) {
    size_t bytes = read_limit(), resident = bytes == SIZE_MAX ? 0 : sy_os_resident();
    if (resident == 0) { /* there is no limit, or the memory cannot be read */
        atomic_store_explicit(&far_below, true, memory_order_relaxed);
        set_room(FREE_ROOM);
        return 0;
    }
    size_t spare = bytes / SPARE_PART, mark = bytes - spare, near = mark / NEAR_PART;
    size_t used = resident + coming;
    atomic_store_explicit(&patience, (int64_t)near, memory_order_relaxed);
    atomic_store_explicit(&pressing, used > mark + spare / 2, memory_order_relaxed);
    size_t half = used < mark ? (mark - used) / 2 : 0;
    atomic_store_explicit(&far_below, half > near, memory_order_relaxed);
    if (used + near <= mark) {
        set_room(half > near ? half : near);
        return 0;
    }
    set_room(near);
    return used + 2 * near - mark;
}

/* A thread that is looking may be stopped for some time, or be missing in the child of a fork. So
 * the others look too, once they have taken much meanwhile. */
size_t sy_pressure_look(size_t coming) {
    int64_t room = atomic_load_explicit(&sy_pressure_room, memory_order_relaxed);
    bool patient = room > -atomic_load_explicit(&patience, memory_order_relaxed);
    if (atomic_exchange_explicit(&looking, true, memory_order_relaxed) && patient) return 0;
    size_t wanted = look(coming);
    atomic_store_explicit(&looking, false, memory_order_relaxed);
    return wanted;
}

bool sy_pressure_presses(void) { return atomic_load_explicit(&pressing, memory_order_relaxed); }

bool sy_pressure_is_far(void) { return atomic_load_explicit(&far_below, memory_order_relaxed); }

bool sy_pressure_stalled(uint64_t now) {
    static uint64_t last_stall = UINT64_MAX, last_time;
    uint64_t stall = sy_os_memory_stall();
    uint64_t waited = stall > last_stall ? stall - last_stall : 0, past = now - last_time;
    last_stall = stall;
    last_time = now;
    return stall != UINT64_MAX && waited * STALL_PART >= past && waited > 0;
}
