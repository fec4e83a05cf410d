/*
 * stress_fork_signal.c: a fork in a signal handler that interrupted the library at any place.
 *
 * Threads allocate and free all sizes, trim and end, while signals are sent to them. The handler
 * forks, in several threads at once. Some children end in the handler. Others return from it,
 * complete the interrupted operation, and check every invariant. The parent goes on as before.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "stress/stress.h"
#include "support/sanitized.h"
#include "support/services.h"

enum {
    WORKERS = 3,
    OBJECTS = 2000,
    ROUND = 1000,     /* operations between two checks whether this is a child */
    CHILD_ROUNDS = 3, /* of a child, before it checks everything */
    CHILD_SECONDS = 60,
    APART_US = 500, /* signals */
};

static _Atomic bool over;
static _Atomic unsigned forks;
static _Atomic uint64_t chance; /* of the handlers */
static volatile sig_atomic_t is_child;
static sy_cache *cache;

static void await(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) stress_expect(errno == EINTR, "a child is waited for");
    stress_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

static void fork_in_handler(int signal) {
    (void)signal;
    int error = errno;
    if (is_child) return;
    bool goes_on = (atomic_fetch_add(&chance, 1) & 1) == 0;
    pid_t child = fork();
    stress_expect(child >= 0, "a process forks");
    if (child == 0) {
        if (!goes_on) _exit(0);
        is_child = 1;
        alarm(CHILD_SECONDS);
    } else {
        await(child);
        atomic_fetch_add(&forks, 1);
    }
    errno = error;
}

typedef struct slot {
    void *object;
    size_t size;
    bool of_cache;
} slot;

static void fill_slot(slot *it, uint64_t *random) {
    it->of_cache = stress_below(random, 4) == 0;
    it->size =
        stress_below(random, 100) ? stress_below(random, 3000) : stress_below(random, 1 << 19);
    if (it->of_cache) it->size = 40;
    it->object = it->of_cache ? sy_cache_alloc(cache) : sy_malloc(it->size);
    stress_expect(it->object != NULL, "there is memory");
    stress_fill(it->object, it->size, (uintptr_t)it->object);
}

static void empty_slot(slot *it) {
    stress_check(it->object, it->size, (uintptr_t)it->object);
    if (it->of_cache)
        sy_cache_free(cache, it->object);
    else
        sy_free(it->object);
    it->object = NULL;
}

static void work(slot *slots, uint64_t *random) {
    for (int i = 0; i < ROUND; i++) {
        slot *it = &slots[stress_below(random, OBJECTS)];
        if (it->object)
            empty_slot(it);
        else
            fill_slot(it, random);
    }
    if (stress_below(random, 10) == 0) sy_trim();
    if (stress_below(random, 10) == 0) sy_thread_flush();
    if (stress_below(random, 20) == 0) sy_thread_idle();
}

static _Noreturn void end_child(slot *slots, uint64_t *random) {
    stress_verify();
    for (int i = 0; i < CHILD_ROUNDS; i++) work(slots, random);
    for (size_t i = 0; i < OBJECTS; i++)
        if (slots[i].object) empty_slot(&slots[i]);
    sy_trim();
    stress_verify();
    sy_cache_destroy_all(cache);
    stress_verify();
    _exit(0);
}

/* A sanitizer works at the beginning and the end of a thread; it cannot be forked there. */
static void let_signals(bool through) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(through ? SIG_UNBLOCK : SIG_BLOCK, &signals, NULL);
}

static void *worker(void *argument) {
    uint64_t random = *(uint64_t *)argument;
    let_signals(true);
    slot *slots = sy_calloc(OBJECTS, sizeof *slots);
    stress_expect(slots != NULL, "there is memory");
    while (!over) {
        work(slots, &random);
        if (is_child) end_child(slots, &random);
    }
    for (size_t i = 0; i < OBJECTS; i++)
        if (slots[i].object) empty_slot(&slots[i]);
    sy_free(slots);
    if (is_child) _exit(0);
    if (SANITIZED) let_signals(false);
    return NULL;
}

int main(int argc, char **argv) {
    must_have(SY_OS_FORKS, "fork");
    stress_run run = stress_arguments(argc, argv);
    uint64_t random = run.seed, seeds[WORKERS];
    pthread_t workers[WORKERS];
    double end = stress_now() + run.seconds;
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    cache = sy_cache_create(&(sy_cache_config){.size = 40});
    stress_expect(cache != NULL, "a cache is made");
    sigaction(SIGUSR1, &action, NULL);
    if (SANITIZED) let_signals(false);
    for (unsigned i = 0; i < WORKERS; i++) {
        seeds[i] = stress_random(&random);
        stress_expect(pthread_create(&workers[i], NULL, worker, &seeds[i]) == 0, "a thread starts");
    }
    let_signals(false);
    while (stress_now() < end) {
        pthread_kill(workers[stress_below(&random, WORKERS)], SIGUSR1);
        usleep(APART_US);
    }
    over = true;
    for (unsigned i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
    stress_verify();
    stress_expect(sy_cache_destroy(cache) == 0, "nothing is in use at the end");
    stress_expect(stress_heap_in_use() == 0, "nor in the heap");
    printf("stress: %u forks in handlers from seed %llu\n", forks, (unsigned long long)run.seed);
    return 0;
}
