/*
 * pages.c: the page size, and reservations that are cut out of larger mappings.
 */
#define _GNU_SOURCE

#include "os/posix/pages.h"
#include "os/os.h"

#if SY_PLATFORM_POSIX

#    include <sys/mman.h>
#    include <unistd.h>

/* getpagesize reads a variable of the C library. sysconf would also read a table of constants, and
 * so bring 64 KiB of the C library into a small program's memory. */
size_t sy_os_page_size(void) {
    static _Atomic size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = (size_t)getpagesize();
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

void *sy_posix_cut(void *whole, size_t length, size_t bytes, size_t align) {
    unsigned char *base = whole;
    size_t front = (size_t)(-(uintptr_t)base & (align - 1));
    size_t back = length - front - bytes;
    unsigned char *start = base + front;
    bool cut = front == 0 || munmap(base, front) == 0;
    if (cut && (back == 0 || munmap(start + bytes, back) == 0)) return start;
    if (cut)
        munmap(start, bytes + back);
    else
        munmap(base, length);
    return NULL;
}

#endif
