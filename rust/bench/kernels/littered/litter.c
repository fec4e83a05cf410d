/*
 * litter: a library to be preloaded that fragments the heap before `main`. See litter.h.
 *
 * It calls malloc and free as the program does, so those of the allocator that is preloaded behind
 * it: `LD_PRELOAD=liblitter.so:liballocator.so`. The loader runs the constructors of the library
 * that is named first last, right before those of the program.
 *
 * LITTER names the file with the sizes; if it is not set, the heap stays as it is. LITTER_REPORT
 * names a file for a line of numbers: the CPU time of this process so far in us, its resident
 * memory in KiB with code and libraries, and the blocks and bytes that it keeps. So the time that
 * the constructor took can be subtracted, in a run without litter too.
 */
#include "litter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TIMES = 2, TEXT_BYTES = 256 << 10 };

struct bin {
    uint64_t size, count_so_far; /* with the bins before */
};

struct sizes {
    uint64_t live;
    size_t count;
    struct bin bins[BINS];
};

static uint64_t state = 0x2545F4914F6CDD1Du;

static uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void *map_bytes(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

/* Reads the file without malloc. False if there is none. */
static bool read_sizes(struct sizes *sizes, char *text) {
    const char *path = getenv("LITTER");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return false;
    size_t length = 0;
    for (ssize_t part; (part = read(file, text + length, TEXT_BYTES - 1 - length)) > 0;) {
        length += (size_t)part;
    }
    close(file);
    char *at = text;
    uint64_t sum = 0;
    sizes->live = strtoull(at, &at, 10);
    while (sizes->count < BINS) {
        char *next;
        uint64_t size = strtoull(at, &next, 10);
        if (next == at) break;
        sum += strtoull(next, &at, 10);
        sizes->bins[sizes->count++] = (struct bin){size, sum};
    }
    return sum > 0;
}

/* A size that is as frequent as in the program. */
static size_t draw_size(const struct sizes *sizes) {
    uint64_t place = below(sizes->bins[sizes->count - 1].count_so_far);
    size_t low = 0, high = sizes->count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (place < sizes->bins[middle].count_so_far) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return sizes->bins[low].size;
}

struct kept {
    uint64_t blocks, bytes;
};

/* Allocates twice as many blocks as the program has live, and frees a random half. */
static struct kept litter(const struct sizes *sizes) {
    size_t count = TIMES * sizes->live;
    struct block {
        void *at;
        size_t size;
    } *blocks = map_bytes(count * sizeof *blocks + 1);
    struct kept kept = {0, 0};
    for (size_t i = 0; i < count; i++) {
        size_t size = draw_size(sizes);
        blocks[i] = (struct block){malloc(size), size};
        if (!blocks[i].at) abort();
        memset(blocks[i].at, 0x5a, size);
    }
    for (size_t left = count; left > 0; left--) {
        size_t chosen = below(left);
        struct block block = blocks[chosen];
        blocks[chosen] = blocks[left - 1];
        if (left > count / TIMES) {
            free(block.at);
        } else {
            kept.blocks++;
            kept.bytes += block.size;
        }
    }
    munmap(blocks, count * sizeof *blocks + 1);
    return kept;
}

static uint64_t us(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static uint64_t resident_kib(char *text) {
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, TEXT_BYTES - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "Rss:");
    return line ? strtoull(line + 4, NULL, 10) : 0;
}

static void report(struct kept kept, char *text) {
    const char *path = getenv("LITTER_REPORT");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0) return;
    uint64_t resident = resident_kib(text);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    int length = snprintf(text, TEXT_BYTES, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                          us(used.ru_utime) + us(used.ru_stime), resident, kept.blocks, kept.bytes);
    if (write(file, text, (size_t)length) != length) abort();
    close(file);
}

__attribute__((constructor)) static void begin(void) {
    struct sizes *sizes = map_bytes(sizeof *sizes);
    char *text = map_bytes(TEXT_BYTES);
    struct kept kept = {0, 0};
    if (read_sizes(sizes, text)) kept = litter(sizes);
    report(kept, text);
    munmap(text, TEXT_BYTES);
    munmap(sizes, sizeof *sizes);
}
