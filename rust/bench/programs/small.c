/*
 * A program that has just started: it allocates what a small program does before its work, some
 * strings, structures, a table and a buffer, and prints its memory in KiB: all that is resident,
 * with code and libraries, and what is anonymous. No workload: the part `programs` has a table of
 * its own for it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OBJECTS = 100 };

static char *objects[OBJECTS];

static const size_t sizes[] = {24, 13, 64, 40, 8, 120, 33, 72, 16, 500};

static void use(size_t i, size_t size) {
    objects[i] = malloc(size);
    if (!objects[i]) abort();
    memset(objects[i], 1, size);
}

/* The kernel's own count for the process, which is in batches of pages, is not exact enough. */
static long kib(const char *text, const char *field) {
    const char *at = strstr(text, field);
    return at ? atol(at + strlen(field)) : -1;
}

int main(void) {
    static char text[4096];
    for (size_t i = 0; i < OBJECTS - 2; i++) use(i, sizes[i % (sizeof sizes / sizeof *sizes)]);
    use(OBJECTS - 2, 1024);
    use(OBJECTS - 1, 4096);
    for (size_t i = 0; i < OBJECTS; i += 3) free(objects[i]);
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0) return 1;
    printf("%ld %ld\n", kib(text, "Rss:"), kib(text, "Anonymous:"));
    return 0;
}
