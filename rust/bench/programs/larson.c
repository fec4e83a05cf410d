/*
 * larson: a server whose threads are replaced, after Larson and Krishnan, "Memory allocation for
 * long-running server applications" (1998).
 *
 * Each of the threads owns 5,000 blocks of 8 to 1,000 bytes, frees a random one and allocates
 * another in its place, again and again. After a while it starts a successor, which gets its
 * blocks, and ends. So a thread frees blocks of threads that ended long ago. SIZE is the number of
 * threads that follow one another.
 */
#include "program.h"

enum { BLOCKS = 5000, REPLACED = 20000, LARGEST = 1000 };

struct chain {
    void *blocks[BLOCKS];
    struct random random;
    uint64_t left, sum;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static size_t running = THREADS;

static void *another(struct chain *chain) {
    size_t size = BLOCK_MIN + below(&chain->random, LARGEST - BLOCK_MIN + 1);
    return take(size, next(&chain->random));
}

static void *live(void *argument) {
    struct chain *chain = argument;
    for (size_t i = 0; i < REPLACED; i++) {
        void **place = &chain->blocks[below(&chain->random, BLOCKS)];
        chain->sum += give(*place);
        *place = another(chain);
    }
    if (--chain->left > 0) {
        pthread_detach(start(live, chain));
        return NULL;
    }
    pthread_mutex_lock(&lock);
    running--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **arguments) {
    static struct chain chains[THREADS];
    uint64_t size = size_of_work(count, arguments), sum = 0;
    for (size_t i = 0; i < THREADS; i++) {
        chains[i] = (struct chain){.random = random_from(i + 1), .left = size};
        for (size_t n = 0; n < BLOCKS; n++) chains[i].blocks[n] = another(&chains[i]);
        pthread_detach(start(live, &chains[i]));
    }
    pthread_mutex_lock(&lock);
    while (running > 0) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t n = 0; n < BLOCKS; n++) sum += give(chains[i].blocks[n]);
        sum += chains[i].sum;
    }
    return finish(count, arguments, sum);
}
