/* Allocates five objects, and reacts to a failed allocation as its argument says. */
#include <slabyard/slabyard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Waits for ever, with a child whose process id is in the file `child`. */
static void hang(void) {
    int child = fork();
    if (child == 0) pause();
    FILE *file = fopen("made", "w");
    fprintf(file, "%d", child);
    fclose(file);
    rename("made", "child");
    pause();
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    char *volatile object, *volatile nobodys = argv[0];
    if (strcmp(way, "crash") == 0) abort();
    if (strcmp(way, "none") == 0) return 0;
    if (strcmp(way, "system") == 0) *(char *)sy_malloc(100) = 1;
    sy_cache *orders = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    sy_cache *trades = sy_cache_create(&(sy_cache_config){.name = "trade", .size = 64});
    for (int turn = 1; turn <= 5; turn++) {
        object = sy_cache_alloc(turn % 2 ? orders : trades);
        if (object) continue;
        printf("no object %d\n", turn);
        fflush(stdout);
        if (strcmp(way, "third") == 0 && turn == 3) *object = 1;
        if (strcmp(way, "odd") == 0 && turn % 2) *object = 1;
        if (strcmp(way, "hang") == 0 && turn == 2) hang();
        if (strcmp(way, "misuse") == 0 && turn == 4) sy_free(nobodys);
        if (strcmp(way, "exit") == 0) return 3;
    }
    return 0;
}
