/* A program that debugged.sh looks at with a debugger: one thread allocates until the input
 * has ended. */
#include <pthread.h>

#include "hosts/hosts.h"

static _Atomic bool over;

static void *eat(void *unused) {
    while (!over) hungry(2);
    return unused;
}

int main(void) {
    pthread_t thread;
    char byte;
    void *kept = malloc(40 << 20);
    memset(kept, 1, 40 << 20);
    hungry(8);
    CHECK(pthread_create(&thread, NULL, eat, NULL) == 0);
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {}
    over = true;
    CHECK(pthread_join(thread, NULL) == 0);
    free(kept);
    hungry(8);
    return 0;
}
