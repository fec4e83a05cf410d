/*
 * facts.c: what a program gets from the headers of magazine-slab 1.0 (9815b82) besides functions:
 * other headers, macros and fields. This program includes no other header first. What is missing
 * here is listed in docs/compat.md.
 */
#include <slab.h>
#include <vmem.h>

static pthread_key_t from_pthread;
static atomic_uintptr_t from_stdatomic;
static bool from_stdbool = true;
static uint64_t from_stdint = UINT64_MAX;
static ptrdiff_t from_stddef = offsetof(struct slab_cache, name);

#define MACROS(M)                         \
    M(SLAB_PAGE_SIZE, 4096)               \
    M(SLAB_PAGE_SHIFT, 12)                \
    M(SLAB_MAX_OBJECTS, 512)              \
    M(SLAB_MIN_OBJ_SIZE, sizeof(void *))  \
    M(SLAB_ALIGN_DEFAULT, sizeof(void *)) \
    M(SLAB_RED_ZONE, 0x01)                \
    M(SLAB_POISON, 0x02)                  \
    M(SLAB_DEBUG, 0x03)                   \
    M(SLAB_NO_MAGAZINES, 0x04)            \
    M(SLAB_RED_MAGIC, 0xBB)               \
    M(SLAB_POISON_FREE, 0x6B)             \
    M(SLAB_POISON_ALLOC, 0x5A)            \
    M(SLAB_RED_ZONE_SIZE, 8)              \
    M(SLAB_MAG_SIZE, 32)                  \
    M(SLAB_MAG_BATCH, 16)                 \
    M(SLAB_MAX_CPUS, 256)                 \
    M(SLAB_CACHE_LINE, 64)                \
    M(SLAB_KMALLOC_MIN_SHIFT, 3)          \
    M(SLAB_KMALLOC_MAX_SHIFT, 12)         \
    M(SLAB_KMALLOC_CLASSES, 10)           \
    M(VMEM_FREELISTS, 32)

#define FIELDS(F)                                 \
    F(struct slab_cache, const char *, name)      \
    F(struct slab_cache, size_t, obj_size)        \
    F(struct slab_cache, size_t, raw_size)        \
    F(struct slab_cache, size_t, align)           \
    F(struct slab_cache, uint32_t, flags)         \
    F(struct slab_cache, size_t, slab_size)       \
    F(struct slab_cache, uint16_t, objs_per_slab) \
    F(struct slab_cache, uint32_t, nr_slabs)      \
    F(struct slab_cache, uint32_t, nr_partial)    \
    F(struct slab_cache, uint32_t, nr_free)       \
    F(vmem_t, const char *, name)                 \
    F(vmem_t, size_t, quantum)                    \
    F(vmem_t, size_t, total_size)                 \
    F(vmem_t, size_t, alloc_size)                 \
    F(vmem_t, size_t, free_size)                  \
    F(vmem_t, uint32_t, n_spans)                  \
    F(vmem_t, uint32_t, n_allocs)                 \
    F(vmem_t, pthread_mutex_t, lock)

#define HAS_VALUE(macro, value) _Static_assert((macro) == (value), #macro);
#define HAS_TYPE(of, type, field) \
    _Static_assert(_Generic(((of *)NULL)->field, type : 1, default : 0), #of "." #field);
MACROS(HAS_VALUE)
FIELDS(HAS_TYPE)

/* The next include would bring headers that magazine-slab's do not. */
#include "compat/compat.h"

static void fields_of_an_arena_are_exact(void) {
    vmem_t *vm = vmem_create("fields", 0x10000, 0x10000, 0x1000);
    uintptr_t one, other;
    EXPECT(vm && strcmp(vm->name, "fields") == 0 && vm->quantum == 0x1000);
    EXPECT(vm->total_size == 0x10000 && vm->free_size == 0x10000 && vm->n_spans == 1);
    EXPECT(vmem_alloc(vm, 0x1800, &one) == 0);
    EXPECT(vmem_xalloc(vm, 1, 0x4000, 0, 0, 0, 0, &other) == 0);
    EXPECT(vm->alloc_size == 0x3000 && vm->free_size == 0xd000 && vm->n_allocs == 2);
    EXPECT(vmem_add(vm, 0x40000, 0x2000) == 0 && vmem_add(vm, 0x40000, 0x2000) == -1);
    EXPECT(vm->total_size == 0x12000 && vm->free_size == 0xf000 && vm->n_spans == 2);
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    vmem_free(vm, one, 0x1000); /* refused: another size */
    EXPECT(faults == 1 && vm->n_allocs == 2 && vm->alloc_size == 0x3000);
    sy_set_fault_handler(before);
    vmem_free(vm, one, 0x1800);
    vmem_xfree(vm, other, 1);
    EXPECT(vm->alloc_size == 0 && vm->free_size == 0x12000 && vm->n_allocs == 0);
    vmem_destroy(vm);
}

int main(void) {
    EXPECT(pthread_key_create(&from_pthread, NULL) == 0 && atomic_load(&from_stdatomic) == 0);
    EXPECT(from_stdbool && from_stdint && from_stddef >= 0);
    fields_of_an_arena_are_exact();
    return 0;
}
