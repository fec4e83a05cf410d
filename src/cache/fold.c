/*
 * fold.c: folds blocks of ordinals. If not all objects of a block are live, the words and places of
 * those that are go to a record in side memory, the words become zero, and their memory goes back
 * to the system. A look-up that finds a word of zeros unfolds the block, in its slow path.
 *
 *     record:  | place of the first live object | of the second | ... | generations, 4 bytes each |
 *
 * A step:
 *
 *     1. choose     a block of whose ordinals some are in the block, and at most so many are out
 *     2. announce   a move of each object whose ordinal is out; all must be live, and not pinned
 *     3. wait       for the read guards that began before
 *     4. begin      the move of each; from here on, who looks one of them up waits
 *     5. fold       under the cache's lock, if the block has lost and got no ordinal since 1
 *
 * What another thread calls off, or finds changed, ends the step, and the objects are live as
 * before. So a block is folded and unfolded under the lock, while no thread has an object of it.
 *
 * While a block is folded, the directory has its *sign*, a number that names the cache. By it a
 * slow path finds out, without the lock, that the ordinal of any handle belongs to a folded block
 * of its cache. Under the lock it asks again.
 */
#include <errno.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "base/fork.h"
#include "cache/cache.h"
#include "cache/mover.h"
#include "chunk/side.h"
#include "magazine/readers.h"
#include "os/os.h"

enum {
    LOOKS = 256,      /* blocks that a step looks at */
    QUIET_PASSES = 2, /* a pass by age folds blocks that were not used in the last ones; */
    UNFOLDED = -8,    /* after a block was unfolded, so many more */
};

/* The most live objects of a block that is folded: so the record needs a quarter of the memory of
 * the words. A look-up has to unfold the block again: only a trim folds it for less, for half. */
enum { LIVE_MOST = SY_BLOCK_OBJECTS / 4, LIVE_MOST_WHOLE = SY_BLOCK_OBJECTS * 2 / 3 };

_Static_assert(LIVE_MOST_WHOLE <= (int)SY_MOVES_MOST, "a step folds a whole block");

/* ---- whether a block is folded ---- */

static uintptr_t sign_of(const sy_cache *cache) { return (uintptr_t)cache->client.number * 2 + 1; }

static bool has_sign(const sy_cache *cache, uint32_t ordinal) {
    return __atomic_load_n(&sy_block_entry_of(ordinal)->sign, __ATOMIC_RELAXED) == sign_of(cache);
}

/* ---- folding and unfolding; the lock is held ---- */

static uint32_t *generations_of(uint64_t *record, uint32_t count) {
    return (uint32_t *)(record + count);
}

/* The ordinal of the lowest bit of a word of a block's bitmap. */
static uint32_t ordinal_at(const sy_ordinal_block *block, uint32_t word, uint64_t bits) {
    return block->first + 2 * (word * 64 + sy_lowest_bit(bits));
}

/* The places first, which are no words: the directory looks for the highest generation. */
static size_t clear(sy_ordinal_block *block) {
    uint64_t *words = sy_directory_words() + block->first;
    for (int i = 1; i < SY_BLOCK_ORDINALS; i += 2) __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
    return sy_ordinals_clear(block->first, SY_BLOCK_ORDINALS, &block->highest);
}

/* Returns the bytes discarded. */
static size_t fold(sy_cache *cache, sy_ordinal_block *block, const sy_moves *moves,
                   uint64_t *record) {
    SY_HOLDS(&cache->lock);
    uint32_t *generations = generations_of(record, (uint32_t)moves->chosen);
    for (size_t i = 0; i < moves->chosen; i++) {
        const sy_moving *object = &moves->objects[i];
        record[i] = (uint64_t)object->from << SY_HANDLE_PLACE;
        generations[i] = (uint32_t)(object->live >> SY_HANDLE_GENERATION);
    }
    sy_block_delist(&cache->blocks, block);
    sy_fork_order();
    block->folded = record;
    sy_fork_order(); /* a child that has the sign has the record */
    sy_block_sign(block->first, sign_of(cache));
    __atomic_store_n(&cache->blocks.folds, cache->blocks.folds + 1, __ATOMIC_RELEASE);
    sy_block_enlist(&cache->blocks, block);
    return clear(block); /* releases the sign and the count */
}

/* A word that is there already, in the child of a fork, is newer. The place is the same: without
 * the lock no slot is joined with an ordinal of the block. */
static void restore(const sy_cache *cache, uint32_t ordinal, uint64_t place, uint64_t generation) {
    uint64_t *words = sy_directory_words() + ordinal;
    __atomic_store_n(&words[1], place, __ATOMIC_RELAXED);
    if (__atomic_load_n(&words[0], __ATOMIC_RELAXED)) return;
    __atomic_store_n(&words[0], generation << SY_HANDLE_GENERATION | cache->names.slot,
                     __ATOMIC_RELEASE);
}

/* In the child of a fork no lock is needed. */
void sy_block_unfold(sy_cache *cache, sy_ordinal_block *block) {
    uint64_t *record = block->folded;
    uint32_t count = sy_block_out(block), i = 0;
    const uint32_t *generations = generations_of(record, count);
    for (uint32_t word = 0; word < SY_BLOCK_BITMAP_WORDS; word++)
        for (uint64_t out = ~block->free[word]; out; out &= out - 1, i++)
            restore(cache, ordinal_at(block, word, out), record[i], generations[i]);
    atomic_thread_fence(memory_order_release); /* who finds no sign finds the words */
    sy_block_sign(block->first, 0);
    sy_block_delist(&cache->blocks, block);
    sy_fork_order(); /* until then, a child unfolds it once more */
    block->folded = NULL;
    block->quiet = UNFOLDED;
    sy_block_enlist(&cache->blocks, block);
    sy_side_give(record, sy_folded_bytes(count));
}

/* Unfolds the ordinal's block, if it is folded; returns the word. */
static uint64_t unfolded_word(sy_cache *cache, uint32_t ordinal) {
    sy_lock_acquire(&cache->lock);
    if (has_sign(cache, ordinal)) sy_block_unfold(cache, sy_block_of(ordinal));
    uint64_t word = __atomic_load_n(&cache->names.words[ordinal], __ATOMIC_RELAXED);
    sy_lock_release(&cache->lock);
    return word;
}

static uint64_t folds_of(const sy_cache *cache) {
    return __atomic_load_n(&cache->blocks.folds, __ATOMIC_ACQUIRE);
}

/* A word of zeros stands for a free ordinal only if its block is not folded, and was not folded
 * between two looks. */
SY_COLD uint64_t sy_names_word_slow(const struct sy_handle_head *head, uint32_t ordinal) {
    sy_cache *cache = (sy_cache *)(uintptr_t)head;
    if (!sy_names_move(head)) return 0;
    for (;;) {
        uint64_t folds = folds_of(cache);
        bool folded = has_sign(cache, ordinal);
        atomic_thread_fence(memory_order_acquire); /* if it was unfolded, the words are there */
        if (folded) return unfolded_word(cache, ordinal);
        uint64_t word = __atomic_load_n(&head->words[ordinal], __ATOMIC_ACQUIRE);
        if (word || folds == folds_of(cache)) return word;
    }
}

/* ---- steps ---- */

static bool may_fold(sy_ordinal_block *block, bool whole, bool aged) {
    if (block->folded) return false;
    if (aged && block->quiet < QUIET_PASSES) {
        block->quiet++;
        return false;
    }
    uint32_t out = sy_block_out(block);
    return out > 0 && out <= (whole ? LIVE_MOST_WHOLE : LIVE_MOST);
}

/* The next block that may be folded, among the next few; NULL: none. The lock is held. */
static sy_ordinal_block *next_block(sy_blocks *blocks, bool whole, bool aged) {
    for (int looks = 0; looks < LOOKS && blocks->next; looks++) {
        sy_ordinal_block *block = blocks->next;
        blocks->next = block->next;
        if (may_fold(block, whole, aged)) return block;
    }
    return NULL;
}

/* The objects whose ordinals are out of the block. The lock is held. */
static void choose_objects(const sy_cache *cache, const sy_ordinal_block *block, sy_moves *moves) {
    for (uint32_t word = 0; word < SY_BLOCK_BITMAP_WORDS; word++)
        for (uint64_t out = ~block->free[word]; out; out &= out - 1) {
            uint32_t ordinal = ordinal_at(block, word, out);
            moves->objects[moves->chosen++] = (sy_moving){
                .ordinal = ordinal,
                .from = sy_moved_place(&cache->names, ordinal),
                .to = sy_moved_place(&cache->names, ordinal),
            };
        }
}

/* Announces and begins the moves, which lead nowhere; returns how many it could begin: others have
 * called the next one off. */
static size_t begin_moves(const sy_cache *cache, const sy_moves *moves, size_t *announced) {
    size_t begun = 0;
    for (*announced = 0; *announced < moves->chosen; ++*announced)
        if (!sy_moving_announce(&cache->names, (sy_moving *)&moves->objects[*announced])) return 0;
    if (!sy_readers_await()) return 0;
    while (begun < moves->chosen && sy_moving_begin(&cache->names, &moves->objects[begun])) begun++;
    return begun;
}

static void end_moves(const sy_cache *cache, const sy_moves *moves, size_t begun,
                      size_t announced) {
    for (size_t i = 0; i < begun; i++) sy_moving_end(&cache->names, &moves->objects[i]);
    for (size_t i = begun; i < announced; i++) sy_moving_cancel(&cache->names, &moves->objects[i]);
}

/* No word may have the last generation: a free word would begin again above it. */
static bool has_generations(const sy_ordinal_block *block) {
    const uint64_t *words = sy_directory_words() + block->first;
    for (int i = 0; i < SY_BLOCK_ORDINALS; i += 2)
        if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) >> SY_HANDLE_GENERATION ==
            SY_HANDLE_GENERATIONS_MAX)
            return false;
    return true;
}

/* If the system does not take the memory, this walk folds no further block. */
static size_t fold_or_unfold(sy_cache *cache, sy_ordinal_block *block, const sy_moves *moves,
                             uint64_t *record) {
    size_t bytes = fold(cache, block, moves, record);
    if (bytes) return bytes;
    sy_block_unfold(cache, block);
    cache->blocks.next = NULL;
    return 0;
}

/* While the moves are under way, the block has a live object: so it stays. */
static bool fold_if_unchanged(sy_cache *cache, sy_ordinal_block *block, const uint64_t *free,
                              const sy_moves *moves, uint64_t *record, size_t *bytes) {
    sy_lock_acquire(&cache->lock);
    bool same = true;
    for (int i = 0; i < SY_BLOCK_BITMAP_WORDS; i++) same &= block->free[i] == free[i];
    bool folds = same && has_generations(block);
    if (folds) *bytes += fold_or_unfold(cache, block, moves, record);
    sy_lock_release(&cache->lock);
    return folds;
}

static void try_to_fold(sy_cache *cache, sy_ordinal_block *block, const uint64_t *free,
                        const sy_moves *moves, size_t *bytes) {
    size_t size = sy_folded_bytes(moves->chosen), announced;
    uint64_t *record = sy_side_take(size);
    if (!record) return;
    size_t begun = begin_moves(cache, moves, &announced);
    if (begun == moves->chosen && fold_if_unchanged(cache, block, free, moves, record, bytes))
        return;
    end_moves(cache, moves, begun, announced);
    sy_side_give(record, size);
}

/* Whether the memory of a block's words can go back to the system. */
static bool can_discard(const sy_cache *cache) {
    return sy_os_has(SY_OS_DISCARDS) && !(cache->flags & SY_LOCKED) &&
           sy_os_page_size() <= SY_BLOCK_ORDINALS * sizeof(uint64_t);
}

bool sy_blocks_fold_step(sy_cache *cache, sy_compaction *walk, bool aged) {
    uint64_t free[SY_BLOCK_BITMAP_WORDS];
    if (!can_discard(cache)) return false;
    sy_moves *moves = sy_mover_begin(cache, walk->wait_ns);
    if (!moves) return false;
    int error = errno;
    sy_lock_acquire(&cache->lock);
    if (!walk->folding) cache->blocks.next = cache->blocks.all;
    walk->folding = true;
    sy_ordinal_block *block = next_block(&cache->blocks, walk->whole, aged);
    if (block) choose_objects(cache, block, moves);
    for (int i = 0; block && i < SY_BLOCK_BITMAP_WORDS; i++) free[i] = block->free[i];
    sy_lock_release(&cache->lock);
    if (block) try_to_fold(cache, block, free, moves, &walk->discarded);
    sy_lock_acquire(&cache->lock);
    bool more = cache->blocks.next != NULL;
    sy_lock_release(&cache->lock);
    sy_mover_end();
    errno = error;
    return more;
}
