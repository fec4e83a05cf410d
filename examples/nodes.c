/*
 * nodes.c: a tree and a hash map whose nodes come from a cache, or from malloc. The code, the
 * operations and the results are the same. The program prints the time and memory of each, and
 * judges neither.
 *
 *     cc -O2 nodes.c $(pkg-config --cflags --libs slabyard-static) && ./a.out [OPERATIONS]
 *
 * The containers allocate and free by two functions, `take` and `give`. Each call of a container
 * passes the source of its nodes as a constant. So the compiler makes a copy of the containers for
 * each source, and no copy tests it at run time. (A program of one thread can use a pool in the
 * same way, slabyard/pool.h.)
 *
 * The tree is a treap (Seidel and Aragon, "Randomized Search Trees", Algorithmica 1996): ordered by
 * key from left to right, and by a random priority from top to bottom. The program checks its
 * results: the exit status is 0 only if all of them are right.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slabyard/cache.h>

enum {
    KEYS = 1 << 18,    /* keys are 0 to KEYS - 1; about half of them are in a container at a time */
    BUCKETS = 1 << 18, /* of the map */
    OPERATIONS = 2000000,
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* ---- where nodes come from ---- */

typedef enum source { CACHE, MALLOC } source;

ALWAYS_INLINE void *take(source from, sy_cache *cache, size_t size) {
    void *node = from == CACHE ? sy_cache_alloc(cache) : malloc(size);
    expect(node != NULL, "there is memory for a node");
    return node;
}

ALWAYS_INLINE void give(source to, sy_cache *cache, void *node) {
    if (to == CACHE)
        sy_cache_free(cache, node);
    else
        free(node);
}

typedef struct container {
    sy_cache *cache; /* its nodes come from here; NULL: from malloc */
    struct branch *root;
    struct entry **buckets;
    uint64_t random;
} container;

/* ---- a tree ---- */

typedef struct branch {
    struct branch *left, *right;
    uint64_t value;
    uint32_t key, priority; /* no node below has a higher priority */
} branch;

static uint64_t *tree_find(const container *in, uint32_t key) {
    branch *it = in->root;
    while (it && it->key != key) it = key < it->key ? it->left : it->right;
    return it ? &it->value : NULL;
}

/* Splits a tree into the keys below `key` and the others. */
static void split(branch *all, uint32_t key, branch **less, branch **rest) {
    while (all) {
        if (all->key < key) {
            *less = all;
            less = &all->right;
            all = all->right;
        } else {
            *rest = all;
            rest = &all->left;
            all = all->left;
        }
    }
    *less = *rest = NULL;
}

/* Joins two trees. All keys of `less` are below all keys of `rest`. */
static void join(branch *less, branch *rest, branch **all) {
    while (less && rest) {
        if (less->priority > rest->priority) {
            *all = less;
            all = &less->right;
            less = less->right;
        } else {
            *all = rest;
            all = &rest->left;
            rest = rest->left;
        }
    }
    *all = less ? less : rest;
}

/* Adds a key that is not there. */
ALWAYS_INLINE void tree_add(source from, container *to, uint32_t key, uint64_t value) {
    branch *it = take(from, to->cache, sizeof *it), **link = &to->root;
    *it = (branch){.value = value, .key = key, .priority = (uint32_t)next_random(&to->random)};
    while (*link && (*link)->priority >= it->priority)
        link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    split(*link, key, &it->left, &it->right);
    *link = it;
}

/* Removes a key that is there. */
ALWAYS_INLINE void tree_remove(source to, container *from, uint32_t key) {
    branch **link = &from->root;
    while ((*link)->key != key) link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    branch *gone = *link;
    join(gone->left, gone->right, link);
    give(to, from->cache, gone);
}

/* ---- a hash map ---- */

typedef struct entry {
    struct entry *next;
    uint64_t value;
    uint32_t key;
} entry;

static entry **bucket_of(const container *in, uint32_t key) {
    return &in->buckets[(uint32_t)(key * 2654435769u) % BUCKETS];
}

static uint64_t *map_find(const container *in, uint32_t key) {
    entry *it = *bucket_of(in, key);
    while (it && it->key != key) it = it->next;
    return it ? &it->value : NULL;
}

ALWAYS_INLINE void map_add(source from, container *to, uint32_t key, uint64_t value) {
    entry *it = take(from, to->cache, sizeof *it), **bucket = bucket_of(to, key);
    *it = (entry){.next = *bucket, .value = value, .key = key};
    *bucket = it;
}

ALWAYS_INLINE void map_remove(source to, container *from, uint32_t key) {
    entry **link = bucket_of(from, key);
    while ((*link)->key != key) link = &(*link)->next;
    entry *gone = *link;
    *link = gone->next;
    give(to, from->cache, gone);
}

/* ---- operations on either ---- */

typedef enum shape { TREE, MAP } shape;

typedef struct outcome {
    uint64_t seen, content; /* sums of what look-ups found; of the content at the end */
    size_t nodes, resident; /* at the end; bytes */
    double ns;              /* for an operation */
} outcome;

ALWAYS_INLINE uint64_t *find(shape what, const container *in, uint32_t key) {
    return what == TREE ? tree_find(in, key) : map_find(in, key);
}

ALWAYS_INLINE void add(shape what, source from, container *to, uint32_t key, uint64_t value) {
    if (what == TREE)
        tree_add(from, to, key, value);
    else
        map_add(from, to, key, value);
}

ALWAYS_INLINE void cut(shape what, source to, container *from, uint32_t key) {
    if (what == TREE)
        tree_remove(to, from, key);
    else
        map_remove(to, from, key);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Returns the bytes of this process that are in RAM. */
static size_t resident(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    expect(file && fscanf(file, "%*s %zu", &pages) == 1, "the system says what is resident");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Every second operation looks a key up. The others add a key, or remove it if it is there. */
ALWAYS_INLINE void operate(shape what, source from, container *it, size_t operations,
                           outcome *found) {
    uint64_t state = 1;
    for (size_t i = 0; i < operations; i++) {
        uint32_t key = (uint32_t)(next_random(&state) % KEYS);
        const uint64_t *value = find(what, it, key);
        if (i % 2 == 0)
            found->seen = found->seen * 31 + (value ? *value : 0);
        else if (value)
            cut(what, from, it, key);
        else
            add(what, from, it, key, i);
    }
}

ALWAYS_INLINE void empty(shape what, source to, container *it, outcome *found) {
    for (uint32_t key = 0; key < KEYS; key++) {
        const uint64_t *value = find(what, it, key);
        if (!value) continue;
        found->content = found->content * 31 + (key ^ *value);
        found->nodes++;
        cut(what, to, it, key);
    }
}

ALWAYS_INLINE outcome measure(shape what, source from, container *it, size_t operations) {
    outcome found = {0};
    size_t before = resident();
    double began = now();
    operate(what, from, it, operations, &found);
    found.ns = (now() - began) / (double)operations;
    found.resident = resident() - before;
    empty(what, from, it, &found);
    return found;
}

/* The calls of measure() here pass shape and source as constants. */
static outcome measure_one(shape what, source from, size_t operations) {
    static entry *buckets[BUCKETS];
    container it = {.buckets = buckets, .random = 1};
    size_t size = what == TREE ? sizeof(branch) : sizeof(entry);
    memset(buckets, 0, sizeof buckets); /* this makes the buckets resident before the measurement */
    if (from == MALLOC)
        return what == TREE ? measure(TREE, MALLOC, &it, operations)
                            : measure(MAP, MALLOC, &it, operations);
    /* With the default alignment of 16, an entry of 24 bytes would take 32. */
    it.cache =
        sy_cache_create(&(sy_cache_config){.name = "node", .size = size, .align = alignof(branch)});
    expect(it.cache != NULL, "a cache is created");
    outcome found =
        what == TREE ? measure(TREE, CACHE, &it, operations) : measure(MAP, CACHE, &it, operations);
    expect(sy_cache_destroy(it.cache) == 0, "no node is left");
    return found;
}

/* Measures in a process of its own, so that the resident memory that it finds is for these
 * nodes. */
static outcome measure_apart(shape what, source from, size_t operations) {
    int pipes[2], status;
    outcome found;
    expect(pipe(pipes) == 0, "there is a pipe");
    pid_t child = fork();
    expect(child >= 0, "there is another process");
    if (child == 0) {
        found = measure_one(what, from, operations);
        _exit(write(pipes[1], &found, sizeof found) == sizeof found ? 0 : 1);
    }
    close(pipes[1]);
    ssize_t got = read(pipes[0], &found, sizeof found);
    close(pipes[0]);
    expect(waitpid(child, &status, 0) == child && status == 0, "the other process is done");
    expect(got == sizeof found, "and has told what it found");
    return found;
}

static void show(const char *what, const char *from, const outcome *found) {
    printf("%-5s %-7s %6.1f ns an operation, %5.2f MiB resident: %.1f bytes a node\n", what, from,
           found->ns, (double)found->resident / (1 << 20),
           (double)found->resident / (double)found->nodes);
}

int main(int argc, char **argv) {
    size_t operations = argc > 1 ? strtoul(argv[1], NULL, 10) : OPERATIONS;
    expect(operations > 1, "there is something to do");
    outcome all[2][2];
    for (shape what = TREE; what <= MAP; what++)
        for (source from = CACHE; from <= MALLOC; from++) {
            outcome *found = &all[what][from];
            *found = measure_apart(what, from, operations);
            show(what == TREE ? "tree" : "map", from == CACHE ? "cache" : "malloc", found);
            expect(found->seen == all[TREE][CACHE].seen, "all look-ups had the same answers");
            expect(found->content == all[TREE][CACHE].content && found->nodes > 0,
                   "the same was there at the end");
        }
    printf("%zu operations, %zu nodes: all four had the same answers\n", operations,
           all[TREE][CACHE].nodes);
    return 0;
}
