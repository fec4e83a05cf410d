/*
 * The table of userland_slab's document: what 1,000,000 objects of 8 to 256 bytes take, with the
 * array of their addresses. Seven sizes that are no multiple of 16 are added to the document's.
 * Each object is written whole, so that it counts whichever allocator gives it. See seeds.h.
 */
#include "seeds.h"

#include <slab.h>

enum { OBJECTS = 1000000 };

static void *objects[OBJECTS];

static void measure_memory(const struct seeds_task *task) {
    struct Objs_cache cache = {0};
    size_t bytes = task->number;
    if (task->who == SEEDS_SYSTEM &&
        (!slab_allocator_init() || !objs_cache_init(&cache, bytes, NULL)))
        seeds_fail("no cache");
    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] =
            seeds_got(task->who == SEEDS_SYSTEM ? objs_cache_alloc(&cache) : malloc(bytes));
        memset(objects[i], 1, bytes);
    }
    (void)seeds_hide(objects);
    seeds_print(task, "MiB", seeds_resident_mib());
}

static const struct seeds_row rows[] = {
    {"memory-8", measure_memory, 8},     {"memory-12", measure_memory, 12},
    {"memory-16", measure_memory, 16},   {"memory-20", measure_memory, 20},
    {"memory-24", measure_memory, 24},   {"memory-32", measure_memory, 32},
    {"memory-40", measure_memory, 40},   {"memory-48", measure_memory, 48},
    {"memory-56", measure_memory, 56},   {"memory-64", measure_memory, 64},
    {"memory-72", measure_memory, 72},   {"memory-104", measure_memory, 104},
    {"memory-128", measure_memory, 128}, {"memory-256", measure_memory, 256},
};

SEEDS_MAIN(rows)
