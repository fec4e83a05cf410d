/*
 * glibc-simple: blocks of one size are allocated and freed, after the test bench-malloc-simple of
 * glibc.
 *
 * 25, 100, 400 and 1,600 blocks are allocated in turn. One half is freed in the order of its
 * allocation, the other half in reverse. This is done for several sizes: in a process with one
 * thread, in a second thread, and in the first thread again, now that the process has had two.
 * SIZE is the number of rounds.
 */
#include "program.h"

enum { BLOCKS = 1600, ALLOCATIONS = 40000 };

static const size_t sizes[] = {16, 64, 256, 1024};
static const size_t counts[] = {25, 100, 400, BLOCKS};

static uint64_t rise_and_fall(size_t size, size_t count) {
    void *blocks[BLOCKS];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) blocks[i] = take(size, i);
    for (size_t i = 0; i < count / 2; i++) sum += give(blocks[i]);
    for (size_t i = count; i > count / 2; i--) sum += give(blocks[i - 1]);
    return sum;
}

static void *run(void *argument) {
    struct member *member = argument;
    for (uint64_t round = 0; round < member->size; round++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                size_t repeats = ALLOCATIONS / counts[c];
                for (size_t i = 0; i < repeats; i++) {
                    member->sum += rise_and_fall(sizes[s], counts[c]);
                }
            }
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    struct member member = {.size = size_of_work(count, arguments)};
    run(&member);
    member.sum += team(1, run, member.size);
    run(&member);
    return finish(count, arguments, member.sum);
}
