/*
 * process.c: fits the drop-in malloc into the process: its start, its default options, and the
 * source of blocks for the library's pass-through mode (SLABYARD=tools=malloc). The library itself
 * would take these blocks from malloc, which is this library's. Here they come from the malloc of
 * the next library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/cpu.h"
#include "os/os.h"
#include "os/start.h"
#include "shim/shim.h"

/* Weak: a statically linked program has no dlsym, or one that finds nothing. */
extern void *dlsym(void *library, const char *name) __attribute__((weak));

/* Thread-local: dlsym may allocate, and then this thread calls the function again. Volatile: the C
 * library declares dlsym as a function that does not call back into its caller's file. */
void *sy_shim_next(const char *name) {
    static SY_TLS volatile bool looking;
    if (looking || !dlsym) return NULL;
    looking = true;
    void *found = dlsym(RTLD_NEXT, name);
    looking = false;
    return found;
}

/* 128 live guarded objects, the records and a thousand stacks take less than 1 MiB. */
const char *sy_os_default_options(void) { return "maintenance=auto,sample=1/50000"; }

/* The library starts at the first allocation. But stderr has to be noted before the program opens a
 * file, which gets the number 2 if stderr is closed. If there are options, the library starts here,
 * so that `help` and `stats` write also in a program that never allocates. */
__attribute__((constructor)) static void start_with_process(void) {
    sy_os_note_stderr();
    if (sy_os_option("SLABYARD")) (void)sy_start();
}

/* ---- blocks of the next library ---- */

/* A function of the next library. It is looked up once: if there is none, dlsym allocates a message
 * each time. */
typedef struct sy_next {
    const char *name;
    _Atomic bool known;
    _Atomic uintptr_t function; /* 0: none */
} sy_next;

static uintptr_t next_function(sy_next *next) {
    if (!atomic_load_explicit(&next->known, memory_order_acquire)) {
        void *found = sy_shim_next(next->name);
        if (found) atomic_store(&next->function, (uintptr_t)found);
        atomic_store_explicit(&next->known, true, memory_order_release);
    }
    return atomic_load_explicit(&next->function, memory_order_relaxed);
}

typedef void *aligned_alloc_function(size_t align, size_t bytes);
typedef void free_function(void *block);

/* Without a next library, each block is a mapping, with these bounds before the block. */
typedef struct sy_mapped_block {
    void *start;
    size_t bytes;
} sy_mapped_block;

static void *map_block(size_t bytes, size_t align) {
    size_t page = sy_os_page_size(), lead = sizeof(sy_mapped_block);
    if (align > lead) lead = align;
    if (bytes > SIZE_MAX / 2 || lead > SIZE_MAX / 4) return NULL;
    size_t all = (lead + bytes + page - 1) / page * page;
    char *start = sy_os_reserve(all, align > page ? align : page, "slabyard block");
    if (start && sy_os_commit(start, all) != 0) {
        sy_os_release(start, all);
        start = NULL;
    }
    if (!start) return NULL;
    ((sy_mapped_block *)(start + lead))[-1] = (sy_mapped_block){start, all};
    return start + lead;
}

static void unmap_block(void *block) {
    if (!block) return;
    const sy_mapped_block mapped = ((sy_mapped_block *)block)[-1];
    sy_os_release(mapped.start, mapped.bytes);
}

/* Tools for glibc record memalign. musl's memalign calls the program's aligned_alloc, which is this
 * library's; musl's aligned_alloc calls no function that a program replaces. */
#ifdef __GLIBC__
#    define ALIGNED_ALLOC "memalign"
#else
#    define ALIGNED_ALLOC "aligned_alloc"
#endif

/* Keeps a frame pointer, so that a tool that records the stack here sees the caller. */
void *sy_os_block(size_t bytes, size_t align) {
    static sy_next aligned_alloc_next = {.name = ALIGNED_ALLOC};
    sy_cpu_keep_frame();
    int saved = errno;
    uintptr_t next = next_function(&aligned_alloc_next);
    void *block = next ? ((aligned_alloc_function *)next)(align, bytes) : map_block(bytes, align);
    errno = block == NULL ? ENOMEM : saved;
    return block;
}

void sy_os_block_free(void *block) {
    static sy_next free_next = {.name = "free"};
    sy_cpu_keep_frame();
    int saved = errno;
    uintptr_t next = next_function(&free_next);
    if (next)
        ((free_function *)next)(block);
    else
        unmap_block(block);
    errno = saved;
}
