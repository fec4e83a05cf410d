/*
 * service: a service by day and night, whose load rises and falls. No published benchmark: the part
 * `service` of the benchmark runs it, and compares resident memory with the bytes that are live.
 *
 * Four threads hold sessions, which begin and end at random, and send messages to each other. A
 * thread has up to 2,000 sessions at midnight and 40,000 at noon. The usual size of a block changes
 * three times a day, from some 30 bytes to some 3,000; a block in 2,000 has 200,000 bytes more. The
 * program runs for three days.
 *
 * The load is throttled: time passes in rounds, each of which begins when all threads have ended
 * the one before, at the earliest 10 ms after its beginning. So each allocator does the same work,
 * however fast it is, and has the same time for it. SIZE is the number of rounds in a day.
 *
 * The main thread reads the memory 48 times a day. With a second argument, whatever it is, the
 * program prints more after the sum: the CPU time in milliseconds, without that of the main thread,
 * and a line for each reading. This line has the bytes of the live blocks, and the anonymous memory
 * that is in RAM, both in KiB.
 */
#include "program.h"

enum {
    DAYS = 3,
    MOMENTS = 48 * DAYS, /* when the memory is read */
    PHASES = 3,          /* of a day, each with another usual size */
    ROUND_MS = 10,
    OPERATIONS = 2000, /* of a thread in a round */
    SESSIONS = 40000,
    SESSIONS_BY_NIGHT = 2000,
    MESSAGES = 4096, /* places for messages to a thread */
    KINDS = 6
};

struct worker {
    void *sessions[SESSIONS];
    _Atomic(void *) messages[MESSAGES];
    struct random random;
    uint64_t day; /* rounds */
    uint64_t sum;
    _Atomic int64_t live; /* bytes that this thread allocated, less those that it freed */
};

static struct worker workers[THREADS];
static pthread_barrier_t next_round; /* of the workers and the main thread */

/* ---- blocks ---- */

static void count_live(struct worker *worker, int64_t bytes) {
    bytes += atomic_load_explicit(&worker->live, memory_order_relaxed);
    atomic_store_explicit(&worker->live, bytes, memory_order_relaxed);
}

static size_t draw_size(struct random *random, uint64_t phase) {
    static const size_t least[KINDS] = {24, 56, 120, 320, 900, 2600};
    bool is_usual = below(random, 8) < 5;
    size_t size = least[is_usual ? phase % KINDS : below(random, KINDS)];
    size += below(random, size / 2);
    return below(random, 2000) == 0 ? size + 200000 : size;
}

/* A block that is written whole. */
static void *make_block(struct worker *worker, uint64_t phase) {
    size_t size = draw_size(&worker->random, phase);
    void *block = malloc(size);
    must(block != NULL, "there is memory");
    memset(block, (int)phase, size);
    count_live(worker, (int64_t)size);
    return stamp(block, size, next(&worker->random));
}

static void end_block(struct worker *worker, void *block) {
    size_t size = give(block);
    worker->sum += size;
    count_live(worker, -(int64_t)size);
}

/* ---- the work of a thread ---- */

/* The load at a round: 0 at midnight, 1 at noon, and smooth in between. */
static double load_at(uint64_t round, uint64_t day) {
    double hour = (double)(round % day) / (double)day;
    double height = hour < 0.5 ? 2 * hour : 2 - 2 * hour;
    return height * height * (3 - 2 * height);
}

static void pass_messages(struct worker *worker, uint64_t phase) {
    size_t index = (size_t)(worker - workers);
    size_t other = (index + 1 + below(&worker->random, THREADS - 1)) % THREADS;
    _Atomic(void *) *sent = &workers[other].messages[below(&worker->random, MESSAGES)];
    end_block(worker, atomic_exchange(sent, make_block(worker, phase)));
    _Atomic(void *) *received = &worker->messages[below(&worker->random, MESSAGES)];
    end_block(worker, atomic_exchange(received, NULL));
}

static void work_round(struct worker *worker, uint64_t round) {
    uint64_t phase = round * PHASES / worker->day;
    double more = load_at(round, worker->day) * (SESSIONS - SESSIONS_BY_NIGHT);
    size_t wanted = SESSIONS_BY_NIGHT + (size_t)more;
    for (size_t i = 0; i < OPERATIONS; i++) {
        size_t place = below(&worker->random, SESSIONS);
        end_block(worker, worker->sessions[place]);
        worker->sessions[place] = place < wanted ? make_block(worker, phase) : NULL;
        if (i % 4 == 0) pass_messages(worker, phase + 1);
    }
}

static void *serve(void *argument) {
    struct worker *worker = argument;
    for (uint64_t round = 0; round < DAYS * worker->day; round++) {
        pthread_barrier_wait(&next_round);
        work_round(worker, round);
    }
    for (size_t i = 0; i < SESSIONS; i++) end_block(worker, worker->sessions[i]);
    return NULL;
}

/* ---- the main thread: the rounds, and the readings ---- */

struct moment {
    uint64_t live, resident; /* KiB */
};

static struct moment moments[MOMENTS];
static size_t seen;

static struct moment look(void) {
    int64_t live = 0;
    for (size_t i = 0; i < THREADS; i++) {
        live += atomic_load_explicit(&workers[i].live, memory_order_relaxed);
    }
    return (struct moment){live > 0 ? (uint64_t)live >> 10 : 0, resident_kib()};
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Sleeps until the next round may begin. A round that is late delays those after it. */
static void wait_for_round(uint64_t *began) {
    uint64_t due = *began + ROUND_MS * 1000000, now = now_ns(CLOCK_MONOTONIC);
    if (now < due) nanosleep(&(struct timespec){0, (long)(due - now)}, NULL);
    *began = now < due ? due : now;
}

static void run_days(uint64_t day) {
    uint64_t began = now_ns(CLOCK_MONOTONIC);
    for (uint64_t round = 0; round < DAYS * day; round++) {
        while (seen * day * DAYS < round * MOMENTS) moments[seen++] = look();
        wait_for_round(&began);
        pthread_barrier_wait(&next_round);
    }
}

static void print_moments(uint64_t worked_ns) {
    printf("%" PRIu64 "\n", worked_ns / 1000000);
    for (size_t i = 0; i < seen; i++) {
        printf("%" PRIu64 " %" PRIu64 "\n", moments[i].live, moments[i].resident);
    }
}

int main(int count, char **arguments) {
    uint64_t day = size_of_work(count, arguments), sum = 0;
    pthread_t threads[THREADS];
    pthread_barrier_init(&next_round, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].random = random_from(i + 1);
        workers[i].day = day;
        threads[i] = start(serve, &workers[i]);
    }
    run_days(day);
    for (size_t i = 0; i < THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0, "a thread ends");
    }
    uint64_t worked = now_ns(CLOCK_PROCESS_CPUTIME_ID) - now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t n = 0; n < MESSAGES; n++) end_block(&workers[i], workers[i].messages[n]);
        sum += workers[i].sum;
    }
    say(sum);
    if (count > 2) print_moments(worked);
    return 0;
}
