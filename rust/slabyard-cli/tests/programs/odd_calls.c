/* Calls that do not give what they name: an alignment that is no power of two, a size that is
 * rounded to pages, products that no size can hold, and a size that nobody has. */
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
