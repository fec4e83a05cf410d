/* slabyard: free with the wrong size: ADDRESS in cache "heap-128" (128 bytes), belongs to "heap-64"
 */
#include "misuse.h"

int main(void) {
    sy_free(sy_malloc(128)); /* the class is known */
    sy_free_sized(told(sy_malloc(60)), 128);
    sy_thread_flush();
}
