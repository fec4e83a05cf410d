/* For a second, one function leaks and another replaces the objects of a table. A third has
 * allocated at the start. Then it waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

enum { ROUNDS = 200, AT_ONCE = 50, ENTRIES = 500, LOADED = 5000 };

static void *volatile last, *entries[ENTRIES];

APART void load(void) {
    for (int i = 0; i < LOADED; i++) last = memset(malloc(600), 1, 600);
}

APART void leak(void) {
    for (int i = 0; i < AT_ONCE; i++) last = memset(malloc(1000), 1, 1000);
}

APART void replace(int round) {
    for (int i = 0; i < AT_ONCE; i++) {
        void **entry = &entries[(round * AT_ONCE + i) % ENTRIES];
        free(*entry);
        *entry = memset(malloc(3000), 1, 3000);
    }
}

int main(void) {
    printf("%d\n", getpid());
    fflush(stdout);
    load();
    for (int i = 0; i < ROUNDS; i++) {
        leak();
        replace(i);
        usleep(5000);
    }
    puts("done");
    fflush(stdout);
    return getchar() == 'x';
}
