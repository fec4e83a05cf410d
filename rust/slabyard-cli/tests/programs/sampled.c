/* Keeps 64 MiB that one function has allocated, frees as much of another's, and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

enum { COUNT = 64 << 10, BYTES = 1000 };

static void *kept[COUNT], *passed[COUNT];

APART void keep(void) {
    for (int i = 0; i < COUNT; i++) kept[i] = memset(malloc(BYTES), 1, BYTES);
}

APART void pass_on(void) {
    for (int i = 0; i < COUNT; i++) passed[i] = memset(malloc(BYTES), 1, BYTES);
    for (int i = 0; i < COUNT; i++) free(passed[i]);
}

int main(void) {
    keep();
    pass_on();
    printf("%d\n", getpid());
    fflush(stdout);
    return getchar() == 'x';
}
