#include "compat/compat.h"

#include <vmem.h>

#include "support/child.h"

/* ---- as the document shows ---- */

static void an_arena_and_its_life(void) {
    vmem_t *vm = vmem_create("my_arena", 0x10000, 0x100000, 4096);
    uintptr_t addr, aligned;
    EXPECT(vmem_alloc(vm, 8192, &addr) == 0);
    EXPECT(addr >= 0x10000 && addr + 8192 <= 0x110000 && addr % 4096 == 0);
    EXPECT(vmem_xalloc(vm, 4096, 4096, 0, 0, 0, SIZE_MAX, &aligned) == 0);
    EXPECT(aligned % 4096 == 0);
    vmem_stats(vm);
    vmem_free(vm, aligned, 4096);
    vmem_xfree(vm, addr, 8192);
    vmem_destroy(vm);
    vmem_destroy(NULL);
}

static void constraints_hold(void) {
    vmem_t *vm = vmem_create("constrained", 0x1000, 0x100000, 0x100);
    uintptr_t value;
    EXPECT(vmem_xalloc(vm, 0x300, 0x1000, 0x200, 0, 0, 0, &value) == 0);
    EXPECT(value % 0x1000 == 0x200);
    EXPECT(vmem_xalloc(vm, 0xe00, 0, 0, 0x1000, 0, 0, &value) == 0);
    EXPECT(value == 0x2000); /* from 0x1500 it would cross 0x2000 */
    EXPECT(vmem_xalloc(vm, 0x100, 0, 0, 0, 0x80000, 0x800ff, &value) == 0);
    EXPECT(value == 0x80000);
    EXPECT(vmem_xalloc(vm, 0x100, 0, 0, 0, 0x80000, 0x800ff, &value) == -1);
    sy_vmem_stats stats;
    EXPECT(sy_vmem_get_stats(vm->arena, &stats) == 0 && stats.segments_allocated == 3);
    EXPECT(sy_vmem_verify(vm->arena) == 0);
    vmem_destroy(vm);
}

static void sizes_are_rounded_up_to_the_quantum(void) {
    vmem_t *vm = vmem_create("pages", 0x10000, 0x10000, 4096);
    uintptr_t pages[16], value = 7;
    for (unsigned i = 0; i < 16; i++)
        EXPECT(vmem_alloc(vm, 1 + i * 273, &pages[i]) == 0 && pages[i] % 4096 == 0);
    EXPECT(vmem_alloc(vm, 1, &value) == -1 && value == 7);
    for (unsigned i = 0; i < 16; i++) vmem_free(vm, pages[i], 1 + i * 273);
    EXPECT(vmem_alloc(vm, 0x10000, &value) == 0 && value == 0x10000); /* merged again */
    vmem_free(vm, value, 0x10000);
    vmem_destroy(vm);
    EXPECT(!vmem_create("thirds", 0, 300, 3) && !vmem_create("half", 0, 0x1800, 4096));
}

/* Values are the base plus multiples of the quantum, whatever the base is. */
static void any_integer_is_a_base(void) {
    const uintptr_t bases[] = {1, 3, 0x801, 0x800, 0x1010, 0x2000};
    for (unsigned i = 0; i < sizeof bases / sizeof *bases; i++) {
        vmem_t *vm = vmem_create("ids", bases[i], 0x10000, 0x1000);
        uintptr_t values[16], value = 7;
        EXPECT(vm);
        for (unsigned j = 0; j < 16; j++)
            EXPECT(vmem_alloc(vm, 1 + j * 255, &values[j]) == 0 &&
                   values[j] == bases[i] + j * 0x1000);
        EXPECT(vmem_alloc(vm, 1, &value) == -1 && value == 7);
        EXPECT(vmem_add(vm, bases[i] + 0x20000, 0x1000) == 0);
        EXPECT(vmem_alloc(vm, 1, &value) == 0 && value == bases[i] + 0x20000);
        EXPECT(vm->n_spans == 2 && vm->n_allocs == 17 && vm->alloc_size == 0x11000);
        vmem_free(vm, value, 1);
        for (unsigned j = 0; j < 16; j++) vmem_free(vm, values[j], 1 + j * 255);
        EXPECT(vmem_xalloc(vm, 0x1000, 0x4000, 0, 0, 0, 0, &value) == 0 && value == 0x4000);
        vmem_xfree(vm, value, 0x1000);
        EXPECT(sy_vmem_verify(vm->arena) == 0 && vm->n_allocs == 0 && vm->free_size == 0x11000);
        vmem_destroy(vm);
    }
}

/* Segments are allocated from the start on. Of two holes that are large enough, the smaller is
 * taken. */
static void the_smallest_hole_is_taken(void) {
    vmem_t *vm = vmem_create("holes", 0x1000, 1024, 64);
    uintptr_t first, small, between, large, again;
    EXPECT(vmem_alloc(vm, 64, &first) == 0 && first == 0x1000);
    EXPECT(vmem_alloc(vm, 128, &small) == 0 && small == first + 64);
    EXPECT(vmem_alloc(vm, 64, &between) == 0 && between == small + 128);
    EXPECT(vmem_alloc(vm, 256, &large) == 0 && large == between + 64);
    vmem_free(vm, small, 128);
    vmem_free(vm, large, 256);
    EXPECT(vmem_alloc(vm, 64, &again) == 0 && again == small);
    vmem_free(vm, again, 64);
    EXPECT(vmem_alloc(vm, 256, &again) == 0 && again == large);
    vmem_destroy(vm);
}

enum { ROUNDS = 10000 };

static void *take_and_give(void *vm) {
    uintptr_t value;
    for (unsigned i = 0; i < ROUNDS; i++) {
        EXPECT(vmem_alloc(vm, 64, &value) == 0);
        vmem_free(vm, value, 64);
    }
    return NULL;
}

static void threads_share_an_arena(void) {
    vmem_t *vm = vmem_create("shared", 0, 1 << 20, 64);
    uintptr_t value;
    in_threads(8, take_and_give, vm);
    EXPECT(vmem_alloc(vm, 1 << 20, &value) == 0 && value == 0); /* all segments have been merged */
    vmem_free(vm, 0, 1 << 20);
    vmem_destroy(vm);
}

static void spans_are_added(void) {
    vmem_t *vm = vmem_create("spans", 0, 128, 64);
    uintptr_t value;
    EXPECT(vmem_alloc(vm, 128, &value) == 0 && vmem_alloc(vm, 64, &value) == -1);
    EXPECT(vmem_add(vm, 0x10000, 256) == 0);
    EXPECT(vmem_alloc(vm, 256, &value) == 0 && value == 0x10000);
    vmem_free(vm, value, 256);
    errno = 0;
    EXPECT(vmem_add(vm, 64, 64) == -1 && errno == EEXIST); /* the arena already contains it */
    errno = 0;
    EXPECT(vmem_add(vm, 0x20000, 100) == -1 && errno == EINVAL); /* not a multiple of the quantum */
    EXPECT(vmem_add(vm, 0x20000, 0) == -1 && vmem_add(vm, UINTPTR_MAX - 127, 256) == -1);
    vmem_free(vm, 0, 128);
    vmem_destroy(vm);
}

static void print(void *vm) { vmem_stats(vm); }

static void statistics_are_printed(void) {
    char text[1000];
    vmem_t *vm = vmem_create("my_arena", 0x10000, 0x100000, 4096);
    uintptr_t value;
    EXPECT(vmem_alloc(vm, 8192, &value) == 0);
    overhear(print, vm, text, sizeof text);
    EXPECT(strstr(text, "my_arena") && strstr(text, "8192 allocated in 1 "));
    vmem_free(vm, value, 8192);
    vmem_destroy(vm);
}

static void destroy(void *vm) { vmem_destroy(vm); }

static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* As in the document, a segment is still allocated. This is reported, and all memory of the arena
 * is freed. */
static void an_arena_is_destroyed_with_what_is_live(void) {
    enum { ARENAS = 1000 };
    char text[1000];
    size_t before = 0;
    for (unsigned i = 0; i < ARENAS; i++) {
        vmem_t *vm = vmem_create("live", 0x10000, 0x100000, 4096);
        uintptr_t value;
        for (unsigned j = 0; j < 100; j++) EXPECT(vmem_alloc(vm, 8192, &value) == 0);
        overhear(destroy, vm, text, sizeof text);
        EXPECT(strstr(text, "819200 allocated"));
        if (i == 10) before = address_space();
    }
    EXPECT(address_space() < before + (1 << 20));
}

/* ---- mistakes that the audit found ---- */

static void what_fits_is_found(void) {
    vmem_t *vm = vmem_create("full but for the end", 0, 1024, 1);
    uintptr_t values[1024], value;
    for (unsigned i = 0; i < 1024; i++) EXPECT(vmem_alloc(vm, 1, &values[i]) == 0);
    EXPECT(vmem_alloc(vm, 1, &value) == -1);
    for (unsigned i = 0; i < 1024; i++)
        if (values[i] >= 896 || values[i] % 2) vmem_free(vm, values[i], 1);
    EXPECT(vmem_alloc(vm, 128, &value) == 0 && value >= 895);
    EXPECT(vmem_alloc(vm, SIZE_MAX, &value) == -1);
    EXPECT(vmem_alloc(vm, 0, &value) == -1);
    vmem_destroy(vm);
}

/* magazine-slab searched all allocated segments. */
static void a_free_finds_its_segment_at_once(void) {
    enum { SEGMENTS = 100000 };
    static void *values[SEGMENTS];
    uint64_t random = 5;
    uintptr_t value;
    sy_vmem_stats stats;
    vmem_t *vm = vmem_create("many", 0, SEGMENTS, 1);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        EXPECT(vmem_alloc(vm, 1, &value) == 0);
        values[i] = (void *)value;
    }
    shuffle(values, SEGMENTS, &random);
    for (unsigned i = 0; i < SEGMENTS; i++) vmem_free(vm, (uintptr_t)values[i], 1);
    EXPECT(sy_vmem_get_stats(vm->arena, &stats) == 0 && stats.frees == SEGMENTS);
    EXPECT(stats.steps < 4 * SEGMENTS);
    vmem_destroy(vm);
}

static void a_wrong_free_is_named(void) {
    vmem_t *vm = vmem_create("ids", 1, 1000, 1);
    uintptr_t value;
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    EXPECT(vmem_alloc(vm, 10, &value) == 0);
    vmem_free(vm, value + 1, 10);
    EXPECT(faults == 1 && last_fault.kind == SY_FAULT_NOT_ALLOCATED);
    vmem_free(vm, value, 11);
    EXPECT(faults == 2 && last_fault.kind == SY_FAULT_SEGMENT_SIZE);
    EXPECT(strcmp(last_fault.cache, "ids") == 0);
    vmem_free(vm, value, 10);
    EXPECT(faults == 2);
    sy_set_fault_handler(before);
    vmem_destroy(vm);
}

int main(void) {
    an_arena_and_its_life();
    constraints_hold();
    sizes_are_rounded_up_to_the_quantum();
    any_integer_is_a_base();
    the_smallest_hole_is_taken();
    threads_share_an_arena();
    spans_are_added();
    statistics_are_printed();
    an_arena_is_destroyed_with_what_is_live();
    what_fits_is_found();
    a_free_finds_its_segment_at_once();
    a_wrong_free_is_named();
    return 0;
}
