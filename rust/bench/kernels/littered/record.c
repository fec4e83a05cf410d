/*
 * record: a library to be preloaded that notes which sizes a program asks for, and how many blocks
 * are live at most. LITTER_RECORD names the file that it writes when the program ends. See
 * litter.h.
 *
 * The program gets its blocks from glibc's malloc, by the names that glibc exports for this
 * purpose.
 */
#include "litter.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

static atomic_ullong counts[BINS], bytes[BINS];
static atomic_llong live, most_live;

static void *born(void *block, size_t size) {
    if (!block || size > SIZE_MAX_LITTER) return block;
    size_t bin = size == 0 ? 0 : (size - 1) / BIN_BYTES;
    atomic_fetch_add_explicit(&counts[bin], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes[bin], size, memory_order_relaxed);
    long long now = atomic_fetch_add_explicit(&live, 1, memory_order_relaxed) + 1;
    long long most = atomic_load_explicit(&most_live, memory_order_relaxed);
    while (now > most && !atomic_compare_exchange_weak(&most_live, &most, now)) continue;
    return block;
}

/* Whether a block that glibc gave is one that was counted, but for a few bytes. */
static bool is_counted(void *block) {
    return block && malloc_usable_size(block) < SIZE_MAX_LITTER + BIN_BYTES;
}

static void died(bool was_counted) {
    if (was_counted) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

void *malloc(size_t size) { return born(__libc_malloc(size), size); }

void *calloc(size_t count, size_t size) { return born(__libc_calloc(count, size), count * size); }

void *realloc(void *block, size_t size) {
    bool was_counted = is_counted(block);
    void *moved = __libc_realloc(block, size);
    if (moved) died(was_counted);
    return born(moved, size);
}

void *memalign(size_t align, size_t size) { return born(__libc_memalign(align, size), size); }

void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

int posix_memalign(void **place, size_t align, size_t size) {
    void *block = memalign(align, size);
    if (!block) return ENOMEM;
    *place = block;
    return 0;
}

void free(void *block) {
    died(is_counted(block));
    __libc_free(block);
}

__attribute__((destructor)) static void write_sizes(void) {
    const char *path = getenv("LITTER_RECORD");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%lld\n", atomic_load(&most_live));
    for (size_t i = 0; i < BINS; i++) {
        unsigned long long count = atomic_load(&counts[i]);
        if (count) fprintf(file, "%llu %llu\n", atomic_load(&bytes[i]) / count, count);
    }
    fclose(file);
}
