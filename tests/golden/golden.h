/*
 * golden.h: describes a fast path. paths.c lists the paths, count.c counts their instructions.
 */
#ifndef SLABYARD_TESTS_GOLDEN_H
#define SLABYARD_TESTS_GOLDEN_H

#include <stddef.h>

/*
 * A row of the table in paths.c. Set `prepare`, and one of `alloc`, `release` and `loop`. This
 * function is called with the value that prepare() returned, as `where`.
 *
 *   alloc, release   All instructions are counted, the return included. The function is called
 *                    through a pointer, so that no instruction of the caller is counted. `release`
 *                    gets an object that `object` returned before.
 *   loop             Does `count` iterations. The figure is that of one iteration.
 *
 * prepare() fills the magazines, so that the counted call does not need the slow path.
 */
typedef struct golden_path {
    const char *name;
    void *(*prepare)(void);
    void *(*alloc)(void *where);
    void (*release)(void *where, void *object);
    void *(*object)(void *where); /* only with release */
    void (*loop)(void *where, size_t count);
} golden_path;

extern const golden_path golden_paths[];
extern const size_t golden_path_count;

/* From floor.c: frees without the check for a double free. */
void golden_pool_release(void *where, void *object);
void golden_cache_release(void *where, void *object);

/* The slow path of the free list by hand. It is never called. */
void *golden_miss(void *where);

#endif
