/* Thread-local variables, which lie in the stack of each thread: with them, a background thread has
 * as much room as without. */
#include <pthread.h>

#include "hosts/hosts.h"

static _Thread_local char locals[25000];

static void *use_locals(void *arg) {
    memset(locals, 1, sizeof locals);
    hungry(1);
    return arg;
}

int main(void) {
    hungry(40);
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use_locals, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        hungry(1);
    }
    use_locals(kept);
    free(kept);
    return 0;
}
