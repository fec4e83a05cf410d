/*
 * system_calls.c: no lock is held during a system call for memory, as xslab's spinlock was. The
 * test stops a thread in its first system call for memory, then in its second, and so on.
 * Meanwhile another thread has to be able to allocate.
 */
#include "compat/compat.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <xbase/slab.h>

#include "support/sanitized.h"

static int stands[2], goes_on[2];       /* pipes */
static _Thread_local unsigned stops_in; /* number of this call; 0: none */

static void tell(char what) { EXPECT(write(stands[1], &what, 1) == 1); }

enum { MAPS, PROTECTS, ADVISES, KINDS };
static unsigned stopped_in[KINDS];

/* ---- replace the C library's functions, unless a sanitizer does ---- */

#if !defined(SANITIZED_HERE)
static void come_by(unsigned kind) {
    char byte;
    if (stops_in == 0 || --stops_in > 0) return;
    stopped_in[kind]++;
    tell(1);
    EXPECT(read(goes_on[0], &byte, 1) == 1);
}

void *mmap(void *start, size_t bytes, int protection, int flags, int file, off_t offset) {
    come_by(MAPS);
    return (void *)syscall(SYS_mmap, start, bytes, protection, flags, file, offset);
}

int munmap(void *start, size_t bytes) {
    come_by(MAPS);
    return (int)syscall(SYS_munmap, start, bytes);
}

int mprotect(void *start, size_t bytes, int protection) {
    come_by(PROTECTS);
    return (int)syscall(SYS_mprotect, start, bytes, protection);
}

int madvise(void *start, size_t bytes, int advice) {
    come_by(ADVISES);
    return (int)syscall(SYS_madvise, start, bytes, advice);
}
#endif

/* ---- threads that stop and continue ---- */

enum { SLOT = 64 << 10, SLOTS = 1000 }; /* 64 MB in each turn, never written */
static xSlabMt *pool;

/* Allocates slots and keeps them, so that each turn needs new memory. */
static void take(void) {
    for (unsigned i = 0; i < SLOTS; i++) EXPECT(xSlabMtAlloc(pool) != NULL);
}

static void *live(void *stop) {
    stops_in = *(unsigned *)stop;
    take();
    xSlabMt *own_pool = xSlabMtCreate(100, 0, 0);
    EXPECT(xSlabMtAlloc(own_pool) != NULL);
    xSlabMtDestroy(own_pool); /* returns its memory to the system */
    stops_in = 0;
    tell(0);
    return NULL;
}

int main(void) {
    char stopped = 1;
    if (SANITIZED) return 0;
    EXPECT(pipe(stands) == 0 && pipe(goes_on) == 0);
    pool = xSlabMtCreate(SLOT, 0, 0);
    for (unsigned stop = 1; stopped; stop++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, live, &stop) == 0);
        EXPECT(read(stands[0], &stopped, 1) == 1);
        if (stopped) {
            char byte = 0;
            take();
            EXPECT(write(goes_on[1], &byte, 1) == 1);
            EXPECT(read(stands[0], &byte, 1) == 1 && byte == 0);
        }
        EXPECT(pthread_join(thread, NULL) == 0);
    }
    for (unsigned kind = 0; kind < KINDS; kind++) EXPECT(stopped_in[kind] > 0);
    xSlabMtDestroy(pool);
    return 0;
}
