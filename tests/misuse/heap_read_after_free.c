/* ends with SIGSEGV */
#include "misuse.h"

int main(void) {
    sy_set_options("poison");
    void **object = told(sy_malloc(100));
    *object = object;
    sy_free(object);
    follow(object);
}
