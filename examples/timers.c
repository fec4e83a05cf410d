/*
 * timers.c: a timer wheel. Timers are named by handles, so code that started a timer can cancel it
 * at any time. If the timer has fired already, its handle is stale, and nothing happens.
 *
 *     cc -DSY_STATIC timers.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * After Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987. The wheel is
 * hashed: timers of several turns share a slot, and each holds the tick at which it is due. The
 * program checks its results: the exit status is 0 only if all of them are right.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <slabyard/handle.h>

enum {
    SLOTS = 256, /* of the wheel, one for each tick of a turn */
    TIMERS = 100000,
    DELAY_MAX = 5000, /* ticks */
    TICKS = 20000,
};

typedef struct timer {
    struct timer *next, **link; /* in its slot of the wheel */
    uint64_t due;
    sy_handle name;
    void (*fire)(void *arg); /* called with `arg` at the tick `due` */
    void *arg;
} timer;

typedef struct wheel {
    sy_cache *timers;
    timer *slots[SLOTS];
    uint64_t now;
} wheel;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- the wheel ---- */

static void link_timer(timer *it, timer **list) {
    it->next = *list;
    it->link = list;
    if (it->next) it->next->link = &it->next;
    *list = it;
}

static void unlink_timer(timer *it) {
    *it->link = it->next;
    if (it->next) it->next->link = it->link;
}

/* Starts a timer that fires in `delay` ticks, at least 1. */
static sy_handle start(wheel *of, uint64_t delay, void (*fire)(void *), void *arg) {
    sy_handle name;
    timer *it = sy_handle_alloc(of->timers, &name);
    expect(it != NULL, "there is memory for a timer");
    expect(delay > 0, "a timer is for later");
    *it = (timer){.due = of->now + delay, .name = name, .fire = fire, .arg = arg};
    link_timer(it, &of->slots[it->due % SLOTS]);
    return name;
}

/* Cancels a timer. Returns whether it was still waiting. */
static int cancel(wheel *of, sy_handle name) {
    timer *it = sy_handle_get(of->timers, name);
    if (!it) return 0;
    unlink_timer(it);
    return sy_handle_free(of->timers, name);
}

/* Fires the timers that are due. They are first moved to a list of their own, so that a timer's
 * function may start and cancel others. A timer is freed before it fires: its handle is stale by
 * then, and cancelling it does nothing. */
static void tick(wheel *of) {
    timer *due = NULL;
    of->now++;
    for (timer *it = of->slots[of->now % SLOTS], *next; it; it = next) {
        next = it->next;
        if (it->due != of->now) continue; /* due in a later turn */
        unlink_timer(it);
        link_timer(it, &due);
    }
    while (due) {
        timer it = *due;
        unlink_timer(due);
        sy_handle_free(of->timers, it.name);
        it.fire(it.arg);
    }
}

/* ---- code that uses timers ---- */

typedef struct request {
    sy_handle timeout;
    uint32_t timed_out; /* how often the timer fired */
    int cancelled;      /* the timer was cancelled before it fired */
} request;

static uint64_t random_below(uint64_t *state, uint64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

static void time_out(void *arg) {
    request *it = arg;
    it->timed_out++;
}

enum { RUNNERS = 3 };

typedef struct race {
    wheel *of;
    sy_handle names[RUNNERS];
    int won; /* how often a timer of the race fired */
} race;

static void win(void *arg) {
    race *it = arg;
    int cancelled = 0;
    it->won++;
    for (int i = 0; i < RUNNERS; i++) cancelled += cancel(it->of, it->names[i]);
    expect(cancelled == RUNNERS - 1, "who fires cancels all that are due with it but itself");
}

/* Starts timers that are due at the same tick. The first to fire cancels the others. */
static void run_race(wheel *of) {
    race it = {.of = of};
    for (int i = 0; i < RUNNERS; i++) it.names[i] = start(of, 1, win, &it);
    tick(of);
    expect(it.won == 1 && sy_cache_in_use(of->timers) == 0, "one wins and none is left");
}

int main(void) {
    static request requests[TIMERS];
    wheel clock = {.timers = sy_cache_create(&(sy_cache_config){
                       .name = "timer", .size = sizeof(timer), .flags = SY_HANDLES})};
    expect(clock.timers != NULL, "a cache is created");
    run_race(&clock);

    /* Requests begin with a timer. The answer to a request cancels its timer, also if the timer has
     * fired already. */
    uint64_t state = 1, started = 0, in_time = 0, late = 0, fired = 0;
    while (clock.now < TICKS) {
        for (uint64_t i = random_below(&state, 12); i > 0 && started < TIMERS; i--, started++) {
            request *it = &requests[started];
            it->timeout = start(&clock, 1 + random_below(&state, DELAY_MAX), time_out, it);
        }
        for (uint64_t i = random_below(&state, 8); i > 0 && started; i--) {
            request *it = &requests[random_below(&state, started)];
            int cancelled = cancel(&clock, it->timeout);
            expect(cancelled == !(it->timed_out || it->cancelled), "a handle knows what it names");
            in_time += (uint64_t)cancelled;
            late += !cancelled;
            it->cancelled |= cancelled;
        }
        tick(&clock);
    }
    for (uint64_t i = 0; i < started; i++) {
        const request *it = &requests[i];
        fired += it->timed_out;
        expect(it->timed_out + (uint32_t)it->cancelled <= 1, "each ended once");
    }
    size_t waiting = sy_cache_in_use(clock.timers);
    printf("%ju timers: %ju cancelled in time, %ju fired, %zu wait; %ju cancelled too late\n",
           (uintmax_t)started, (uintmax_t)in_time, (uintmax_t)fired, waiting, (uintmax_t)late);
    expect(in_time + fired + waiting == started && late > 0, "each is accounted for");
    sy_cache_destroy_all(clock.timers);
    return 0;
}
