/*
 * stress_count.c: threads of a program that is linked with the library count what they allocate,
 * while profiles begin and end, options change, memory is trimmed, threads end while they count,
 * and the process forks. A count has each allocation of its thread, and each free by its thread.
 * Others free some of the objects. Each owner fills its whole object with a pattern and checks it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/count.h>
#include <slabyard/profile.h>
#include <slabyard/slabyard.h>

#include "debug/profile.h"
#include "stress/forks.h"
#include "support/services.h"

enum { THREADS = 4, SLOTS = 256, OBJECTS = 64, CHILD_SECONDS = 30, ORDER = 200 };

typedef struct block {
    size_t size;
    uint64_t stamp;
    bool is_order; /* of the cache */
} block;

static sy_cache *orders;
static _Atomic(block *) slots[SLOTS];
static _Atomic bool over;
static _Atomic uint64_t counts, counted_objects;

static size_t bytes_of(const block *it) { return it->is_order ? ORDER : sizeof *it + it->size; }

static block *make_block(uint64_t *random) {
    bool is_order = stress_below(random, 3) == 0;
    size_t large = stress_below(random, 100) == 0 ? 200000 : 600;
    size_t size = is_order ? ORDER - sizeof(block) : stress_below(random, large);
    bool aligned = stress_below(random, 8) == 0;
    block *made = is_order  ? sy_cache_alloc(orders)
                  : aligned ? sy_aligned_alloc(64, sizeof(block) + size)
                            : sy_malloc(sizeof(block) + size);
    stress_expect(made != NULL, "there is memory");
    *made = (block){size, stress_random(random), is_order};
    stress_fill(made + 1, size, made->stamp);
    return made;
}

static void free_block(block *held) {
    if (!held) return;
    stress_expect(stress_is_filled(held + 1, held->size, held->stamp), "an object has one owner");
    if (held->is_order)
        sy_cache_free(orders, held);
    else
        sy_free(held);
}

/* What the thread should have counted; `given` objects may have been freed by others. */
typedef struct expected {
    uint64_t allocations, bytes, frees, given;
} expected;

/* Allocates, and frees half of it; gives some to the other threads, and frees what they gave. */
static expected do_work(uint64_t *random) {
    block *mine[OBJECTS];
    expected sum = {.allocations = 1 + stress_below(random, OBJECTS)};
    for (size_t i = 0; i < sum.allocations; i++) {
        mine[i] = make_block(random);
        sum.bytes += bytes_of(mine[i]);
    }
    for (size_t i = 0; i < sum.allocations; i++) {
        if (stress_below(random, 4) == 0) {
            free_block(atomic_exchange(&slots[stress_below(random, SLOTS)], mine[i]));
            sum.given++;
        } else {
            free_block(mine[i]);
            sum.frees++;
        }
    }
    return sum;
}

static void count_once(uint64_t *random) {
    sy_counted counted;
    stress_expect(sy_count_begin() == 0, "a count begins");
    expected sum = do_work(random);
    stress_expect(sy_count_end(&counted) == 0, "a count ends");
    stress_expect(counted.allocations == sum.allocations, "each allocation is counted");
    stress_expect(counted.bytes == sum.bytes, "each byte is counted");
    stress_expect(counted.frees >= sum.frees && counted.frees <= sum.frees + sum.given,
                  "each free is counted");
    stress_expect(counted.live == counted.allocations - counted.frees, "what is live is counted");
    stress_expect(counted.live > 0 || counted.live_bytes == 0, "nothing has no bytes");
    atomic_fetch_add_explicit(&counts, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counted_objects, sum.allocations, memory_order_relaxed);
}

static void *leave_while_counting(void *random) {
    stress_expect(sy_count_begin() == 0, "a count begins");
    do_work(random);
    return NULL;
}

static void *work(void *seed) {
    uint64_t random = *(uint64_t *)seed;
    pthread_t other;
    while (!over) {
        if (stress_below(&random, 2)) count_once(&random);
        do_work(&random);
        if (stress_below(&random, 20)) continue;
        uint64_t others = stress_random(&random);
        stress_expect(pthread_create(&other, NULL, leave_while_counting, &others) == 0,
                      "a thread starts");
        pthread_join(other, NULL);
    }
    return NULL;
}

static void fork_once(uint64_t *random) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        for (int i = 0; i < 20; i++) count_once(random);
        stress_expect(sy_profile_verify() == 0, "the child's table is sound");
        _exit(0);
    }
    stress_await_child(pid);
}

/* The next thing that the program does with profiles. */
static void step(int round, int sink, uint64_t *random) {
    static const size_t means[] = {1, 1000, 512 << 10, 1 << 30};
    static const char *const options[] = {"decay=10ms", "decay=1s"};
    if (round % 3 == 2)
        sy_profile_stop();
    else
        stress_expect(sy_profile_start(means[stress_below(random, 4)]) == 0, "a profile begins");
    if (round % 8 == 0) stress_expect(sy_profile_write(sink) == 0, "the profile is written");
    stress_expect(sy_set_options(options[round / 7 % 2]) == 0, "the option changes");
    if (round % 5 == 0) sy_trim();
    if (round % 10 == 0) fork_once(random);
}

int main(int argc, char **argv) {
    must_have(SY_OS_STACKS, "stacks");
    stress_run run = stress_arguments(argc, argv);
    uint64_t seeds[THREADS], random = run.seed;
    pthread_t threads[THREADS];
    int sink = open("/dev/null", O_WRONLY);
    orders = sy_cache_create(&(sy_cache_config){.name = "orders", .size = ORDER});
    stress_expect(orders != NULL, "a cache is made");
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    double end = stress_now() + run.seconds;
    for (int round = 0; stress_now() < end; usleep(2000)) step(++round, sink, &random);
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) free_block(slots[i]);
    sy_profile_stop();
    stress_expect(sy_verify() == 0, "all is sound");
    stress_expect(stress_heap_in_use() == 0 && sy_cache_destroy(orders) == 0,
                  "nothing is in use at the end");
    stress_expect(sy_profile_records == 0, "no object has a record at the end");
    printf("stress: %llu counts of %llu objects, from seed %llu\n", (unsigned long long)counts,
           (unsigned long long)counted_objects, (unsigned long long)run.seed);
    return 0;
}
