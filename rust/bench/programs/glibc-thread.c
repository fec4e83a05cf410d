/*
 * glibc-thread: blocks of a working set are replaced at random, after the test
 * bench-malloc-thread of glibc.
 *
 * Each thread has 1,024 places. It frees the block of a random place and allocates another one.
 * Sizes are 8 to 32,768 bytes, and their number falls with the square of the size: half of the
 * blocks have less than 16 bytes. SIZE is the number of replacements, in thousands.
 */
#include "program.h"

enum { PLACES = 1024, LARGEST = 32768, SIZES = 8192 };

/* The inverse square distribution: 1 / u, where u is even between 1 / 32,768 and 1 / 8. */
static void draw_sizes(uint16_t *sizes) {
    struct random random = random_from(88);
    for (size_t i = 0; i < SIZES; i++) {
        double share = (double)(next(&random) >> 11) / (double)(UINT64_C(1) << 53);
        double low = 1.0 / LARGEST, high = 1.0 / BLOCK_MIN;
        sizes[i] = (uint16_t)(1.0 / (low + share * (high - low)));
    }
}

static uint16_t sizes[SIZES];

static void *run(void *argument) {
    struct member *member = argument;
    struct random random = random_from(member->index + 1);
    void *places[PLACES] = {NULL};
    for (uint64_t i = 0; i < member->size * 1000; i++) {
        void **place = &places[below(&random, PLACES)];
        member->sum += give(*place);
        *place = take(sizes[i % SIZES], i);
    }
    for (size_t i = 0; i < PLACES; i++) member->sum += give(places[i]);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t size = size_of_work(count, arguments);
    draw_sizes(sizes);
    return finish(count, arguments, team(THREADS, run, size));
}
