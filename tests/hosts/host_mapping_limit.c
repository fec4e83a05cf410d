/*
 * host_mapping_limit.c: a program that has as many mappings as the system allows a process, or a
 * few fewer. Small and large blocks can be allocated, replaced and resized all the same, and keep
 * their bytes.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hosts.h"

enum { MOST = 1 << 18, BLOCKS = 2000, LARGE = 12, MIB = 1 << 20 };

static unsigned seed = 1;

static unsigned next(unsigned below) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % below;
}

/* Uses up all mappings but `spare`. */
static void use_up_mappings(int spare) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start =
        mmap(NULL, 2 * MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED);
    for (size_t i = 0;; i++) {
        if (i == MOST) _exit(SKIPPED); /* it allows very many */
        if (mprotect(start + 2 * i * page, page, PROT_READ) != 0) break;
    }
    for (int i = 0; i < spare / 2; i++) CHECK(munmap(start + 2 * (size_t)i * page, 2 * page) == 0);
}

static void check_ends(const unsigned char *block, size_t bytes, int value) {
    CHECK(block[0] == value && block[bytes / 2] == value && block[bytes - 1] == value);
}

static void set_ends(unsigned char *block, size_t bytes, int value) {
    CHECK(block != NULL);
    block[0] = block[bytes / 2] = block[bytes - 1] = (unsigned char)value;
}

static void replace_small_blocks(void) {
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    for (int round = 0; round < 10 * BLOCKS; round++) {
        unsigned i = next(BLOCKS);
        if (blocks[i]) check_ends(blocks[i], sizes[i], (int)(i & 255));
        size_t bytes = next(100) ? 1 + next(4000) : 1 + next(600000);
        if (round % 3) {
            free(blocks[i]);
            blocks[i] = malloc(bytes);
        } else {
            blocks[i] = realloc(blocks[i], bytes);
        }
        sizes[i] = bytes;
        set_ends(blocks[i], bytes, (int)(i & 255));
    }
}

static void replace_large_blocks(void) {
    static unsigned char *blocks[LARGE];
    static size_t sizes[LARGE];
    for (int round = 0; round < 80; round++) {
        unsigned i = next(LARGE);
        size_t bytes = 5 * MIB + (size_t)next(8) * MIB + next(MIB);
        if (round % 3) {
            free(blocks[i]);
            blocks[i] = malloc(bytes);
        } else {
            blocks[i] = realloc(blocks[i], bytes);
            size_t kept = sizes[i] < bytes ? sizes[i] : bytes;
            if (kept)
                CHECK(blocks[i] && blocks[i][0] == i && blocks[i][(kept - 1) / 4096 * 4096] == i);
        }
        sizes[i] = bytes;
        CHECK(blocks[i] != NULL);
        for (size_t at = 0; at < bytes; at += 4096) blocks[i][at] = (unsigned char)i;
    }
}

static void run(int spare) {
    free(malloc(100));
    use_up_mappings(spare);
    replace_small_blocks();
    replace_large_blocks();
    _exit(0);
}

int main(void) {
    static const int spares[] = {0, 10, 150};
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) run(spares[i]);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
    }
    return 0;
}
