/* slabyard: free of a pointer that is not an object of Slabyard's: ADDRESS in cache "heap" */
#include "misuse.h"

int main(void) {
    static char local[64];
    sy_free(told(local));
}
