/*
 * swing.c: a program whose live memory swings between 50 and 180 MiB, in four threads. limited.sh
 * runs it in a control group with little more memory than that. Each block is filled with a
 * pattern, which is checked before the block is freed.
 *
 * Usage: swing ROUNDS same|changing
 *   same       every round has blocks of the same sizes, and random blocks are freed
 *   changing   every round has other sizes, and the oldest blocks are freed
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "malloc.h"

enum { THREADS = 4, BLOCKS = 1 << 17, REPLACED = 100000, MIB = 1 << 20 };

static const size_t HIGH = (size_t)180 * MIB / THREADS, LOW = (size_t)50 * MIB / THREADS;
static const size_t SIZES[] = {64, 160, 400, 1000, 2600, 9000};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES, SIZE_OF_SAME = 3 };

typedef struct block {
    unsigned char *bytes;
    size_t size;
} block;

typedef struct owner {
    pthread_t thread;
    uint64_t random;
    size_t count, live; /* number of blocks; bytes in them */
    block blocks[BLOCKS];
} owner;

static owner owners[THREADS];
static unsigned rounds;
static int sizes_change;

static size_t below(owner *self, size_t limit) {
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return (size_t)(self->random % limit);
}

/* Three of four blocks have the size of the round, give or take a half. */
static size_t choose_size(owner *self, unsigned round) {
    unsigned most = sizes_change ? round % SIZE_COUNT : SIZE_OF_SAME;
    size_t size = SIZES[below(self, 4) ? most : below(self, SIZE_COUNT)];
    return size + below(self, size / 2);
}

static unsigned char fill_of(const block *at) { return (unsigned char)(at->size * 31 + 7); }

static void allocate(owner *self, block *at, size_t size) {
    at->bytes = malloc(size);
    must(at->bytes != NULL);
    at->size = size;
    memset(at->bytes, fill_of(at), size);
    self->live += size;
}

static void release(owner *self, const block *at) {
    for (size_t i = 0; i < at->size; i++) must(at->bytes[i] == fill_of(at));
    self->live -= at->size;
    free(at->bytes);
}

static void grow(owner *self, unsigned round) {
    while (self->live < HIGH && self->count < BLOCKS)
        allocate(self, &self->blocks[self->count++], choose_size(self, round));
}

static void replace(owner *self, unsigned round) {
    for (int i = 0; i < REPLACED; i++) {
        block *at = &self->blocks[below(self, self->count)];
        release(self, at);
        size_t size = choose_size(self, round);
        allocate(self, at, self->live + size > HIGH ? 32 : size);
    }
}

static void shrink(owner *self) {
    size_t gone = 0;
    while (sizes_change && self->live > LOW) release(self, &self->blocks[gone++]);
    self->count -= gone;
    memmove(self->blocks, self->blocks + gone, self->count * sizeof *self->blocks);
    while (self->live > LOW) {
        block *at = &self->blocks[below(self, self->count)];
        release(self, at);
        *at = self->blocks[--self->count];
    }
}

static void *work(void *arg) {
    owner *self = arg;
    for (unsigned round = 0; round < rounds; round++) {
        grow(self, round);
        replace(self, round);
        shrink(self);
    }
    return NULL;
}

int main(int count, char **arguments) {
    must(count == 3);
    must_be_slabyard();
    rounds = (unsigned)atoi(arguments[1]);
    sizes_change = strcmp(arguments[2], "changing") == 0;
    for (unsigned i = 0; i < THREADS; i++) {
        owners[i].random = 0x9e3779b97f4a7c15u * (i + 1);
        must(pthread_create(&owners[i].thread, NULL, work, &owners[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) must(pthread_join(owners[i].thread, NULL) == 0);
    puts("finished");
    return 0;
}
