/* SLABYARD=leaks
 * slabyard: 1 object leaked: 100 bytes in cache "heap-112", allocated TIME ago by:
 *     STACK main
 *   total: 1 object, 100 bytes
 * ends with 0 */
#include "misuse.h"

int main(void) {
    (void)told(sy_malloc(100));
    return 0;
}
