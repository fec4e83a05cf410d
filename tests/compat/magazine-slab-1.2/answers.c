/*
 * answers.c: bad input to those functions of magazine-slab 1.2 that version 1.0 does not have, or
 * has with other arguments. Their answers have to be those of magazine-slab. This program runs with
 * checks and without.
 */
#include "compat/compat.h"

#include <slab.h>
#include <slab_tags.h>
#include <vmem.h>

enum { TAG = 0x20202020 };

static void *volatile none; /* NULL, which the compiler cannot know */
static struct slab_cache *cache, *other;
static uintptr_t value;
static uint64_t memory[8];

static bool arena_makes(uintptr_t base, size_t size, size_t quantum) {
    return vmem_create("arena", base, size, quantum, NULL, NULL, NULL, 0) != NULL;
}

static int import_nothing(void *arg, size_t size, uintptr_t *addrp, size_t *actual) {
    (void)arg, (void)size, (void)addrp, (void)actual;
    return -1;
}

static vmem_t *importing(size_t import_quantum) {
    return vmem_create("importing", 0, 0, 1, import_nothing, NULL, NULL, import_quantum);
}

static bool makes(const char *name, size_t size, size_t align, uint32_t flags, vmem_t *arena) {
    return slab_alloc(slab_cache_create_vmem(name, size, align, flags, NULL, NULL, arena)) != NULL;
}

static bool tag_reports(void *object) {
    slab_free_tag(cache, object, TAG);
    return reported();
}

static bool tagged_reports(void *object) {
    slab_free_tagged(cache, object, "Name");
    return reported();
}

static void *freed(void) {
    void *object = slab_alloc(cache);
    slab_free(cache, object);
    return object;
}

static bool counts(size_t size) {
    slab_tags_init();
    slab_tag_alloc(TAG, size);
    bool counted = slab_tag_lookup(TAG) && slab_tag_lookup(TAG)->active_bytes == size;
    slab_tag_free(TAG, size);
    return counted && slab_tag_lookup(TAG)->active_bytes == 0;
}

#define ANSWERS(A)                                                                                 \
    A(vmem_create, NOTHING, vmem_create(NULL, 0, 8, 1, NULL, NULL, NULL, 8) && importing(8))       \
    A(vmem_create, ZERO, arena_makes(0, 0, 0) && vmem_alloc(importing(0), 1, &value) == -1)        \
    A(vmem_create, HUGE_SIZE,                                                                      \
      !arena_makes(2, SIZE_MAX, 1) && !arena_makes(0, 8, SIZE_MAX) &&                              \
          vmem_alloc(importing(SIZE_MAX), 1, &value) == -1)                                        \
    A(slab_cache_create_vmem, NOTHING,                                                             \
      makes(NULL, 8, 0, 0, NULL) && !makes("nothing imported", 8, 0, 0, importing(0)))             \
    A(slab_cache_create_vmem, ZERO, !makes("empty", 0, 0, 0, NULL))                                \
    A(slab_cache_create_vmem, HUGE_SIZE,                                                           \
      !makes("huge", SIZE_MAX, 0, 0, NULL) && !makes("aligned", 8, SIZE_MAX, 0, NULL) &&           \
          !makes("flags", 8, 0, UINT32_MAX, NULL))                                                 \
    A(slab_cache_verify, NOTHING, slab_cache_verify(none) == -1)                                   \
    A(slab_alloc_tag, NOTHING, !slab_alloc_tag(none, TAG) && !slab_pool_tag_find(TAG))             \
    A(slab_free_tag, NOTHING,                                                                      \
      (slab_free_tag(cache, NULL, TAG), slab_free_tag(none, memory, TAG),                          \
       slab_free_tag(none, NULL, TAG), !slab_pool_tag_find(TAG)))                                  \
    A(slab_free_tag, FOREIGN, tag_reports(memory) && (faults = 0, tag_reports(slab_alloc(other)))) \
    A(slab_free_tag, STALE, tag_reports(freed()))                                                  \
    A(slab_alloc_tagged, NOTHING,                                                                  \
      !slab_alloc_tagged(none, "Name") && slab_alloc_tagged(cache, none))                          \
    A(slab_free_tagged, NOTHING,                                                                   \
      (slab_free_tagged(cache, NULL, "Name"), slab_free_tagged(none, memory, "Name"),              \
       slab_free_tagged(cache, slab_alloc(cache), none), faults == 0))                             \
    A(slab_free_tagged, FOREIGN,                                                                   \
      tagged_reports(memory) && (faults = 0, tagged_reports(slab_alloc(other))))                   \
    A(slab_free_tagged, STALE, tagged_reports(freed()))                                            \
    A(slab_pool_tag_find, OTHER, !slab_pool_tag_find(0) && !slab_pool_tag_find(UINT32_MAX))        \
    A(slab_pool_tag_stats, OTHER, (slab_pool_tag_stats(), true))                                   \
    A(slab_tags_init, OTHER, (slab_tags_init(), slab_tags_init(), true))                           \
    A(slab_tags_fini, OTHER, (slab_tags_fini(), slab_tags_fini(), true))                           \
    A(slab_tag_alloc, ZERO, (slab_tag_alloc(TAG, 0), !slab_tag_lookup(TAG)) && counts(0))          \
    A(slab_tag_alloc, HUGE_SIZE, counts(SIZE_MAX))                                                 \
    A(slab_tag_free, ZERO, (slab_tag_free(TAG, 0), !slab_tag_lookup(TAG)) && counts(0))            \
    A(slab_tag_free, HUGE_SIZE, counts(SIZE_MAX))                                                  \
    A(slab_tag_lookup, OTHER, !slab_tag_lookup(0) && !slab_tag_lookup(TAG))                        \
    A(slab_tag_report, OTHER, (slab_tag_report(true), slab_tag_report(false), true))

ANSWERS(ANSWER_FUNCTION)
static const answer answers[] = {ANSWERS(ANSWER_ROW)};

int main(void) {
    size_t count = sizeof answers / sizeof *answers;
    sy_set_fault_handler(note_fault);
    cache = slab_cache_create("cache", 64, 0, SLAB_POOL_TAGS, NULL, NULL);
    other = slab_cache_create("other", 64, 0, SLAB_POOL_TAGS, NULL, NULL);
    EXPECT(cache && other);
    return check_header(COMPAT "slab.h", answers, count) +
           check_header(COMPAT "vmem.h", answers, count) +
           check_header(COMPAT "slab_tags.h", answers, count) + check_answers(answers, count);
}
