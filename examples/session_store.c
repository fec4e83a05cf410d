/*
 * session_store.c: a session store through a day. Sessions are objects that move: at night, when
 * most sessions have expired and the others lie scattered, the library moves these together, and
 * the memory of the peak goes back to the system.
 *
 *     cc -O2 -DSY_STATIC session_store.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * A client's cookie is the handle of its session and a secret. The store has no index: a handle
 * leads to its session, and the handle of an expired session is refused. Sessions expire by a timer
 * wheel, which is made of handles too. `./a.out move 12000000` has 12 million users, of whom 10
 * million have a session in the evening. `./a.out stay` has sessions that do not move, for
 * comparison. The program checks its results: the exit status is 0 only if all of them are right.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slabyard/handle.h>
#include <slabyard/options.h>
#include <slabyard/reclaim.h>
#include <slabyard/stats.h>

enum {
    USERS = 50000, /* unless the second argument says how many */
    DAY = 24 * 60, /* minutes; the program's day begins at 06:00 */
    BEGIN = 6 * 60,
    LOW = 5 * 60,               /* the minute of the fewest requests: 05:00 */
    HIGH = 20 * 60,             /* and of the most: 20:00 */
    REPORT = 2 * 60,            /* minutes between two lines of output */
    IDLE_MINUTES = 120,         /* a session that is not used for so long has expired, */
    SIGNED_IN_MINUTES = 720,    /* or for so long, if its user wants to stay signed in, */
    SIGNED_IN_ONE_IN = 25,      /* as one user in 25 does */
    WHEEL = 1024,               /* slots of the timer wheel, a minute each: more than 720 */
    REQUESTS_PER_MILLE = 15,    /* in a minute at the peak, for 1,000 users */
    NIGHT_REQUESTS_ONE_IN = 50, /* of the peak's requests */
    DATA_WORDS = 14,
};

typedef struct session {
    uint64_t secret;
    sy_handle next_due; /* the next session in the same slot of the wheel, or 0 */
    uint32_t user, requests;
    uint32_t created, last_used, idle; /* minutes */
    uint64_t data[DATA_WORDS];
} session;

/* What a client holds and sends back. */
typedef struct cookie {
    sy_handle session;
    uint64_t secret;
} cookie;

typedef struct store {
    sy_cache *sessions;
    sy_handle wheel[WHEEL]; /* for each minute the first session whose time may be over, or 0 */
    uint32_t now;           /* minutes */
    size_t live, created, expired, refused;
    size_t most_live, most_held; /* sessions, and bytes of their cache */
} store;

static void expect(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* ---- the data of a session, which must be the same after each move ---- */

static void fill_data(session *it) {
    for (size_t i = 0; i < DATA_WORDS; i++) it->data[i] = it->secret + i;
}

static bool is_whole(const session *of) {
    for (size_t i = 0; i < DATA_WORDS; i++)
        if (of->data[i] != of->secret + i) return false;
    return true;
}

/* ---- the store ---- */

static sy_cache *create_cache(unsigned flags) {
    sy_cache_config config = {.name = "session", .size = sizeof(session), .flags = flags};
    config.align = _Alignof(session); /* by default 16: a session would take 160 bytes, not 152 */
    return sy_cache_create(&config);
}

static void link_due(store *of, session *it, sy_handle handle, uint32_t due) {
    it->next_due = of->wheel[due % WHEEL];
    of->wheel[due % WHEEL] = handle;
}

/* Makes a session. Until it is published no other thread sees it, and it does not move. */
static cookie create_session(store *of, uint32_t user, uint64_t secret) {
    sy_handle handle;
    session *made = sy_handle_prepare(of->sessions, &handle);
    expect(made != NULL, "there is memory for a session");
    *made = (session){.secret = secret, .user = user, .created = of->now, .last_used = of->now};
    made->idle = user % SIGNED_IN_ONE_IN == 0 ? SIGNED_IN_MINUTES : IDLE_MINUTES;
    fill_data(made);
    link_due(of, made, handle, of->now + made->idle);
    sy_handle_publish(of->sessions, handle); /* from here on it may move */
    of->created++;
    of->live++;
    return (cookie){handle, secret};
}

/* Serves a request with this cookie. Returns false if the session has expired. */
static bool use_session(store *of, cookie sent, uint32_t user) {
    sy_read_guard guard = sy_read_enter(); /* nothing that is looked up moves until sy_read_leave */
    session *it = sy_read_get(of->sessions, sent.session);
    bool is_valid = it && it->secret == sent.secret; /* handles can be guessed, secrets cannot */
    if (is_valid) {
        expect(it->user == user && is_whole(it), "a session has its user's data");
        it->last_used = of->now;
        it->requests++;
    }
    sy_read_leave(guard);
    if (!is_valid && sent.session != 0) of->refused++;
    return is_valid;
}

/* Looks at a session whose time may be over. If it was used meanwhile, it is linked again for
 * later; else it is freed. Returns the next session in the slot of the wheel. */
static sy_handle expire_or_keep(store *of, sy_handle handle) {
    sy_read_guard guard = sy_read_enter();
    session *it = sy_read_get(of->sessions, handle);
    expect(it != NULL, "a session in the wheel is live");
    sy_handle next = it->next_due;
    uint32_t due = it->last_used + it->idle;
    bool is_over = due <= of->now;
    if (!is_over) link_due(of, it, handle, due);
    sy_read_leave(guard);
    if (!is_over) return next;
    expect(sy_handle_free(of->sessions, handle), "a session expires once");
    of->expired++;
    of->live--;
    return next;
}

static void expire_sessions(store *of) {
    sy_handle *slot = &of->wheel[of->now % WHEEL], at = *slot;
    *slot = 0;
    while (at != 0) at = expire_or_keep(of, at);
}

/* ---- the clients ---- */

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* The share of the peak's requests in a minute of the day: lowest at 05:00, highest at 20:00. */
static double load_at(uint32_t minute) {
    uint32_t since = (minute + DAY - LOW) % DAY, rise = HIGH - LOW;
    double height = since < rise ? (double)since / rise : (double)(DAY - since) / (DAY - rise);
    double smooth = height * height * (3 - 2 * height);
    return smooth + (1 - smooth) / NIGHT_REQUESTS_ONE_IN;
}

/* A client sends its cookie, if it has one. If it is refused, the user logs in again. */
static void send_requests(store *of, cookie *cookies, uint32_t users, uint64_t *state) {
    uint32_t peak = users / 1000 * REQUESTS_PER_MILLE;
    uint32_t count = (uint32_t)(peak * load_at(of->now));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t user = (uint32_t)((next_random(state) >> 32) * users >> 32);
        if (!use_session(of, cookies[user], user))
            cookies[user] = create_session(of, user, next_random(state));
    }
}

/* ---- the memory ---- */

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %zu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) >> 10;
}

/* Bytes of the sessions' cache that the system has not got back. */
static size_t held_bytes(const store *of) {
    sy_cache_stats stats;
    expect(sy_cache_get_stats(of->sessions, &stats) == 0, "a cache has statistics");
    return stats.mapped - stats.discarded - stats.never_used;
}

static void report(const store *of, const char *when) {
    printf("%02u:00 %9zu sessions, %8zu KiB in their cache, %8zu KiB resident%s\n",
           (unsigned)(of->now / 60 % 24), of->live, held_bytes(of) >> 10, resident_kib(), when);
    fflush(stdout);
}

/* ---- the day ---- */

static void live_through_day(store *of, cookie *cookies, uint32_t users) {
    uint64_t state = 1;
    for (uint32_t minute = 0; minute <= DAY; minute++, of->now++) {
        expire_sessions(of);
        send_requests(of, cookies, users, &state);
        if (minute % REPORT == 0) report(of, "");
        if (of->live > of->most_live) {
            of->most_live = of->live;
            of->most_held = held_bytes(of);
        }
    }
}

/* Whether the library moves the objects of this cache. It does not if the program runs with checks,
 * since reports then name addresses that stay. sy_handle_get finds nothing where objects move. */
static bool objects_move(const store *of, const cookie *cookies, uint32_t users) {
    for (uint32_t user = 0; user < users; user++)
        if (sy_handle_get(of->sessions, cookies[user].session)) return false;
    return true;
}

static int check_one(void *arg, sy_handle handle, void *object) {
    const session *it = object;
    size_t *seen = arg;
    expect(handle != 0 && is_whole(it), "a session has its data");
    ++*seen;
    return 0;
}

static void check_all(const store *of, const cookie *cookies, uint32_t users) {
    size_t seen = 0, valid = 0;
    expect(sy_handle_each(of->sessions, check_one, &seen) == 0, "all sessions are visited");
    for (uint32_t user = 0; user < users; user++) {
        sy_read_guard guard = sy_read_enter();
        const session *it = sy_read_get(of->sessions, cookies[user].session);
        valid += it && it->secret == cookies[user].secret && it->user == user;
        sy_read_leave(guard);
    }
    expect(seen == of->live && valid == of->live,
           "each session is found by its cookie, and no other");
    expect(of->created == of->live + of->expired, "each session is live or has expired");
    expect(sy_cache_in_use(of->sessions) == of->live, "the cache has as many objects");
}

int main(int argc, char **argv) {
    static store it = {.now = BEGIN};
    bool stay = argc > 1 && strcmp(argv[1], "stay") == 0;
    uint32_t users = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : USERS;
    it.sessions = create_cache(stay ? SY_HANDLES : SY_HANDLES | SY_MOVABLE);
    cookie *cookies = calloc(users, sizeof *cookies); /* the clients have them, not the store */
    expect(it.sessions != NULL && cookies != NULL, "there is memory for the store");
    if (sy_maintenance_start() != 0) puts("no background thread: requests give memory back");

    live_through_day(&it, cookies, users);
    check_all(&it, cookies, users);
    sy_maintenance_stop(); /* so that no pass is at work while the memory is compared */
    sy_thread_flush();
    sy_trim(); /* a server need not call this: in a real night, passes have more time than here */
    report(&it, ", after sy_trim");
    check_all(&it, cookies, users);
    printf("%zu sessions began, %zu expired, %zu requests had the cookie of an expired session\n",
           it.created, it.expired, it.refused);

    expect(it.live < it.most_live / 5, "most sessions have expired");
    if (objects_move(&it, cookies, users) && sy_platform_has("discards") == 1)
        expect(held_bytes(&it) < it.most_held / 5, "memory follows the live sessions");
    sy_cache_destroy_all(it.sessions);
    free(cookies);
    return 0;
}
