/* SLABYARD=exit-check=no
 * ends with 0 */
#define SY_NO_INLINE
#include "misuse.h"

int main(void) {
    sy_pool *pool = pool_of("node", 64, SY_POISON);
    char *object = told(sy_pool_alloc(pool));
    sy_pool_free(pool, object);
    scribble(object + 8, 8);
    return 0;
}
