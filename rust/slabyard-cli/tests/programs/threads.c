/* Makes known numbers of each operation in several threads that free each other's objects, and
 * in a forked child that frees objects of its parent. */
#define _GNU_SOURCE
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 1000 };

static void *made[THREADS][ROUNDS];
static pthread_barrier_t barrier;

static void *allocate(int thread, int round) {
    size_t size = (size_t)(thread * 1000 + round);
    void *object = NULL;
    switch (round % 4) {
    case 0: object = malloc(size); break;
    case 1: object = calloc(1, size); break;
    case 2: object = aligned_alloc(64, size); break;
    default: assert(posix_memalign(&object, 256, size) == 0); break;
    }
    assert(object != NULL);
    if (round % 10 == 0) object = reallocarray(object, size + 1, 2);
    return object;
}

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    for (int round = 0; round < ROUNDS; round++) made[thread][round] = allocate(thread, round);
    pthread_barrier_wait(&barrier);
    int other = (thread + 1) % THREADS;
    for (int round = 0; round < ROUNDS; round++) free(made[other][round]);
    free(NULL);
    return NULL;
}

static void in_a_child(void) {
    void *kept[100];
    for (int index = 0; index < 100; index++) kept[index] = malloc(777);
    pid_t child = fork();
    if (child == 0) {
        for (int index = 0; index < 100; index++) free(kept[index]);
        _exit(0);
    }
    int status;
    assert(waitpid(child, &status, 0) == child && status == 0);
    for (int index = 0; index < 100; index++) free(kept[index]);
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t thread = 0; thread < THREADS; thread++)
        assert(pthread_create(&threads[thread], NULL, work, (void *)thread) == 0);
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    in_a_child();
    assert(malloc(SIZE_MAX / 2) == NULL);
    return 7;
}
