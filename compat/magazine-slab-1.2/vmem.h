/*
 * vmem.h: the arenas of magazine-slab since version 1.2, over Slabyard's: those of version 1.0,
 * which import.
 *
 *     cc program.c -I<prefix>/include/slabyard/compat/magazine-slab-1.2 -lslabyard
 *
 * Imported spans are released, each as a whole, when nothing of them is allocated any more, and
 * when the arena is destroyed; magazine-slab never called `release_fn`. The rest is said in the
 * header of version 1.0.
 */
#ifndef SLABYARD_COMPAT_MAGAZINE_1_2_VMEM_H
#define SLABYARD_COMPAT_MAGAZINE_1_2_VMEM_H

#define SY_MAGAZINE_VMEM_IMPORTS
#include "../magazine-slab/vmem.h"

SY_BEGIN_DECLS

/* Gets at least `size` integers: where they begin, and how many they are (initially `size`), both
 * multiples of the quantum. 0, or anything else for none. */
typedef int (*vmem_import_fn)(void *arg, size_t size, uintptr_t *addrp, size_t *actual_size);

/* Takes back what an import gave, all of it, once. */
typedef void (*vmem_release_fn)(void *arg, uintptr_t addr, size_t size);

static inline int sy_magazine_vmem_import(sy_vmem *source, void *vm_, size_t size, uintptr_t *addr,
                                          size_t *got) {
    vmem_t *vm = (vmem_t *)vm_;
    (void)source;
    return vm->import_fn(vm->import_arg, size, addr, got);
}

static inline void sy_magazine_vmem_release(sy_vmem *source, void *vm_, uintptr_t addr,
                                            size_t size) {
    vmem_t *vm = (vmem_t *)vm_;
    (void)source;
    if (vm->release_fn) vm->release_fn(vm->import_arg, addr, size);
}

/* The integers from `base` on, `size` of them (0: none), in units of `quantum`, a power of two; and
 * what `import_fn` (NULL: nothing) brings when there is no room, `import_quantum` at a time at
 * least. `release_fn` may be NULL. NULL with errno EINVAL or ENOMEM. */
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
    return sy_magazine_vmem_create(&vm, &config);
}

SY_END_DECLS

#endif
