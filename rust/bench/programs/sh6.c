/*
 * sh6: waves of blocks of all sizes, some of them freed last in, first out and others first in,
 * first out, after sh6bench (MicroQuill, in SmartHeap's documentation).
 *
 * In a wave, each thread allocates blocks of 8 to 1,000 bytes, in steps of 8, and more of the small
 * ones. Of each size it frees the later half at once, the last one first. The earlier half stays
 * until the next wave has been allocated, and is freed in the order of its allocation. SIZE is the
 * number of waves.
 */
#include "program.h"

enum { STEP = 8, LARGEST = 1000, SIZES = LARGEST / STEP, SHARE = 2000, BLOCKS_MAX = 16000 };

struct wave {
    void *blocks[BLOCKS_MAX];
    size_t count;
};

/* Allocates a wave. Of each size the earlier half stays. */
static uint64_t rise(struct wave *wave, uint64_t mark) {
    uint64_t sum = 0;
    wave->count = 0;
    for (size_t size = STEP; size <= LARGEST; size += STEP) {
        size_t blocks = 2 + SHARE * STEP / size;
        must(wave->count + blocks <= BLOCKS_MAX, "a wave fits");
        for (size_t i = 0; i < blocks; i++) wave->blocks[wave->count++] = take(size, mark + i);
        for (size_t i = 0; i < blocks / 2; i++) sum += give(wave->blocks[--wave->count]);
    }
    return sum;
}

static uint64_t fall(struct wave *wave) {
    uint64_t sum = 0;
    for (size_t i = 0; i < wave->count; i++) sum += give(wave->blocks[i]);
    wave->count = 0;
    return sum;
}

static void *run(void *argument) {
    struct member *member = argument;
    struct wave *waves = calloc(2, sizeof *waves);
    must(waves != NULL, "there is memory");
    for (uint64_t i = 0; i < member->size; i++) {
        member->sum += rise(&waves[i % 2], i);
        member->sum += fall(&waves[(i + 1) % 2]);
    }
    member->sum += fall(&waves[0]) + fall(&waves[1]);
    free(waves);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t sum = team(THREADS, run, size_of_work(count, arguments));
    return finish(count, arguments, sum);
}
