/*
 * caches.c: what magazine-slab 1.2 adds to version 1.0: arenas that import, caches whose memory
 * comes from an arena, quarantine, verification.
 */
#include "compat/compat.h"

#include <slab.h>
#include <sys/mman.h>
#include <vmem.h>

#include <slabyard/fail.h>

static size_t imported, released, imports;

static int import_pages(void *arg, size_t size, uintptr_t *addrp, size_t *actual) {
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return -1;
    EXPECT(arg == &imported && *actual == size);
    *addrp = (uintptr_t)pages;
    imported += size;
    imports++;
    return 0;
}

static void release_pages(void *arg, uintptr_t addr, size_t size) {
    EXPECT(arg == &imported && munmap((void *)addr, size) == 0);
    released += size;
}

static vmem_t *pages(void) {
    imported = released = imports = 0;
    return vmem_create("pages", 0, 0, 4096, import_pages, release_pages, &imported, 64 * 1024);
}

static void an_arena_imports_what_it_needs_and_releases_it(void) {
    vmem_t *vm = pages();
    uintptr_t some, more;
    EXPECT(imported == 0 && vmem_alloc(vm, 4096, &some) == 0 && imported == 64 * 1024);
    EXPECT(vmem_alloc(vm, 60 * 1024, &more) == 0 && imports == 1);
    memset((void *)more, 1, 60 * 1024);
    vmem_free(vm, more, 60 * 1024);
    EXPECT(vmem_alloc(vm, 1 << 20, &more) == 0 && imports == 2 && imported == (64 + 1024) * 1024);
    vmem_free(vm, more, 1 << 20);
    vmem_free(vm, some, 4096);
    vmem_destroy(vm);
    EXPECT(released == imported);
}

static int import_nothing(void *arg, size_t size, uintptr_t *addrp, size_t *actual) {
    (void)arg, (void)size, (void)addrp, (void)actual;
    return -1;
}

static void without_import_or_release_an_arena_is_as_before(void) {
    uintptr_t value = 7;
    vmem_t *vm = vmem_create("ids", 1, 100, 1, NULL, NULL, NULL, 64);
    EXPECT(vmem_alloc(vm, 100, &value) == 0 && value == 1 && vmem_alloc(vm, 1, &value) == -1);
    vmem_destroy(vm);
    vm = vmem_create("none", 0, 0, 1, import_nothing, NULL, NULL, 0);
    EXPECT(vmem_alloc(vm, 1, &value) == -1);
    EXPECT(vmem_add(vm, 5, 1) == 0 && vmem_alloc(vm, 1, &value) == 0 && value == 5);
    vmem_destroy(vm);
}

enum { OBJECTS = 200 };
static void *objects[OBJECTS];

static void destroy(void *vm) { vmem_destroy(vm); }

static void a_cache_lies_in_the_memory_of_an_arena(void) {
    char text[1000];
    vmem_t *vm = pages();
    struct slab_cache *one = slab_cache_create_vmem("one", 64, 0, 0, NULL, NULL, vm);
    struct slab_cache *two = slab_cache_create_vmem("two", 1000, 0, SLAB_DEBUG, NULL, NULL, vm);
    EXPECT(one && two);
    for (unsigned i = 0; i < OBJECTS; i++) {
        size_t size = i % 2 ? 64 : 1000;
        EXPECT((objects[i] = slab_alloc(i % 2 ? one : two)) != NULL);
        own(objects[i], size, i);
    }
    EXPECT(imported >= 4 << 20);
    for (unsigned i = 0; i < OBJECTS; i++) {
        EXPECT(is_own(objects[i], i % 2 ? 64 : 1000, i));
        slab_free(i % 2 ? one : two, objects[i]);
    }
    slab_cache_destroy(one);
    overhear(destroy, vm, text, sizeof text);
    EXPECT(strstr(text, "it stays") && released < imported); /* cache `two` still uses it */
    slab_cache_destroy(two);
    vmem_destroy(vm);
    EXPECT(released == imported);
}

static void an_arena_that_is_too_small_serves_nothing(void) {
    static char storage[1 << 20];
    uintptr_t start = ((uintptr_t)storage + 4095) / 4096 * 4096;
    vmem_t *vm = vmem_create("small", start, 64 * 1024, 4096, NULL, NULL, NULL, 0);
    struct slab_cache *cache = slab_cache_create_vmem("small", 64, 0, 0, NULL, NULL, vm);
    errno = 0;
    EXPECT(cache && slab_alloc(cache) == NULL && errno == ENOMEM);
    slab_cache_destroy(cache);
    vmem_destroy(vm);
    cache = slab_cache_create_vmem("plain", 64, 0, 0, NULL, NULL, NULL);
    EXPECT(cache && (objects[0] = slab_alloc(cache)) != NULL);
    slab_free(cache, objects[0]);
    slab_cache_destroy(cache);
}

/* An arena or a cache that cannot be created leaves nothing behind. */
static void no_memory_is_null(void) {
    sy_stats before, after;
    sy_get_stats(&before);
    for (unsigned i = 1; i < 20; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "*:%u", i);
        EXPECT(sy_set_failures(text) == 0);
        vmem_t *vm = pages();
        struct slab_cache *cache =
            vm ? slab_cache_create_vmem("c", 64, 0, 0, NULL, NULL, vm) : NULL;
        void *object = slab_alloc(cache);
        EXPECT(sy_set_failures(NULL) == 0);
        slab_free(cache, object);
        slab_cache_destroy(cache);
        vmem_destroy(vm);
        EXPECT(released == imported);
    }
    sy_get_stats(&after);
    EXPECT(after.caches == before.caches);
}

static void what_is_freed_waits_in_quarantine(void) {
    struct slab_cache *cache =
        slab_cache_create("waits", 64, 0, SLAB_QUARANTINE | SLAB_POISON, NULL, NULL);
    void *one = slab_alloc(cache), *two;
    slab_free(cache, one);
    EXPECT((two = slab_alloc(cache)) != NULL && two != one);
    slab_free(cache, two);
    for (unsigned i = 0; i < SLAB_QUARANTINE_SIZE + 10; i++)
        EXPECT((objects[i] = slab_alloc(cache)));
    for (unsigned i = 0; i < SLAB_QUARANTINE_SIZE + 10; i++) slab_free(cache, objects[i]);
    slab_cache_destroy(cache);
}

static void a_cache_is_verified(void) {
    struct slab_cache *cache = slab_cache_create("seen", 48, 0, SLAB_POISON, NULL, NULL);
    sy_fault_handler before = sy_set_fault_handler(note_fault);
    EXPECT(slab_cache_verify(cache) == 0 && slab_cache_verify(NULL) == -1);
    for (unsigned i = 0; i < OBJECTS; i++) EXPECT((objects[i] = slab_alloc(cache)) != NULL);
    EXPECT(slab_cache_verify(cache) == 0);
    for (unsigned i = 0; i < OBJECTS; i++) slab_free(cache, objects[i]);
    EXPECT(slab_cache_verify(cache) == 0 && faults == 0);
    *(char *)objects[7] ^= 1;
    EXPECT(slab_cache_verify(cache) == 1 && faults == 1);
    EXPECT(last_fault.kind == SY_FAULT_WRITE_AFTER_FREE && last_fault.address == objects[7]);
    *(char *)objects[7] ^= 1;
    EXPECT(slab_cache_verify(cache) == 0);
    sy_set_fault_handler(before);
    slab_cache_destroy(cache);
}

int main(void) {
    an_arena_imports_what_it_needs_and_releases_it();
    without_import_or_release_an_arena_is_as_before();
    a_cache_lies_in_the_memory_of_an_arena();
    an_arena_that_is_too_small_serves_nothing();
    no_memory_is_null();
    what_is_freed_waits_in_quarantine();
    a_cache_is_verified();
    return 0;
}
