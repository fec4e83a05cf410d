/*
 * tags.c: the two kinds of tags of magazine-slab 1.2.
 */
#include "compat/compat.h"

#include <slab.h>
#include <slab_tags.h>

#define TAG_NET MAKE_POOL_TAG('N', 'e', 't', 'X')
#define TAG_TMP MAKE_POOL_TAG('T', 'm', 'p', '!')

static struct slab_cache *cache, *untagged;

static void pool_tags_count_objects_and_bytes(void) {
    void *net = slab_alloc_tag(cache, TAG_NET), *tmp[3];
    EXPECT(net && !slab_pool_tag_find(TAG_TMP) && !slab_pool_tag_find(POOL_TAG_NONE));
    for (unsigned i = 0; i < 3; i++) EXPECT((tmp[i] = slab_alloc_tag(cache, TAG_TMP)) != NULL);
    const struct pool_tag_entry *found = slab_pool_tag_find(TAG_TMP);
    EXPECT(found && found->tag == TAG_TMP && found->obj_size == 60);
    EXPECT(atomic_load(&found->allocs) == 3 && atomic_load(&found->frees) == 0);
    EXPECT(atomic_load(&found->active_bytes) == 180);
    slab_free_tag(cache, tmp[0], TAG_TMP);
    slab_free_tag(cache, tmp[1], TAG_TMP);
    EXPECT(atomic_load(&found->frees) == 2 && atomic_load(&found->active_bytes) == 60);
    EXPECT(atomic_load(&found->peak_bytes) == 180);
    EXPECT(atomic_load(&slab_pool_tag_find(TAG_NET)->active_bytes) == 60);
    slab_free_tag(cache, tmp[2], TAG_TMP);
    slab_free_tag(cache, net, TAG_NET);
    EXPECT(atomic_load(&found->active_bytes) == 0);
}

static void what_was_not_allocated_with_a_tag_is_counted_below_zero(void) {
    void *object = slab_alloc(cache);
    slab_free_tag(cache, object, MAKE_POOL_TAG('l', 'e', 's', 's'));
    const struct pool_tag_entry *found = slab_pool_tag_find(MAKE_POOL_TAG('l', 'e', 's', 's'));
    EXPECT(found && atomic_load(&found->active_bytes) == -60 && atomic_load(&found->frees) == 1);
    EXPECT(slab_alloc_tag(cache, found->tag) && slab_alloc_tag(cache, found->tag));
    EXPECT(atomic_load(&found->active_bytes) == 60 && atomic_load(&found->peak_bytes) == 60);
}

static void a_cache_without_the_flag_counts_nothing(void) {
    POOL_TAG tag = MAKE_POOL_TAG('n', 'o', 'n', 'e');
    void *object = slab_alloc_tag(untagged, tag);
    EXPECT(object);
    slab_free_tag(untagged, object, tag);
    EXPECT(!slab_pool_tag_find(tag));
}

static void named_tags_count_between_init_and_fini(void) {
    slab_tag_t tag = SLAB_TAG('T', 'e', 's', 't');
    void *objects[10];
    slab_free_tagged(untagged, slab_alloc_tagged(untagged, "Test"), "Test");
    EXPECT(!slab_tag_lookup(tag)); /* counting has not begun */
    slab_tags_init();
    EXPECT(!slab_tag_lookup(tag));
    for (unsigned i = 0; i < 10; i++) EXPECT((objects[i] = slab_alloc_tagged(untagged, "Test")));
    const struct slab_tag_stats *found = slab_tag_lookup(tag);
    EXPECT(found && found->tag == tag && atomic_load(&found->alloc_count) == 10);
    for (unsigned i = 0; i < 7; i++) slab_free_tagged(untagged, objects[i], "Test, more of it");
    EXPECT(found->free_count == 7 && found->active_count == 3 && found->peak_count == 10);
    EXPECT(found->active_bytes == 3 * 60 && found->peak_bytes == 600);
    slab_tag_alloc(tag, 1000);
    EXPECT(found->peak_bytes == 1180 && found->active_count == 4);
    slab_tag_free(tag, 1000);
    for (unsigned i = 7; i < 10; i++) slab_free_tagged(untagged, objects[i], "Test");
    EXPECT(found->active_count == 0 && found->active_bytes == 0);
    slab_tags_fini();
    EXPECT(!slab_tag_lookup(tag));
    slab_tags_init();
    EXPECT(!slab_tag_lookup(tag) && found->alloc_count == 0);
    slab_tags_fini();
}

static void *allocate_and_free(void *arg) {
    (void)arg;
    for (unsigned i = 0; i < 2000; i++) {
        char tag[5] = {'a', 'b', (char)('a' + i % 16), (char)('a' + i / 16 % 16), '\0'};
        slab_free_tagged(cache, slab_alloc_tagged(cache, tag), tag);
        slab_free_tag(cache, slab_alloc_tag(cache, sy_slab_tag_of(tag)), sy_slab_tag_of(tag));
    }
    return NULL;
}

/* Threads that use a new tag at the same time make one entry for it. */
static void threads_enter_and_count(void) {
    uint64_t named = 0, pool = 0;
    slab_tags_init();
    in_threads(4, allocate_and_free, NULL);
    for (unsigned i = 0; i < 256; i++) {
        slab_tag_t tag = SLAB_TAG('a', 'b', 'a' + i % 16, 'a' + i / 16);
        const struct slab_tag_stats *found = slab_tag_lookup(tag);
        const struct pool_tag_entry *entry = slab_pool_tag_find(tag);
        EXPECT(found && found->active_count == 0 && found->peak_count >= 1);
        EXPECT(entry && entry->active_bytes == 0 && entry->allocs == entry->frees);
        named += found->alloc_count;
        pool += entry->allocs;
    }
    EXPECT(named == 8000 && pool == 8000);
    slab_tags_fini();
}

static void report(void *what) {
    if (what)
        slab_pool_tag_stats();
    else
        slab_tags_fini();
}

static void tags_are_reported(void) {
    char text[1 << 16];
    overhear(report, "pool", text, sizeof text);
    EXPECT(strstr(text, "tag 'Tmp!': 3 allocated, 3 freed, 0 live, 0 bytes, at most 180\n"));
    slab_tags_init();
    slab_tag_alloc(SLAB_TAG('l', 'e', 'f', 't'), 24);
    slab_tag_alloc(SLAB_TAG('g', 'o', 'n', 'e'), 24);
    slab_tag_free(SLAB_TAG('g', 'o', 'n', 'e'), 24);
    overhear(report, NULL, text, sizeof text);
    EXPECT(strcmp(text,
                  "tag 'left': 1 allocated, 0 freed, 1 live, at most 1, 24 bytes, at most 24\n") ==
           0);
}

int main(void) {
    cache = slab_cache_create("tagged", 60, 0, SLAB_POOL_TAGS, NULL, NULL);
    untagged = slab_cache_create("untagged", 60, 0, 0, NULL, NULL);
    EXPECT(cache && untagged);
    pool_tags_count_objects_and_bytes();
    what_was_not_allocated_with_a_tag_is_counted_below_zero();
    a_cache_without_the_flag_counts_nothing();
    named_tags_count_between_init_and_fini();
    threads_enter_and_count();
    tags_are_reported();
    sy_cache_destroy_all(cache->cache);
    slab_cache_destroy(untagged);
    return 0;
}
