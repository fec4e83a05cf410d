#include "compat/together/together.h"

/* Includes the headers as magazine-slab's own test does. */
#include "slab.h"
#include "slab_tags.h"

int with_magazine_slab_1_2(void) {
    struct slab_cache *cache =
        slab_cache_create("tagged", 64, 0, SLAB_QUARANTINE | SLAB_POOL_TAGS, NULL, NULL);
    void *obj = slab_alloc_tag(cache, MAKE_POOL_TAG('b', 'o', 't', 'h'));
    const struct pool_tag_entry *both = slab_pool_tag_find(MAKE_POOL_TAG('b', 'o', 't', 'h'));
    if (!obj || !both) return 1;
    slab_free_tag(cache, obj, MAKE_POOL_TAG('b', 'o', 't', 'h'));
    if (slab_cache_verify(cache) != 0 || atomic_load(&both->frees) != 1) return 2;
    slab_cache_destroy(cache);
    return 0;
}
