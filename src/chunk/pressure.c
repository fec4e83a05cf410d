/*
 * pressure.c: calculates how near the process is to its memory limit, and watches how long tasks
 * wait for memory.
 *
 * How much memory is resident stands in a file, which only the observer reads (os/facts.h). After
 * each reading a number of bytes may be taken before the next look, `room`. Far from the limit this
 * is half of the distance to the mark; near it, a 64th of the mark; very near the limit, an eighth
 * of what is left.
 *
 *     0                          resident                      mark            limit
 *     |--------------------------|<------ room ----->|----------|<-- an eighth ->|
 *
 * Memory that is taken makes the room smaller. Memory that goes back to the OS does not make it
 * larger: some of it may have been taken and never used. So there is a look as often as memory is
 * taken. In between, the resident memory is calculated:
 *
 *     resident now == resident when the room was set + the room then - the room now - returned
 */
#include "chunk/pressure.h"

#include "os/facts.h"

enum {
    SPARE_PART = 8, /* an eighth of the limit is left for stacks, code and other processes */
    NEAR_PART = 64, /* of the mark: growth between two looks near it, */
    PRESS_PART = 4, /* of the spare part: beyond it the limit is very near, and threads wait; */
    LEFT_PART = 8,  /* then growth between two looks, of what is left; so many threads can look */
    STALL_PART = 10,
};

static const int64_t FIRST_ROOM = 16 << 20; /* a smaller process does not look */
static const size_t FREE_ROOM = 64 << 20;   /* from one look to the next, without a limit */
static const size_t LEAST_ROOM = 256 << 10; /* very near it */

_Atomic int64_t sy_pressure_room = FIRST_ROOM;
_Atomic size_t sy_pressure_taken, sy_pressure_returned;
_Atomic size_t sy_pressure_unmet;

static _Atomic int64_t room_then = FIRST_ROOM; /* when the room was set */
static _Atomic size_t resident_then;           /* 0: not set yet */
static _Atomic bool pressing;                  /* by the last reading or look */

#define LOAD(variable)         atomic_load_explicit(&(variable), memory_order_relaxed)
#define STORE(variable, value) atomic_store_explicit(&(variable), value, memory_order_relaxed)

/* Where a process stands that has `resident` bytes. */
typedef struct sy_distance {
    bool limited; /* there is a limit, and the resident memory is known */
    size_t resident, spare, mark, near, half;
} sy_distance;

static sy_distance distance_of(size_t resident) {
    size_t limit = LOAD(sy_facts_now.memory_limit);
    sy_distance it = {.limited = resident && limit != SIZE_MAX, .resident = resident};
    it.spare = limit / SPARE_PART;
    it.mark = limit - it.spare;
    it.near = it.mark / NEAR_PART;
    it.half = resident < it.mark ? (it.mark - resident) / 2 : 0;
    return it;
}

static size_t resident_with(int64_t room) {
    size_t then = LOAD(resident_then), known = then ? then : LOAD(sy_facts_now.resident);
    if (!known) return 0;
    int64_t more = LOAD(room_then) - room - (int64_t)LOAD(sy_pressure_returned);
    return more < 0 && (size_t)-more >= known ? 1 : known + (size_t)more;
}

static bool is_near(const sy_distance *it) { return it->resident + it->near > it->mark; }

static void remember(size_t resident, int64_t room) {
    STORE(sy_pressure_returned, 0);
    STORE(resident_then, resident);
    STORE(room_then, room);
}

static bool presses_at(const sy_distance *it) {
    return it->limited && it->resident > it->mark + it->spare / PRESS_PART;
}

/* The room until the next look. Very near the limit a thread that looks waits for a pass, while
 * other threads take memory until they look too: there are as many looks as they need. */
static int64_t room_at(const sy_distance *it) {
    uint64_t bytes = it->half > it->near ? it->half : it->near;
    if (presses_at(it)) {
        size_t limit = it->mark + it->spare, left = limit > it->resident ? limit - it->resident : 0;
        bytes = left / LEFT_PART > LEAST_ROOM ? left / LEFT_PART : LEAST_ROOM;
    }
    if (!it->limited) bytes = FREE_ROOM;
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* Only one of several threads that look at once finds the old room. */
size_t sy_pressure_look(void) {
    int64_t room = LOAD(sy_pressure_room), next;
    sy_distance it;
    do {
        if (room >= 0) return 0;
        it = distance_of(resident_with(room));
        next = room_at(&it);
    } while (!atomic_compare_exchange_weak_explicit(&sy_pressure_room, &room, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    remember(it.resident, next);
    STORE(pressing, presses_at(&it));
    sy_facts_ask();
    return it.limited && is_near(&it) ? it.resident + 2 * it.near - it.mark : 0;
}

/* A reading that a look has asked for confirms what the look has calculated, or brings the next
 * look nearer, by as much as is resident beyond that. */
static int64_t room_near(const sy_distance *it) {
    int64_t room = LOAD(sy_pressure_room), most = room_at(it);
    size_t calculated = resident_with(room);
    if (room > most) room = most;
    if (it->resident > calculated) room -= (int64_t)(it->resident - calculated);
    return room;
}

bool sy_pressure_take_reading(bool asked) {
    sy_distance it = distance_of(LOAD(sy_facts_now.resident));
    bool near = it.limited && is_near(&it);
    int64_t room = !near ? room_at(&it) : asked ? room_near(&it) : -1;
    STORE(pressing, presses_at(&it));
    STORE(sy_pressure_room, room);
    remember(it.resident, room);
    return near;
}

bool sy_pressure_presses(void) { return LOAD(pressing); }

bool sy_pressure_is_far(void) {
    sy_distance it = distance_of(resident_with(LOAD(sy_pressure_room)));
    return !it.limited || it.half > it.near;
}

bool sy_pressure_stalled(uint64_t now) {
    static uint64_t last_stall = UINT64_MAX, last_time;
    uint64_t stall = LOAD(sy_facts_now.memory_stall);
    uint64_t waited = stall > last_stall ? stall - last_stall : 0, past = now - last_time;
    last_stall = stall;
    last_time = now;
    return stall != UINT64_MAX && waited * STALL_PART >= past && waited > 0;
}
