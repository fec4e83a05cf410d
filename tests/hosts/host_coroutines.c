/* Coroutines that allocate on one stack and free on another, move between threads, and end in
 * another thread than they began in. Their stacks are small, and lie in memory from malloc. */
#define _GNU_SOURCE
#include <pthread.h>
#include <ucontext.h>

#include "hosts/hosts.h"

enum { COROUTINES = 32, STEPS = 60, BLOCKS = 40, THREADS = 3 };

#ifdef __OPTIMIZE__
enum { STACK = 16 << 10 };
#else
enum { STACK = 64 << 10 };
#endif

typedef struct coroutine {
    ucontext_t own, back;
    pthread_mutex_t turn;
    void *stack;
    void *blocks[BLOCKS];
    int step;
    bool ended;
} coroutine;

static coroutine coroutines[COROUTINES];
static __thread coroutine *running;

/* After a switch the thread may be another one, so nothing of thread-local variables is kept. */
__attribute__((noinline)) static coroutine *now(void) { return running; }

static void yield(coroutine *own) { CHECK(swapcontext(&own->own, &own->back) == 0); }

static void step(coroutine *own) {
    unsigned seed = (unsigned)own->step;
    for (int i = 0; i < BLOCKS; i++) {
        unsigned char *block = own->blocks[i];
        if (block) CHECK(block[0] == (unsigned char)i && block[15] == (unsigned char)i);
        free(block);
        seed = seed * 1103515245u + 12345u;
        size_t bytes = 16 + (seed >> 16) % (i % 10 ? 2000 : 100000);
        own->blocks[i] = malloc(bytes);
        memset(own->blocks[i], i, bytes);
    }
    own->step++;
}

static void run(void) {
    coroutine *own = now();
    while (own->step < STEPS) {
        step(own);
        yield(own);
    }
    own->ended = true;
}

static void prepare(coroutine *made) {
    pthread_mutex_init(&made->turn, NULL);
    made->stack = malloc(STACK);
    CHECK(made->stack && getcontext(&made->own) == 0);
    made->own.uc_stack.ss_sp = made->stack;
    made->own.uc_stack.ss_size = STACK;
    made->own.uc_link = &made->back;
    makecontext(&made->own, run, 0);
}

/* Takes one coroutine after another, and runs it for a step. */
static void *carry(void *first) {
    for (size_t at = (size_t)first, ended = 0; ended < COROUTINES; at = (at * 5 + 7) % COROUTINES) {
        coroutine *chosen = &coroutines[at];
        if (pthread_mutex_trylock(&chosen->turn) != 0) continue;
        if (chosen->ended) {
            ended++;
        } else {
            ended = 0;
            running = chosen;
            CHECK(swapcontext(&chosen->back, &chosen->own) == 0);
        }
        pthread_mutex_unlock(&chosen->turn);
    }
    return NULL;
}

static void carry_all(void) {
    pthread_t threads[THREADS];
    memset(coroutines, 0, sizeof coroutines);
    for (int i = 0; i < COROUTINES; i++) prepare(&coroutines[i]);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, carry, (void *)(i * 11)) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < COROUTINES; i++) {
        CHECK(coroutines[i].step == STEPS);
        for (int block = 0; block < BLOCKS; block++) free(coroutines[i].blocks[block]);
        free(coroutines[i].stack);
        pthread_mutex_destroy(&coroutines[i].turn);
    }
}

/* Misuse on a coroutine's stack is reported as elsewhere. */
static ucontext_t outside;

static void err(void) { host_free_twice(NULL); }

static void err_in_coroutine(void *unused) {
    ucontext_t inside;
    (void)unused;
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = malloc(STACK);
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, err, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
}

int main(int count, char **arguments) {
    (void)count;
    with_options("sample=1/100", arguments);
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    for (int round = 0; round < 3; round++) carry_all();
    host_reports(err_in_coroutine, NULL);
    free(kept);
    return 0;
}
