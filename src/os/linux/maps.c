/*
 * maps.c: the part of os.h that finds the memory that this process has written.
 * /proc/self/maps lists the mappings, /proc/self/pagemap says which of their pages have content.
 *
 * A page can also be a guard (MADV_GUARD_INSTALL). Linux 6.13 and 6.14 report a guard as a page in
 * swap; newer kernels distinguish the two. So a page that is reported in swap is brought in by a
 * call that fails, instead of a signal, where an access would.
 */
#define _GNU_SOURCE

#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <fcntl.h>
#    include <sys/mman.h>
#    include <unistd.h>

/* Kernel names that older headers lack. */
#    define ADVICE_POPULATE_READ 22 /* 5.14 */

static const uint64_t IN_MEMORY = UINT64_C(1) << 63, IN_SWAP = UINT64_C(1) << 62;
static const uint64_t GUARD = UINT64_C(1) << 58; /* 6.15 */

static const uint64_t MAPPING_MAX = UINT64_C(512) << 30;

enum { ENTRIES = 512 }; /* of /proc/self/pagemap, read at a time */

/* ---- mappings ---- */

typedef struct reader {
    int file;
    ssize_t at, end; /* in buffer; end is -1 after an error */
    char buffer[4096];
} reader;

/* The next character, or -1. */
static int next_of_maps(reader *maps) {
    if (maps->at < maps->end) return (unsigned char)maps->buffer[maps->at++];
    do maps->end = read(maps->file, maps->buffer, sizeof maps->buffer);
    while (maps->end < 0 && errno == EINTR);
    maps->at = 0;
    return maps->end > 0 ? (unsigned char)maps->buffer[maps->at++] : -1;
}

/* A number in base 16 and the character behind it, which is skipped. */
static uintptr_t next_number(reader *maps) {
    uintptr_t number = 0;
    for (;;) {
        int c = next_of_maps(maps);
        if (c >= '0' && c <= '9')
            number = number * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number * 16 + (unsigned)(c - 'a') + 10;
        else
            return number;
    }
}

/* Reads the next line: "start-end rw-p ...". False: there is none. */
static bool next_mapping(reader *maps, sy_os_piece *piece, bool *wanted) {
    piece->mapping = next_number(maps);
    piece->mapping_end = next_number(maps);
    char rights[4];
    for (int i = 0; i < 4; i++) rights[i] = (char)next_of_maps(maps);
    *wanted = rights[0] == 'r' && rights[1] == 'w' && rights[3] == 'p' &&
              piece->mapping_end - piece->mapping <= MAPPING_MAX;
    int c;
    do c = next_of_maps(maps);
    while (c >= 0 && c != '\n');
    return c >= 0;
}

/* ---- pages ---- */

static bool holds_something(uint64_t entry, uintptr_t address, size_t page) {
    if (entry & IN_MEMORY) return true;
    if (!(entry & IN_SWAP) || entry & GUARD) return false;
    return madvise((void *)address, page, ADVICE_POPULATE_READ) == 0 || errno == EINVAL;
}

typedef struct page_walk {
    int pages; /* /proc/self/pagemap */
    void (*visit)(void *arg, const sy_os_piece *piece);
    void *arg;
} page_walk;

/* If the page has content, adds it to the piece; else visits the piece, if it has a page, and
 * empties it. */
static void add_page(const page_walk *walk, sy_os_piece *piece, uintptr_t address, size_t page,
                     bool holds) {
    if (holds && piece->start == piece->end) piece->start = address;
    if (holds) piece->end = address + page;
    if (holds || piece->start == piece->end) return;
    walk->visit(walk->arg, piece);
    piece->start = piece->end = 0;
}

static int walk_mapping(const page_walk *walk, sy_os_piece *piece) {
    size_t page = sy_os_page_size();
    uint64_t entries[ENTRIES];
    piece->start = piece->end = 0;
    for (uintptr_t at = piece->mapping; at < piece->mapping_end;) {
        size_t left = (piece->mapping_end - at) / page, most = left < ENTRIES ? left : ENTRIES;
        off_t offset = (off_t)(at / page * sizeof *entries);
        ssize_t bytes = pread(walk->pages, entries, most * sizeof *entries, offset);
        if (bytes < (ssize_t)sizeof *entries) return -1;
        for (size_t i = 0; i < (size_t)bytes / sizeof *entries; i++, at += page)
            add_page(walk, piece, at, page, holds_something(entries[i], at, page));
    }
    add_page(walk, piece, piece->mapping_end, page, false);
    return 0;
}

static int walk_mappings(const page_walk *walk, reader *maps) {
    sy_os_piece piece;
    bool wanted;
    while (next_mapping(maps, &piece, &wanted))
        if (wanted && walk_mapping(walk, &piece) != 0) return -1;
    return maps->end < 0 ? -1 : 0;
}

static int open_to_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg) {
    int saved = errno;
    reader maps = {.file = open_to_read("/proc/self/maps")};
    page_walk walk = {.pages = open_to_read("/proc/self/pagemap"), .visit = visit, .arg = arg};
    int result = maps.file < 0 || walk.pages < 0 ? -1 : walk_mappings(&walk, &maps);
    int error = errno;
    if (maps.file >= 0) close(maps.file);
    if (walk.pages >= 0) close(walk.pages);
    errno = result == 0 ? saved : error;
    return result;
}

#endif
