/* Asks for far more memory than it uses. Without an argument: allocates 64 MiB and writes one
 * byte of each MiB; then grows half a MiB to 64 MiB by realloc and writes 4 MiB of them; then
 * allocates small objects, and waits a second. "pieces": allocates 60 KiB at a time and writes
 * one byte of each. "killed": allocates twice the memory of the machine, and is killed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, PARTS = 8, PIECES = 2000 };

static void use_a_little(void) {
    char *sparse = malloc(64 * MIB);
    for (size_t at = 0; at < 64 * MIB; at += MIB) sparse[at] = 1;
    char *grown = malloc(MIB / 2);
    memset(grown, 1, MIB / 2);
    grown = realloc(grown, 64 * MIB);
    memset(grown, 1, 4 * MIB);
    for (int round = 0; round < 10000; round++) free(malloc(50));
    sleep(1);     /* so that the memory is sampled meanwhile */
    free(sparse); /* the other object is still live at the end */
}

static void use_pieces(void) {
    for (int piece = 0; piece < PIECES; piece++) *(char *)malloc(60 * KIB) = 1;
}

static void ask_for_more_than_there_is(void) {
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / PARTS * 2;
    void *volatile parts[PARTS];
    for (int part = 0; part < PARTS; part++) parts[part] = malloc(bytes);
    kill(getpid(), SIGKILL);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "pieces") == 0)
        use_pieces();
    else if (strcmp(what, "killed") == 0)
        ask_for_more_than_there_is();
    else
        use_a_little();
    return 0;
}
