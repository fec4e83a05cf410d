/*
 * test_fork.c: a fork at any time: with hooks of the program around it, in a handler of a signal
 * that interrupted the library, or in a callback. Parent and child both complete the interrupted
 * operation.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/slabyard.h>

#include "cache/cache.h"
#include "cache/limit.h"
#include "chunk/chunk.h"
#include "magazine/store.h"
#include "magazine/thread.h"
#include "os/lock.h"
#include "os/start.h"
#include "support/child.h"
#include "support/page_size.h"
#include "support/sanitized.h"
#include "support/services.h"
#include "vmem/arena.h"

enum { MANY = 3000, FORKS = 20, PATIENCE = 300 /* seconds; then the process waits for ever */ };

static sy_cache *make(size_t size) {
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.size = size});
    must(cache != NULL);
    return cache;
}

/* More than magazines hold, of classes that were not used so far. */
static void use_heap(void) {
    static void *objects[MANY];
    for (size_t i = 0; i < MANY; i++) must((objects[i] = sy_malloc(1 + i * 13)) != NULL);
    for (size_t i = 0; i < MANY; i++) sy_free(objects[i]);
}

static void use_cache(sy_cache *cache) {
    static void *objects[MANY];
    for (size_t i = 0; i < MANY; i++) must((objects[i] = sy_cache_alloc(cache)) != NULL);
    for (size_t i = 0; i < MANY; i++) sy_cache_free(cache, objects[i]);
}

static void expect_sound(sy_cache *cache) {
    must(sy_cache_verify(cache) == 0);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    must(sy_store_verify() == 0);
    must(sy_verify() == 0);
}

/* ---- hooks of the program ---- */

static unsigned hooked; /* phases in which hooks did their work */
static bool hooks_work;

/* Allocates for the first time in the process, or with existing caches, and returns memory. */
static void work_in_hook(void) {
    if (!hooks_work) return;
    use_heap();
    sy_free(sy_malloc(5 << 20));
    sy_thread_flush();
    hooked++;
}

/* Registered before the library's hooks, so they run while it holds all its locks for the fork. */
__attribute__((constructor(101))) static void register_before_the_library(void) {
    must(pthread_atfork(work_in_hook, work_in_hook, work_in_hook) == 0);
}

static pid_t fork_and_wait(void) {
    pid_t pid = fork();
    int status = 0;
    must(pid >= 0);
    if (pid > 0) must(waitpid(pid, &status, 0) == pid && status == 0);
    return pid;
}

/* This process has not used the library yet. */
static void fork_with_hooks(void *arg) {
    alarm(PATIENCE);
    if (arg) must(pthread_atfork(work_in_hook, work_in_hook, work_in_hook) == 0);
    use_heap();
    hooks_work = true;
    bool child = fork_and_wait() == 0;
    hooks_work = false;
    must(hooked == (arg ? 4 : 2)); /* twice before, and twice in either process */
    use_heap();
    sy_trim();
    must(sy_chunk_verify(&sy_memory_main) == 0);
    if (child) _exit(0);
}

static void hooks_may_allocate_and_free(void **state) {
    (void)state;
    int others;
    assert_int_equal(in_child(fork_with_hooks, NULL), 0);
    assert_int_equal(in_child(fork_with_hooks, &others), 0);
}

static pthread_mutex_t of_program = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool over;

static void lock_program(void) { pthread_mutex_lock(&of_program); }
static void unlock_program(void) { pthread_mutex_unlock(&of_program); }

static void *allocate_with_lock(void *arg) {
    while (!over) {
        lock_program();
        use_heap();
        unlock_program();
        usleep(100); /* the mutex is not fair: without a pause this thread takes it again */
    }
    return arg;
}

/* A hook that waits for a lock, while the holder of the lock allocates. */
static void fork_with_a_lock_of_the_program(void *arg) {
    pthread_t thread;
    alarm(PATIENCE);
    must(pthread_atfork(lock_program, unlock_program, unlock_program) == 0);
    must(pthread_create(&thread, NULL, allocate_with_lock, NULL) == 0);
    for (int i = 0; i < FORKS; i++)
        if (fork_and_wait() == 0) {
            use_heap();
            _exit(0);
        }
    over = true;
    pthread_join(thread, arg);
}

static void hooks_may_wait_for_threads_that_allocate(void **state) {
    (void)state;
    assert_int_equal(in_child(fork_with_a_lock_of_the_program, NULL), 0);
}

/* ---- in a handler that interrupted the library's work ---- */

static volatile sig_atomic_t is_child;

static void fork_in_handler(int signal) {
    (void)signal;
    is_child = fork_and_wait() == 0;
}

typedef struct work {
    void (*begin)(void);
    void (*end)(void);
} work;

static sy_cache *shared;

static void lock_start(void) { must(sy_start_lock()); }
static void lock_cache(void) { sy_lock_acquire(&shared->lock); }
static void unlock_cache(void) { sy_lock_release(&shared->lock); }
static void lock_arena(void) { sy_lock_acquire(&sy_memory_main.arena->lock); }
static void unlock_arena(void) { sy_lock_release(&sy_memory_main.arena->lock); }
static void lock_chunks(void) { sy_lock_acquire(&sy_memory_main.lock); }
static void unlock_chunks(void) { sy_lock_release(&sy_memory_main.lock); }
static void lock_spans(void) { sy_lock_acquire(&sy_memory_main.large_lock); }
static void unlock_spans(void) { sy_lock_release(&sy_memory_main.large_lock); }
static void lock_two(void) {
    sy_threads_lock();
    lock_chunks();
}
static void unlock_two(void) {
    unlock_chunks();
    sy_threads_unlock();
}
static void begin_fork(void) { sy_start_lock_all(); }
static void end_fork(void) { sy_start_unlock_all(); }

static void *use_both(void *arg) {
    use_cache(shared);
    use_heap();
    sy_thread_flush();
    return arg;
}

static void go_on_after(void) {
    expect_sound(shared);
    use_cache(shared);
    use_heap();
    if (!SANITIZED) in_thread(use_both, NULL); /* starting one takes a sanitizer's own locks */
    sy_trim();
    expect_sound(shared);
    must(sy_cache_destroy(make(48)) == 0);
    must(sy_cache_in_use(shared) == 0);
}

static void interrupt(void *arg) {
    const work *it = arg;
    alarm(PATIENCE);
    shared = make(64);
    use_cache(shared);
    signal(SIGUSR1, fork_in_handler);
    it->begin();
    raise(SIGUSR1);
    it->end();
    go_on_after();
    if (is_child) _exit(0);
}

static void a_handler_may_fork_whatever_it_interrupted(void **state) {
    (void)state;
    static const work works[] = {
        {lock_start, sy_start_unlock}, {sy_threads_lock, sy_threads_unlock},
        {lock_cache, unlock_cache},    {lock_arena, unlock_arena},
        {lock_chunks, unlock_chunks},  {lock_spans, unlock_spans},
        {lock_two, unlock_two},        {begin_fork, end_fork},
    };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        assert_int_equal(in_child(interrupt, (void *)(uintptr_t)&works[i]), 0);
}

static pthread_barrier_t barrier;

static void *stay_in(void *arg) {
    const work *it = arg;
    it->begin();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    it->end();
    return NULL;
}

/* Two threads fork in such handlers. One of them has to go on without the other's locks. */
static void interrupt_beside_another(void *arg) {
    pthread_t thread;
    alarm(PATIENCE);
    shared = make(64);
    void *kept = sy_cache_alloc(shared);
    memset(kept, 7, 64);
    use_cache(shared);
    signal(SIGUSR1, fork_in_handler);
    pthread_barrier_init(&barrier, NULL, 2);
    must(pthread_create(&thread, NULL, stay_in, arg) == 0);
    pthread_barrier_wait(&barrier);
    lock_spans();
    raise(SIGUSR1);
    unlock_spans();
    if (!is_child) {
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 64; i++) must(((char *)kept)[i] == 7);
    sy_cache_free(shared, kept);
    go_on_after();
    if (is_child) _exit(0);
}

static void what_another_thread_held_is_made_anew(void **state) {
    (void)state;
    static const work works[] = {
        {lock_cache, unlock_cache},
        {lock_chunks, unlock_chunks},
        {lock_start, sy_start_unlock},
        {lock_two, unlock_two},
    };
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        assert_int_equal(in_child(interrupt_beside_another, (void *)(uintptr_t)&works[i]), 0);
}

/* ---- in callbacks ---- */

static int construct(void *object, void *arg) {
    (void)object, (void)arg;
    return 0;
}

static bool forks;

static void destruct(void *object, void *arg) {
    (void)object, (void)arg;
    if (!forks) return;
    forks = false;
    is_child = fork_and_wait() == 0;
}

/* The fork comes in a trim, which has a pin, a slab set aside, units, and a limit's account. */
static void fork_in_destructor(void *arg) {
    static void *objects[MANY];
    alarm(PATIENCE);
    (void)arg;
    shared = sy_cache_create(
        &(sy_cache_config){.size = 200, .construct = construct, .destruct = destruct});
    sy_cache *other = make(64);
    for (int slabs = 0; slabs <= 1; slabs++) { /* in slabs that stay, and in slabs that go */
        for (size_t i = 0; i < MANY; i++) objects[i] = sy_cache_alloc(shared);
        for (size_t i = 0; i < MANY; i++)
            if (slabs || i % 100) sy_cache_free(shared, objects[i]);
        forks = true;
        sy_trim();
        must(!forks);
        for (size_t i = 0; i < MANY && !slabs; i += 100) sy_cache_free(shared, objects[i]);
        go_on_after();
    }
    use_cache(other);
    must(sy_cache_destroy(other) == 0 && sy_cache_destroy(shared) == 0);
    must(sy_limit_used() < SIZE_MAX / 4);
    must(sy_chunk_verify(&sy_memory_main) == 0);
    if (is_child) _exit(0);
}

static void a_destructor_may_fork(void **state) {
    (void)state;
    needs_small_pages();
    assert_int_equal(in_child(fork_in_destructor, NULL), 0);
}

static pthread_t first_thread;

static int import(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    (void)source, (void)arg, (void)size, (void)start, (void)got;
    pthread_barrier_wait(&barrier);
    bool child = pthread_equal(pthread_self(), first_thread) && fork_and_wait() == 0;
    if (child)
        is_child = true;
    else
        pthread_barrier_wait(&barrier);
    return -1;
}

static void release(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    (void)source, (void)arg, (void)start, (void)size;
}

static void *import_into(void *arena) {
    uintptr_t value;
    must(sy_vmem_alloc(arena, 1, SY_VMEM_INSTANT, &value) == -1);
    return NULL;
}

/* Two threads are in the import function of an arena, and one of them forks. */
static void fork_in_import(void *arg) {
    pthread_t thread;
    (void)arg;
    alarm(PATIENCE);
    sy_vmem *arena = sy_vmem_create(&(sy_vmem_config){.import = import, .release = release});
    must(arena != NULL);
    first_thread = pthread_self();
    pthread_barrier_init(&barrier, NULL, 2);
    must(pthread_create(&thread, NULL, import_into, arena) == 0);
    import_into(arena);
    if (!is_child) pthread_join(thread, NULL);
    must(sy_vmem_destroy(arena) == 0); /* no import is being called */
    if (is_child) _exit(0);
}

static void an_import_function_may_fork(void **state) {
    (void)state;
    assert_int_equal(in_child(fork_in_import, NULL), 0);
}

enum { REGION = 8 << 20 };
static char region[REGION + (4 << 20)];

static int discard(void *arg, void *start, size_t bytes) {
    (void)arg;
    if (forks) {
        forks = false;
        is_child = fork_and_wait() == 0;
        /* No other object may be placed here before this function returns. */
        for (int i = 0; i < 100; i++) {
            char *object = sy_cache_alloc(shared);
            must(object && (object < (char *)start || object >= (char *)start + bytes));
        }
    }
    memset(start, 0xee, bytes);
    return 0;
}

static void fork_in_discard(void *arg) {
    static void *objects[MANY];
    alarm(PATIENCE);
    char *start = (char *)(((uintptr_t)region + (4 << 20) - 1) & ~(uintptr_t)((4 << 20) - 1));
    sy_memory *memory =
        sy_memory_create(&(sy_memory_config){.start = start, .bytes = REGION, .discard = discard});
    shared = sy_cache_create(&(sy_cache_config){.size = 1024, .memory = memory});
    for (size_t i = 0; i < MANY; i++) must((objects[i] = sy_cache_alloc(shared)) != NULL);
    for (size_t i = 0; i < MANY; i++) sy_cache_free(shared, objects[i]);
    forks = true;
    sy_trim();
    must(!forks);
    must(sy_chunk_verify(memory) == 0 && sy_cache_verify(shared) == 0);
    sy_trim();
    sy_cache_destroy_all(shared);
    must(sy_memory_destroy(memory) == 0);
    if (is_child) _exit(0);
    (void)arg;
}

static void discard_may_fork(void **state) {
    (void)state;
    assert_int_equal(in_child(fork_in_discard, NULL), 0);
}

int main(void) {
    must_have(SY_OS_FORKS, "fork");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_may_allocate_and_free),
        cmocka_unit_test(hooks_may_wait_for_threads_that_allocate),
        cmocka_unit_test(a_handler_may_fork_whatever_it_interrupted),
        cmocka_unit_test(what_another_thread_held_is_made_anew),
        cmocka_unit_test(a_destructor_may_fork),
        cmocka_unit_test(an_import_function_may_fork),
        cmocka_unit_test(discard_may_fork),
    };
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
