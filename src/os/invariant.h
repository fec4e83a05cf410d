/*
 * invariant.h: SY_INVARIANT checks in debug builds a condition that holds whenever a structure
 * passes from one layer to another.
 *
 *     SY_INVARIANT(sy_slab_is_valid(slab, layout));
 *
 * A build with SY_DEBUG evaluates the condition. If it is false, the process writes the condition
 * and its place to stderr, and aborts. Other builds compile the condition and never evaluate it.
 *
 * Each structure has a predicate beside its code, which is also its documentation:
 *
 *     sy_slab_is_valid, bins_are_ordered        cache/slab.c
 *     magazine_is_bounded                       magazine/depot.c
 *     slot_is_bounded                           magazine/slot.c
 *     magazine_is_out                           magazine/store.c
 *     segment_neighbours_agree                  vmem/segments.c
 *     chunk_is_valid                            chunk/chunk.c
 *     word_is_free                              cache/handle.c
 *     pool_is_bounded                           pool/pool.c
 *
 * The caller holds the lock that guards the structure. A predicate takes no lock and changes
 * nothing. Its time is bounded, so that debug builds stay usable. The sy_*_verify functions check
 * whole structures; tests call them while no other thread uses the library.
 */
#ifndef SY_OS_INVARIANT_H
#define SY_OS_INVARIANT_H

#ifdef SY_DEBUG
/* Writes the condition and its place to stderr, and aborts. */
_Noreturn void sy_invariant_broken(const char *condition, const char *file, int line);

#    define SY_INVARIANT(condition) \
        ((condition) ? (void)0 : sy_invariant_broken(#condition, __FILE__, __LINE__))
#else
#    define SY_INVARIANT(condition) ((void)(0 && (condition)))
#endif

#endif
