/*
 * malloc.h: functions for the programs that run under the drop-in malloc. These are ordinary
 * programs, which include no header of Slabyard. Each first checks that Slabyard's malloc is in
 * use.
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

/* Hides a pointer from the compiler, so that it cannot remove the allocation. */
static inline void *opaque(void *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

/* Recognizes Slabyard by the usable size of a block of 100 bytes: 112 in Slabyard, 100 in Slabyard
 * with checks, 104 in glibc. */
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

/* Fill a block, and check that its bytes are unchanged: all bytes of the first 128 KiB, then every
 * 37th byte. */
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
