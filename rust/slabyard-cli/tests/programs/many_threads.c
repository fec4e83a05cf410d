/* Many threads that live at the same time. Each gives its objects to the next thread, which frees
 * those that it finds. The argument is the number of threads. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 500, MOST = 1000 };

static int threads;
static void *given[MOST];
static pthread_barrier_t barrier;

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    void *first = malloc(1); /* the thread's first and last operations surround those of all */
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = (size_t)(1 + (thread * 31 + round * 7) % 900);
        char *object = malloc(size);
        memset(object, thread, size);
        free(__atomic_exchange_n(&given[(thread + 1) % threads], object, __ATOMIC_ACQ_REL));
        free(__atomic_exchange_n(&given[thread], NULL, __ATOMIC_ACQ_REL));
        if (round % 16 == 0) sched_yield();
    }
    pthread_barrier_wait(&barrier);
    free(first);
    return NULL;
}

int main(int count, char **arguments) {
    assert(count == 2);
    threads = atoi(arguments[1]);
    assert(threads > 0 && threads <= MOST);
    pthread_t all[MOST];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int thread = 0; thread < threads; thread++)
        assert(pthread_create(&all[thread], NULL, work, (void *)(intptr_t)thread) == 0);
    for (int thread = 0; thread < threads; thread++) pthread_join(all[thread], NULL);
    for (int thread = 0; thread < threads; thread++) free(given[thread]);
    return 0;
}
