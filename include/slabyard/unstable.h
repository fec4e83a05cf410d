/**
 * slabyard/unstable.h: any version may change or remove what is here, even a version that is
 * otherwise compatible (docs/versions.md). slabyard.h does not include it.
 *
 * A program that reads or changes the words of handles depends on their form. handle.h shows it
 * beside its inline functions. A program may set the state dying with 0 pins. The object then
 * belongs to the thread that stored the word, and no function of the library changes it. The thread
 * ends this state by storing a free word and putting the ordinal back
 * (SY_ABI_NAME(sy_handle_put_slow)).
 */
#ifndef SLABYARD_UNSTABLE_H
#define SLABYARD_UNSTABLE_H

#include <slabyard/handle.h>

SY_BEGIN_DECLS

/**
 * Lists the ordinals of a cache, for programs that read the words of handles. The objects of
 * a slab have consecutive ordinals. The function writes the first ordinal of each slab that the
 * cache has at this moment to `firsts`, if `room` entries are enough for all of them; else it
 * writes none. It sets *slots to the number of objects in a slab. An ordinal may belong to another
 * cache by the time that you use it; its word then says so. With SY_MOVABLE blocks of ordinals take
 * the place of slabs, and each second ordinal is no object's; a word of zeros may be one of a live
 * object, whose word a look-up brings back (sy_handle_get).
 *
 * Returns the number of slabs; 0 for a cache without SY_HANDLES.
 *
 *     uint32_t firsts[256], slots;
 *     size_t slabs = sy_handle_slabs(sessions, firsts, 256, &slots);
 *     for (size_t i = 0; i < slabs && slabs <= 256; i++)
 *         printf("ordinals %" PRIu32 " to %" PRIu32 "\n", firsts[i], firsts[i] + slots - 1);
 */
SY_API size_t sy_handle_slabs(sy_cache *cache, uint32_t *firsts, size_t room, uint32_t *slots);

SY_END_DECLS

#endif
