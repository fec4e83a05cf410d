/*
 * sized.c: fills structs whose size the caller tells (sized.h).
 */
#include "base/sized.h"

#include <errno.h>
#include <string.h>

/* For a caller with an older, smaller struct: it gets the beginning of a copy. A function of its
 * own, so that other callers do not need the room for the copy. */
static __attribute__((noinline)) void fill_beginning(const sy_sized *sized, const void *about,
                                                     void *to, size_t size) {
    _Alignas(max_align_t) unsigned char whole[SY_SIZED_MAX];
    sized->fill(about, whole);
    memcpy(to, whole, size);
}

int sy_sized_fill(const sy_sized *sized, const void *about, void *to, size_t size) {
    if (!about || !to || size < sized->first) {
        errno = EINVAL;
        return -1;
    }
    if (size < sized->bytes) {
        fill_beginning(sized, about, to, size);
        return 0;
    }
    sized->fill(about, to);
    memset((unsigned char *)to + sized->bytes, 0, size - sized->bytes);
    return 0;
}
