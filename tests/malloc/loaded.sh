#!/usr/bin/env bash
# Tests the drop-in malloc beside another malloc: loaded by dlopen into a program that started
# without it, and preloaded together with another malloc library; and in a daemon. Needs a C
# compiler.
# Usage: tests/malloc/loaded.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD LD_PRELOAD

fail() {
    echo "loaded: $*" >&2
    exit 1
}
compile() { ${CC:-cc} -O1 -fno-builtin -w "$@"; }

# dlopen does not replace the malloc of a program that has started: its blocks stay those of the C
# library. The library serves code that looks its functions up. It stays loaded after dlclose, so
# that its blocks stay valid.
cat >"$work/opens.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define must(x) ((x) ? (void)0 : (printf("line %d: not so: %s\n", __LINE__, #x), exit(1)))
#ifndef RTLD_DEEPBIND /* musl has none */
#define RTLD_DEEPBIND 0
#endif
static void *(*give)(size_t);
static void (*take)(void *);
static void *work(void *unused) {
    for (int i = 0; i < 1000; i++) {
        char *theirs = give(i * 10 + 1), *own = malloc(i * 10 + 1);
        memset(theirs, 1, i * 10 + 1);
        memset(own, 1, i * 10 + 1);
        take(theirs);
        free(own);
    }
    return NULL;
}
int main(int count, char **arguments) {
    char *before = malloc(1000);
    memset(before, 7, 1000);
    int deep = strcmp(arguments[2], "deep") == 0 ? RTLD_DEEPBIND : 0;
    void *last = NULL;
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | deep);
        if (!library) printf("%s\n", dlerror());
        must(library);
        give = dlsym(library, "malloc");
        take = dlsym(library, "free");
        size_t (*usable)(void *) = dlsym(library, "malloc_usable_size");
        must(give && give != malloc && take && take != free && usable);
        void *block = give(100);
        must(usable(block) == 112);
        if (last) take(last); /* from before dlclose */
        last = block;
        pthread_t thread;
        must(pthread_create(&thread, NULL, work, NULL) == 0);
        work(NULL);
        must(pthread_join(thread, NULL) == 0);
        must(dlclose(library) == 0);
    }
    memset(last, 1, 100); /* its memory is still there */
    take(last);
    for (int i = 0; i < 1000; i++) must(before[i] == 7);
    free(realloc(before, 100000));
    return 0;
}
END
compile "$work/opens.c" -pthread -ldl -o "$work/opens"
for how in plain deep; do
    "$work/opens" "$library" $how || fail "dlopen ($how) ends with status $?"
done
echo "ok dlopen"

# The malloc that is preloaded first serves the program, and nothing mixes the two.
cat >"$work/other.c" <<'END'
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* Gives each block a part of one array, and reuses none. */
static char memory[64 << 20] __attribute__((aligned(4096)));
static size_t used;
int other_calls;
void *memalign(size_t align, size_t size) {
    size_t head = align < 16 ? 16 : align, all = head + ((size + 4095) & ~(size_t)15);
    size_t at = __atomic_fetch_add(&used, all + head, __ATOMIC_RELAXED);
    if (at + all + head > sizeof memory) return NULL;
    __atomic_fetch_add(&other_calls, 1, __ATOMIC_RELAXED);
    char *block = (char *)(((uintptr_t)memory + at + head + 15) & -(uintptr_t)head);
    if (block < memory + at + 16) block += head;
    ((size_t *)block)[-1] = size;
    return block;
}
void *malloc(size_t size) { return memalign(16, size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
int posix_memalign(void **block, size_t align, size_t size) {
    *block = memalign(align, size);
    return *block ? 0 : 12;
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void free(void *block) {
    if (block && (uintptr_t)block - (uintptr_t)memory >= sizeof memory) __builtin_trap();
}
size_t malloc_usable_size(void *block) { return block ? ((size_t *)block)[-1] : 0; }
void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    size_t old = malloc_usable_size(block);
    if (block && moved) memcpy(moved, block, old < size ? old : size);
    return moved;
}
END
cat >"$work/uses.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *unused) {
    for (int i = 1; i < 300; i++) {
        char *block = malloc(i * 7), *zero = calloc(i, 3), *aligned = NULL;
        if (posix_memalign((void **)&aligned, 64, i)) exit(1);
        memset(block, 1, i * 7);
        block = realloc(block, i * 20);
        if (zero[i] || block[i * 7 - 1] != 1) exit(2);
        free(block);
        free(zero);
        free(aligned);
    }
    return NULL;
}
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL)) return 1;
    work(NULL);
    pthread_join(thread, NULL);
    char *line = strdup("text"); /* the C library's block */
    free(line);
    int *calls = dlsym(RTLD_DEFAULT, "other_calls");
    void *block = malloc(100);
    printf("usable %zu, %s\n", malloc_usable_size(block), *calls > 600 ? "other" : "slabyard");
    free(block);
    return 0;
}
END
compile -shared -fPIC "$work/other.c" -o "$work/other.so"
compile "$work/uses.c" -pthread -ldl -o "$work/uses"
said=$(LD_PRELOAD="$library $work/other.so" "$work/uses") || fail "preloaded before another malloc: status $?, $said"
[ "$said" = "usable 112, slabyard" ] || fail "preloaded before another malloc: $said"
for options in "" check; do
    said=$(SLABYARD=$options LD_PRELOAD="$work/other.so $library" "$work/uses" 2>&1) ||
        fail "preloaded after another malloc, with options '$options': status $?, $said"
    [ "$said" = "usable 100, other" ] || fail "preloaded after another malloc, with options '$options': $said"
done
echo "ok two mallocs"

# A daemon: a process without its parent's threads and terminal. It returns memory while it is idle.
cat >"$work/daemon.c" <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { BLOCKS = 50000, BYTES = 2000 };
static char *blocks[BLOCKS];
static void fill(void) {
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
}
static void empty(void) {
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
}
static long resident(void) {
    static char text[4096];
    FILE *file = fopen("/proc/self/status", "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return atol(strstr(text, "VmRSS:") + 6) / 1024;
}
int main(int count, char **arguments) {
    fill();
    empty();
    fill();
    if (daemon(1, 1)) return 1;
    empty(); /* the parent's blocks */
    fill();
    long peak = resident(), now = peak;
    empty();
    for (int i = 0; i < atoi(arguments[1]) * 10 && now > peak / 2; i++) {
        usleep(100000);
        now = resident();
    }
    printf("%s: %ld MiB of %ld MiB\n", now <= peak / 2 ? "returned" : "kept", now, peak);
    return 0;
}
END
compile "$work/daemon.c" -o "$work/daemon"
LD_PRELOAD=$library "$work/daemon" 30 >"$work/said" || fail "the daemon does not start"
for ((i = 0; i < 600; i++)); do
    [ ! -s "$work/said" ] || break
    sleep 0.1
done
grep -q "^returned" "$work/said" || fail "a daemon returns no memory: $(cat "$work/said")"
echo "ok daemon"
