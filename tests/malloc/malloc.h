/*
 * malloc.h: what the programs share that run under the drop-in malloc. They are ordinary programs:
 * nothing of Slabyard's is included, and one starts by making sure that it is there.
 */
#ifndef SLABYARD_TESTS_MALLOC_H
#define SLABYARD_TESTS_MALLOC_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define must(condition) \
    ((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__, __func__))

static inline void must_failed(const char *condition, const char *file, int line,
                               const char *function) {
    fprintf(stderr, "%s:%d: %s: not so: %s\n", file, line, function, condition);
    abort();
}

/* An address that the compiler knows nothing about: it may not leave out an allocation. */
static inline void *opaque(void *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

/* Whether blocks are Slabyard's: of one of 100 bytes 112 may be used, or, with checks, 100; in
 * glibc's malloc 104. */
#ifdef __cplusplus
extern "C"
#endif
    size_t
    malloc_usable_size(void *block);

static inline void must_be_slabyard(void) {
    void *block = opaque(malloc(100));
    must(malloc_usable_size(block) == 112 || malloc_usable_size(block) == 100);
    free(block);
}

/* Fills a block, and looks whether it still is what was written: all of its first 128 KiB, and of
 * what follows some bytes in each line. */
static inline size_t byte_after(size_t i) { return i + (i < 1 << 17 ? 1 : 37); }

static inline unsigned char pattern(unsigned seed, size_t i) {
    return (unsigned char)(seed + i * 7);
}

static inline void fill(void *block, size_t bytes, unsigned seed) {
    unsigned char *at = (unsigned char *)block;
    for (size_t i = 0; i < bytes; i = byte_after(i)) at[i] = pattern(seed, i);
}

static inline void must_be_whole(const void *block, size_t bytes, unsigned seed) {
    const unsigned char *at = (const unsigned char *)block;
    unsigned char wrong = 0;
    for (size_t i = 0; i < bytes; i = byte_after(i))
        wrong = (unsigned char)(wrong | (at[i] ^ pattern(seed, i)));
    must(wrong == 0);
}

#endif
