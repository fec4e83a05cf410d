/*
 * block.c: blocks of the C library on Windows.
 *
 * free of the C library does not take blocks of its _aligned_malloc. So an aligned block lies in a
 * longer one, and these words before it lead there:
 *
 *     | whole block ...   | check | whole | block at a multiple of align
 */
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    include <errno.h>
#    include <stddef.h>
#    include <stdint.h>
#    include <stdlib.h>

typedef struct before_block {
    uintptr_t check; /* ~ of the block's address */
    void *whole;
} before_block;

enum { USUAL_ALIGN = _Alignof(max_align_t) };

SY_REPLACEABLE void *sy_os_block(size_t bytes, size_t align) {
    int saved = errno;
    size_t more = align > USUAL_ALIGN ? align + sizeof(before_block) : 0;
    char *whole = bytes <= SIZE_MAX - more ? malloc(bytes + more) : NULL;
    errno = whole ? saved : ENOMEM;
    if (!whole || !more) return whole;
    char *block = (char *)(((uintptr_t)whole + more - 1) & -align);
    ((before_block *)(void *)block)[-1] = (before_block){~(uintptr_t)block, whole};
    return block;
}

/* Where the words before it cannot be read, the pointer is no block. */
static void *whole_block(void *block) {
    before_block before = {0, NULL};
    if ((uintptr_t)block % (2 * (size_t)USUAL_ALIGN) == 0)
        ReadProcessMemory(GetCurrentProcess(), (before_block *)block - 1, &before, sizeof before,
                          NULL);
    return before.check == ~(uintptr_t)block ? before.whole : block;
}

SY_REPLACEABLE void sy_os_block_free(void *block) {
    int saved = errno;
    DWORD last = GetLastError();
    free(whole_block(block));
    SetLastError(last);
    errno = saved;
}

#endif
