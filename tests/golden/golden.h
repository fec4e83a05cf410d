/*
 * golden.h: a path of code. paths.c lists the paths, count.c counts their instructions.
 */
#ifndef SLABYARD_TESTS_GOLDEN_H
#define SLABYARD_TESTS_GOLDEN_H

#include <stddef.h>

/*
 * One row of the table in paths.c. Set `prepare` and one of alloc, release and loop, which is then
 * called with what prepare() returned.
 *
 *   alloc, release   counted from their first instruction to their return, included. They are
 *                    called through a pointer, so that nothing of the caller is in the figure. What
 *                    is released was made by `object` before.
 *   loop             does `count` iterations; the figure is of one iteration.
 *
 * prepare() leaves the path warm: the counted call takes the hit path.
 */
typedef struct golden_path {
    const char *name;
    void *(*prepare)(void);
    void *(*alloc)(void *where);
    void (*release)(void *where, void *object);
    void *(*object)(void *where); /* with release only */
    void (*loop)(void *where, size_t count);
} golden_path;

extern const golden_path golden_paths[];
extern const size_t golden_path_count;

/* In floor.c: without the check for a double free. */
void golden_pool_release(void *where, void *object);
void golden_cache_release(void *where, void *object);

/* What a path by hand calls when it misses, which none does. */
void *golden_miss(void *where);

#endif
