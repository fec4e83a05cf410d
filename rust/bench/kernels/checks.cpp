/* One layout's loops for the rows about checks: checks.h. */
#include "checks.h"
#include "policies.hpp"

extern "C" {
/* mimalloc's secure build; build.rs makes all its other symbols local. */
void *bench_secure_malloc(size_t size);
void bench_secure_free(void *object);
}

namespace {

/* The slot is larger than the object where there are red zones. */
struct Watched : Cache {
    static Watched open(void *state) { return {Cache::open(state)}; }
    size_t object_size() const { return BENCH_CHECKS_SIZE; }
};

template <class Library> struct Fixed {
    static Fixed open(void *) { return {}; }
    void *alloc() const { return Library::alloc(BENCH_CHECKS_SIZE); }
    void free(void *object) const { Library::free(object, BENCH_CHECKS_SIZE); }
    size_t object_size() const { return BENCH_CHECKS_SIZE; }
};

struct SecureMimalloc {
    static inline void *alloc(size_t size) { return bench_secure_malloc(size); }
    static inline void free(void *object, size_t) { bench_secure_free(object); }
};

/* Stops when there is no memory left, because the system limits locked memory. */
template <class Policy> BENCH_KERNEL size_t fill_some(void *state, void **objects, size_t count) {
    BENCH_ENTER();
    const Policy policy = Policy::open(state);
    for (size_t i = 0; i < count; i++) {
        void *object = policy.alloc();
        if (object == nullptr) return i;
#if BENCH_LAYOUT == 3
        bench_verify_born(object, policy.object_size(), object);
#else
        *static_cast<uint64_t *>(object) = reinterpret_cast<uint64_t>(object);
#endif
        objects[i] = hide(object);
    }
    return count;
}

template <class Policy> constexpr bench_loops loops(const char *name) {
    return {name, fill_some<Policy>, drain<Policy>, pair<Policy>, steady<Policy>};
}

const bench_loops table[] = {
    loops<Watched>("cache"),
    loops<Fixed<Heap>>("heap"),
    loops<Fixed<Glibc>>("glibc"),
    loops<Fixed<Mimalloc>>("mimalloc"),
    loops<Fixed<SecureMimalloc>>("mimalloc-secure"),
};

} // namespace

#define BENCH_PASTE(a, b)           a##b
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_loops *BENCH_NAMED(bench_checks_, BENCH_LAYOUT)(size_t *count) {
    *count = sizeof table / sizeof table[0];
    return table;
}

#if BENCH_LAYOUT == 0
#    include <cstdio>
#    include <pthread.h>
#    include <semaphore.h>
#    include <time.h>

namespace {

uint64_t cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

void run_step(bench_task *task) {
    const bench_loops *loops = task->loops;
    switch (task->step) {
    case BENCH_FILL: task->filled = loops->fill(task->state, task->objects, task->live); return;
    case BENCH_DRAIN: loops->drain(task->state, task->objects, task->live); return;
    case BENCH_PAIR: loops->pair(task->state, task->count); return;
    default: loops->steady(task->state, task->objects, task->live, task->count, task->seed);
    }
}

/* The statement after each call prevents a tail call, which would reuse the caller's frame. */
BENCH_KERNEL void descend(unsigned frames, bench_task *task) {
    if (frames > 1) {
        descend(frames - 1, task);
    } else {
        uint64_t start = cpu_ns();
        run_step(task);
        task->ns = cpu_ns() - start;
    }
    asm volatile("" : : : "memory");
}

/* Lives as long as the process. */
struct Worker {
    sem_t asked, done;
    bench_task *task;

    static void *serve(void *arg) {
        auto *worker = static_cast<Worker *>(arg);
        for (;;) {
            sem_wait(&worker->asked);
            descend(BENCH_FRAMES, worker->task);
            sem_post(&worker->done);
        }
    }

    Worker() {
        pthread_t thread;
        sem_init(&asked, 0, 0);
        sem_init(&done, 0, 0);
        if (pthread_create(&thread, nullptr, serve, this) != 0) {
            std::perror("bench: no thread");
            std::abort();
        }
    }

    void run(bench_task *wanted) {
        task = wanted;
        sem_post(&asked);
        sem_wait(&done);
    }
};

} // namespace

extern "C" void bench_checks_run(bench_task *task) {
    static auto *worker = new Worker;
    worker->run(task);
}
#endif
