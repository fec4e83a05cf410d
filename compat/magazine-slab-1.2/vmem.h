/*
 * vmem.h: the arenas of magazine-slab since version 1.2, implemented by Slabyard's. They are those
 * of version 1.0, and can also import spans.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab-1.2 -lslabyard
 *
 * An imported span is released as a whole when nothing in it is allocated any more, and when the
 * arena is destroyed. (magazine-slab never called `release_fn`.) The header of version 1.0
 * describes everything else.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_1_2_VMEM_H
#define SLABYARD_COMPAT_MAGAZINE_1_2_VMEM_H

#define SY_MAGAZINE_VMEM_IMPORTS
#include "../magazine-slab/vmem.h"

SY_BEGIN_DECLS

/* Imports at least `size` integers. The function writes the first to *addrp and their number to
 * *actual_size (initially `size`); both are multiples of the quantum. It returns 0, or another
 * value if it has none. */
typedef int (*vmem_import_fn)(void *arg, size_t size, uintptr_t *addrp, size_t *actual_size);

/* Releases an imported span: all of it, once. */
typedef void (*vmem_release_fn)(void *arg, uintptr_t addr, size_t size);

static inline int sy_magazine_vmem_import(sy_vmem *source, void *vm_, size_t size, uintptr_t *addr,
                                          size_t *got) {
    vmem_t *vm = (vmem_t *)vm_;
    int error;
    (void)source;
    *got = size = sy_magazine_vmem_round(vm, size);
    error = vm->import_fn(vm->import_arg, size, addr, got);
    if (!error) sy_magazine_vmem_span(vm, *got, 1);
    return error;
}

static inline void sy_magazine_vmem_release(sy_vmem *source, void *vm_, uintptr_t addr,
                                            size_t size) {
    vmem_t *vm = (vmem_t *)vm_;
    (void)source;
    sy_magazine_vmem_span(vm, size, -1);
    if (vm->release_fn) vm->release_fn(vm->import_arg, addr, size);
}

/* Creates an arena of `size` integers (0: none) from `base` on, in units of `quantum`, a power of
 * two. When there is no room, `import_fn` (NULL: none) imports at least `import_quantum` more.
 * `release_fn` may be NULL. The caller owns the arena until vmem_destroy. Returns NULL with errno
 * EINVAL or ENOMEM. */
static inline vmem_t *vmem_create(const char *name, uintptr_t base, size_t size, size_t quantum,
                                  vmem_import_fn import_fn, vmem_release_fn release_fn,
                                  void *import_arg, size_t import_quantum) {
    sy_vmem_config config;
    vmem_t vm;
    memset(&config, 0, sizeof config);
    config.name = name;
    config.base = base;
    config.size = size;
    config.quantum = quantum;
    if (import_fn) {
        config.import = sy_magazine_vmem_import;
        config.release = sy_magazine_vmem_release;
        config.import_min = import_quantum;
    }
    memset(&vm, 0, sizeof vm);
    vm.import_fn = import_fn;
    vm.release_fn = release_fn;
    vm.import_arg = import_arg;
    vm.import_quantum = import_quantum;
    return sy_magazine_vmem_create(&vm, &config);
}

SY_END_DECLS

#endif
