/*
 * glibc.c: glibc's functions for statistics and tuning of malloc, with Slabyard's figures. Other C
 * libraries do not have them.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "chunk/chunk.h"
#include "shim/sums.h"

#ifdef __GLIBC__

#    define NAME __attribute__((visibility("default")))

NAME int malloc_trim(size_t pad) {
    (void)pad;
    return sy_trim() > 0;
}

/* Parameters of glibc's own layout: known ones are accepted and change nothing. */
NAME int mallopt(int parameter, int value) {
    (void)value;
    switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX: return 1;
    default: return 0;
    }
}

/* The figures of glibc that have a meaning here; docs/malloc.md says which. Other threads change
 * them while they are added up. */
NAME struct mallinfo2 mallinfo2(void) {
    sy_shim_sums sums;
    sy_chunk_stats chunks = sy_chunk_count();
    sy_shim_add_up(&sums);
    const sy_stats *stats = &sums.memory;
    return (struct mallinfo2){
        .arena = sy_shim_difference(stats->mapped, chunks.large_bytes),
        .ordblks = sums.free_slots,
        .hblks = chunks.large_count,
        .hblkhd = chunks.large_bytes,
        .uordblks = sums.used + stats->spans,
        .fordblks = sy_shim_difference(stats->slabs, sums.used) + stats->units_free,
        .keepcost = stats->units_free - stats->units_clean,
    };
}

static int bounded(size_t bytes) { return bytes > INT32_MAX ? INT32_MAX : (int)bytes; }

NAME struct mallinfo mallinfo(void) {
    struct mallinfo2 info = mallinfo2();
    return (struct mallinfo){
        .arena = bounded(info.arena),
        .ordblks = bounded(info.ordblks),
        .hblks = bounded(info.hblks),
        .hblkhd = bounded(info.hblkhd),
        .uordblks = bounded(info.uordblks),
        .fordblks = bounded(info.fordblks),
        .keepcost = bounded(info.keepcost),
    };
}

NAME void malloc_stats(void) { sy_print_stats(STDERR_FILENO); }

/* The elements that programs look for in glibc's text, without glibc's element for each arena. */
NAME int malloc_info(int options, FILE *file) {
    if (options != 0) return EINVAL;
    struct mallinfo2 info = mallinfo2();
    fprintf(file,
            "<malloc version=\"1\">\n"
            "<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "</malloc>\n",
            info.ordblks, info.fordblks, info.hblks, info.hblkhd, info.arena, info.arena);
    return 0;
}

#endif
