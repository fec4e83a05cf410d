/*
 * stress_profile.c: threads allocate as the drop-in malloc does, while profiles begin and end and
 * their mean changes, guarded samples come and go, memory is trimmed, the profile is read, and the
 * process forks. The threads resize and free each other's objects. Each owner fills its whole
 * object with a pattern and checks it before it gives the object away.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <slabyard/profile.h>
#include <slabyard/slabyard.h>

#include "debug/profile.h"
#include "heap/sampled.h"
#include "stress/forks.h"
#include "support/services.h"

/* As in the drop-in malloc, which counts the allocations of size classes itself. */
bool sy_threads_may_be_reached(void);
bool sy_threads_may_be_reached(void) { return true; }

enum { THREADS = 4, SLOTS = 512, CHILD_SECONDS = 30 };

typedef struct block {
    size_t size;
    uint64_t stamp;
} block;

static _Atomic(block *) slots[SLOTS];
static _Atomic bool over;
static _Atomic uint64_t operations, apart;

static block *fill_block(block *made, size_t size, uint64_t stamp) {
    stress_expect(made != NULL, "there is memory");
    *made = (block){size, stamp};
    stress_fill(made + 1, size, stamp);
    return made;
}

/* Mostly small objects, and some spans. */
static size_t random_size(uint64_t *random) {
    size_t dice = stress_below(random, 100);
    return stress_below(random, dice < 90 ? 600 : dice < 99 ? 20000 : 200000);
}

static block *make_block(uint64_t *random) {
    size_t size = random_size(random), bytes = sizeof(block) + size;
    size_t way = stress_below(random, 10);
    void *object = way == 0   ? sy_calloc_counted(bytes)
                   : way == 1 ? sy_aligned_alloc_counted(64, bytes)
                              : sy_malloc_counted(bytes);
    bool is_apart = object && bytes <= SY_CLASS_SIZE_MAX && !sy_class_at((uintptr_t)object);
    atomic_fetch_add_explicit(&apart, is_apart, memory_order_relaxed);
    return fill_block(object, size, stress_random(random));
}

static void check_block(const block *held) {
    stress_expect(stress_is_filled(held + 1, held->size, held->stamp), "an object has one owner");
}

static void free_block(block *held) {
    if (!held) return;
    check_block(held);
    sy_free(held);
}

static block *resize_block(block *held, uint64_t *random) {
    size_t size = random_size(random);
    check_block(held);
    return fill_block(sy_realloc_counted(held, sizeof(block) + size), size, stress_random(random));
}

static void *work(void *seed) {
    uint64_t random = *(uint64_t *)seed;
    while (!over) {
        block *mine = make_block(&random);
        if (stress_below(&random, 4) == 0) mine = resize_block(mine, &random);
        free_block(atomic_exchange(&slots[stress_below(&random, SLOTS)], mine));
        atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
    }
    return NULL;
}

static void fork_once(uint64_t *random) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        for (int i = 0; i < 200; i++) free_block(make_block(random));
        stress_expect(sy_profile_verify() == 0, "the child's profile is sound");
        _exit(0);
    }
    stress_await_child(pid);
}

/* The next thing that the program does with profiles. */
static void step(int round, int sink, uint64_t *random) {
    static const uint64_t means[] = {1, 1000, 30000, 512 << 10};
    static const char *const options[] = {"sample=off", "sample=1/50"};
    if (round % 5 == 4)
        sy_profile_end();
    else
        stress_expect(sy_profile_begin(means[stress_below(random, 4)]) == 0, "a profile begins");
    stress_expect(sy_profile_write(sink) == 0, "the profile is written");
    stress_expect(sy_set_options(options[round / 7 % 2]) == 0, "the option changes");
    if (round % 3 == 0) sy_trim();
    fork_once(random);
}

int main(int argc, char **argv) {
    must_have(SY_OS_STACKS, "stacks");
    stress_run run = stress_arguments(argc, argv);
    uint64_t seeds[THREADS], random = run.seed;
    pthread_t threads[THREADS];
    int sink = open("/dev/null", O_WRONLY);
    stress_expect(sy_profile_begin(1000) == 0, "a profile begins");
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    double end = stress_now() + run.seconds;
    for (int round = 0; stress_now() < end; usleep(20000)) step(++round, sink, &random);
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) free_block(slots[i]);
    stress_expect(sy_verify() == 0, "all is sound");
    stress_expect(stress_heap_in_use() == 0, "nothing is in use at the end");
    stress_expect(sy_profile_records == 0, "no sample is live at the end");
    stress_expect(apart > 0, "objects were sampled");
    printf("stress: %llu operations, %llu samples, from seed %llu\n",
           (unsigned long long)operations, (unsigned long long)apart, (unsigned long long)run.seed);
    return 0;
}
