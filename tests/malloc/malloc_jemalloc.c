/*
 * malloc_jemalloc.c: the interface of jemalloc, as a program that is linked with jemalloc uses it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "malloc/malloc.h"

int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t length, void *old, size_t *old_bytes, void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*write)(void *, const char *), void *arg, const char *options);
void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
size_t sallocx(const void *block, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);
size_t nallocx(size_t size, int flags);

/* The program is linked with this library only if it is not preloaded. */
#pragma weak mallctl
#pragma weak mallctlnametomib
#pragma weak mallctlbymib
#pragma weak malloc_stats_print
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak sallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx

#define MALLOCX_LG_ALIGN(lg) (lg)
#define MALLOCX_ZERO         0x40
#define MALLOCX_TCACHE(tc)   (((tc) + 2) << 8)
#define MALLOCX_ARENA(arena) (((arena) + 1) << 20)

/* Blocks that are checked or guarded are in other places than others. */
static bool is_plain(void) {
    void *block = opaque(malloc(100));
    bool is = malloc_usable_size(block) == 112;
    free(block);
    return is;
}

static size_t read_size(const char *name) {
    size_t value = 0, bytes = sizeof value;
    must(mallctl(name, &value, &bytes, NULL, 0) == 0 && bytes == sizeof value);
    return value;
}

static unsigned read_unsigned(const char *name) {
    unsigned value = 0;
    size_t bytes = sizeof value;
    must(mallctl(name, &value, &bytes, NULL, 0) == 0 && bytes == sizeof value);
    return value;
}

static bool read_bool(const char *name) {
    bool value = false;
    size_t bytes = sizeof value;
    must(mallctl(name, &value, &bytes, NULL, 0) == 0 && bytes == sizeof value);
    return value;
}

static uint64_t read_epoch(void) {
    uint64_t value = 0;
    size_t bytes = sizeof value;
    must(mallctl("epoch", &value, &bytes, NULL, 0) == 0 && bytes == sizeof value);
    return value;
}

static uint64_t next_epoch(void) {
    uint64_t value = 1;
    size_t bytes = sizeof value;
    must(mallctl("epoch", &value, &bytes, &value, sizeof value) == 0);
    return value;
}

/* ---- mallocx ---- */

static void must_be_zero(const char *block, size_t from, size_t to) {
    for (; from < to; from++) must(block[from] == 0);
}

static void test_sizes(void) {
    static const size_t sizes[] = {1, 8, 16, 100, 4096, 5000, 131072, 131073, 1000000, 9000000};
    static const int flags[] = {0,
                                MALLOCX_LG_ALIGN(3),
                                MALLOCX_LG_ALIGN(6),
                                MALLOCX_LG_ALIGN(12),
                                MALLOCX_LG_ALIGN(21),
                                MALLOCX_ZERO,
                                MALLOCX_ZERO | MALLOCX_LG_ALIGN(8),
                                MALLOCX_ARENA(0),
                                MALLOCX_TCACHE(-1),
                                MALLOCX_TCACHE(0) | MALLOCX_ARENA(0)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof flags / sizeof *flags; j++) {
            char *block = opaque(mallocx(sizes[i], flags[j]));
            size_t usable = sallocx(block, flags[j]);
            must(block && (uintptr_t)block % ((size_t)1 << (flags[j] & 63)) == 0);
            must(usable >= sizes[i] && usable == malloc_usable_size(block));
            must(nallocx(sizes[i], flags[j]) >= usable);
            must(xallocx(block, sizes[i], 0, flags[j]) == usable);
            if (flags[j] & MALLOCX_ZERO) must_be_zero(block, 0, usable);
            memset(block, 0xff, usable);
            if (j % 3 == 0)
                sdallocx(block, j % 2 ? usable : sizes[i], flags[j]);
            else if (j % 3 == 1)
                dallocx(block, flags[j]);
            else
                free(block);
        }
    must(nallocx(SIZE_MAX, 0) == 0 && mallocx(PTRDIFF_MAX, 0) == NULL);
    must(mallocx(PTRDIFF_MAX, MALLOCX_LG_ALIGN(10) | MALLOCX_ZERO) == NULL);
}

static void test_resizing(void) {
    static const size_t sizes[] = {10, 60, 500, 100, 200000, 6000000, 200000, 3};
    static const int flags[] = {0, MALLOCX_ZERO, MALLOCX_LG_ALIGN(9),
                                MALLOCX_LG_ALIGN(9) | MALLOCX_ZERO};
    for (size_t j = 0; j < sizeof flags / sizeof *flags; j++) {
        size_t size = 50;
        char *block = mallocx(size, flags[j]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t before = sallocx(block, 0);
            fill(block, before, (unsigned)i);
            block = rallocx(block, sizes[i], flags[j]);
            must(block && (uintptr_t)block % ((size_t)1 << (flags[j] & 63)) == 0);
            must_be_whole(block, size < sizes[i] ? size : sizes[i], (unsigned)i);
            if (flags[j] & MALLOCX_ZERO) must_be_zero(block, before, sallocx(block, 0));
            size = sizes[i];
        }
        must(rallocx(block, PTRDIFF_MAX, flags[j]) == NULL);
        dallocx(block, flags[j]);
    }
}

/* ---- mallctl ---- */

static void test_figures(void) {
    enum { BYTES = 8 << 20, BLOCKS = 1000, BLOCK = 4000 };
    uint64_t epoch = next_epoch();
    size_t before = read_size("stats.allocated");
    char *large = malloc(BYTES), *blocks[BLOCKS];
    memset(large, 1, BYTES);
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BLOCK), 1, BLOCK);
    must(read_size("stats.allocated") == before); /* until the next epoch */
    must(next_epoch() == epoch + 1 && read_epoch() == epoch + 1);
    epoch = next_epoch();
    must(epoch == read_epoch());
    size_t allocated = read_size("stats.allocated");
    must(allocated >= before + BYTES + BLOCKS * BLOCK && allocated < before + 2 * BYTES);
    must(allocated <= read_size("stats.active"));
    must(read_size("stats.active") <= read_size("stats.resident"));
    must(read_size("stats.mapped") >= read_size("stats.active"));
    must(read_size("stats.metadata") > 0 && read_size("stats.metadata") < BYTES);
    must(read_size("stats.arenas.0.small.allocated") +
             read_size("stats.arenas.4096.large.allocated") ==
         allocated);
    must(read_size("stats.arenas.0.pactive") ==
         read_size("stats.active") / read_size("arenas.page"));
    free(large);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    must(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
    next_epoch();
    must(read_size("stats.allocated") + BYTES < allocated);
    must(read_size("stats.resident") < allocated || !is_plain());
    must(read_size("stats.arenas.0.pdirty") == 0);
}

static void test_bins(void) {
    unsigned bins = read_unsigned("arenas.nbins");
    size_t mib[3], length = 3, size, bytes = sizeof size;
    must(mallctlnametomib("arenas.bin.0.size", mib, &(size_t){2}) == 0);
    length = 4;
    size_t whole[7];
    must(mallctlnametomib("arenas.bin.0.size", whole, &length) == 0 && length == 4);
    must(whole[0] == mib[0] && whole[2] == 0);
    size_t last = 0;
    for (whole[2] = 0; whole[2] < bins; whole[2]++, last = size) {
        must(mallctlbymib(whole, length, &size, &bytes, NULL, 0) == 0);
        must(size > last && nallocx(size, 0) == size && size % 16 == 0);
    }
    must(mallctlbymib(whole, length, &size, &bytes, NULL, 0) == ENOENT);
    must(mallctlbymib(whole, length - 1, &size, &bytes, NULL, 0) == ENOENT);
    whole[0] = SIZE_MAX;
    must(mallctlbymib(whole, length, &size, &bytes, NULL, 0) == ENOENT);

    /* Objects of 48 bytes: bin 2. */
    void *blocks[100];
    next_epoch();
    size_t live = read_size("stats.arenas.0.bins.2.curregs");
    for (int i = 0; i < 100; i++) blocks[i] = opaque(malloc(48));
    next_epoch();
    must(read_size("stats.arenas.0.bins.2.curregs") >= live + 100 || !is_plain());
    must(read_size("stats.arenas.0.bins.2.curslabs") > 0 || !is_plain());
    must(read_size("arenas.bin.2.size") == 48);
    must(read_unsigned("arenas.bin.2.nregs") * 48 <= read_size("arenas.bin.2.slab_size"));
    for (int i = 0; i < 100; i++) free(blocks[i]);

    length = sizeof whole / sizeof *whole;
    must(mallctlnametomib("stats.arenas.0.bins.0.curregs", whole, &length) == 0 && length == 6);
    whole[2] = 4096;
    whole[4] = 2;
    must(mallctlbymib(whole, length, &size, &bytes, NULL, 0) == 0);
    must(size == read_size("stats.arenas.0.bins.2.curregs"));
}

static void test_errors(void) {
    static const char *const unknown[] = {"",
                                          "stats",
                                          "stats.",
                                          "stats.allocated.more",
                                          "stats.no",
                                          "thread.allocatedp",
                                          "thread.allocated",
                                          "prof.active",
                                          "arena.7.purge",
                                          "arena.x.purge",
                                          "arena..purge",
                                          "arena.99999999999999999999.purge",
                                          "arenas.bin.89.size",
                                          "arena.0",
                                          "allocated",
                                          "epoch.",
                                          "arena.0.extent_hooks"};
    size_t value = 7, bytes = sizeof value;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        must(mallctl(unknown[i], &value, &bytes, NULL, 0) == ENOENT);
    must(value == 7 && bytes == sizeof value);

    must(mallctl("stats.allocated", NULL, NULL, &value, sizeof value) == EPERM);
    must(mallctl("arena.0.purge", &value, &bytes, NULL, 0) == EPERM);
    must(mallctl("arena.0.purge", NULL, NULL, &value, sizeof value) == EPERM);
    must(mallctl("epoch", NULL, NULL, &(unsigned){1}, sizeof(unsigned)) == EINVAL);
    must(mallctl("thread.arena", NULL, NULL, &(unsigned){1}, sizeof(unsigned)) == EFAULT);
    must(mallctl("thread.arena", NULL, NULL, &(unsigned){0}, sizeof(unsigned)) == 0);

    /* A wrong size gets as many bytes as there are, and the error. */
    enum { HALF = sizeof(size_t) / 2 };
    const size_t whole = read_size("stats.allocated");
    unsigned char part[sizeof(size_t)];
    memset(part, 9, sizeof part);
    bytes = HALF;
    must(mallctl("stats.allocated", part, &bytes, NULL, 0) == EINVAL && bytes == HALF);
    must(memcmp(part, &whole, HALF) == 0 && part[HALF] == 9);
    struct {
        unsigned char value[16];
    } room;
    memset(&room, 9, sizeof room);
    bytes = sizeof room;
    must(mallctl("arenas.narenas", &room, &bytes, NULL, 0) == EINVAL && bytes == 4);
    must(memcmp(&room, &(unsigned){1}, sizeof(unsigned)) == 0 && room.value[4] == 9);

    size_t mib[2], length = 2;
    must(mallctlnametomib("no.such", mib, &length) == ENOENT && length == 2);
    must(mallctlnametomib("stats", mib, &length) == 0 && length == 1);
    must(mallctlbymib(mib, 1, &value, &(size_t){sizeof value}, NULL, 0) == ENOENT);
    must(mallctlbymib(mib, 0, &value, &(size_t){sizeof value}, NULL, 0) == ENOENT);
}

static void test_other_names(void) {
    const char *version = NULL;
    size_t bytes = sizeof version;
    must(mallctl("version", &version, &bytes, NULL, 0) == 0 && strstr(version, "slabyard"));
    must(read_unsigned("arenas.narenas") == 1 && read_unsigned("arenas.create") == 0);
    must(read_size("arenas.page") == (size_t)sysconf(_SC_PAGESIZE));
    must(read_bool("config.stats") && !read_bool("config.prof"));
    must(mallctl("arena.1.purge", NULL, NULL, NULL, 0) == 0); /* as many as there are: all */
    must(mallctl("arena.0.decay", NULL, NULL, NULL, 0) == 0);
    must(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    must(mallctl("thread.idle", NULL, NULL, NULL, 0) == 0);
    ptrdiff_t decay = -1;
    bytes = sizeof decay;
    must(mallctl("arenas.dirty_decay_ms", &decay, &bytes, &(ptrdiff_t){0}, sizeof decay) == 0);
    must(decay > 0);
}

static void test_background_thread(void) {
    bool was = !read_bool("background_thread"), off = false, on = true;
    size_t bytes = sizeof was;
    must(mallctl("background_thread", &was, &bytes, &off, sizeof off) == 0 && was);
    must(!read_bool("background_thread") && !read_bool("opt.background_thread"));
    must(mallctl("background_thread", &was, &bytes, &on, sizeof on) == 0 && !was);
    must(read_bool("background_thread"));
}

/* ---- the report ---- */

static void append(void *to, const char *text) { strncat(to, text, 8000 - strlen(to)); }

static void test_report(void) {
    static char text[8192];
    void *block = opaque(malloc(48));
    malloc_stats_print(append, text, NULL);
    must(strncmp(text, "___ Begin jemalloc statistics ___\n", 34) == 0);
    must(strstr(text, "\nAllocated: ") && strstr(text, ", resident: "));
    must(strstr(text, "\n                48 ") || !is_plain());
    must(strstr(text, "--- End jemalloc statistics ---\n"));
    free(block);
}

int main(void) {
    must_be_slabyard();
    test_sizes();
    test_resizing();
    test_figures();
    test_bins();
    test_errors();
    test_other_names();
    test_background_thread();
    test_report();
    return 0;
}
