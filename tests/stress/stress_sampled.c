/*
 * stress_sampled.c: threads allocate as the drop-in malloc does, many of the objects guarded, and
 * resize and free each other's objects, while the process forks and the option changes. Each owner
 * fills its whole object with a pattern and checks it before it gives the object away.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "debug/guard.h"
#include "heap/sampled.h"
#include "stress/stress.h"
#include "support/services.h"

enum { THREADS = 4, SLOTS = 256, SIZE_MOST = 5000, CHILD_SECONDS = 30 };

typedef struct block {
    size_t size;
    uint64_t stamp;
} block;

static _Atomic(block *) slots[SLOTS];
static _Atomic bool over;
static _Atomic uint64_t operations, guarded;

static void *allocate(size_t size) {
    void *object = sy_malloc_counted(size < 9 ? 9 : size);
    stress_expect(object != NULL, "there is memory");
    atomic_fetch_add(&guarded, sy_guard_owns((uintptr_t)object));
    return object;
}

static block *fill_block(block *made, size_t size, uint64_t stamp) {
    *made = (block){size, stamp};
    stress_fill(made + 1, size, stamp);
    return made;
}

static block *make_block(uint64_t *random) {
    size_t size = stress_below(random, SIZE_MOST);
    return fill_block(allocate(sizeof(block) + size), size, stress_random(random));
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
    size_t size = stress_below(random, SIZE_MOST);
    check_block(held);
    held = sy_realloc_counted(held, sizeof(block) + size);
    stress_expect(held != NULL, "there is memory");
    return fill_block(held, size, stress_random(random));
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
    stress_expect(pid >= 0, "a process is made");
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        for (int i = 0; i < 20; i++) free_block(make_block(random));
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) stress_expect(errno == EINTR, "the child is waited for");
    stress_expect(status == 0, "a child can go on");
}

int main(int argc, char **argv) {
    must_have(SY_OS_GUARDS, "guard pages");
    static const char *const options[] = {"sample=1/3", "sample=1/50", "sample=all", "sample=1/7"};
    stress_run run = stress_arguments(argc, argv);
    uint64_t seeds[THREADS], random = run.seed;
    pthread_t threads[THREADS];
    stress_expect(sy_set_options("guard-slots=128,sample=1/3") == 0, "the options are known");
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&threads[i], NULL, work, &seeds[i]) == 0, "a thread starts");
    }
    double end = stress_now() + run.seconds;
    for (int round = 0; stress_now() < end; usleep(20000)) {
        fork_once(&random);
        stress_expect(sy_set_options(options[++round % 4]) == 0, "the option changes");
    }
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) free_block(slots[i]);
    stress_expect(sy_verify() == 0, "all is sound");
    stress_expect(stress_heap_in_use() == 0, "nothing is in use at the end");
    stress_expect(guarded > 0, "objects were guarded");
    printf("stress: %llu operations, %llu guarded, from seed %llu\n",
           (unsigned long long)operations, (unsigned long long)guarded,
           (unsigned long long)run.seed);
    return 0;
}
