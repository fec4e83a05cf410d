/*
 * own_memory.c: an object cache over memory of the program's own. Here this is a file that two
 * processes have mapped: one makes the objects, and the other reads and writes them in place.
 *
 *     cc -DSY_STATIC own_memory.c $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 *     the file, mapped shared       | chunk: slabs of orders          | chunk ...      |
 *     the memory "orders.db"          takes chunks of 4 MiB from the file
 *     the cache "order"               allocates and frees there, from any thread
 *
 * Use huge pages (mmap with MAP_HUGETLB), a device's memory or a reserved region in the same way.
 *
 * The program checks its results: the exit status is 0 only if all of them are right. Linux only
 * (memfd_create).
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/cache.h>
#include <slabyard/memory.h>

enum { MIB = 1 << 20, FILE_BYTES = 64 * MIB, ORDERS = 100000 };

typedef struct order {
    uint64_t id, cents;
    struct order *next; /* valid in both: a forked child has the same mapping */
} order;

static void expect(int so, const char *what) {
    if (so) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}

/* Trims call this for pages that hold no order. It makes a hole in the file there. */
static int punch(void *arg, void *start, size_t bytes) {
    *(size_t *)arg += bytes;
    return madvise(start, bytes, MADV_REMOVE);
}

static order *add_orders(sy_cache *cache) {
    order *all = NULL;
    for (uint64_t id = 0; id < ORDERS; id++) {
        order *one = sy_cache_alloc(cache);
        expect(one != NULL, "there is room in the file");
        *one = (order){.id = id, .cents = id % 100 * 7, .next = all};
        all = one;
    }
    return all;
}

static uint64_t sum(const order *all) {
    uint64_t cents = 0;
    for (; all; all = all->next) cents += all->cents;
    return cents;
}

/* Starts another process, which reads and writes objects and allocates none. */
static void pay_in_child(order *all) {
    pid_t child = fork();
    expect(child >= 0, "fork");
    if (child == 0) {
        for (order *one = all; one; one = one->next) one->cents -= one->cents % 100;
        _exit(0);
    }
    int status;
    expect(waitpid(child, &status, 0) == child && status == 0, "the child is done");
}

static uint64_t sum_paid(void) {
    uint64_t cents = 0;
    for (uint64_t id = 0; id < ORDERS; id++) cents += id % 100 * 7 / 100 * 100;
    return cents;
}

int main(void) {
    int file = memfd_create("orders.db", MFD_CLOEXEC);
    expect(file >= 0 && ftruncate(file, FILE_BYTES) == 0, "a file");
    char *map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    expect(map != MAP_FAILED, "it is mapped");

    size_t punched = 0;
    sy_memory *memory = sy_memory_create(&(sy_memory_config){
        .name = "orders.db", .start = map, .bytes = FILE_BYTES, .discard = punch, .arg = &punched});
    expect(memory != NULL, "a memory over the file");
    sy_cache *cache = sy_cache_create(
        &(sy_cache_config){.name = "order", .size = sizeof(order), .memory = memory});
    expect(cache != NULL, "a cache over the memory");

    order *all = add_orders(cache);
    expect((char *)all >= map && (char *)all < map + FILE_BYTES, "orders lie in the file");
    sy_memory_stats stats;
    sy_memory_get_stats(memory, &stats);
    printf("%d orders of %zu bytes: %zu KiB of the file in slabs, %zu KiB free in %zu chunks\n",
           ORDERS, sizeof(order), stats.used >> 10, stats.free >> 10, stats.chunks);

    pay_in_child(all);
    expect(sum(all) == sum_paid(), "what the child wrote is here");
    printf("another process changed all of them in place\n");

    while (all) {
        order *next = all->next;
        sy_cache_free(cache, all);
        all = next;
    }
    sy_cache_trim(cache);
    expect(punched >= ORDERS * sizeof(order) / 2, "the file has holes");
    printf("freed and trimmed: %zu KiB of the file given back\n", punched >> 10);

    expect(sy_cache_destroy(cache) == 0, "no order is left");
    expect(sy_memory_destroy(memory) == 0, "no cache is left");
    munmap(map, FILE_BYTES);
    close(file);
    return 0;
}
