/*
 * process.c: how the drop-in malloc behaves in the process that it has come into: its defaults, and
 * where the library's pass-through mode (SLABYARD=tools=malloc) gets blocks from. The library
 * itself takes them from malloc, which is this one; here it is the malloc of the next library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/cpu.h"
#include "os/os.h"
#include "shim/shim.h"

/* Not there in a program that is linked statically. */
extern void *dlsym(void *library, const char *name) __attribute__((weak));

/* Thread-local: dlsym may allocate, and the thread comes by here again then. */
void *sy_shim_next(const char *name) {
    static SY_TLS bool looking;
    if (looking || !dlsym) return NULL;
    looking = true;
    void *found = dlsym(RTLD_NEXT, name);
    looking = false;
    return found;
}

/* ---- options ---- */

/* There with AddressSanitizer, ThreadSanitizer and MemorySanitizer, whose malloc has to see all. */
extern void __asan_init(void) __attribute__((weak, visibility("default")));
extern void __tsan_init(void) __attribute__((weak, visibility("default")));
extern void __msan_init(void) __attribute__((weak, visibility("default")));

/* Called once, by the first that reads an option. */
const char *sy_os_default_options(void) {
    static const char line[] = "slabyard: a sanitizer is here: allocations go to its malloc\n";
    if (!__asan_init && !__tsan_init && !__msan_init) return "maintenance=auto";
    sy_os_write(2, line, sizeof line - 1);
    return "tools=malloc";
}

/* ---- blocks of the next library ---- */

static void *next_function(_Atomic(void *) *known, const char *name) {
    void *function = atomic_load_explicit(known, memory_order_acquire);
    if (function) return function;
    function = sy_shim_next(name);
    if (function) atomic_store_explicit(known, function, memory_order_release);
    return function;
}

typedef void *memalign_function(size_t align, size_t bytes);
typedef void free_function(void *block);

/* Where there is no next library: a mapping for each block, with its bounds before the block. */
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

/* Tools take stacks here. */
void *sy_os_block(size_t bytes, size_t align) {
    static _Atomic(void *) known;
    sy_cpu_keep_frame();
    int saved = errno;
    uintptr_t next = (uintptr_t)next_function(&known, "memalign");
    void *block = next ? ((memalign_function *)next)(align, bytes) : map_block(bytes, align);
    errno = block == NULL ? ENOMEM : saved;
    return block;
}

void sy_os_block_free(void *block) {
    static _Atomic(void *) known;
    sy_cpu_keep_frame();
    int saved = errno;
    uintptr_t next = (uintptr_t)next_function(&known, "free");
    if (next)
        ((free_function *)next)(block);
    else
        unmap_block(block);
    errno = saved;
}
