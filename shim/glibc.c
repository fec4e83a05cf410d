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

typedef struct sy_shim_sums {
    size_t used, free; /* bytes */
} sy_shim_sums;

static int add_cache(void *sums_, const sy_cache_account *account) {
    sy_shim_sums *sums = sums_;
    sums->used += account->stats.in_use * account->stats.slot_size;
    return 0;
}

static sy_stats sum_up(sy_shim_sums *sums) {
    sy_stats stats;
    *sums = (sy_shim_sums){0};
    sy_get_stats(&stats);
    sy_each_cache(add_cache, sums);
    size_t slabs = stats.slabs > sums->used ? stats.slabs - sums->used : 0;
    sums->free = slabs + stats.units_free;
    sums->used += stats.spans;
    return stats;
}

NAME struct mallinfo2 mallinfo2(void) {
    sy_shim_sums sums;
    sy_stats stats = sum_up(&sums);
    return (struct mallinfo2){
        .arena = stats.mapped - stats.spans,
        .hblkhd = stats.spans,
        .uordblks = sums.used,
        .fordblks = sums.free,
        .keepcost = stats.units_free - stats.units_clean,
    };
}

static int bounded(size_t bytes) { return bytes > INT32_MAX ? INT32_MAX : (int)bytes; }

NAME struct mallinfo mallinfo(void) {
    struct mallinfo2 info = mallinfo2();
    return (struct mallinfo){
        .arena = bounded(info.arena),
        .hblkhd = bounded(info.hblkhd),
        .uordblks = bounded(info.uordblks),
        .fordblks = bounded(info.fordblks),
        .keepcost = bounded(info.keepcost),
    };
}

NAME void malloc_stats(void) { sy_print_stats(STDERR_FILENO); }

NAME int malloc_info(int options, FILE *file) {
    if (options != 0) return EINVAL;
    struct mallinfo2 info = mallinfo2();
    fprintf(file,
            "<malloc version=\"slabyard-" SLABYARD_VERSION "\">\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<total type=\"used\" size=\"%zu\"/>\n"
            "<total type=\"rest\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" size=\"%zu\"/>\n"
            "</malloc>\n",
            info.arena + info.hblkhd, info.uordblks, info.fordblks, info.hblkhd);
    return 0;
}

#endif
