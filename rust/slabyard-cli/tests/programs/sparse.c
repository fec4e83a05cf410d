/* Asks for far more memory than it uses: a byte of each MiB of 64; with an argument for twice as
 * much as the machine has, and uses none. Then allocates and frees small objects. */
#include <stdlib.h>
#include <unistd.h>

enum { MIB = 1 << 20, PIECES = 8 };

static void use_a_little(void) {
    char *piece = malloc(64 * MIB);
    for (size_t at = 0; at < 64 * MIB; at += MIB) piece[at] = 1;
    for (int round = 0; round < 10000; round++) free(malloc(50));
    free(piece);
}

static void ask_for_more_than_there_is(void) {
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / PIECES * 2;
    void *pieces[PIECES];
    for (int piece = 0; piece < PIECES; piece++) pieces[piece] = malloc(bytes);
    for (int piece = 0; piece < PIECES; piece++) free(pieces[piece]);
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1)
        ask_for_more_than_there_is();
    else
        use_a_little();
    return 0;
}
