/*
 * holes: most blocks of three sizes are freed, and those that stay lie everywhere between them.
 *
 * After https://github.com/zackees/mimalloc-pprof/pull/334 (and 302, 305), which gives holes
 * inside of pages that are in use back to the system, because a runtime for JavaScript needed 1.4
 * to 2.6 times as much memory as another: 150,000 blocks of 512 B, 100,000 of 1 KiB and 50,000 of
 * 2 KiB; a scattered one of twenty is kept; then the process is idle for 10 seconds. It makes no
 * call at all then, as a process that waits for its user.
 */
#include "readings.h"

enum { KINDS = 3, KEPT_OF = 20 };

static const size_t sizes[KINDS] = {512, 1024, 2048}, counts[KINDS] = {150000, 100000, 50000};

int main(int count, char **arguments) {
    struct request request = read_request(count, arguments);
    struct blocks all = blocks_for(300000), kept = blocks_for(300000);
    struct random random = random_from(1);
    uint64_t sum = 0, live = 0;
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t wanted = request.quick ? counts[kind] / 10 : counts[kind];
        for (size_t i = 0; i < wanted; i++) blocks_add(&all, sizes[kind], next(&random));
    }
    tell_resident("peak");
    for (size_t i = 0; i < all.count; i++) {
        if (below(&random, KEPT_OF) == 0) {
            live += checked(all.at[i]);
            kept.at[kept.count++] = all.at[i];
        } else {
            sum += give(all.at[i]);
        }
    }
    blocks_end(&all);
    tell("live", live >> 10);
    tell_waits(&request, sleep_ms);
    tell("sum", sum + blocks_give(&kept));
    return 0;
}
