/* SLABYARD=leaks,leak-status=23
 * slabyard: 1 object leaked: 64 bytes in cache "order", allocated TIME ago by:
 *     STACK main
 *   total: 1 object, 64 bytes
 * ends with 23 */
#include "misuse.h"

int main(void) {
    told(sy_cache_alloc(cache_of("order", 64, 0)));
    return 0;
}
