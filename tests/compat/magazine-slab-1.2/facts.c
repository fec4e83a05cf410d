/*
 * facts.c: what a program gets from the headers of magazine-slab 1.2 (cf4a01e) besides functions,
 * and in addition to those of version 1.0: macros, types and fields. This program includes no other
 * header first. What is missing here is listed in docs/compat.md.
 */
#include <slab.h>
#include <slab_tags.h>
#include <vmem.h>

static pthread_key_t from_pthread;
static atomic_uintptr_t from_stdatomic;
static bool from_stdbool = true;

#define MACROS(M)                                              \
    M(SLAB_ALIGN_DEFAULT, sizeof(void *))                      \
    M(SLAB_KMALLOC_CLASSES, 10)                                \
    M(SLAB_QUARANTINE, 0x08)                                   \
    M(SLAB_POOL_TAGS, 0x10)                                    \
    M(SLAB_QUARANTINE_SIZE, 64)                                \
    M(POOL_TAG_HASH_SIZE, 256)                                 \
    M(MAKE_POOL_TAG('a', 'b', 'c', 'd'), (POOL_TAG)0x64636261) \
    M(POOL_TAG_NONE, MAKE_POOL_TAG('N', 'o', 'n', 'e'))        \
    M(SLAB_TAG('a', 'b', 'c', 'd'), (slab_tag_t)0x64636261)    \
    M(SLAB_TAG_NONE, SLAB_TAG('N', 'o', 'n', 'e'))             \
    M(VMEM_FREELISTS, 32)

#define FIELDS(F)                                            \
    F(struct slab_cache, const char *, name)                 \
    F(vmem_t, size_t, alloc_size)                            \
    F(vmem_t, vmem_import_fn, import_fn)                     \
    F(vmem_t, vmem_release_fn, release_fn)                   \
    F(vmem_t, void *, import_arg)                            \
    F(vmem_t, size_t, import_quantum)                        \
    F(struct pool_tag_entry, POOL_TAG, tag)                  \
    F(struct pool_tag_entry, _Atomic uint64_t, allocs)       \
    F(struct pool_tag_entry, _Atomic uint64_t, frees)        \
    F(struct pool_tag_entry, _Atomic int64_t, active_bytes)  \
    F(struct pool_tag_entry, _Atomic int64_t, peak_bytes)    \
    F(struct pool_tag_entry, size_t, obj_size)               \
    F(struct slab_tag_stats, slab_tag_t, tag)                \
    F(struct slab_tag_stats, _Atomic uint64_t, alloc_count)  \
    F(struct slab_tag_stats, _Atomic uint64_t, free_count)   \
    F(struct slab_tag_stats, _Atomic uint64_t, active_count) \
    F(struct slab_tag_stats, _Atomic uint64_t, active_bytes) \
    F(struct slab_tag_stats, _Atomic uint64_t, peak_count)   \
    F(struct slab_tag_stats, _Atomic uint64_t, peak_bytes)

/* _Generic drops _Atomic from its argument's type, so pointers are compared. */
#define HAS_VALUE(macro, value) _Static_assert((macro) == (value), #macro);
#define HAS_TYPE(of, type, field) \
    _Static_assert(_Generic(&((of *)NULL)->field, type * : 1, default : 0), #of "." #field);
MACROS(HAS_VALUE)
FIELDS(HAS_TYPE)

/* The next include would bring headers that magazine-slab's do not. */
#include "compat/compat.h"

enum { SPAN = 0x10000 };
static uintptr_t next_span = SPAN;

static int import(void *arg, size_t size, uintptr_t *addrp, size_t *actual_size) {
    EXPECT(arg == &next_span && size <= SPAN && *actual_size == size);
    *addrp = next_span;
    *actual_size = SPAN;
    next_span += SPAN;
    return 0;
}

static unsigned released;

static void release(void *arg, uintptr_t addr, size_t size) {
    EXPECT(arg == &next_span && addr && size == SPAN);
    released++;
}

/* Also of an arena whose base is no multiple of its quantum. */
static void imported_spans_are_counted(uintptr_t base) {
    vmem_t *vm = vmem_create("imports", base, base ? 0x1000 : 0, 0x1000, import, release,
                             &next_span, 0x3000);
    size_t own = base ? 0x1000 : 0;
    uintptr_t value, large;
    released = 0;
    EXPECT(vm && vm->import_quantum == 0x3000 && vm->total_size == own);
    EXPECT(vmem_alloc(vm, 0x2000, &large) == 0);
    EXPECT(vm->total_size == own + SPAN && vm->n_spans == 1 + (base > 0));
    EXPECT(vmem_alloc(vm, 1, &value) == 0 && vm->n_allocs == 2 && vm->alloc_size == 0x3000);
    vmem_free(vm, value, 1);
    vmem_free(vm, large, 0x2000);
    EXPECT(released == 1 && vm->total_size == own && vm->free_size == own && vm->n_allocs == 0);
    vmem_destroy(vm);
}

int main(void) {
    EXPECT(pthread_key_create(&from_pthread, NULL) == 0 && atomic_load(&from_stdatomic) == 0);
    EXPECT(from_stdbool);
    imported_spans_are_counted(0);
    imported_spans_are_counted(0x801);
    return 0;
}
