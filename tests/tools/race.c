/*
 * tsan: ThreadSanitizer: data race; write_order
 *
 * helgrind: Possible data race during write; write_order
 *
 * drd: Conflicting store; write_order
 */
#include <pthread.h>

#include "tools.h"

/* Two threads write the same order without a mutex. Both also use the library, whose own
 * synchronization must not hide it. */
static char *shared;
static pthread_barrier_t both;

static void *work(void *arg) {
    char *own = make_order();
    pthread_barrier_wait(&both);
    write_order(shared, 0);
    drop_order(own);
    return arg;
}

int main(void) {
    pthread_t threads[2];
    open_orders();
    shared = make_order();
    must(pthread_barrier_init(&both, NULL, 2) == 0);
    for (int i = 0; i < 2; i++) must(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++) must(pthread_join(threads[i], NULL) == 0);
    drop_order(shared);
    return sy_cache_destroy(orders);
}
