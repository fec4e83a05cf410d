/* A thread that is cancelled while it allocates and frees, with a mutex locked. None of the
 * functions of malloc is a cancellation point (POSIX 2.9.5.2), so the thread ends at its own one,
 * with the mutex released. */
#include <malloc.h>
#include <pthread.h>

#include "hosts/hosts.h"

enum { BLOCKS = 20000, BYTES = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool asked, began;
static _Atomic int done;
static void *blocks[BLOCKS];

static void *work(void *unused) {
    pthread_mutex_lock(&mutex);
    began = true;
    while (!asked) {}
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
    for (int i = 0; i < BLOCKS; i += 2) blocks[i] = realloc(blocks[i], 2 * BYTES);
    for (int i = 0; i < BLOCKS; i += 3) free(blocks[i]), blocks[i] = calloc(1, BYTES);
    for (int i = 0; i < BLOCKS; i += 5) free(blocks[i]), blocks[i] = memalign(256, BYTES);
    void *large = malloc(50 << 20);
    large = realloc(large, 100 << 20);
    free(large);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    malloc_trim(0);
    done = 1;
    pthread_mutex_unlock(&mutex);
    for (;;) pthread_testcancel();
    return unused;
}

int main(void) {
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        asked = began = false;
        done = 0;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        while (!began) {}
        CHECK(pthread_cancel(thread) == 0);
        asked = true;
        void *result;
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(done == 1);
        CHECK(pthread_mutex_trylock(&mutex) == 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    return 0;
}
