/*
 * lock.c: models of the lock: one holder at a time, which sees what the holder before it wrote, and
 * no thread that sleeps while the lock is free.
 */
#include "system.h"

#include "base/cpu.h"

/* The lock reads the word once before it waits: more reads add no behaviour. */
#define sy_cpu_relax() (void)(spin = SPINS)

/* As in system.h, for what a thread that forks has. */
#undef SY_TLS
#define SY_TLS
#include "os/lock.c"

/* ---- the system ---- */

unsigned sy_os_thread(void) { return model_number + 1; }

static _Atomic uint32_t
    beds[MODEL_THREADS]; /* a thread sleeps until another one stores to its bed */

#ifdef MODEL_GENMC

/* GenMC drops the executions in which a thread sleeps. */
static void set_asleep(uint32_t thread, bool is) { (void)thread, (void)is; }
static uint32_t first_asleep(void) { return MODEL_THREADS; }

#else

static bool asleep[MODEL_THREADS]; /* looked at by the system alone, under a lock of its own */

__attribute__((no_sanitize("thread"))) static void set_asleep(uint32_t thread, bool is) {
    asleep[thread] = is;
}

__attribute__((no_sanitize("thread"))) static uint32_t first_asleep(void) {
    uint32_t thread = 0;
    while (thread < MODEL_THREADS && !asleep[thread]) thread++;
    return thread;
}

#endif

/* The system reads the last stored value, as an exchange does. No other thread runs between the
 * read and the sleep. */
void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    uint32_t seen = expected;
    if (!atomic_compare_exchange_strong_explicit(word, &seen, expected, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    set_asleep(model_number, true);
    model_wait(&beds[model_number]);
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    (void)word;
    assert(count == 1);
    uint32_t thread = first_asleep();
    if (thread == MODEL_THREADS) return;
    set_asleep(thread, false);
    atomic_store_explicit(&beds[thread], 1, memory_order_relaxed);
}

/* ---- the lock ---- */

static sy_lock lock = SY_LOCK_INIT(SY_RANK_CACHE);
static unsigned value; /* guarded by lock */

static void add(void) {
    sy_lock_acquire(&lock);
    value++;
    sy_lock_release(&lock);
}

static void add_twice(void *arg) {
    (void)arg;
    add();
    add();
}

MODEL(two_threads_exclude_each_other) {
    model_thread other;
    model_start(&other, 1, add_twice, NULL);
    add_twice(NULL);
    model_join(&other);
    add();
    assert(value == 5);
}

static void add_once(void *arg) {
    (void)arg;
    add();
}

/* Two threads wait for a lock that a third one holds. */
MODEL_FOR_LOOM(of_two_that_sleep_none_is_forgotten) {
    model_thread first, second;
    for (uint32_t i = 0; i < MODEL_THREADS; i++) set_asleep(i, false);
    sy_lock_acquire(&lock);
    model_start(&first, 1, add_once, NULL);
    model_start(&second, 2, add_once, NULL);
    value++;
    sy_lock_release(&lock);
    model_join(&first);
    model_join(&second);
    assert(value == 3);
}
