/* Makes unusual calls: an alignment that is not a power of two, a size that is rounded up to
 * pages, products that overflow, and a size that no machine has. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

int main(void) {
    void *volatile object = memalign(48, 1001);
    object = pvalloc(100001);
    object = reallocarray(NULL, SIZE_MAX / 2, 3);
    object = calloc(SIZE_MAX / 2, 3);
    object = calloc(2, SIZE_MAX / 8);
    (void)object;
    return 0;
}
