/* slabyard: free of a pointer that is not the start of an object: ADDRESS in cache "heap" */
#include "misuse.h"

int main(void) {
    char *object = sy_malloc(1 << 20);
    sy_free(told(object + 65536));
}
