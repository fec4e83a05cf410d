/*
 * malloc_names.c: checks that each function of malloc's family does what glibc documents and
 * programs rely on: alignment, empty blocks, errno, sizes that are too large.
 */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <unistd.h>

#include "malloc/malloc.h"

enum { KEPT = 77 };

void *pvalloc(size_t size) __attribute__((weak)); /* musl does not have it */
size_t malloc_good_size(size_t size) __attribute__((weak));
int malloc_should_move(const void *object) __attribute__((weak));
void *malloc_try_move(void *object) __attribute__((weak));
void free_sized(void *block, size_t size) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t size) __attribute__((weak));

/* glibc's second names of its functions. Its headers declare none of them. */
#ifdef __GLIBC__
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *block);
#    if defined(LINKED_STATICALLY) || defined(LINKED_WITH_OBJECT)
void cfree(void *block);
#        define old_cfree cfree
#    elif defined(__x86_64__)
/* The name and version that a program linked before glibc 2.26 refers to. */
void old_cfree(void *block);
__asm__(".symver old_cfree, cfree@GLIBC_2.2.5");
#    else
#        define old_cfree __libc_free /* the version of cfree differs, or there is none */
#    endif
#endif

static bool is_aligned(const void *block, size_t align) { return (uintptr_t)block % align == 0; }

static const size_t sizes[] = {0,     1,      7,      8,       9,       15,      16,
                               17,    24,     100,    1000,    1024,    4096,    65535,
                               65536, 131072, 131073, 1 << 20, 5 << 20, 40 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void blocks_are_aligned_to_16(void) {
    for (int i = 0; i < SIZES; i++) {
        void *blocks[8];
        for (unsigned k = 0; k < 8; k++) {
            blocks[k] = opaque(malloc(sizes[i]));
            must(blocks[k] && is_aligned(blocks[k], 16));
            must(malloc_usable_size(blocks[k]) >= sizes[i]);
            fill(blocks[k], sizes[i], k);
        }
        for (unsigned k = 0; k < 8; k++) {
            must_be_whole(blocks[k], sizes[i], k);
            free(blocks[k]);
        }
    }
}

static void empty_blocks_differ(void) {
    void *first = opaque(malloc(0)), *second = opaque(calloc(0, 8)), *third = opaque(calloc(8, 0));
    must(first && second && third && first != second && second != third && first != third);
    free(first);
    free(second);
    free(third);
    free(NULL);
}

static void calloc_clears(void) {
    for (int i = 0; i < SIZES; i++) {
        void *dirty = opaque(malloc(sizes[i]));
        memset(dirty, 255, sizes[i]);
        free(dirty);
        unsigned char *block = opaque(calloc(1, sizes[i]));
        must(block && is_aligned(block, 16));
        must(sizes[i] == 0 || (block[0] == 0 && !memcmp(block, block + 1, sizes[i] - 1)));
        free(block);
    }
}

static void realloc_keeps_what_fits(void) {
    for (int from = 0; from < SIZES; from++)
        for (int to = 0; to < SIZES; to++) {
            void *block = opaque(malloc(sizes[from]));
            fill(block, sizes[from], 5);
            if (!sizes[to]) {
                must(realloc(block, sizes[to]) == NULL);
                continue;
            }
            void *moved = opaque(realloc(block, sizes[to]));
            must(moved && is_aligned(moved, 16));
            must_be_whole(moved, sizes[from] < sizes[to] ? sizes[from] : sizes[to], 5);
            free(moved);
        }
    void *fresh = opaque(realloc(NULL, 100));
    must(fresh && malloc_usable_size(fresh) >= 100);
    free(fresh);
    fresh = opaque(realloc(NULL, 0));
    must(fresh != NULL);
    free(fresh);
}

static void what_cannot_be_had_is_refused(void) {
    const size_t most = PTRDIFF_MAX;
    void *block = opaque(malloc(100));
    fill(block, 100, 9);
    size_t huge[] = {most, most + 1, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX};
    for (int i = 0; i < 5; i++) {
        size_t size = huge[i];
        __asm__ volatile("" : "+r"(size));
        errno = 0;
        must(opaque(malloc(size)) == NULL && errno == ENOMEM);
        errno = 0;
        must(opaque(calloc(1, size)) == NULL && errno == ENOMEM);
        errno = 0;
        must(opaque(calloc(size, 3)) == NULL && errno == ENOMEM);
        errno = 0;
        void *same = opaque(realloc(block, size));
        must(!same && errno == ENOMEM);
        errno = 0;
        same = opaque(reallocarray(block, size, 3));
        must(!same && errno == ENOMEM);
        errno = 0;
        must(opaque(memalign(64, size)) == NULL && errno == ENOMEM);
        errno = 0;
        must(opaque(valloc(size)) == NULL && errno == ENOMEM);
        errno = 0;
        must(opaque(pvalloc(size)) == NULL && errno == ENOMEM);
        errno = KEPT;
        void *untouched = &errno;
        must(posix_memalign(&untouched, 64, size) == ENOMEM && errno == KEPT);
        must(untouched == &errno);
    }
    must_be_whole(block, 100, 9);
    free(block);
}

/* Hides an alignment from the compiler: clang 14 crashes if it is constant and no power of two. */
static size_t unknown(size_t align) {
    __asm__ volatile("" : "+r"(align));
    return align;
}

static void alignment_is_as_asked(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t align = 1; align <= (size_t)1 << 26; align *= 2)
        for (int i = 0; i < SIZES; i++) {
            void *block = NULL, *other = opaque(memalign(align, sizes[i]));
            must(other && is_aligned(other, align) && is_aligned(other, 16));
            fill(other, sizes[i], 3);
            int result = posix_memalign(&block, align, sizes[i]);
            must(align < sizeof(void *) ? result == EINVAL
                                        : result == 0 && is_aligned(block, align));
            free(block);
            block = opaque(aligned_alloc(align, sizes[i]));
            must(block && is_aligned(block, align) && is_aligned(block, 16));
            free(block);
            must_be_whole(other, sizes[i], 3);
            free(other);
        }
    errno = 0;
    must(opaque(aligned_alloc(unknown(48), 96)) == NULL && errno == EINVAL);
    errno = 0;
    must(opaque(aligned_alloc(unknown(0), 96)) == NULL && errno == EINVAL);
    void *block = NULL;
    must(posix_memalign(&block, unknown(24), 100) == EINVAL &&
         posix_memalign(&block, unknown(0), 100) == EINVAL);
    block = opaque(memalign(unknown(48), 100)); /* memalign rounds up to a power of two */
    must(block && is_aligned(block, 64));
    free(block);
    errno = 0;
    must(opaque(memalign(unknown(SIZE_MAX), 100)) == NULL && errno == EINVAL);
    block = opaque(valloc(100));
    must(block && is_aligned(block, page));
    free(block);
    block = opaque(pvalloc(100));
    must(block && is_aligned(block, page) && malloc_usable_size(block) >= page);
    free(block);
    block = opaque(pvalloc(0));
    must(block && malloc_usable_size(block) >= page);
    free(block);
}

static void free_keeps_errno(void) {
    for (int i = 0; i < SIZES; i++) {
        void *block = opaque(malloc(sizes[i]));
        errno = KEPT;
        free(block);
        must(errno == KEPT);
    }
}

/* Objects between holes move, and do not once they are together. */
static void some_objects_should_move(void) {
    enum { COUNT = 20000, SIZE = 112 };
    static void *blocks[COUNT];
    size_t before = 0;
    must(malloc_should_move && !malloc_should_move(NULL) && !malloc_should_move(&before));
    for (size_t i = 0; i < COUNT; i++) must((blocks[i] = opaque(malloc(SIZE))));
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 10 == 0) continue;
        free(blocks[i]);
        blocks[i] = NULL;
    }
    for (size_t i = 0; i < COUNT; i += 10) *(size_t *)blocks[i] = i;
    for (size_t i = 0; i < COUNT; i += 10) before += (size_t)malloc_should_move(blocks[i]);
    /* Guarded blocks lie on pages of their own, and others' in no slab. */
    const char *options = getenv("SLABYARD");
    bool in_slabs = !options || (!strstr(options, "guard") && !strstr(options, "tools=malloc"));
    must(before > 0 || !in_slabs);
    size_t moves = 0;
    for (size_t i = 0; i < COUNT; i += 10) {
        void *moved = malloc_try_move(blocks[i]);
        if (moved) blocks[i] = moved, moves++;
    }
    must(moves > 0 || (options && *options)); /* blocks stay with checks and other options */
    for (size_t i = 0; i < COUNT; i += 10) must(*(size_t *)blocks[i] == i);
    for (size_t i = 0; i < COUNT; i += 10) free(blocks[i]);
}

static void sized_frees_and_good_sizes(void) {
    must(malloc_good_size && free_sized && free_aligned_sized);
    for (int i = 0; i < SIZES; i++) {
        must(malloc_good_size(sizes[i]) >= sizes[i]);
        void *block = opaque(malloc(sizes[i]));
        must(malloc_usable_size(block) <= malloc_good_size(sizes[i]));
        free_sized(block, sizes[i]);
        block = opaque(aligned_alloc(64, sizes[i]));
        free_aligned_sized(block, 64, sizes[i]);
        block = opaque(aligned_alloc(16, sizes[i]));
        free_aligned_sized(block, 16, sizes[i]);
    }
    free_sized(NULL, 100);
    free_aligned_sized(NULL, 64, 100);
}

static bool is_checked(void) {
    const char *options = getenv("SLABYARD");
    return options && strstr(options, "check");
}

/* With checks an object has exactly the size that the program names, from 9 bytes on. */
static void checked_objects_have_their_size(void) {
    for (size_t size = 9; is_checked() && size < 40; size++) {
        void *blocks[3] = {opaque(malloc(size)), opaque(calloc(1, size)), NULL};
        blocks[2] = opaque(realloc(opaque(malloc(1)), size));
        for (int i = 0; i < 3; i++) {
            must(malloc_usable_size(blocks[i]) == size && is_aligned(blocks[i], 16));
            if (free_sized)
                free_sized(blocks[i], size);
            else
                free(blocks[i]);
        }
    }
}

#ifdef __GLIBC__

static void second_names_are_the_same_functions(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *block = opaque(__libc_malloc(100));
    must(malloc_usable_size(block) == malloc_usable_size(opaque(malloc(100))));
    free(block);
    block = opaque(__libc_calloc(10, 10));
    must(block && !memcmp(block, (char[100]){0}, 100));
    block = opaque(realloc(block, 5000));
    fill(block, 5000, 6);
    block = opaque(__libc_realloc(block, 300000));
    must_be_whole(block, 5000, 6);
    free(block);
    block = opaque(__libc_memalign(256, 100));
    must(is_aligned(block, 256));
    free(block);
    block = opaque(__libc_valloc(100));
    must(is_aligned(block, page));
    free(block);
    block = opaque(__libc_pvalloc(100));
    must(is_aligned(block, page) && malloc_usable_size(block) >= page);
    free(block);
    __libc_free(opaque(malloc(100)));
    old_cfree(opaque(malloc(100)));
    __libc_free(NULL);
    old_cfree(NULL);
}

/* mallinfo is deprecated, but programs call it. */
#    pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* A pass in the background may release a slab while the figures are added up. */
static struct mallinfo2 settled_info(void) {
    struct mallinfo2 info = mallinfo2(), next;
    while ((next = mallinfo2()).uordblks != info.uordblks) info = next;
    return info;
}

static void reports_know_what_is_live(void) {
    enum { COUNT = 1000, BYTES = 10000, LARGE = 30 << 20 };
    static void *blocks[COUNT];
    malloc_trim(0); /* so that passes in the background have little to release */
    struct mallinfo2 before = settled_info();
    for (int i = 0; i < COUNT; i++) blocks[i] = memset(opaque(malloc(BYTES)), 1, BYTES);
    struct mallinfo2 live = settled_info();
    must(live.uordblks - before.uordblks >= (size_t)COUNT * BYTES);
    must(live.uordblks - before.uordblks < (size_t)COUNT * BYTES * 5 / 4);
    for (int i = 0; i < COUNT; i++) free(blocks[i]);
    must(settled_info().uordblks - before.uordblks < BYTES);
    must(settled_info().ordblks > live.ordblks);
    before = settled_info();
    void *large = opaque(malloc(LARGE));
    live = settled_info();
    must(live.uordblks - before.uordblks >= LARGE);
    must(live.hblkhd - before.hblkhd >= LARGE && live.hblks - before.hblks == 1);
    must(live.arena + live.hblkhd >= live.uordblks);
    struct mallinfo narrow = mallinfo();
    must(narrow.hblkhd >= LARGE && (size_t)narrow.hblks == live.hblks);
    must(narrow.uordblks >= LARGE && narrow.ordblks > 0 && narrow.arena > 0);
    free(large);
    if (!is_checked()) must(mallinfo2().hblks == before.hblks);
    must(malloc_trim(0) == 1);
    must(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1 && mallopt(-1000, 0) == 0);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    must(malloc_info(1, file) == EINVAL && malloc_info(0, file) == 0);
    fclose(file);
    must(strncmp(text, "<malloc version=\"1\">\n", 21) == 0);
    static const char *const elements[] = {"<total type=\"fast\" ", "<total type=\"rest\" ",
                                           "<total type=\"mmap\" ", "<system type=\"current\" ",
                                           "<aspace type=\"total\" "};
    for (int i = 0; i < 5; i++) must(strstr(text, elements[i]));
    must(strcmp(text + length - 10, "</malloc>\n") == 0);
    free(text);
}

/* What malloc_stats writes to stderr is read back from a file. */
static void statistics_are_written(void) {
    static char text[1 << 16];
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    must(file && kept >= 0 && dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    malloc_stats();
    must(dup2(kept, STDERR_FILENO) == STDERR_FILENO && close(kept) == 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    must(strstr(text, "heap-") && strstr(text, "large objects"));
    fclose(file);
}

#else

/* Only glibc has these functions. */
static void second_names_are_the_same_functions(void) {}
static void reports_know_what_is_live(void) {}
static void statistics_are_written(void) {}

#endif

int main(void) {
    must_be_slabyard();
    blocks_are_aligned_to_16();
    empty_blocks_differ();
    calloc_clears();
    realloc_keeps_what_fits();
    what_cannot_be_had_is_refused();
    alignment_is_as_asked();
    free_keeps_errno();
    sized_frees_and_good_sizes();
    some_objects_should_move();
    checked_objects_have_their_size();
    second_names_are_the_same_functions();
    reports_know_what_is_live();
    statistics_are_written();
    return 0;
}
