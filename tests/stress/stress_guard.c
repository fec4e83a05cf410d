/*
 * stress_guard.c: threads allocate, pass on and free objects of caches of all kinds and of the
 * heap. Some of the objects are guarded. Each owner fills its object with a pattern, and later
 * compares it. Sometimes the process forks. At the end no object is live, guarded or not.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "debug/guard.h"
#include "debug/options.h"
#include "stress/stress.h"
#include "support/sanitized.h"
#include "support/services.h"

enum { THREADS = 4, CACHES = 5, EXCHANGED = 512, EVERY = 8, SLOTS = 200 };

typedef struct owned {
    size_t size;
    uint64_t stamp;
} owned;

static sy_cache *caches[CACHES];
static _Atomic(owned *) exchanged[CACHES + 1][EXCHANGED]; /* the last: the heap's */
static _Atomic bool stop;
static _Atomic uint64_t operations, guarded;

static int construct(void *object, void *arg) {
    (void)arg;
    *(uint64_t *)object = 1;
    return 0;
}

static void fill(owned *object, size_t size, uint64_t stamp) {
    *object = (owned){size, stamp};
    stress_fill(object + 1, size - sizeof *object, stamp);
}

static void check(const owned *object) {
    stress_check(object + 1, object->size - sizeof *object, object->stamp);
}

static owned *take(unsigned kind, uint64_t *random) {
    static const size_t sizes[CACHES] = {64, 64, 200, 3000, 96};
    size_t size = kind < CACHES ? sizes[kind] : 16 + stress_below(random, 6000);
    owned *object = kind < CACHES ? sy_cache_alloc(caches[kind]) : sy_malloc(size);
    stress_expect(object != NULL, "there is memory");
    fill(object, size, stress_random(random));
    return object;
}

static void give(unsigned kind, owned *object) {
    if (!object) return;
    check(object);
    object->stamp = 0;
    if (kind < CACHES)
        sy_cache_free(caches[kind], object);
    else
        sy_free(object);
}

static void *work(void *seed) {
    uint64_t random = (uintptr_t)seed, done = 0, seen = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned kind = (unsigned)stress_below(&random, CACHES + 1);
        size_t at = stress_below(&random, EXCHANGED);
        owned *object = stress_below(&random, 3) ? take(kind, &random) : NULL;
        seen += object && sy_guard_owns((uintptr_t)object);
        give(kind, atomic_exchange(&exchanged[kind][at], object));
        if (++done % 20000 == 0) sy_thread_idle();
        if (done % 30000 == 0) sy_trim();
    }
    atomic_fetch_add(&operations, done);
    atomic_fetch_add(&guarded, seen);
    return NULL;
}

static void verify(void) {
    stress_verify();
    stress_expect(sy_guard_verify() == 0, "the guarded objects are sound");
}

/* The child has the objects that lay in the exchange. Objects that other threads had taken out, or
 * not yet put in, are lost there. */
static void use_in_child(void) {
    uint64_t random = 5;
    verify();
    for (unsigned kind = 0; kind <= CACHES; kind++)
        for (size_t at = 0; at < EXCHANGED; at++) {
            give(kind, exchanged[kind][at]);
            give(kind, take(kind, &random));
        }
    verify();
}

static void fork_once(void) {
    pid_t child = fork();
    stress_expect(child >= 0, "there is a child");
    if (child == 0) {
        use_in_child();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    stress_expect(status == 0, "the child ends well");
}

static void run_threads(const stress_run *run) {
    pthread_t threads[THREADS];
    double end = stress_now() + run->seconds;
    for (uintptr_t i = 0; i < THREADS; i++)
        stress_expect(
            pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(run->seed * 64 + i)) == 0,
            "a thread starts");
    while (stress_now() < end) {
        verify();
        if (!SANITIZED) fork_once(); /* threads in the midst of anything confuse their books */
        usleep(20000);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    must_have(SY_OS_GUARDS, "guard pages");
    stress_run run = stress_arguments(argc, argv);
    stress_expect(sy_set_options("guard=8,guard-slots=200") == 0, "the options are known");
    static const unsigned flags[CACHES] = {0, SY_EPOCHS, 0, 0, SY_REDZONE | SY_POISON};
    static const size_t sizes[CACHES] = {64, 64, 200, 3000, 96};
    for (int i = 0; i < CACHES; i++)
        caches[i] = sy_cache_create(&(sy_cache_config){.name = "stress",
                                                       .size = sizes[i],
                                                       .construct = i == 2 ? construct : NULL,
                                                       .limit = i == 3 ? 100000 : 0,
                                                       .flags = flags[i] | SY_GUARD});
    run_threads(&run);
    for (unsigned kind = 0; kind <= CACHES; kind++)
        for (size_t at = 0; at < EXCHANGED; at++) give(kind, exchanged[kind][at]);
    verify();
    stress_expect(guarded > operations / EVERY / 8, "many were guarded");
    for (int i = 0; i < CACHES; i++)
        stress_expect(sy_cache_destroy(caches[i]) == 0, "nothing is in use at the end");
    stress_expect(stress_heap_in_use() == 0, "nor in the heap");
    printf("stress: %llu operations, %llu guarded, from seed %llu\n",
           (unsigned long long)operations, (unsigned long long)guarded,
           (unsigned long long)run.seed);
    return 0;
}
