/* slabyard: 1 object leaked: 64 bytes in cache "order", allocated TIME ago by:
 *     STACK make_order lose_order main
 *   total: 1 object, 64 bytes
 * ends with 0 */
#include "misuse.h"

static void *volatile kept;

static __attribute__((noinline)) void *make_order(sy_cache *cache) {
    return told(sy_cache_alloc(cache));
}

/* Loses an object, and overwrites the copies of its address on the stack. */
static __attribute__((noinline)) void lose_order(sy_cache *cache) {
    char over[2000];
    make_order(cache);
    scribble(over, sizeof over);
}

int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_AUDIT);
    kept = make_order(cache);
    lose_order(cache);
    return sy_report_leaks(cache, SY_LEAKS_UNREACHABLE) == 1 ? 0 : 1;
}
