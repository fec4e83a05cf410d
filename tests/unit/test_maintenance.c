/*
 * test_maintenance.c: the maintenance thread, which does passes by age. It sleeps by the system's
 * clock, so the tests wait until it has done its work, however long that takes.
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <semaphore.h>
#include <time.h>

#include <cmocka.h>

#include "debug/options.h"
#include "magazine/sleepers.h"
#include "os/facts.h"
#include "os/fake.h"
#include "os/start.h"
#include "support/ages.h"
#include "support/sanitized.h"
#include "support/services.h"
#include "support/traps.h"

/* Uses the real clock. */
static int begin_in_real_time(void **state) {
    begin(state);
    sy_fake_reset();
    sy_fake_set_cpu(0);
    sy_set_decay(0);
    return 0;
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* Only the maintenance thread does anything. */
static void hoard(sy_cache *cache) {
    take(cache, 64, 0, COUNT);
    give(cache, 0, COUNT);
    sy_thread_idle();
    must(stats_of(cache).in_depot > 0);
}

static void until_it_is_gone(const sy_cache *cache) {
    while (stats_of(cache).slabs > 0) rest();
}

static void it_gives_back_what_nobody_uses(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    hoard(cache);
    uint64_t before = sy_fake_bytes(SY_FAKE_DISCARD);
    sy_set_decay(1);
    assert_int_equal(sy_maintenance_start(), 0);
    until_it_is_gone(cache);
    while (sy_fake_bytes(SY_FAKE_DISCARD) - before < COUNT * 64) rest();
    sy_maintenance_stop();
    end(cache);
}

static void start_and_stop_may_be_said_twice(void **state) {
    (void)state;
    sy_maintenance_stop();
    for (int round = 0; round < 20; round++) {
        errno = KEPT_ERRNO;
        assert_int_equal(sy_maintenance_start(), 0);
        assert_int_equal(sy_maintenance_start(), 0);
        assert_true(sy_maintenance_runs());
        assert_int_equal(sy_fake_calls(SY_FAKE_START_THREAD), round + 1);
        sy_maintenance_stop();
        assert_false(sy_maintenance_runs());
        sy_maintenance_stop();
        assert_int_equal(errno, KEPT_ERRNO);
    }
}

static void a_thread_that_cannot_be_had_is_said(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        sy_fake_fail_nth(SY_FAKE_START_THREAD, 1);
        errno = 0;
        assert_int_equal(sy_maintenance_start(), -1);
        assert_int_equal(errno, ENOMEM);
        assert_false(sy_maintenance_runs());
        sy_maintenance_stop();
    }
    assert_int_equal(sy_maintenance_start(), 0);
    sy_maintenance_stop();
}

static _Atomic bool over;

static void *start_and_stop(void *seed) {
    uint64_t random = (uintptr_t)seed;
    while (!over) {
        if (next_random(&random) % 2)
            (void)sy_maintenance_start();
        else
            sy_maintenance_stop();
    }
    return NULL;
}

/* No thread waits without end, whatever happens. */
static void many_may_start_and_stop_at_once(void **state) {
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    sy_fake_fail_randomly(SY_FAKE_START_THREAD, 500, 8);
    over = false;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, (void *)(i + 1)), 0);
    while (sy_fake_calls(SY_FAKE_START_THREAD) < 600) rest();
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    sy_maintenance_stop();
    assert_false(sy_maintenance_runs());
}

enum { GROWN = 17 << 20, FEW_LOOKS = 4 };

static void look_a_few_times(void) { take_turns(FEW_LOOKS * SY_TURNS_PER_LOOK); }

static void auto_waits_for_memory(void **state) {
    (void)state;
    sy_set_decay(1000);
    assert_int_equal(sy_set_options("maintenance=auto"), 0);
    look_a_few_times();
    assert_false(sy_maintenance_runs());
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    sy_start_lock_all(); /* as around a fork, while a hook of the program allocates */
    assert_false(sy_maintenance_look(sy_os_now(), true));
    sy_start_unlock_all();
    assert_false(sy_maintenance_runs());
    look_a_few_times();
    assert_true(sy_maintenance_runs());
    assert_int_equal(sy_fake_calls(SY_FAKE_START_THREAD), 1);
    sy_free(large);
    look_a_few_times();
    assert_true(sy_maintenance_runs());
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    assert_false(sy_maintenance_runs());
    large = sy_malloc(GROWN);
    look_a_few_times();
    assert_false(sy_maintenance_runs());
    sy_free(large);
}

/* For this program. */
bool sy_os_may_hide_threads(void) { return true; }

static _Atomic unsigned destructed, destructed_by_hidden;

static int construct_nothing(void *object, void *arg) {
    (void)object;
    (void)arg;
    return 0;
}

static void note_destruct(void *object, void *arg) {
    (void)object;
    (void)arg;
    destructed++;
    destructed_by_hidden += sy_os_is_hidden();
}

/* A hidden thread, which starts by itself, must not call functions of the program. Another one that
 * may call them takes its place. */
static void a_hidden_thread_makes_way_for_destructors(void **state) {
    (void)state;
    sy_set_decay(1);
    assert_int_equal(sy_set_options("maintenance=auto"), 0);
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    look_a_few_times();
    assert_true(sy_maintenance_runs());
    destructed = destructed_by_hidden = 0;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "destructed",
                                                         .size = 64,
                                                         .construct = construct_nothing,
                                                         .destruct = note_destruct});
    assert_non_null(cache);
    hoard(cache);
    while (stats_of(cache).slabs > 0) {
        look_a_few_times();
        rest();
    }
    assert_true(destructed > 0);
    assert_int_equal(destructed_by_hidden, 0);
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    sy_free(large);
    end(cache);
}

static _Atomic unsigned relocated, relocated_by_hidden;

static void note_relocate(void *from, void *to, void *arg) {
    (void)arg;
    memcpy(to, from, 64);
    relocated++;
    relocated_by_hidden += sy_os_is_hidden();
}

static void relocate_in_passes(void *arg) {
    (void)arg;
    static sy_handle handles[COUNT];
    alarm(120);
    sy_set_decay(1);
    must(sy_set_options("maintenance=auto") == 0);
    must(sy_malloc(GROWN) != NULL);
    look_a_few_times();
    must(sy_maintenance_runs());
    sy_cache *cache = sy_cache_create(&(sy_cache_config){
        .size = 64, .flags = SY_HANDLES | SY_MOVABLE, .relocate = note_relocate});
    must(cache != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        must(sy_handle_prepare(cache, &handles[i]) != NULL);
        sy_handle_publish(cache, handles[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        if (i % 20) must(sy_handle_free(cache, handles[i]));
    sy_thread_flush();
    while (!relocated) {
        look_a_few_times();
        rest();
    }
    must(relocated_by_hidden == 0 && sy_set_options("maintenance=no") == 0);
}

/* In a child, where no thread has made way yet. */
static void a_hidden_thread_makes_way_for_relocations(void **state) {
    (void)state;
    assert_int_equal(in_child(relocate_in_passes, NULL), 0);
}

/* When glibc frees the data of ended threads, it holds a lock that the start of a thread needs. So
 * frees leave the start to the next allocation. */
static void auto_starts_it_in_an_allocation(void **state) {
    (void)state;
    sy_set_decay(1000);
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    assert_int_equal(sy_set_options("maintenance=auto"), 0);
    for (int i = 0; i < FEW_LOOKS * SY_TURNS_PER_LOOK; i++) sy_turn();
    assert_int_equal(sy_fake_calls(SY_FAKE_START_THREAD), 0);
    sy_turn_of_alloc();
    assert_true(sy_maintenance_runs());
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    sy_free(large);
}

/* The default of a program whose allocator is the Rust crate's. */
static void be_grown_by_default(void *nothing) {
    (void)nothing;
    sy_set_decay(1000);
    sy_options_auto_maintenance();
    void *large = sy_malloc(GROWN);
    look_a_few_times();
    must(sy_maintenance_runs());
    sy_maintenance_stop(); /* the latest setting applies */
    look_a_few_times();
    must(!sy_maintenance_runs());
    must(sy_set_options("maintenance=no") == 0);
    sy_options_auto_maintenance();
    look_a_few_times();
    must(!sy_maintenance_runs());
    sy_free(large);
}

static void a_default_leaves_what_the_program_said(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* ThreadSanitizer ends a child that starts threads */
    assert_int_equal(in_child(be_grown_by_default, NULL), 0);
}

static size_t starts_of_frees(void *freed[], size_t count) {
    for (size_t i = 0; i < count; i++) sy_free(freed[i]);
    return sy_fake_calls(SY_FAKE_START_THREAD);
}

/* The same with frees of all kinds of objects. */
static void no_free_starts_it(void **state) {
    (void)state;
    enum { SMALL = 3000, SPANS = 40 };
    static void *small[SMALL], *spans[SPANS];
    sy_set_decay(1000);
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    for (int i = 0; i < SMALL; i++) small[i] = sy_malloc(1 + (size_t)i % 3 * 1000);
    for (int i = 0; i < SPANS; i++) spans[i] = sy_malloc(200000);
    assert_int_equal(sy_set_options("maintenance=auto"), 0);
    assert_int_equal(starts_of_frees(small, SMALL), 0);
    assert_int_equal(starts_of_frees(spans, SPANS), 0);
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    sy_free(large);
}

/* If the thread cannot be started, the library tries again later, but not at each look. */
static void auto_goes_on_without_a_thread(void **state) {
    (void)state;
    sy_set_decay(1000);
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    sy_fake_fail_nth(SY_FAKE_START_THREAD, 1);
    assert_int_equal(sy_set_options("maintenance=auto"), 0);
    look_a_few_times();
    assert_false(sy_maintenance_runs());
    assert_int_equal(sy_fake_calls(SY_FAKE_START_THREAD), 1);
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    sy_free(large);
}

static void slow_paths_age_again_after_it(void **state) {
    (void)state;
    assert_int_equal(sy_maintenance_start(), 0);
    take_turns(SY_TURNS_PER_LOOK);
    sy_maintenance_stop();
    end_pass();
    pass();
}

static void it_heeds_another_decay(void **state) {
    (void)state;
    static const uint64_t long_ones[] = {24 * 3600 * 1000, 0, UINT64_MAX};
    sy_cache *cache = make(64, 0);
    for (int i = 0; i < 3; i++) {
        sy_set_decay(long_ones[i]);
        assert_int_equal(sy_maintenance_start(), 0);
        for (int wait = 0; wait < 20; wait++) rest(); /* by now it most likely sleeps */
        hoard(cache);
        sy_set_decay(1);
        until_it_is_gone(cache);
        sy_maintenance_stop();
    }
    end(cache);
}

/* ---- callbacks ---- */

static _Atomic size_t built, ended, slow;

static int construct(void *object, void *arg) {
    (void)object;
    (void)arg;
    built++;
    return 0;
}

static void destruct_slowly(void *object, void *arg) {
    (void)object;
    (void)arg;
    ended++;
    if (slow && ended % 100 == 0) rest();
}

static void it_can_be_stopped_while_it_works(void **state) {
    (void)state;
    sy_cache *cache = make_with(
        (sy_cache_config){.size = 64, .construct = construct, .destruct = destruct_slowly});
    built = ended = 0;
    for (size_t i = 0; i < COUNT; i++) objects[i] = sy_cache_alloc(cache);
    give(cache, 0, COUNT);
    sy_thread_idle();
    size_t before = ended;
    slow = true;
    sy_set_decay(1);
    assert_int_equal(sy_maintenance_start(), 0);
    while (ended < before + 100) rest();
    sy_maintenance_stop();
    slow = false;
    size_t after = ended;
    for (int i = 0; i < 20; i++) rest();
    assert_int_equal(ended, after);
    end(cache);
    assert_int_equal(built, ended);
}

/* ---- processes and signals ---- */

/* At the fork the maintenance thread may have held items of the cache, which the child has lost. So
 * the child makes a cache of its own. */
static void start_ones_own(void *arg) {
    must(!sy_maintenance_runs());
    sy_maintenance_stop();
    sound(arg);
    if (SANITIZED) return; /* ThreadSanitizer ends a child that starts threads */
    sy_cache *cache = make(64, 0);
    hoard(cache);
    must(sy_maintenance_start() == 0);
    must(sy_maintenance_runs());
    until_it_is_gone(cache);
    sy_maintenance_stop();
    end(cache);
}

static void a_child_starts_its_own(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    sy_set_decay(1);
    assert_int_equal(sy_maintenance_start(), 0);
    for (int i = 0; i < 20; i++) {
        take(cache, 64, 0, COUNT);
        give(cache, 0, COUNT);
        assert_int_equal(in_child(start_ones_own, cache), 0);
    }
    assert_true(sy_maintenance_runs());
    sy_maintenance_stop();
    end(cache);
}

static void have_a_child_at_once(void *arg) {
    must(sy_maintenance_start() == 0);
    must(in_child((void (*)(void *))(uintptr_t)arg, NULL) == 0);
    sy_maintenance_stop();
}

static void be_that_child(void *arg) {
    (void)arg;
    alarm(60);
    must(!sy_maintenance_runs());
    sy_maintenance_stop();
}

/* This thread blocks the signals. They stay pending, since the maintenance thread takes none. */
static void no_signal_is_delivered_to_it(void **state) {
    (void)state;
    sigset_t set, before, pending;
    assert_int_equal(sy_maintenance_start(), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGTERM);
    for (int i = 0; i < 20; i++) rest();
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM));
    int signal;
    sigwait(&set, &signal);
    sigwait(&set, &signal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_false(sigismember(&set, SIGUSR1)); /* the start left this thread's mask as it was */
    sy_maintenance_stop();
}

static void without_an_observer_it_works(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0);
    hoard(cache);
    sy_set_decay(1);
    sy_fake_fail_from(SY_FAKE_START_READER, 1);
    assert_int_equal(sy_maintenance_start(), 0);
    until_it_is_gone(cache);
    sy_maintenance_stop();
    assert_int_equal(sy_fake_failures(SY_FAKE_START_READER), 1);
    end(cache);
}

/* For this program. */
bool sy_threads_may_be_reached(void) { return true; }

static pthread_barrier_t sleep_begins, sleep_ends;

static void *give_and_sleep(void *cache) {
    void *mine[200];
    for (int i = 0; i < 200; i++) must((mine[i] = sy_cache_alloc(cache)) != NULL);
    for (int i = 0; i < 200; i++) sy_cache_free(cache, mine[i]);
    pthread_barrier_wait(&sleep_begins);
    pthread_barrier_wait(&sleep_ends);
    sy_cache_free(cache, sy_cache_alloc(cache));
    return NULL;
}

static pthread_t start_sleeper(sy_cache *cache) {
    pthread_t sleeper;
    pthread_barrier_init(&sleep_begins, NULL, 2);
    pthread_barrier_init(&sleep_ends, NULL, 2);
    must(pthread_create(&sleeper, NULL, give_and_sleep, cache) == 0);
    pthread_barrier_wait(&sleep_begins);
    must(stats_of(cache).in_loaded > 1);
    return sleeper;
}

static void end_sleeper(pthread_t sleeper) {
    pthread_barrier_wait(&sleep_ends);
    pthread_join(sleeper, NULL);
}

/* All but one of its items. */
static void it_reaches_a_thread_that_sleeps(void **state) {
    (void)state;
    if (sy_os_barrier_threads() != 0) skip();
    sy_cache *cache = make(64, 0);
    pthread_t sleeper = start_sleeper(cache);
    sy_set_decay(1);
    assert_int_equal(sy_maintenance_start(), 0);
    while (stats_of(cache).in_loaded > 1) rest();
    sy_maintenance_stop();
    assert_int_equal(stats_of(cache).in_use, 0);
    end_sleeper(sleeper);
    end(cache);
}

/* The options may forbid to read files of the system. A filter of system calls may be the reason,
 * so no other rare call is made either. */
static void without_files_there_is_no_observer(void **state) {
    (void)state;
    sy_cache *cache = make(64, 0), *other = make(128, 0);
    assert_int_equal(sy_set_options("system-files=no"), 0);
    pthread_t sleeper = start_sleeper(other);
    hoard(cache);
    sy_set_decay(1);
    assert_int_equal(sy_maintenance_start(), 0);
    until_it_is_gone(cache);
    sy_maintenance_stop();
    assert_int_equal(sy_fake_calls(SY_FAKE_START_READER), 0);
    assert_int_equal(sy_fake_calls(SY_FAKE_BARRIER_THREADS), 0);
    assert_int_equal(sy_set_options("system-files"), 0);
    end_sleeper(sleeper);
    end(other);
    end(cache);
}

/* In this test's program no start may have failed before: the library would wait before the next
 * try. */
static void auto_needs_files(void **state) {
    (void)state;
    sy_set_decay(1000);
    assert_int_equal(sy_set_options("system-files=no,maintenance=auto"), 0);
    void *large = sy_malloc(GROWN);
    assert_non_null(large);
    look_a_few_times();
    assert_false(sy_maintenance_runs());
    assert_int_equal(sy_set_options("system-files"), 0);
    look_a_few_times();
    assert_true(sy_maintenance_runs());
    assert_int_equal(sy_set_options("maintenance=no"), 0);
    sy_free(large);
}

static _Atomic unsigned readings;

static void count_reading(void) { readings++; }

/* The option may be set while the observer runs. */
static void the_observer_heeds_the_option(void **state) {
    needs(SY_OS_OBSERVER);
    (void)state;
    sy_set_decay(1000);
    readings = 0;
    sy_fake_run_before_reading(count_reading);
    assert_int_equal(sy_maintenance_start(), 0);
    while (readings == 0) rest();
    assert_int_equal(sy_set_options("system-files=no"), 0);
    for (int i = 0; i < 20; i++) rest(); /* a reading may be under way */
    unsigned before = readings;
    for (int i = 0; i < 20; i++) {
        sy_facts_ask();
        rest();
    }
    assert_int_equal(readings, before);
    sy_maintenance_stop();
    sy_fake_run_before_reading(NULL);
    assert_int_equal(sy_set_options("system-files"), 0);
}

/* ---- while there must be no other thread ---- */

static void a_pause_ends_it_and_keeps_it_away(void **state) {
    (void)state;
    assert_int_equal(sy_maintenance_start(), 0);
    bool ran = sy_maintenance_pause();
    assert_true(ran);
    assert_false(sy_maintenance_runs());
    errno = 0;
    assert_int_equal(sy_maintenance_start(), -1);
    assert_int_equal(errno, EPERM);
    assert_false(sy_maintenance_pause()); /* another thread's */
    sy_maintenance_resume(false);
    assert_int_equal(sy_maintenance_start(), -1);
    errno = KEPT_ERRNO;
    sy_maintenance_resume(ran);
    assert_int_equal(errno, KEPT_ERRNO);
    assert_true(sy_maintenance_runs());
    sy_maintenance_stop();
    ran = sy_maintenance_pause();
    assert_false(ran);
    sy_maintenance_resume(ran);
    assert_false(sy_maintenance_runs());
}

static _Atomic uint32_t starts;

static void *pause_and_start(void *seed) {
    uint64_t random = (uintptr_t)seed;
    while (!over) {
        if (next_random(&random) % 2 && sy_maintenance_start() == 0) starts++;
        bool ran = sy_maintenance_pause();
        must(!sy_maintenance_runs());
        sy_maintenance_resume(ran);
    }
    return NULL;
}

static void no_thread_starts_during_anothers_pause(void **state) {
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    over = false;
    starts = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pause_and_start, (void *)(i + 1)), 0);
    while (starts < 100) rest();
    over = true;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    sy_maintenance_stop();
    assert_int_equal(sy_maintenance_start(), 0);
    sy_maintenance_stop();
}

static volatile unsigned traps_left; /* until the pause begins */
static bool was_late;                /* the thread was started before */
static sem_t pause_now, start_over;
static _Atomic bool has_pause;

static void let_pause_begin(void *context) {
    if (!is_of_program(trapped_at(context)) || --traps_left) return;
    clear_trap_flag(context);
    was_late = sy_maintenance_runs();
    sem_post(&pause_now);
    for (int looks = 0; looks < 3 && !has_pause; looks++) rest();
}

static void *pause_when_told(void *arg) {
    sem_wait(&pause_now);
    bool ran = sy_maintenance_pause();
    has_pause = true;
    sem_wait(&start_over);
    must(!sy_maintenance_runs());
    sy_maintenance_resume(ran);
    must(sy_maintenance_runs() == ran);
    return arg;
}

/* Another thread begins a pause at this instruction of a start; false: it was over before. */
static bool pause_at(unsigned instruction) {
    pthread_t other;
    has_pause = was_late = false;
    traps_left = instruction;
    must(pthread_create(&other, NULL, pause_when_told, NULL) == 0);
    set_trap_flag();
    bool started = sy_maintenance_start() == 0;
    while (traps_left) {}
    sem_post(&start_over);
    pthread_join(other, NULL);
    must(started || errno == EPERM);
    sy_maintenance_stop();
    return !was_late;
}

static void count_down(void *context) {
    if (!--traps_left) clear_trap_flag(context);
}

/* Not under an emulator. */
static bool gets_traps(void) {
    must(call_at_traps(count_down));
    traps_left = 1;
    set_trap_flag();
    for (int i = 0; i < 10 && traps_left; i++) {}
    return !traps_left;
}

/* At any instruction up to where the thread is as good as started, and pauses tell it to end. */
static void a_pause_begins_at_any_instruction_of_a_start(void **state) {
    (void)state;
    if (!CAN_STEP || !gets_traps()) skip();
    must(call_at_traps(let_pause_begin));
    must(sem_init(&pause_now, 0, 0) == 0 && sem_init(&start_over, 0, 0) == 0);
    unsigned instruction = 1;
    while (pause_at(instruction)) instruction++;
    must(instruction > 5);
}

static void enter_a_sandbox(void *arg) {
    (void)arg;
    must(sy_maintenance_start() == 0);
    sy_fake_set_memory_limit(12345678);
    atomic_store(&sy_facts_now.memory_limit, 1);
    sy_enter_sandbox();
    must(!sy_maintenance_runs());
    must(sy_facts_now.memory_limit == 12345678); /* it was read once more */
    must(sy_facts_now.in_sandbox);
    errno = 0;
    must(sy_maintenance_start() == -1 && errno == EPERM);
    sy_enter_sandbox();
    must(sy_set_options("maintenance=auto") == 0);
    void *large = sy_malloc(GROWN);
    look_a_few_times();
    must(!sy_maintenance_runs());
    sy_free(large);
}

/* The options may forbid to read files, also once more. */
static void enter_without_files(void *arg) {
    (void)arg;
    must(sy_set_options("system-files=no") == 0);
    readings = 0;
    sy_fake_run_before_reading(count_reading);
    sy_enter_sandbox();
    must(readings == 0 && sy_facts_now.in_sandbox);
}

static void in_a_sandbox_it_does_not_run(void **state) {
    (void)state;
    if (SANITIZED) skip(); /* ThreadSanitizer ends a child that starts threads */
    assert_int_equal(in_child(enter_a_sandbox, NULL), 0);
    assert_int_equal(in_child(enter_without_files, NULL), 0);
    assert_int_equal(sy_maintenance_start(), 0);
    sy_maintenance_stop();
}

#define REAL(name) cmocka_unit_test_setup_teardown(name, begin_in_real_time, leave)

int main(void) {
    must_have(SY_OS_BACKGROUND, "background threads");
    /* The very first call into the library. */
    if (in_child(have_a_child_at_once, (void *)(uintptr_t)be_that_child) != 0) return 1;
    const struct CMUnitTest tests[] = {
        REAL(a_default_leaves_what_the_program_said), /* first: nothing has set the option yet */
        REAL(it_gives_back_what_nobody_uses),
        REAL(start_and_stop_may_be_said_twice),
        REAL(a_thread_that_cannot_be_had_is_said),
        REAL(many_may_start_and_stop_at_once),
        TEST(slow_paths_age_again_after_it),
        REAL(it_heeds_another_decay),
        REAL(it_can_be_stopped_while_it_works),
        REAL(a_child_starts_its_own),
        REAL(no_signal_is_delivered_to_it),
        REAL(auto_waits_for_memory),
        REAL(a_hidden_thread_makes_way_for_relocations),
        REAL(a_hidden_thread_makes_way_for_destructors),
        REAL(auto_needs_files),
        REAL(the_observer_heeds_the_option),
        REAL(auto_starts_it_in_an_allocation),
        REAL(no_free_starts_it),
        REAL(auto_goes_on_without_a_thread),
        REAL(without_an_observer_it_works),
        REAL(it_reaches_a_thread_that_sleeps),
        REAL(without_files_there_is_no_observer),
        REAL(a_pause_ends_it_and_keeps_it_away),
        REAL(no_thread_starts_during_anothers_pause),
        REAL(a_pause_begins_at_any_instruction_of_a_start),
        REAL(in_a_sandbox_it_does_not_run),
    };
    return cmocka_run_group_tests_name("maintenance", tests, NULL, NULL);
}
