#include "compat/compat.h"

#include <signal.h>
#include <sys/mman.h>

#include <slabyard/fail.h>
#include <xbase/slab.h>

_Static_assert(XSLAB_DEFAULT_ALIGN == 16, "as the document says");
_Static_assert(_Generic(XSLAB_DEFAULT_ALIGN, size_t: 1), "so that it may be an argument of printf");
_Static_assert(_Generic(XSLAB_DEFAULT_CHUNK_BYTES, size_t: 1), "the same");
_Static_assert(XSLAB_DEFAULT_CHUNK_BYTES == 64 * 1024, "as the document says");

/* ---- as the document shows ---- */

typedef struct Node Node;
struct Node {
    Node *left, *right;
    int key;
    void *value;
};

static void a_pool_of_tree_nodes(void) {
    xSlab *pool = xSlabCreate(sizeof(Node), 0, 0);
    Node *root = xSlabAlloc(pool);
    memset(root, 0, sizeof(*root));
    root->key = 42;
    EXPECT((uintptr_t)root % XSLAB_DEFAULT_ALIGN == 0);
    EXPECT(xSlabSlotSize(pool) == sizeof(Node));
    EXPECT(xSlabInUse(pool) == 1);
    xSlabFree(pool, root);
    xSlabFree(pool, NULL);
    EXPECT(xSlabInUse(pool) == 0);
    xSlabDestroy(pool);
    xSlabDestroy(NULL);
}

struct Task {
    void (*run)(void *arg);
    void *arg;
    uint64_t owner;
};

static xSlabMt *task_pool;

static void *free_task(void *task) {
    xSlabMtFree(task_pool, task);
    return NULL;
}

static void a_pool_of_tasks_for_all_threads(void) {
    task_pool = xSlabMtCreate(sizeof(struct Task), 0, 0);
    struct Task *task = xSlabMtAlloc(task_pool);
    memset(task, 0, sizeof(*task));
    in_threads(1, free_task, task);
    EXPECT(xSlabMtSlotSize(task_pool) >= sizeof(struct Task));
    xSlabMtFree(task_pool, NULL);
    xSlabMtDestroy(task_pool);
    xSlabMtDestroy(NULL);
}

enum { SLOTS = 10000 };
static void *slots[SLOTS];

/* A program resets the pool instead of freeing each slot. */
static void a_pool_is_reset_and_keeps_its_chunks(void) {
    xSlab *pool = xSlabCreate(40, 8, 0);
    for (unsigned i = 0; i < SLOTS; i++) EXPECT((slots[i] = xSlabAlloc(pool)) != NULL);
    size_t capacity = sy_pool_capacity((sy_pool *)pool);
    for (unsigned round = 0; round < 3; round++) {
        xSlabReset(pool);
        EXPECT(xSlabInUse(pool) == 0);
        for (unsigned i = 0; i < SLOTS; i++) EXPECT(xSlabAlloc(pool) == slots[i]);
        EXPECT(xSlabInUse(pool) == SLOTS);
        EXPECT(sy_pool_capacity((sy_pool *)pool) == capacity);
    }
    xSlabDestroy(pool);
}

/* Size and alignment that are asked for, and the size of the slot: rounded up to the alignment. An
 * alignment of 0 means 16. */
static const size_t rounded[][3] = {{8, 0, 16},  {16, 0, 16},   {40, 0, 48},
                                    {40, 8, 40}, {5, 1, 8},     {5, 4, 8},
                                    {24, 2, 24}, {65, 64, 128}, {1, 4096, 4096}};

static void slots_have_the_size_rounded_up(void) {
    for (unsigned i = 0; i < sizeof rounded / sizeof *rounded; i++) {
        size_t align = rounded[i][1] ? rounded[i][1] : XSLAB_DEFAULT_ALIGN;
        xSlab *one = xSlabCreate(rounded[i][0], rounded[i][1], 0);
        xSlabMt *all = xSlabMtCreate(rounded[i][0], rounded[i][1], 0);
        EXPECT(xSlabSlotSize(one) == rounded[i][2] && xSlabMtSlotSize(all) == rounded[i][2]);
        for (unsigned j = 0; j < 100; j += 2) {
            EXPECT((uintptr_t)(slots[j] = xSlabAlloc(one)) % align == 0);
            EXPECT((uintptr_t)(slots[j + 1] = xSlabMtAlloc(all)) % align == 0);
            own(slots[j], xSlabSlotSize(one), j);
            own(slots[j + 1], xSlabMtSlotSize(all), j + 1);
        }
        for (unsigned j = 0; j < 100; j++) EXPECT(is_own(slots[j], rounded[i][2], j));
        xSlabDestroy(one);
        xSlabMtDestroy(all);
    }
}

static size_t capacity_of(size_t chunk_bytes) {
    xSlab *pool = xSlabCreate(32, 0, chunk_bytes);
    EXPECT(xSlabAlloc(pool) != NULL);
    size_t capacity = sy_pool_capacity((sy_pool *)pool);
    xSlabDestroy(pool);
    return capacity;
}

/* A pool grows by a chunk. Its slots fill all of the chunk but for the pool's own data. */
static void chunks_have_the_size_asked_for(void) {
    EXPECT(capacity_of(0) == capacity_of(XSLAB_DEFAULT_CHUNK_BYTES));
    EXPECT(capacity_of(0) <= 64 * 1024 / 32 && capacity_of(0) >= 63 * 1024 / 32);
    EXPECT(capacity_of(1 << 20) <= (1 << 20) / 32 && capacity_of(1 << 20) >= (1023 << 10) / 32);
    EXPECT(!xSlabCreate(32, 0, SIZE_MAX));
}

static bool is_mapped(void *address) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return msync((void *)((uintptr_t)address / page * page), page, MS_ASYNC) == 0;
}

static void all_memory_goes_back(void) {
    xSlab *one = xSlabCreate(100, 0, 0);
    for (unsigned i = 0; i < SLOTS; i++) slots[i] = xSlabAlloc(one);
    EXPECT(is_mapped(slots[0]) && is_mapped(slots[SLOTS - 1]));
    xSlabDestroy(one);
    for (unsigned i = 0; i < SLOTS; i += 100) EXPECT(!is_mapped(slots[i]));

    sy_trim();
    size_t before = mapped_now();
    xSlabMt *all = xSlabMtCreate(100, 0, 0);
    for (unsigned i = 0; i < SLOTS; i++) EXPECT(xSlabMtAlloc(all) != NULL);
    EXPECT(mapped_now() >= before + SLOTS * 100);
    xSlabMtDestroy(all);
    EXPECT(mapped_now() <= before + SLOTS * 10);
}

/* ---- mistakes that the audit found ---- */

static void the_slot_freed_last_is_the_next_one(void) {
    xSlab *pool = xSlabCreate(64, 64, 0);
    for (unsigned i = 0; i < SLOTS; i++) slots[i] = xSlabAlloc(pool);
    for (unsigned i = 0; i < SLOTS; i++) xSlabFree(pool, slots[i]);
    for (unsigned i = SLOTS; i > 0; i--) EXPECT(xSlabAlloc(pool) == slots[i - 1]);
    xSlabDestroy(pool);
}

static void so_it_is_for_each_thread_of_many(void) {
    enum { FEW = 8 };
    xSlabMt *pool = xSlabMtCreate(64, 0, 0);
    for (unsigned i = 0; i < FEW; i++) slots[i] = xSlabMtAlloc(pool);
    for (unsigned i = 0; i < FEW; i++) xSlabMtFree(pool, slots[i]);
    for (unsigned i = FEW; i > 0; i--) EXPECT(xSlabMtAlloc(pool) == slots[i - 1]);
    xSlabMtDestroy(pool);
}

/* After a reset, each slot still has its content. */
static void a_reset_touches_no_slot(void) {
    xSlab *pool = xSlabCreate(40, 8, 4096);
    for (unsigned i = 0; i < SLOTS; i++) own(slots[i] = xSlabAlloc(pool), 40, i);
    xSlabReset(pool);
    EXPECT(xSlabInUse(pool) == 0);
    for (unsigned i = 0; i < SLOTS; i++) EXPECT(is_own(slots[i], 40, i));
    xSlabDestroy(pool);
}

static void every_alignment_holds(void) {
    for (size_t align = 1; align <= (size_t)2 << 20; align *= 2) {
        xSlab *one = xSlabCreate(64, align, 0);
        xSlabMt *all = xSlabMtCreate(64, align, 0);
        EXPECT(one && all);
        for (unsigned i = 0; i < 8; i++) {
            EXPECT((uintptr_t)xSlabAlloc(one) % align == 0);
            EXPECT((uintptr_t)xSlabMtAlloc(all) % align == 0);
        }
        xSlabDestroy(one);
        xSlabMtDestroy(all);
    }
    errno = 0;
    EXPECT(!xSlabCreate(64, (size_t)4 << 20, 0) && errno == EINVAL);
    errno = 0;
    EXPECT(!xSlabMtCreate(64, (size_t)4 << 20, 0) && errno == EINVAL);
    EXPECT(!xSlabCreate(64, 24, 0) && !xSlabMtCreate(64, 24, 0));
}

/* With the default alignment too, slots whose size divides a cache line do not cross lines. */
static void objects_of_a_line_do_not_straddle(void) {
    for (size_t size = 8; size <= 64; size *= 2) {
        xSlab *one = xSlabCreate(size, 0, 0);
        xSlabMt *all = xSlabMtCreate(size, 0, 0);
        for (unsigned i = 0; i < SLOTS; i++) {
            EXPECT((uintptr_t)xSlabAlloc(one) % 64 <= 64 - size);
            EXPECT((uintptr_t)xSlabMtAlloc(all) % 64 <= 64 - size);
        }
        xSlabDestroy(one);
        xSlabMtDestroy(all);
    }
}

static void sizes_that_are_none_are_refused(void) {
    EXPECT(!xSlabCreate(SIZE_MAX, 0, 0) && !xSlabMtCreate(SIZE_MAX, 0, 0));
    EXPECT(!xSlabCreate(0, 0, 0) && !xSlabMtCreate(0, 0, 0));
    EXPECT(!xSlabCreate(SIZE_MAX / 2, 0, 0));
    xSlabMt *all = xSlabMtCreate(SIZE_MAX / 2 - 65534, 0, 0);
    errno = 0;
    EXPECT(!all || (!xSlabMtAlloc(all) && errno == ENOMEM));
    xSlabMtDestroy(all);
}

/* While the system gives no memory, the pool allocates its free slots, then returns NULL. Later it
 * works again. */
static void no_memory_is_null(void) {
    xSlab *one = xSlabCreate(4096, 0, 0);
    xSlabMt *all = xSlabMtCreate(4096, 0, 0);
    size_t given = 0, given_too = 0;
    void *slot;
    EXPECT(sy_set_failures("os:*:every:1") == 0);
    errno = 0;
    while (given < SLOTS && (slot = xSlabAlloc(one)) != NULL) slots[given++] = slot;
    EXPECT(given < SLOTS && errno == ENOMEM && xSlabInUse(one) == given);
    errno = 0;
    while (given_too < SLOTS && (slot = xSlabMtAlloc(all)) != NULL) given_too++;
    EXPECT(given_too < SLOTS && errno == ENOMEM);
    EXPECT(sy_set_failures(NULL) == 0);
    EXPECT(xSlabAlloc(one) && xSlabMtAlloc(all));
    xSlabDestroy(one);
    xSlabMtDestroy(all);
}

static void what_is_in_use_is_never_below_zero(void) {
    xSlab *pool = xSlabCreate(32, 0, 0);
    void *slot = xSlabAlloc(pool);
    void *other = xSlabAlloc(pool);
    xSlabFree(pool, slot);
    xSlabFree(pool, other);
    xSlabFree(pool, slot); /* a double free */
    EXPECT(xSlabInUse(pool) <= 2);
    xSlabDestroy(pool);
}

/* Each thread puts its new slot into a place that all threads share, and frees the slot that was in
 * it. */
enum { PLACES = 64 };
static void *places[PLACES];

static void *churn(void *arg) {
    xSlabMt *pool = arg;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t place = i * 2654435761u % PLACES;
        void *slot = xSlabMtAlloc(pool);
        EXPECT(slot != NULL);
        own(slot, 48, place);
        slot = __atomic_exchange_n(&places[place], slot, __ATOMIC_ACQ_REL);
        EXPECT(!slot || is_own(slot, 48, place));
        xSlabMtFree(pool, slot);
    }
    return NULL;
}

static void no_slot_has_two_owners(void) {
    xSlabMt *pool = xSlabMtCreate(48, 0, 0);
    in_threads(4, churn, pool);
    for (unsigned i = 0; i < PLACES; i++) xSlabMtFree(pool, places[i]);
    EXPECT(sy_cache_in_use((sy_cache *)pool) == 0);
    xSlabMtDestroy(pool);
}

/* ---- a thread that is stopped ---- */

static int stands[2], goes_on[2]; /* pipes */
static int over;

static void stand_still(int signal) {
    int error = errno;
    char byte = (char)signal;
    EXPECT(write(stands[1], &byte, 1) == 1 && read(goes_on[0], &byte, 1) == 1);
    errno = error;
}

static void take_and_give_some(xSlabMt *pool) {
    void *some[8];
    for (unsigned i = 0; i < 8; i++) EXPECT((some[i] = xSlabMtAlloc(pool)) != NULL);
    for (unsigned i = 0; i < 8; i++) xSlabMtFree(pool, some[i]);
}

static void *take_and_give(void *arg) {
    char byte = 0;
    for (unsigned i = 0; i < 100; i++) take_and_give_some(arg);
    EXPECT(write(stands[1], &byte, 1) == 1);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) take_and_give_some(arg);
    return NULL;
}

/* A signal stops a thread anywhere in its operations. If these held a lock, this test would not
 * end. */
static void nobody_waits_for_a_thread_that_stands_still(void) {
    xSlabMt *pool = xSlabMtCreate(64, 0, 0);
    pthread_t other;
    char byte = 0;
    EXPECT(pipe(stands) == 0 && pipe(goes_on) == 0);
    struct sigaction action = {.sa_handler = stand_still};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    EXPECT(pthread_create(&other, NULL, take_and_give, pool) == 0);
    for (unsigned i = 0; i < 100; i++) take_and_give_some(pool);
    EXPECT(read(stands[0], &byte, 1) == 1);
    for (unsigned round = 0; round < 500; round++) {
        EXPECT(pthread_kill(other, SIGUSR1) == 0 && read(stands[0], &byte, 1) == 1);
        for (unsigned i = 0; i < 10; i++) take_and_give_some(pool);
        EXPECT(write(goes_on[1], &byte, 1) == 1);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    EXPECT(pthread_join(other, NULL) == 0);
    xSlabMtDestroy(pool);
}

int main(void) {
    a_pool_of_tree_nodes();
    a_pool_of_tasks_for_all_threads();
    a_pool_is_reset_and_keeps_its_chunks();
    slots_have_the_size_rounded_up();
    chunks_have_the_size_asked_for();
    all_memory_goes_back();
    the_slot_freed_last_is_the_next_one();
    so_it_is_for_each_thread_of_many();
    a_reset_touches_no_slot();
    every_alignment_holds();
    objects_of_a_line_do_not_straddle();
    sizes_that_are_none_are_refused();
    no_memory_is_null();
    what_is_in_use_is_never_below_zero();
    no_slot_has_two_owners();
    nobody_waits_for_a_thread_that_stands_still();
    return 0;
}
