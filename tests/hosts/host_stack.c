/* How much stack the functions of malloc take in the deepest case. Threads with painted stacks are
 * hungry in all ways, alone and several at once. A thread may have PTHREAD_STACK_MIN bytes, 16 KiB,
 * of which the C library takes some. */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "hosts/hosts.h"

enum {
    STACK = 64 << 10,
    PAINT = 0xa5,
    SMALL = 16 << 10,
#ifdef HOSTS_OPTIMISED
    PLAIN_MOST = 4400, /* bytes; other allocators take 3,240 to 4,392 */
    CHECKED_MOST = 8000,
#else
    PLAIN_MOST = 12000,
    CHECKED_MOST = 20000,
#endif
};

enum { BLOCKS = 1500, THREADS = 4 };

static void *tables[THREADS][BLOCKS];

static _Atomic uintptr_t top; /* of what the library may use: the frame that calls malloc */

/* All functions, small and large sizes, growth and shrinking. */
static __attribute__((noinline)) void use_all(void **blocks) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t bytes = 16 + i * 37 % 5000;
            if (i % 100 == 0) bytes = 200000 + i * 1000;
            blocks[i] = i % 3 ? malloc(bytes) : i % 2 ? calloc(1, bytes) : memalign(512, bytes);
            CHECK(blocks[i] != NULL);
            memset(blocks[i], 1, bytes);
        }
        for (size_t i = 0; i < BLOCKS; i += 7) blocks[i] = realloc(blocks[i], 10000 + i * 100);
        for (size_t i = 0; i < BLOCKS; i++) free(blocks[i * 1237 % BLOCKS]);
        malloc_trim(0);
    }
}

static void *work(void *table) {
    char here;
    top = (uintptr_t)&here;
    use_all(table);
    return NULL;
}

static size_t depth_of(const unsigned char *stack) {
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT) untouched++;
    return top - (uintptr_t)(stack + untouched);
}

static void *map_stack(void) {
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    memset(stack, PAINT, STACK);
    return stack;
}

static size_t measure(void) {
    unsigned char *stack = map_stack();
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, work, tables[0]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    size_t depth = depth_of(stack);
    munmap(stack, STACK);
    return depth;
}

/* They have a guard page below, so a deeper path ends the process. */
static void run_small_threads(void) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, SMALL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, work, tables[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Options, and how deep the library may go with them. */
static const struct {
    const char *options;
    size_t most;
} rows[] = {{"tools=off,sample=off", PLAIN_MOST},
            {"tools=off,sample=off,maintenance=no", PLAIN_MOST},
            {"tools=off,sample=all", CHECKED_MOST},
            {"tools=off,check,redzone,poison,quarantine", CHECKED_MOST},
            {"tools=off,audit=100,sample=1/10", CHECKED_MOST}};

/* The first thread is the first one that allocates much. */
static void run_with_row(size_t row) {
    for (int round = 0; round < 2; round++) {
        size_t depth = measure();
        char text[128];
        int length = snprintf(text, sizeof text, "%zu bytes with %s\n", depth, rows[row].options);
        CHECK(length > 0);
        host_say(text);
        CHECK(depth <= rows[row].most);
    }
    run_small_threads();
}

int main(int count, char **arguments) {
    char row[2] = {count > 1 ? arguments[1][0] : '0', '\0'};
    size_t number = (size_t)(row[0] - '0');
    CHECK(number < sizeof rows / sizeof *rows);
    char *again[] = {arguments[0], row, NULL};
    with_options(rows[number].options, again);
    run_with_row(number);
    row[0]++;
    if (number + 1 < sizeof rows / sizeof *rows) with_options(rows[number + 1].options, again);
    return 0;
}
