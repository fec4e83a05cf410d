/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "heap" */
#include "misuse.h"

int main(void) {
    void *object = told(sy_malloc(1 << 20));
    sy_free(object);
    sy_free(object);
}
