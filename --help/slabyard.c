/*
 * slabyard.c: Slabyard 0.2.0, all sources of the library in one; slabyard.h beside it says how to
 * compile it. Reports name the callers sooner with -fno-omit-frame-pointer. If a constructor
 * throws, or ends its thread (slabyard/cache.h), it has to be compiled with -fexceptions.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#ifndef SY_NO_INLINE
#    define SY_NO_INLINE /* what is inline for callers is a function here */
#endif
#define SY_AMALGAMATION

/*
 * MIT License
 *
 * Copyright (c) 2026 The Slabyard authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to deal
 * in the Software without restriction, including without limitation the rights
 * to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
 * copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all
 * copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
 * SOFTWARE.
 */

#include "slabyard.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

/* What is not declared in slabyard.h is nobody else's. */
#pragma GCC visibility push(hidden)

/* Inline functions of headers, not all of which are called. */
#pragma GCC diagnostic ignored "-Wunused-function"

/* ==== src/cache/account.c ==== */

/*
 * account.c: visits all caches, and writes the account of them in words. The rows are collected in
 * pages of their own and sorted there: nothing is allocated, and no cache is held while a line is
 * written.
 */
/*
 * account.h: the account of memory that the option `stats` asks for at the end of the process.
 * slabyard/stats.h has the doors. Above: keep/parts.c. Below: cache/.
 */
#ifndef SY_CACHE_ACCOUNT_H
#define SY_CACHE_ACCOUNT_H

/*
 * start.h: one-time start of the library, and fork.
 *
 * Each layer describes what it has to do at the start and around a fork as an `sy_part`: a constant
 * beside the code it names. The list of all parts is the one thing that knows every layer
 * (keep/parts.c). So a function that a program may call first starts the library by a call
 * downwards, and a layer that comes new, or goes, is one line of the list.
 */
#ifndef SY_OS_START_H
#define SY_OS_START_H

/* Members that are NULL are left out. */
typedef struct sy_part {
    /* Once, innermost part first: after it the part serves the parts outside of it. 0, or -1: the
     * start has failed, and a later one begins again with this part. */
    int (*start)(void);
    /* Once, in the same order, when all have started: may allocate, and call what allocates. */
    int (*finish)(void);
    /* Around a fork: takes its locks by sy_lock_hold, outermost part first; lets go of them by
     * sy_lock_drop, innermost first. */
    void (*hold)(void);
    void (*drop)(void);
    /* In the child, at once after all were let go. */
    void (*inherit)(void);
    /*
     * In the child, innermost first, once the thread holds nothing any more for the work that it
     * was in when it forked: what other threads had begun is ended or undone. Of what this thread
     * was in the midst of, in a function of the program's or when a signal came whose handler
     * forked, nothing is touched.
     */
    void (*recover)(void);
} sy_part;

/* In the order of their locks, outermost first (os/lock.h). Defined in keep/parts.c. */
extern SY_HIDDEN const sy_part *const sy_parts[];
extern SY_HIDDEN const size_t sy_part_count;

/*
 * Starts what has not started. 0, or -1 with ENOMEM: a later call tries again. Any thread. The
 * thread that is at it may come by here again, by an allocation of the system's functions: then 0
 * if an allocation can be served already, else -1.
 */
int sy_start(void);

/* What is made once and later than that, like a class of the heap, is made under this lock, which a
 * fork waits for: the child finds it made or not begun. False, and not locked: this thread has it,
 * and has come by here again in the same way. */
bool sy_start_lock(void);
void sy_start_unlock(void);

/* All locks of the library in their order, so that a copy of the process finds every structure
 * whole. */
void sy_start_lock_all(void);
void sy_start_unlock_all(void);

#endif

/* Has the account written at the end of the process, if the option asks for it. */
extern SY_HIDDEN const sy_part sy_account_part;

#endif

/*
 * bits.h: arithmetic on powers of two and on words of bits.
 *
 * Lowest layer: includes nothing of the project. Everything here is pure.
 */
#ifndef SY_BASE_BITS_H
#define SY_BASE_BITS_H

static inline bool sy_is_power_of_two(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

/* The least multiple of `unit` (a power of two) that is not below `value`; the caller knows that it
 * fits. */
static inline size_t sy_round_up(size_t value, size_t unit) {
    return (value + unit - 1) & ~(unit - 1);
}

static inline size_t sy_round_down(size_t value, size_t unit) { return value & ~(unit - 1); }

static inline size_t sy_divide_up(size_t value, size_t unit) {
    return value / unit + (value % unit != 0);
}

/* Index of the lowest set bit; word != 0. */
static inline unsigned sy_lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }

/* Index of the highest set bit; word != 0. */
static inline unsigned sy_highest_bit(uint64_t word) {
    return 63u - (unsigned)__builtin_clzll(word);
}

static inline unsigned sy_count_bits(uint64_t word) { return (unsigned)__builtin_popcountll(word); }

/* The `count` lowest bits set; count <= 64. */
static inline uint64_t sy_low_bits(unsigned count) {
    return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/*
 * The start of the lowest run of `length` set bits in `word` that begins at a multiple of `align`
 * (a power of two), or 64 if there is none. 1 <= length <= 64.
 */
static inline unsigned sy_find_run(uint64_t word, unsigned length, unsigned align) {
    uint64_t starts = word;
    for (unsigned have = 1; have < length;) {
        unsigned step = have < length - have ? have : length - have;
        starts &= starts >> step;
        have += step;
    }
    if (align > 1) {
        uint64_t allowed = 0;
        for (unsigned bit = 0; bit < 64; bit += align) allowed |= UINT64_C(1) << bit;
        starts &= allowed;
    }
    return starts ? sy_lowest_bit(starts) : 64;
}

/* Length of the longest run of set bits. */
static inline unsigned sy_longest_run(uint64_t word) {
    unsigned length = 0;
    for (; word; word &= word >> 1) length++;
    return length;
}

#endif
/*
 * text.h: text put together without allocating. What does not fit is cut off.
 *
 * Lowest layer: includes nothing of the project.
 */
#ifndef SY_BASE_TEXT_H
#define SY_BASE_TEXT_H

enum { SY_TEXT_MAX = 512 };

typedef struct sy_text {
    size_t length;
    char bytes[SY_TEXT_MAX];
} sy_text;

static inline void sy_text_add(sy_text *text, const char *more) {
    while (*more && text->length < SY_TEXT_MAX) text->bytes[text->length++] = *more++;
}

static inline void sy_text_add_in_base(sy_text *text, uint64_t value, unsigned base) {
    char digits[65], *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    sy_text_add(text, first);
}

static inline void sy_text_add_number(sy_text *text, uint64_t value) {
    sy_text_add_in_base(text, value, 10);
}

static inline void sy_text_add_hex(sy_text *text, uint64_t value) {
    sy_text_add(text, "0x");
    sy_text_add_in_base(text, value, 16);
}

#endif
/*
 * cache.h: what a cache is, for the files of this layer and for the heap, whose classes are caches.
 *
 * A cache is a client of the magazine layer: refill takes slots out of slabs, flush puts them back.
 * Its slabs are runs of units from chunk/.
 *
 *     slots in all slabs == free in slabs + out;  out + guarded == live + in magazines
 */
#ifndef SY_CACHE_CACHE_H
#define SY_CACHE_CACHE_H

/*
 * slab.h: one slab: its bitmap, and the order in which the slabs of a cache are used.
 *
 * A set bit says that the slot is in the slab; a clear one that it is out: live or in a magazine.
 * Nothing is written in or beside the slots.
 *
 * Slabs that are neither full nor empty wait in bins by how many slots are free: the bin of the
 * fullest is used first, and in it the slab at the lowest address, so that sparse and high slabs
 * drain. A slab is moved only when its free count leaves the range of its bin.
 *
 * All of it under the cache's lock. Below: chunk/. Above: the rest of cache/.
 */
#ifndef SY_CACHE_SLAB_H
#define SY_CACHE_SLAB_H

/*
 * layout.h: how the slabs of a cache are cut.
 *
 *     slab:  | colour | lead | slot 0 | slot 1 | ... | slot n-1 | rest of the tail |
 *            ^ start (a unit)  ^ first                the tail is colour and rest together
 *
 * With red zones a slot is longer than its object by two of them, that behind it and that before
 * the next one; the lead has that before the first. With edges there are as many bytes of a
 * pattern at each end of the slab, at least.
 *
 * Pure arithmetic. Above: cache.c.
 */
#ifndef SY_CACHE_LAYOUT_H
#define SY_CACHE_LAYOUT_H

enum {
    SY_SLOT_MIN = 8,              /* bytes; and slots are a multiple of it */
    SY_SLAB_SLOT_MAX = 128 << 10, /* larger objects are alone in their slab, a span */
    SY_SLAB_UNITS_MAX = 16,
    SY_SLAB_SLOTS_LEAST = 8, /* in a slab that is not a span */
    SY_COLOURS_MAX = 64,
};

typedef struct sy_layout {
    size_t slot;        /* bytes from one slot to the next */
    size_t align;       /* of objects */
    size_t slab_bytes;  /* a multiple of a unit */
    size_t lead;        /* bytes before slot 0, beside its colour */
    size_t zone;        /* bytes before an object, and behind it, that are its red zones */
    size_t colour_step; /* bytes between the colours: the larger of align and a cache line */
    uint32_t slots;     /* in a slab */
    uint32_t colours;   /* offsets at which slot 0 may begin: 0, colour_step, ... */
    uint32_t words;     /* of a bitmap over the slots */
    /*
     * index of a slot = offset * reciprocal >> 32, reciprocal = ceil(2^32 / slot). Offsets are
     * below 2^20 (16 units), so the error offset / 2^32 is below 2^-12; an exact multiple k * slot
     * gives k, as k + 2^-12 < k + 1. What is no multiple gives some index whose slot is not at that
     * offset.
     */
    uint64_t reciprocal;
} sy_layout;

/* The layout for objects of `size` at `align` (0: by default), both checked by the caller;
 * `colour`: where there is no tail, give up slots for a second colour; red zones of `zone` bytes,
 * and edges of `edge` bytes. */
sy_layout sy_layout_make(size_t size, size_t align, bool colour, size_t zone, size_t edge);

/* Bytes of the slab that the slots take, zones included, from the end of the colour on. */
static inline size_t sy_layout_used(const sy_layout *layout) {
    return layout->lead - layout->zone + layout->slots * layout->slot;
}

#endif
/*
 * chunk.h: runs of units for slabs and spans, and their descriptors.
 *
 *     chunk, 4 MiB at a multiple of 4 MiB:
 *     | unit 0   | unit 1      | unit 2    | unit 3    | ...       | unit 63 |
 *     | not used |<- a slab -->|<- a slab or a span -->|
 *     |          |  of 1 unit  |   of 2 to 63 units    |
 *
 *     its header, elsewhere (headers.h): sy_chunk, with a descriptor for each unit but the first
 *
 * A run of units is described by the descriptor of its first unit; `first_unit` leads there from
 * any address in the run. Runs that do not fit in a chunk, and alignments above 2 MiB, are large
 * spans: address space of their own, a descriptor of their own.
 *
 * With 63 descriptors a header has four pages of 4 KiB; with one for the first unit it would have
 * five. What is not used there is 1.6 % of address space and no memory.
 *
 * Free units are dirty (they hold what their last owner left, and memory) or clean (they read as
 * zero and hold none). Dirty ones are given out first; a trim cleans them.
 *
 * Below: memory.h, map.h, headers.h, os. Above: cache/ (slabs), heap/ (spans).
 */
#ifndef SY_CHUNK_CHUNK_H
#define SY_CHUNK_CHUNK_H

/*
 * heap_by_address.h: an intrusive pairing heap of nodes ordered by their own address.
 *
 * Gives the lowest node in O(1), takes a new one in O(1) and removes any in O(log n) amortised
 * (Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap", 1986). Slabs wait in such heaps, so
 * that the lowest of those that are equally full is filled first and the highest ones drain.
 *
 * Lowest layer; the caller holds the lock that guards the heap.
 */
#ifndef SY_BASE_HEAP_BY_ADDRESS_H
#define SY_BASE_HEAP_BY_ADDRESS_H

typedef struct sy_heap_node {
    struct sy_heap_node *child;    /* the first of its children */
    struct sy_heap_node *sibling;  /* the next child of its parent */
    struct sy_heap_node *previous; /* the sibling before it, or the parent of the first child */
} sy_heap_node;

/* Joins two trees (either may be NULL); gives the root. */
static inline sy_heap_node *sy_heap_join(sy_heap_node *a, sy_heap_node *b) {
    if (!a) return b;
    if (!b) return a;
    if (b < a) {
        sy_heap_node *lower = b;
        b = a;
        a = lower;
    }
    b->previous = a;
    b->sibling = a->child;
    if (a->child) a->child->previous = b;
    a->child = b;
    return a;
}

static inline void sy_heap_insert(sy_heap_node **root, sy_heap_node *node) {
    *node = (sy_heap_node){0};
    *root = sy_heap_join(*root, node);
}

/* Joins a list of siblings in two passes, without recursion; gives the root. */
static inline sy_heap_node *sy_heap_join_siblings(sy_heap_node *first) {
    sy_heap_node *pairs = NULL;
    while (first) {
        sy_heap_node *second = first->sibling;
        sy_heap_node *rest = second ? second->sibling : NULL;
        first->sibling = NULL;
        if (second) second->sibling = NULL;
        sy_heap_node *joined = sy_heap_join(first, second);
        joined->sibling = pairs;
        pairs = joined;
        first = rest;
    }
    sy_heap_node *root = NULL;
    while (pairs) {
        sy_heap_node *rest = pairs->sibling;
        pairs->sibling = NULL;
        root = sy_heap_join(root, pairs);
        pairs = rest;
    }
    if (root) root->previous = NULL;
    return root;
}

/* `node` is in the heap. */
static inline void sy_heap_remove(sy_heap_node **root, sy_heap_node *node) {
    if (node != *root) {
        if (node->previous->child == node)
            node->previous->child = node->sibling;
        else
            node->previous->sibling = node->sibling;
        if (node->sibling) node->sibling->previous = node->previous;
        *root = sy_heap_join(*root, sy_heap_join_siblings(node->child));
    } else {
        *root = sy_heap_join_siblings(node->child);
    }
}

#endif
/*
 * map.h: from an address to what is there, for every address.
 *
 * Two tables cover the whole address space of the process, in leaves for 4 GiB each. A leaf is made
 * when the first chunk or large span comes to lie there (sy_map_cover), and stays.
 *
 *     address:  46        32 31     22 21     16 15          0
 *               |   leaf    |  chunk  |  unit   |   offset   |
 *     classes: a byte a unit: the client number of the heap's size class whose slab it is, else 0
 *     owners:  a word a 4 MiB: the chunk there, or the large span that covers it, else NULL
 *
 * `leaf_at` says how far each leaf lies behind `nothing`, a leaf in which all is zero for ever. So
 * where no leaf was made, the zero there leads to `nothing`, and no lookup has to ask. A leaf is 72
 * KiB of address space and holds memory where there are chunks: 64 bytes of classes and 8 of owners
 * for each. `nothing` and the parts of `leaf_at` that are never written hold none.
 *
 * Any 64 bits may be looked up; nothing is followed that is not ours.
 *
 * Below: os. Above: the rest of chunk/ writes the maps; heap/ reads the classes in its fast path.
 */
#ifndef SY_CHUNK_MAP_H
#define SY_CHUNK_MAP_H

/*
 * cpu.h: what a processor is told besides loads and stores.
 *
 * Lowest layer: includes nothing of the project. The only place with a condition on the processor.
 */
#ifndef SY_BASE_CPU_H
#define SY_BASE_CPU_H

/* In a loop that waits for another processor. */
static inline void sy_cpu_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Asks for the line of `address` for writing; any value will do, it is not followed. On x86 by
 * name, since compilers for its baseline fall back to a prefetch for reading, which leaves the line
 * shared. */
static inline void sy_prefetch_for_write(uintptr_t address) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch((const void *)address, 1, 3);
#endif
}

/* Whether a frame pointer leads to two words: the caller's frame pointer and the return address. */
static inline bool sy_cpu_has_frames(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* A return address without what the processor signs it with: the upper 16 bits, on arm. */
static inline uintptr_t sy_cpu_return_address(uintptr_t stored) {
#if defined(__aarch64__)
    return stored & ((UINT64_C(1) << 48) - 1);
#else
    return stored;
#endif
}

/* The calling function has a frame pointer, however it is compiled, so that who walks a stack by
 * frame pointers sees its caller. For slow paths. */
static inline __attribute__((always_inline)) void sy_cpu_keep_frame(void) {
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
}

/* The value, computed as it stands: the compiler does not regroup the sum that it is with what is
 * added to it after. */
static inline uintptr_t sy_cpu_in_register(uintptr_t value) {
    __asm__("" : "+r"(value));
    return value;
}

/* Asks Valgrind, where the program runs under it: a number and five arguments, and its answer; else
 * `unanswered`. Anywhere else these instructions do nothing: rotations by 128 bits in all, then a
 * move of a register to itself, by which Valgrind knows them. */
static inline uintptr_t sy_valgrind_ask(const uintptr_t request[6], uintptr_t unanswered) {
#if defined(__x86_64__) && defined(__LP64__)
    __asm__ volatile(
        "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
        : "+d"(unanswered)
        : "a"(request)
        : "cc", "memory");
#elif defined(__aarch64__)
    register uintptr_t answer __asm__("x3") = unanswered;
    register const uintptr_t *asked __asm__("x4") = request;
    __asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61;"
                     "orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(asked)
                     : "cc", "memory");
    unanswered = answer;
#else
    (void)request;
#endif
    return unanswered;
}

#endif

enum {
    SY_UNIT_SHIFT = 16,
    SY_UNIT_BYTES = 1 << SY_UNIT_SHIFT,
    SY_CHUNK_SHIFT = 22,
    SY_CHUNK_BYTES = 1 << SY_CHUNK_SHIFT,
    SY_CHUNK_UNITS = SY_CHUNK_BYTES / SY_UNIT_BYTES,
    SY_LEAF_SHIFT = 32,
    SY_LEAF_UNITS = 1 << (SY_LEAF_SHIFT - SY_UNIT_SHIFT),
    SY_LEAF_CHUNKS = 1 << (SY_LEAF_SHIFT - SY_CHUNK_SHIFT),
#if defined(__x86_64__)
    SY_ADDRESS_BITS =
        47, /* what user space gets unless it asks for more by a hint, which we do not */
#else
    SY_ADDRESS_BITS = 48,
#endif
    SY_LEAVES = 1 << 16, /* for 48 bits, which is a half-word of an address */
};

_Static_assert(SY_CHUNK_UNITS == 64, "a word of bits covers a chunk");
_Static_assert(SY_ADDRESS_BITS <= SY_LEAF_SHIFT + 16, "there is a leaf for every address");

typedef struct sy_leaf {
    _Atomic uint8_t classes[SY_LEAF_UNITS];
    _Atomic(void *) owners[SY_LEAF_CHUNKS];
} sy_leaf;

typedef struct sy_map {
    _Atomic uintptr_t leaf_at[SY_LEAVES]; /* bytes from `nothing` to the leaf, modulo 2^64 */
    sy_leaf nothing;                      /* never written */
} sy_map;

extern SY_HIDDEN sy_map sy_the_map;

/* The leaf for the units from `unit` on, which is taken modulo 2^32. What it holds is zero before
 * it is written, so whoever finds it needs nothing of those who made it. */
static inline sy_leaf *sy_leaf_of(uint32_t unit) {
    const _Atomic uintptr_t *entry = &sy_the_map.leaf_at[unit / SY_LEAF_UNITS];
    uintptr_t at = atomic_load_explicit(entry, memory_order_relaxed);
    return (sy_leaf *)sy_cpu_in_register((uintptr_t)&sy_the_map.nothing + at);
}

/* The heap's class at an address; an address outside the space is taken modulo it, which a later
 * check of the slab finds out. */
static inline unsigned sy_class_at(uintptr_t address) {
    uint32_t unit = (uint32_t)(address >> SY_UNIT_SHIFT);
    return atomic_load_explicit(&sy_leaf_of(unit)->classes[unit % SY_LEAF_UNITS],
                                memory_order_relaxed);
}

static inline _Atomic(void *) *sy_owner_of(uintptr_t address) {
    sy_leaf *leaf = sy_leaf_of((uint32_t)(address >> SY_UNIT_SHIFT));
    return &leaf->owners[(address >> SY_CHUNK_SHIFT) % SY_LEAF_CHUNKS];
}

/* The chunk or large span at an address, or NULL. */
static inline void *sy_owner_at(uintptr_t address) {
    if (address >> SY_ADDRESS_BITS) return NULL;
    return atomic_load_explicit(sy_owner_of(address), memory_order_acquire);
}

/* Makes the leaves for a range that are not there yet. 0, or -1 with ENOMEM: some may have been
 * made, which does no harm. */
int sy_map_cover(uintptr_t start, size_t bytes);

/* Of a range that is covered. */
void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number);
void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner);

#endif
/*
 * memory.h: an engine instance: chunks and large spans over one arena of addresses.
 *
 *     sy_memory_main     the system's memory: the arena imports spans by way of address.c
 *     others             the program's (slabyard/memory.h): its region, or an arena of its own
 *
 * Every chunk and every large span is a segment of the arena; nothing else is. What they leave goes
 * back to the arena, and from there to the system. Locks are held for chunks' and spans' lists
 * only: the arena is asked with none held, for it may import.
 *
 * Above: chunk.c and large.c, each of which has its part of the instance. Below: vmem/, os/.
 */
#ifndef SY_CHUNK_MEMORY_H
#define SY_CHUNK_MEMORY_H

/*
 * lock.h: the one kind of lock, ranked, and what becomes of locks at a fork.
 *
 * A thread takes locks in rising rank only (several of one rank only around fork, in a fixed
 * order); a debug build aborts on the first acquisition that breaks this. No system call that can
 * block on the kernel's memory management, and no callback of the user, runs while a lock is held,
 * but that of reports, which is for that.
 *
 * The word of a lock (Drepper, "Futexes Are Tricky", 2011, section 6, with the holder's number in
 * place of 1):
 *
 *       31       30    26 25            0
 *     | waited |  level  |    holder    |      0: free
 *
 *     holder   the number of the thread that holds it (sy_os_thread)
 *     waited   somebody may be asleep on it: a release has to wake one
 *     level    0: held for a piece of work. 1 and up: held for a fork, the second level for a fork
 *              in a handler of a signal that came within the first, and so on. INHERITED: the
 *              thread held it for a piece of work when it forked, and this is the child
 *
 * Around a fork the forking thread holds all locks (os/start.c), so that the child finds every
 * structure whole. Three things are different then:
 *   - What the thread holds for the fork it may acquire and release again. Hooks of fork that run
 *     meanwhile can therefore allocate and free.
 *   - A handler of a signal may fork while its thread holds locks for the work that the signal has
 *     interrupted. These stay as they are: in the child the same thread goes on with that work.
 *   - Such a thread is burdened. It takes the others out of order: another thread may hold one of
 *     them and wait for what this one holds. So it waits for those that are held for work only so
 *     long, and goes on without. A thread that forks unburdened, and has to wait, gives way to one
 *     that is burdened: it lets go of all that it has, and begins again.
 */
#ifndef SY_OS_LOCK_H
#define SY_OS_LOCK_H

/* The lock order of the whole library, outermost first. */
typedef enum sy_rank {
    SY_RANK_REPORT = 1, /* what a person is being told (watch/) */
    SY_RANK_START,      /* one-time initialisation, and the heap's */
    SY_RANK_EPOCHS,     /* the list of epochs, and their views of caches (cache/) */
    SY_RANK_THREADS,    /* thread records, client numbers (magazine/) */
    SY_RANK_CACHE,      /* one cache's slabs and counts (cache/) */
    SY_RANK_ARENAS,     /* the list of arenas (vmem/) */
    SY_RANK_ARENA,      /* one arena's segments (vmem/) */
    SY_RANK_MEMORIES,   /* the list of engine instances (chunk/) */
    SY_RANK_CHUNK,      /* one instance's chunks and their free units (chunk/) */
    SY_RANK_LARGE,      /* its large spans (chunk/) */
    SY_RANK_SIDE,       /* pools of descriptors and side bitmaps (chunk/) */
    SY_RANK_PASSED,     /* the table of objects that are blocks of the C library's (cache/) */
    SY_RANK_STORE,      /* magazines that nobody uses (magazine/) */
    SY_RANK_POOLS,      /* the list of pools that check (pool/) */
    SY_RANK_GUARD,      /* the slots of guarded objects (watch/) */
    SY_RANK_OPTIONS,    /* what the options say (watch/) */
    SY_RANK_FAILURES,   /* what is made to fail (watch/) */
    SY_RANK_TAGS,       /* names of tags (watch/) */
    SY_RANK_TOOLS,      /* around a tool's own lock (watch/) */
    SY_RANK_LAST = SY_RANK_TOOLS,
} sy_rank;

typedef struct sy_lock {
    _Atomic uint32_t word;
    uint32_t rank;
} sy_lock;

#define SY_LOCK_INIT(rank_) \
    { 0, rank_ }

/* Of each thread. */
typedef struct sy_lock_holder {
    uint32_t number; /* 0: not known yet */
    uint32_t held;   /* locks that it holds for work, or is about to take, or has just let go */
} sy_lock_holder;

extern SY_HIDDEN SY_TLS sy_lock_holder sy_lock_self;

void sy_lock_acquire_slow(sy_lock *lock);
void sy_lock_release_slow(sy_lock *lock);
/* Debug builds: abort if `lock` may not be taken now; note that it is held, or no longer. */
void sy_lock_note_acquire(const sy_lock *lock);
void sy_lock_note_release(const sy_lock *lock);

static inline void sy_lock_init(sy_lock *lock, sy_rank rank) {
    atomic_init(&lock->word, 0);
    lock->rank = rank;
}

static inline void sy_lock_acquire(sy_lock *lock) {
#ifdef SY_DEBUG
    sy_lock_note_acquire(lock);
#endif
    sy_lock_holder *self = &sy_lock_self;
    uint32_t unheld = 0;
    self->held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler that forks counts it before it is had */
    if (SY_UNLIKELY(!self->number) ||
        !atomic_compare_exchange_strong_explicit(&lock->word, &unheld, self->number,
                                                 memory_order_acquire, memory_order_relaxed))
        sy_lock_acquire_slow(lock);
}

static inline void sy_lock_release(sy_lock *lock) {
#ifdef SY_DEBUG
    sy_lock_note_release(lock);
#endif
    sy_lock_holder *self = &sy_lock_self;
    uint32_t held = self->number;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &held, 0, memory_order_release,
                                                 memory_order_relaxed))
        sy_lock_release_slow(lock);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->held--;
}

/* Whether this thread holds it for work: it would wait for itself. */
bool sy_lock_is_mine(const sy_lock *lock);

/* ---- around a fork, or another copy of the process ---- */

/* This thread is about to hold all locks. May be nested, by handlers of signals. */
void sy_lock_begin_fork(void);

/* Takes a lock for it. False: another thread has it, and this one is burdened, or has to give way
 * (then it fails for all that are still to come). */
bool sy_lock_hold(sy_lock *lock);

/* After all were tried: whether they are to be dropped, the fork ended, and begun again once there
 * is a way. */
bool sy_lock_gave_way(void);
void sy_lock_wait_for_way(void);

/* Whether a lock was had: what it guards may be walked. */
bool sy_lock_has(const sy_lock *lock);

/* Lets go of it again. In the child of a fork: true if it was not had, so that a thread that the
 * child lacks may have been changing what it guards. */
bool sy_lock_drop(sy_lock *lock);

/* After the fork in the parent; in the child, before the first lock is dropped and after the last.
 * `recover` is called once this thread holds nothing any more for the work that it had been in: at
 * once, most often. */
void sy_lock_end_fork(void);
void sy_lock_begin_child(void);
void sy_lock_end_child(void (*recover)(void));

/* Whether this thread is between the two: no other thread can end what it is at. */
bool sy_lock_is_forking(void);

#endif

struct sy_chunk;
struct sy_slab;

struct sy_memory {
    sy_vmem *arena;
    bool own_arena; /* made with the memory, over its region */
    bool systems;   /* reads as zero when it is new, is committed, and discarded to the system */
    int (*discard)(void *arg, void *start, size_t bytes);
    void *arg;
    char name[SY_VMEM_NAME_MAX + 1];
    sy_memory *next, *previous; /* all of them; guarded by the list's lock */
    size_t caches;              /* over it; guarded by the same */
    _Atomic uint64_t aged;      /* in the pass of this number, last: a program's */
    _Atomic uint32_t trimming;  /* trims that have units aside and are worth waiting for */

    sy_lock lock; /* guards all below up to the next lock, and the chunks' free and dirty words */
    struct sy_chunk *with[SY_CHUNK_UNITS]; /* chunks by the length of their longest free run, */
    uint64_t lists;                        /* a bit for each list that is not empty, */
    struct sy_chunk *first, *last;         /* and all, the one trimmed longest ago first */
    uint64_t trims;                        /* begun so far */
    unsigned whole_trims;                  /* at work; those by age leave the chunks to them */
    size_t chunk_count;
    _Atomic size_t units_used; /* in runs */
    bool torn;                 /* in the child of a fork: a thread was changing the above */

    sy_lock large_lock;   /* guards all below */
    struct sy_slab *kept; /* large spans that were freed, for reuse; linked by next */
    size_t kept_count, kept_bytes, used_bytes;
};

extern SY_HIDDEN sy_memory sy_memory_main;

/* A segment of the arena in whole 4 MiB, at a multiple of `align` (at least 4 MiB); false with
 * ENOMEM. Nothing in it is committed. */
bool sy_memory_take(const sy_memory *memory, size_t bytes, size_t align, uintptr_t *start);
void sy_memory_give(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Takes what lies behind it too, up to `more` bytes in all; false: somebody else has it. */
bool sy_memory_extend(const sy_memory *memory, uintptr_t start, size_t bytes, size_t more);
/* Gives its end back: `less` bytes stay of it. */
void sy_memory_shorten(const sy_memory *memory, uintptr_t start, size_t bytes, size_t less);

/* Makes a part of a segment readable and writable; 0, or -1 with ENOMEM. */
int sy_memory_commit(const sy_memory *memory, uintptr_t start, size_t bytes);
/* Whether memory can be given back at all. */
bool sy_memory_discards(const sy_memory *memory);
/* Gives the memory of a range back, as os.h says of the system's. 0, or -1: it is still held. */
int sy_memory_discard(const sy_memory *memory, void *start, size_t bytes);

/* Around a part of a trim that has free memory aside and calls the system alone: an allocation that
 * finds no room meanwhile waits for its end (false: there is none under way). A trim of the
 * program's own memory calls the program, which is not waited for: it may itself be waiting for the
 * allocating thread, or be that thread. So with such memory these do nothing. */
void sy_memory_begin_trim(sy_memory *memory);
void sy_memory_end_trim(sy_memory *memory);
bool sy_memory_wait_for_trim(sy_memory *memory);

/* A cache comes, or goes. */
void sy_memory_hold(sy_memory *memory);
void sy_memory_let_go(sy_memory *memory);

/* Calls for each instance, with the list's lock held. */
void sy_memory_each(void (*visit)(sy_memory *memory, void *arg), void *arg);

/* The start of sy_memory_main, before any other call. In the child of a fork what trims of other
 * threads had taken aside comes back. */
extern SY_HIDDEN const sy_part sy_memory_part;

#endif

enum {
    SY_RUN_UNITS_MAX = SY_CHUNK_UNITS - 1, /* the longest run in a chunk */
    SY_RUN_ALIGN_MAX = SY_CHUNK_UNITS / 2, /* units; the largest alignment of one */
    SY_SLAB_BITMAP_WORDS = 16,             /* words of a bitmap that fits in the descriptor */
};

/*
 * Descriptor of a slab or span. chunk/ writes `start` and `bytes`; the rest belongs to the owner of
 * the run and is zero when it gets it.
 */
typedef struct sy_slab {
    /* Line 0: all that a flush needs to know of an object's slab. */
    alignas(64) uintptr_t first; /* address of slot 0 */
    void *owner;                 /* the cache; NULL: a span of the heap */
    uint64_t *free;              /* bit set: the slot is in the slab */
    uint32_t free_count;
    uint32_t slots;
    uint32_t watermark;             /* slots from here on were never given out */
    uint32_t ordinal;               /* of slot 0, in a cache with handles */
    uint16_t free_least, free_most; /* free counts at which it leaves its bin are outside these */
    uint16_t first_word;            /* no free bit in a word before it */
    uint8_t bin;
    bool fresh;           /* slots went in or out since a trim by age looked */
    struct sy_bins *bins; /* that it is in, or belongs to when set aside */
    size_t bytes;         /* of the run: a multiple of a unit */
    /* Line 1. */
    alignas(64) sy_heap_node node;   /* in its bin */
    struct sy_slab *next, *previous; /* all slabs of the owner */
    uint64_t *built; /* bit set: the slot is constructed; NULL without constructor */
    uint64_t holes;  /* bit set: that 1/64 of the slab was discarded and not touched since */
    uintptr_t start; /* of its first unit */
    /* Lines 2 and 3. */
    alignas(64) uint64_t bits[SY_SLAB_BITMAP_WORDS];
} sy_slab;

_Static_assert(sizeof(sy_slab) == 256, "63 descriptors and the chunk's own fields fit in unit 0");

static inline sy_slab *sy_slab_of_node(sy_heap_node *node) {
    return (sy_slab *)((char *)node - offsetof(sy_slab, node));
}

typedef struct sy_chunk {
    /* Guarded by the chunk lock; bit 0, of the first unit, is never set in either. */
    uint64_t free;                    /* units in no run */
    uint64_t dirty;                   /* of them: those that hold memory, */
    uint64_t aged;                    /* and did when a trim last looked */
    uint64_t tried, tried_by;         /* units that a trim has had already, and which trim */
    struct sy_chunk *next, *previous; /* chunks whose longest free run is as long */
    uint32_t longest;                 /* free run, in units: which list it is in */
    bool punched; /* asked for no huge pages, since memory was given back in pieces */
    struct sy_chunk *all_next, *all_previous; /* all chunks of the memory */
    uint64_t trim;                            /* the last that looked at it */
    sy_memory *memory;
    uintptr_t start;                                        /* of its address space */
    alignas(64) _Atomic uint8_t first_unit[SY_CHUNK_UNITS]; /* of the run of each unit; 0: none */
    alignas(256) sy_slab slabs[SY_CHUNK_UNITS - 1];         /* descriptor of unit 1, 2, ... */
} sy_chunk;

enum { SY_OWNER_IS_CHUNK = 1 }; /* added to a chunk's header in the map, not to a large span */

_Static_assert(sizeof(sy_chunk) == 16 << 10, "chunk_of finds the header of a descriptor");

typedef struct sy_chunk_stats {
    size_t chunks;                  /* number of */
    size_t units_free, units_clean; /* number of: in no run; of them, those that hold no memory */
    size_t large_bytes, large_kept; /* of large spans in use; kept for reuse */
} sy_chunk_stats;

/*
 * A run of `bytes` (at least 1, rounded up to units) at a multiple of `align` bytes (a power of
 * two), its descriptor zero but for start and bytes. *clean tells whether it reads as zero. A large
 * span has address space to grow to `room` bytes, if that can be had. NULL with ENOMEM.
 */
sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean);

/* Gives a run back, dirty; nothing looks at its descriptor from now on. */
void sy_run_give(sy_slab *run);

/* Whether one of the last runs that were given back and held one object began there; of an address
 * that is in no run now. (What the address is of since then, if it went back to the system, nobody
 * knows.) */
bool sy_run_ended_at(uintptr_t address);

/* Makes a span as long as `bytes` in place; false if it cannot be. */
bool sy_run_resize(sy_slab *run, size_t bytes);

/* Moves the memory of the first `bytes`, whole units, of one large span to another, whose beginning
 * is lost; false: it has to be copied. */
bool sy_run_move(const sy_slab *from, const sy_slab *to, size_t bytes);

/*
 * The descriptor of the run at any address in it, or NULL: it is not ours. Takes any 64 bits. Who
 * does not know that the run stays may read a descriptor that is of another run by now, or of none:
 * headers are never anything else (headers.h), so what is read is a descriptor's, and the address
 * need not be in its run.
 */
static inline sy_slab *sy_slab_at(uintptr_t address) {
    uintptr_t owner = (uintptr_t)sy_owner_at(address);
    if (!(owner & SY_OWNER_IS_CHUNK)) return (sy_slab *)owner;
    sy_chunk *chunk = (sy_chunk *)(owner - SY_OWNER_IS_CHUNK);
    unsigned unit = address >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
    unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
    return first ? &chunk->slabs[first - 1] : NULL;
}

/* Gives the memory of free units and of large spans kept for reuse back; returns bytes. */
size_t sy_chunk_trim(sy_memory *memory);

/*
 * The same in steps that are bounded in time: a number for the trim, then steps until one says that
 * there is no more (false). `aged`: only what was there, and free, when the trim by age before this
 * one looked. *bytes grows by what was given back.
 */
uint64_t sy_chunk_begin_trim(sy_memory *memory);
bool sy_chunk_trim_step(sy_memory *memory, uint64_t trim, bool aged, size_t *bytes);

/* Gives all chunks back to the arena; there is no run in them. */
void sy_chunk_release_all(sy_memory *memory);

/* In the child of a fork: units that a trim of another thread had taken aside are free again. */
void sy_chunk_recover(sy_memory *memory);

/* Calls for each run of the memory. Nobody else may be using it. */
void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg);

/* Backs a run with memory now. 0, or -1 with ENOMEM. The program's memory is its own affair. */
int sy_run_populate(const sy_slab *run);

/* Gives whole pages of a run's memory back; 0, or -1: they are still held. */
int sy_run_discard(const sy_slab *run, void *start, size_t bytes);

/* Part of a run's memory was given back: no huge pages there from now on. */
void sy_chunk_punched(const sy_slab *run);

/* Adds up: of one memory, of all. */
void sy_chunk_count_of(const sy_memory *memory, sy_chunk_stats *stats);
sy_chunk_stats sy_chunk_count(void);

/* Violations of the invariants of chunks, 0 when sound. */
size_t sy_chunk_verify(sy_memory *memory);

#endif

typedef struct sy_bins sy_bins;

enum {
    SY_BINS = 8,
    SY_BIN_EMPTY = SY_BINS, /* all slots are free */
    SY_BIN_FULL,            /* none is: in no heap */
    SY_BIN_NONE,            /* not in the bins */
    SY_BIN_GONE,            /* not in its cache any more: it is being released */
};

struct sy_bins {
    sy_heap_node *heap[SY_BINS + 1]; /* the last: empty slabs */
    uint32_t occupied;               /* bit set: that heap has a slab */
    size_t count[SY_BINS + 2];       /* of slabs in each, full ones included */
    uint64_t filled, opened, reused; /* slabs that became full, were full, were empty */
    sy_bins *counted;                /* where that is counted; NULL: here */
};

/*
 * Whether the slab that sy_slab_at found is one of the cache's, whose lock is held: its bitmap may
 * be read then. A slab that was unlinked is released without the lock, and its descriptor may be
 * another's meanwhile; its owner is cleared before that, so it is read once more. (Not by atomic
 * loads, which ThreadSanitizer sees even where it is told not to look.)
 */
__attribute__((no_sanitize("thread"))) static inline bool sy_slab_is_in(const sy_slab *slab,
                                                                        const void *cache) {
    if (!slab || *(void *const volatile *)&slab->owner != cache) return false;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool gone = *(const volatile uint8_t *)&slab->bin == SY_BIN_GONE;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !gone && *(void *const volatile *)&slab->owner == cache;
}

/* The slab to take from next, or NULL when none has a free slot. */
sy_slab *sy_bins_best(const sy_bins *bins);

/* Puts a slab in, after its free count has changed puts it elsewhere if need be, takes it out. */
void sy_bins_insert(sy_bins *bins, sy_slab *slab);
void sy_bins_move(sy_bins *bins, sy_slab *slab);
void sy_bins_remove(sy_bins *bins, sy_slab *slab);

/* Takes a slab out of the bins for as long as its memory is being changed without the lock: nothing
 * is taken from it and it is not released; what is freed to it does not move it. sy_bins_insert
 * ends this. */
void sy_bins_set_aside(sy_bins *bins, sy_slab *slab);

static inline void sy_bins_update(sy_bins *bins, sy_slab *slab) {
    slab->fresh = true;
    if (slab->free_count < slab->free_least || slab->free_count > slab->free_most)
        sy_bins_move(bins, slab);
}

/*
 * Takes `count` of the slab's free slots (it has as many), lowest first, and writes their addresses
 * downward from `end`: end[-1] is the lowest.
 */
void sy_slab_take(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count);

/* The same in no order, by the numbers that come from `random`. */
void sy_slab_take_random(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count,
                         uint64_t *random);

/* Index of the slot that begins at `address`, or UINT32_MAX: none does. */
static inline uint32_t sy_slab_index(const sy_slab *slab, const sy_layout *layout,
                                     uintptr_t address) {
    uint64_t offset = address - slab->first;
    if (offset >= (uint64_t)layout->slots * layout->slot) return UINT32_MAX;
    if (layout->slots == 1) return offset == 0 ? 0 : UINT32_MAX;
    uint32_t index = (uint32_t)(offset * layout->reciprocal >> 32);
    return index * layout->slot == offset ? index : UINT32_MAX;
}

static inline bool sy_slab_bit(const uint64_t *bitmap, uint32_t index) {
    return bitmap[index / 64] >> index % 64 & 1;
}

/* The part of a slab whose memory is given back at once: one bit of `holes`; at least a page. */
size_t sy_slab_granule(const sy_slab *slab);

/* The granules in which every slot is free and some may hold memory (a bit each, as in holes), but
 * for those in `kept`; 0: none. Of the slots in them `slots` gets a bit each. */
uint64_t sy_slab_unused(const sy_slab *slab, const sy_layout *layout, uint64_t kept,
                        uint64_t *slots);

/* Whether the free slots are as many as the bitmap says, none of them before `first_word` or behind
 * the last slot, and the slab is in the bin for as many. The cache's lock is held. */
bool sy_slab_is_valid(const sy_slab *slab, const sy_layout *layout);

/* Violations of the slab's invariants, 0 when sound. */
size_t sy_slab_verify(const sy_slab *slab, const sy_layout *layout);

#endif
/*
 * quota.h: bytes of slabs and spans, counted for an owner, and their limit.
 *
 *     cache -> its heap's quota -> the process's
 *     cache, span of sy_malloc --> the process's
 *
 * A run is charged to every quota on its way before it is taken and uncharged after it was given,
 * so used is never less than what is held:
 *
 *     used == bytes of runs held + of those being taken or given at this moment
 *
 * This is the account alone, without locks: what is done when it is refused, and who is told of the
 * soft mark, is cache/limit.h's. Below: chunk.h. Above: cache/.
 */
#ifndef SY_CHUNK_QUOTA_H
#define SY_CHUNK_QUOTA_H

typedef struct sy_quota {
    struct sy_quota *parent;    /* for ever; NULL: none */
    _Atomic size_t hard, soft;  /* SIZE_MAX: none */
    sy_limit_callback callback; /* guarded by the start's lock, with its argument */
    void *arg;
    _Atomic bool crossed;  /* the soft mark was reached, and nobody is told yet */
    _Atomic bool armed;    /* reaching it is to be told */
    _Atomic size_t used;   /* bytes */
    _Atomic uint64_t hits; /* allocations refused */
} sy_quota;

extern SY_HIDDEN sy_quota sy_quota_process;

/* Whether a limit can be set: the callback has a mark, the mark a limit above it. */
bool sy_limit_valid(const sy_limit *limit);

/* Sets the limit of a quota; `used` stays. The start's lock is held, or nobody knows the quota. */
void sy_quota_set(sy_quota *quota, const sy_limit *limit);

/* Charges `bytes` to the quota (NULL: to none) and its parents. NULL, or the quota that refused,
 * and nothing is charged. */
sy_quota *sy_quota_charge(sy_quota *quota, size_t bytes);
void sy_quota_uncharge(sy_quota *quota, size_t bytes);

/* Bytes that this thread is about to charge, or has charged and does not hold yet, or not any more:
 * in the child of its fork they count besides what is held. */
extern SY_HIDDEN SY_TLS size_t sy_quota_in_hand;

/* Notes where the soft mark is reached: after a charge that came to something. */
void sy_quota_note(sy_quota *quota);

/* sy_run_take and sy_run_give, charged to the quota; *refused: the quota for which it gave NULL, or
 * NULL. */
sy_slab *sy_quota_take_run(sy_quota *quota, sy_memory *memory, size_t bytes, size_t align,
                           size_t room, bool *clean, sy_quota **refused);
void sy_quota_give_run(sy_quota *quota, sy_slab *run);

/* Whether somebody is to be told, of the quota or a parent. */
static inline bool sy_quota_crossed(const sy_quota *quota) {
    for (; quota; quota = quota->parent)
        if (SY_UNLIKELY(atomic_load_explicit(&quota->crossed, memory_order_relaxed))) return true;
    return false;
}

#endif
/*
 * client.h: the doors of the magazine layer.
 *
 * A client has words to give and to take (addresses of objects, ids: any word, 0 included) and says
 * how: `refill` gets some from below, `flush` puts some back. The layer keeps words in magazines in
 * between, so that refill and flush happen once for a magazine-full. It knows words, not memory.
 *
 *        alloc                        free
 *          |                           ^            a thread's loaded slot for the client:
 *     [ loaded ][ previous ]     [ loaded ][ previous ]   two magazines; previous is full or empty
 *          ^         ^                 |         |        (Bonwick and Adams, "Magazines and Vmem",
 *          |         |                 v         v         USENIX 2001, section 3.1)
 *        depot: a stack of magazines a shard, lock-free
 *          ^                                     |
 *        refill  (client)                      flush  (client)
 *
 * The inline fast path (slabyard/loaded.h) works on `top, base, limit` of the
 * loaded slot and comes here when a magazine has run empty or full, on first use, and whenever a
 * direction is shut.
 *
 * What always holds: a loaded slot is written by its own thread only, or, while that thread is
 * parked or gone, by whoever holds the lock of the thread list. No callback runs under a lock of
 * this layer.
 *
 * Above: cache/, vmem's quantum caches. Below: os/.
 */
#ifndef SY_MAGAZINE_CLIENT_H
#define SY_MAGAZINE_CLIENT_H

/*
 * callback.h: calls of the program's functions, and what is done about one that does not return.
 *
 * A function of the program's can be left in three ways: it returns; it is unwound, by a C++
 * exception or by the end of its thread (pthread_exit, pthread_cancel); or longjmp jumps over it
 * and its callers. Only a constructor may be unwound: its callers put their state right in
 * cleanups. Everything else would leave counts or memory behind, so it is reported and the process
 * ends: at once after unwinding, at a later slow path of the thread after longjmp.
 *
 * Each call is noted with the address and the return address of its caller's frame. While the
 * caller waits, frames of later calls are lower, and its return address stays as it is. If a slow
 * path finds this not to be so, longjmp has jumped over the noted frame. Or the program is on a
 * second stack now: then nothing is reported.
 *
 * Cleanups run only where the compiler is told -fexceptions. Without it an exception is reported as
 * longjmp is.
 *
 * Below: report.h, os/. Used by every layer that calls the program.
 */
#ifndef SY_WATCH_CALLBACK_H
#define SY_WATCH_CALLBACK_H

/* Who is called: the destructor of cache "order". */
typedef struct sy_callee {
    const char *function;
    const char *of;   /* "cache", "arena"; NULL: it is of nothing that has a name */
    const char *name; /* as long as that exists */
    bool may_unwind;
} sy_callee;

/* The innermost call that a thread is in. */
typedef struct sy_callback_note {
    const uintptr_t *frame; /* of the caller; NULL: there is no call */
    uintptr_t returns_to;
    sy_callee callee;
} sy_callback_note;

typedef struct sy_callback {
    bool returned;
    sy_callback_note outer; /* the call within which this one is */
} sy_callback;

extern SY_HIDDEN SY_TLS sy_callback_note sy_callback_now;

__attribute__((nothrow)) void sy_callback_jumped(uintptr_t frame);
__attribute__((nothrow)) void sy_callback_unwound(void);
__attribute__((nothrow)) bool sy_callback_returns_elsewhere(uintptr_t frame);

#define SY_FRAME ((const uintptr_t *)__builtin_frame_address(0))

/* Where a frame returns to: 0 if it is not known where that is kept. */
static inline __attribute__((always_inline)) uintptr_t sy_callback_return(const uintptr_t *frame) {
#if defined(__x86_64__) || defined(__aarch64__)
    return frame[1];
#else
    return (void)frame, 0;
#endif
}

/* At the beginning of what is a slow path anyhow: whether longjmp has left a call. */
static inline __attribute__((always_inline)) void sy_callback_check(void) {
    const uintptr_t *noted = sy_callback_now.frame;
    if (SY_LIKELY(!noted)) return;
    if (noted <= SY_FRAME || sy_callback_returns_elsewhere((uintptr_t)noted))
        sy_callback_jumped((uintptr_t)SY_FRAME);
}

/* A signal's handler finds the whole note, or none. */
static inline void sy_callback_set(const sy_callback_note *note) {
    sy_callback_now.frame = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sy_callback_now.returns_to = note->returns_to;
    sy_callback_now.callee = note->callee;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sy_callback_now.frame = note->frame;
}

static inline __attribute__((always_inline)) void sy_callback_begin(sy_callback *call,
                                                                    sy_callee callee) {
    sy_callback_check();
    call->returned = false;
    call->outer = sy_callback_now;
    sy_callback_set(&(sy_callback_note){SY_FRAME, sy_callback_return(SY_FRAME), callee});
}

static inline void sy_callback_end(const sy_callback *call) {
    if (SY_UNLIKELY(!call->returned && !sy_callback_now.callee.may_unwind)) sy_callback_unwound();
    sy_callback_set(&call->outer);
}

#define SY_CLEANUP(function) __attribute__((cleanup(function), unused))

/* Before a call, and to the end of the scope:
 * SY_CALLBACK(call, "destructor", "cache", cache->name, false); then the call itself, and then
 * call.returned = true. */
#define SY_CALLBACK(call, ...)                    \
    sy_callback call SY_CLEANUP(sy_callback_end); \
    sy_callback_begin(&(call), (sy_callee){__VA_ARGS__})

#endif

enum {
    /* Numbers of clients. Each costs 64 bytes of address space a thread. */
    SY_CLIENTS_MAX = 16384,
    /*
     * Numbers below this are never a client's: their loaded slots are shut for ever. A fast path
     * that finds its client's number in a table (sy_free) has 0 there wherever there is no client.
     */
    SY_CLIENT_FIRST = 1,
    /* Numbers below this are given out on demand only (the heap's classes), to fit in a byte. */
    SY_CLIENT_DEMANDED = 128,
};

typedef struct sy_client_config {
    /* Gets up to `count` words into `items`, the one to be given out first at the end; returns how
     * many, 0 with errno when there are none. */
    size_t (*refill)(void *owner, uintptr_t *items, size_t count);
    /*
     * Takes `count` words back. *held is how many of them sy_client_held still counts: the owner
     * lowers it under the lock under which it takes the words, so that whoever holds that lock and
     * the clients' finds each word here or there. NULL: they are not counted any more.
     */
    void (*flush)(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held);
    void *owner;
    size_t item_bytes;     /* what one waiting item holds up: for the bounds below */
    size_t magazine_items; /* most items in a magazine; 0: no magazines at all, the fast path is
                              shut */
    size_t loaded_items; /* most items in the magazines of all threads together, and then none wait
                          * in the depot but those of ended threads; 0: no such bound */
    /* Whether the magazines of all threads together may hold so many items; NULL: any number. Asked
     * when a thread that holds none is about to; false: it goes without, for now. */
    bool (*admits)(void *owner, size_t items);
    bool addresses;  /* items are addresses of memory that is written next: worth prefetching */
    bool calls_back; /* flush may call functions of the program's: not where it does not expect that
                      */
    bool one_way; /* what is freed is flushed, not given out again: refill may give one thread items
                   * of another kind than another, or than before sy_thread_put_back */
    bool bursts;  /* what the depot turns away is flushed many magazines at a time: then few frees
                  * take long */
    bool sees_frees; /* each free is a call, while allocations are inline as ever, */
    bool guarded;    /* but for those that are to be guarded: then sy_client_due. Sees frees too */
    unsigned number; /* SY_CLIENT_FIRST up to SY_CLIENT_DEMANDED - 1, or 0: any */
} sy_client_config;

typedef struct sy_magazine sy_magazine;

/* Written by slow paths that are rare; the counters of exchanges are in the shards. */
typedef struct sy_client {
    sy_client_config config;
    unsigned number;
    _Atomic uint32_t generation; /* threads that see it changed flush their magazines */
    _Atomic uint32_t pins;       /* changed under the lock of the thread list; close waits for 0 */
    bool suspended;              /* guarded by the same: not to be pinned */
    bool closing;                /* guarded by the same: its end has begun */
    bool awaited;                /* guarded by the same: somebody waits for the pins to go */
    _Atomic uint32_t holders;    /* threads that have magazines of it, or may */
    _Atomic uint64_t granted;    /* of loaded_items: what threads may hold at present */
    void (*end)(void *arg);      /* guarded by the same: its end was put off; who unpins it last */
    void *end_arg;               /* calls this */
    struct sy_client
        *next_held;        /* of those that a thread has pinned until it has left their doors */
    struct sy_move *moves; /* under way; guarded by the lock of the thread list */
} sy_client;

/* Magazines that a thread has taken from slots or from the depot to flush them. */
typedef struct sy_move {
    sy_magazine *chain;   /* those not flushed yet */
    const void *thread;   /* whose move it is */
    struct sy_move *next; /* of the client's */
} sy_move;

typedef struct sy_client_counts {
    uint64_t depot_hits, depot_misses; /* a full magazine was wanted and found, or not */
    uint64_t depot_steals;             /* of the hits: in another CPU's shard */
} sy_client_counts;

/* Opens a client. 0, or -1 with ENOMEM (no number free) or EBUSY (that number is taken). */
int sy_client_open(sy_client *client, const sy_client_config *config);

/*
 * Closes it: every word in its magazines is flushed. Nobody uses the client or will; trims that
 * have pinned it are waited for. Its number stays until the next.
 */
void sy_client_close(sy_client *client);

/* The number of a closed client may be given to another: nothing is known by it any more. */
void sy_client_give_number(const sy_client *client);

/*
 * Nobody uses the client: from now on trims and flushes of other threads pass it by, and those that
 * were at it have finished, so that what it holds is exact. Then close it or resume.
 *
 * False: this thread would wait for itself, or for a thread that may wait for it, since it is in a
 * function of the program's that the layers above have called. Then `end(arg)` is called, unless it
 * is NULL, by whichever thread is the last to leave the client, with no lock held; or nothing is
 * done, if the client's end has begun already.
 */
bool sy_client_suspend(sy_client *client, void (*end)(void *arg), void *arg);
void sy_client_resume(sy_client *client);

/*
 * A slow path of the client that may call functions of the program's. The client does not end until
 * the slow path has been left. Slow paths nest.
 *
 * SY_SLOW_PATH(client) begins one that ends with the scope. sy_turn comes after the scope,
 * and carries out the ends that were put off. A constructor that throws leaves no turn to come. So
 * a slow path that constructs is SY_CONSTRUCTING_PATH(path, client), with `path.done = true` before
 * it returns. If it is unwound, its cleanup carries out these ends.
 */
typedef struct sy_slow_path {
    unsigned outer; /* slow paths that this thread was in already */
    bool done;
} sy_slow_path;

#define SY_SLOW_PATH(client) \
    sy_slow_path slow_path SY_CLEANUP(sy_slow_path_end) = {sy_slow_path_begin(client), true}
#define SY_CONSTRUCTING_PATH(path, client) \
    sy_slow_path path SY_CLEANUP(sy_slow_path_end) = {sy_slow_path_begin(client), false}
unsigned sy_slow_path_begin(sy_client *client);
void sy_slow_path_end(const sy_slow_path *path);

/* At the end of a slow path: leaves the clients whose end this thread put off within it. Whether
 * there are others, of doors further up. */
bool sy_clients_leave(void);

/* Bytes from sy_abi_1 to a thread's loaded slot for the client. */
size_t sy_client_offset(const sy_client *client);

/* What the fast path calls when it has no word to give: one from a magazine, the depot or refill.
 * False with errno when there is none. */
bool sy_client_alloc(sy_client *client, uintptr_t *item);

/* What the fast path calls when it has no room for a word. errno is kept unless flush changes it.
 */
void sy_client_free(sy_client *client, uintptr_t item);

/*
 * The commonest parts of these two, to be tried first: the next window, or the other of the two
 * magazines, if that has a word or has room. False if it takes more. errno is untouched.
 */
bool sy_client_alloc_second(sy_client *client, uintptr_t *item);
bool sy_client_free_second(sy_client *client, uintptr_t item);

/* Whether `item` is what this thread freed last and still has: a free of it now is its second. */
bool sy_client_freed_last(const sy_client *client, uintptr_t item);

/*
 * Of guarded clients, before the others: whether the allocation that came here is the one in
 * `guard_every` (watch/guard.h) that is to be guarded. sample.h says how allocations are counted.
 */
bool sy_client_due(sy_client *client);

/* Flushes what this thread has loaded of one-way clients: the next word comes from refill. */
void sy_thread_put_back(void);

/* Takes what this thread has loaded, up to `count`, without going further; returns how many. */
size_t sy_client_alloc_loaded(sy_client *client, uintptr_t *items, size_t count);

/* Brings what this thread needs of this layer to allocate from the client, as far as it can be had.
 */
void sy_client_prepare(sy_client *client);

/* Gets items into this thread's magazines until there are `count`, which stay there whatever their
 * age; how many there are. More than two magazines hold, or one if nothing comes back: 0. */
size_t sy_client_reserve(sy_client *client, size_t count);

/* Flushes what can be reached: this thread's magazines, those of parked and ended threads, the
 * depot. Asks running threads to flush theirs at their next exchange. */
void sy_client_drain(sy_client *client);

/* The same in steps that are bounded in time, the first one said to be so; false: nothing was left
 * to do. */
bool sy_client_drain_step(sy_client *client, bool first);

/*
 * Flushes what the client has not worked with since this was begun last, in steps likewise: in the
 * depot and, if `idle`, in the slots of threads that are parked.
 */
bool sy_client_reap_step(sy_client *client, bool first, bool idle);

/* Flushes slots of this thread that have had no exchange since it looked before, those of a few
 * clients a step; false: it has looked at all. */
bool sy_thread_reap_step(void);

/* Items in the depot, those on their way from there to the owner included, and in loaded slots:
 * exact while no thread allocates or frees, whatever passes and trims do meanwhile. The lock of the
 * clients is held. */
void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded);

/* Events since the client was opened. */
sy_client_counts sy_client_count(const sy_client *client);

/* Whether `item` is in a magazine of the client: exact while no magazine of it changes hands. The
 * lock of the clients is held. */
bool sy_client_holds(sy_client *client, uintptr_t item);

/* The thread list's lock: no thread begins or ends, and no client is opened or closed. */
void sy_clients_lock(void);
void sy_clients_unlock(void);

/* The next client after number `after`, pinned: it is not closed before sy_client_unpin. NULL:
 * none. */
sy_client *sy_client_pin_next(unsigned after);
/* Pins one that is open; false: it is suspended. */
bool sy_client_pin(sy_client *client);
void sy_client_unpin(sy_client *client);
/* The same for the caller that holds the thread list's lock, around fork: not pinned. */
sy_client *sy_client_next_locked(unsigned after);

/* Threads that have loaded slots at present. */
unsigned sy_thread_count(void);

/* Gives the layer's own unused memory back; returns bytes. */
size_t sy_magazine_trim(void);
/* The same in steps: from *at on, 0 first; false: all is done. `aged`: what was unused since such a
 * step looked before. */
bool sy_magazine_trim_step(unsigned *at, bool aged, size_t *bytes);
/* Bytes of magazines and thread records that hold memory. */
size_t sy_magazine_bytes(void);

/* The start of the layer, before any other call, and its outermost lock, that of the thread list. In
 * the child of a fork what other threads had loaded is kept. */
extern SY_HIDDEN const sy_part sy_threads_part;
/* Around a fork, whether that lock was had: else the clients may not be walked. */
bool sy_threads_are_held(void);
/* The innermost lock. */
extern SY_HIDDEN const sy_part sy_store_part;

#endif

/* What is called for each object at its allocation and its free, not for each slot once: where what
 * is free is overwritten. */
typedef struct sy_rebuilds {
    int (*construct)(void *object, void *arg); /* NULL: nothing is */
    void (*destruct)(void *object, void *arg);
} sy_rebuilds;

typedef struct sy_cache_counts {
    uint64_t refills, flushes, slabs_made, slabs_released, constructed, destructed;
} sy_cache_counts;

struct sy_cache {
    union { /* what the inline fast paths read */
        struct sy_cache_head head;
        struct sy_handle_head names; /* with SY_HANDLES */
    };
    sy_client client;
    /* Fixed at creation. */
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size;
    sy_layout layout;
    int (*construct)(void *object, void *arg);
    void (*destruct)(void *object, void *arg);
    sy_rebuilds rebuilds; /* then the two above are NULL */
    void (*dispose)(void *object, void *arg);
    void *arg;
    struct sy_watch *watch; /* NULL: nothing is watched */
    sy_memory *memory;      /* where its slabs are from */
    sy_quota *quota;        /* which they count for; NULL: none */
    size_t limit;           /* SIZE_MAX: none */
    unsigned flags;
    unsigned class_number; /* in the map: the client's number for a class of the heap, else 0 */

    size_t empties_least; /* empty slabs kept in any case */

    _Atomic(struct sy_try *) tries; /* of sy_cache_try_free, at work */
    _Atomic size_t retired;         /* slots of which the handles are spent */
    _Atomic uint64_t limits_hit;    /* allocations refused for a limit of whatever owner */

    sy_lock lock; /* guards all below, and the slabs' descriptors */
    sy_bins bins;
    sy_slab *slabs, *last_slab; /* all of them, the one that a trim looked at longest ago first */
    size_t slab_count;
    unsigned trims;         /* whole ones, at work; trims by age wait for them */
    uint64_t seen;          /* refills and flushes, when a trim by age looked */
    bool idle;              /* there were none in between */
    size_t out;             /* slots outside the slabs */
    size_t guarded;         /* live objects in no slab (guarded.h) */
    size_t passed;          /* live objects that are blocks of the C library's, with SY_PASSED */
    size_t empties_max;     /* empty slabs kept beyond the layer's own measure: what was reserved */
    _Atomic size_t promise; /* slots out, of the cache's own slabs, up to which allocations were
                             * promised; 0: none. Written under the lock */
    bool tight;             /* no slab more was to be had for magazines beside the promise */
    uint32_t next_colour;
    uint64_t random; /* with SY_RANDOM */
    sy_cache_counts counts;
    bool torn; /* in the child of a fork: a thread was changing the above, and is not there */
};

_Static_assert(offsetof(struct sy_cache_head, loaded_offset) == 40, "where objects do not begin");
_Static_assert(sizeof(struct sy_cache_head) == 64, "a line of its own: it is hardly ever written");
_Static_assert(sizeof(struct sy_handle_head) == sizeof(struct sy_cache_head) &&
                   offsetof(struct sy_handle_head, loaded_offset) ==
                       offsetof(struct sy_cache_head, loaded_offset),
               "sy_cache_alloc finds its loaded slot in either");

/* Objects that may still come out of the slabs, or be guarded; the lock is held. What is retired is
 * out, and no object. */
static inline size_t sy_cache_left(const sy_cache *cache) {
    return cache->limit - cache->guarded -
           (cache->out - atomic_load_explicit(&cache->retired, memory_order_relaxed));
}

/* ---- cache.c: creation, for the heap's static caches too ---- */

/* Opens `cache`, zeroed memory but for the quota, if it is not to be the process's; `number`: of
 * its client, 0: any. 0, or -1 as sy_cache_create. */
int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number);

/* An object of which the program wants `size` bytes of the cache's, at `align` or the cache's own
 * if that is less, and its free with the size that the program says, SIZE_MAX: none; for the heap's
 * doors. */
enum { SY_MALLOC_ALIGN = 16 }; /* what is wanted where none is named */
void *sy_cache_alloc_sized(sy_cache *cache, size_t size, size_t align);
void sy_cache_free_sized(sy_cache *cache, void *object, size_t size);

/* With SY_ZERO: an object is freed. What is none of the cache's is left for others to report, and
 * what is checked for watch/ to fill. */
void sy_cache_wipe(const sy_cache *cache, void *object);

/* Has `tell` called with each cache that is to be destroyed and may have live objects. Of a heap's
 * caches the heap tells itself. */
void sy_cache_on_destroy(void (*tell)(sy_cache *cache));

/* In the child of a fork no trims of other threads are at work, and what they were guarding is not. A
 * cache whose lock could not be had is made anew from its slabs' bitmaps. */
extern SY_HIDDEN const sy_part sy_caches_part;

/* ---- refill.c: between magazines and slabs ---- */

/* The client's callbacks. */
size_t sy_cache_refill(void *cache, uintptr_t *items, size_t count);
void sy_cache_flush(void *cache, uintptr_t *items, size_t count, _Atomic uint32_t *held);

/* Whether the magazines of all threads together may hold so many items: then what was reserved can
 * be had, whatever they hold. */
bool sy_cache_admit(void *cache, size_t items);

/* Puts an object that is live back into its slab. False: it is none. Of calls for one object at the
 * same time one is told true. */
bool sy_cache_put_live(sy_cache *cache, uintptr_t address);

/* A new slab of `cache`, in these bins, its own or a view's; false with ENOMEM. */
bool sy_cache_add_slab(sy_cache *cache, sy_bins *bins);

/* A slab was made of so many bytes. No lock is held. */
void sy_caches_note_growth(size_t bytes);
/* Whether all caches together have made a sixteenth more of slabs, 1 MiB at least, since they had
 * last; of calls at the same time one is told true. A turn is wanted when they have. */
bool sy_caches_grew(void);

/* As sy_client_suspend. */
bool sy_cache_suspend(sy_cache *cache, void (*end)(void *arg), void *arg);

/* Releases a slab that is in no bin and no list, destructing what is constructed in it. */
void sy_cache_release_slab(sy_cache *cache, sy_slab *slab);

/* The list of slabs. The lock is held. */
void sy_cache_append_slab(sy_cache *cache, sy_slab *slab);
void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab);

/* Takes a slab out of the cache: bins, list and count. The lock is held. */
void sy_cache_unlink_slab(sy_cache *cache, sy_slab *slab);

/* Takes an empty slab of these bins out of the cache, if there are more than `keep`; else NULL. The
 * lock is held. */
sy_slab *sy_cache_unlink_empty(sy_cache *cache, sy_bins *bins, size_t keep);

/* The fault of freeing an address to the cache that lies in none of its slabs, but in `slab`, or in
 * none (NULL). In a slab that is being released all objects are free. */
sy_fault_kind sy_cache_fault_outside(const sy_cache *cache, const sy_slab *slab);

/* What is wrong with freeing `address` to the cache; `slab`: where it lies, or NULL. */
sy_fault sy_cache_fault(const sy_cache *cache, sy_fault_kind kind, uintptr_t address,
                        const sy_slab *slab);

/* Calls the destructor for the slots in `slots` (a bitmap). No lock is held. */
void sy_cache_destruct(sy_cache *cache, const sy_slab *slab, const uint64_t *slots);

/* ---- handle.c: caches with SY_HANDLES ---- */

static inline bool sy_cache_has_handles(const sy_cache *cache) { return cache->flags & SY_HANDLES; }

/* The ordinal of an object of the cache, or false with the fault that freeing it would be. */
bool sy_cache_ordinal(const sy_cache *cache, uintptr_t address, uint32_t *ordinal,
                      sy_fault_kind *fault);
/* Takes an object whose handle nobody wants to know. */
void *sy_cache_alloc_named(sy_cache *cache);
/* Frees by address; a fault if it is not a live object of the cache. */
void sy_cache_free_named(sy_cache *cache, void *object);

/* ---- epoch.c ---- */

/* In the child of a fork other threads are in no epoch. */
extern SY_HIDDEN const sy_part sy_epochs_part;

/* ---- trim.c ---- */

/*
 * Gives empty slabs to the chunks and free pages of the others back, in steps that are bounded in
 * time; false: there is no more. *left is SIZE_MAX before the first, and belongs to this trim.
 * `aged`: only what nobody has used since such a trim looked last, and not what was reserved.
 * *bytes grows by what was discarded.
 */
bool sy_cache_trim_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes);
/* The same for empty slabs alone. */
bool sy_cache_release_step(sy_cache *cache, size_t *left, bool aged);
/* Drains the cache, and does all steps. */
size_t sy_cache_trim_slabs(sy_cache *cache);
/* What is left to do of a trim: what chunks, the library's own tables and magazines have. */
size_t sy_cache_trim_rest(sy_memory *memory, bool handles);

/* ---- count.c ---- */

/* Bytes of the slabs of a cache. */
size_t sy_cache_slab_bytes(sy_cache *cache);

/* Violations of the cache's invariants, 0 when sound. Walks every slab under the lock. */
size_t sy_cache_verify(sy_cache *cache);

#endif
/*
 * os.h: what Slabyard asks of an operating system, and nothing else does.
 *
 * Above: every layer. Below: one file per platform (linux.c) that implements all of it; fake.c
 * stands between the two in tests, so that each failure named here can be made to happen. Anyone
 * above may call; nobody above makes a system call by another way, and no layer has an #ifdef.
 *
 * An address goes through these states, always in whole pages:
 *
 *                 reserve              commit              first write, populate
 *      (nothing) --------> reserved --------> committed --------------------> backed
 *                             ^                  ^                              |
 *          release from any   |                  +---------- discard -----------+
 *          of them: nothing   +-- (never again: what is committed stays so)
 *
 * What always holds:
 *   - Failure is NULL or -1 with errno, and nothing has changed unless said otherwise.
 *   - Success leaves errno as it was. (A free must not disturb it.)
 *   - Nothing here calls malloc, except where said; nothing here takes a lock.
 *   - All of it may be called from any thread. Ranges are the caller's: two threads must not work
 *     on the same range at once.
 *   - start and bytes of a range are multiples of sy_os_page_size(), bytes is not 0, and the whole
 *     range lies in address space that sy_os_reserve gave and sy_os_release did not take. The
 *     range may span reservations that happen to be neighbours. Breaking this is the caller's bug:
 *     unchecked here, fatal in the fake.
 */
#ifndef SLABYARD_OS_H
#define SLABYARD_OS_H

/* ---- memory ---- */

/* Address space, not accessible, costing no memory: `bytes` of it, its start a multiple of
 * `align` (a power of two, at least the page size). `name` shows in the system's list of mappings
 * where it has names: printable, under 80 characters, without \ $ ` [ ]; NULL for none.
 * ENOMEM: no address space, a limit on it, or too many mappings. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name);

/* The range becomes readable and writable and reads as zero; memory comes with the first write to
 * each page. What was committed before stays as it is, content included, so committing twice is
 * harmless, even by two threads at once. ENOMEM: the system does not promise that much, or too many
 * mappings; then a front part may have been committed all the same, which is again harmless. */
int sy_os_commit(void *start, size_t bytes);

/* Back a committed range with memory now, content untouched. ENOMEM: there is none; part of the
 * range may have been backed, which discard takes back. Where the system cannot say so (it only
 * overcommits), the failure is not seen here. */
int sy_os_populate(void *start, size_t bytes);

/* The content of a committed range is lost, its memory goes back to the system, and it reads as
 * zero. -1: the content may be lost or not, the memory is still held. */
int sy_os_discard(void *start, size_t bytes);

/* What `from` holds, memory and content, comes to lie at `to`, instead of what was there; both are
 * committed ranges of `bytes`, and `from` stays one, that reads as zero. -1: `from` is as it was,
 * the content of `to` may be lost; the system cannot do this, or not here. */
int sy_os_move(void *from, void *to, size_t bytes);

/* A reservation, or a part of one, goes, in whatever state its pages are. ENOMEM: taking out a
 * middle part would make one mapping too many; the range is as it was. */
int sy_os_release(void *start, size_t bytes);

/* Ask for transparent huge pages in the range, or ask that there be none. Advice: -1 where the
 * system has no such thing, and nothing depends on the answer. */
int sy_os_huge(void *start, size_t bytes, bool wanted);

/* Keep the range out of core dumps, or have it in them again. Advice, as above. */
int sy_os_dump(void *start, size_t bytes, bool wanted);

/* Back a committed range with memory and keep it there, never in swap; or let it go. ENOMEM: more
 * than the process may lock, or there is none; part of it may be locked. */
int sy_os_lock(void *start, size_t bytes, bool wanted);

/*
 * A committed range becomes inaccessible (`wanted`), its content lost and its memory the system's
 * again, or accessible, reading as zero where it was guarded and as before elsewhere. -1, when
 * guards are wanted: some may be there; when they are not: some may still be. ENOMEM: too many
 * mappings (below); EINVAL: memory that is locked. A fork's child has the same guards.
 */
int sy_os_guard(void *start, size_t bytes, bool wanted);

/* Whether each guarded range is a mapping of its own, of which a process may have some ten
 * thousands; else guards cost none (MADV_GUARD_INSTALL, Linux 6.13). */
bool sy_os_guards_split(void);

/* A block of the C library's, of `bytes` at a multiple of `align` (a power of two): what a tool
 * that watches malloc sees. NULL with ENOMEM. Calls malloc. */
void *sy_os_block(size_t bytes, size_t align);

/* Frees one. Of any other pointer the C library, or the tool, thinks what it thinks. Calls free. */
void sy_os_block_free(void *block);

/* Bytes of a page: a power of two, the same for the life of the process. */
size_t sy_os_page_size(void);

/* ---- processors, limits, time ---- */

/* A small number that differs between threads running at the same moment, and that a thread seldom
 * sees change: the concurrency id of the process, or else the processor. A hint: it may be stale
 * when it is read, and it may reach or pass sy_os_cpu_count(). Never fails; a load or two. */
unsigned sy_os_cpu(void);

/* Processors that this process may use at once: affinity and control-group quota (rounded up)
 * honoured. At least 1. Reads files: ask once. */
unsigned sy_os_cpu_count(void);

/* Processors that this process may run on at once, affinity alone honoured: what sy_os_cpu can tell
 * apart. At least 1. One system call, no file. */
unsigned sy_os_affinity_count(void);

/* Bytes of memory that this process may use: the least of control-group and resource limits,
 * SIZE_MAX if there is none. Reads files: ask seldom. */
size_t sy_os_memory_limit(void);

/* Nanoseconds of a clock that never goes back, from an arbitrary start. */
uint64_t sy_os_now(void);

/* 64 bits that outsiders cannot foresee; weaker where the system refuses. Never fails, never
 * waits. */
uint64_t sy_os_random(void);

/* ---- threads and processes ---- */

/* The system's number for the calling thread. A load, but for the first time. */
unsigned sy_os_thread(void);

/* In the child of a fork: the calling thread has another number than in the parent. */
void sy_os_thread_forked(void);

/* Sleep while *word == expected. May return for no reason: the caller looks again. */
void sy_os_wait(_Atomic uint32_t *word, uint32_t expected);

/* The same, for `ns` nanoseconds at most. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);

/* Wake up to `count` threads that sleep on the word. */
void sy_os_wake(_Atomic uint32_t *word, int count);

/* Run body(arg) on a new thread that nobody waits for, and to which no signal is delivered. EAGAIN
 * or ENOMEM: there is none. May call malloc. */
int sy_os_start_thread(void *(*body)(void *), void *arg);

/* When the calling thread exits, hook(arg) runs on it. There is one hook for the process (another
 * one is EINVAL) and one arg for each thread, the one said last; NULL takes it back. The hook may
 * register its thread again, and is then run once more, a few times at most. It does not run on
 * exit() of the process. ENOMEM or EAGAIN: not registered; may call malloc. */
int sy_os_at_thread_exit(void (*hook)(void *), void *arg);

/* Around fork: prepare in the parent before (last registered, first run), then parent or child
 * after it (first registered, first run). Any may be NULL. ENOMEM: not registered; may call
 * malloc. For ever: there is no way to take it back. */
int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/*
 * For the hooks of fork: what the C library's fork itself waits for after the hooks, as far as it
 * can be held before: the list of open streams. Another thread may have it and wait for a stream,
 * whose user waits for a lock of ours; so it is taken before these. `hold` in prepare, `drop` in
 * the other two: `in_child` says which. May be nested, by handlers of signals.
 */
void sy_os_hold_streams(void);
void sy_os_drop_streams(bool in_child);

/* ---- bad accesses ---- */

typedef enum sy_os_way { SY_OS_WAY_UNKNOWN, SY_OS_READ, SY_OS_WRITE } sy_os_way;

enum { SY_OS_REGISTERS_MAX = 31 };

/* An access that the system refused. */
typedef struct sy_os_access {
    uintptr_t address;
    bool placed; /* the address is known: it is not where it could be no address at all */
    sy_os_way way;
    uintptr_t code;     /* the instruction */
    unsigned registers; /* so many are known, each by sy_os_register_name */
    uintptr_t values[SY_OS_REGISTERS_MAX];
} sy_os_access;

/*
 * From now on an access that the system refuses (SIGSEGV, SIGBUS) calls explain(access) first, on
 * the thread and in the handler of the signal, and then does what it would have done: what handled
 * the signal before is called, or the access is done again and ends the process, with its core. A
 * signal that somebody sent is not explained. A handler that the program installs later comes in
 * the place of this. `explain` is not entered again by an access of its own, and nothing
 * thread-local of the library's is touched before it. Once a process; a second call changes
 * nothing.
 */
void sy_os_on_bad_access(bool (*explain)(const sy_os_access *access));

/* The instruction whose access is being explained on this thread; 0: none is. */
uintptr_t sy_os_interrupted(void);

/* The name of a general register, by its number below `registers`. */
const char *sy_os_register_name(unsigned number);

/* ---- words with a person ---- */

/* What the environment says under this name; NULL: nothing, or the process has more rights than its
 * user, who must not have a say then. Valid until the program changes its environment. */
const char *sy_os_option(const char *name);

/* Whether `fd` leads to a terminal. */
bool sy_os_is_terminal(int fd);

/* Write all of `text` to the end of a file, which is made if there is none (readable by its owner
 * alone). -1: it could not be opened, or not all was written. */
int sy_os_append(const char *path, const char *text, size_t length);

/* ---- where the program is ---- */

/* The bounds of the calling thread's stack: from any address on it up to *high all is readable for
 * as long as the thread lives. What is not in between is on another stack (of signals, of
 * coroutines). False: they are not known. Reads a file: ask once a thread. */
bool sy_os_stack(uintptr_t *low, uintptr_t *high);

enum { SY_OS_FILE_MAX = 256, SY_OS_FUNCTION_MAX = 512 };

typedef struct sy_os_place {
    uint64_t in_file;     /* the address by which tools know it that read the file */
    uint64_t in_function; /* bytes behind the function's beginning */
    char file[SY_OS_FILE_MAX];
    char function[SY_OS_FUNCTION_MAX]; /* "": not in the file's table of symbols */
} sy_os_place;

/* What file the code at `address` is from, and which function, by the file itself. False: it is of
 * no file. Reads files, about as long as their tables of symbols. */
bool sy_os_locate(uintptr_t address, sy_os_place *place);

typedef enum sy_os_region {
    SY_OS_NOWHERE,     /* nothing is mapped there */
    SY_OS_ANONYMOUS,   /* a mapping without a name */
    SY_OS_NAMED,       /* one with a name of the system's: `file`, "[heap]" */
    SY_OS_OWN_STACK,   /* the calling thread's stack */
    SY_OS_FIRST_STACK, /* the first thread's, which is another */
    SY_OS_OF_FILE,     /* a file is mapped: `file` */
    SY_OS_OF_PROGRAM,  /* the same, the program or a library of it: `section`, `name` if known */
} sy_os_region;

enum { SY_OS_SECTION_MAX = 32 };

typedef struct sy_os_data {
    sy_os_region region;
    char file[SY_OS_FILE_MAX];
    char section[SY_OS_SECTION_MAX]; /* "": not known */
    char name[SY_OS_FUNCTION_MAX];   /* of the variable or function; "": not known */
    uint64_t behind;                 /* bytes behind its beginning */
} sy_os_data;

/* Whether the thread is on the stack that it has for signals' handlers. */
bool sy_os_on_signal_stack(void);

/* What the address is of. Reads files; may wait for a lock of the loader's. */
void sy_os_find(uintptr_t address, sy_os_data *data);

/* A library by name, and the address of a name in it, or in the program for NULL. NULL: there is
 * none. The library has its own malloc if the system can do that. Calls malloc; takes locks. */
void *sy_os_load(const char *library);
void *sy_os_symbol(void *library, const char *name);

/* The number of this process. */
int sy_os_process(void);

/* Whether a debugger, or another that traces, is attached to it. Reads a file. */
bool sy_os_is_traced(void);

/*
 * Lets a child process work, and waits for it. It sees this process's memory as it is now, runs
 * nothing but `work` (no hooks of fork, no handlers of signals or of exit), and has no other
 * thread; so a lock that another one holds stays taken there. What it writes to `answer` (`bytes`,
 * reading as zero before) is what the caller finds in his, also when the child died at it, or was
 * ended after `seconds`. The program is told of no child's end. EAGAIN or ENOMEM: no child,
 * `answer` is as it was.
 */
typedef void sy_os_work(const void *question, void *answer);
int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds);

/* ---- the process as a whole ---- */

/*
 * Lets a copy of this process work, and waits for it. The copy has this process's memory as it is
 * now and one thread, and runs nothing else: no hooks of fork or exit, no handlers of signals. What
 * it writes to `answer` (`bytes`, reading as zero before) is what the caller finds in his, also if
 * it died at it. `made` is called in both, in the caller as soon as the copy is there or cannot be,
 * in the copy before `work`; so locks that are held over the call and let go there guard no more
 * than the copying. The program is told of no child's end. -1 with ENOMEM or EAGAIN: no copy was to
 * be had.
 */
int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void));

/* Whole pages from `start` to `end`, in a mapping that begins and ends elsewhere. */
typedef struct sy_os_piece {
    uintptr_t start, end, mapping, mapping_end;
} sy_os_piece;

/*
 * Calls `visit` for the private writable memory of this process that holds something, by rising
 * address. All of a piece can be read, as long as no other thread gives memory back: this is for a
 * process that has one. Mappings larger than 512 GiB, such as sanitizers keep their notes in, are
 * left out. 0, or -1 with the system's errno: it does not say.
 */
int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg);

/* When the process ends by exit() or from main(), hook() runs: last registered, first run. ENOMEM:
 * not registered; may call malloc. */
int sy_os_at_exit(void (*hook)(void));

/* ---- failures on demand ---- */

/* Names of the calls here that can fail, without their prefix: "reserve" is sy_os_reserve. NULL
 * comes after the last. */
extern SY_HIDDEN const char *const sy_os_calls[];

/* From now on each of them asks first, whoever calls: if due(name) is true it fails with ENOMEM,
 * and does nothing. NULL: they ask nobody. `due` runs wherever the call was made, under whatever
 * locks its caller holds. */
void sy_os_set_failing(bool (*due)(const char *call));

/* ---- the end ---- */

/* Write all of `text` to file descriptor `fd`. 0, or the number of the first error, at which it
 * gives up; errno untouched. */
int sy_os_write(int fd, const char *text, size_t length);

/* End the process with that status, while it is ending already (sy_os_at_exit): what the program's
 * streams hold is written, hooks that have not run yet never do. */
_Noreturn void sy_os_end(int status);

/* End the process abnormally, with a core where the system makes them. */
_Noreturn void sy_os_abort(void);

#endif
/*
 * pages.h: memory of the library's own, by the mapping: reserved and committed, given back whole.
 *
 * Below: os.h. Anyone above who keeps tables beside what users get.
 */
#ifndef SY_OS_PAGES_H
#define SY_OS_PAGES_H

/* `bytes`, whole pages, at a multiple of `align` (a power of two, at least a page), reading as
 * zero; `name` as in sy_os_reserve. NULL with ENOMEM. */
void *sy_pages_take(size_t bytes, size_t align, const char *name);

/* Gives all of it back: its address space or, if the system cannot, its memory. errno is kept. */
void sy_pages_give(void *start, size_t bytes);

#endif
/*
 * options.h: the options as the library reads them. The table of their names, values and meanings
 * is in options.c; docs/options.md shows it, and a test holds the two equal.
 *
 * Read at the first use of the library (sy_options_load), changed by sy_set_options. A reader takes
 * a field at a time: each is a word of its own, written atomically. Options that layers above carry
 * out wait here until these take them.
 *
 * Lowest of watch/, over values.h and os/.
 */
#ifndef SY_WATCH_OPTIONS_H
#define SY_WATCH_OPTIONS_H

enum { SY_OPTION_TEXT_MAX = 255 }; /* bytes of a path, of names, of a specification of failures */

typedef enum sy_when { SY_WHEN_AUTO, SY_WHEN_ALWAYS, SY_WHEN_NEVER } sy_when;
typedef enum sy_unwind { SY_UNWIND_AUTO, SY_UNWIND_FRAMES, SY_UNWIND_TABLES } sy_unwind;
typedef enum sy_tools { SY_TOOLS_AUTO, SY_TOOLS_OFF, SY_TOOLS_MALLOC } sy_tools;
/* Whether bad accesses are explained; auto: once there are guarded objects. */
typedef enum sy_explain { SY_EXPLAIN_AUTO, SY_EXPLAIN_YES, SY_EXPLAIN_NO } sy_explain;
/* The last: only what nothing points to any more is told. */
enum { SY_LEAKS_AT_DESTROY = 1, SY_LEAKS_AT_EXIT = 2, SY_LEAKS_LOST = 4 };
/* What others carry out: milliseconds, 0: never; 0 or 1; bytes, 0: none; a text. */
typedef enum sy_late {
    SY_LATE_DECAY,
    SY_LATE_MAINTENANCE,
    SY_LATE_LIMIT,
    SY_LATE_FAILURES
} sy_late;

typedef struct sy_options {
    _Atomic unsigned checks;      /* SY_CHECKED and its kin, for every cache that is meant */
    _Atomic uint32_t redzone;     /* bytes on each side: a multiple of 16, 16 to 65,536 */
    _Atomic uint32_t quarantine;  /* objects of a cache that wait, at least 1 */
    _Atomic uint32_t audit_log;   /* operations of a cache that are kept: a power of two, or 0 */
    _Atomic uint32_t guard_every; /* one allocation in so many; 1: all */
    _Atomic uint32_t guard_slots; /* guarded objects at a time, freed ones included */
    _Atomic uint32_t stack_depth; /* frames of a stack that are noted */
    _Atomic unsigned unwind;      /* sy_unwind */
    _Atomic unsigned leaks;       /* SY_LEAKS_...; 0: off */
    _Atomic unsigned leak_status; /* exit status where leaks were found; 0: what it would be */
    _Atomic unsigned explain;     /* sy_explain */
    _Atomic unsigned tools;       /* sy_tools */
    _Atomic unsigned colour;      /* sy_when */
    _Atomic bool exit_check;      /* free objects with poison are verified when the process ends */
    _Atomic bool symbols;         /* reports name functions and lines */
    _Atomic bool stats;           /* an account of memory is written at exit */
    _Atomic bool go_on;           /* reports do not end the process */
} sy_options;

extern SY_HIDDEN sy_options sy_options_now;

/* Reads SLABYARD, the first time; later calls find it done. Any thread, any time; no lock of rank
 * SY_RANK_OPTIONS is held. errno is kept. */
void sy_options_load(void);

/* Whether options for all caches mean the one of this name: `only`, names with * and ?, + between.
 */
bool sy_options_mean(const char *cache);

/* The options of text: a copy of at most SY_OPTION_TEXT_MAX bytes and a 0. "" when not set. */
void sy_options_report_path(char *path);
void sy_options_failures(char *text);

/* Whether the option was said since the last call, and what; for the layer that carries it out. */
bool sy_options_take(sy_late option, uint64_t *value);

/* From now on `changed` is called, without a lock, when sy_set_options has changed something. */
void sy_options_on_change(void (*changed)(void));

extern SY_HIDDEN const sy_part sy_options_part;

#endif

/* ---- every cache ---- */

static sy_cache_kind kind_of(const sy_cache *cache) {
    if (cache->client.number < SY_CLIENT_DEMANDED) return SY_CACHE_OF_SIZES;
    bool process = !cache->quota || cache->quota == &sy_quota_process;
    return process ? SY_CACHE_OF_PROGRAM : SY_CACHE_OF_HEAP;
}

/* The account of the client, if it is a cache. */
static bool take_account(const sy_client *client, sy_cache_account *account) {
    if (client->config.refill != sy_cache_refill) return false;
    const sy_cache *cache = client->config.owner;
    account->cache = cache;
    account->kind = kind_of(cache);
    return sy_cache_get_stats(cache, &account->stats) == 0;
}

int sy_each_cache(int (*visit)(void *arg, const sy_cache_account *account), void *arg) {
    sy_client *client;
    int result = 0;
    if (!visit) {
        errno = EINVAL;
        return -1;
    }
    for (unsigned number = 0; result == 0 && (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_account account;
        number = client->number;
        bool known = take_account(client, &account);
        sy_client_unpin(client);
        if (!known) continue;
        SY_CALLBACK(call, .function = "visitor of sy_each_cache");
        result = visit(arg, &account);
        call.returned = true;
    }
    return result;
}

/* ---- rows ---- */

typedef struct cache_account_row {
    char name[SY_CACHE_NAME_MAX + 1];
    sy_cache_kind kind;
    size_t size, live, held, waiting; /* bytes, objects, bytes, objects */
    uint64_t slow;
} cache_account_row;

typedef struct account {
    size_t count, room, unused; /* rows, room for them, caches without memory */
    size_t untouched;           /* bytes of slabs that hold no memory */
    cache_account_row rows[];
} account;

static int add_row(void *to_, const sy_cache_account *of) {
    account *to = to_;
    const sy_cache_stats *stats = &of->stats;
    bool used = stats->mapped || stats->in_use;
    to->unused += !used;
    to->untouched += stats->discarded + stats->never_used;
    if (!used || to->count == to->room) return 0;
    cache_account_row *fresh = &to->rows[to->count++];
    memcpy(fresh->name, stats->name, sizeof fresh->name);
    fresh->kind = of->kind;
    fresh->size = stats->object_size;
    fresh->live = stats->in_use;
    fresh->held = stats->mapped;
    fresh->waiting = stats->in_depot + stats->in_loaded;
    fresh->slow = stats->refills + stats->flushes;
    return 0;
}

static bool cache_account_is_before(const cache_account_row *a, const cache_account_row *b) {
    return a->held != b->held ? a->held > b->held : strcmp(a->name, b->name) < 0;
}

/* Shell's method, without memory. */
static void cache_account_sort(account *all) {
    for (size_t gap = all->count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < all->count; i++) {
            cache_account_row moved = all->rows[i];
            size_t at = i;
            for (; at >= gap && cache_account_is_before(&moved, &all->rows[at - gap]); at -= gap)
                all->rows[at] = all->rows[at - gap];
            all->rows[at] = moved;
        }
}

/* ---- words ---- */

enum {
    NAME_COLUMN = 24, /* where the first figure of a row may begin */
    DECIMALS_BELOW = 10,
};

/* Ends at that column, counted from the beginning of the line. */
static void add_right(sy_text *line, const sy_text *figure, size_t column) {
    do sy_text_add(line, " ");
    while (line->length + figure->length < column);
    for (size_t i = 0; i < figure->length; i++) sy_text_add(line, (char[]){figure->bytes[i], 0});
}

static void cache_account_add_bytes(sy_text *line, uint64_t bytes, size_t column) {
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    sy_text figure = {.length = 0};
    unsigned unit = 0;
    uint64_t worth = 1;
    while (bytes / worth >= 1024 && unit < 4) worth *= 1024, unit++;
    sy_text_add_number(&figure, bytes / worth);
    if (unit && bytes / worth < DECIMALS_BELOW) {
        sy_text_add(&figure, ".");
        sy_text_add_number(&figure, bytes % worth * 10 / worth);
    }
    sy_text_add(&figure, units[unit]);
    add_right(line, &figure, column);
}

static void cache_account_add_count(sy_text *line, uint64_t count, size_t column) {
    sy_text figure = {.length = 0};
    sy_text_add_number(&figure, count);
    add_right(line, &figure, column);
}

static uint64_t percent(uint64_t part, uint64_t whole) {
    return whole ? (uint64_t)((double)part * 100 / (double)whole + 0.5) : 0;
}

static void add_percent(sy_text *line, uint64_t part, uint64_t whole, size_t column) {
    sy_text figure = {.length = 0};
    sy_text_add_number(&figure, percent(part, whole));
    sy_text_add(&figure, " %");
    add_right(line, &figure, column);
}

/* ---- lines ---- */

typedef struct output {
    int fd, error;
} output;

static void cache_account_end_line(output *to, sy_text *line) {
    sy_text_add(line, "\n");
    if (!to->error) to->error = sy_os_write(to->fd, line->bytes, line->length);
    line->length = 0;
}

static void write_text(output *to, const char *text) {
    sy_text line = {.length = 0};
    sy_text_add(&line, text);
    cache_account_end_line(to, &line);
}

static void write_total(output *to, const char *what, size_t bytes, const char *remark) {
    sy_text line = {.length = 0};
    sy_text_add(&line, what);
    cache_account_add_bytes(&line, bytes, 40);
    sy_text_add(&line, remark);
    cache_account_end_line(to, &line);
}

static void write_totals(output *to, const account *all) {
    sy_stats stats;
    sy_get_stats(&stats);
    size_t beside = stats.magazines + stats.side;
    size_t untouched = stats.units_clean + all->untouched;
    size_t touched = stats.mapped > untouched ? stats.mapped - untouched : 0;
    write_total(to, "mapped for objects", stats.mapped, "");
    write_total(to, "  slabs of caches", stats.slabs, "");
    write_total(to, "  large objects", stats.spans, "");
    write_total(to, "  free, for any of these", stats.units_free, "");
    write_total(to, "  headers", stats.chunk_headers, "");
    write_total(to, "magazines and tables", beside, "");
    write_total(to, "in memory, about", touched + beside, "  (without what was never touched)");
}

static void write_row(output *to, const cache_account_row *of) {
    sy_text line = {.length = 0};
    sy_text_add(&line, of->name);
    if (line.length >= NAME_COLUMN) cache_account_end_line(to, &line); /* the figures in a line of their own */
    cache_account_add_bytes(&line, of->size, 32);
    cache_account_add_count(&line, of->live, 43);
    cache_account_add_bytes(&line, of->held, 53);
    add_percent(&line, (uint64_t)of->live * of->size, of->held, 60);
    cache_account_add_count(&line, of->waiting, 70);
    cache_account_add_count(&line, of->slow, 80);
    cache_account_end_line(to, &line);
}

static void write_rows(output *to, const account *all, sy_cache_kind kind, const char *title) {
    bool begun = false;
    for (size_t i = 0; i < all->count && !to->error; i++) {
        if (all->rows[i].kind != kind) continue;
        if (!begun) write_text(to, title);
        begun = true;
        write_row(to, &all->rows[i]);
    }
}

static void write_account(output *to, const account *all) {
    sy_text line = {.length = 0};
    sy_text_add(&line, "slabyard: memory of process ");
    sy_text_add_number(&line, (uint64_t)sy_os_process());
    cache_account_end_line(to, &line);
    write_totals(to, all);
    write_text(to, "");
    write_text(to, "                            size       live      held   used"
                   "   waiting      slow");
    write_rows(to, all, SY_CACHE_OF_PROGRAM, "caches:");
    write_rows(to, all, SY_CACHE_OF_HEAP, "heaps of the program:");
    write_rows(to, all, SY_CACHE_OF_SIZES, "sizes of sy_malloc:");
    if (all->unused) {
        sy_text_add(&line, "caches without memory:");
        cache_account_add_count(&line, all->unused, 0);
        cache_account_end_line(to, &line);
    }
    write_text(to, "used: part of the memory held that live objects are; waiting: free objects in");
    write_text(to, "magazines; slow: magazines that were filled from slabs and emptied into slabs");
}

/* ---- the doors ---- */

/* Caches may be created while they are counted; some more than there are now. */
enum { ROOM_MORE = 64 };

int sy_print_stats(int fd) {
    sy_stats stats;
    sy_get_stats(&stats);
    size_t room = stats.caches + ROOM_MORE;
    size_t bytes = sy_round_up(sizeof(account) + room * sizeof(cache_account_row), sy_os_page_size());
    account *all = sy_pages_take(bytes, sy_os_page_size(), "slabyard account");
    if (!all) return -1;
    all->room = room;
    sy_each_cache(add_row, all);
    cache_account_sort(all);
    output to = {.fd = fd};
    write_account(&to, all);
    sy_pages_give(all, bytes);
    if (to.error) errno = to.error;
    return to.error ? -1 : 0;
}

static void print_at_exit(void) {
    if (atomic_load_explicit(&sy_options_now.stats, memory_order_relaxed)) sy_print_stats(2);
}

static int announce_account(void) {
    bool wanted = atomic_load_explicit(&sy_options_now.stats, memory_order_relaxed);
    return wanted ? sy_os_at_exit(print_at_exit) : 0;
}

const sy_part sy_account_part = {.finish = announce_account};

/* ==== src/cache/cache.c ==== */

/*
 * cache.c: the doors of slabyard/cache.h but for trim and counts.
 */

/*
 * directory.h: ordinals: from a 32-bit number to a slot, for handles (slabyard/handle.h).
 *
 *     words    8 bytes an ordinal: generation, cache, pins, state
 *     places   8 bytes for 64 ordinals: where the first of them lies
 *     highest  4 bytes for 64 ordinals: generation above which they start again
 *     marks    1 byte for 512 ordinals, a page of words: a slab has left it
 *
 * All are reserved for good when the first cache with handles is made, 33 GiB of address
 * space or what is to be had, and committed from the front: whatever ordinal below
 * sy_ordinals_limit is looked up, there is a word. A slab has a range of ordinals, a multiple of
 * 64, from an arena of them, as long as it exists. Then its words read as zero, which is no
 * object's. Their memory goes back with a trim, or by age with passes, as far as no other slab has
 * words on the same page; what stays is 4 bytes for 64.
 *
 * Below: vmem/, os/. Above: refill.c, handle.c.
 */
#ifndef SY_CACHE_DIRECTORY_H
#define SY_CACHE_DIRECTORY_H

/* Reserves the directory, if it is not there. 0, or -1 with ENOMEM. Any thread. */
int sy_directory_start(void);

/* After that, for ever. */
uint64_t *sy_directory_words(void);
uintptr_t *sy_directory_places(void);

/* The address space of all three tables, in bytes; 0: there is none yet. */
size_t sy_directory_range(const void **start);

/* No ordinal was given that is not below. */
uint64_t sy_ordinals_limit(void);

/* Ordinals for `count` slots; false with ENOMEM. */
bool sy_ordinals_take(uint32_t count, uint32_t *first);

/* Where the slots are: `slot` bytes each, the first at `place`. */
void sy_ordinals_place(uint32_t first, uint32_t count, uintptr_t place, size_t slot);

/* Backs their words with memory now. 0, or -1 with ENOMEM. */
int sy_ordinals_populate(uint32_t first, uint32_t count);

/* Gives them back. Objects have been freed or are no more: their words become zero. */
void sy_ordinals_give(uint32_t first, uint32_t count);

/* Makes the word of an ordinal that is about to be given out a free word of the cache. */
void sy_ordinal_prepare(uint32_t ordinal, unsigned cache_number);

/* Gives the memory of the words back that slabs have left, as far as it is whole pages; returns
 * bytes. */
size_t sy_directory_trim(void);
/* The same in steps: from *at on, 0 first; false: all is done. `aged`: of the pages that were left
 * before such a step looked at them last. *bytes grows by what was discarded. */
bool sy_directory_trim_step(uint64_t *at, bool aged, size_t *bytes);

/* Ordinals lost for good, since their generations are spent. */
uint64_t sy_ordinals_lost(void);

#endif
/*
 * epoch.h: what epochs are to the rest of this layer: other bins.
 *
 *     cache ---- bins                slabs of no epoch
 *       \------- view of epoch A     bins, and a count of what is out of its slabs
 *        \------ view of epoch B
 *
 * A view is made when a cache is first allocated from in an epoch, and goes with the epoch, which
 * stays as long as it is open, a thread is in it, or a slab is its. The slabs' descriptors lead to
 * their bins, and so to the view. A view keeps no empty slab.
 *
 * Below: cache.h. Used by the rest of cache/ alone.
 */
#ifndef SY_CACHE_EPOCH_H
#define SY_CACHE_EPOCH_H

typedef struct sy_view {
    sy_bins bins; /* guarded by the cache's lock, as is the next */
    size_t out;   /* slots out of its slabs */
    sy_epoch *epoch;
    _Atomic(sy_cache *) cache; /* NULL: destroyed; written under the lock of the epochs */
    struct sy_view *next;      /* of the epoch */
} sy_view;

/* Of a slab that is in no cache's own bins. */
static inline sy_view *sy_view_of(const sy_bins *bins) {
    return (sy_view *)((char *)(uintptr_t)bins - offsetof(sy_view, bins));
}

/* The bins from which this thread allocates; NULL with ENOMEM. No lock is held. */
sy_bins *sy_epoch_bins(sy_cache *cache);

/* Whether a live object is of an epoch that was closed. The lock is held. */
bool sy_epoch_is_over(const sy_cache *cache, const void *object);

/* A slab comes to a view, or has left it: no lock is held, and the view may be gone. */
void sy_view_hold(sy_view *view);
void sy_view_let_go(sy_view *view);

/* The cache is going to be destroyed: epochs forget it, and are not at work with it any more. */
void sy_epochs_forget(sy_cache *cache);

#endif
/*
 * guarded.h: objects of a cache that are on pages of their own (watch/guard.h), with SY_GUARD.
 *
 *     sy_cache_alloc_slow --> sy_client_due --> sy_guarded_alloc, or as ever if there is no room
 *     sy_cache_free_slow  --> sy_guarded_free, if the object lies there
 *
 * They are in no slab: live == out of the slabs and in no magazine, and guarded. They count for the
 * cache's own limit; no quota knows of them.
 *
 * Below: cache.h, watch/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_GUARDED_H
#define SY_CACHE_GUARDED_H

/*
 * guard.h: objects on pages of their own, with inaccessible ones beside them.
 *
 *     | guard | slot 0 | guard | slot 1 | guard | slot 2 . (guard) . slot 3 | guard | ...
 *      a page                                      a run of two slots, for what is larger
 *
 * An object lies at the right end of its run, or at the left, by turns: as far as its alignment
 * lets it. Of the run the pages that it touches are accessible while it is live, none before and
 * after; what of these pages is no object has the pattern of its watch. After its free the run
 * waits until the others were used, the one freed longest ago is reused first. Guards are the
 * kernel's (MADV_GUARD_INSTALL, Linux 6.13), which cost no mapping, or else mprotect's.
 *
 * All in one reservation, made when the first object is guarded, with as many slots as the option
 * `guard-slots` says then. With guard=all there are a million (8 GiB of addresses, touched as
 * used), and objects may have runs of several slots, up to 1 MiB; else what is larger than a page
 * is not guarded. Nor is what finds no run.
 *
 * Each run has a record (watch.h), so that a free is validated and a fault explained: by
 * sy_guard_explain, from the handler of SIGSEGV and SIGBUS, if the option `explain` lets there be
 * one, which then calls the handler that was there before. Who allocated and freed is noted for
 * each object, whether audit is on or not. (After GWP-ASan and KFENCE.)
 *
 * Above: magazine/ (when), cache/ (what). Below: watch.h, stack.h, os/.
 */
#ifndef SY_WATCH_GUARD_H
#define SY_WATCH_GUARD_H

/*
 * watch.h: what is checked of one cache or pool, object by object.
 *
 * Beside each slot of a watched slab there is a record, out of the program's reach. It says whether
 * the object is live, how large it was asked to be, and, with audit, who allocated and freed it:
 *
 *     FRESH --taken--> TAKEN --given--> LIVE --claimed--> FREEING --filled--> FREE --taken--> TAKEN
 *       ^                                        (one thread wins)             |
 *       +------------------------ its memory was given back -------------------+
 *
 *     slot:  | left zone | object: asked for | rest | right zone |        zones: `zone` bytes each
 *                        ^ object            ^ size ^ watch->size
 *
 * The zone behind an object begins where the size asked for ends. A free object is full of
 * SY_PATTERN_FREE; a zone has the pattern of its cache, which nobody can foresee. All functions
 * here work on memory and records that the caller gives; where they lie is his affair, and he holds
 * no lock.
 *
 * With SY_TOLD a tool knows of all this (tools.h): a live object is shown to the program, `size`
 * bytes of it, and the rest of its slot, like a free slot, is hidden.
 *
 * Above: pool/, cache/, guard.c. Below: access.h, report.h, stack.h, options.h, tools.h.
 */
#ifndef SY_WATCH_WATCH_H
#define SY_WATCH_WATCH_H

typedef enum sy_object_state {
    SY_OBJECT_FRESH, /* never given out, or its memory was given back */
    SY_OBJECT_TAKEN,
    SY_OBJECT_LIVE,
    SY_OBJECT_FREEING,
    SY_OBJECT_FREE,
} sy_object_state;

/* Somebody did something. */
typedef struct sy_stamp {
    uint64_t time;  /* of sy_os_now; 0: not noted */
    uint32_t stack; /* of stack.h */
    uint32_t thread;
} sy_stamp;

typedef struct sy_record {
    _Atomic uint32_t word; /* the state, and above it a count of its changes */
    uint32_t tag;          /* of audit.h, at its allocation */
    _Atomic size_t size;   /* asked for, bytes */
    sy_stamp allocated, freed;
} sy_record;

enum { SY_OBJECT_STATES = 8 };

static inline sy_object_state sy_record_state(const sy_record *record) {
    return (sy_object_state)(atomic_load_explicit(&record->word, memory_order_acquire) %
                             SY_OBJECT_STATES);
}

static inline size_t sy_record_size(const sy_record *record) {
    return atomic_load_explicit(&record->size, memory_order_relaxed);
}

/* What is known of a live object. */
typedef struct sy_live {
    size_t size; /* asked for */
    sy_stamp allocated;
} sy_live;

/* False if it is not live. Others may free it, and allocate it anew, meanwhile. */
bool sy_record_live(const sy_record *record, sy_live *live);

typedef struct sy_history sy_history;

typedef struct sy_watch {
    const char *name;
    void *owner;     /* the cache, for who finds it by an object; its affair */
    size_t size;     /* bytes of an object at most */
    unsigned checks; /* SY_CHECKED and its kin */
    uint32_t zone;   /* bytes before and behind; 0: none */
    uint64_t pattern;
    sy_history *history; /* NULL: none is kept */
    /* Quarantine: freed items in no order. Under the owner's lock. */
    uintptr_t *waiting;
    uint32_t waiting_count, waiting_max;
    uint64_t random;
} sy_watch;

/* Those for which objects, slabs or addresses have to be looked at. */
enum { SY_WATCH_FLAGS = SY_CHECKED | SY_EDGES | SY_GUARD | SY_ZERO };

/* What the option `tools` adds; no flags of configurations. Both bring SY_CHECKED. */
enum {
    SY_TOLD = 1 << 29,   /* the tool that is present is told of slabs and objects */
    SY_PASSED = 1 << 30, /* each object is a block of the C library's; no other check is made */
};

/* The flags of a configuration and what the options add for a cache or pool of this name, with what
 * each brings along, whatever tools are to be told. */
unsigned sy_watch_untold(unsigned flags, const char *name);

/* The same, and what the option `tools` adds. `passable`: it may be SY_PASSED, with which all other
 * flags of checks go. */
unsigned sy_watch_checks(unsigned flags, const char *name, bool passable);

/* Whether caches that are made now and may be SY_PASSED are. */
bool sy_watch_passes(void);

/* Bytes of each zone that these checks want. */
size_t sy_watch_zone(unsigned checks);

/* Begins to watch; `name` stays where it is. 0, or -1 with ENOMEM. */
int sy_watch_open(sy_watch *watch, const char *name, size_t size, unsigned checks);
void sy_watch_close(sy_watch *watch);

/* What is to be verified once more when the process ends. */
typedef struct sy_exit_check {
    void (*verify)(void);
    _Atomic bool registered;
} sy_exit_check;

/* From now on `check->verify` is called when the process ends by exit() or from main(). It asks
 * whether the option `exit-check` wants it. 0, or -1 with ENOMEM. Any thread, any number of times.
 */
int sy_watch_at_exit(sy_exit_check *check);

/* ---- an object's life ---- */

/* A slot was taken for an allocation: what was free is verified (SY_FAULT_WRITE_AFTER_FREE). */
void sy_watch_taken(const sy_watch *watch, sy_record *record, void *object);

/* With SY_TOLD: it is shown, `size` bytes of it; before it is constructed. */
void sy_watch_show(const sy_watch *watch, sy_record *record, const void *object, size_t size);

/* It is given to the program, for `size` bytes; `built`: it is constructed, and stays as it is. */
void sy_watch_given(const sy_watch *watch, sy_record *record, void *object, size_t size,
                    bool built);

/* It comes back: true for one caller. False, with the fault raised, if it is not live or `told` (a
 * size, SIZE_MAX: not said) is not the size. What its zones have suffered is raised too. */
bool sy_watch_claim(const sy_watch *watch, sy_record *record, void *object, size_t told);
/* The same in two parts, for callers that hold a lock in the first: whether it is live and now the
 * caller's, and what is done then. */
bool sy_watch_try_claim(sy_record *record);
void sy_watch_claimed(const sy_watch *watch, sy_record *record, const void *object);

/* It is free now, filled if that is wanted, and hidden. */
void sy_watch_fill(const sy_watch *watch, sy_record *record, void *object);

/* Its memory goes, or it was not given to the program after all: what is free is verified, what is
 * not is hidden. */
void sy_watch_forget(const sy_watch *watch, sy_record *record, void *object);

/* Whether something is wrong with it at present, and what. It may be in use. */
bool sy_watch_look(const sy_watch *watch, const sy_record *record, const void *object,
                   sy_fault *fault);

/* Adds what a record knows of its object, who had it and how large it is. */
void sy_watch_describe(const sy_record *record, sy_fault *fault);

/* Raises a fault about an object, with what its record knows; record may be NULL. */
void sy_watch_raise(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                    const void *address, const void *object);

/* Tells at the end of a tool's report whose slot `address` lies in, and who had the object. */
void sy_watch_explain(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object);

/* ---- quarantine, under the owner's lock ---- */

/* Puts `item` among those that wait. True with one that has waited in *out, if they are too many.
 */
bool sy_watch_wait(sy_watch *watch, uintptr_t item, uintptr_t *out);

/* Takes one that waits; false: there is none. */
bool sy_watch_next(sy_watch *watch, uintptr_t *out);

/* ---- patterns ---- */

/* Fills the edge of a slab; looks whether it is as it was. */
void sy_watch_lay(const sy_watch *watch, void *start, size_t bytes);
bool sy_watch_look_at_edge(const sy_watch *watch, const void *start, size_t bytes, sy_fault *fault);

/* ---- audit ---- */

/* Now, here; zeroes without audit. */
sy_stamp sy_stamp_here(const sy_watch *watch);

/* What the program is told of it. */
sy_trace sy_stamp_trace(const sy_stamp *stamp);

#endif

/* Bytes from one address to the next that cannot be told apart by page; written once. */
extern SY_HIDDEN _Atomic uintptr_t sy_guard_start;
extern SY_HIDDEN _Atomic size_t sy_guard_bytes;

/* Whether the address lies in the region of guarded objects; false before there is one. */
static inline bool sy_guard_owns(uintptr_t address) {
    size_t bytes = atomic_load_explicit(&sy_guard_bytes, memory_order_acquire);
    return address - atomic_load_explicit(&sy_guard_start, memory_order_relaxed) < bytes;
}

/* ---- which allocations: one in `guard_every` ---- */

/*
 * Allocations that this thread makes until one is to be guarded, that one included; less than 1:
 * it is overdue, which shortens the next interval. The intervals are random (geometric, so that
 * nobody is in step with them, and threads of few allocations have their share). Caches that see
 * each allocation count by sy_guard_due; those whose allocations are inline subtract what has gone
 * from their magazines (magazine/sample.h).
 */
extern SY_HIDDEN SY_TLS int64_t sy_guard_left;

/* An allocation is made: whether it is the one. */
bool sy_guard_due(void);

/* ---- an object's life ---- */

/* An object of `size` bytes at `align` for the cache that is watched, live from now on. NULL: there
 * is no run for it; errno is kept. */
void *sy_guard_alloc(sy_watch *watch, size_t size, size_t align);

/* Called for an object that is not live any more, while it is still there. */
typedef void sy_guard_visit(void *object, void *arg);

/*
 * Frees it: checks that it is live, begins there, belongs to `watch` and has `told` bytes
 * (SIZE_MAX: not said), verifies what of its pages is no object, calls `last` (NULL: nobody) and
 * makes them inaccessible. False, with the fault raised that the cache would raise: it is none
 * such.
 */
bool sy_guard_free(sy_watch *watch, void *object, size_t told, sy_guard_visit *last, void *arg);
/* The same, but nothing is raised if it is none such. */
bool sy_guard_try_free(sy_watch *watch, void *object, sy_guard_visit *last, void *arg);

/* Bytes asked for of the live object that begins there; 0: none does. In *watch whose the run at
 * that address is, or was last; NULL: nobody's who is still there. */
size_t sy_guard_size(const void *object, sy_watch **watch);

/* The record of the run that lies at an address, where its object is or was last, and whose (as
 * above); NULL: there has been none. */
sy_record *sy_guard_record(uintptr_t address, uintptr_t *object, sy_watch **watch);

/* Live guarded objects of the cache; those of a cache that is destroyed go without a word but to
 * `last`. Both walk all runs. */
size_t sy_guard_live(const sy_watch *watch);

/* Visits its objects, live or not: where they lie, and what is known. No lock is held. */
void sy_guard_each(const sy_watch *watch,
                   void (*visit)(void *arg, const void *object, const sy_record *record),
                   void *arg);
void sy_guard_forget(sy_watch *watch, sy_guard_visit *last, void *arg);

/* ---- bad accesses ---- */

/* If it hit a guard or a freed object: tells the fault, and true (access.h). */
bool sy_guard_explain(const sy_os_access *access);

/* ---- the whole ---- */

/* The memory of its own records; NULL with 0 bytes: there is none. */
const void *sy_guard_table(size_t *bytes);

/* Violations of its invariants. */
size_t sy_guard_verify(void);

/* In the child of a fork what other threads were taking or freeing is free. */
extern SY_HIDDEN const sy_part sy_guard_part;

#endif

static inline bool sy_cache_guards(const sy_cache *cache) { return cache->flags & SY_GUARD; }

/* Whether slow paths have to look at each object. */
static inline bool sy_cache_watches(const sy_cache *cache) {
    return cache->flags & (SY_CHECKED | SY_GUARD);
}

/* Whether objects of such a cache can be: not if they have to lie somewhere (in memory of the
 * program's, or locked, or out of dumps), nor have handles, which lead to slabs. */
bool sy_guarded_can(unsigned flags, const sy_memory *memory);

/* An object of `size` bytes, at `align` or the cache's own if that is less, if it is this
 * allocation's turn; else NULL, errno kept. */
void *sy_guarded_alloc(sy_cache *cache, size_t size, size_t align);

/* Frees `object`, which lies there, or raises the fault that it is. errno is kept. */
void sy_guarded_free(sy_cache *cache, void *object, size_t told);
/* The same, but false if it is no live object of the cache. */
bool sy_guarded_try_free(sy_cache *cache, void *object);

/* The cache whose guarded object begins at `object`, or did, or lies around it; NULL: none's. */
sy_cache *sy_guarded_cache(const void *object);

/* Bytes of the live one that begins there; 0: none does. */
size_t sy_guarded_size(const void *object);

/* Whether an object of the cache begins there, or can (if it is neither checked nor guarded), and
 * the bytes that may be used of it. */
bool sy_cache_find_object(const sy_cache *cache, const void *object, size_t *bytes);

/* Those of a cache that is destroyed are destructed, and go. */
void sy_guarded_forget(sy_cache *cache);

#endif
/*
 * limit.h: what happens at a limit in bytes: room is made, somebody is told, the reason is kept.
 *
 *     door -> sy_client_alloc -> refill -> sy_cache_add_slab -> quota: refuses, or notes the
 *        <---------- the reason is noted on the way out ----------|    soft mark
 *     door: make room (drain, empty slabs), call back, once more; at its end: tell
 *
 * Refill works on half-filled magazines and runs constructors, so no callback is called from there,
 * but at the end of the doors, and not at all in doors that a constructor or a callback uses: the
 * quota stays marked until another door of the same owner comes to its end.
 *
 * Used by the slow paths of cache/ and heap/. Below: quota.h, magazine/.
 */
#ifndef SY_CACHE_LIMIT_H
#define SY_CACHE_LIMIT_H

/*
 * fail.h: what asks whether an allocation is made to fail. The rules are those of slabyard/fail.h.
 *
 *     door of cache/, heap/ --sy_fail_due--+
 *                                          +--> rules, each with its count --> a line of report
 *     os/linux.c --sy_os_set_failing's-----+
 *
 * Every rule that means an allocation counts it, whether another one makes it fail or not; so the
 * counts do not depend on their order. Without rules all this costs a door the test of one byte.
 *
 * Above: the doors that see every allocation; options.c, which asks whether a text is a
 * specification. Below: report.h, options.h, os/.
 */
#ifndef SY_WATCH_FAIL_H
#define SY_WATCH_FAIL_H

/* Whether there are rules. */
extern SY_HIDDEN _Atomic bool sy_fail_armed;

bool sy_fail_due_armed(const char *cache, size_t size);

/* Asked once by each allocation, before anything is taken. True: it is to fail; errno is ENOMEM and
 * it was told. False: errno is kept. The caller holds no lock. */
static inline bool sy_fail_due(const char *cache, size_t size) {
    return atomic_load_explicit(&sy_fail_armed, memory_order_relaxed) &&
           sy_fail_due_armed(cache, size);
}

/* Whether a rule means this cache, which then has to ask for each of its allocations. */
bool sy_fail_wants(const char *cache);

/* Whether it is a specification. */
bool sy_fail_valid(const char *specification);

/* Carries out what the option `fail` says, if it was said since the last time; options.h. */
void sy_fail_apply_option(void);

extern SY_HIDDEN const sy_part sy_fail_part;

#endif

/* Notes why a refill got nothing, for the door that will come back empty-handed. */
void sy_refuse(sy_refusal reason);

/* The same for a run that was not taken; `refused`: the quota in whose way it was, or NULL. */
void sy_refuse_run(const sy_quota *refused);

/* What doors call in place of sy_client_alloc. False with errno, and the reason is kept. */
bool sy_cache_take(sy_cache *cache, uintptr_t *item);

/* A span of the process's heap in place of sy_run_take; NULL with ENOMEM, and the reason is kept.
 */
sy_slab *sy_limit_take_span(size_t bytes, size_t align, size_t room, bool *clean);

/* sy_run_resize of such a span. */
bool sy_limit_resize_span(sy_slab *span, size_t bytes);

/* A door fails for a reason that no run or refill has noted. */
void sy_limit_refuse(sy_refusal reason);

/* Whether this allocation is made to fail; then it is refused as if the system had no memory. */
static inline bool sy_limit_fail_due(const char *name, size_t size) {
    if (SY_LIKELY(!sy_fail_due(name, size))) return false;
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    return true;
}

/* Calls the callbacks of the quota and its parents whose soft mark was reached, if this thread is
 * at liberty. No lock is held; errno is kept. */
void sy_limit_tell(sy_quota *quota);

/* In the child of a fork what other threads were taking or giving at that moment is counted as what
 * it has become. */
extern SY_HIDDEN const sy_part sy_limits_part;

#endif
/*
 * passed.h: caches of which each object is a block of the C library's (SY_PASSED), so that a tool
 * that watches malloc sees them as it sees other blocks: with its own red zones and stacks, and as
 * leaks. Such a cache has no slabs; its objects are constructed at their allocation.
 *
 * What is live is in one table for all caches, by a hash of the address. It holds no address as it
 * is: whoever looks for leaks must not find them here.
 *
 *     sy_watched_take --> sy_passed_take --> sy_os_block
 *     sy_watched_free --> sy_passed_free --> sy_os_block_free
 *
 * Below: cache.h, os/. Used by watched.c, cache.c and heap/.
 */
#ifndef SY_CACHE_PASSED_H
#define SY_CACHE_PASSED_H

/* An object of `size` bytes, ready to be used; false with errno as sy_cache_take. */
bool sy_passed_take(sy_cache *cache, size_t size, uintptr_t *item);

/* Frees it. A pointer of another cache, or the wrong size, is a fault; what was never given out, or
 * is not live, goes to the C library all the same: the tool says what it is. */
void sy_passed_free(sy_cache *cache, void *object, size_t told);
/* Frees it; false if it is no live object of the cache. */
bool sy_passed_try_free(sy_cache *cache, void *object);

/* The cache of the live object that begins there, and the bytes that were asked for; NULL: there is
 * none. */
sy_cache *sy_passed_owner(const void *object, size_t *size);

/* Frees all that is live, after its destructor. The cache is quiescent. */
void sy_passed_forget(sy_cache *cache);

extern SY_HIDDEN const sy_part sy_passed_part;

#endif
/*
 * watched.h: the doors of caches with SY_CHECKED: every operation is seen.
 *
 *     sy_cache_alloc_slow --> sy_watched_take --> sy_cache_take (slabs; there are no magazines)
 *     sy_cache_free_slow  --> sy_watched_free --> quarantine --> sy_client_free (slabs)
 *     handles             --> sy_watched_take, sy_watched_put
 *
 * With SY_PASSED they go on to passed.h instead.
 *
 * The records of a slab's slots lie behind its bitmaps, in side memory: out of reach of what the
 * program does to its objects.
 *
 * Below: cache.h, watch/. Used by the rest of cache/ and by heap/.
 */
#ifndef SY_CACHE_WATCHED_H
#define SY_CACHE_WATCHED_H

enum { SY_EDGE_BYTES = 64 }; /* of a pattern at each end of a slab, with SY_EDGES */

static inline bool sy_cache_checks(const sy_cache *cache) { return cache->flags & SY_CHECKED; }

/* Bytes of a slab's bitmaps and records. */
size_t sy_watched_side_bytes(const sy_cache *cache);

static inline sy_record *sy_watched_records(const sy_cache *cache, const sy_slab *slab) {
    return (sy_record *)(slab->free + 2 * cache->layout.words);
}

/* An item (an address, or an ordinal with SY_HANDLES) for an object of `size` bytes, ready to be
 * used; false with errno as sy_cache_take. The caller has asked whether it is made to fail. */
bool sy_watched_take(sy_cache *cache, size_t size, uintptr_t *item);

/* Frees it, or raises the fault that it is; `told`: its size, SIZE_MAX: not said. */
void sy_watched_free(sy_cache *cache, void *object, size_t told);
/* Frees it; false if it is no live object of the cache. */
bool sy_watched_try_free(sy_cache *cache, void *object);

/* The object of an ordinal that this thread has made free; `spent`: it is not used again. */
void sy_watched_put(sy_cache *cache, uintptr_t ordinal, bool spent);

/* Raises a fault of an object with a handle. */
void sy_watched_raise(const sy_cache *cache, uint32_t ordinal, sy_fault_kind kind);

/* Adds what is known of the object that the fault's address lies in, whoever's it is: where it
 * begins, how large it is, and with audit who had it. A foreign pointer at which one of the last
 * large objects began is a double free. Any address; locks may be held. */
void sy_watched_describe(sy_fault *fault);

/* Whether a live object begins at `address`, and the bytes that were asked for. */
bool sy_watched_size(const sy_cache *cache, uintptr_t address, size_t *size);

/* Takes back what an allocation has done before its object was to be constructed. */
typedef void sy_undo(const void *work);

/* Constructs an object by `construct`. If that fails (false, with the errno that it left) or
 * throws, undo(work) is called. */
bool sy_watched_construct(sy_cache *cache, int (*construct)(void *object, void *arg), void *object,
                          sy_undo *undo, const void *work);

/* Constructs, likewise, and destructs an object where that is done at each allocation and free. */
bool sy_watched_build(sy_cache *cache, void *object, sy_undo *undo, const void *work);
void sy_watched_unbuild(sy_cache *cache, void *object);

/* What waits in quarantine goes back to the slabs; whether anything did. */
bool sy_watched_drain(sy_cache *cache);

/* The memory of these slots goes (NULL: all of the slab, its edges, and what tools know of it):
 * what is free is verified, what is live destructed if it was constructed at its allocation. No
 * lock is held. */
void sy_watched_forget(sy_cache *cache, sy_slab *slab, const uint64_t *slots);

/* A slab is about to be used. */
void sy_watched_begin_slab(const sy_cache *cache, sy_slab *slab);

/* The granules (a bit each) that the slab keeps as long as it is used: those with edges. */
uint64_t sy_watched_edges(const sy_cache *cache, const sy_slab *slab);

/* How many objects and edges are damaged at present; each is reported. */
size_t sy_watched_verify(sy_cache *cache);
/* From now on each cache's free objects that were filled by poison are verified when the process
 * ends by exit() or from main(), unless the option `exit-check` says no; damage is a fault: nobody
 * else verifies what waits in quarantine, or was never given out again. 0, or -1 with ENOMEM. Any
 * thread, any number of times. (Pools: pool/checked.c.) */
int sy_watched_verify_at_exit(void);

/* Has reports of the tool that is present say more, from now on. */
void sy_watched_explain(void);

#endif
/*
 * side.h: memory for what the library keeps about memory: caches, bitmaps that do not fit in a
 * descriptor, descriptors of large spans. Blocks of a power of two, reused by size, never given
 * back: they are counted in sy_stats.side.
 *
 * Below: os. Above: chunk/ and cache/.
 */
#ifndef SY_CHUNK_SIDE_H
#define SY_CHUNK_SIDE_H

enum { SY_SIDE_MAX = 512 << 10 }; /* bytes of the largest block */

/* A zeroed block of at least `bytes`, at a multiple of 64 (or of its size, if that is less); NULL
 * with ENOMEM. */
void *sy_side_take(size_t bytes);

/* `bytes` as it was asked for. */
void sy_side_give(void *block, size_t bytes);

/* Bytes of blocks taken from the OS so far. */
size_t sy_side_bytes(void);

/* Calls for each piece of address space that blocks are from, with the lock held. */
void sy_side_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

void sy_side_lock_for_fork(void);
void sy_side_unlock_after_fork(void);

#endif
/*
 * turn.h: a turn at the end of each slow path: there a thread leaves the clients whose end it had
 * put off, and does a piece of work that serves all threads, if there is any.
 *
 * What that work is, a layer above says (sy_turn_serve; keep/reclaim.c: a step of a pass).
 */
#ifndef SY_MAGAZINE_TURN_H
#define SY_MAGAZINE_TURN_H

enum { SY_TURNS_PER_LOOK = 16 }; /* of a thread, from one look at the clock to the next */

extern SY_HIDDEN _Atomic bool sy_turn_wanted; /* there is work: each turn looks */
extern SY_HIDDEN SY_TLS unsigned sy_turns;    /* taken by this thread */

/* Has `work` called in turns, in any thread: when some is wanted, and in every
 * SY_TURNS_PER_LOOK-th. */
void sy_turn_serve(void (*work)(void));

void sy_turn_slow(void);

/* At the end of a slow path: no lock is held, nothing half done, errno may change. */
static inline void sy_turn(void) {
    if (SY_UNLIKELY(++sy_turns % SY_TURNS_PER_LOOK == 0 ||
                    atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)))
        sy_turn_slow();
}

/* This thread's next turn does not wait for its sixteenth. */
static inline void sy_turn_soon(void) { sy_turns = SY_TURNS_PER_LOOK - 1; }

#endif
/*
 * fault.h: one road for every misuse that is seen: the user's handler, or a report and the end of
 * the process (option on-fault).
 *
 * Nothing here allocates; callers hold no lock. Below: report.h, options.h, os/.
 */
#ifndef SY_WATCH_FAULT_H
#define SY_WATCH_FAULT_H

/* To the handler, or a report and the end of the process. Returns if the program is to go on; errno
 * is kept, unless a handler changes it. */
void sy_fault_raise(const sy_fault *fault);

/* The same for who only looks: the process goes on. */
void sy_fault_tell(const sy_fault *fault);

#endif

enum {
    MAGAZINE_BYTES = 256 << 10, /* of objects in one magazine at most, */
    MAGAZINE_ITEMS_LEAST = 2,   /* but never fewer than these */
    LIMIT_SHARE = 8,            /* of a limit: the part that may wait in magazines */
};

static const unsigned cache_cache_KNOWN_FLAGS =
    SY_COLOUR | SY_LIMIT_EXACT | SY_HANDLES | SY_EPOCHS | SY_CHECK_FLAGS;

/* ---- creation and destruction ---- */

static int check_config(const sy_cache_config *config) {
    bool valid = config && config->size > 0 && config->size <= SIZE_MAX / 2 &&
                 (config->align == 0 || sy_is_power_of_two(config->align)) &&
                 config->align <= SY_CACHE_ALIGN_MAX && (config->flags & ~cache_cache_KNOWN_FLAGS) == 0 &&
                 !(config->flags & SY_LIMIT_EXACT && config->limit == 0) &&
                 (config->flags & SY_HANDLES || !config->dispose);
    for (size_t i = 0; valid && i < sizeof config->reserved / sizeof *config->reserved; i++)
        valid = config->reserved[i] == 0;
    if (valid) return 0;
    errno = EINVAL;
    return -1;
}

static size_t magazine_items(const sy_cache *cache) {
    bool no_magazines = cache->flags & (SY_CHECKED | SY_LIMIT_EXACT) || cache->layout.slots == 1;
    if (no_magazines) return 0;
    size_t items = MAGAZINE_BYTES / cache->layout.slot;
    if (items < MAGAZINE_ITEMS_LEAST) items = MAGAZINE_ITEMS_LEAST;
    size_t of_limit = cache->limit == SIZE_MAX ? items : cache->limit / LIMIT_SHARE / 2;
    return items < of_limit ? items : of_limit;
}

/* What overwrites or hides free objects has them constructed anew, which is seen at each operation.
 */
static void set_up_construction(sy_cache *cache, const sy_cache_config *config) {
    cache->arg = config->arg;
    cache->dispose = config->dispose;
    if (!config->construct) return;
    if (cache->flags & (SY_POISON | SY_ZERO | SY_TOLD | SY_PASSED)) {
        cache->flags |= SY_CHECKED;
        cache->rebuilds = (sy_rebuilds){config->construct, config->destruct};
    } else {
        cache->construct = config->construct;
        cache->destruct = config->destruct;
    }
}

/* Whether an object may lie where the C library puts it: not if it has to be found in a slab, nor
 * if it is a secret. */
static bool may_pass(const sy_cache_config *config) {
    bool anywhere = !config->memory || config->memory == &sy_memory_main;
    return anywhere &&
           !(config->flags & (SY_HANDLES | SY_EPOCHS | SY_ZERO | SY_NO_DUMP | SY_LOCKED));
}

static void set_up_cache(sy_cache *cache, const sy_cache_config *config) {
    const char *name = config->name ? config->name : "cache";
    for (size_t i = 0; i < SY_CACHE_NAME_MAX && name[i]; i++) cache->name[i] = name[i];
    cache->flags = sy_watch_checks(config->flags, cache->name, may_pass(config));
    if (sy_fail_wants(cache->name)) cache->flags |= SY_CHECKED;
    cache->size = config->size;
    cache->layout =
        sy_layout_make(config->size, config->align, config->flags & SY_COLOUR,
                       sy_watch_zone(cache->flags), cache->flags & SY_EDGES ? SY_EDGE_BYTES : 0);
    set_up_construction(cache, config);
    if (cache->flags & SY_RANDOM) cache->random = sy_os_random() | 1;
    cache->memory = config->memory ? config->memory : &sy_memory_main;
    if (!sy_guarded_can(cache->flags, cache->memory)) cache->flags &= ~(unsigned)SY_GUARD;
    if (!cache->quota && cache->memory == &sy_memory_main) cache->quota = &sy_quota_process;
    cache->empties_least = 1;
    cache->limit = config->limit ? config->limit : SIZE_MAX;
    sy_lock_init(&cache->lock, SY_RANK_CACHE);
}

/* The loaded slot of addresses is that of number 0, which is shut: it is ordinals that wait. */
static void set_up_names(sy_cache *cache) {
    uint64_t live = (uint64_t)cache->client.number << SY_HANDLE_CACHE | SY_HANDLE_LIVE;
    cache->names = (struct sy_handle_head){
        .words = sy_directory_words(),
        .places = sy_directory_places(),
        .live = live,
        .plain = cache->dispose ? SY_HANDLE_STATE : live,
        .slot = cache->layout.slot,
        .names_offset = sy_client_offset(&cache->client),
    };
}

/* 0, or -1 with ENOMEM. */
static int begin_watch(sy_cache *cache) {
    if (!(cache->flags & SY_WATCH_FLAGS)) return 0;
    if (cache->flags & SY_POISON && sy_watched_verify_at_exit() != 0) return -1;
    sy_watch *watch = sy_side_take(sizeof *watch);
    if (!watch) return -1;
    if (sy_watch_open(watch, cache->name, cache->size, cache->flags) != 0) {
        sy_side_give(watch, sizeof *watch);
        return -1;
    }
    watch->owner = cache;
    cache->watch = watch;
    if (cache->flags & SY_TOLD) sy_watched_explain();
    return 0;
}

static void end_watch(sy_cache *cache) {
    if (!cache->watch) return;
    sy_watch_close(cache->watch);
    sy_side_give(cache->watch, sizeof *cache->watch);
    cache->watch = NULL;
}

int sy_cache_open(sy_cache *cache, const sy_cache_config *config, unsigned number) {
    set_up_cache(cache, config);
    if (begin_watch(cache) != 0) return -1;
    const sy_client_config client = {
        .refill = sy_cache_refill,
        .flush = sy_cache_flush,
        .owner = cache,
        .item_bytes = cache->layout.slot,
        .magazine_items = magazine_items(cache),
        .loaded_items = cache->limit == SIZE_MAX ? 0 : cache->limit / LIMIT_SHARE,
        .addresses = !(cache->flags & SY_HANDLES),
        .calls_back = cache->destruct || cache->memory != &sy_memory_main,
        .admits = sy_cache_admit,
        .one_way = cache->flags & SY_EPOCHS,
        .bursts = cache->flags & SY_HANDLES,
        .sees_frees = cache->flags & (SY_GUARD | SY_ZERO),
        .guarded = sy_cache_guards(cache),
        .number = number,
    };
    cache->class_number = number;
    if (sy_client_open(&cache->client, &client) != 0) {
        end_watch(cache);
        return -1;
    }
    sy_memory_hold(cache->memory);
    if (cache->flags & SY_HANDLES)
        set_up_names(cache);
    else
        cache->head.loaded_offset = sy_client_offset(&cache->client);
    return 0;
}

sy_cache *sy_cache_create(const sy_cache_config *config) {
    if (check_config(config) != 0 || sy_start() != 0) return NULL;
    if (config->flags & SY_HANDLES && sy_directory_start() != 0) return NULL;
    sy_cache *cache = sy_side_take(sizeof *cache);
    if (!cache) return NULL;
    if (sy_cache_open(cache, config, 0) == 0) return cache;
    sy_side_give(cache, sizeof *cache);
    errno = ENOMEM;
    return NULL;
}

bool sy_cache_suspend(sy_cache *cache, void (*end)(void *arg), void *arg) {
    if (sy_client_suspend(&cache->client, end, arg)) return true;
    sy_turn_soon();
    return false;
}

static _Atomic(void (*)(sy_cache *)) on_destroy;

void sy_cache_on_destroy(void (*tell)(sy_cache *cache)) { atomic_store(&on_destroy, tell); }

static void tell_destroyed(sy_cache *cache) {
    void (*tell)(sy_cache * cache) = atomic_load(&on_destroy);
    if (tell) tell(cache);
}

static void cache_cache_end_all(void *cache) { sy_cache_destroy_all(cache); }

static void end_unused(void *cache) { sy_cache_destroy(cache); }

void sy_cache_destroy_all(sy_cache *cache) {
    if (!cache || !sy_cache_suspend(cache, cache_cache_end_all, cache)) return;
    tell_destroyed(cache);
    if (cache->flags & SY_EPOCHS) sy_epochs_forget(cache);
    sy_guarded_forget(cache);
    sy_client_close(&cache->client);
    if (cache->flags & SY_PASSED) sy_passed_forget(cache);
    while (cache->slabs) {
        sy_slab *slab = cache->slabs;
        sy_lock_acquire(&cache->lock);
        sy_cache_unlink_slab(cache, slab);
        sy_lock_release(&cache->lock);
        sy_cache_release_slab(cache, slab);
    }
    /* Not before: in the words of its ordinals the number is what says that they are its. */
    sy_client_give_number(&cache->client);
    end_watch(cache);
    sy_memory_let_go(cache->memory);
    sy_side_give(cache, sizeof *cache);
}

int sy_cache_destroy(sy_cache *cache) {
    if (!cache) return 0;
    if (cache->quota && cache->quota != &sy_quota_process) { /* a heap's */
        errno = EINVAL;
        return -1;
    }
    if (!sy_cache_suspend(cache, end_unused, cache)) return 0;
    if (sy_cache_in_use(cache) > 0) {
        sy_client_resume(&cache->client);
        tell_destroyed(cache);
        errno = EBUSY;
        return -1;
    }
    sy_cache_destroy_all(cache);
    return 0;
}

/* ---- allocation and free ---- */

/* At the end of a door: its errno is kept. */
static void cache_cache_take_turn(void) {
    int error = errno;
    sy_turn();
    errno = error;
}

static void *sy_cache_take_unwatched(sy_cache *cache) {
    uintptr_t object;
    if (sy_client_alloc_second(&cache->client, &object)) return (void *)object;
    int error = errno;
    if (!sy_cache_take(cache, &object)) return NULL;
    sy_turn();
    errno = error;
    return (void *)object;
}

static void *take_guarded_or_checked(sy_cache *cache, size_t size, size_t align) {
    uintptr_t object;
    SY_CONSTRUCTING_PATH(path, &cache->client);
    void *taken = sy_cache_guards(cache) ? sy_guarded_alloc(cache, size, align) : NULL;
    if (!taken && sy_cache_checks(cache) && sy_watched_take(cache, size, &object))
        taken = (void *)object;
    path.done = true;
    return taken;
}

static SY_COLD void *sy_cache_take_watched(sy_cache *cache, size_t size, size_t align) {
    bool checks = sy_cache_checks(cache);
    if (checks && sy_limit_fail_due(cache->name, size)) return NULL;
    void *taken = take_guarded_or_checked(cache, size, align);
    if (!taken && !checks) return sy_cache_take_unwatched(cache);
    cache_cache_take_turn();
    return taken;
}

void *sy_cache_alloc_sized(sy_cache *cache, size_t size, size_t align) {
    if (SY_LIKELY(!sy_cache_watches(cache) || cache->flags & SY_HANDLES))
        return sy_cache_alloc_inline(cache);
    return sy_cache_take_watched(cache, size, align);
}

/* Whether it was a guarded object. */
static inline bool free_guarded(sy_cache *cache, void *object, size_t told) {
    bool guarded = sy_cache_guards(cache) && SY_UNLIKELY(sy_guard_owns((uintptr_t)object));
    if (!guarded) return false;
    {
        SY_SLOW_PATH(&cache->client);
        sy_guarded_free(cache, object, told);
    }
    sy_turn();
    return true;
}

static SY_COLD void sy_cache_free_watched(sy_cache *cache, void *object, size_t told) {
    {
        SY_SLOW_PATH(&cache->client);
        sy_watched_free(cache, object, told);
    }
    sy_turn();
}

void sy_cache_free_sized(sy_cache *cache, void *object, size_t size) {
    if (SY_LIKELY(!sy_cache_checks(cache) || cache->flags & SY_HANDLES)) {
        sy_cache_free_inline(cache, object);
        return;
    }
    int error = errno;
    if (object && !free_guarded(cache, object, size)) sy_cache_free_watched(cache, object, size);
    errno = error;
}

void *sy_cache_alloc_slow(sy_cache *cache) {
    if (SY_UNLIKELY(cache->flags & SY_HANDLES)) return sy_cache_alloc_named(cache);
    if (SY_LIKELY(!sy_cache_watches(cache))) return sy_cache_take_unwatched(cache);
    return sy_cache_take_watched(cache, cache->size, cache->layout.align);
}

void sy_cache_wipe(const sy_cache *cache, void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    bool own = slab && slab->owner == cache &&
               sy_slab_index(slab, &cache->layout, (uintptr_t)object) != UINT32_MAX;
    if (own && !sy_cache_checks(cache)) memset(object, 0, cache->size);
}

static SY_COLD void sy_cache_raise_double_free(const sy_cache *cache, uintptr_t address) {
    int error = errno;
    sy_fault fault = sy_cache_fault(cache, SY_FAULT_DOUBLE_FREE, address, sy_slab_at(address));
    sy_fault_raise(&fault);
    errno = error;
}

void sy_cache_free_slow(sy_cache *cache, void *object) {
    bool named = cache->flags & SY_HANDLES;
    if (free_guarded(cache, object, SIZE_MAX)) return;
    if (!named && SY_UNLIKELY(sy_client_freed_last(&cache->client, (uintptr_t)object))) {
        sy_cache_raise_double_free(cache, (uintptr_t)object);
        return;
    }
    if (SY_UNLIKELY(cache->flags & SY_ZERO)) sy_cache_wipe(cache, object);
    if (SY_LIKELY(!named) && sy_client_free_second(&cache->client, (uintptr_t)object)) return;
    int error = errno;
    if (SY_UNLIKELY(named)) {
        sy_cache_free_named(cache, object); /* which takes its turn */
    } else if (SY_UNLIKELY(sy_cache_checks(cache))) {
        sy_cache_free_watched(cache, object, SIZE_MAX);
    } else {
        sy_client_free(&cache->client, (uintptr_t)object);
        sy_turn();
    }
    errno = error;
}

void *sy_cache_zalloc(sy_cache *cache) {
    if (cache->construct || cache->rebuilds.construct) {
        errno = EINVAL;
        return NULL;
    }
    void *object = sy_cache_alloc_inline(cache);
    return object ? memset(object, 0, cache->size) : NULL;
}

/* Each kind of object has a word, a list or a bit that decides between two who try. */
static bool sy_cache_try_free_of_kind(sy_cache *cache, void *object) {
    SY_SLOW_PATH(&cache->client);
    if (sy_guard_owns((uintptr_t)object)) return sy_guarded_try_free(cache, object);
    if (sy_cache_checks(cache)) return sy_watched_try_free(cache, object);
    return sy_cache_put_live(cache, (uintptr_t)object);
}

bool sy_cache_try_free(sy_cache *cache, void *object) {
    if (cache->flags & SY_HANDLES) return sy_handle_free_inline(cache, sy_handle_of(object));
    int error = errno;
    bool freed = sy_cache_try_free_of_kind(cache, object);
    if (freed) sy_turn();
    errno = error;
    return freed;
}

typedef struct sy_batch {
    sy_cache *cache;
    void **objects;
    size_t got;
    bool done;
} sy_batch;

/* If a constructor has thrown, the caller does not learn how many objects there were. */
static void end_batch(const sy_batch *batch) {
    if (!batch->done) sy_cache_free_batch(batch->cache, batch->objects, batch->got);
}

static void take_batch(sy_batch *batch, size_t count) {
    sy_cache *cache = batch->cache;
    uintptr_t *items = (uintptr_t *)batch->objects;
    batch->got = sy_client_alloc_loaded(&cache->client, items, count);
    while (batch->got < count && sy_cache_take(cache, &items[batch->got])) {
        batch->got++;
        batch->got +=
            sy_client_alloc_loaded(&cache->client, items + batch->got, count - batch->got);
        cache_cache_take_turn();
    }
}

static size_t alloc_batch(sy_cache *cache, void **objects, size_t count) {
    SY_CONSTRUCTING_PATH(path, &cache->client); /* ends after `batch`, which uses the cache */
    sy_batch batch SY_CLEANUP(end_batch) = {cache, objects, 0, false};
    if (cache->flags & (SY_HANDLES | SY_CHECKED | SY_GUARD)) {
        while (batch.got < count && (objects[batch.got] = sy_cache_alloc_inline(cache)) != NULL)
            batch.got++;
    } else {
        take_batch(&batch, count);
    }
    batch.done = path.done = true;
    return batch.got;
}

size_t sy_cache_alloc_batch(sy_cache *cache, void **objects, size_t count) {
    size_t got = alloc_batch(cache, objects, count);
    cache_cache_take_turn();
    return got;
}

void sy_cache_free_batch(sy_cache *cache, void *const *objects, size_t count) {
    for (size_t i = 0; i < count; i++) sy_cache_free_inline(cache, objects[i]);
}

size_t sy_cache_slot_size(const sy_cache *cache) {
    return cache->layout.zone ? cache->size : cache->layout.slot;
}

/* ---- reserve ---- */

/* Backs a slab with memory. The lock is held before and after. */
static int populate(sy_cache *cache, sy_slab *slab) {
    sy_bins_set_aside(slab->bins, slab);
    sy_lock_release(&cache->lock);
    int result = sy_run_populate(slab);
    if (result == 0 && cache->flags & SY_HANDLES)
        result = sy_ordinals_populate(slab->ordinal, slab->slots);
    sy_lock_acquire(&cache->lock);
    if (result == 0) {
        slab->watermark = slab->slots;
        slab->holes = 0;
    }
    sy_bins_insert(slab->bins, slab);
    return result;
}

static int populate_all(sy_cache *cache) {
    int result = 0;
    sy_lock_acquire(&cache->lock);
    for (sy_slab *slab = cache->slabs; slab && result == 0; slab = slab->next) {
        bool unbacked = slab->holes || slab->watermark < slab->slots;
        if (slab->bin < SY_BIN_FULL && unbacked) result = populate(cache, slab);
    }
    sy_lock_release(&cache->lock);
    return result;
}

/*
 * What was reserved is promised to allocations of any thread, but what waits in the magazines of a
 * thread that runs can be had by that thread alone. So there are slots for both:
 *
 *     slots >= promise + what the magazines of all threads together may hold
 *
 * With each thread that comes to use the cache the right side grows. Then slabs are added or, if
 * there are none to be had, the thread works without magazines. What waits in the depot or in the
 * magazines of parked threads is brought back before an allocation fails.
 */
typedef struct sy_slots {
    size_t all, out;
} sy_slots;

/* Those of epochs are for their objects alone. The lock is held. */
static sy_slots own_slots(const sy_cache *cache) {
    sy_slots slots = {cache->slab_count * cache->layout.slots, cache->out};
    if (cache->flags & SY_EPOCHS)
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
            if (slab->bins == &cache->bins) continue;
            slots.all -= slab->slots;
            slots.out -= slab->slots - slab->free_count;
        }
    return slots;
}

/* Whether there are slots for the promise and so many items. A promise is none any more when as
 * many are out. */
static bool has_slots(sy_cache *cache, size_t items, bool *may_add) {
    sy_lock_acquire(&cache->lock);
    size_t promise = atomic_load_explicit(&cache->promise, memory_order_relaxed);
    sy_slots slots = own_slots(cache);
    if (slots.out >= promise + items) atomic_store(&cache->promise, promise = 0);
    bool enough = !promise || slots.all >= promise + items;
    *may_add = !cache->tight;
    sy_lock_release(&cache->lock);
    return enough;
}

static void note_slack(sy_cache *cache, bool added) {
    sy_lock_acquire(&cache->lock);
    if (added)
        cache->empties_max++;
    else
        cache->tight = true;
    sy_lock_release(&cache->lock);
}

bool sy_cache_admit(void *owner, size_t items) {
    sy_cache *cache = owner;
    bool may_add;
    if (!atomic_load(&cache->promise)) return true;
    while (!has_slots(cache, items, &may_add)) {
        bool added = may_add && sy_cache_add_slab(cache, &cache->bins);
        note_slack(cache, added);
        if (!added) return false;
    }
    return true;
}

/* No memory and no directory of ordinals holds more. */
static size_t most_slots(const sy_cache *cache) {
    size_t most = SIZE_MAX / 2 / cache->layout.slot;
    return cache->flags & SY_HANDLES && most > UINT32_MAX ? UINT32_MAX : most;
}

/* Promises `count` slots more than are out; false: nothing can hold so many. *before: the promise
 * that there was. */
static bool make_promise(sy_cache *cache, size_t count, size_t *before) {
    sy_lock_acquire(&cache->lock);
    bool passed = cache->flags & SY_PASSED;
    size_t left = passed ? cache->limit - cache->passed : sy_cache_left(cache);
    bool fits = count <= left && count <= most_slots(cache);
    size_t promise = own_slots(cache).out + count;
    *before = atomic_load_explicit(&cache->promise, memory_order_relaxed);
    if (fits && !passed && promise > *before) atomic_store(&cache->promise, promise);
    cache->tight = false;
    sy_lock_release(&cache->lock);
    return fits;
}

/* Slabs until there are slots for `count` and what magazines may hold; which are kept. */
static bool add_slabs(sy_cache *cache, size_t count) {
    size_t slack = sy_thread_count() * 2 * cache->client.config.magazine_items;
    sy_lock_acquire(&cache->lock);
    sy_slots slots = own_slots(cache);
    size_t wanted = count + slack, have = slots.all - slots.out;
    cache->empties_max = wanted / cache->layout.slots + 1;
    sy_lock_release(&cache->lock);
    bool added = true;
    for (; added && have < wanted; have += cache->layout.slots)
        added = sy_cache_add_slab(cache, &cache->bins);
    return added;
}

/* 0, or -1 with ENOMEM. */
static int provide(sy_cache *cache, size_t count) {
    SY_SLOW_PATH(&cache->client);
    size_t before;
    /* Under a limit what waits in magazines stands in the way of new objects. */
    if (cache->limit != SIZE_MAX) sy_client_drain(&cache->client);
    sy_client_prepare(&cache->client);
    bool fits = make_promise(cache, count, &before);
    bool had = fits && (cache->flags & SY_PASSED || add_slabs(cache, count));
    if (sy_quota_crossed(cache->quota)) sy_limit_tell(cache->quota);
    if (had && populate_all(cache) == 0) return 0;
    if (fits) atomic_store(&cache->promise, before);
    errno = ENOMEM;
    return -1;
}

int sy_cache_reserve(sy_cache *cache, size_t count) {
    int result = provide(cache, count);
    cache_cache_take_turn();
    return result;
}

static bool fill_magazines(sy_cache *cache, size_t count) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool filled = sy_client_reserve(&cache->client, count) >= count;
    path.done = true;
    return filled;
}

int sy_thread_reserve(sy_cache *cache, size_t count) {
    size_t magazines = cache->flags & SY_EPOCHS ? 1 : 2;
    if (count > magazines * cache->client.config.magazine_items) {
        errno = EINVAL;
        return -1;
    }
    if (sy_cache_reserve(cache, count) != 0) return -1;
    bool reserved = fill_magazines(cache, count);
    cache_cache_take_turn();
    if (reserved) return 0;
    errno = ENOMEM;
    return -1;
}

/* ==== src/cache/calls.c ==== */

/*
 * calls.c: the inline doors as exported functions, for callers that cannot inline C.
 */

void *sy_cache_alloc(sy_cache *cache) { return sy_cache_alloc_inline(cache); }

void sy_cache_free(sy_cache *cache, void *object) { sy_cache_free_inline(cache, object); }

void *sy_handle_alloc(sy_cache *cache, sy_handle *handle) {
    return sy_handle_alloc_inline(cache, handle);
}

void *sy_handle_get(const sy_cache *cache, sy_handle handle) {
    return sy_handle_get_inline(cache, handle);
}

bool sy_handle_free(sy_cache *cache, sy_handle handle) {
    return sy_handle_free_inline(cache, handle);
}

/* ==== src/cache/count.c ==== */

/*
 * count.c: statistics, and the invariants of a cache as a function.
 */

/* Objects in quarantine; the lock is held. */
static size_t in_quarantine(const sy_cache *cache) {
    return cache->watch ? cache->watch->waiting_count : 0;
}

size_t sy_cache_in_use(const sy_cache *cache_) {
    sy_cache *cache = (sy_cache *)(uintptr_t)cache_; /* whose lock is taken */
    size_t depot, loaded;
    sy_clients_lock(); /* both locks, so that what a pass moves is counted once */
    sy_lock_acquire(&cache->lock);
    size_t out = cache->out - in_quarantine(cache), elsewhere = cache->guarded + cache->passed;
    sy_client_held(&cache->client, &depot, &loaded);
    sy_lock_release(&cache->lock);
    sy_clients_unlock();
    size_t retired = atomic_load_explicit(&cache->retired, memory_order_relaxed);
    size_t free = depot + loaded + retired;
    return elsewhere + (out > free ? out - free : 0);
}

static void count_slabs(const sy_cache *cache, sy_cache_stats *stats) {
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        stats->mapped += slab->bytes;
        stats->empty += slab->bin == SY_BIN_EMPTY;
        stats->full += slab->bin == SY_BIN_FULL;
        stats->discarded += sy_count_bits(slab->holes) * sy_slab_granule(slab);
        stats->never_used += (slab->slots - slab->watermark) * cache->layout.slot;
    }
}

int sy_cache_get_stats(const sy_cache *cache_, sy_cache_stats *stats) {
    sy_cache *cache = (sy_cache *)(uintptr_t)cache_;
    if (!cache || !stats) {
        errno = EINVAL;
        return -1;
    }
    const sy_layout *layout = &cache->layout;
    *stats = (sy_cache_stats){
        .object_size = cache->size,
        .slot_size = layout->slot,
        .align = layout->align,
        .slab_bytes = layout->slab_bytes,
        .slots_per_slab = layout->slots,
        .colours = layout->colours,
        .magazine_items = (unsigned)cache->client.config.magazine_items,
        .limit = cache->limit == SIZE_MAX ? 0 : cache->limit,
    };
    memcpy(stats->name, cache->name, sizeof stats->name);

    sy_clients_lock();
    sy_lock_acquire(&cache->lock);
    size_t out = cache->out, passed = cache->passed;
    sy_client_held(&cache->client, &stats->in_depot, &stats->in_loaded);
    sy_clients_unlock();
    stats->in_quarantine = in_quarantine(cache);
    stats->guarded = cache->guarded;
    stats->slabs = cache->slab_count;
    stats->refills = cache->counts.refills;
    stats->flushes = cache->counts.flushes;
    stats->slabs_made = cache->counts.slabs_made;
    stats->slabs_released = cache->counts.slabs_released;
    stats->slabs_filled = cache->bins.filled;
    stats->slabs_opened = cache->bins.opened;
    stats->slabs_reused = cache->bins.reused;
    stats->constructed = cache->counts.constructed;
    stats->destructed = cache->counts.destructed;
    count_slabs(cache, stats);
    sy_lock_release(&cache->lock);

    stats->partial = stats->slabs - stats->empty - stats->full;
    stats->slots = stats->slabs * layout->slots;
    stats->free = stats->slots - out;
    stats->tail = stats->mapped - stats->slots * layout->slot;
    stats->waste = stats->tail + stats->slots * (layout->slot - cache->size);
    stats->retired = atomic_load_explicit(&cache->retired, memory_order_relaxed);
    size_t waiting = stats->in_depot + stats->in_loaded + stats->in_quarantine + stats->retired;
    stats->in_use = stats->guarded + passed + (out > waiting ? out - waiting : 0);
    sy_client_counts counts = sy_client_count(&cache->client);
    stats->depot_hits = counts.depot_hits;
    stats->depot_misses = counts.depot_misses;
    stats->depot_steals = counts.depot_steals;
    stats->limits_hit = atomic_load_explicit(&cache->limits_hit, memory_order_relaxed);
    return 0;
}

/* A lone object may be in a longer span than it needs, of those kept for reuse. */
size_t sy_cache_slab_bytes(sy_cache *cache) {
    size_t bytes = 0;
    sy_lock_acquire(&cache->lock);
    if (cache->layout.slots > 1)
        bytes = cache->slab_count * cache->layout.slab_bytes;
    else
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) bytes += slab->bytes;
    sy_lock_release(&cache->lock);
    return bytes;
}

void sy_get_stats(sy_stats *stats) {
    *stats = (sy_stats){0};
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) {
            stats->caches++;
            stats->slabs += sy_cache_slab_bytes(client->config.owner);
        }
        sy_client_unpin(client);
    }
    sy_chunk_stats chunks = sy_chunk_count();
    stats->chunks = chunks.chunks;
    stats->mapped = chunks.chunks * SY_CHUNK_BYTES + chunks.large_bytes + chunks.large_kept;
    stats->chunk_headers = chunks.chunks * SY_UNIT_BYTES;
    stats->units_free = chunks.units_free * SY_UNIT_BYTES + chunks.large_kept;
    stats->units_clean = chunks.units_clean * SY_UNIT_BYTES;
    size_t known = stats->slabs + stats->units_free + stats->chunk_headers;
    stats->spans = stats->mapped > known ? stats->mapped - known : 0;
    stats->magazines = sy_magazine_bytes();
    sy_vmem_stats arena;
    sy_vmem_get_stats(sy_memory_main.arena, &arena);
    stats->side = sy_side_bytes() + arena.bytes;
    stats->limits_hit = atomic_load_explicit(&sy_quota_process.hits, memory_order_relaxed);
    size_t limit = sy_os_memory_limit();
    stats->memory_limit = limit == SIZE_MAX ? 0 : limit;
    stats->cpus = sy_os_cpu_count();
}

/* A slot that is in its slab is no object. The lock is held. */
static size_t verify_records(const sy_cache *cache, const sy_slab *slab) {
    size_t wrong = 0;
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++) {
        sy_object_state state = sy_record_state(&sy_watched_records(cache, slab)[index]);
        bool free = state == SY_OBJECT_FREE || state == SY_OBJECT_FRESH;
        wrong += sy_slab_bit(slab->free, index) && !free;
    }
    return wrong;
}

size_t sy_cache_verify(sy_cache *cache) {
    size_t wrong = 0, slabs = 0, free_slots = 0, in_bin[SY_BIN_NONE] = {0};
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        wrong += sy_slab_verify(slab, &cache->layout) + verify_records(cache, slab);
        wrong += slab->owner != cache || sy_slab_at(slab->first) != slab;
        wrong += slab->next && slab->next->previous != slab;
        if (slab->bin < SY_BIN_NONE && slab->bins == &cache->bins) in_bin[slab->bin]++;
        free_slots += slab->free_count;
        slabs++;
    }
    wrong += slabs != cache->slab_count;
    wrong += free_slots + cache->out != slabs * cache->layout.slots;
    wrong += cache->out + cache->guarded + cache->passed - cache->retired > cache->limit;
    wrong += sy_cache_guards(cache) && sy_guard_live(cache->watch) > cache->guarded;
    for (unsigned bin = 0; bin < SY_BIN_NONE; bin++) {
        wrong += in_bin[bin] != cache->bins.count[bin];
        if (bin < SY_BIN_FULL) wrong += (in_bin[bin] > 0) != (cache->bins.occupied >> bin & 1);
    }
    sy_lock_release(&cache->lock);
    return wrong;
}

/* ==== src/cache/directory.c ==== */

/*
 * directory.c: the tables of ordinals. A new slab of a cache with handles takes a range of ordinals
 * here; a released slab gives it back; a trim gives the memory of unused ranges to the system.
 */

/*
 * arena.h: an arena from inside, for the files of vmem/.
 *
 * Every span and every segment has a boundary tag, 64 bytes outside of the resource. All tags of an
 * arena are in one list in order of value: a span's, then its segments', then the next span's.
 *
 *     first                                                                     last
 *     | span | allocated | free | allocated |  | span | free |  | span | allocated |
 *
 * Beside its place there, a tag is linked with its kin:
 *
 *     span        in a tree by value                               spans.c
 *     free        in the list of its size class                    segments.c
 *     allocated   in a chain of the table, found by its value      table.c
 *
 * What always holds (look.c, sy_vmem_verify):
 *   - The segments of a span cover it, in order, without gaps. No two free ones are neighbours.
 *   - An imported span has an allocated segment, but between its import and its first allocation.
 *   - Sums: total == allocated + free, imported <= total.
 *
 * The arena's lock guards all of it. It is held for a few steps of one operation, never across a
 * call of the system or of the user's functions: what an operation may need of these (tags, a part
 * of the table, a span) is brought before, and what it leaves (sy_leavings) taken away after.
 *
 * Above: quantum.c's clients and the engine's arenas (chunk/). Below: pool/ (tags), magazine/
 * (quantum caches), watch/, os/.
 */
#ifndef SY_VMEM_ARENA_H
#define SY_VMEM_ARENA_H

typedef enum sy_tag_kind { SY_TAG_SPAN, SY_TAG_FREE, SY_TAG_ALLOCATED } sy_tag_kind;

/* Of a span or a segment: [start, start + size), never empty. The end may be the end of the
 * integers, so it is sy_tag_last that is compared. */
typedef struct sy_boundary {
    uintptr_t start;
    size_t size;
    struct sy_boundary *next, *previous; /* in order of value */
    /* free: its list; allocated: its chain, forward only; span: its children, lesser and greater */
    struct sy_boundary *kin, *kin_previous;
    struct sy_tag_block *block; /* where the tag's memory is from */
    uint8_t kind;
    bool imported; /* a span: to be released */
} sy_boundary;

_Static_assert(sizeof(sy_boundary) <= 64, "a tag is one cache line");

static inline uintptr_t sy_tag_last(const sy_boundary *tag) { return tag->start + (tag->size - 1); }

enum {
    /*
     * Free lists: a size of q quanta has a list of its own below 16; above, each power of two is
     * split in 8, so that what is taken from the next list is at most an eighth larger than need
     * be.
     *
     *     q = 1 x x x y y y ...     list = 8 * (number of y) + 1xxx
     */
    SY_SPLIT_SHIFT = 3,
    SY_LISTS = 64 << SY_SPLIT_SHIFT, /* of which the last few are for no size */

    SY_BUCKETS_SHIFT = 9, /* of the table at first */
    SY_BUCKETS = 1 << SY_BUCKETS_SHIFT,
    SY_TABLE_PARTS = 40, /* each as large as all before it: up to 2^49 buckets */

    /*
     * Tags that one operation may take: an import makes a span and its free segment, and an
     * allocation in the middle of one leaves two more segments. Tags come from pools on pages of
     * the system's own, so that getting them takes no tag, and there is no reserve to add to these
     * for the getting. (Bonwick and Adams derive theirs where arenas supply the memory of tags.)
     */
    SY_TAGS_PER_SPAN = 2,
    SY_TAGS_PER_SPLIT = 2,
    SY_TAGS_MOST = SY_TAGS_PER_SPAN + SY_TAGS_PER_SPLIT,
};

_Static_assert(SY_LISTS % 64 == 0, "the bitmap of lists is whole words");

/* A pool of tags, all its memory mapped at once. It stands in the first slot of its own pool. */
typedef struct sy_tag_block {
    sy_pool *pool;
    struct sy_tag_block *next, *previous; /* of those that have a tag to give */
    size_t tags, used;                    /* its own slot is neither */
    size_t bytes;
} sy_tag_block;

_Static_assert(sizeof(sy_tag_block) <= sizeof(sy_boundary), "it fits in the slot of a tag");

typedef struct sy_quantum_cache {
    sy_client client; /* a client of the magazine layer whose words are segments of one size */
    sy_vmem *arena;
    size_t size;
} sy_quantum_cache;

struct sy_vmem {
    /* Written when it is created. */
    unsigned quantum_shift;
    unsigned cached_sizes;                      /* quantum caches: of 1, 2, ... quanta */
    size_t cached_offset[SY_VMEM_CACHED_SIZES]; /* from sy_abi_1 to the thread's loaded slot */
    size_t quantum;
    sy_vmem_import import;
    sy_vmem_release release;
    sy_vmem *source;
    void *arg;
    size_t import_min;
    char name[SY_VMEM_NAME_MAX + 1];
    sy_vmem *next, *previous; /* all arenas; guarded by the list's lock */
    _Atomic unsigned calls;   /* of import and release at present: it is not destroyed meanwhile */

    /* Guards all from here to the quantum caches. */
    alignas(64) sy_lock lock;
    sy_boundary *first, *last; /* in order of value */
    sy_boundary *span_tree;

    /* Next fit goes on after `rotor`, the last value that it gave, which lies in or after
     * `rotor_tag` (NULL: before the first tag) and before the tag that follows. */
    sy_boundary *rotor_tag;
    uintptr_t rotor;
    bool rotor_set;

    sy_tag_block *blocks; /* with tags to give */
    size_t spare;         /* tags in them */
    size_t tag_bytes;     /* of all blocks */

    size_t buckets; /* of the table, in use */
    size_t grow_at; /* segments from which on the table is to grow */
    size_t allocated_segments, free_segments, spans, imported_spans;
    size_t total, imported, free; /* units */
    uint64_t allocs, frees, failures, imports, releases, probes, steps;

    sy_boundary *
        *part[SY_TABLE_PARTS]; /* of the table: part i has the buckets from SY_BUCKETS << i on */
    sy_boundary *bucket[SY_BUCKETS]; /* and this is where it begins */
    uint64_t filled[SY_LISTS / 64];  /* a bit for each list that is not empty */
    sy_boundary *list[SY_LISTS];     /* of free segments, by size */

    sy_quantum_cache caches[SY_VMEM_CACHED_SIZES];
};

/* What an operation leaves to be done without the lock. */
typedef struct sy_leavings {
    bool any;
    bool span; /* imported, to be released */
    uintptr_t span_start;
    size_t span_size;
    sy_tag_block *blocks; /* unused, linked by next */
    void *part;           /* of the table, unused; NULL: none */
    size_t part_bytes;
} sy_leavings;

/* Far beyond all segments, and added to what has been looked at without overflow. */
#define SY_PATIENCE_WITHOUT_END (SIZE_MAX / 2)

/* A request with its constraints made whole. Sizes are multiples of the quantum. */
typedef struct sy_request {
    size_t size;
    size_t align, phase;
    size_t nocross;     /* 0: none */
    uintptr_t min, max; /* max is the last value that may be used */
    size_t ample;       /* of this size any free segment within min and max serves; 0: of none */
    size_t patience;    /* free segments to look at in the lists before asking the source */
    sy_vmem_fit fit;
} sy_request;

/* ---- tags.c ---- */

/* Brings `count` spare tags. The lock is held, and let go meanwhile if they are to be made. False
 * with ENOMEM. */
bool sy_tags_ready(sy_vmem *arena, size_t count);
sy_boundary *sy_tag_take(sy_vmem *arena, sy_tag_kind kind, uintptr_t start, size_t size);
void sy_tag_give(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
/* Gives the blocks of a list back to the system. */
void sy_tag_blocks_release(sy_tag_block *blocks);

/* ---- table.c ---- */

/* Brings the next part of the table if it is time to grow; if it is not to be had, chains grow
 * longer. The lock as in sy_tags_ready. */
void sy_table_ready(sy_vmem *arena);
void sy_table_insert(sy_vmem *arena, sy_boundary *tag);
/* The allocated segment that starts at the value, or NULL. */
sy_boundary *sy_table_find(sy_vmem *arena, uintptr_t value);
void sy_table_remove(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
size_t sy_table_bytes(const sy_vmem *arena);
void sy_table_release(sy_vmem *arena);

/* ---- spans.c ---- */

/* The last span that starts at or before the value, or NULL. */
sy_boundary *sy_span_at_or_before(const sy_vmem *arena, uintptr_t value);
/* The first span that starts after the value, or NULL. */
sy_boundary *sy_span_after(const sy_vmem *arena, uintptr_t value);
/* Whether any of it lies in a span. */
bool sy_span_overlaps(const sy_vmem *arena, uintptr_t start, size_t size);
/* Adds a span that overlaps none, and its free segment, which it returns; two tags are spare. */
sy_boundary *sy_span_insert(sy_vmem *arena, uintptr_t start, size_t size, bool imported);
/* Takes out a span of which all is free, with its one segment. */
void sy_span_remove(sy_vmem *arena, sy_boundary *span, sy_leavings *leavings);

/* ---- segments.c ---- */

/* The list of a size, in quanta; the first list of which every member is at least that large. */
unsigned sy_list_of(size_t quanta);
unsigned sy_list_above(size_t quanta);
/* The first list from this one on that is not empty, or SY_LISTS. */
unsigned sy_list_filled(const sy_vmem *arena, unsigned from);

/* Links a tag into the order of value, after `previous` (NULL: first), and out of it. */
void sy_tag_link(sy_vmem *arena, sy_boundary *tag, sy_boundary *previous);
void sy_tag_unlink(sy_vmem *arena, sy_boundary *tag);

/* Into and out of the list of its size. */
void sy_free_list_add(sy_vmem *arena, sy_boundary *tag);
void sy_free_list_remove(sy_vmem *arena, sy_boundary *tag);

/* Cuts [value, value + size) out of a free segment, as an allocated one, which it returns; up to
 * two tags are spare. */
sy_boundary *sy_segment_carve(sy_vmem *arena, sy_boundary *free, uintptr_t value, size_t size);
/* Makes an allocated segment free and one with its free neighbours; releases its span if that is
 * imported and all free now. */
void sy_segment_free(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings);
/* Moves the end of an allocated segment; false if there is no room behind. A tag is spare. */
bool sy_segment_resize(sy_vmem *arena, sy_boundary *tag, size_t size, sy_leavings *leavings);

/* ---- fit.c ---- */

/* Checks and completes a request. 0, or -1 with EINVAL. */
int sy_request_make(const sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                    sy_vmem_fit fit, sy_request *request);
/* The first value in [start, last] that serves; false: none. */
bool sy_request_fits(const sy_request *request, uintptr_t start, uintptr_t last, uintptr_t *value);
/* Whether a free segment serves, and the value in it. */
bool sy_fit_in(sy_vmem *arena, const sy_request *request, const sy_boundary *tag, uintptr_t *value);
/* A free segment, and the value in it; NULL: none serves. */
sy_boundary *sy_fit_find(sy_vmem *arena, const sy_request *request, uintptr_t *value);

/* ---- vmem.c ---- */

/* Rounds a size to quanta; false if it is 0 or overflows. */
bool sy_vmem_round(const sy_vmem *arena, size_t size, size_t *rounded);
/* Makes an arena without quantum caches in memory of the caller's, zeroed, and takes it apart. The
 * library need not have started. 0, or -1 as sy_vmem_create. */
int sy_vmem_open(sy_vmem *arena, const sy_vmem_config *config);
void sy_vmem_close(sy_vmem *arena);
/* Does what an operation left; the lock is not held. */
void sy_leavings_settle(sy_vmem *arena, sy_leavings *leavings);
/* Serves a request from what is free or imported and, if there is no room, `drain`s the quantum
 * caches for it. The lock is not held. 0, or -1 with ENOMEM. */
int sy_vmem_serve(sy_vmem *arena, const sy_request *request, uintptr_t *value, bool drain);
/* Raises the fault for a free of what `found` (NULL: nothing) is at the value. */
void sy_vmem_fault(const sy_vmem *arena, uintptr_t value, size_t size, size_t found_size);
/* Calls for each arena, with the list's lock held. */
void sy_vmem_each(void (*visit)(sy_vmem *arena, void *arg), void *arg);
extern SY_HIDDEN const sy_part sy_arenas_part;

/* ---- quantum.c ---- */

/* Opens the quantum caches for sizes up to `cached_max`. 0, or -1 with ENOMEM. */
int sy_quantum_open(sy_vmem *arena, size_t cached_max);
/* False, and nothing changed: this thread is in a function of the program's that others may wait
 * for. */
bool sy_quantum_suspend(sy_vmem *arena);
void sy_quantum_resume(sy_vmem *arena);
void sy_quantum_close(sy_vmem *arena);
/* Units that wait in them. The lock of the clients is held. */
size_t sy_quantum_held(const sy_vmem *arena);

#endif

enum {
    GROUP = 64, /* ordinals that have a place and a highest generation together */
    GROW_SHIFT = 16,
    GROW = 1 << GROW_SHIFT, /* ordinals that are committed at a time */
    MOST_SHIFT = 32,
    cache_directory_LEAST_SHIFT = 20,
    SHARE_SHIFT = 3,   /* an eighth */
    SHIFT_BITS = 64,   /* in the low bits of the base, which is at a page */
    MARKED = 512,      /* ordinals that have a mark together: their words are the smallest page */
    TRIM_LOOKS = 1024, /* pages of words that are looked at in one step of a trim, */
    TRIM_PAGES = 128,  /* and of those that are discarded by one call of the system */
};

/* Marks of pages of words. */
enum { NOT_LEFT, LEFT, LEFT_JUST_NOW };

static _Atomic uintptr_t directory; /* base, and the logarithm of how many ordinals it is for */
static _Atomic uint64_t cache_directory_limit;
static _Atomic uint64_t lost;
static sy_vmem arena;        /* of ordinals */
static _Atomic bool is_open; /* it is; written under the lock of the start */

/* ---- where the tables are ---- */

static unsigned shift_of(uintptr_t base) { return base % SHIFT_BITS; }

static size_t words_bytes(unsigned shift) { return sizeof(uint64_t) << shift; }

static size_t places_bytes(unsigned shift) { return (sizeof(uintptr_t) << shift) / GROUP; }

static size_t highest_bytes(unsigned shift) { return (sizeof(uint32_t) << shift) / GROUP; }

static size_t marks_bytes(unsigned shift) { return ((size_t)1 << shift) / MARKED; }

static size_t all_bytes(unsigned shift) {
    size_t bytes =
        words_bytes(shift) + places_bytes(shift) + highest_bytes(shift) + marks_bytes(shift);
    return sy_round_up(bytes, sy_os_page_size());
}

static uintptr_t tables(void) { return atomic_load_explicit(&directory, memory_order_acquire); }

uint64_t *sy_directory_words(void) {
    uintptr_t base = tables();
    return (uint64_t *)(base - shift_of(base));
}

uintptr_t *sy_directory_places(void) {
    unsigned shift = shift_of(tables());
    return (uintptr_t *)((char *)sy_directory_words() + words_bytes(shift));
}

static uint32_t *highest_generations(void) {
    unsigned shift = shift_of(tables());
    return (uint32_t *)((char *)sy_directory_places() + places_bytes(shift));
}

static _Atomic uint8_t *marks(void) {
    unsigned shift = shift_of(tables());
    return (_Atomic uint8_t *)((char *)highest_generations() + highest_bytes(shift));
}

size_t sy_directory_range(const void **start) {
    if (!tables()) return 0;
    *start = sy_directory_words();
    return all_bytes(shift_of(tables()));
}

uint64_t sy_ordinals_limit(void) { return atomic_load_explicit(&cache_directory_limit, memory_order_acquire); }

uint64_t sy_ordinals_lost(void) { return atomic_load_explicit(&lost, memory_order_relaxed); }

/* ---- marks ---- */

static size_t page_ordinals(void) { return sy_os_page_size() / sizeof(uint64_t); }

static _Atomic uint8_t *mark_of(uint64_t ordinal) {
    return marks() + ordinal / page_ordinals() * page_ordinals() / MARKED;
}

static void mark_left(uint32_t first, uint32_t count) {
    for (uint64_t at = first; at < (uint64_t)first + count; at += MARKED)
        atomic_store_explicit(mark_of(at), LEFT_JUST_NOW, memory_order_relaxed);
    uint64_t last = (uint64_t)first + count - 1;
    atomic_store_explicit(mark_of(last), LEFT_JUST_NOW, memory_order_relaxed);
}

/* ---- start and growth ---- */

static void *reserve_for(unsigned shift) {
    return sy_os_reserve(all_bytes(shift), sy_os_page_size(), "slabyard handles");
}

/* Tables for all ordinals that can be. Where there is no address space for those, they take an
 * eighth of what there is and leave the rest for objects. NULL with ENOMEM. */
static void *reserve_most(unsigned *shift) {
    void *base;
    for (*shift = MOST_SHIFT; !(base = reserve_for(*shift)); --*shift)
        if (*shift == cache_directory_LEAST_SHIFT) return NULL;
    if (*shift == MOST_SHIFT || *shift == cache_directory_LEAST_SHIFT) return base;
    sy_os_release(base, all_bytes(*shift));
    *shift = *shift > cache_directory_LEAST_SHIFT + SHARE_SHIFT ? *shift - SHARE_SHIFT : cache_directory_LEAST_SHIFT;
    return reserve_for(*shift);
}

/* 0, or -1 with ENOMEM. */
static int reserve_tables(void) {
    unsigned shift;
    void *base = reserve_most(&shift);
    if (!base) return -1;
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&directory, &none, (uintptr_t)base + shift))
        sy_os_release(base, all_bytes(shift));
    return 0;
}

int sy_directory_start(void) {
    if (atomic_load_explicit(&is_open, memory_order_acquire)) return 0;
    if (!tables() && reserve_tables() != 0) return -1;
    if (!sy_start_lock()) {
        errno = ENOMEM;
        return -1;
    }
    int result = 0;
    if (!atomic_load_explicit(&is_open, memory_order_relaxed))
        result = sy_vmem_open(&arena, &(sy_vmem_config){.name = "handles", .quantum = GROUP});
    if (result == 0) atomic_store_explicit(&is_open, true, memory_order_release);
    sy_start_unlock();
    return result;
}

/* Commits what a table has for ordinals from `from` on; the tables' starts and what is done of them
 * before are at pages, or committed already. */
static int commit_part(void *table, uint64_t from, size_t bytes_each, size_t ordinals_each) {
    uintptr_t start = (uintptr_t)table + from / ordinals_each * bytes_each;
    uintptr_t end = start + GROW / ordinals_each * bytes_each;
    start = sy_round_down(start, sy_os_page_size());
    end = sy_round_up(end, sy_os_page_size());
    return sy_os_commit((void *)start, end - start);
}

/* Another thread that found them missing may have added them. */
static bool add_pages(uint64_t from) {
    return sy_vmem_add(&arena, from, GROW) == 0 || sy_vmem_contains(&arena, from, GROW);
}

/* Ordinals below the limit that the arena does not have, since there was no memory for their tags:
 * it gets some now, or there is none still. */
static bool add_missing(uint64_t seen) {
    for (uint64_t at = 0; at < seen; at += GROW)
        if (!sy_vmem_contains(&arena, at, GROW)) return add_pages(at);
    return true;
}

/* All at once, before anybody waits for a page of them: who has used so many will use more. If that
 * cannot be, they get memory one by one. */
static void back_words(uint64_t from) {
    int error = errno;
    sy_os_populate(sy_directory_words() + from, GROW * sizeof(uint64_t));
    mark_left((uint32_t)from, GROW);
    errno = error;
}

/* More ordinals, unless another thread has added some since there were `seen`. */
static bool grow_directory(uint64_t seen) {
    if (seen && !sy_vmem_contains(&arena, 0, seen)) return add_missing(seen);
    if (seen + GROW > UINT64_C(1) << shift_of(tables()) ||
        commit_part(sy_directory_words(), seen, sizeof(uint64_t), 1) != 0 ||
        commit_part(sy_directory_places(), seen, sizeof(uintptr_t), GROUP) != 0 ||
        commit_part(highest_generations(), seen, sizeof(uint32_t), GROUP) != 0 ||
        commit_part((void *)marks(), seen, sizeof(uint8_t), MARKED) != 0) {
        errno = ENOMEM;
        return false;
    }
    if (!atomic_compare_exchange_strong(&cache_directory_limit, &seen, seen + GROW)) return true;
    if (seen) back_words(seen);
    /* Where there is no memory for tags they come the next time. */
    return add_pages(seen);
}

bool sy_ordinals_take(uint32_t count, uint32_t *first) {
    uintptr_t ordinal;
    for (;;) {
        uint64_t seen = sy_ordinals_limit();
        if (sy_vmem_alloc(&arena, count, SY_VMEM_INSTANT, &ordinal) == 0) break;
        if (!grow_directory(seen)) return false;
    }
    *first = (uint32_t)ordinal;
    return true;
}

void sy_ordinals_place(uint32_t first, uint32_t count, uintptr_t place, size_t slot) {
    uintptr_t *places = sy_directory_places() + first / GROUP;
    for (uint32_t done = 0; done < count; done += GROUP)
        __atomic_store_n(places++, place + done * slot, __ATOMIC_RELAXED);
}

int sy_ordinals_populate(uint32_t first, uint32_t count) {
    uint64_t *words = sy_directory_words() + first;
    uintptr_t start = sy_round_down((uintptr_t)words, sy_os_page_size());
    uintptr_t end = sy_round_up((uintptr_t)(words + count), sy_os_page_size());
    return sy_os_populate((void *)start, end - start);
}

/* ---- the end of a range ---- */

/* Zeroes the words of a group; the highest generation that they had. */
static uint32_t clear_group(uint64_t *words, uint32_t highest) {
    for (unsigned i = 0; i < GROUP; i++) {
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        if (!word) continue;
        uint32_t generation = (uint32_t)(word >> SY_HANDLE_GENERATION);
        if (generation > highest) highest = generation;
        __atomic_store_n(&words[i], 0, __ATOMIC_RELEASE);
    }
    return highest;
}

void sy_ordinals_give(uint32_t first, uint32_t count) {
    uint64_t *words = sy_directory_words() + first;
    uint32_t *highest = highest_generations() + first / GROUP, most = 0;
    count = (uint32_t)sy_round_up(count, GROUP);
    for (uint32_t done = 0; done < count; done += GROUP, highest++) {
        *highest = clear_group(words + done, *highest);
        if (*highest > most) most = *highest;
    }
    if (most < SY_HANDLE_GENERATIONS_MAX) {
        sy_vmem_free(&arena, first, count);
        mark_left(first, count);
    } else {
        atomic_fetch_add_explicit(&lost, count, memory_order_relaxed);
    }
}

/* ---- trim ---- */

/*
 * Pages of words that slabs have left hold memory until a trim discards them, so that a free makes
 * no system call. A page's mark is set when its ordinals are in the arena again, and cleared by the
 * trim that looks at it. While a page is being discarded its ordinals are taken from the arena, so
 * that nobody gets them. If they cannot be taken, a slab has some of them, and sets the mark when
 * it leaves.
 */

/* Takes the ordinals of these pages from the arena; false: some are in use. */
static bool claim_pages(uint64_t first, size_t count) {
    uintptr_t taken;
    const sy_vmem_constraints there = {.min = first, .max = first + count};
    return sy_vmem_xalloc(&arena, count, &there, SY_VMEM_INSTANT, &taken) == 0;
}

/* Discards the words of these pages if nobody has any of their ordinals. False: some are in use. */
static bool discard_unused(uint64_t first, size_t count, size_t *bytes) {
    size_t of_words = count * sizeof(uint64_t);
    if (!claim_pages(first, count)) return false;
    if (sy_os_discard(sy_directory_words() + first, of_words) == 0)
        *bytes += of_words;
    else
        mark_left((uint32_t)first, (uint32_t)count);
    sy_vmem_xfree(&arena, first, count);
    return true;
}

/* Whether the page was left, and is to be discarded now: by age those that were left before the
 * last such look. The mark is cleared then. */
static bool was_left(uint64_t first, bool aged) {
    _Atomic uint8_t *mark = mark_of(first);
    uint8_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    if (seen == NOT_LEFT) return false;
    bool now = seen == LEFT || !aged;
    atomic_store_explicit(mark, now ? NOT_LEFT : LEFT, memory_order_relaxed);
    return now;
}

/* The pages from *at on that are to be discarded and follow one another; none: 0. */
static size_t cache_directory_next_run(uint64_t *at, uint64_t end, bool aged) {
    size_t page = page_ordinals(), pages = 0;
    uint64_t most = *at + TRIM_LOOKS * page;
    if (end > most) end = most;
    while (*at < end && !was_left(*at, aged)) *at += page;
    if (*at < end) pages = 1;
    while (pages && pages < TRIM_PAGES && *at + pages * page < end &&
           was_left(*at + pages * page, aged))
        pages++;
    return pages * page;
}

bool sy_directory_trim_step(uint64_t *at, bool aged, size_t *bytes) {
    if (!atomic_load_explicit(&is_open, memory_order_acquire)) return false;
    uint64_t end = sy_ordinals_limit();
    int error = errno;
    size_t count = cache_directory_next_run(at, end, aged), page = page_ordinals();
    if (count && !discard_unused(*at, count, bytes))
        for (size_t done = 0; count > page && done < count; done += page)
            discard_unused(*at + done, page, bytes);
    *at += count;
    errno = error;
    return *at < end;
}

size_t sy_directory_trim(void) {
    size_t bytes = 0;
    for (uint64_t at = 0; sy_directory_trim_step(&at, false, &bytes);) {}
    return bytes;
}

void sy_ordinal_prepare(uint32_t ordinal, unsigned cache_number) {
    uint64_t *word = sy_directory_words() + ordinal;
    if (__atomic_load_n(word, __ATOMIC_RELAXED)) return;
    uint64_t generation = highest_generations()[ordinal / GROUP];
    __atomic_store_n(word,
                     generation << SY_HANDLE_GENERATION | (uint64_t)cache_number << SY_HANDLE_CACHE,
                     __ATOMIC_RELAXED);
}

/* ==== src/cache/epoch.c ==== */

/*
 * epoch.c: epochs, their views of caches, and which epoch a thread is in.
 *
 * An epoch is held by its creator until it is closed, by each thread that is in it, and by each
 * slab of its views. Whoever lets go of it last takes it off the list and frees it with its views;
 * so nobody finds it there without a hold, under the list's lock, but to look.
 */

struct sy_epoch {
    char name[SY_EPOCH_NAME_MAX + 1];
    uint64_t number, made_at;
    _Atomic uint64_t closed_at; /* 0: it is open */
    _Atomic size_t holds;
    _Atomic unsigned threads;
    _Atomic(sy_view *) views;  /* of caches, the newest first; written under the lock */
    sy_epoch *next, *previous; /* guarded by the lock */
};

static sy_lock cache_epoch_lock = SY_LOCK_INIT(SY_RANK_EPOCHS);
static sy_epoch *first_epoch, *last_epoch; /* in order of number; guarded by it */
static uint64_t epochs_made;               /* guarded by it */

/* The epochs that this thread is in, the outermost first; NULL among them: in none. */
static SY_TLS struct {
    sy_epoch *in[SY_EPOCH_DEPTH_MAX];
    unsigned depth;
    sy_epoch *passing; /* that it is beginning, or ending */
} own_epochs;

/* ---- holds ---- */

static void cache_epoch_hold(sy_epoch *epoch) {
    atomic_fetch_add_explicit(&epoch->holds, 1, memory_order_relaxed);
}

/* One that is on the list, whose last hold may be gone already; the lock is held. */
static bool hold_listed(sy_epoch *epoch) {
    size_t holds = atomic_load_explicit(&epoch->holds, memory_order_relaxed);
    while (holds &&
           !atomic_compare_exchange_weak_explicit(&epoch->holds, &holds, holds + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    return holds > 0;
}

static void unlist(sy_epoch *epoch) {
    *(epoch->previous ? &epoch->previous->next : &first_epoch) = epoch->next;
    *(epoch->next ? &epoch->next->previous : &last_epoch) = epoch->previous;
}

/* The last one ends the epoch. */
static void cache_epoch_let_go(sy_epoch *epoch) {
    if (atomic_fetch_sub_explicit(&epoch->holds, 1, memory_order_acq_rel) != 1) return;
    sy_lock_acquire(&cache_epoch_lock);
    unlist(epoch);
    sy_lock_release(&cache_epoch_lock);
    for (sy_view *view = epoch->views, *next; view; view = next) {
        next = view->next;
        sy_side_give(view, sizeof *view);
    }
    sy_side_give(epoch, sizeof *epoch);
}

static bool is_closed(const sy_epoch *epoch) {
    return atomic_load_explicit(&epoch->closed_at, memory_order_relaxed) != 0;
}

/* ---- views ---- */

static sy_view *find_view(const sy_epoch *epoch, const sy_cache *cache) {
    sy_view *view = atomic_load_explicit(&epoch->views, memory_order_acquire);
    while (view && atomic_load_explicit(&view->cache, memory_order_relaxed) != cache)
        view = view->next;
    return view;
}

/* Another thread in the epoch may make one at the same time. */
static sy_view *add_view(sy_epoch *epoch, sy_cache *cache) {
    sy_view *view = sy_side_take(sizeof *view), *other;
    if (!view) return NULL;
    view->epoch = epoch;
    view->bins.counted = &cache->bins;
    atomic_init(&view->cache, cache);
    sy_lock_acquire(&cache_epoch_lock);
    other = find_view(epoch, cache);
    if (!other) {
        view->next = atomic_load_explicit(&epoch->views, memory_order_relaxed);
        atomic_store_explicit(&epoch->views, view, memory_order_release);
    }
    sy_lock_release(&cache_epoch_lock);
    if (other) sy_side_give(view, sizeof *view);
    return other ? other : view;
}

sy_bins *sy_epoch_bins(sy_cache *cache) {
    sy_epoch *epoch = sy_epoch_current();
    if (!epoch) return &cache->bins;
    sy_view *view = find_view(epoch, cache);
    if (!view) view = add_view(epoch, cache);
    return view ? &view->bins : NULL;
}

void sy_view_hold(sy_view *view) { cache_epoch_hold(view->epoch); }

void sy_view_let_go(sy_view *view) { cache_epoch_let_go(view->epoch); }

void sy_epochs_forget(sy_cache *cache) {
    sy_lock_acquire(&cache_epoch_lock);
    for (sy_epoch *epoch = first_epoch; epoch; epoch = epoch->next) {
        sy_view *view = find_view(epoch, cache);
        if (view) atomic_store_explicit(&view->cache, NULL, memory_order_relaxed);
    }
    sy_lock_release(&cache_epoch_lock);
}

/* ---- begin and end ---- */

sy_epoch *sy_epoch_create(const char *name) {
    if (sy_start() != 0) return NULL;
    sy_epoch *epoch = sy_side_take(sizeof *epoch);
    if (!epoch) {
        errno = ENOMEM;
        return NULL;
    }
    if (!name) name = "epoch";
    for (size_t i = 0; i < SY_EPOCH_NAME_MAX && name[i]; i++) epoch->name[i] = name[i];
    epoch->made_at = sy_os_now();
    atomic_init(&epoch->holds, 1);
    sy_lock_acquire(&cache_epoch_lock);
    epoch->number = ++epochs_made;
    epoch->previous = last_epoch;
    *(last_epoch ? &last_epoch->next : &first_epoch) = epoch;
    last_epoch = epoch;
    sy_lock_release(&cache_epoch_lock);
    return epoch;
}

sy_epoch *sy_epoch_current(void) {
    return own_epochs.depth ? own_epochs.in[own_epochs.depth - 1] : NULL;
}

int sy_epoch_begin(sy_epoch *epoch) {
    if (epoch && is_closed(epoch)) {
        errno = EINVAL;
        return -1;
    }
    if (own_epochs.depth == SY_EPOCH_DEPTH_MAX) {
        errno = EAGAIN;
        return -1;
    }
    sy_epoch *outer = own_epochs.passing;
    if (epoch) {
        cache_epoch_hold(epoch);
        own_epochs.passing = epoch;
        atomic_fetch_add_explicit(&epoch->threads, 1, memory_order_relaxed);
    }
    if (epoch != sy_epoch_current()) sy_thread_put_back();
    own_epochs.in[own_epochs.depth++] = epoch;
    own_epochs.passing = outer;
    return 0;
}

int sy_epoch_end(sy_epoch *epoch) {
    if (!own_epochs.depth || own_epochs.in[own_epochs.depth - 1] != epoch) {
        errno = EINVAL;
        return -1;
    }
    sy_epoch *outer = own_epochs.passing;
    own_epochs.passing = epoch;
    own_epochs.depth--;
    if (epoch != sy_epoch_current()) sy_thread_put_back();
    if (epoch) atomic_fetch_sub_explicit(&epoch->threads, 1, memory_order_relaxed);
    own_epochs.passing = outer;
    if (epoch) cache_epoch_let_go(epoch);
    return 0;
}

/* ---- close ---- */

bool sy_epoch_is_over(const sy_cache *cache, const void *object) {
    if (!(cache->flags & SY_EPOCHS)) return false;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab->bins != &cache->bins && is_closed(sy_view_of(slab->bins)->epoch);
}

/* The client is pinned. Slots that are still out. What drains makes empty goes by itself; a slab
 * may have been made for a refill that did not take from it. */
static size_t close_view(sy_view *view, sy_cache *cache) {
    if (cache->flags & SY_QUARANTINE) sy_watched_drain(cache);
    sy_client_drain(&cache->client);
    for (;;) {
        sy_lock_acquire(&cache->lock);
        sy_slab *slab = sy_cache_unlink_empty(cache, &view->bins, 0);
        size_t out = view->out;
        sy_lock_release(&cache->lock);
        if (!slab) return out;
        sy_cache_release_slab(cache, slab);
    }
}

/* The view's cache, pinned against being destroyed, or NULL: there is nothing of it any more. */
static sy_cache *pin_cache(const sy_view *view) {
    sy_lock_acquire(&cache_epoch_lock);
    sy_cache *cache = atomic_load_explicit(&view->cache, memory_order_relaxed);
    if (cache && !sy_client_pin(&cache->client)) cache = NULL;
    sy_lock_release(&cache_epoch_lock);
    return cache;
}

/* From here on it is closed. Its views: those that are made later know it. */
static sy_view *shut(sy_epoch *epoch) {
    uint64_t now = sy_os_now();
    sy_lock_acquire(&cache_epoch_lock);
    atomic_store_explicit(&epoch->closed_at, now ? now : 1, memory_order_relaxed);
    sy_view *views = atomic_load_explicit(&epoch->views, memory_order_relaxed);
    sy_lock_release(&cache_epoch_lock);
    return views;
}

size_t sy_epoch_close(sy_epoch *epoch) {
    if (!epoch) return 0;
    int error = errno;
    size_t left = 0;
    sy_view *view = shut(epoch);
    for (; view; view = view->next) {
        sy_cache *cache = pin_cache(view);
        if (!cache) continue;
        left += close_view(view, cache);
        sy_client_unpin(&cache->client);
    }
    cache_epoch_let_go(epoch);
    errno = error;
    return left;
}

/* ---- looking ---- */

/* The lock of the epochs is held, under which a cache with a view is not destroyed. */
static void count_view(sy_view *view, sy_epoch_stats *stats) {
    sy_cache *cache = atomic_load_explicit(&view->cache, memory_order_relaxed);
    if (!cache) return;
    sy_lock_acquire(&cache->lock);
    stats->objects += view->out;
    for (unsigned bin = 0; bin < SY_BIN_NONE; bin++) stats->slabs += view->bins.count[bin];
    for (unsigned bin = 0; bin < SY_BIN_NONE; bin++)
        stats->bytes += view->bins.count[bin] * cache->layout.slab_bytes;
    sy_lock_release(&cache->lock);
}

static void fill_stats(const sy_epoch *epoch, uint64_t now, sy_epoch_stats *stats) {
    uint64_t closed = atomic_load_explicit(&epoch->closed_at, memory_order_relaxed);
    *stats = (sy_epoch_stats){
        .number = epoch->number,
        .age_ns = now - epoch->made_at,
        .closed_ns = closed ? now - closed + (now == closed) : 0,
        .threads = atomic_load_explicit(&epoch->threads, memory_order_relaxed),
    };
    memcpy(stats->name, epoch->name, sizeof stats->name);
    for (sy_view *view = epoch->views; view; view = view->next) count_view(view, stats);
}

/* The epoch after one that is held, or the first; held, and counted. NULL: there is none. */
static sy_epoch *next_epoch(sy_epoch *held, sy_epoch_stats *stats) {
    sy_lock_acquire(&cache_epoch_lock);
    sy_epoch *epoch = held ? held->next : first_epoch;
    while (epoch && !hold_listed(epoch)) epoch = epoch->next;
    if (epoch) fill_stats(epoch, sy_os_now(), stats);
    sy_lock_release(&cache_epoch_lock);
    if (held) cache_epoch_let_go(held);
    return epoch;
}

int sy_epoch_each(sy_epoch_visit visit, void *arg) {
    sy_epoch_stats stats;
    for (sy_epoch *epoch = NULL; (epoch = next_epoch(epoch, &stats)) != NULL;) {
        SY_CALLBACK(call, .function = "visitor of sy_epoch_each");
        int result = visit(arg, &stats);
        call.returned = true;
        if (result == 0) continue;
        cache_epoch_let_go(epoch);
        return result;
    }
    return 0;
}

/* ---- the report ---- */

static void cache_epoch_add_count(sy_text *text, size_t count, const char *of) {
    sy_text_add_number(text, count);
    sy_text_add(text, of);
}

/* ", 12 of session" for each cache; the lock is held. */
static void add_caches(sy_text *text, const sy_epoch *epoch) {
    for (sy_view *view = epoch->views; view; view = view->next) {
        sy_epoch_stats of_view = {.objects = 0};
        const sy_cache *cache = atomic_load_explicit(&view->cache, memory_order_relaxed);
        count_view(view, &of_view);
        if (!of_view.objects) continue;
        sy_text_add(text, ", ");
        cache_epoch_add_count(text, of_view.objects, " of \"");
        sy_text_add(text, cache->name);
        sy_text_add(text, "\"");
    }
}

/* slabyard: epoch "login" is stuck: closed 12 s ago, 2 threads in it, 17 objects in 3 slabs (192
 * KiB), 12 of "session", 5 of "packet". The lock is held. */
static void describe_epoch(sy_text *text, const sy_epoch *epoch, const sy_epoch_stats *stats) {
    sy_text_add(text, "slabyard: epoch \"");
    sy_text_add(text, stats->name);
    sy_text_add(text, "\" is stuck: closed ");
    cache_epoch_add_count(text, stats->closed_ns / 1000000000, " s ago, ");
    cache_epoch_add_count(text, stats->threads, stats->threads == 1 ? " thread in it, " : " threads in it, ");
    cache_epoch_add_count(text, stats->objects, stats->objects == 1 ? " object in " : " objects in ");
    cache_epoch_add_count(text, stats->slabs, stats->slabs == 1 ? " slab (" : " slabs (");
    cache_epoch_add_count(text, stats->bytes / 1024, " KiB)");
    add_caches(text, epoch);
    sy_text_add(text, "\n");
}

static void report(const sy_epoch *epoch, const sy_epoch_stats *stats) {
    sy_text text = {.length = 0};
    sy_lock_acquire(&cache_epoch_lock);
    describe_epoch(&text, epoch, stats);
    sy_lock_release(&cache_epoch_lock);
    sy_os_write(2, text.bytes, text.length);
}

size_t sy_epoch_report_stuck(uint64_t ns) {
    size_t stuck = 0;
    sy_epoch_stats stats;
    for (sy_epoch *epoch = NULL; (epoch = next_epoch(epoch, &stats)) != NULL;) {
        if (!stats.closed_ns || stats.closed_ns < ns) continue;
        report(epoch, &stats);
        stuck++;
    }
    return stuck;
}

/* ---- fork ---- */

static void hold_epochs(void) { sy_lock_hold(&cache_epoch_lock); }

static void drop_epochs(void) { sy_lock_drop(&cache_epoch_lock); }

static unsigned times_in(const sy_epoch *epoch) {
    unsigned times = own_epochs.passing == epoch;
    for (unsigned i = 0; i < own_epochs.depth; i++) times += own_epochs.in[i] == epoch;
    return times;
}

/* What only other threads held ends with the next hold that is let go, or here. */
static void recover_epochs(void) {
    sy_epoch *epoch = first_epoch;
    while (epoch) {
        sy_epoch *next = epoch->next;
        unsigned all = atomic_load(&epoch->threads), mine = times_in(epoch);
        unsigned gone = all > mine ? all - mine : 0;
        atomic_fetch_sub(&epoch->threads, gone);
        cache_epoch_hold(epoch);
        atomic_fetch_sub(&epoch->holds, gone);
        cache_epoch_let_go(epoch);
        epoch = next;
    }
}

const sy_part sy_epochs_part = {
    .hold = hold_epochs, .drop = drop_epochs, .recover = recover_epochs};

/* ==== src/cache/guarded.c ==== */

/*
 * guarded.c: allocates and frees the objects of a cache that have pages of their own (SY_GUARD).
 * The slow paths of cache.c come here before they use the slabs.
 */

bool sy_guarded_can(unsigned flags, const sy_memory *memory) {
    return !(flags & (SY_HANDLES | SY_LOCKED | SY_NO_DUMP)) && memory == &sy_memory_main;
}

/* Whether the limit lets there be one more, which is counted then. */
static bool cache_guarded_count_in(sy_cache *cache, uint64_t constructed) {
    sy_lock_acquire(&cache->lock);
    bool fits = sy_cache_left(cache) > 0;
    cache->guarded += fits;
    cache->counts.constructed += fits ? constructed : 0;
    sy_lock_release(&cache->lock);
    return fits;
}

static void cache_guarded_count_out(sy_cache *cache, uint64_t destructed) {
    sy_lock_acquire(&cache->lock);
    cache->guarded--;
    cache->counts.destructed += destructed;
    sy_lock_release(&cache->lock);
}

/* What constructs an object: here at each allocation, in either kind of cache. */
static sy_rebuilds construction(const sy_cache *cache) {
    if (cache->rebuilds.construct) return cache->rebuilds;
    return (sy_rebuilds){cache->construct, cache->destruct};
}

/* What an allocation has, until its object is constructed. */
typedef struct cache_guarded_sy_made {
    sy_cache *cache;
    void *object;
} cache_guarded_sy_made;

static void cache_guarded_give_made_back(const void *made_) {
    const cache_guarded_sy_made *made = made_;
    sy_guard_free(made->cache->watch, made->object, SIZE_MAX, NULL, NULL);
    cache_guarded_count_out(made->cache, true);
}

/* An object that is counted already; NULL: none, and it is not counted any more. If its constructor
 * fails, the cache goes on as if there were no room among guarded objects. */
static void *make_guarded(sy_cache *cache, size_t size, size_t align) {
    sy_rebuilds build = construction(cache);
    if (align < SY_MALLOC_ALIGN) align = SY_MALLOC_ALIGN;
    if (align > cache->layout.align) align = cache->layout.align;
    void *object = sy_guard_alloc(cache->watch, size, align);
    if (!object) cache_guarded_count_out(cache, build.construct != NULL);
    if (!object || !build.construct) return object;
    const cache_guarded_sy_made made = {cache, object};
    bool built = sy_watched_construct(cache, build.construct, object, cache_guarded_give_made_back, &made);
    return built ? object : NULL;
}

/* Nothing asked for is a byte, so that it has an address. */
static size_t size_there(size_t size) { return size ? size : 1; }

void *sy_guarded_alloc(sy_cache *cache, size_t size, size_t align) {
    int error = errno;
    bool builds = construction(cache).construct;
    if (!sy_client_due(&cache->client) || !cache_guarded_count_in(cache, builds)) return NULL;
    void *object = make_guarded(cache, size_there(size), align);
    errno = error;
    return object;
}

static void unbuild(void *object, void *cache_) {
    const sy_cache *cache = cache_;
    sy_rebuilds build = construction(cache);
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    if (build.destruct) build.destruct(object, cache->arg);
    call.returned = true;
}

sy_cache *sy_guarded_cache(const void *object) {
    sy_watch *watch;
    if (!sy_guard_owns((uintptr_t)object)) return NULL;
    sy_guard_size(object, &watch);
    return watch ? watch->owner : NULL;
}

size_t sy_guarded_size(const void *object) {
    sy_watch *watch;
    return sy_guard_owns((uintptr_t)object) ? sy_guard_size(object, &watch) : 0;
}

bool sy_cache_find_object(const sy_cache *cache, const void *object, size_t *bytes) {
    if (sy_guard_owns((uintptr_t)object)) return (*bytes = sy_guarded_size(object)) > 0;
    *bytes = cache->size;
    if (!sy_cache_checks(cache)) return true;
    *bytes = 0;
    return sy_watched_size(cache, (uintptr_t)object, bytes);
}

void sy_guarded_free(sy_cache *cache, void *object, size_t told) {
    const sy_cache *owner = sy_guarded_cache(object);
    if (owner && owner != cache && owner->class_number && cache->class_number)
        sy_fault_raise(&(sy_fault){
            .kind = SY_FAULT_WRONG_SIZE,
            .cache = cache->name,
            .object_size = cache->size,
            .address = object,
            .found_cache = owner->name,
        });
    else if (sy_guard_free(cache->watch, object, size_there(told), unbuild, cache))
        cache_guarded_count_out(cache, construction(cache).construct != NULL);
}

bool sy_guarded_try_free(sy_cache *cache, void *object) {
    bool freed = cache->watch && sy_guard_try_free(cache->watch, object, unbuild, cache);
    if (freed) cache_guarded_count_out(cache, construction(cache).construct != NULL);
    return freed;
}

void sy_guarded_forget(sy_cache *cache) {
    if (sy_cache_guards(cache)) sy_guard_forget(cache->watch, unbuild, cache);
}

/* ==== src/cache/handle.c ==== */

/*
 * handle.c: the slower parts of slabyard/handle.h: pins, what comes from and goes to magazines,
 * addresses, iteration.
 *
 * The word of an ordinal decides everything, in one compare-and-swap each:
 *
 *     free --alloc--> live --free--> free                      alloc by whoever has the ordinal,
 *                     live <--pin, unpin--> live, pinned       the others by anyone with the handle
 *                     live, pinned --free--> dying
 *                     dying --last unpin--> free           (the object is disposed of just before)
 *
 * Whoever makes a word free has its ordinal, puts it in a magazine, and nobody else does. A word
 * that is free or zero is changed by its owner alone: this thread, or the slab that it lies in. So
 * a stale handle can do no more than compare: its generation is not in the word any more, and comes
 * back neither there nor, since highest_generations goes on from it, in a later slab's word.
 *
 * Memory order: what a thread wrote to an object happens before its free (release in the swap);
 * what the next owner does with it comes after the ordinal went through magazines, which order it,
 * or through the depot, which does. Between pin (acquire) and unpin (release) nobody makes it free.
 */

/*
 * invariant.h: conditions that hold whenever a structure passes from one layer to another.
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
 * The caller holds the lock that guards the structure. A predicate takes no lock, changes nothing,
 * and is bounded in time, so that debug builds stay usable. The sy_*_verify functions look at
 * everything; tests call them at rest.
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

static uint64_t *cache_handle_word_of(const sy_cache *cache, sy_handle handle) {
    return &cache->names.words[(uint32_t)handle];
}

static uint64_t pins_of(uint64_t word) { return (word & SY_HANDLE_PINS) / SY_HANDLE_PIN; }

static bool swap(uint64_t *word, uint64_t *expected, uint64_t desired) {
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* ---- allocation and free ---- */

static bool sy_handle_take_watched(sy_cache *cache, uintptr_t *ordinal) {
    if (sy_limit_fail_due(cache->name, cache->size)) return false;
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool taken = sy_watched_take(cache, cache->size, ordinal);
    path.done = true;
    return taken;
}

/* An ordinal that is free and this thread's from now on; false with errno. */
static bool take_ordinal(sy_cache *cache, uintptr_t *ordinal) {
    if (!sy_cache_has_handles(cache)) {
        errno = EINVAL;
        return false;
    }
    if (SY_UNLIKELY(sy_cache_checks(cache))) return sy_handle_take_watched(cache, ordinal);
    if (sy_client_alloc_second(&cache->client, ordinal)) return true;
    int error = errno;
    if (!sy_cache_take(cache, ordinal)) return false;
    sy_turn();
    errno = error;
    return true;
}

/* The word of an ordinal that nobody has: of this cache, neither live nor pinned. */
static bool word_is_free(const sy_cache *cache, uintptr_t ordinal) {
    uint64_t word = __atomic_load_n(&cache->names.words[ordinal], __ATOMIC_RELAXED);
    return !(word & (SY_HANDLE_STATE | SY_HANDLE_PINS)) &&
           (uint32_t)word >> SY_HANDLE_CACHE == cache->client.number;
}

bool SY_ABI_NAME(sy_handle_take_slow)(sy_cache *cache, uint32_t *ordinal) {
    uintptr_t item;
    bool taken = take_ordinal(cache, &item);
    SY_INVARIANT(!taken || word_is_free(cache, item));
    if (taken) *ordinal = (uint32_t)item;
    return taken;
}

void *SY_ABI_NAME(sy_handle_alloc_slow)(sy_cache *cache, sy_handle *handle) {
    uintptr_t ordinal;
    if (!take_ordinal(cache, &ordinal)) return NULL;
    SY_INVARIANT(word_is_free(cache, ordinal));
    return sy_handle_enliven(&cache->names, ordinal, handle);
}

bool SY_ABI_NAME(sy_handle_put_slow)(sy_cache *cache, uint32_t ordinal) {
    SY_INVARIANT(word_is_free(cache, ordinal));
    if (SY_UNLIKELY(cache->flags & SY_ZERO))
        sy_cache_wipe(cache, sy_handle_place(&cache->names, ordinal));
    if (SY_UNLIKELY(sy_cache_checks(cache))) {
        int error = errno;
        sy_watched_put(cache, ordinal, false);
        sy_turn();
        errno = error;
    } else if (!sy_client_free_second(&cache->client, ordinal)) {
        int error = errno;
        sy_client_free(&cache->client, ordinal);
        sy_turn();
        errno = error;
    }
    return true;
}

/* An ordinal that this thread has made free. */
static void sy_handle_put(sy_cache *cache, sy_handle handle) {
    if (handle >> SY_HANDLE_GENERATION == SY_HANDLE_GENERATIONS_MAX) {
        if (cache->flags & SY_ZERO)
            sy_cache_wipe(cache, sy_handle_place(&cache->names, (uint32_t)handle));
        if (sy_cache_checks(cache)) sy_watched_put(cache, (uint32_t)handle, true);
        atomic_fetch_add_explicit(&cache->retired, 1, memory_order_relaxed);
    } else if (!sy_loaded_push(sy_handle_loaded(&cache->names), (uint32_t)handle)) {
        SY_ABI_NAME(sy_handle_put_slow)(cache, (uint32_t)handle);
    }
}

bool SY_ABI_NAME(sy_handle_free_slow)(sy_cache *cache, sy_handle handle) {
    uint64_t expected = sy_handle_expected(&cache->names, handle);
    uint64_t word = __atomic_load_n(cache_handle_word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~SY_HANDLE_PINS) == expected) {
        uint64_t next = word & ~SY_HANDLE_STATE;
        bool alone = !pins_of(word), disposes = alone && cache->dispose;
        if (!alone || disposes) next |= SY_HANDLE_DYING;
        if (disposes) next += SY_HANDLE_PIN;
        if (!swap(cache_handle_word_of(cache, handle), &word, next)) continue;
        if (disposes)
            sy_handle_unpin(cache, handle);
        else if (alone)
            sy_handle_put(cache, handle);
        return true;
    }
    return false;
}

/* ---- objects that are not to be seen yet ---- */

/* The word of an object that is being prepared: as if it had been freed while its maker held it. */
static uint64_t prepared(const sy_cache *cache, sy_handle handle) {
    uint64_t live = sy_handle_expected(&cache->names, handle);
    return (live & ~SY_HANDLE_STATE) | SY_HANDLE_DYING | SY_HANDLE_PIN;
}

void *sy_handle_prepare(sy_cache *cache, sy_handle *handle) {
    uintptr_t ordinal;
    if (!(sy_cache_has_handles(cache) &&
          sy_loaded_pop(sy_handle_loaded(&cache->names), &ordinal)) &&
        !take_ordinal(cache, &ordinal))
        return NULL;
    uint64_t *word = &cache->names.words[ordinal];
    uint64_t generation = (__atomic_load_n(word, __ATOMIC_RELAXED) >> SY_HANDLE_GENERATION) + 1;
    *handle = generation << SY_HANDLE_GENERATION | ordinal;
    __atomic_store_n(word, prepared(cache, *handle), __ATOMIC_RELAXED);
    return sy_handle_place(&cache->names, ordinal);
}

static void sy_handle_not_pinned(const sy_cache *cache, sy_handle handle);

/* From the word of what is prepared to another one. */
static bool end_preparing(sy_cache *cache, sy_handle handle, uint64_t next) {
    uint64_t expected = prepared(cache, handle);
    if (sy_handle_in_range(&cache->names, handle) && swap(cache_handle_word_of(cache, handle), &expected, next))
        return true;
    sy_handle_not_pinned(cache, handle);
    return false;
}

void sy_handle_publish(sy_cache *cache, sy_handle handle) {
    end_preparing(cache, handle, sy_handle_expected(&cache->names, handle));
}

void sy_handle_cancel(sy_cache *cache, sy_handle handle) {
    uint64_t next = sy_handle_expected(&cache->names, handle) & ~SY_HANDLE_STATE;
    if (end_preparing(cache, handle, next)) sy_handle_put(cache, handle);
}

/* ---- pins ---- */

void *sy_handle_pin(sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) return NULL;
    uint64_t expected = sy_handle_expected(&cache->names, handle);
    uint64_t word = __atomic_load_n(cache_handle_word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~SY_HANDLE_PINS) == expected) {
        if (pins_of(word) == SY_HANDLE_PINS_MAX) {
            errno = EAGAIN;
            return NULL;
        }
        if (swap(cache_handle_word_of(cache, handle), &word, word + SY_HANDLE_PIN))
            return sy_handle_place(&cache->names, (uint32_t)handle);
    }
    return NULL;
}

/* Whether the ordinal is one of this cache's slabs'. */
static bool is_own_ordinal(const sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) return false;
    uint64_t word = __atomic_load_n(cache_handle_word_of(cache, handle), __ATOMIC_RELAXED);
    return (uint32_t)word >> SY_HANDLE_CACHE == cache->client.number;
}

static SY_COLD void sy_handle_not_pinned(const sy_cache *cache, sy_handle handle) {
    bool own = is_own_ordinal(cache, handle);
    if (own && sy_cache_checks(cache)) {
        sy_watched_raise(cache, (uint32_t)handle, SY_FAULT_NOT_PINNED);
        return;
    }
    sy_fault_raise(&(sy_fault){
        .kind = SY_FAULT_NOT_PINNED,
        .cache = cache->name,
        .object_size = cache->size,
        .address = own ? sy_handle_place(&cache->names, (uint32_t)handle) : NULL,
    });
}

static void call_dispose(sy_cache *cache, sy_handle handle) {
    SY_SLOW_PATH(&cache->client);
    SY_CALLBACK(call, "dispose function", "cache", cache->name, false);
    cache->dispose(sy_handle_place(&cache->names, (uint32_t)handle), cache->arg);
    call.returned = true;
}

static void cache_handle_take_turn(void) {
    int error = errno;
    sy_turn();
    errno = error;
}

void sy_handle_unpin(sy_cache *cache, sy_handle handle) {
    if (!sy_handle_in_range(&cache->names, handle)) {
        sy_handle_not_pinned(cache, handle);
        return;
    }
    uint64_t expected = sy_handle_expected(&cache->names, handle) & ~SY_HANDLE_STATE;
    uint64_t word = __atomic_load_n(cache_handle_word_of(cache, handle), __ATOMIC_RELAXED);
    while ((word & ~(SY_HANDLE_PINS | SY_HANDLE_STATE)) == expected && pins_of(word)) {
        uint64_t next = word - SY_HANDLE_PIN;
        bool last = (word & SY_HANDLE_STATE) == SY_HANDLE_DYING && !pins_of(next);
        if (last && cache->dispose)
            call_dispose(cache, handle); /* nobody else changes the word now */
        if (last) next &= ~SY_HANDLE_STATE;
        if (!swap(cache_handle_word_of(cache, handle), &word, next)) continue;
        if (!last) return;
        bool disposed = cache->dispose;
        sy_handle_put(cache, handle);
        if (disposed) cache_handle_take_turn();
        return;
    }
    sy_handle_not_pinned(cache, handle);
}

/* ---- addresses ---- */

bool sy_cache_ordinal(const sy_cache *cache, uintptr_t address, uint32_t *ordinal,
                      sy_fault_kind *fault) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || slab->owner != cache) {
        *fault = sy_cache_fault_outside(cache, slab);
        return false;
    }
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    *fault = SY_FAULT_MISALIGNED_POINTER;
    if (index == UINT32_MAX) return false;
    *ordinal = slab->ordinal + index;
    return true;
}

/* The handle of an ordinal, or 0: no object of the cache is live there. */
static sy_handle live_handle(const sy_cache *cache, uint32_t ordinal) {
    uint64_t word = __atomic_load_n(&cache->names.words[ordinal], __ATOMIC_ACQUIRE);
    sy_handle generation = word >> SY_HANDLE_GENERATION << SY_HANDLE_GENERATION;
    bool live = (word & ~SY_HANDLE_PINS) == (generation | cache->names.live);
    return live ? generation | ordinal : 0;
}

sy_handle sy_handle_of(const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? __atomic_load_n(&slab->owner, __ATOMIC_RELAXED) : NULL;
    uint32_t ordinal;
    sy_fault_kind fault;
    if (!cache || !sy_cache_has_handles(cache) ||
        !sy_cache_ordinal(cache, (uintptr_t)object, &ordinal, &fault))
        return 0;
    /* Where no object is live the slab may be changing hands, and all of that be of different ones.
     */
    bool there = sy_handle_in_range(&cache->names, ordinal) &&
                 sy_handle_place(&cache->names, ordinal) == object;
    return there ? live_handle(cache, ordinal) : 0;
}

void *sy_cache_alloc_named(sy_cache *cache) {
    sy_handle handle;
    return sy_handle_alloc_inline(cache, &handle);
}

void sy_cache_free_named(sy_cache *cache, void *object) {
    uint32_t ordinal;
    sy_fault_kind kind;
    if (sy_cache_ordinal(cache, (uintptr_t)object, &ordinal, &kind)) {
        sy_handle handle = live_handle(cache, ordinal);
        if (handle && sy_handle_free_inline(cache, handle)) return;
        if (sy_cache_checks(cache)) {
            sy_watched_raise(cache, ordinal, SY_FAULT_DOUBLE_FREE);
            return;
        }
        kind = SY_FAULT_DOUBLE_FREE;
    }
    sy_fault fault = sy_cache_fault(cache, kind, (uintptr_t)object, sy_slab_at((uintptr_t)object));
    sy_fault_raise(&fault);
}

/* ---- iteration ---- */

/* The first ordinals of all slabs, if there is room for them; how many slabs there are. */
static size_t copy_ordinals(sy_cache *cache, uint32_t *firsts, size_t room) {
    sy_lock_acquire(&cache->lock);
    size_t count = cache->slab_count, done = 0;
    if (count <= room)
        for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
            firsts[done++] = slab->ordinal;
    sy_lock_release(&cache->lock);
    return count;
}

size_t sy_handle_slabs(sy_cache *cache, uint32_t *firsts, size_t room, uint32_t *slots) {
    if (!sy_cache_has_handles(cache)) return 0;
    *slots = cache->layout.slots;
    return copy_ordinals(cache, firsts, room);
}

/* Of one slab, which may be gone by now: then its words are no live ones of this cache. */
static int visit_slab(sy_cache *cache, uint32_t first, sy_handle_visit visit, void *arg) {
    int result = 0;
    for (uint32_t i = 0; i < cache->layout.slots && result == 0; i++) {
        sy_handle handle = live_handle(cache, first + i);
        void *object = handle ? sy_handle_pin(cache, handle) : NULL;
        if (!object) continue;
        SY_CALLBACK(call, .function = "visitor of sy_handle_each");
        result = visit(arg, handle, object);
        call.returned = true;
        sy_handle_unpin(cache, handle);
    }
    return result;
}

static uint32_t *take_ordinals_room(size_t count, size_t *bytes) {
    *bytes = sy_round_up((count + 1) * sizeof(uint32_t), sy_os_page_size());
    return sy_pages_take(*bytes, sy_os_page_size(), "slabyard handles walk");
}

int sy_handle_each(sy_cache *cache, sy_handle_visit visit, void *arg) {
    if (!sy_cache_has_handles(cache)) {
        errno = EINVAL;
        return -1;
    }
    for (size_t room = copy_ordinals(cache, NULL, 0);;) {
        size_t bytes;
        uint32_t *firsts = take_ordinals_room(room, &bytes);
        if (!firsts) {
            errno = ENOMEM;
            return -1;
        }
        size_t count = copy_ordinals(cache, firsts, room);
        int result = 0;
        for (size_t i = 0; count <= room && i < count && result == 0; i++)
            result = visit_slab(cache, firsts[i], visit, arg);
        sy_pages_give(firsts, bytes);
        if (count <= room) return result;
        room = count + count / 8;
    }
}

/* ==== src/cache/layout.c ==== */

/*
 * layout.c: computes the slot size, slab size and slot count of a cache, once, when it is created.
 */

enum {
    TAIL_SHARE = 64, /* a slab is long enough when at most one part in so many is tail: under 2 % */
    CACHE_LINE = 64,
};

_Static_assert(SY_SLAB_UNITS_MAX * SY_UNIT_BYTES <= 1 << 20, "what the reciprocal is exact for");
_Static_assert(SY_SLAB_UNITS_MAX * SY_UNIT_BYTES / SY_SLAB_SLOT_MAX >= SY_SLAB_SLOTS_LEAST,
               "the longest slab has enough slots of the largest size");

/* The shortest slab with little enough tail, or the one with the least; `ends`: bytes at its two
 * ends that are for no slot. */
static void choose_slab(sy_layout *layout, size_t ends) {
    size_t best_tail = SIZE_MAX;
    for (size_t units = 1; units <= SY_SLAB_UNITS_MAX; units++) {
        size_t bytes = units * SY_UNIT_BYTES;
        size_t slots = bytes > ends ? (bytes - ends) / layout->slot : 0;
        if (slots < SY_SLAB_SLOTS_LEAST) continue;
        size_t rest = bytes - ends - slots * layout->slot;
        size_t tail = rest * (SY_SLAB_UNITS_MAX * 64) / units; /* share */
        if (tail >= best_tail) continue;
        best_tail = tail;
        layout->slab_bytes = bytes;
        layout->slots = (uint32_t)slots;
        if (rest * TAIL_SHARE <= bytes) return;
    }
}

static void choose_colours(sy_layout *layout, size_t ends, bool buy) {
    size_t tail = layout->slab_bytes - ends - layout->slots * layout->slot;
    if (buy && tail < layout->colour_step) {
        size_t given_up = sy_divide_up(layout->colour_step - tail, layout->slot);
        layout->slots -= (uint32_t)given_up;
        tail += given_up * layout->slot;
    }
    size_t colours = tail / layout->colour_step + 1;
    layout->colours = colours < SY_COLOURS_MAX ? (uint32_t)colours : SY_COLOURS_MAX;
}

sy_layout sy_layout_make(size_t size, size_t align, bool colour, size_t zone, size_t edge) {
    if (!align) align = size <= 8 ? 8 : 16;
    sy_layout layout = {.align = align, .zone = zone};
    layout.slot = sy_round_up(size + 2 * zone, align > SY_SLOT_MIN ? align : SY_SLOT_MIN);
    layout.lead = sy_round_up(zone > edge ? zone : edge, align);
    layout.colour_step = align > CACHE_LINE ? align : CACHE_LINE;
    layout.reciprocal = ((UINT64_C(1) << 32) + layout.slot - 1) / layout.slot;
    size_t ends = layout.lead - zone + edge;
    if (layout.slot <= SY_SLAB_SLOT_MAX && align <= SY_UNIT_BYTES) choose_slab(&layout, ends);
    if (layout.slots) {
        choose_colours(&layout, ends, colour);
    } else {
        layout.slab_bytes = sy_round_up(ends + layout.slot, SY_UNIT_BYTES);
        layout.slots = layout.colours = 1;
    }
    layout.words = (layout.slots + 63) / 64;
    return layout;
}

/* ==== src/cache/limit.c ==== */

/*
 * limit.c: the slow paths come here when a limit refuses memory. They free memory, call the
 * limit's callback, try once more, and note the reason of a failure for sy_last_refusal.
 */

/* Of each thread. */
static SY_TLS struct {
    sy_refusal reason; /* why the last refill got nothing */
    sy_refusal last;   /* why the last door did */
    unsigned refills;  /* doors in which this thread is refilling at present */
    bool busy;         /* it is making room, or in a callback */
    const sy_quota *refused;
} own_limit;

/* ---- reasons ---- */

void sy_refuse(sy_refusal reason) {
    own_limit.reason = reason;
    own_limit.refused = NULL;
}

void sy_refuse_run(const sy_quota *refused) {
    sy_refuse(!refused                       ? SY_REFUSAL_SYSTEM
              : refused == &sy_quota_process ? SY_REFUSAL_PROCESS_LIMIT
                                             : SY_REFUSAL_HEAP_LIMIT);
    own_limit.refused = refused;
}

void sy_limit_refuse(sy_refusal reason) { own_limit.last = reason; }

sy_refusal sy_last_refusal(void) { return own_limit.last; }

const char *sy_refusal_text(sy_refusal refusal) {
    switch (refusal) {
    case SY_REFUSAL_NONE: return "not refused";
    case SY_REFUSAL_SYSTEM: return "out of memory";
    case SY_REFUSAL_CACHE_LIMIT: return "the limit of the cache is reached";
    case SY_REFUSAL_HEAP_LIMIT: return "the limit of the heap is reached";
    case SY_REFUSAL_PROCESS_LIMIT: return "the limit of the process is reached";
    case SY_REFUSAL_CONSTRUCTOR: return "a constructor failed";
    }
    return "refused";
}

/* ---- telling ---- */

/* What the callback is refused is not what its caller was. */
static void call_back(sy_quota *quota) {
    sy_refusal last = own_limit.last;
    bool locked = sy_start_lock();
    sy_limit_callback callback = quota->callback;
    void *arg = quota->arg;
    size_t soft = atomic_load_explicit(&quota->soft, memory_order_relaxed);
    if (locked) sy_start_unlock();
    size_t used = atomic_load_explicit(&quota->used, memory_order_relaxed);
    if (callback) {
        SY_CALLBACK(call, .function = "callback of a limit");
        callback(arg, used, soft == SIZE_MAX ? 0 : soft);
        call.returned = true;
    }
    own_limit.last = last;
}

/* The parent is looked up before: what the callback does is not known. */
void sy_limit_tell(sy_quota *quota) {
    int error = errno;
    if (own_limit.busy || own_limit.refills) return;
    own_limit.busy = true;
    for (sy_quota *parent; quota; quota = parent) {
        parent = quota->parent;
        if (atomic_exchange(&quota->crossed, false)) call_back(quota);
    }
    own_limit.busy = false;
    errno = error;
}

/* ---- making room ---- */

/* Empty slabs go, but for those that were reserved. */
static void release_empty(sy_cache *cache) {
    for (;;) {
        sy_lock_acquire(&cache->lock);
        sy_slab *slab = sy_cache_unlink_empty(cache, &cache->bins, cache->empties_max);
        sy_lock_release(&cache->lock);
        if (!slab) return;
        sy_cache_release_slab(cache, slab);
    }
}

static bool counts_for(const sy_cache *cache, const sy_quota *quota) {
    for (const sy_quota *next = cache->quota; next; next = next->parent)
        if (next == quota) return true;
    return false;
}

/* Brings back what the quota's caches hold and nobody uses. */
static void bring_back(const sy_quota *quota) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = client->config.owner;
        if (client->config.refill == sy_cache_refill && counts_for(cache, quota)) {
            sy_client_drain(client);
            release_empty(cache);
        }
        sy_client_unpin(client);
    }
}

/* Whether it is worth a second try. Nobody is told in a constructor: its cache is being refilled.
 */
static bool make_room_below_limit(sy_quota *refused) {
    if (!refused || own_limit.busy) return false;
    own_limit.busy = true;
    bring_back(refused);
    if (!own_limit.refills) call_back(refused);
    own_limit.busy = false;
    return true;
}

/* ---- doors ---- */

/* Also if a constructor throws. */
static void end_refill(const unsigned *outer) { own_limit.refills = *outer; }

static bool refill(sy_cache *cache, uintptr_t *item) {
    unsigned outer SY_CLEANUP(end_refill) = own_limit.refills++;
    return sy_client_alloc(&cache->client, item);
}

/* The quota that is in the way. It is the cache's own or a parent, so it is still there. */
static sy_quota *refusing(sy_quota *quota) {
    while (quota && quota != own_limit.refused) quota = quota->parent;
    return quota;
}

static void cache_limit_count_hit(sy_quota *refused) {
    if (refused) atomic_fetch_add_explicit(&refused->hits, 1, memory_order_relaxed);
    own_limit.last = own_limit.reason;
}

static SY_COLD bool take_again(sy_cache *cache, uintptr_t *item) {
    int error = errno;
    /* What was promised may have been on its way from a magazine to the slabs. */
    bool promised = atomic_load_explicit(&cache->promise, memory_order_relaxed);
    if (make_room_below_limit(refusing(cache->quota)) || promised) {
        if (refill(cache, item)) return true;
        error = errno;
    }
    cache_limit_count_hit(refusing(cache->quota));
    if (own_limit.reason != SY_REFUSAL_SYSTEM && own_limit.reason != SY_REFUSAL_CONSTRUCTOR)
        atomic_fetch_add_explicit(&cache->limits_hit, 1, memory_order_relaxed);
    errno = error;
    return false;
}

bool sy_cache_take(sy_cache *cache, uintptr_t *item) {
    SY_CONSTRUCTING_PATH(path, &cache->client);
    bool got = refill(cache, item) || take_again(cache, item);
    if (SY_UNLIKELY(sy_quota_crossed(cache->quota))) sy_limit_tell(cache->quota);
    path.done = true;
    return got;
}

static sy_slab *take_span(size_t bytes, size_t align, size_t room, bool *clean) {
    sy_quota *refused;
    sy_slab *span =
        sy_quota_take_run(&sy_quota_process, &sy_memory_main, bytes, align, room, clean, &refused);
    if (!span) sy_refuse_run(refused);
    return span;
}

sy_slab *sy_limit_take_span(size_t bytes, size_t align, size_t room, bool *clean) {
    if (sy_limit_fail_due("heap", bytes)) return NULL;
    sy_slab *span = take_span(bytes, align, room, clean);
    if (!span && make_room_below_limit(refusing(&sy_quota_process)))
        span = take_span(bytes, align, room, clean);
    if (!span) cache_limit_count_hit(refusing(&sy_quota_process));
    if (SY_UNLIKELY(sy_quota_crossed(&sy_quota_process))) sy_limit_tell(&sy_quota_process);
    if (!span) errno = ENOMEM;
    return span;
}

static bool charge(size_t bytes) {
    sy_quota *refused = sy_quota_charge(&sy_quota_process, bytes);
    return !refused ||
           (make_room_below_limit(refused) && !sy_quota_charge(&sy_quota_process, bytes));
}

bool sy_limit_resize_span(sy_slab *span, size_t bytes) {
    size_t had = span->bytes, wanted = sy_round_up(bytes, SY_UNIT_BYTES);
    size_t most = wanted > had ? wanted : had;
    if (bytes > SIZE_MAX / 2 || (wanted > had && !charge(wanted - had))) return false;
    sy_quota_in_hand += most;
    bool done = sy_run_resize(span, bytes);
    if (span->bytes < most) sy_quota_uncharge(&sy_quota_process, most - span->bytes);
    sy_quota_in_hand -= most;
    if (span->bytes > had) sy_quota_note(&sy_quota_process);
    if (SY_UNLIKELY(sy_quota_crossed(&sy_quota_process))) sy_limit_tell(&sy_quota_process);
    return done;
}

/* ---- the process's limit ---- */

int sy_set_limit(const sy_limit *limit) {
    static const sy_limit none = {0};
    if (!limit) limit = &none;
    if (!sy_limit_valid(limit)) {
        errno = EINVAL;
        return -1;
    }
    if (sy_start() != 0) return -1;
    bool locked = sy_start_lock();
    sy_quota_set(&sy_quota_process, limit);
    if (locked) sy_start_unlock();
    return 0;
}

size_t sy_limit_used(void) {
    return atomic_load_explicit(&sy_quota_process.used, memory_order_relaxed);
}

/* ---- fork ---- */

/* Calls for each cache; the child has one thread. */
static void cache_limit_each_cache(void (*visit)(sy_cache *cache)) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) visit(client->config.owner);
        sy_client_unpin(client);
    }
}

static bool has_own_quota(const sy_cache *cache) {
    return cache->quota && cache->quota != &sy_quota_process;
}

static void cache_limit_forget(sy_cache *cache) {
    if (has_own_quota(cache)) atomic_store(&cache->quota->used, sy_quota_in_hand);
}

static void cache_limit_count_again(sy_cache *cache) {
    if (has_own_quota(cache)) atomic_fetch_add(&cache->quota->used, sy_cache_slab_bytes(cache));
}

static void recover_quotas(void) {
    cache_limit_each_cache(cache_limit_forget);
    cache_limit_each_cache(cache_limit_count_again);
    sy_chunk_stats stats = {0};
    sy_chunk_count_of(&sy_memory_main, &stats);
    size_t units = stats.chunks * SY_RUN_UNITS_MAX - stats.units_free;
    atomic_store(&sy_quota_process.used,
                 units * SY_UNIT_BYTES + stats.large_bytes + sy_quota_in_hand);
}

const sy_part sy_limits_part = {.recover = recover_quotas};

/* ==== src/cache/passed.c ==== */

/*
 * passed.c: caches with SY_PASSED take each object from the C library's malloc. This file keeps
 * the table of their live objects.
 */

/* A live object. */
typedef struct sy_block {
    struct sy_block *next;
    uintptr_t not_address; /* all bits inverted */
    sy_cache *cache;
    size_t size; /* asked for */
} sy_block;

enum { BUCKET_BITS = 16 };
static const size_t cache_passed_TABLE_BYTES = sizeof(sy_block *) << BUCKET_BITS;

/* NULL: nothing was ever passed. For ever. */
static _Atomic(sy_block **) cache_passed_table;
static sy_lock cache_passed_lock = SY_LOCK_INIT(SY_RANK_PASSED); /* guards the lists */

static void hold_blocks(void) { sy_lock_hold(&cache_passed_lock); }

static void drop_blocks(void) { sy_lock_drop(&cache_passed_lock); }

const sy_part sy_passed_part = {.hold = hold_blocks, .drop = drop_blocks};

/* ---- the table ---- */

static sy_block **table_now(void) { return atomic_load_explicit(&cache_passed_table, memory_order_acquire); }

/* Two threads may make it at once: one of them is not used. */
static sy_block **cache_passed_make_table(void) {
    sy_block **seen = table_now();
    if (seen) return seen;
    sy_block **fresh = sy_pages_take(cache_passed_TABLE_BYTES, sy_os_page_size(), "slabyard blocks");
    if (!fresh || atomic_compare_exchange_strong(&cache_passed_table, &seen, fresh)) return fresh;
    sy_pages_give(fresh, cache_passed_TABLE_BYTES);
    return seen;
}

static sy_block **cache_passed_bucket_of(const void *object) {
    uint64_t hash = ((uintptr_t)object >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &table_now()[hash >> (64 - BUCKET_BITS)];
}

static void insert(sy_block *block, const void *object) {
    sy_block **bucket = cache_passed_bucket_of(object);
    block->not_address = ~(uintptr_t)object;
    sy_lock_acquire(&cache_passed_lock);
    block->next = *bucket;
    *bucket = block;
    sy_lock_release(&cache_passed_lock);
}

/* Where the object is linked, or where the list ends. The lock is held. */
static sy_block **find_block(const void *object) {
    sy_block **link = cache_passed_bucket_of(object);
    while (*link && (*link)->not_address != ~(uintptr_t)object) link = &(*link)->next;
    return link;
}

sy_cache *sy_passed_owner(const void *object, size_t *size) {
    if (!table_now()) return NULL;
    sy_lock_acquire(&cache_passed_lock);
    const sy_block *block = *find_block(object);
    sy_cache *owner = block ? block->cache : NULL;
    if (block) *size = block->size;
    sy_lock_release(&cache_passed_lock);
    return owner;
}

/* ---- allocation ---- */

static void count_live(sy_cache *cache, size_t more) {
    sy_lock_acquire(&cache->lock);
    cache->passed += more;
    sy_lock_release(&cache->lock);
}

static bool refuse(sy_cache *cache, sy_refusal reason) {
    if (reason == SY_REFUSAL_CACHE_LIMIT)
        atomic_fetch_add_explicit(&cache->limits_hit, 1, memory_order_relaxed);
    sy_limit_refuse(reason);
    errno = ENOMEM;
    return false;
}

/* Whether the limit has room for one more, which is counted. */
static bool cache_passed_count_in(sy_cache *cache) {
    sy_lock_acquire(&cache->lock);
    bool room = cache->passed < cache->limit;
    cache->passed += room;
    sy_lock_release(&cache->lock);
    return room;
}

/* Memory for an object that is counted, and its entry; NULL: it is not counted any more. */
static void *cache_passed_make_block(sy_cache *cache, size_t size, sy_block **block) {
    *block = cache_passed_make_table() ? sy_side_take(sizeof **block) : NULL;
    void *object = *block ? sy_os_block(size, cache->layout.align) : NULL;
    if (object) return object;
    if (*block) sy_side_give(*block, sizeof **block);
    count_live(cache, -(size_t)1);
    return NULL;
}

/* What an allocation has, until its object is constructed. */
typedef struct cache_passed_sy_made {
    sy_cache *cache;
    sy_block *block;
    void *object;
} cache_passed_sy_made;

static void cache_passed_give_made_back(const void *made_) {
    const cache_passed_sy_made *made = made_;
    sy_os_block_free(made->object);
    sy_side_give(made->block, sizeof *made->block);
    count_live(made->cache, -(size_t)1);
    sy_limit_refuse(SY_REFUSAL_CONSTRUCTOR);
}

bool sy_passed_take(sy_cache *cache, size_t size, uintptr_t *item) {
    sy_block *block;
    if (!cache_passed_count_in(cache)) return refuse(cache, SY_REFUSAL_CACHE_LIMIT);
    void *object = cache_passed_make_block(cache, size, &block);
    if (!object) return refuse(cache, SY_REFUSAL_SYSTEM);
    int error = errno;
    const cache_passed_sy_made made = {cache, block, object};
    if (!sy_watched_build(cache, object, cache_passed_give_made_back, &made)) return false;
    block->cache = cache;
    block->size = size;
    insert(block, object);
    *item = (uintptr_t)object;
    errno = error;
    return true;
}

/* ---- free ---- */

/* Takes the object's entry, if it is the cache's and has the size; else NULL, and *found is a copy
 * of what there is. */
static sy_block *claim_block(const sy_cache *cache, const void *object, size_t told,
                             sy_block *found) {
    *found = (sy_block){0};
    if (!table_now()) return NULL;
    sy_lock_acquire(&cache_passed_lock);
    sy_block **link = find_block(object), *block = *link;
    if (block) *found = *block;
    bool right = block && block->cache == cache && (told == SIZE_MAX || told == block->size);
    if (right) *link = block->next;
    sy_lock_release(&cache_passed_lock);
    return right ? block : NULL;
}

static void cache_passed_end(sy_cache *cache, sy_block *block, void *object) {
    sy_watched_unbuild(cache, object);
    sy_side_give(block, sizeof *block);
    count_live(cache, -(size_t)1);
    sy_os_block_free(object);
}

/* An object of another cache, or of another size. */
static void cache_passed_raise_fault(const sy_cache *cache, const void *object, const sy_block *found,
                        size_t told) {
    const sy_cache *owner = found->cache;
    bool other = owner != cache && !(owner->class_number && cache->class_number);
    sy_fault_raise(&(sy_fault){
        .kind = other ? SY_FAULT_WRONG_CACHE : SY_FAULT_WRONG_SIZE,
        .cache = cache->name,
        .object_size = cache->size,
        .address = object,
        .object = object,
        .found_cache = owner != cache ? owner->name : NULL,
        .found_size = found->size,
        .told_size = other || told == SIZE_MAX ? 0 : told,
    });
}

void sy_passed_free(sy_cache *cache, void *object, size_t told) {
    sy_block found, *block = claim_block(cache, object, told, &found);
    const sy_slab *slab = found.cache ? NULL : sy_slab_at((uintptr_t)object);
    bool other = slab || sy_guard_owns((uintptr_t)object);
    if (block) {
        cache_passed_end(cache, block, object);
    } else if (found.cache) {
        cache_passed_raise_fault(cache, object, &found, told);
    } else if (other) {
        sy_fault fault = sy_cache_fault(cache, SY_FAULT_WRONG_CACHE, (uintptr_t)object, slab);
        sy_fault_raise(&fault);
    } else {
        sy_os_block_free(object);
    }
}

bool sy_passed_try_free(sy_cache *cache, void *object) {
    sy_block found, *block = claim_block(cache, object, SIZE_MAX, &found);
    if (block) cache_passed_end(cache, block, object);
    return block;
}

/* Takes any object of the cache out of a list; NULL: there is none. */
static sy_block *take_from(sy_block **link, const sy_cache *cache) {
    sy_lock_acquire(&cache_passed_lock);
    while (*link && (*link)->cache != cache) link = &(*link)->next;
    sy_block *block = *link;
    if (block) *link = block->next;
    sy_lock_release(&cache_passed_lock);
    return block;
}

void sy_passed_forget(sy_cache *cache) {
    sy_block **lists = cache->passed ? table_now() : NULL, *block;
    for (size_t i = 0; lists && i < (size_t)1 << BUCKET_BITS; i++)
        while ((block = take_from(&lists[i], cache)) != NULL)
            cache_passed_end(cache, block, (void *)~block->not_address);
}

/* ==== src/cache/recover.c ==== */

/*
 * recover.c: caches around a fork: their locks, and what the child does with what other threads
 * were at.
 */

/* ---- fork: every cache's lock, by rising client number ---- */

static void hold_caches(void) {
    sy_client *client;
    if (!sy_threads_are_held()) return;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number)
        if (client->config.refill == sy_cache_refill)
            sy_lock_hold(&((sy_cache *)client->config.owner)->lock);
}

static void cache_recover_drop(sy_cache *cache) {
    if (sy_lock_drop(&cache->lock)) cache->torn = true;
}

static void drop_caches(void) {
    sy_client *client;
    if (!sy_threads_are_held()) return;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number)
        if (client->config.refill == sy_cache_refill) cache_recover_drop(client->config.owner);
}

/* ---- a cache made anew ---- */

/* Counts what is free in the slab, by its bitmap, and what was ever given out. */
static void cache_recover_count_again(sy_slab *slab, const sy_layout *layout) {
    uint32_t count = 0, last = 0;
    for (uint32_t word = 0; word < layout->words; word++) {
        uint64_t slots = sy_low_bits(layout->slots - word * 64), out = slots & ~slab->free[word];
        slab->free[word] &= slots;
        count += sy_count_bits(slab->free[word]);
        if (out) last = word * 64 + sy_highest_bit(out) + 1;
    }
    slab->free_count = (uint16_t)count;
    slab->first_word = 0;
    if (last > slab->watermark) slab->watermark = last;
}

/* Not one that was being made: it has no slots yet. */
static bool is_of(const sy_slab *run, const sy_cache *cache) {
    return run->owner == cache && run->slots == cache->layout.slots && run->free && run->bins;
}

static void empty_bins(sy_slab *run, void *arg) {
    if (!is_of(run, arg)) return;
    sy_bins *bins = run->bins;
    *bins = (sy_bins){.filled = bins->filled,
                      .opened = bins->opened,
                      .reused = bins->reused,
                      .counted = bins->counted};
    if (bins != &((sy_cache *)arg)->bins) sy_view_of(bins)->out = 0;
}

static void add_again(sy_slab *run, void *arg) {
    sy_cache *cache = arg;
    if (!is_of(run, cache)) return;
    cache_recover_count_again(run, &cache->layout);
    size_t out = run->slots - run->free_count;
    sy_bins_insert(run->bins, run);
    sy_cache_append_slab(cache, run);
    cache->slab_count++;
    cache->out += out;
    if (run->bins != &cache->bins) sy_view_of(run->bins)->out += out;
}

/*
 * The lists and counts may be half changed. What another thread was taking out of the slabs or
 * putting in, a magazine at most, may stay out for ever.
 */
static void make_anew(sy_cache *cache) {
    cache->torn = false;
    cache->slabs = cache->last_slab = NULL;
    cache->slab_count = cache->out = 0;
    sy_run_each(cache->memory, empty_bins, cache);
    sy_run_each(cache->memory, add_again, cache);
}

static void recover(sy_cache *cache) {
    if (cache->torn) make_anew(cache);
    cache->trims = 0;
    atomic_store(&cache->tries, NULL); /* a thread that was at one finds that it is not there */
    if (sy_cache_guards(cache)) cache->guarded = sy_guard_live(cache->watch);
}

static void recover_caches(void) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_next_locked(number)) != NULL;
         number = client->number)
        if (client->config.refill == sy_cache_refill) recover(client->config.owner);
}

const sy_part sy_caches_part = {
    .hold = hold_caches, .drop = drop_caches, .recover = recover_caches};

/* ==== src/cache/refill.c ==== */

/*
 * refill.c: the client's callbacks: slots out of slabs and back, a magazine-full at a time, one
 * lock each.
 */

/* In a magazine-full between taking and constructing: the slot has yet to be constructed. Slots are
 * multiples of 8, so the bit is free. */
static const uintptr_t UNBUILT = 1;

/* ---- ordinals in place of addresses, in the magazines of caches with handles ---- */

static size_t to_ordinals(sy_cache *cache, uintptr_t *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const sy_slab *slab = sy_slab_at(items[i]);
        uint32_t ordinal = slab->ordinal + sy_slab_index(slab, &cache->layout, items[i]);
        sy_ordinal_prepare(ordinal, cache->client.number);
        items[i] = ordinal;
    }
    return count;
}

static void to_addresses(const sy_cache *cache, uintptr_t *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        items[i] = (uintptr_t)sy_handle_place(&cache->names, items[i]);
}

/* ---- refill ---- */

/* Slots out of the slabs of these bins: `more` than before. The lock is held. */
static inline void cache_refill_count_out(sy_cache *cache, sy_bins *bins, size_t more) {
    cache->out += more;
    if (SY_UNLIKELY(bins != &cache->bins)) sy_view_of(bins)->out += more;
}

/* Takes up to `count` slots; they end at `end`. How many; the lock is held. */
static size_t take_slots(sy_cache *cache, sy_bins *bins, uintptr_t *end, size_t count) {
    size_t taken = 0, left = sy_cache_left(cache);
    if (count > left) count = left;
    while (taken < count) {
        sy_slab *slab = sy_bins_best(bins);
        if (!slab) break;
        size_t want = count - taken;
        uint32_t some = want < slab->free_count ? (uint32_t)want : slab->free_count;
        if (SY_UNLIKELY(cache->flags & SY_RANDOM))
            sy_slab_take_random(slab, &cache->layout, end - taken, some, &cache->random);
        else
            sy_slab_take(slab, &cache->layout, end - taken, some);
        sy_bins_update(bins, slab);
        SY_INVARIANT(sy_slab_is_valid(slab, &cache->layout));
        taken += some;
    }
    cache_refill_count_out(cache, bins, taken);
    return taken;
}

/* Puts a slot back that was taken and not given out; the lock is held. */
static void untake_slot(sy_cache *cache, uintptr_t address, bool built) {
    sy_slab *slab = sy_slab_at(address);
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    slab->free[index / 64] |= UINT64_C(1) << index % 64;
    if (slab->built && !built) slab->built[index / 64] &= ~(UINT64_C(1) << index % 64);
    slab->free_count++;
    if (index / 64 < slab->first_word) slab->first_word = (uint16_t)(index / 64);
    sy_bins_update(slab->bins, slab);
    SY_INVARIANT(sy_slab_is_valid(slab, &cache->layout));
    cache_refill_count_out(cache, slab->bins, -(size_t)1);
}

/* Marks the slots that are not constructed, and counts them as constructed: as long as they are
 * out, nobody else looks. Whether there are any; the lock is held. */
static bool mark_unbuilt(sy_cache *cache, uintptr_t *items, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        sy_slab *slab = sy_slab_at(items[i]);
        uint32_t index = sy_slab_index(slab, &cache->layout, items[i]);
        uint64_t bit = UINT64_C(1) << index % 64;
        if (slab->built[index / 64] & bit) continue;
        slab->built[index / 64] |= bit;
        items[i] |= UNBUILT;
        any = true;
    }
    return any;
}

typedef struct sy_construction {
    sy_cache *cache;
    uintptr_t *items;
    size_t count, built;
    size_t kept;   /* constructed items, from items[0] on; known when the construction has ended */
    bool returned; /* false: a constructor has thrown, and no item is kept */
} sy_construction;

/* Slots that are not constructed go back to their slabs; the constructed ones move together. If a
 * constructor has thrown, all go back. */
static void end_construction(sy_construction *work) {
    sy_cache *cache = work->cache;
    size_t kept = 0;
    sy_slab *slab, *surplus = NULL; /* empty slabs of an epoch, which does not keep any */
    sy_lock_acquire(&cache->lock);
    cache->counts.constructed += work->built;
    for (size_t i = 0; i < work->count; i++) {
        uintptr_t item = work->items[i];
        bool built = !(item & UNBUILT);
        if (built && work->returned) {
            work->items[kept++] = item;
            continue;
        }
        slab = sy_slab_at(item & ~UNBUILT);
        untake_slot(cache, item & ~UNBUILT, built);
        if (slab->bins == &cache->bins || slab->bin != SY_BIN_EMPTY) continue;
        sy_cache_unlink_slab(cache, slab);
        slab->next = surplus;
        surplus = slab;
    }
    sy_lock_release(&cache->lock);
    work->kept = kept;
    while ((slab = surplus) != NULL) {
        surplus = slab->next;
        sy_cache_release_slab(cache, slab);
    }
}

static void end_thrown_construction(sy_construction *work) {
    if (!work->returned) end_construction(work);
}

/*
 * Constructs the marked slots, those to be given out first first. When a constructor fails, its
 * slot and the marked ones that remain go back. How many there are, from items[0].
 */
static size_t construct(sy_cache *cache, uintptr_t *items, size_t count) {
    sy_construction work SY_CLEANUP(end_thrown_construction) = {cache, items, count, 0, 0, false};
    SY_CALLBACK(call, "constructor", "cache", cache->name, true);
    int error = 0;
    for (size_t next = count; next > 0; next--) {
        uintptr_t item = items[next - 1];
        if (!(item & UNBUILT)) continue;
        if (cache->construct((void *)(item - UNBUILT), cache->arg) != 0) {
            error = errno;
            sy_refuse(SY_REFUSAL_CONSTRUCTOR);
            break;
        }
        items[next - 1] = item - UNBUILT;
        work.built++;
    }
    work.returned = call.returned = true;
    end_construction(&work);
    if (error) errno = error;
    return work.kept;
}

/* A slab that a trim had set aside may be back by now. */
static bool has_free_slot(sy_cache *cache, const sy_bins *bins) {
    sy_lock_acquire(&cache->lock);
    bool any = sy_bins_best(bins) != NULL;
    sy_lock_release(&cache->lock);
    return any;
}

size_t sy_cache_refill(void *owner, uintptr_t *items, size_t count) {
    sy_cache *cache = owner;
    sy_bins *bins = cache->flags & SY_EPOCHS ? sy_epoch_bins(cache) : &cache->bins;
    if (!bins) return 0;
    for (;;) {
        sy_lock_acquire(&cache->lock);
        size_t taken = take_slots(cache, bins, items + count, count);
        bool limited = sy_cache_left(cache) == 0;
        uintptr_t *first = items + count - taken;
        bool unbuilt = cache->construct && mark_unbuilt(cache, first, taken);
        cache->counts.refills += taken > 0;
        sy_lock_release(&cache->lock);
        if (taken) {
            if (taken < count) memmove(items, first, taken * sizeof *items);
            if (unbuilt) taken = construct(cache, items, taken);
            return sy_cache_has_handles(cache) ? to_ordinals(cache, items, taken) : taken;
        }
        if (limited) {
            sy_refuse(SY_REFUSAL_CACHE_LIMIT);
            errno = ENOMEM;
            return 0;
        }
        if (!sy_cache_add_slab(cache, bins) && !has_free_slot(cache, bins)) return 0;
    }
}

/* ---- flush ---- */

enum {
    cache_refill_FAULTS_MAX = 4,    /* reported of one flush: the first already ends most programs */
    EMPTIES_SHARE = 8, /* of the slabs: the part that may be empty for a reason */
};
static const uint32_t NO_WORD = UINT32_MAX;

typedef struct sy_flush {
    sy_cache *cache;
    sy_slab *slab;       /* of the last object; NULL: none yet */
    uint32_t word_index; /* of the bitmap word being changed; NO_WORD: none yet */
    uint32_t added;      /* to the slab, not yet in its count */
    uint64_t word;       /* not yet stored */
    size_t returned;
    sy_slab *surplus; /* empty slabs that are not kept, unlinked: a list */
    size_t faults;
    sy_fault fault[cache_refill_FAULTS_MAX];
} sy_flush;

sy_fault sy_cache_fault(const sy_cache *cache, sy_fault_kind kind, uintptr_t address,
                        const sy_slab *slab) {
    const sy_cache *guarding = slab ? NULL : sy_guarded_cache((void *)address);
    const sy_cache *found = slab ? slab->owner : guarding;
    if (guarding) kind = SY_FAULT_WRONG_CACHE;
    if (kind == SY_FAULT_WRONG_CACHE && found && found->class_number && cache->class_number)
        kind = SY_FAULT_WRONG_SIZE;
    bool is_elsewhere = (slab || guarding) && found != cache && kind != SY_FAULT_DOUBLE_FREE;
    sy_fault fault = {
        .kind = kind,
        .cache = cache->name,
        .object_size = cache->size,
        .address = (void *)address,
        .found_cache = is_elsewhere ? found ? found->name : "heap" : NULL,
    };
    sy_watched_describe(&fault);
    return fault;
}

static SY_COLD void note_fault(sy_flush *flush, sy_fault_kind kind, uintptr_t address,
                               const sy_slab *slab) {
    if (flush->faults < cache_refill_FAULTS_MAX)
        flush->fault[flush->faults++] = sy_cache_fault(flush->cache, kind, address, slab);
}

static inline void store_word(sy_flush *flush) {
    if (flush->word_index == NO_WORD) return;
    flush->slab->free[flush->word_index] = flush->word;
    if (flush->word_index < flush->slab->first_word)
        flush->slab->first_word = (uint16_t)flush->word_index;
}

/* Empty slabs beyond `keep` are to be released once the lock is let go. */
static void give_up_empty(sy_flush *flush, sy_bins *bins, size_t keep) {
    sy_slab *slab;
    while ((slab = sy_cache_unlink_empty(flush->cache, bins, keep)) != NULL) {
        slab->next = flush->surplus;
        flush->surplus = slab;
    }
}

static void leave_slab_of_view(sy_flush *flush) {
    sy_view_of(flush->slab->bins)->out -= flush->added;
    give_up_empty(flush, flush->slab->bins, 0);
}

/* Ends the work on a slab. */
static inline void leave_slab(sy_flush *flush) {
    if (!flush->slab) return;
    store_word(flush);
    flush->slab->free_count += flush->added;
    flush->returned += flush->added;
    sy_bins_update(flush->slab->bins, flush->slab);
    SY_INVARIANT(sy_slab_is_valid(flush->slab, &flush->cache->layout));
    if (SY_UNLIKELY(flush->slab->bins != &flush->cache->bins)) leave_slab_of_view(flush);
    flush->added = 0;
}

SY_COLD sy_fault_kind sy_cache_fault_outside(const sy_cache *cache, const sy_slab *slab) {
    if (!slab) return SY_FAULT_FOREIGN_POINTER;
    bool released = slab->owner == cache || (!slab->owner && !slab->first);
    return released ? SY_FAULT_DOUBLE_FREE : SY_FAULT_WRONG_CACHE;
}

/* Begins the work on the slab of `address`; false, with the fault noted, if it is none of the
 * cache's. */
static bool enter_slab(sy_flush *flush, uintptr_t address) {
    sy_slab *slab = sy_slab_at(address);
    if (SY_UNLIKELY(!sy_slab_is_in(slab, flush->cache))) {
        note_fault(flush, sy_cache_fault_outside(flush->cache, slab), address, slab);
        return false;
    }
    leave_slab(flush);
    flush->slab = slab;
    flush->word_index = NO_WORD;
    return true;
}

static inline void cache_refill_put_slot(sy_flush *flush, uintptr_t address) {
    const sy_layout *layout = &flush->cache->layout;
    if (!flush->slab || address - flush->slab->start >= layout->slab_bytes)
        if (!enter_slab(flush, address)) return;
    uint32_t index = sy_slab_index(flush->slab, layout, address);
    if (SY_UNLIKELY(index == UINT32_MAX)) {
        note_fault(flush, SY_FAULT_MISALIGNED_POINTER, address, flush->slab);
        return;
    }
    if (index / 64 != flush->word_index) {
        store_word(flush);
        flush->word_index = index / 64;
        flush->word = flush->slab->free[flush->word_index];
    }
    uint64_t bit = UINT64_C(1) << index % 64;
    if (SY_UNLIKELY(flush->word & bit)) {
        note_fault(flush, SY_FAULT_DOUBLE_FREE, address, flush->slab);
        return;
    }
    flush->word |= bit;
    flush->added++;
}

/* Empty slabs with handles that go together: the words of their ordinals are cleared, which takes
 * longer than a flush, so one free in many is slow instead of one for each slab. */
static size_t batch(const sy_cache *cache) {
    enum { BATCH_MOST = 16 };
    size_t share = sy_cache_has_handles(cache) ? cache->slab_count / EMPTIES_SHARE : 0;
    return share < BATCH_MOST ? share : BATCH_MOST;
}

/*
 * Empty slabs beyond what is worth keeping. The lock is held. A slab is cheap to make from units
 * that hold memory, so one is kept, against making and releasing it in turn; where objects were
 * constructed, an eighth of the slabs.
 */
static void give_up_surplus(sy_flush *flush) {
    sy_cache *cache = flush->cache;
    size_t built = cache->construct ? cache->slab_count / EMPTIES_SHARE : 0;
    size_t keep = cache->empties_least + built + cache->empties_max;
    if (cache->bins.count[SY_BIN_EMPTY] > keep + batch(cache))
        give_up_empty(flush, &cache->bins, keep);
}

static void begin_flush(sy_flush *flush, sy_cache *cache) {
    flush->cache = cache;
    flush->slab = flush->surplus = NULL;
    flush->added = 0;
    flush->returned = flush->faults = 0;
}

/* Once all slots are put; the lock is held. */
static void end_flush(sy_flush *flush) {
    leave_slab(flush);
    flush->cache->out -= flush->returned;
    flush->cache->counts.flushes++;
    give_up_surplus(flush);
}

/* What is called without the lock. */
static void sy_cache_release_surplus(sy_flush *flush) {
    while (flush->surplus) {
        sy_slab *slab = flush->surplus;
        flush->surplus = slab->next;
        sy_cache_release_slab(flush->cache, slab);
    }
}

void sy_cache_flush(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    sy_cache *cache = owner;
    sy_flush flush;
    begin_flush(&flush, cache);
    SY_SLOW_PATH(&cache->client);
    if (sy_cache_has_handles(cache)) to_addresses(cache, items, count);
    sy_lock_acquire(&cache->lock);
    for (size_t i = 0; i < count; i++) cache_refill_put_slot(&flush, items[i]);
    end_flush(&flush);
    if (held) atomic_store_explicit(held, 0, memory_order_relaxed);
    sy_lock_release(&cache->lock);
    sy_cache_release_surplus(&flush);
    for (size_t i = 0; i < flush.faults; i++) sy_fault_raise(&flush.fault[i]);
}

/* ---- one live object ---- */

/*
 * A slot that is out of its slab is live or in a magazine. Nothing that is free goes out of a slab
 * or into one while the cache's lock is held; so an object that is in no magazine then is live, and
 * the slot's bit decides between two calls. But the first call's object may be on its way to a
 * magazine again when the second one looks. So whoever comes says first for which object, without
 * the lock, and who frees it tells all others that have come for it.
 */
typedef struct sy_try {
    uintptr_t address;
    bool lost; /* another one has freed it */
    struct sy_try *next;
} sy_try;

static void enter_try(sy_cache *cache, sy_try *try) {
    try->next = atomic_load_explicit(&cache->tries, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&cache->tries, &try->next, try,
                                                  memory_order_release, memory_order_relaxed)) {}
}

/* The lock is held, but others may enter. In the child of a fork the list is another. */
static void leave_try(sy_cache *cache, sy_try *try) {
    sy_try *at = try;
    if (atomic_compare_exchange_strong_explicit(&cache->tries, &at, try->next, memory_order_acquire,
                                                memory_order_acquire))
        return;
    while (at && at->next != try) at = at->next;
    if (at) at->next = try->next;
}

/* Tells the others. The lock is held. */
static void win_try(sy_cache *cache, uintptr_t address) {
    sy_try *at = atomic_load_explicit(&cache->tries, memory_order_acquire);
    for (; at; at = at->next)
        if (at->address == address) at->lost = true;
}

/* Whether a slot begins at `address` and is out of its slab. The lock is held. */
static bool is_out(const sy_cache *cache, uintptr_t address) {
    const sy_slab *slab = sy_slab_at(address);
    if (!sy_slab_is_in(slab, cache)) return false;
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    return index != UINT32_MAX && !sy_slab_bit(slab->free, index);
}

static bool is_live(sy_cache *cache, uintptr_t address) {
    if (!is_out(cache, address)) return false;
    return !cache->client.config.magazine_items || !sy_client_holds(&cache->client, address);
}

bool sy_cache_put_live(sy_cache *cache, uintptr_t address) {
    sy_try try = {.address = address};
    sy_flush flush;
    begin_flush(&flush, cache);
    enter_try(cache, &try);
    sy_clients_lock();
    sy_lock_acquire(&cache->lock);
    leave_try(cache, &try);
    bool live = !try.lost && is_live(cache, address);
    if (live) {
        win_try(cache, address);
        if (cache->flags & SY_ZERO) sy_cache_wipe(cache, (void *)address);
        cache_refill_put_slot(&flush, address);
        end_flush(&flush);
    }
    sy_lock_release(&cache->lock);
    sy_clients_unlock();
    sy_cache_release_surplus(&flush);
    return live;
}

/* ==== src/cache/slab.c ==== */

/*
 * slab.c: takes slots out of the bitmap of one slab, and keeps the slabs of a cache in bins by how
 * many of their slots are free. refill.c calls it for a magazine-full at a time.
 */

/*
 * random.h: numbers that are spread well and cost little; for choosing, not for secrets.
 *
 * Lowest layer: includes nothing of the project. The state is the caller's, and not 0.
 */
#ifndef SY_BASE_RANDOM_H
#define SY_BASE_RANDOM_H

static inline uint64_t sy_random_next(uint64_t *state) { /* xorshift64 (Marsaglia, 2003) */
    uint64_t random = *state;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return *state = random;
}

/* From 0 to `bound` - 1; bound > 0. */
static inline uint32_t sy_random_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)((sy_random_next(state) >> 32) * bound >> 32);
}

#endif

_Static_assert(SY_UNIT_BYTES / SY_SLOT_MIN < UINT16_MAX, "counts of slots fit in 16 bits");

/* ---- bins ---- */

/* A bin's bit is set if it has a slab, and its root has as many free slots as belong in it. */
static bool bins_are_ordered(const sy_bins *bins) {
    for (unsigned bin = 0; bin <= SY_BINS; bin++) {
        const sy_heap_node *root = bins->heap[bin];
        if ((bins->occupied >> bin & 1) != (root != NULL)) return false;
        if (!root) continue;
        const sy_slab *slab = sy_slab_of_node((sy_heap_node *)(uintptr_t)root);
        if (slab->bin != bin || slab->bins != bins || bins->count[bin] == 0) return false;
        if (root->child && root->child < root) return false; /* lower addresses come first */
    }
    return true;
}

sy_slab *sy_bins_best(const sy_bins *bins) {
    return bins->occupied ? sy_slab_of_node(bins->heap[sy_lowest_bit(bins->occupied)]) : NULL;
}

/* The bin for the slab's free count, and the counts for which it stays there: those f with
 * (f - 1) * SY_BINS / slots == bin. */
static void choose_bin(sy_slab *slab) {
    uint32_t free_count = slab->free_count, slots = slab->slots;
    if (free_count == 0 || free_count == slots) {
        slab->bin = free_count ? SY_BIN_EMPTY : SY_BIN_FULL;
        slab->free_least = slab->free_most = (uint16_t)free_count;
        return;
    }
    uint32_t bin = (free_count - 1) * SY_BINS / slots;
    slab->bin = (uint8_t)bin;
    slab->free_least = (uint16_t)((bin * slots + SY_BINS - 1) / SY_BINS + 1);
    slab->free_most = (uint16_t)(((bin + 1) * slots + SY_BINS - 1) / SY_BINS);
    if (slab->free_most == slots) slab->free_most--;
}

void sy_bins_insert(sy_bins *bins, sy_slab *slab) {
    slab->bins = bins;
    choose_bin(slab);
    bins->count[slab->bin]++;
    if (slab->bin == SY_BIN_FULL) return;
    sy_heap_insert(&bins->heap[slab->bin], &slab->node);
    bins->occupied |= 1u << slab->bin;
    SY_INVARIANT(bins_are_ordered(bins));
}

void sy_bins_remove(sy_bins *bins, sy_slab *slab) {
    if (slab->bin == SY_BIN_NONE) return; /* set aside by a thread that the child of a fork lacks */
    bins->count[slab->bin]--;
    if (slab->bin != SY_BIN_FULL) {
        sy_heap_remove(&bins->heap[slab->bin], &slab->node);
        if (!bins->heap[slab->bin]) bins->occupied &= ~(1u << slab->bin);
    }
    slab->bin = SY_BIN_NONE;
    SY_INVARIANT(bins_are_ordered(bins));
}

void sy_bins_set_aside(sy_bins *bins, sy_slab *slab) {
    sy_bins_remove(bins, slab);
    slab->free_least = 0;
    slab->free_most = UINT16_MAX;
}

void sy_bins_move(sy_bins *bins, sy_slab *slab) {
    sy_bins *counted = bins->counted ? bins->counted : bins;
    counted->opened += slab->bin == SY_BIN_FULL;
    counted->reused += slab->bin == SY_BIN_EMPTY;
    sy_bins_remove(bins, slab);
    sy_bins_insert(bins, slab);
    counted->filled += slab->bin == SY_BIN_FULL;
}

/* ---- taking slots ---- */

size_t sy_slab_granule(const sy_slab *slab) {
    size_t page = sy_os_page_size(), part = slab->bytes / 64;
    return part > page ? sy_round_up(part, page) : page;
}

/* Slots `first` to `last` were given out: what was discarded of them will be touched. */
static SY_COLD void fill_holes(sy_slab *slab, const sy_layout *layout, uint32_t first,
                               uint32_t last) {
    size_t granule = sy_slab_granule(slab), base = slab->first - layout->zone - slab->start;
    size_t from = (base + first * layout->slot) / granule;
    size_t to = (base + (last + 1) * layout->slot - 1) / granule;
    slab->holes &= ~(sy_low_bits((unsigned)(to - from + 1)) << from);
}

void sy_slab_take(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count) {
    size_t slot = layout->slot;
    uint32_t word_index = slab->first_word, first = UINT32_MAX, last = 0;
    slab->free_count -= count;
    for (;; word_index++) {
        uint64_t word = slab->free[word_index];
        if (!word) continue;
        uintptr_t base = slab->first + (size_t)word_index * 64 * slot;
        if (first == UINT32_MAX) first = word_index * 64 + sy_lowest_bit(word);
        if (word == ~UINT64_C(0) && count >= 64) {
            for (unsigned i = 0; i < 64; i++, base += slot) *--end = base;
            slab->free[word_index] = 0;
            count -= 64;
            last = word_index * 64 + 63;
        } else {
            do {
                unsigned bit = sy_lowest_bit(word);
                *--end = base + bit * slot;
                last = word_index * 64 + bit;
                word &= word - 1;
            } while (--count && word);
            slab->free[word_index] = word;
        }
        if (!count) break;
    }
    slab->first_word = (uint16_t)word_index;
    if (last >= slab->watermark) slab->watermark = last + 1;
    if (SY_UNLIKELY(slab->holes != 0)) fill_holes(slab, layout, first, last);
}

/* The first free slot from `index` on, beginning anew at the end; there is one. */
static uint32_t next_free(const sy_slab *slab, const sy_layout *layout, uint32_t index) {
    uint32_t word_index = index / 64;
    uint64_t word = slab->free[word_index] & ~sy_low_bits(index % 64);
    while (!word) {
        word_index = word_index + 1 == layout->words ? 0 : word_index + 1;
        word = slab->free[word_index];
    }
    return word_index * 64 + sy_lowest_bit(word);
}

void sy_slab_take_random(sy_slab *slab, const sy_layout *layout, uintptr_t *end, uint32_t count,
                         uint64_t *random) {
    slab->free_count -= count;
    for (; count; count--) {
        uint32_t index = next_free(slab, layout, sy_random_below(random, layout->slots));
        slab->free[index / 64] &= ~(UINT64_C(1) << index % 64);
        *--end = slab->first + index * layout->slot;
        if (index >= slab->watermark) slab->watermark = index + 1;
        if (slab->holes) fill_holes(slab, layout, index, index);
    }
}

/* ---- trim ---- */

static bool all_set(const uint64_t *bitmap, uint32_t first, uint32_t last) {
    for (uint32_t index = first; index <= last; index++) {
        if (index % 64 == 0 && index + 63 <= last) {
            if (bitmap[index / 64] != ~UINT64_C(0)) return false;
            index += 63;
        } else if (!sy_slab_bit(bitmap, index)) {
            return false;
        }
    }
    return true;
}

/* The slots that lie in a granule, wholly or in part; false if there are none that were ever used.
 */
static bool cache_slab_slots_in(const sy_slab *slab, const sy_layout *layout, size_t granule, unsigned index,
                     uint32_t *first, uint32_t *last) {
    size_t base = slab->first - layout->zone - slab->start;
    size_t from = index * granule, to = from + granule;
    if (to <= base) return false;
    size_t low = from > base ? (from - base) / layout->slot : 0;
    size_t high = (to - 1 - base) / layout->slot;
    if (low >= slab->watermark) return false;
    *first = (uint32_t)low;
    *last = high < slab->slots ? (uint32_t)high : slab->slots - 1;
    return true;
}

uint64_t sy_slab_unused(const sy_slab *slab, const sy_layout *layout, uint64_t kept,
                        uint64_t *slots) {
    size_t granule = sy_slab_granule(slab);
    unsigned granules = (unsigned)(slab->bytes / granule);
    uint64_t chosen = 0;
    memset(slots, 0, layout->words * sizeof *slots);
    if (granules > 64) granules = 64;
    for (unsigned index = 0; index < granules; index++) {
        uint32_t first, last;
        if ((slab->holes | kept) >> index & 1 ||
            !cache_slab_slots_in(slab, layout, granule, index, &first, &last))
            continue;
        if (!all_set(slab->free, first, last)) continue;
        chosen |= UINT64_C(1) << index;
        for (uint32_t slot = first; slot <= last; slot++)
            slots[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    return chosen;
}

bool sy_slab_is_valid(const sy_slab *slab, const sy_layout *layout) {
    size_t free_count = 0;
    for (uint32_t word = 0; word < layout->words; word++) {
        if (word < slab->first_word && slab->free[word] != 0) return false;
        free_count += sy_count_bits(slab->free[word]);
    }
    uint32_t beyond = layout->slots % 64;
    if (beyond && slab->free[layout->words - 1] & ~sy_low_bits(beyond)) return false;
    return free_count == slab->free_count && slab->slots == layout->slots &&
           slab->free_count >= slab->free_least && slab->free_count <= slab->free_most;
}

size_t sy_slab_verify(const sy_slab *slab, const sy_layout *layout) {
    size_t wrong = !sy_slab_is_valid(slab, layout);
    for (uint32_t slot = slab->watermark; slot < layout->slots; slot++)
        wrong += !sy_slab_bit(slab->free, slot);
    wrong += (slab->first - layout->lead - slab->start) % layout->colour_step != 0;
    wrong += slab->first - layout->lead + sy_layout_used(layout) > slab->start + slab->bytes;
    return wrong;
}

/* ==== src/cache/slabs.c ==== */

/*
 * slabs.c: the slabs of a cache come, are linked and go, with what they have beside their units:
 * bitmaps, records, ordinals.
 */

/* ---- what a slab has beside its units ---- */

static size_t bitmap_bytes(const sy_cache *cache) { return cache->layout.words * sizeof(uint64_t); }

/* With records they are one block. */
static void give_bitmaps(const sy_cache *cache, sy_slab *slab) {
    if (sy_cache_checks(cache)) {
        if (slab->free) sy_side_give(slab->free, sy_watched_side_bytes(cache));
        return;
    }
    if (slab->free && slab->free != slab->bits) sy_side_give(slab->free, bitmap_bytes(cache));
    if (slab->built) sy_side_give(slab->built, bitmap_bytes(cache));
}

static bool take_plain_bitmaps(const sy_cache *cache, sy_slab *slab) {
    bool inside = cache->layout.words <= SY_SLAB_BITMAP_WORDS;
    slab->free = inside ? slab->bits : sy_side_take(bitmap_bytes(cache));
    slab->built = cache->construct && slab->free ? sy_side_take(bitmap_bytes(cache)) : NULL;
    return slab->free && (slab->built || !cache->construct);
}

static bool take_records(const sy_cache *cache, sy_slab *slab) {
    slab->free = sy_side_take(sy_watched_side_bytes(cache));
    slab->built = cache->construct && slab->free ? slab->free + cache->layout.words : NULL;
    return slab->free;
}

/* 0, or -1 with ENOMEM and nothing taken. */
static int take_bitmaps(const sy_cache *cache, sy_slab *slab) {
    if (sy_cache_checks(cache) ? take_records(cache, slab) : take_plain_bitmaps(cache, slab))
        return 0;
    give_bitmaps(cache, slab);
    errno = ENOMEM;
    return -1;
}

static void place_slab(sy_cache *cache, sy_slab *slab) {
    const sy_layout *layout = &cache->layout;
    uint64_t end = (uint64_t)slab->ordinal + layout->slots;
    sy_ordinals_place(slab->ordinal, layout->slots, slab->first, layout->slot);
    if (end > cache->names.limit) __atomic_store_n(&cache->names.limit, end, __ATOMIC_RELAXED);
}

static void fill_slab(sy_cache *cache, sy_slab *slab, uint32_t colour) {
    const sy_layout *layout = &cache->layout;
    slab->first = slab->start + colour * layout->colour_step + layout->lead;
    if (sy_cache_has_handles(cache)) place_slab(cache, slab);
    slab->slots = slab->free_count = layout->slots;
    for (uint32_t word = 0; word < layout->words; word++)
        slab->free[word] = sy_low_bits(layout->slots - word * 64);
    if (cache->watch) sy_watched_begin_slab(cache, slab);
}

/* Memory for secrets is locked, and not dumped. 0, or -1: it cannot be. */
static int cache_slabs_hide(const sy_cache *cache, const sy_slab *slab) {
    void *start = (void *)slab->start;
    if (cache->flags & SY_LOCKED && sy_os_lock(start, slab->bytes, true) != 0) return -1;
    if (cache->flags & SY_NO_DUMP) (void)sy_os_dump(start, slab->bytes, false);
    return 0;
}

/* It goes to others, who see no secret: what is live at the end of a cache is not freed. */
static void unhide(const sy_cache *cache, const sy_slab *slab) {
    void *start = (void *)slab->start;
    int error = errno;
    if (cache->flags & SY_ZERO && slab->free_count < slab->slots)
        memset((void *)slab->first, 0, slab->slots * cache->layout.slot - cache->layout.zone);
    if (cache->flags & SY_LOCKED) (void)sy_os_lock(start, slab->bytes, false);
    if (cache->flags & SY_NO_DUMP) (void)sy_os_dump(start, slab->bytes, true);
    errno = error;
}

static bool cache_slabs_take_all(const sy_cache *cache, sy_slab *slab) {
    if (take_bitmaps(cache, slab) != 0) return false;
    if (!sy_cache_has_handles(cache) || sy_ordinals_take(cache->layout.slots, &slab->ordinal)) {
        if (cache_slabs_hide(cache, slab) == 0) return true;
        if (sy_cache_has_handles(cache)) sy_ordinals_give(slab->ordinal, cache->layout.slots);
    }
    give_bitmaps(cache, slab);
    return false;
}

/* ---- growth ---- */

enum {
    GROWTH_LEAST = 1 << 20, /* bytes of slabs made, */
    GROWTH_SHARE = 16,      /* or this part of all slabs, if that is more */
};

static _Atomic size_t grown; /* bytes of slabs made since sy_caches_grew was due last */
static _Atomic bool grew;

void sy_caches_note_growth(size_t bytes) {
    size_t units = atomic_load_explicit(&sy_memory_main.units_used, memory_order_relaxed);
    size_t most = units * SY_UNIT_BYTES / GROWTH_SHARE;
    if (most < GROWTH_LEAST) most = GROWTH_LEAST;
    if (atomic_fetch_add_explicit(&grown, bytes, memory_order_relaxed) + bytes < most) return;
    atomic_store_explicit(&grown, 0, memory_order_relaxed);
    atomic_store_explicit(&grew, true, memory_order_relaxed);
    atomic_store_explicit(&sy_turn_wanted, true, memory_order_relaxed);
}

bool sy_caches_grew(void) {
    return atomic_load_explicit(&grew, memory_order_relaxed) &&
           atomic_exchange_explicit(&grew, false, memory_order_relaxed);
}

/* ---- a slab comes and goes ---- */

bool sy_cache_add_slab(sy_cache *cache, sy_bins *bins) {
    const sy_layout *layout = &cache->layout;
    bool clean;
    sy_quota *refused;
    sy_slab *slab = sy_quota_take_run(cache->quota, cache->memory, layout->slab_bytes,
                                      layout->align, 0, &clean, &refused);
    sy_refuse_run(refused);
    if (!slab) return false;
    if (!cache_slabs_take_all(cache, slab)) {
        unhide(cache, slab);
        sy_quota_give_run(cache->quota, slab);
        errno = ENOMEM;
        return false;
    }
    if (layout->slots > 1) sy_caches_note_growth(slab->bytes);
    if (cache->class_number)
        sy_map_set_class(slab->start, slab->bytes / SY_UNIT_BYTES, cache->class_number);
    sy_lock_acquire(&cache->lock);
    fill_slab(cache, slab, cache->next_colour);
    if (++cache->next_colour == layout->colours) cache->next_colour = 0;
    slab->owner = cache;
    sy_cache_append_slab(cache, slab);
    cache->slab_count++;
    cache->counts.slabs_made++;
    sy_bins_insert(bins, slab);
    SY_INVARIANT(sy_slab_is_valid(slab, layout));
    if (bins != &cache->bins) sy_view_hold(sy_view_of(bins));
    sy_lock_release(&cache->lock);
    return true;
}

void sy_cache_append_slab(sy_cache *cache, sy_slab *slab) {
    slab->next = NULL;
    slab->previous = cache->last_slab;
    if (cache->last_slab)
        cache->last_slab->next = slab;
    else
        cache->slabs = slab;
    cache->last_slab = slab;
}

void sy_cache_remove_slab(sy_cache *cache, sy_slab *slab) {
    if (slab->previous)
        slab->previous->next = slab->next;
    else
        cache->slabs = slab->next;
    if (slab->next)
        slab->next->previous = slab->previous;
    else
        cache->last_slab = slab->previous;
}

void sy_cache_unlink_slab(sy_cache *cache, sy_slab *slab) {
    sy_bins_remove(slab->bins, slab);
    slab->bin = SY_BIN_GONE;
    sy_cache_remove_slab(cache, slab);
    cache->slab_count--;
    cache->counts.slabs_released++;
}

sy_slab *sy_cache_unlink_empty(sy_cache *cache, sy_bins *bins, size_t keep) {
    if (bins->count[SY_BIN_EMPTY] <= keep) return NULL;
    sy_slab *slab = sy_slab_of_node(bins->heap[SY_BIN_EMPTY]);
    sy_cache_unlink_slab(cache, slab);
    return slab;
}

void sy_cache_destruct(sy_cache *cache, const sy_slab *slab, const uint64_t *slots) {
    size_t count = 0;
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    for (uint32_t word = 0; word < cache->layout.words; word++)
        for (uint64_t left = slots[word]; left; left &= left - 1, count++)
            if (cache->destruct)
                cache->destruct(
                    (void *)(slab->first + (word * 64 + sy_lowest_bit(left)) * cache->layout.slot),
                    cache->arg);
    call.returned = true;
    sy_lock_acquire(&cache->lock);
    cache->counts.destructed += count;
    sy_lock_release(&cache->lock);
}

void sy_cache_release_slab(sy_cache *cache, sy_slab *slab) {
    if (slab->built) sy_cache_destruct(cache, slab, slab->built);
    if (cache->watch) sy_watched_forget(cache, slab, NULL);
    if (cache->class_number) sy_map_set_class(slab->start, slab->bytes / SY_UNIT_BYTES, 0);
    if (sy_cache_has_handles(cache)) sy_ordinals_give(slab->ordinal, cache->layout.slots);
    unhide(cache, slab);
    give_bitmaps(cache, slab);
    sy_bins *bins = slab->bins;
    slab->first = 0; /* nor is it a span of the heap */
    __atomic_store_n(&slab->owner, NULL, __ATOMIC_RELEASE);
    sy_quota_give_run(cache->quota, slab);
    if (bins != &cache->bins) sy_view_let_go(sy_view_of(bins));
}

/* ==== src/cache/trim.c ==== */

/*
 * trim.c: memory back to the OS: empty slabs by way of the chunks, and pages of the others in
 * place.
 */

enum {
    STEP_EMPTIES = 4, /* slabs released, */
    STEP_SLABS = 64,  /* and looked at, in one step */
};

/* Notes what is to be looked at. A reserve ends with a trim that is not by age; the lock is held.
 */
static void begin_trim_of_cache(sy_cache *cache, size_t *left, bool aged) {
    uint64_t exchanges = cache->counts.refills + cache->counts.flushes;
    *left = cache->slab_count;
    if (!aged) {
        cache->empties_max = 0;
        atomic_store(&cache->promise, 0);
        return;
    }
    cache->idle = exchanges == cache->seen;
    cache->seen = exchanges;
}

/* By age all of them go if the cache was idle, else none, as what is too many goes when it is
 * freed. */
bool sy_cache_release_step(sy_cache *cache, size_t *left, bool aged) {
    for (int i = 0; i < STEP_EMPTIES; i++) {
        sy_lock_acquire(&cache->lock);
        if (*left == SIZE_MAX) begin_trim_of_cache(cache, left, aged);
        bool may = !aged || (cache->idle && !cache->empties_max);
        sy_slab *slab = may ? sy_cache_unlink_empty(cache, &cache->bins, 0) : NULL;
        sy_lock_release(&cache->lock);
        if (!slab) return false;
        sy_cache_release_slab(cache, slab);
    }
    return true;
}

/* The slab with the most slots has one unit: longer slabs are for slots that leave a tail in one.
 */
typedef struct sy_claim {
    sy_slab *slab;
    uint64_t granules;                                /* 0: the slab is empty, and to be released */
    uint64_t slots[SY_UNIT_BYTES / SY_SLOT_MIN / 64]; /* in them: to be destructed */
} sy_claim;

/* Whether something of the slab can be given back: then it is set aside or, if that is all of it,
 * unlinked. Its slots stay free, so that a second free is seen. The lock is held. */
static bool claim_slab(sy_cache *cache, sy_slab *slab, sy_claim *claim) {
    bool of_view = slab->bins != &cache->bins;
    if (slab->bin > SY_BIN_EMPTY || (slab->bin == SY_BIN_EMPTY && !of_view)) return false;
    claim->slab = slab;
    claim->granules = 0;
    if (slab->bin == SY_BIN_EMPTY) {
        sy_cache_unlink_slab(cache, slab);
        return true;
    }
    if (!sy_memory_discards(cache->memory)) return false;
    uint64_t kept = cache->watch ? sy_watched_edges(cache, slab) : 0;
    claim->granules = sy_slab_unused(slab, &cache->layout, kept, claim->slots);
    if (!claim->granules) return false;
    for (uint32_t word = 0; slab->built && word < cache->layout.words; word++) {
        claim->slots[word] &= slab->built[word];
        slab->built[word] &= ~claim->slots[word];
    }
    sy_bins_set_aside(slab->bins, slab);
    return true;
}

/* Looks at the next few slabs, and claims one of which something can be given back; false: there
 * was none among them. Empty slabs of epochs go here, those of the cache before. The lock is held.
 */
static bool claim_next(sy_cache *cache, size_t *left, bool aged, sy_claim *claim) {
    for (int looked = 0; looked < STEP_SLABS && *left && cache->slabs; looked++) {
        sy_slab *slab = cache->slabs;
        bool fresh = aged && slab->fresh;
        sy_cache_remove_slab(cache, slab);
        sy_cache_append_slab(cache, slab);
        --*left;
        slab->fresh = false;
        if (!fresh && claim_slab(cache, slab, claim)) return true;
    }
    return false;
}

/* Discards the claimed granules, a system call for each run of them; those that went. */
static uint64_t discard_granules(const sy_claim *claim, size_t *bytes) {
    size_t granule = sy_slab_granule(claim->slab);
    uint64_t done = 0;
    for (unsigned first = 0; first < 64;) {
        if (!(claim->granules >> first & 1)) {
            first++;
            continue;
        }
        unsigned end = first;
        while (end < 64 && claim->granules >> end & 1) end++;
        if (sy_run_discard(claim->slab, (char *)claim->slab->start + first * granule,
                           (end - first) * granule) == 0) {
            *bytes += (end - first) * granule;
            for (unsigned i = first; i < end; i++) done |= UINT64_C(1) << i;
        }
        first = end;
    }
    return done;
}

/* Gives the claimed granules back; whether the slab is to be released now: the last object came
 * back while it was set aside, so that nobody saw it emptied. The lock is not held. */
static bool give_granules(sy_cache *cache, const sy_claim *claim, size_t *bytes) {
    sy_slab *slab = claim->slab;
    if (slab->built) sy_cache_destruct(cache, slab, claim->slots);
    if (cache->watch) sy_watched_forget(cache, slab, claim->slots);
    uint64_t holes = discard_granules(claim, bytes);
    sy_chunk_punched(slab);
    sy_lock_acquire(&cache->lock);
    slab->holes |= holes;
    sy_bins_insert(slab->bins, slab);
    bool emptied = slab->bin == SY_BIN_EMPTY && slab->bins != &cache->bins;
    if (emptied) sy_cache_unlink_slab(cache, slab);
    sy_lock_release(&cache->lock);
    return emptied;
}

/* Whether giving memory back may call the program's functions: destructors, or a handler of faults
 * if watched objects turn out to be corrupt. */
static bool calls_program(const sy_cache *cache) { return cache->destruct || cache->watch; }

/* Gives back what was claimed. The lock is held before and after. */
static void give_back(sy_cache *cache, const sy_claim *claim, size_t *bytes) {
    bool awaited = !calls_program(cache);
    if (awaited) sy_memory_begin_trim(cache->memory);
    sy_lock_release(&cache->lock);
    if (!claim->granules || give_granules(cache, claim, bytes))
        sy_cache_release_slab(cache, claim->slab);
    if (awaited) sy_memory_end_trim(cache->memory);
    sy_lock_acquire(&cache->lock);
}

static bool punch_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes) {
    sy_claim claim;
    sy_lock_acquire(&cache->lock);
    bool may = sy_memory_discards(cache->memory) || cache->flags & SY_EPOCHS;
    if (!may || (aged && (cache->empties_max || cache->trims))) *left = 0;
    if (claim_next(cache, left, aged, &claim)) give_back(cache, &claim, bytes);
    bool more = *left && cache->slabs;
    sy_lock_release(&cache->lock);
    return more;
}

bool sy_cache_trim_step(sy_cache *cache, size_t *left, bool aged, size_t *bytes) {
    return sy_cache_release_step(cache, left, aged) || punch_step(cache, left, aged, bytes);
}

static void count_trim(sy_cache *cache, int more) {
    sy_lock_acquire(&cache->lock);
    if (more > 0 || cache->trims) cache->trims += (unsigned)more; /* 0: in the child of a fork */
    sy_lock_release(&cache->lock);
}

size_t sy_cache_trim_slabs(sy_cache *cache) {
    size_t bytes = 0, left = SIZE_MAX;
    sy_client_drain(&cache->client);
    count_trim(cache, 1);
    while (sy_cache_trim_step(cache, &left, false, &bytes)) {}
    while (sy_cache_release_step(cache, &left, false)) {}
    count_trim(cache, -1);
    return bytes;
}

size_t sy_cache_trim_rest(sy_memory *memory, bool handles) {
    size_t bytes = handles ? sy_directory_trim() : 0;
    sy_memory_hold(memory); /* it may call the program, which may end the cache */
    bytes += sy_chunk_trim(memory);
    sy_memory_let_go(memory);
    return bytes + sy_magazine_trim();
}

size_t sy_cache_trim(sy_cache *cache) {
    if (!sy_client_pin(&cache->client)) return 0;
    size_t bytes = sy_cache_trim_slabs(cache);
    bytes += sy_cache_trim_rest(cache->memory, cache->flags & SY_HANDLES);
    sy_client_unpin(&cache->client);
    return bytes;
}

/* ==== src/cache/watched.c ==== */

/*
 * watched.c: allocation and free in caches with SY_CHECKED. Every operation validates the object's
 * record; a freed object waits in quarantine before it is reused.
 */

/*
 * history.h: the last operations of a cache, in a ring.
 *
 * Written without a lock, by any number of threads: each takes the next number, and with it a place
 * in the ring, of which the sequence tells the state:
 *
 *     0             nothing was ever written
 *     2 n + 1       operation n is being written, by whoever made it so
 *     2 n + 2       operation n is there
 *
 * Who finds his place being written (by a thread that was stopped for a whole round of the ring),
 * or written by a later one, lets his operation be lost. Who reads looks at the sequence before and
 * after, and passes by what is not there.
 *
 * Above: watch.c, cache/. Below: stack.h, os/.
 */
#ifndef SY_WATCH_HISTORY_H
#define SY_WATCH_HISTORY_H

typedef struct sy_entry {
    _Atomic uint64_t sequence;
    _Atomic uint64_t object;
    _Atomic uint64_t size_and_freed; /* bit 0: freed */
    _Atomic uint64_t time;
    _Atomic uint64_t stack_and_thread; /* 32 bits each, the stack above */
} sy_entry;

struct sy_history {
    size_t operations, bytes;
    _Atomic uint64_t next; /* number of the next operation */
    sy_entry entries[];
};

/* A ring of `operations`, a power of two. NULL with ENOMEM. */
sy_history *sy_history_make(size_t operations);
void sy_history_end(sy_history *history);

/* Notes an operation on an object of `size` bytes. */
void sy_history_note(sy_history *history, bool freed, const void *object, size_t size,
                     const sy_stamp *stamp);

/* Calls for each, the latest first, until `visit` returns something else than 0; returns that, or
 * -1 with ENOMEM. */
int sy_history_each(const sy_history *history,
                    int (*visit)(void *arg, const sy_operation *operation), void *arg);

/* The memory of it. */
size_t sy_history_bytes(const sy_history *history);

#endif
/*
 * tools.h: what Valgrind's memcheck and AddressSanitizer are told, if the process runs under them;
 * so that they see objects where they would see slabs.
 *
 *     slab:    | hidden | object: shown, its size exactly | hidden | hidden: free slot | hidden |
 *
 * Recognised at run time: AddressSanitizer by its functions (weak references, resolved where the
 * program was built with it, whatever the library was built with), memcheck by its answer to a
 * request (no operation outside of it; Valgrind's other tools do not answer). Nobody is told before
 * the first sy_tool_open, and without a tool each call costs a load and a branch.
 *
 * Any thread; what a range belongs to is the caller's affair. Lowest of watch/.
 */
#ifndef SY_WATCH_TOOLS_H
#define SY_WATCH_TOOLS_H

typedef enum sy_tool { SY_TOOL_NONE, SY_TOOL_ASAN, SY_TOOL_MEMCHECK } sy_tool;

/* The tool this process runs under, whatever the option `tools` says. */
sy_tool sy_tool_present(void);

/* `owner` (any address that names it) begins and ends to give out objects, with `zone` bytes at
 * each side that are nobody's. Before it ends all its slabs have. */
void sy_tool_open(const void *owner, size_t zone);
void sy_tool_close(const void *owner);

/* A slab: from now on its memory is hidden from the program, and what objects in it point to is no
 * leak; from now on it is anybody's, and reads as if it had been written. */
void sy_tool_begin(const void *slab, size_t bytes);
void sy_tool_end(const void *slab, size_t bytes);

/* An object is shown to the program, as never written; is hidden from it. */
void sy_tool_allocated(const void *owner, const void *object, size_t size);
void sy_tool_freed(const void *owner, const void *object, size_t size);

/* An object that is hidden was freed once more: memcheck says who did so before. */
void sy_tool_freed_twice(const void *owner, const void *object);

/* What the library has written to an object is not to count as written. */
void sy_tool_unwritten(const void *object, size_t size);

/* Between these two the library itself reads or writes what may be hidden (in functions that
 * AddressSanitizer does not watch): memcheck reports no errors of this thread. They nest. */
void sy_tool_enter(void);
void sy_tool_leave(void);

extern SY_HIDDEN const sy_part sy_tools_part;

/* Has `explain` called with the address of each access that AddressSanitizer reports, at the end of
 * its report; for ever, in the place of a callback of the program's. */
void sy_tool_on_report(void (*explain)(uintptr_t address));

#endif

/* ---- from an object to what is known of it ---- */

size_t sy_watched_side_bytes(const sy_cache *cache) {
    const sy_layout *layout = &cache->layout;
    return 2 * layout->words * sizeof(uint64_t) + layout->slots * sizeof(sy_record);
}

static void *object_of(const sy_cache *cache, uintptr_t item) {
    return cache->flags & SY_HANDLES ? sy_handle_place(&cache->names, item) : (void *)item;
}

/* Of an object that is known to be one of the cache's slots. */
static sy_record *cache_watched_record_of(const sy_cache *cache, const void *object) {
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    uint32_t index = sy_slab_index(slab, &cache->layout, (uintptr_t)object);
    return &sy_watched_records(cache, slab)[index];
}

/* The record of the slot that begins at `address`; NULL, with the fault that a free of it is. */
static sy_record *find_record(const sy_cache *cache, uintptr_t address, sy_fault *fault) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || slab->owner != cache) {
        *fault = sy_cache_fault(cache, sy_cache_fault_outside(cache, slab), address, slab);
        return NULL;
    }
    uint32_t index = sy_slab_index(slab, &cache->layout, address);
    if (index != UINT32_MAX) return &sy_watched_records(cache, slab)[index];
    *fault = sy_cache_fault(cache, SY_FAULT_MISALIGNED_POINTER, address, slab);
    return NULL;
}

bool sy_watched_size(const sy_cache *cache, uintptr_t address, size_t *size) {
    if (cache->flags & SY_PASSED) return sy_passed_owner((void *)address, size) == cache;
    sy_fault fault;
    const sy_record *record = find_record(cache, address, &fault);
    if (!record || sy_record_state(record) != SY_OBJECT_LIVE) return false;
    *size = sy_record_size(record);
    return true;
}

/* ---- whose it is ---- */

static void describe_slot(const sy_cache *cache, const sy_slab *slab, sy_fault *fault) {
    const sy_layout *layout = &cache->layout;
    size_t index = ((uintptr_t)fault->address - (slab->first - layout->zone)) / layout->slot;
    if (index >= slab->slots) return;
    fault->object = (void *)(slab->first + index * layout->slot);
    if (sy_cache_checks(cache)) sy_watch_describe(&sy_watched_records(cache, slab)[index], fault);
    if (fault->kind == SY_FAULT_WRONG_CACHE && !fault->found_size) fault->found_size = cache->size;
}

static void describe_guarded(sy_fault *fault) {
    uintptr_t object;
    sy_watch *watch;
    const sy_record *record = sy_guard_record((uintptr_t)fault->address, &object, &watch);
    if (!record) return;
    fault->object = (void *)object;
    sy_watch_describe(record, fault);
}

void sy_watched_describe(sy_fault *fault) {
    const sy_slab *run = sy_slab_at((uintptr_t)fault->address);
    bool foreign = !run && fault->kind == SY_FAULT_FOREIGN_POINTER;
    if (foreign && sy_run_ended_at((uintptr_t)fault->address)) fault->kind = SY_FAULT_DOUBLE_FREE;
    if (sy_guard_owns((uintptr_t)fault->address))
        describe_guarded(fault);
    else if (run && run->owner)
        describe_slot(run->owner, run, fault);
    else if (run && run->first)
        fault->object = (void *)run->first;
    if (fault->object) fault->offset = (const char *)fault->address - (const char *)fault->object;
}

/* ---- construction, where it is done anew each time ---- */

static void count_built(sy_cache *cache, uint64_t constructed, uint64_t destructed) {
    sy_lock_acquire(&cache->lock);
    cache->counts.constructed += constructed;
    cache->counts.destructed += destructed;
    sy_lock_release(&cache->lock);
}

typedef struct sy_building {
    sy_undo *undo;
    const void *work;
    bool built;
} sy_building;

static void end_building(const sy_building *building) {
    if (building->built) return;
    int error = errno;
    building->undo(building->work);
    errno = error;
}

bool sy_watched_construct(sy_cache *cache, int (*construct)(void *object, void *arg), void *object,
                          sy_undo *undo, const void *work) {
    sy_building building SY_CLEANUP(end_building) = {undo, work, false};
    SY_CALLBACK(call, "constructor", "cache", cache->name, true);
    building.built = construct(object, cache->arg) == 0;
    call.returned = true;
    return building.built;
}

bool sy_watched_build(sy_cache *cache, void *object, sy_undo *undo, const void *work) {
    if (!cache->rebuilds.construct) return true;
    bool built = sy_watched_construct(cache, cache->rebuilds.construct, object, undo, work);
    if (built) count_built(cache, 1, 0);
    return built;
}

void sy_watched_unbuild(sy_cache *cache, void *object) {
    if (!cache->rebuilds.construct) return;
    SY_CALLBACK(call, "destructor", "cache", cache->name, false);
    if (cache->rebuilds.destruct) cache->rebuilds.destruct(object, cache->arg);
    call.returned = true;
    count_built(cache, 0, 1);
}

/* ---- allocation ---- */

/* Where nothing is to be had, what waits in quarantine is. */
static bool take_item(sy_cache *cache, uintptr_t *item) {
    if (sy_cache_take(cache, item)) return true;
    int error = errno;
    if (sy_watched_drain(cache) && sy_cache_take(cache, item)) return true;
    errno = error;
    return false;
}

/* What an allocation has, until its object is constructed. */
typedef struct sy_taken {
    sy_cache *cache;
    sy_record *record;
    void *object;
    uintptr_t item;
} sy_taken;

static void put_taken_back(const void *taken_) {
    const sy_taken *taken = taken_;
    sy_watch_forget(taken->cache->watch, taken->record, taken->object);
    sy_client_free(&taken->cache->client, taken->item);
    sy_limit_refuse(SY_REFUSAL_CONSTRUCTOR);
}

bool sy_watched_take(sy_cache *cache, size_t size, uintptr_t *item) {
    if (SY_UNLIKELY(cache->flags & SY_PASSED)) return sy_passed_take(cache, size, item);
    if (!take_item(cache, item)) return false;
    void *object = object_of(cache, *item);
    sy_record *record = cache_watched_record_of(cache, object);
    int error = errno;
    sy_watch_taken(cache->watch, record, object);
    sy_watch_show(cache->watch, record, object, size);
    const sy_taken taken = {cache, record, object, *item};
    if (!sy_watched_build(cache, object, put_taken_back, &taken)) return false;
    bool built = cache->construct || cache->rebuilds.construct;
    sy_watch_given(cache->watch, record, object, size, built);
    sy_turn();
    errno = error;
    return true;
}

/* ---- free ---- */

/* An object whose record this thread has claimed; false: it is not to be used again. */
static void sy_watched_put_away(sy_cache *cache, sy_record *record, uintptr_t item, bool again) {
    void *object = object_of(cache, item);
    uintptr_t out;
    sy_watched_unbuild(cache, object);
    sy_watch_fill(cache->watch, record, object);
    if (!again) return;
    sy_lock_acquire(&cache->lock);
    bool over = sy_epoch_is_over(cache, object);
    bool full = !over && sy_watch_wait(cache->watch, item, &out);
    sy_lock_release(&cache->lock);
    if (over || full) sy_client_free(&cache->client, over ? item : out);
}

void sy_watched_free(sy_cache *cache, void *object, size_t told) {
    sy_fault fault;
    if (SY_UNLIKELY(cache->flags & SY_PASSED)) {
        sy_passed_free(cache, object, told);
        return;
    }
    sy_record *record = find_record(cache, (uintptr_t)object, &fault);
    if (!record) {
        sy_fault_raise(&fault);
        return;
    }
    if (!sy_watch_claim(cache->watch, record, object, told)) return;
    sy_watched_put_away(cache, record, (uintptr_t)object, true);
    sy_turn();
}

bool sy_watched_try_free(sy_cache *cache, void *object) {
    sy_fault fault;
    if (SY_UNLIKELY(cache->flags & SY_PASSED)) return sy_passed_try_free(cache, object);
    sy_lock_acquire(&cache->lock); /* the slab is not released, nor its records */
    bool found = sy_slab_is_in(sy_slab_at((uintptr_t)object), cache);
    sy_record *record = found ? find_record(cache, (uintptr_t)object, &fault) : NULL;
    bool claimed = record && sy_watch_try_claim(record);
    sy_lock_release(&cache->lock);
    if (!claimed) return false;
    sy_watch_claimed(cache->watch, record, object);
    sy_watched_put_away(cache, record, (uintptr_t)object, true);
    return true;
}

void sy_watched_put(sy_cache *cache, uintptr_t ordinal, bool spent) {
    void *object = object_of(cache, ordinal);
    sy_record *record = cache_watched_record_of(cache, object);
    if (sy_watch_claim(cache->watch, record, object, SIZE_MAX))
        sy_watched_put_away(cache, record, ordinal, !spent);
}

void sy_watched_raise(const sy_cache *cache, uint32_t ordinal, sy_fault_kind kind) {
    const void *object = object_of(cache, ordinal);
    sy_watch_raise(cache->watch, cache_watched_record_of(cache, object), kind, object, object);
}

bool sy_watched_drain(sy_cache *cache) {
    for (bool any = false;; any = true) {
        uintptr_t item;
        sy_lock_acquire(&cache->lock);
        bool more = sy_watch_next(cache->watch, &item);
        sy_lock_release(&cache->lock);
        if (!more) return any;
        sy_client_free(&cache->client, item);
    }
}

/* ---- slabs ---- */

typedef struct sy_edge {
    void *start;
    size_t bytes;
} sy_edge;

/* What of the slab is before its first slot, and behind its last. */
static void find_edges(const sy_cache *cache, const sy_slab *slab, sy_edge edges[2]) {
    const sy_layout *layout = &cache->layout;
    uintptr_t first = slab->first - layout->zone;
    uintptr_t end = first + layout->slots * layout->slot;
    edges[0] = (sy_edge){(void *)slab->start, first - slab->start};
    edges[1] = (sy_edge){(void *)end, slab->start + slab->bytes - end};
}

static void lay_edges(const sy_cache *cache, const sy_slab *slab) {
    if (!(cache->flags & SY_EDGES)) return;
    sy_edge edges[2];
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++) sy_watch_lay(cache->watch, edges[i].start, edges[i].bytes);
}

void sy_watched_begin_slab(const sy_cache *cache, sy_slab *slab) {
    if (cache->flags & SY_TOLD) sy_tool_begin((void *)slab->start, slab->bytes);
    lay_edges(cache, slab);
}

uint64_t sy_watched_edges(const sy_cache *cache, const sy_slab *slab) {
    if (!(cache->flags & SY_EDGES)) return 0;
    size_t granule = sy_slab_granule(slab);
    uint64_t granules = 0;
    sy_edge edges[2];
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++) {
        size_t from = (uintptr_t)edges[i].start - slab->start, to = from + edges[i].bytes;
        for (size_t index = from / granule; index * granule < to && index < 64; index++)
            granules |= UINT64_C(1) << index;
    }
    return granules;
}

/* Damaged edges of a slab: how many, described in faults. */
static size_t look_at_edges(const sy_cache *cache, const sy_slab *slab, sy_fault faults[2]) {
    if (!(cache->flags & SY_EDGES)) return 0;
    sy_edge edges[2];
    size_t wrong = 0;
    find_edges(cache, slab, edges);
    for (int i = 0; i < 2; i++)
        wrong +=
            sy_watch_look_at_edge(cache->watch, edges[i].start, edges[i].bytes, &faults[wrong]);
    return wrong;
}

static void forget_slot(sy_cache *cache, sy_record *record, void *object) {
    if (sy_record_state(record) == SY_OBJECT_LIVE) sy_watched_unbuild(cache, object);
    sy_watch_forget(cache->watch, record, object);
}

void sy_watched_forget(sy_cache *cache, sy_slab *slab, const uint64_t *slots) {
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++)
        if (!slots || sy_slab_bit(slots, index))
            forget_slot(cache, &sy_watched_records(cache, slab)[index],
                        (void *)(slab->first + index * cache->layout.slot));
    sy_fault faults[2];
    size_t wrong = slots ? 0 : look_at_edges(cache, slab, faults);
    for (size_t i = 0; i < wrong; i++) sy_fault_raise(&faults[i]);
    if (!slots && cache->flags & SY_TOLD) sy_tool_end((void *)slab->start, slab->bytes);
}

/* ---- looking ---- */

enum { cache_watched_TOLD_MAX = 16 }; /* faults of one walk that are described; the others are counted */

typedef struct sy_walk {
    bool free_only; /* live objects and edges are passed over */
    size_t wrong, told;
    sy_fault faults[cache_watched_TOLD_MAX + 2];
} sy_walk;

static void look_at_slab(const sy_cache *cache, const sy_slab *slab, sy_walk *walk) {
    size_t edges = walk->free_only ? 0 : look_at_edges(cache, slab, &walk->faults[walk->told]);
    walk->wrong += edges;
    walk->told = walk->told + edges < cache_watched_TOLD_MAX ? walk->told + edges : cache_watched_TOLD_MAX;
    for (uint32_t index = 0; sy_cache_checks(cache) && index < slab->slots; index++) {
        const sy_record *record = &sy_watched_records(cache, slab)[index];
        const void *object = (void *)(slab->first + index * cache->layout.slot);
        if (walk->free_only && sy_record_state(record) != SY_OBJECT_FREE) continue;
        if (!sy_watch_look(cache->watch, record, object, &walk->faults[walk->told])) continue;
        walk->wrong++;
        if (walk->told < cache_watched_TOLD_MAX) walk->told++;
    }
}

/* `found` is called for what is described, without the lock. */
static void sy_watched_look_at_all(sy_cache *cache, sy_walk *walk,
                                   void (*found)(const sy_fault *fault)) {
    walk->wrong = walk->told = 0;
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
        look_at_slab(cache, slab, walk);
    sy_lock_release(&cache->lock);
    sy_tool_enter(); /* what is damaged is shown, and may be hidden */
    for (size_t i = 0; i < walk->told; i++) found(&walk->faults[i]);
    sy_tool_leave();
}

size_t sy_watched_verify(sy_cache *cache) {
    sy_walk walk;
    walk.free_only = false;
    if (!cache->watch) return 0;
    sy_watched_look_at_all(cache, &walk, sy_fault_tell);
    return walk.wrong;
}

static void verify_free(sy_cache *cache) {
    sy_walk walk;
    walk.free_only = true;
    if (cache->watch && cache->flags & SY_POISON)
        sy_watched_look_at_all(cache, &walk, sy_fault_raise);
}

static void verify_ending_process(void) {
    if (!atomic_load_explicit(&sy_options_now.exit_check, memory_order_relaxed)) return;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) verify_free(client->config.owner);
        sy_client_unpin(client);
    }
}

int sy_watched_verify_at_exit(void) {
    static sy_exit_check check = {.verify = verify_ending_process};
    return sy_watch_at_exit(&check);
}

int sy_cache_history(sy_cache *cache, int (*visit)(void *arg, const sy_operation *operation),
                     void *arg) {
    const sy_watch *watch = cache->watch;
    return watch && watch->history ? sy_history_each(watch->history, visit, arg) : 0;
}

/* ---- reports of tools ---- */

/* In whichever slot it lies; it may lie in none, or be no address of ours. */
static void explain_address(uintptr_t address) {
    const sy_slab *slab = sy_slab_at(address);
    const sy_cache *cache = slab ? slab->owner : NULL;
    if (!cache || !(cache->flags & SY_TOLD)) return;
    const sy_layout *layout = &cache->layout;
    size_t index = (address - (slab->first - layout->zone)) / layout->slot;
    if (index < layout->slots)
        sy_watch_explain(cache->watch, &sy_watched_records(cache, slab)[index], (void *)address,
                         (void *)(slab->first + index * layout->slot));
}

void sy_watched_explain(void) { sy_tool_on_report(explain_address); }

/* ==== src/chunk/address.c ==== */

/*
 * address.c: takes address space for chunks and large spans from the system, in large extents, and
 * gives it back.
 */
/*
 * address.h: the one place that takes address space for chunks and large spans from the OS: the
 * import and release functions of sy_memory_main's arena.
 *
 * An extent is a quarter of all there are together, from 8 MiB to 1 GiB (or what a single request
 * needs): small processes have little address space that they do not use, and in large ones
 * mappings stay few. What the arena releases goes back to the OS.
 *
 * Below: os.
 */
#ifndef SY_CHUNK_ADDRESS_H
#define SY_CHUNK_ADDRESS_H

int sy_address_import(sy_vmem *source, void *arg, size_t bytes, uintptr_t *start, size_t *got);

/* It holds no memory. */
void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes);

#endif

static const size_t EXTENT_BYTES_MIN = (size_t)8 << 20, chunk_address_EXTENT_BYTES_MAX = (size_t)1 << 30;
enum { EXTENT_PART = 4 }; /* of what there is: so much may lie idle, in 23 extents for 1 GiB */

static _Atomic size_t chunk_address_bytes_reserved;

/* Bytes to ask for when `least` are needed. */
static size_t extent_bytes(size_t least) {
    size_t bytes = atomic_load_explicit(&chunk_address_bytes_reserved, memory_order_relaxed) / EXTENT_PART;
    if (bytes < EXTENT_BYTES_MIN) bytes = EXTENT_BYTES_MIN;
    if (bytes > chunk_address_EXTENT_BYTES_MAX) bytes = chunk_address_EXTENT_BYTES_MAX;
    bytes = sy_round_down(bytes, SY_CHUNK_BYTES);
    return bytes > least ? bytes : least;
}

/* Where address space is short, less will do. */
int sy_address_import(sy_vmem *source, void *arg, size_t least, uintptr_t *start, size_t *got) {
    (void)source, (void)arg;
    size_t bytes = extent_bytes(least);
    void *extent;
    while (!(extent = sy_os_reserve(bytes, SY_CHUNK_BYTES, "slabyard")) && bytes > least) {
        bytes = sy_round_down(bytes / 2, SY_CHUNK_BYTES);
        if (bytes < least) bytes = least;
    }
    if (!extent) return -1;
    atomic_fetch_add_explicit(&chunk_address_bytes_reserved, bytes, memory_order_relaxed);
    *start = (uintptr_t)extent;
    *got = bytes;
    return 0;
}

void sy_address_release(sy_vmem *source, void *arg, uintptr_t start, size_t bytes) {
    (void)source, (void)arg;
    atomic_fetch_sub_explicit(&chunk_address_bytes_reserved, bytes, memory_order_relaxed);
    /* If that takes one mapping too many, the address space is lost, and no memory. */
    sy_os_release((void *)start, bytes);
}

/* ==== src/chunk/chunk.c ==== */

/*
 * chunk.c: takes runs of units from chunks for slabs and spans, takes them back, and gives the
 * memory of free units to the system when a trim asks.
 */

/*
 * headers.h: memory of descriptors: of chunks' headers, and of those of large spans. It is never
 * anything else, and lies apart from what it describes.
 *
 *     area, 1 MiB:  | which are unused | header | header | ...     64 places of 16 KiB
 *
 * Any address may be looked up at any time, by a thread that has read the owner's word already when
 * the chunk or span goes. What it finds then is a header or a descriptor still: of that chunk, of
 * another one that has it since, or zeros. So the address space of a chunk is free for whatever
 * comes, or goes back to the system, and no lookup reads what somebody has written there.
 *
 * Below: side.h, os. Used by chunk.c and large.c, by memory.c around fork, and by the search for
 * leaks.
 */
#ifndef SY_CHUNK_HEADERS_H
#define SY_CHUNK_HEADERS_H

struct sy_chunk;
struct sy_slab;

/* One that reads as zero; NULL with ENOMEM. */
struct sy_chunk *sy_header_take(void);

/* Zeroes it, and gives its memory back where pages are no larger. */
void sy_header_give(struct sy_chunk *header);

/* For a large span: whatever it held before; NULL with ENOMEM. */
struct sy_slab *sy_descriptor_take(void);
void sy_descriptor_give(struct sy_slab *descriptor);

/* Calls for each area of headers, with the lock held. */
void sy_header_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

void sy_headers_lock_for_fork(void);
void sy_headers_unlock_after_fork(void);

#endif
/*
 * large.h: spans that do not fit in a chunk: segments of the memory's arena, in whole 4 MiB, of
 * which they fill the first part and can grow into the rest, and into what is free behind.
 *
 * A few that were freed are kept for reuse until a trim. Below: memory.h, map.h, headers.h. Used by
 * chunk.c alone.
 */
#ifndef SY_CHUNK_LARGE_H
#define SY_CHUNK_LARGE_H

/* `bytes` is a multiple of a unit. The rest as sy_run_take and its kin. */
sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean);
sy_memory *sy_large_memory(const sy_slab *span);
void sy_large_give(sy_slab *span);
bool sy_large_resize(sy_slab *span, size_t bytes);
/* Releases what is kept: whether anything was, and the bytes of memory that went. */
bool sy_large_release_kept(sy_memory *memory, size_t *bytes);
size_t sy_large_trim(sy_memory *memory);
/* A bounded part of that, of spans kept since the last such trim if `aged`; false: nothing left. */
bool sy_large_trim_step(sy_memory *memory, bool aged, size_t *bytes);
/* A trim begins: it tries once what the one before could not give back. */
void sy_large_try_again(sy_memory *memory);
/* What is kept now is what the next trim by age may take. */
void sy_large_age(sy_memory *memory);
void sy_large_count(sy_memory *memory, size_t *used_bytes, size_t *kept_bytes);

#endif

static const uint64_t ALL_UNITS = ~UINT64_C(1); /* all but the first */

enum { STEP_UNITS = 4 }; /* given back in one step of a trim: some tens of microseconds */

static void list_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    unsigned longest = chunk->longest = sy_longest_run(chunk->free);
    chunk->previous = NULL;
    chunk->next = memory->with[longest];
    if (chunk->next) chunk->next->previous = chunk;
    memory->with[longest] = chunk;
    memory->lists |= UINT64_C(1) << longest;
}

static void unlist_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        memory->with[chunk->longest] = chunk->next;
    if (chunk->next) chunk->next->previous = chunk->previous;
    if (!memory->with[chunk->longest]) memory->lists &= ~(UINT64_C(1) << chunk->longest);
}

/* Unit 0 is never free; what is aged is dirty, and what is dirty is free; and the chunk is in the
 * list of its longest free run. */
static bool chunk_is_valid(const sy_chunk *chunk) {
    return !(chunk->free & 1) && !(chunk->dirty & ~chunk->free) && !(chunk->aged & ~chunk->dirty) &&
           chunk->longest == sy_longest_run(chunk->free) &&
           chunk->memory->lists >> chunk->longest & 1;
}

static void relist_chunk(sy_chunk *chunk) {
    if (sy_longest_run(chunk->free) != chunk->longest) {
        unlist_chunk(chunk);
        list_chunk(chunk);
    }
    SY_INVARIANT(chunk_is_valid(chunk));
}

/* At the end of all chunks, as trimmed by now. */
static void append_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    chunk->trim = memory->trims;
    chunk->all_next = NULL;
    chunk->all_previous = memory->last;
    if (memory->last)
        memory->last->all_next = chunk;
    else
        memory->first = chunk;
    memory->last = chunk;
}

static void remove_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    if (chunk->all_previous)
        chunk->all_previous->all_next = chunk->all_next;
    else
        memory->first = chunk->all_next;
    if (chunk->all_next)
        chunk->all_next->all_previous = chunk->all_previous;
    else
        memory->last = chunk->all_previous;
}

static uint64_t units_mask(unsigned unit, unsigned units) { return sy_low_bits(units) << unit; }

static void set_first_unit(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    for (unsigned i = unit; i < unit + units; i++)
        atomic_store_explicit(&chunk->first_unit[i], (uint8_t)first, memory_order_relaxed);
}

/* The lock is held; others read it. */
static void count_used(sy_memory *memory, size_t more) {
    size_t used = atomic_load_explicit(&memory->units_used, memory_order_relaxed);
    atomic_store_explicit(&memory->units_used, used + more, memory_order_relaxed);
}

/* Takes units out of the free ones; whether they read as zero. */
static bool take_units(sy_chunk *chunk, unsigned unit, unsigned units, unsigned first) {
    uint64_t mask = units_mask(unit, units);
    bool clean = !(chunk->dirty & mask);
    chunk->free &= ~mask;
    chunk->dirty &= ~mask;
    chunk->aged &= ~mask;
    count_used(chunk->memory, units);
    set_first_unit(chunk, unit, units, first);
    relist_chunk(chunk);
    return clean;
}

static void give_units(sy_chunk *chunk, unsigned unit, unsigned units) {
    uint64_t mask = units_mask(unit, units);
    count_used(chunk->memory, -(size_t)units);
    set_first_unit(chunk, unit, units, 0);
    chunk->free |= mask;
    chunk->dirty |= mask;
    relist_chunk(chunk);
}

/* A run from a chunk with room, the shortest free run first; NULL if there is none. The lock is
 * held. */
static sy_slab *chunk_chunk_take_run(sy_memory *memory, unsigned units, unsigned align, bool *clean) {
    uint64_t fit = memory->lists & ~sy_low_bits(units + align - 1);
    if (!fit) return NULL;
    sy_chunk *chunk = memory->with[sy_lowest_bit(fit)];
    unsigned unit = sy_find_run(chunk->dirty, units, align);
    if (unit == 64) unit = sy_find_run(chunk->free, units, align);
    *clean = take_units(chunk, unit, units, unit) && memory->systems;
    sy_slab *run = &chunk->slabs[unit - 1];
    memset(run, 0, sizeof *run);
    run->start = chunk->start + (uintptr_t)unit * SY_UNIT_BYTES;
    run->bytes = (size_t)units * SY_UNIT_BYTES;
    return run;
}

static void set_owner(const sy_chunk *chunk, bool owned) {
    void *owner = owned ? (void *)((uintptr_t)chunk + SY_OWNER_IS_CHUNK) : NULL;
    sy_map_set_owner(chunk->start, SY_CHUNK_BYTES, owner);
}

/* The chunk at an address, or NULL. */
static sy_chunk *chunk_at(uintptr_t address) {
    uintptr_t owner = (uintptr_t)sy_owner_at(address);
    return owner & SY_OWNER_IS_CHUNK ? (sy_chunk *)(owner - SY_OWNER_IS_CHUNK) : NULL;
}

/* Makes a chunk known in which no run is. */
static void open_chunk(sy_memory *memory, sy_chunk *chunk, uint64_t dirty) {
    chunk->memory = memory;
    chunk->free = ALL_UNITS;
    chunk->dirty = dirty;
    chunk->aged = 0;
    sy_lock_acquire(&memory->lock);
    list_chunk(chunk);
    append_chunk(chunk);
    memory->chunk_count++;
    set_owner(chunk, true);
    sy_lock_release(&memory->lock);
}

/* Committed, and in the map's reach; 0 with ENOMEM. The system's reads as zero. */
static uintptr_t take_chunk(const sy_memory *memory) {
    uintptr_t start;
    if (!sy_memory_take(memory, SY_CHUNK_BYTES, SY_CHUNK_BYTES, &start)) return 0;
    if (sy_memory_commit(memory, start, SY_CHUNK_BYTES) == 0 &&
        sy_map_cover(start, SY_CHUNK_BYTES) == 0)
        return start;
    sy_memory_give(memory, start, SY_CHUNK_BYTES);
    errno = ENOMEM;
    return 0;
}

static bool add_chunk(sy_memory *memory) {
    sy_chunk *chunk = sy_header_take();
    if (!chunk) return false;
    uintptr_t start = take_chunk(memory);
    if (!start) {
        int error = errno;
        sy_header_give(chunk);
        errno = error;
        return false;
    }
    chunk->start = start;
    open_chunk(memory, chunk, memory->systems ? 0 : ALL_UNITS);
    return true;
}

static sy_slab *take_units_of_any(sy_memory *memory, unsigned units, unsigned align, bool *clean) {
    for (;;) {
        sy_lock_acquire(&memory->lock);
        sy_slab *run = chunk_chunk_take_run(memory, units, align, clean);
        sy_lock_release(&memory->lock);
        if (run || !add_chunk(memory)) return run;
    }
}

static bool is_large(const sy_slab *run) { return sy_owner_at(run->start) == run; }

static sy_chunk *chunk_chunk_chunk_of(const sy_slab *run) {
    return (sy_chunk *)((uintptr_t)run & ~(uintptr_t)(sizeof(sy_chunk) - 1));
}

static unsigned unit_of(const sy_slab *run) {
    return run->start >> SY_UNIT_SHIFT & (SY_CHUNK_UNITS - 1);
}

static unsigned units_of(const sy_slab *run) { return (unsigned)(run->bytes >> SY_UNIT_SHIFT); }

static sy_memory *memory_of(const sy_slab *run) {
    return is_large(run) ? sy_large_memory(run) : chunk_chunk_chunk_of(run)->memory;
}

/* ---- large objects that have ended: the last of those that share an entry ---- */

enum { ENDED_SHIFT = 8 };

static _Atomic uintptr_t chunk_chunk_ended[1 << ENDED_SHIFT]; /* where they began */

static _Atomic uintptr_t *ended_entry(uintptr_t start) {
    uint64_t mixed = (start >> SY_UNIT_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);
    return &chunk_chunk_ended[mixed >> (64 - ENDED_SHIFT)];
}

bool sy_run_ended_at(uintptr_t address) {
    return atomic_load_explicit(ended_entry(address), memory_order_relaxed) == address;
}

/* The end of a run with many objects is not the free of one of them. */
static void note_end(const sy_slab *run) {
    if (run->slots > 1) return;
    atomic_store_explicit(ended_entry(run->start), run->start, memory_order_relaxed);
}

void sy_run_give(sy_slab *run) {
    note_end(run);
    if (is_large(run)) {
        sy_large_give(run);
        return;
    }
    sy_chunk *chunk = chunk_chunk_chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    give_units(chunk, unit_of(run), units_of(run));
    sy_lock_release(&chunk->memory->lock);
}

bool sy_run_resize(sy_slab *run, size_t bytes) {
    if (is_large(run)) return sy_large_resize(run, bytes);
    size_t wanted = sy_divide_up(bytes, SY_UNIT_BYTES);
    unsigned unit = unit_of(run), have = units_of(run);
    if (wanted == 0 || wanted > SY_CHUNK_UNITS - unit) return false;
    unsigned units = (unsigned)wanted;
    sy_chunk *chunk = chunk_chunk_chunk_of(run);
    bool done = true;
    sy_lock_acquire(&chunk->memory->lock);
    if (units < have) {
        give_units(chunk, unit + units, have - units);
    } else if (units > have) {
        uint64_t more = units_mask(unit + have, units - have);
        done = (chunk->free & more) == more;
        if (done) take_units(chunk, unit + have, units - have, unit);
    }
    if (done) run->bytes = (size_t)units * SY_UNIT_BYTES;
    sy_lock_release(&chunk->memory->lock);
    return done;
}

bool sy_run_move(const sy_slab *from, const sy_slab *to, size_t bytes) {
    if (!is_large(from) || !is_large(to)) return false;
    if (!sy_large_memory(from)->systems || !sy_large_memory(to)->systems) return false;
    return sy_os_move((void *)from->start, (void *)to->start, bytes) == 0;
}

int sy_run_populate(const sy_slab *run) {
    return memory_of(run)->systems ? sy_os_populate((void *)run->start, run->bytes) : 0;
}

int sy_run_discard(const sy_slab *run, void *start, size_t bytes) {
    return sy_memory_discard(memory_of(run), start, bytes);
}

void sy_chunk_punched(const sy_slab *run) {
    if (is_large(run) || !chunk_chunk_chunk_of(run)->memory->systems) return;
    sy_chunk *chunk = chunk_chunk_chunk_of(run);
    sy_lock_acquire(&chunk->memory->lock);
    bool first = !chunk->punched;
    chunk->punched = true;
    sy_lock_release(&chunk->memory->lock);
    if (first) sy_os_huge((void *)chunk->start, SY_CHUNK_BYTES, false);
}

/* ---- trim ---- */

/* Discards each run of units in `units`; gives those for which that succeeded. */
static uint64_t discard_units(const sy_chunk *chunk, uint64_t units) {
    uint64_t done = 0;
    while (units) {
        unsigned first = sy_lowest_bit(units);
        uint64_t rest = ~(units >> first);
        unsigned count = rest ? sy_lowest_bit(rest) : 64;
        uint64_t mask = units_mask(first, count);
        char *start = (char *)chunk->start + (size_t)first * SY_UNIT_BYTES;
        size_t bytes = (size_t)count * SY_UNIT_BYTES;
        if (sy_memory_discard(chunk->memory, start, bytes) == 0) done |= mask;
        units &= ~mask;
    }
    return done;
}

static void unlink_chunk(sy_chunk *chunk) {
    unlist_chunk(chunk);
    remove_chunk(chunk);
    chunk->memory->chunk_count--;
    set_owner(chunk, false);
}

/* Gives a chunk without runs back, memory and address space; the lock is held and let go. */
static size_t retire_chunk(sy_chunk *chunk) {
    sy_memory *memory = chunk->memory;
    uintptr_t start = chunk->start;
    size_t bytes = sy_count_bits(chunk->dirty) * (size_t)SY_UNIT_BYTES + sizeof *chunk;
    unlink_chunk(chunk);
    sy_memory_begin_trim(memory);
    sy_lock_release(&memory->lock);
    if (sy_os_discard((void *)start, SY_CHUNK_BYTES) == 0) {
        sy_header_give(chunk);
        sy_memory_give(memory, start, SY_CHUNK_BYTES);
    } else {
        open_chunk(memory, chunk, ALL_UNITS); /* whether its content is lost or not, nobody knows */
        bytes = 0;
    }
    sy_memory_end_trim(memory);
    return bytes;
}

/* What this thread has aside, in trims that are within one another by way of the program's
 * functions; in the child of its fork it still has. More than that a child gives to others. */
enum { ASIDE_MAX = 4 };
static SY_TLS struct {
    const sy_chunk *chunk[ASIDE_MAX];
    uint64_t units[ASIDE_MAX];
} own_aside;

static void note_aside(const sy_chunk *chunk, uint64_t units) {
    unsigned i = 0;
    while (i < ASIDE_MAX && own_aside.chunk[i]) i++;
    if (i == ASIDE_MAX) return;
    own_aside.units[i] = units;
    own_aside.chunk[i] = chunk;
}

static void forget_aside(const sy_chunk *chunk, uint64_t units) {
    for (unsigned i = 0; i < ASIDE_MAX; i++)
        if (own_aside.chunk[i] == chunk && own_aside.units[i] == units) own_aside.chunk[i] = NULL;
}

static uint64_t units_aside(const sy_chunk *chunk) {
    uint64_t units = 0;
    for (unsigned i = 0; i < ASIDE_MAX; i++)
        if (own_aside.chunk[i] == chunk) units |= own_aside.units[i];
    return units;
}

/* Gives back what wholly free chunks there are, so that their address space serves large spans.
 * Whether one went. */
static bool retire_unused(sy_memory *memory) {
    bool any = false;
    while (memory->systems) {
        sy_lock_acquire(&memory->lock);
        sy_chunk *chunk = memory->with[SY_RUN_UNITS_MAX];
        if (!chunk) {
            sy_lock_release(&memory->lock);
            break;
        }
        if (retire_chunk(chunk) == 0) break;
        any = true;
    }
    return any;
}

/* Gives units that are free and dirty back. They are taken out of the free ones meanwhile, so that
 * no lock is held across the system calls. The lock is held and let go. */
static size_t trim_units(sy_chunk *chunk, uint64_t claimed) {
    sy_memory *memory = chunk->memory;
    chunk->free &= ~claimed;
    chunk->dirty &= ~claimed;
    chunk->aged &= ~claimed;
    relist_chunk(chunk);
    sy_memory_begin_trim(memory);
    note_aside(chunk, claimed);
    sy_lock_release(&memory->lock);

    uint64_t done = discard_units(chunk, claimed);

    sy_lock_acquire(&memory->lock);
    forget_aside(chunk, claimed);
    chunk->free |= claimed;
    chunk->dirty |= claimed & ~done;
    relist_chunk(chunk);
    sy_lock_release(&memory->lock);
    sy_memory_end_trim(memory);
    return sy_count_bits(done) * (size_t)SY_UNIT_BYTES;
}

/* The lowest few of the units in a word. */
static uint64_t lowest_units(uint64_t units, unsigned count) {
    uint64_t rest = units;
    while (rest && count--) rest &= rest - 1;
    return units & ~rest;
}

static uint64_t begin_trim(sy_memory *memory, unsigned whole) {
    sy_lock_acquire(&memory->lock);
    uint64_t trim = ++memory->trims;
    memory->whole_trims += whole;
    sy_lock_release(&memory->lock);
    return trim;
}

/* In the child of a fork there may be none already. */
static void end_whole_trim(sy_memory *memory) {
    sy_lock_acquire(&memory->lock);
    if (memory->whole_trims) memory->whole_trims--;
    sy_lock_release(&memory->lock);
}

uint64_t sy_chunk_begin_trim(sy_memory *memory) {
    sy_large_try_again(memory);
    return begin_trim(memory, 0);
}

/* A part of one chunk, which is done with when nothing is left of it. A program's memory keeps its
 * chunks in use. */
static bool trim_chunk_step(sy_memory *memory, uint64_t trim, bool aged, unsigned most,
                            size_t *bytes) {
    sy_lock_acquire(&memory->lock);
    sy_chunk *chunk = memory->first;
    if (!chunk || chunk->trim >= trim || (aged && memory->whole_trims)) {
        sy_lock_release(&memory->lock);
        if (aged) sy_large_age(memory);
        return false;
    }
    if (chunk->tried_by != trim) chunk->tried = 0; /* by one that went no further */
    chunk->tried_by = trim;
    uint64_t due = (aged ? chunk->dirty & chunk->aged : chunk->dirty) & ~chunk->tried;
    uint64_t claimed = sy_memory_discards(memory) ? lowest_units(due, most) : 0;
    bool rest = chunk->dirty & ~claimed;
    chunk->tried |= claimed;
    if (claimed == due || !claimed) {
        remove_chunk(chunk);
        append_chunk(chunk);
        chunk->aged = chunk->dirty;
        chunk->tried = 0;
    }
    if (chunk->free == ALL_UNITS && !rest && memory->systems)
        *bytes += retire_chunk(chunk);
    else if (claimed)
        *bytes += trim_units(chunk, claimed);
    else
        sy_lock_release(&memory->lock);
    return true;
}

bool sy_chunk_trim_step(sy_memory *memory, uint64_t trim, bool aged, size_t *bytes) {
    return sy_large_trim_step(memory, aged, bytes) ||
           trim_chunk_step(memory, trim, aged, STEP_UNITS, bytes);
}

/* Each chunk that is there now once, unless another trim takes it meanwhile. Of a program's memory
 * few units are aside at a time, since allocations do not wait for it. */
size_t sy_chunk_trim(sy_memory *memory) {
    size_t bytes = sy_large_trim(memory);
    uint64_t trim = begin_trim(memory, 1);
    unsigned most = memory->systems ? SY_CHUNK_UNITS : STEP_UNITS;
    while (trim_chunk_step(memory, trim, false, most, &bytes)) {}
    end_whole_trim(memory);
    return bytes;
}

void sy_chunk_release_all(sy_memory *memory) {
    while (memory->first) {
        sy_chunk *chunk = memory->first;
        uintptr_t start = chunk->start;
        sy_lock_acquire(&memory->lock);
        unlink_chunk(chunk);
        sy_lock_release(&memory->lock);
        sy_header_give(chunk);
        sy_memory_give(memory, start, SY_CHUNK_BYTES);
    }
}

/* ---- in the child of a fork ---- */

/* A unit that is neither free nor in a run was taken aside. The lock is held. */
static void free_again(sy_chunk *chunk) {
    uint64_t aside = ALL_UNITS & ~chunk->free & ~units_aside(chunk);
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++)
        if (atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed))
            aside &= ~(UINT64_C(1) << unit);
    chunk->free |= aside;
    chunk->dirty |= aside;
}

static void empty_lists(sy_memory *memory) {
    memset(memory->with, 0, sizeof memory->with);
    memory->lists = 0;
    memory->first = memory->last = NULL;
    memory->chunk_count = 0;
    atomic_store(&memory->units_used, 0);
    memory->torn = false;
}

static unsigned first_of(const sy_chunk *chunk, unsigned unit) {
    return atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
}

/* A run that was being taken, given or resized: it is as long as its units say, and stays taken if
 * its first one does. */
static void mend_runs(sy_chunk *chunk) {
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++) {
        unsigned first = first_of(chunk, unit);
        bool goes_on = first == unit || (first < unit && first_of(chunk, unit - 1) == first);
        if (first && !goes_on) set_first_unit(chunk, unit, 1, 0);
    }
    for (unsigned unit = 1, end; unit < SY_CHUNK_UNITS; unit = end) {
        end = unit + 1;
        if (!first_of(chunk, unit)) continue;
        while (end < SY_CHUNK_UNITS && first_of(chunk, end) == unit) end++;
        sy_slab *run = &chunk->slabs[unit - 1];
        size_t bytes = (size_t)(end - unit) * SY_UNIT_BYTES;
        if (run->bytes == bytes) continue;
        if (run->bytes == 0)
            *run = (sy_slab){.start = (uintptr_t)chunk + (uintptr_t)unit * SY_UNIT_BYTES};
        run->bytes = bytes;
    }
}

/* A segment that is a chunk comes into the lists, which were half changed, anew. */
static int list_again(void *arg, unsigned what, uintptr_t start, size_t size) {
    sy_memory *memory = arg;
    sy_chunk *chunk = chunk_at(start);
    (void)what, (void)size;
    if (!chunk || chunk->memory != memory) return 0;
    sy_lock_acquire(&memory->lock);
    if (memory->torn) empty_lists(memory);
    mend_runs(chunk);
    chunk->free = chunk->dirty = 0;
    free_again(chunk);
    chunk->aged &= chunk->free;
    count_used(memory, SY_RUN_UNITS_MAX - sy_count_bits(chunk->free));
    list_chunk(chunk);
    append_chunk(chunk);
    memory->chunk_count++;
    sy_lock_release(&memory->lock);
    return 0;
}

void sy_chunk_recover(sy_memory *memory) {
    if (memory->torn) (void)sy_vmem_walk(memory->arena, SY_VMEM_ALLOCATED, list_again, memory);
    sy_lock_acquire(&memory->lock);
    memory->whole_trims = 0;
    for (sy_chunk *chunk = memory->first; chunk; chunk = chunk->all_next) {
        free_again(chunk);
        relist_chunk(chunk);
    }
    sy_lock_release(&memory->lock);
}

/* ---- taking, where there may be no room ---- */

/* With no room left: what is kept for reuse, chunks that nobody uses, or what comes back from a
 * trim. Whether there is any. */
static bool find_room(sy_memory *memory) {
    size_t bytes;
    return sy_large_release_kept(memory, &bytes) || retire_unused(memory) ||
           sy_memory_wait_for_trim(memory);
}

sy_slab *sy_run_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    const size_t most = (size_t)1 << (SY_ADDRESS_BITS - 1);
    if (bytes > most || align > most) {
        errno = ENOMEM;
        return NULL;
    }
    size_t units = sy_divide_up(bytes, SY_UNIT_BYTES);
    size_t align_units = align > SY_UNIT_BYTES ? align / SY_UNIT_BYTES : 1;
    bool large = units + align_units - 1 > SY_RUN_UNITS_MAX;
    if (room > most) room = most;
    for (;;) {
        sy_slab *run =
            large ? sy_large_take(memory, units * SY_UNIT_BYTES, align, room, clean)
                  : take_units_of_any(memory, (unsigned)units, (unsigned)align_units, clean);
        int error = errno;
        if (run || !find_room(memory)) {
            errno = error;
            return run;
        }
    }
}

/* ---- looking ---- */

typedef struct sy_run_visitor {
    void (*visit)(sy_slab *run, void *arg);
    void *arg;
} sy_run_visitor;

/* A segment is a chunk, a large span, or neither: kept, or another's of the same arena. */
static int visit_segment(void *arg, unsigned what, uintptr_t start, size_t size) {
    (void)size, (void)what;
    const sy_run_visitor *visitor = arg;
    void *owner = sy_owner_at(start);
    sy_chunk *chunk = chunk_at(start);
    if (owner && !chunk) visitor->visit(owner, visitor->arg);
    for (unsigned unit = 1; chunk && unit < SY_CHUNK_UNITS; unit++)
        if (atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed) == unit)
            visitor->visit(&chunk->slabs[unit - 1], visitor->arg);
    return 0;
}

void sy_run_each(sy_memory *memory, void (*visit)(sy_slab *run, void *arg), void *arg) {
    sy_run_visitor visitor = {visit, arg};
    (void)sy_vmem_walk(memory->arena, SY_VMEM_ALLOCATED, visit_segment, &visitor);
}

void sy_chunk_count_of(const sy_memory *memory_, sy_chunk_stats *stats) {
    sy_memory *memory = (sy_memory *)(uintptr_t)memory_; /* whose locks are taken */
    size_t used, kept;
    sy_large_count(memory, &used, &kept);
    stats->large_bytes += used;
    stats->large_kept += kept;
    sy_lock_acquire(&memory->lock);
    stats->chunks += memory->chunk_count;
    for (const sy_chunk *chunk = memory->first; chunk; chunk = chunk->all_next) {
        stats->units_free += sy_count_bits(chunk->free);
        stats->units_clean += sy_count_bits(chunk->free & ~chunk->dirty);
    }
    sy_lock_release(&memory->lock);
}

static void chunk_chunk_count_one(sy_memory *memory, void *stats) { sy_chunk_count_of(memory, stats); }

sy_chunk_stats sy_chunk_count(void) {
    sy_chunk_stats stats = {0};
    sy_memory_each(chunk_chunk_count_one, &stats);
    return stats;
}

static size_t verify_chunk(const sy_chunk *chunk, const sy_memory *memory) {
    size_t wrong = !chunk_is_valid(chunk);
    wrong += sy_owner_at(chunk->start) != (const char *)chunk + SY_OWNER_IS_CHUNK;
    wrong += chunk->memory != memory;
    for (unsigned unit = 1; unit < SY_CHUNK_UNITS; unit++) {
        unsigned first = atomic_load_explicit(&chunk->first_unit[unit], memory_order_relaxed);
        if (!first) continue; /* free, or claimed by a trim under way */
        wrong += chunk->free >> unit & 1;
        wrong += unit < first || unit >= first + units_of(&chunk->slabs[first - 1]);
    }
    return wrong;
}

size_t sy_chunk_verify(sy_memory *memory) {
    size_t wrong = 0, listed = 0, seen = 0;
    sy_lock_acquire(&memory->lock);
    for (unsigned list = 0; list < SY_CHUNK_UNITS; list++) {
        wrong += (memory->with[list] != NULL) != (memory->lists >> list & 1);
        for (const sy_chunk *chunk = memory->with[list]; chunk; chunk = chunk->next, listed++)
            wrong += chunk->longest != list;
    }
    const sy_chunk *previous = NULL;
    for (const sy_chunk *chunk = memory->first; chunk; previous = chunk, chunk = chunk->all_next) {
        wrong += verify_chunk(chunk, memory);
        wrong += chunk->all_previous != previous || (previous && chunk->trim < previous->trim);
        seen++;
    }
    wrong += seen != memory->chunk_count || listed != seen || memory->last != previous;
    sy_lock_release(&memory->lock);
    return wrong;
}

/* ==== src/chunk/headers.c ==== */

/*
 * headers.c: the memory of chunk headers and of large spans' descriptors, which stays mapped for
 * the life of the process, so that a lookup of any address can read it.
 */

enum { chunk_headers_PLACES = 64, chunk_headers_HEADER_BYTES = sizeof(sy_chunk), AREA_BYTES = chunk_headers_PLACES * chunk_headers_HEADER_BYTES };

_Static_assert(chunk_headers_HEADER_BYTES == 16 << 10, "whole pages of 4 and 16 KiB, and areas of 1 MiB");

/* In the first place of each area. */
typedef struct chunk_headers_area {
    struct chunk_headers_area *previous;
    uint64_t unused; /* a bit a place; that of the first is never set */
} chunk_headers_area;

static sy_lock chunk_headers_lock = SY_LOCK_INIT(SY_RANK_SIDE);
static chunk_headers_area *chunk_headers_last_area;             /* all of them; guarded by the lock, as what is unused */
static sy_slab *unused_descriptors; /* linked by next; guarded by the lock */

static sy_chunk *take_unused(void) {
    for (chunk_headers_area *each = chunk_headers_last_area; each; each = each->previous) {
        if (!each->unused) continue;
        unsigned place = sy_lowest_bit(each->unused);
        each->unused &= each->unused - 1;
        return (sy_chunk *)((char *)each + (size_t)place * chunk_headers_HEADER_BYTES);
    }
    return NULL;
}

static void chunk_headers_add_area(chunk_headers_area *added) {
    added->unused = ~UINT64_C(1);
    sy_lock_acquire(&chunk_headers_lock);
    added->previous = chunk_headers_last_area;
    chunk_headers_last_area = added;
    sy_lock_release(&chunk_headers_lock);
}

sy_chunk *sy_header_take(void) {
    for (;;) {
        sy_lock_acquire(&chunk_headers_lock);
        sy_chunk *header = take_unused();
        sy_lock_release(&chunk_headers_lock);
        if (header) return header;
        void *added = sy_pages_take(AREA_BYTES, AREA_BYTES, "slabyard headers");
        if (!added) return NULL;
        chunk_headers_add_area(added);
    }
}

void sy_header_give(sy_chunk *header) {
    uintptr_t address = (uintptr_t)header, start = sy_round_down(address, AREA_BYTES);
    if (sy_os_page_size() > chunk_headers_HEADER_BYTES || sy_os_discard(header, chunk_headers_HEADER_BYTES) != 0)
        memset(header, 0, chunk_headers_HEADER_BYTES);
    sy_lock_acquire(&chunk_headers_lock);
    ((chunk_headers_area *)start)->unused |= UINT64_C(1) << (address - start) / chunk_headers_HEADER_BYTES;
    sy_lock_release(&chunk_headers_lock);
}

sy_slab *sy_descriptor_take(void) {
    sy_lock_acquire(&chunk_headers_lock);
    sy_slab *descriptor = unused_descriptors;
    if (descriptor) unused_descriptors = descriptor->next;
    sy_lock_release(&chunk_headers_lock);
    return descriptor ? descriptor : sy_side_take(sizeof *descriptor);
}

void sy_descriptor_give(sy_slab *descriptor) {
    sy_lock_acquire(&chunk_headers_lock);
    descriptor->next = unused_descriptors;
    unused_descriptors = descriptor;
    sy_lock_release(&chunk_headers_lock);
}

void sy_header_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&chunk_headers_lock);
    for (const chunk_headers_area *each = chunk_headers_last_area; each; each = each->previous) visit(each, AREA_BYTES, arg);
    sy_lock_release(&chunk_headers_lock);
}

void sy_headers_lock_for_fork(void) { sy_lock_hold(&chunk_headers_lock); }

void sy_headers_unlock_after_fork(void) { sy_lock_drop(&chunk_headers_lock); }

/* ==== src/chunk/large.c ==== */

/*
 * large.c: spans too long for a chunk. A freed one is kept until a trim, because reusing it costs
 * no system call.
 */

enum {
    KEPT_MAX = 8,
    KEPT_BYTES_MAX = 64 << 20, /* of all that are kept */
    KEPT_SPAN_MAX = 32 << 20,  /* of one that is kept */

    /* Words of the bitmap, of which a span needs the first alone. */
    RESERVED = SY_SLAB_BITMAP_WORDS - 1, /* bytes of the segment */
    MEMORY = SY_SLAB_BITMAP_WORDS - 2,
    AGE = SY_SLAB_BITMAP_WORDS - 3, /* of one that is kept */

    chunk_large_STEP_BYTES = 256 << 10, /* given back in one step of a trim */
};

/* Kept since the last trim by age; since before it; and the trim at work could not give it back. */
typedef enum sy_age { NEW, AGED, STUCK } sy_age;

static size_t reserved_bytes(const sy_slab *span) { return span->bits[RESERVED]; }

sy_memory *sy_large_memory(const sy_slab *span) { return (sy_memory *)span->bits[MEMORY]; }

static void describe_span(sy_slab *span, sy_memory *memory, uintptr_t start, size_t bytes,
                          size_t reserved) {
    *span = (sy_slab){.start = start, .bytes = bytes};
    span->bits[RESERVED] = reserved;
    span->bits[MEMORY] = (uintptr_t)memory;
}

static void unlink_kept(sy_memory *memory, sy_slab *span) {
    sy_slab **link = &memory->kept;
    while (*link != span) link = &(*link)->next;
    *link = span->next;
    memory->kept_count--;
    memory->kept_bytes -= span->bytes;
}

static void link_kept(sy_memory *memory, sy_slab *span) {
    span->next = memory->kept;
    memory->kept = span;
    memory->kept_count++;
    memory->kept_bytes += span->bytes;
}

/* The smallest kept span that will do without wasting half of it, or of what has room to grow: its
 * memory is there already, and the span will need it. NULL: none. */
static sy_slab *take_kept(sy_memory *memory, size_t bytes, size_t align, size_t room) {
    size_t most = (room > bytes ? room : bytes) * 2;
    sy_slab *best = NULL;
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next) {
        if (span->bytes < bytes || span->bytes > most || span->start & (align - 1)) continue;
        if (!best || span->bytes < best->bytes) best = span;
    }
    if (best) {
        unlink_kept(memory, best);
        memory->used_bytes += best->bytes;
    }
    sy_lock_release(&memory->large_lock);
    return best;
}

/* A segment for `bytes`, with room to grow if there is so much; *reserved is what it has. */
static bool chunk_large_take_segment(sy_memory *memory, size_t bytes, size_t align, size_t room,
                         uintptr_t *start, size_t *reserved) {
    size_t least = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (align < SY_CHUNK_BYTES) align = SY_CHUNK_BYTES;
    *reserved = sy_round_up(room, SY_CHUNK_BYTES);
    if (*reserved > least && sy_memory_take(memory, *reserved, align, start)) return true;
    *reserved = least;
    return sy_memory_take(memory, least, align, start);
}

/* To the end of its last 4 MiB, so that neighbours are one mapping. */
static int commit_span(const sy_memory *memory, uintptr_t start, size_t bytes) {
    return sy_memory_commit(memory, start, sy_round_up(bytes, SY_CHUNK_BYTES));
}

sy_slab *sy_large_take(sy_memory *memory, size_t bytes, size_t align, size_t room, bool *clean) {
    uintptr_t start;
    size_t reserved;
    sy_slab *span = take_kept(memory, bytes, align, room);
    *clean = !span && memory->systems;
    if (span) {
        describe_span(span, memory, span->start, span->bytes, reserved_bytes(span));
        sy_map_set_owner(span->start, reserved_bytes(span), span);
        return span;
    }
    if (!chunk_large_take_segment(memory, bytes, align, room, &start, &reserved)) return NULL;
    if (commit_span(memory, start, bytes) == 0 && sy_map_cover(start, reserved) == 0)
        span = sy_descriptor_take();
    if (!span) {
        sy_memory_give(memory, start, reserved);
        errno = ENOMEM;
        return NULL;
    }
    describe_span(span, memory, start, bytes, reserved);
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes += bytes;
    sy_lock_release(&memory->large_lock);
    sy_map_set_owner(start, reserved, span);
    return span;
}

typedef enum sy_release { STAYS, ADDRESS_WENT, ALL_WENT } sy_release;

/* Its memory goes, if it can, and its address space to the arena. The system's stays if its memory
 * cannot go, since it would not read as zero: it is kept then, beyond any measure. */
static sy_release release_span(sy_memory *memory, sy_slab *span) {
    bool gone = sy_memory_discard(memory, (void *)span->start, span->bytes) == 0;
    if (!gone && memory->systems) {
        sy_lock_acquire(&memory->large_lock);
        span->bits[AGE] = STUCK;
        link_kept(memory, span);
        sy_lock_release(&memory->large_lock);
        return STAYS;
    }
    sy_memory_give(memory, span->start, reserved_bytes(span));
    sy_descriptor_give(span);
    return gone ? ALL_WENT : ADDRESS_WENT;
}

/* Keeps the span, or if there are too many the largest goes; gives what is to be released. */
static sy_slab *chunk_large_keep(sy_memory *memory, sy_slab *span) {
    if (span->bytes > KEPT_SPAN_MAX) return span;
    link_kept(memory, span);
    if (memory->kept_count <= KEPT_MAX && memory->kept_bytes <= KEPT_BYTES_MAX) return NULL;
    sy_slab *largest = memory->kept;
    for (sy_slab *other = largest->next; other; other = other->next)
        if (other->bytes > largest->bytes) largest = other;
    unlink_kept(memory, largest);
    return largest;
}

void sy_large_give(sy_slab *span) {
    sy_memory *memory = sy_large_memory(span);
    sy_map_set_owner(span->start, reserved_bytes(span), NULL);
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes -= span->bytes;
    sy_slab *gone = chunk_large_keep(memory, span);
    sy_lock_release(&memory->large_lock);
    if (gone) release_span(memory, gone);
}

/* Makes the segment so large; false if what lies behind is not free. */
static bool extend(sy_memory *memory, sy_slab *span, size_t bytes) {
    size_t reserved = reserved_bytes(span), more = sy_round_up(bytes, SY_CHUNK_BYTES);
    if (more <= reserved) return true;
    if (!sy_memory_extend(memory, span->start, reserved, more)) return false;
    if (sy_map_cover(span->start + reserved, more - reserved) != 0) {
        sy_memory_shorten(memory, span->start, more, reserved);
        return false;
    }
    span->bits[RESERVED] = more;
    sy_map_set_owner(span->start + reserved, more - reserved, span);
    return true;
}

bool sy_large_resize(sy_slab *span, size_t bytes) {
    sy_memory *memory = sy_large_memory(span);
    if (bytes > (size_t)1 << (SY_ADDRESS_BITS - 1)) return false;
    bytes = sy_round_up(bytes, SY_UNIT_BYTES);
    if (bytes <= SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES) return false; /* it belongs in a chunk */
    if (!extend(memory, span, bytes)) return false;
    char *start = (char *)span->start;
    if (bytes > span->bytes && commit_span(memory, span->start, bytes) != 0) return false;
    if (bytes < span->bytes && sy_memory_discard(memory, start + bytes, span->bytes - bytes) != 0)
        return true; /* as long as it was: what is given back one day is what it has used */
    sy_lock_acquire(&memory->large_lock);
    memory->used_bytes += bytes - span->bytes;
    sy_lock_release(&memory->large_lock);
    span->bytes = bytes;
    return true;
}

bool sy_large_release_kept(sy_memory *memory, size_t *bytes) {
    bool any = false;
    *bytes = 0;
    sy_lock_acquire(&memory->large_lock);
    sy_slab *spans = memory->kept;
    memory->kept = NULL;
    memory->kept_count = memory->kept_bytes = 0;
    sy_lock_release(&memory->large_lock);
    while (spans) {
        sy_slab *span = spans;
        size_t held = span->bytes;
        spans = span->next;
        sy_release result = release_span(memory, span);
        any |= result != STAYS;
        if (result == ALL_WENT) *bytes += held;
    }
    return any;
}

/* One of the kept spans that may go, or NULL; the lock is held. */
static sy_slab *find_due(const sy_memory *memory, bool aged) {
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == AGED || (!aged && span->bits[AGE] == NEW)) return span;
    return NULL;
}

/* Gives the end of a long span back; false if it stays. */
static bool shorten(sy_memory *memory, sy_slab *span) {
    char *rest = (char *)span->start + span->bytes - chunk_large_STEP_BYTES;
    bool gone = sy_memory_discard(memory, rest, chunk_large_STEP_BYTES) == 0;
    sy_lock_acquire(&memory->large_lock);
    if (gone) span->bytes -= chunk_large_STEP_BYTES;
    link_kept(memory, span);
    span->bits[AGE] = gone ? AGED : STUCK;
    sy_lock_release(&memory->large_lock);
    return gone;
}

static void release_part(sy_memory *memory, sy_slab *span, size_t *bytes) {
    size_t held = span->bytes;
    if (memory->systems && held > chunk_large_STEP_BYTES * 2) {
        if (shorten(memory, span)) *bytes += chunk_large_STEP_BYTES;
        return;
    }
    if (release_span(memory, span) == ALL_WENT) *bytes += held;
}

bool sy_large_trim_step(sy_memory *memory, bool aged, size_t *bytes) {
    sy_lock_acquire(&memory->large_lock);
    sy_slab *span = find_due(memory, aged);
    if (span) {
        unlink_kept(memory, span);
        sy_memory_begin_trim(memory);
    }
    sy_lock_release(&memory->large_lock);
    if (!span) return false;
    release_part(memory, span, bytes);
    sy_memory_end_trim(memory);
    return true;
}

void sy_large_try_again(sy_memory *memory) {
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == STUCK) span->bits[AGE] = AGED;
    sy_lock_release(&memory->large_lock);
}

void sy_large_age(sy_memory *memory) {
    sy_lock_acquire(&memory->large_lock);
    for (sy_slab *span = memory->kept; span; span = span->next)
        if (span->bits[AGE] == NEW) span->bits[AGE] = AGED;
    sy_lock_release(&memory->large_lock);
}

size_t sy_large_trim(sy_memory *memory) {
    size_t bytes;
    sy_large_release_kept(memory, &bytes);
    return bytes;
}

void sy_large_count(sy_memory *memory, size_t *used, size_t *kept_for_reuse) {
    sy_lock_acquire(&memory->large_lock);
    *used = memory->used_bytes;
    *kept_for_reuse = memory->kept_bytes;
    sy_lock_release(&memory->large_lock);
}

/* ==== src/chunk/map.c ==== */

/*
 * map.c: the two tables from an address to its chunk or span and to its size class. A free looks
 * its object up here.
 */

sy_map sy_the_map;

static size_t leaf_bytes(void) { return sy_round_up(sizeof(sy_leaf), sy_os_page_size()); }

/* Another thread may make the same one meanwhile: one of the two stays. */
static int add_leaf(size_t index) {
    uintptr_t none = 0;
    if (atomic_load_explicit(&sy_the_map.leaf_at[index], memory_order_acquire)) return 0;
    void *leaf = sy_pages_take(leaf_bytes(), sy_os_page_size(), "slabyard map");
    if (!leaf) return -1;
    uintptr_t at = (uintptr_t)leaf - (uintptr_t)&sy_the_map.nothing;
    if (!atomic_compare_exchange_strong(&sy_the_map.leaf_at[index], &none, at))
        sy_pages_give(leaf, leaf_bytes());
    return 0;
}

int sy_map_cover(uintptr_t start, size_t bytes) {
    size_t last = (start + bytes - 1) >> SY_LEAF_SHIFT;
    for (size_t index = start >> SY_LEAF_SHIFT; index <= last; index++)
        if (add_leaf(index) != 0) return -1;
    return 0;
}

void sy_map_set_class(uintptr_t start, size_t units, unsigned class_number) {
    uint32_t first = (uint32_t)(start >> SY_UNIT_SHIFT);
    for (uint32_t unit = first; unit != first + (uint32_t)units; unit++)
        atomic_store_explicit(&sy_leaf_of(unit)->classes[unit % SY_LEAF_UNITS],
                              (uint8_t)class_number, memory_order_relaxed);
}

void sy_map_set_owner(uintptr_t start, size_t bytes, void *owner) {
    for (uintptr_t at = start; at < start + bytes; at += SY_CHUNK_BYTES)
        atomic_store_explicit(sy_owner_of(at), owner, memory_order_release);
}

/* ==== src/chunk/memory.c ==== */

/*
 * memory.c: engine instances: whence their address space comes, and their life.
 */

static sy_vmem main_arena;
sy_memory sy_memory_main = {
    .arena = &main_arena,
    .systems = true,
    .name = "system",
    .lock = SY_LOCK_INIT(SY_RANK_CHUNK),
    .large_lock = SY_LOCK_INIT(SY_RANK_LARGE),
};

static sy_lock chunk_memory_list_lock = SY_LOCK_INIT(SY_RANK_MEMORIES);
static sy_memory *memories = &sy_memory_main; /* guarded by it */

static int start_main(void) {
    return sy_vmem_open(&main_arena, &(sy_vmem_config){.name = "slabyard",
                                                       .quantum = SY_CHUNK_BYTES,
                                                       .import = sy_address_import,
                                                       .release = sy_address_release});
}

/* ---- address space ---- */

/* Whether the maps have a place for all of it, and nothing of ours is there. A program's arena may
 * give anything. */
static bool can_be_ours(uintptr_t start, size_t bytes) {
    const uintptr_t most = (uintptr_t)1 << SY_ADDRESS_BITS;
    if (!start || start > most || bytes > most - start) return false;
    for (uintptr_t at = start; at < start + bytes; at += SY_CHUNK_BYTES)
        if (sy_owner_at(at)) return false;
    return true;
}

bool sy_memory_take(const sy_memory *memory, size_t bytes, size_t align, uintptr_t *start) {
    const sy_vmem_constraints aligned = {.align = align};
    if (sy_vmem_xalloc(memory->arena, bytes, &aligned, SY_VMEM_INSTANT, start) != 0) return false;
    if (memory->systems || can_be_ours(*start, bytes)) return true;
    sy_vmem_xfree(memory->arena, *start, bytes);
    errno = ENOMEM;
    return false;
}

void sy_memory_give(const sy_memory *memory, uintptr_t start, size_t bytes) {
    sy_vmem_xfree(memory->arena, start, bytes);
}

bool sy_memory_extend(const sy_memory *memory, uintptr_t start, size_t bytes, size_t more) {
    int error = errno;
    bool extended = sy_vmem_resize(memory->arena, start, bytes, more) == 0;
    errno = error;
    if (!extended || memory->systems || can_be_ours(start + bytes, more - bytes)) return extended;
    sy_memory_shorten(memory, start, more, bytes);
    return false;
}

void sy_memory_shorten(const sy_memory *memory, uintptr_t start, size_t bytes, size_t less) {
    sy_vmem_resize(memory->arena, start, bytes, less);
}

int sy_memory_commit(const sy_memory *memory, uintptr_t start, size_t bytes) {
    return memory->systems ? sy_os_commit((void *)start, bytes) : 0;
}

bool sy_memory_discards(const sy_memory *memory) { return memory->systems || memory->discard; }

int sy_memory_discard(const sy_memory *memory, void *start, size_t bytes) {
    if (memory->systems) return sy_os_discard(start, bytes);
    if (!memory->discard) return -1;
    SY_CALLBACK(call, .function = "discard function of a memory");
    int result = memory->discard(memory->arg, start, bytes);
    call.returned = true;
    return result == 0 ? 0 : -1;
}

/* ---- trims under way ---- */

void sy_memory_begin_trim(sy_memory *memory) {
    if (!memory->systems) return;
    atomic_fetch_add_explicit(&memory->trimming, 1, memory_order_relaxed);
}

void sy_memory_end_trim(sy_memory *memory) {
    if (!memory->systems) return;
    /* In the child of a fork it may be 0 already. */
    uint32_t trimming = atomic_load_explicit(&memory->trimming, memory_order_relaxed);
    while (trimming &&
           !atomic_compare_exchange_weak_explicit(&memory->trimming, &trimming, trimming - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    sy_os_wake(&memory->trimming, 1 << 20);
}

bool sy_memory_wait_for_trim(sy_memory *memory) {
    if (sy_lock_is_forking()) return false; /* a trim may be waiting for this thread's locks */
    uint32_t trimming = atomic_load_explicit(&memory->trimming, memory_order_relaxed);
    if (trimming) sy_os_wait(&memory->trimming, trimming);
    return trimming;
}

/* ---- life ---- */

/* The part of a region that is whole chunks; false if there is none, or no addresses there. */
static bool whole_chunks(const sy_memory_config *config, uintptr_t *start, size_t *bytes) {
    uintptr_t from = (uintptr_t)config->start, end = from + config->bytes;
    if (!from || end < from) return false;
    *start = sy_round_up(from, SY_CHUNK_BYTES);
    end = sy_round_down(end, SY_CHUNK_BYTES);
    *bytes = end > *start ? end - *start : 0;
    return *bytes > 0 && can_be_ours(*start, *bytes);
}

/* Finds the region, if it is to be one. */
static bool valid_memory_config(const sy_memory_config *config, uintptr_t *start, size_t *bytes) {
    if (!config || (config->arena && (config->start || config->bytes))) return false;
    if (config->arena && config->arena->quantum > SY_CHUNK_BYTES) return false;
    *start = *bytes = 0;
    if (!config->arena && !whole_chunks(config, start, bytes)) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i]) return false;
    return true;
}

static void set_up_memory(sy_memory *memory, const sy_memory_config *config) {
    const char *name = config->name ? config->name : "memory";
    for (size_t i = 0; i < SY_VMEM_NAME_MAX && name[i]; i++) memory->name[i] = name[i];
    memory->discard = config->discard;
    memory->arg = config->arg;
    sy_lock_init(&memory->lock, SY_RANK_CHUNK);
    sy_lock_init(&memory->large_lock, SY_RANK_LARGE);
}

sy_memory *sy_memory_create(const sy_memory_config *config) {
    uintptr_t start;
    size_t bytes;
    if (!valid_memory_config(config, &start, &bytes)) {
        errno = EINVAL;
        return NULL;
    }
    if (sy_start() != 0) return NULL;
    sy_memory *memory = sy_side_take(sizeof *memory);
    if (!memory) return NULL;
    set_up_memory(memory, config);
    memory->own_arena = !config->arena;
    memory->arena = config->arena;
    if (memory->own_arena)
        memory->arena = sy_vmem_create(&(sy_vmem_config){
            .name = memory->name, .base = start, .size = bytes, .quantum = SY_CHUNK_BYTES});
    if (!memory->arena) {
        sy_side_give(memory, sizeof *memory);
        return NULL;
    }
    sy_lock_acquire(&chunk_memory_list_lock);
    memory->next = memories;
    memory->next->previous = memory;
    memories = memory;
    sy_lock_release(&chunk_memory_list_lock);
    return memory;
}

int sy_memory_destroy(sy_memory *memory) {
    if (!memory) return 0;
    sy_lock_acquire(&chunk_memory_list_lock);
    bool busy = memory->caches > 0;
    if (!busy) {
        if (memory->previous)
            memory->previous->next = memory->next;
        else
            memories = memory->next;
        if (memory->next) memory->next->previous = memory->previous;
    }
    sy_lock_release(&chunk_memory_list_lock);
    if (busy) {
        errno = EBUSY;
        return -1;
    }
    sy_large_trim(memory);
    sy_chunk_release_all(memory);
    if (memory->own_arena) sy_vmem_destroy(memory->arena);
    sy_side_give(memory, sizeof *memory);
    return 0;
}

void sy_memory_hold(sy_memory *memory) {
    sy_lock_acquire(&chunk_memory_list_lock);
    memory->caches++;
    sy_lock_release(&chunk_memory_list_lock);
}

void sy_memory_let_go(sy_memory *memory) {
    sy_lock_acquire(&chunk_memory_list_lock);
    memory->caches--;
    sy_lock_release(&chunk_memory_list_lock);
}

void sy_memory_each(void (*visit)(sy_memory *memory, void *arg), void *arg) {
    sy_lock_acquire(&chunk_memory_list_lock);
    for (sy_memory *memory = memories; memory; memory = memory->next) visit(memory, arg);
    sy_lock_release(&chunk_memory_list_lock);
}

int sy_memory_get_stats(const sy_memory *memory, sy_memory_stats *stats) {
    if (!stats) {
        errno = EINVAL;
        return -1;
    }
    sy_chunk_stats chunks = {0};
    sy_chunk_count_of(memory ? memory : &sy_memory_main, &chunks);
    *stats = (sy_memory_stats){
        .chunks = chunks.chunks,
        .mapped = chunks.chunks * SY_CHUNK_BYTES + chunks.large_bytes + chunks.large_kept,
        .free = chunks.units_free * SY_UNIT_BYTES + chunks.large_kept,
        .clean = chunks.units_clean * SY_UNIT_BYTES,
        .headers = chunks.chunks * SY_UNIT_BYTES,
    };
    stats->used = stats->mapped - stats->free - stats->headers;
    return 0;
}

/* ---- fork: all locks of one rank, then those of the next ---- */

static void hold_memories(void) {
    bool all = sy_lock_hold(&chunk_memory_list_lock);
    for (sy_memory *memory = all ? memories : NULL; memory; memory = memory->next)
        sy_lock_hold(&memory->lock);
    for (sy_memory *memory = all ? memories : NULL; memory; memory = memory->next)
        sy_lock_hold(&memory->large_lock);
    sy_side_lock_for_fork();
    sy_headers_lock_for_fork();
}

static void drop_memories(void) {
    sy_headers_unlock_after_fork();
    sy_side_unlock_after_fork();
    if (!sy_lock_has(&chunk_memory_list_lock)) return;
    for (sy_memory *memory = memories; memory; memory = memory->next) {
        sy_lock_drop(&memory->large_lock);
        if (sy_lock_drop(&memory->lock)) memory->torn = true;
    }
    sy_lock_drop(&chunk_memory_list_lock);
}

/* There is one thread: no lock, whose rank is below that of the arenas. */
static void recover_memories(void) {
    for (sy_memory *memory = memories; memory; memory = memory->next) {
        atomic_store_explicit(&memory->trimming, 0, memory_order_relaxed);
        sy_chunk_recover(memory);
    }
}

const sy_part sy_memory_part = {
    .start = start_main, .hold = hold_memories, .drop = drop_memories, .recover = recover_memories};

/* ==== src/chunk/quota.c ==== */

/*
 * quota.c: charges the bytes of a slab or span to its cache, its heap and the process before it is
 * taken, and uncharges them after it was given back.
 */

enum { REARM_SHARE = 8 }; /* of the soft mark: how far below it the next time counts */

sy_quota sy_quota_process = {.hard = SIZE_MAX, .soft = SIZE_MAX};

/* ---- the limit ---- */

bool sy_limit_valid(const sy_limit *limit) {
    bool valid = !limit->hard || limit->soft <= limit->hard;
    if (limit->soft && !limit->callback) valid = false;
    for (size_t i = 0; i < sizeof limit->reserved / sizeof *limit->reserved; i++)
        if (limit->reserved[i]) valid = false;
    return valid;
}

void sy_quota_set(sy_quota *quota, const sy_limit *limit) {
    quota->callback = limit->callback;
    quota->arg = limit->arg;
    atomic_store_explicit(&quota->hard, limit->hard ? limit->hard : SIZE_MAX, memory_order_relaxed);
    atomic_store_explicit(&quota->soft, limit->soft ? limit->soft : SIZE_MAX, memory_order_relaxed);
    atomic_store(&quota->crossed, false);
    atomic_store(&quota->armed, true);
    sy_quota_note(quota);
}

/* ---- the account ---- */

static size_t load_bytes(const _Atomic size_t *bytes) {
    return atomic_load_explicit(bytes, memory_order_relaxed);
}

static bool charge_one(sy_quota *quota, size_t bytes) {
    size_t used = load_bytes(&quota->used);
    do {
        size_t hard = load_bytes(&quota->hard);
        if (used > hard || bytes > hard - used) return false;
    } while (!atomic_compare_exchange_weak_explicit(&quota->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void uncharge_one(sy_quota *quota, size_t bytes) {
    size_t before = atomic_fetch_sub_explicit(&quota->used, bytes, memory_order_relaxed);
    SY_INVARIANT(before >= bytes);
    size_t used = before - bytes;
    size_t soft = load_bytes(&quota->soft);
    if (used < soft - soft / REARM_SHARE &&
        !atomic_load_explicit(&quota->armed, memory_order_relaxed))
        atomic_store(&quota->armed, true);
}

sy_quota *sy_quota_charge(sy_quota *quota, size_t bytes) {
    for (sy_quota *next = quota; next; next = next->parent) {
        if (charge_one(next, bytes)) continue;
        for (; quota != next; quota = quota->parent) uncharge_one(quota, bytes);
        return next;
    }
    return NULL;
}

void sy_quota_uncharge(sy_quota *quota, size_t bytes) {
    for (; quota; quota = quota->parent) uncharge_one(quota, bytes);
}

void sy_quota_note(sy_quota *quota) {
    for (; quota; quota = quota->parent)
        if (load_bytes(&quota->used) >= load_bytes(&quota->soft) &&
            atomic_exchange(&quota->armed, false))
            atomic_store(&quota->crossed, true);
}

/* ---- runs ---- */

SY_TLS size_t sy_quota_in_hand;

/* A large span that was kept for reuse may be longer than was asked for: that is charged too, or
 * goes. The quota that refused, if neither can be. */
static sy_quota *charge_rest(sy_quota *quota, sy_slab *run, size_t charged) {
    if (run->bytes <= charged) return NULL;
    sy_quota *refused = sy_quota_charge(quota, run->bytes - charged);
    bool cut = refused && sy_run_resize(run, charged) && run->bytes == charged;
    return cut ? NULL : refused;
}

/* `charged`: the bytes in whole units. */
static sy_slab *take_and_charge(sy_quota *quota, sy_memory *memory, size_t bytes, size_t charged,
                                size_t align, size_t room, bool *clean, sy_quota **refused) {
    *refused = sy_quota_charge(quota, charged);
    if (*refused) return NULL;
    sy_slab *run = sy_run_take(memory, bytes, align, room, clean);
    if (run) *refused = charge_rest(quota, run, charged);
    if (run && !*refused) return run;
    if (run) sy_run_give(run);
    sy_quota_uncharge(quota, charged);
    return NULL;
}

sy_slab *sy_quota_take_run(sy_quota *quota, sy_memory *memory, size_t bytes, size_t align,
                           size_t room, bool *clean, sy_quota **refused) {
    bool possible = bytes >> SY_ADDRESS_BITS == 0; /* else it would look like a limit to others */
    size_t charged = possible ? sy_round_up(bytes, SY_UNIT_BYTES) : 0;
    *refused = NULL;
    sy_quota_in_hand += charged;
    sy_slab *run = NULL;
    if (possible) run = take_and_charge(quota, memory, bytes, charged, align, room, clean, refused);
    sy_quota_in_hand -= charged;
    if (run)
        sy_quota_note(quota);
    else
        errno = ENOMEM;
    return run;
}

void sy_quota_give_run(sy_quota *quota, sy_slab *run) {
    size_t bytes = run->bytes;
    sy_quota_in_hand += bytes;
    sy_run_give(run);
    sy_quota_uncharge(quota, bytes);
    sy_quota_in_hand -= bytes;
}

/* ==== src/chunk/side.c ==== */

/*
 * side.c: memory for the library's own records: caches, long bitmaps, descriptors. Blocks are
 * reused by size and never given back to the system.
 */

enum {
    chunk_side_LEAST_SHIFT = 5, /* 32 bytes */
    CLASSES = 15,    /* up to 512 KiB */
    AREA_BYTES_MAX = 4 << 20,
    AREA_BYTES_MIN = 1 << 20, /* where address space is short */
    AREA_OFFSET =
        5 *
        64, /* keeps caches, of a power of two, out of the cache sets where large objects begin */
};

_Static_assert(SY_SIDE_MAX == 1 << (chunk_side_LEAST_SHIFT + CLASSES - 1), "the last class is the largest");

struct block {
    struct block *next;
};

/* In what is left out at the beginning of an area. */
struct chunk_side_area {
    struct chunk_side_area *previous;
    size_t bytes;
};

_Static_assert(AREA_BYTES_MIN >= 2 * SY_SIDE_MAX, "any block finds room in a new area");
_Static_assert(sizeof(struct chunk_side_area) <= AREA_OFFSET, "no block lies there");

static sy_lock chunk_side_lock = SY_LOCK_INIT(SY_RANK_SIDE);
/* All guarded by lock. */
static struct block *unused[CLASSES];
static uintptr_t chunk_side_area, area_end; /* never given out yet, zero */
static size_t bytes_taken;
static struct chunk_side_area *chunk_side_last_area; /* all of them */

static unsigned class_of(size_t bytes) {
    if (bytes <= (size_t)1 << chunk_side_LEAST_SHIFT) return 0;
    return sy_highest_bit(bytes - 1) + 1 - chunk_side_LEAST_SHIFT;
}

/* A block from the unused ones or the area, or NULL; the lock is held. */
static void *take_block(unsigned class_index) {
    struct block *block = unused[class_index];
    size_t size = (size_t)1 << (class_index + chunk_side_LEAST_SHIFT);
    if (block) {
        unused[class_index] = block->next;
        return block;
    }
    uintptr_t start = sy_round_up(chunk_side_area, size < 64 ? size : 64);
    if (!chunk_side_area || start + size > area_end) return NULL;
    bytes_taken += start + size - chunk_side_area;
    chunk_side_area = start + size;
    return (void *)start;
}

/* A new area (what was left of the old one is lost), unless another thread has made one since the
 * old one was `seen`. 0, or -1 with ENOMEM. */
static int chunk_side_add_area(uintptr_t seen) {
    size_t bytes = AREA_BYTES_MAX;
    void *memory;
    while (!(memory = sy_pages_take(bytes, 65536, "slabyard side")))
        if ((bytes /= 2) < AREA_BYTES_MIN) return -1;
    sy_lock_acquire(&chunk_side_lock);
    bool mine = area_end == seen;
    if (mine) {
        struct chunk_side_area *added = memory;
        added->previous = chunk_side_last_area;
        added->bytes = bytes;
        chunk_side_last_area = added;
        chunk_side_area = (uintptr_t)memory + AREA_OFFSET;
        area_end = (uintptr_t)memory + bytes;
    }
    sy_lock_release(&chunk_side_lock);
    if (!mine) sy_pages_give(memory, bytes);
    return 0;
}

void *sy_side_take(size_t bytes) {
    unsigned class_index = class_of(bytes);
    for (;;) {
        sy_lock_acquire(&chunk_side_lock);
        void *block = take_block(class_index);
        uintptr_t seen = area_end;
        sy_lock_release(&chunk_side_lock);
        if (block) return memset(block, 0, (size_t)1 << (class_index + chunk_side_LEAST_SHIFT));
        if (chunk_side_add_area(seen) != 0) return NULL;
    }
}

void sy_side_give(void *memory, size_t bytes) {
    struct block *block = memory;
    unsigned class_index = class_of(bytes);
    sy_lock_acquire(&chunk_side_lock);
    block->next = unused[class_index];
    unused[class_index] = block;
    sy_lock_release(&chunk_side_lock);
}

size_t sy_side_bytes(void) {
    sy_lock_acquire(&chunk_side_lock);
    size_t bytes = bytes_taken;
    sy_lock_release(&chunk_side_lock);
    return bytes;
}

void sy_side_each_area(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&chunk_side_lock);
    for (const struct chunk_side_area *each = chunk_side_last_area; each; each = each->previous)
        visit(each, each->bytes, arg);
    sy_lock_release(&chunk_side_lock);
}

void sy_side_lock_for_fork(void) { sy_lock_hold(&chunk_side_lock); }

void sy_side_unlock_after_fork(void) { sy_lock_drop(&chunk_side_lock); }

/* ==== src/heap/checked.c ==== */

/*
 * checked.c: large objects of the general heap while checks are on. A separate heap serves them
 * then, so that they are checked as small ones are.
 */
/*
 * checked.h: the heap's objects of more than SY_CLASS_SIZE_MAX bytes, while the heap is checked.
 *
 * They are those of a heap instance then, whose classes have no end and whose objects are slots of
 * caches, rather than spans: so all that is checked of caches is checked of them. Spans from before
 * stay what they are.
 *
 * Used by heap.c alone. Below: instance.h.
 */
#ifndef SY_HEAP_CHECKED_H
#define SY_HEAP_CHECKED_H

/* Whether large objects are checked: by the options as they are now, for the name "heap". */
bool sy_heap_checks_large(void);

/* NULL with ENOMEM; `align` up to SY_CACHE_ALIGN_MAX. */
void *sy_checked_large_alloc(size_t size, size_t align);

/* Whether a slab of this cache holds such objects: then they are freed by the next. */
bool sy_checked_owns(const void *cache);
void sy_checked_large_free(void *object, size_t told);

#endif

/*
 * instance.h: what a heap of the program's own is: a quota, and a cache for each size class used.
 *
 *     size -> class -> cache, opened on first use      every slab is charged to the quota
 *     address -> slab -> its cache -> its quota: of this heap?
 *     handle -> word of its ordinal -> client number -> class -> cache
 *
 * The classes are those of classes.h, which go on without end. Beyond SY_CLASS_SIZE_MAX sizes are
 * rounded up to units first, and a slab has one slot: so large objects need no mechanism of their
 * own, and a heap is no more than its caches. A class whose objects are aligned beyond a unit is
 * another one: such runs fit less well into chunks. Caches are opened for the life of the heap.
 *
 * Files: instance.c (life, and objects by address), named.c (by handle). Below: cache/.
 */
#ifndef SY_HEAP_INSTANCE_H
#define SY_HEAP_INSTANCE_H

/*
 * classes.h: sizes to size classes and back.
 *
 *     class    1   2   3  ...   9    10   11 ...  17    18 ...        89
 *     bytes    8  16  32  ... 128   144  160 ... 256   288 ...   128 Ki
 *              .  | steps of 16 |   8 steps a doubling: at most an eighth is lost
 *
 * The number of a class is its client number in the magazine layer and its mark in the map; 0
 * is no class, and its loaded slot is shut for ever.
 */
#ifndef SY_HEAP_CLASSES_H
#define SY_HEAP_CLASSES_H

enum {
    SY_CLASS_SIZE_MAX = SY_SLAB_SLOT_MAX,
    SY_CLASS_16 = 2,  /* the first with steps of 16 */
    SY_CLASS_128 = 9, /* the last */
    SY_CLASSES = 90,  /* and number 0 */
};

_Static_assert((int)SY_CLASSES <= (int)SY_CLIENT_DEMANDED, "class numbers are client numbers");

/* The class of the least slot that holds `size` bytes, at most SY_CLASS_SIZE_MAX. */
static inline unsigned sy_class_of(size_t size) {
    if (size <= 8) return 1;
    if (size <= 128) return (unsigned)((size + 15) / 16) + SY_CLASS_16 - 1;
    unsigned highest = sy_highest_bit(size - 1);
    unsigned step = (unsigned)((size - 1) >> (highest - 3)) - 8;
    return SY_CLASS_128 + 1 + (highest - 7) * 8 + step;
}

/* The same for sizes up to SY_CLASS_TABLE_MAX, by a table over eighths of the size. */
enum { SY_CLASS_TABLE_MAX = 1024 };
extern SY_HIDDEN const uint8_t sy_class_table[SY_CLASS_TABLE_MAX / 8 + 1];

/* Bytes of a slot of the class. */
static inline size_t sy_class_size(unsigned class_number) {
    if (class_number < SY_CLASS_16) return class_number * 8;
    if (class_number <= SY_CLASS_128) return (class_number - SY_CLASS_16 + 1) * (size_t)16;
    unsigned beyond = class_number - SY_CLASS_128 - 1;
    return (size_t)(9 + beyond % 8) << (4 + beyond / 8);
}

/* The sizes of a class: so many from the least one on. No size is of class 0. */
typedef struct sy_class_sizes {
    uint32_t least, count;
} sy_class_sizes;

extern SY_HIDDEN const sy_class_sizes sy_class_sizes_of[SY_CLASSES];

/* Whether objects of `size` bytes are in that class. Only the lower 32 bits of a size are compared,
 * which is cheaper; who asks knows the class from the address. */
static inline bool sy_class_has(unsigned class_number, size_t size) {
    const sy_class_sizes *sizes = &sy_class_sizes_of[class_number];
    return (uint32_t)size - sizes->least < sizes->count;
}

#endif

enum {
    SY_HEAP_SIZE_SHIFT = SY_ADDRESS_BITS - 1, /* of the largest size: what sy_run_take gives */
    /* Up to that size: those up to 128 bytes, and 8 to a doubling. */
    SY_HEAP_CLASSES = SY_CLASS_128 + 1 + (SY_HEAP_SIZE_SHIFT - 7) * 8,
    /* The same once more, with objects at multiples of what divides their size. */
    SY_HEAP_CACHES = 2 * SY_HEAP_CLASSES,
    SY_HEAP_NUMBERS_BYTES = SY_CLIENTS_MAX * (int)sizeof(uint16_t),
};

struct sy_heap {
    sy_quota quota;
    char name[SY_HEAP_NAME_MAX + 1];
    unsigned flags;
    sy_memory *memory;
    uint16_t *classes_of; /* by client number, lazily touched; 0: none of the heap's. NULL: without
                             SY_HANDLES */
    _Atomic(sy_cache *) caches[SY_HEAP_CACHES]; /* by class; written under the start's lock */
};

_Static_assert(SY_HEAP_CACHES <= UINT16_MAX, "classes_of holds a class");
_Static_assert(sizeof(struct sy_heap) <= 64 << 10, "a heap is a block of side memory");

static inline sy_cache *sy_heap_cache(const sy_heap *heap, unsigned class_number) {
    return atomic_load_explicit(&heap->caches[class_number], memory_order_acquire);
}

static inline size_t sy_heap_class_size(unsigned class_number) {
    return sy_class_size(class_number % SY_HEAP_CLASSES);
}

/* Raises a fault in the heap's name; `found`: whose the object is, or NULL. */
void sy_heap_fault(const sy_heap *heap, sy_fault_kind kind, const void *object, const char *found);

#endif

static _Atomic(sy_heap *) large; /* for ever; NULL: not made yet */

bool sy_heap_checks_large(void) { return sy_watch_checks(0, "heap", true) & SY_CHECKED; }

/* Two threads may make it at once: one of them is not used. */
static sy_heap *make_checked_heap(void) {
    sy_heap *fresh = sy_heap_create(&(sy_heap_config){.name = "heap"}), *seen = NULL;
    if (!fresh || atomic_compare_exchange_strong(&large, &seen, fresh)) return fresh;
    sy_heap_destroy_all(fresh);
    return seen;
}

void *sy_checked_large_alloc(size_t size, size_t align) {
    sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    if (!heap) heap = make_checked_heap();
    if (!heap) return NULL;
    return align > 16 ? sy_heap_aligned_alloc(heap, align, size) : sy_heap_alloc(heap, size);
}

bool sy_checked_owns(const void *cache) {
    const sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    return heap && ((const sy_cache *)cache)->quota == &heap->quota;
}

void sy_checked_large_free(void *object, size_t told) {
    sy_heap *heap = atomic_load_explicit(&large, memory_order_acquire);
    if (told == SIZE_MAX)
        sy_heap_free(heap, object);
    else
        sy_heap_free_sized(heap, object, told);
}

/* ==== src/heap/classes.c ==== */

/*
 * classes.c: the table from a size in bytes to its size class.
 */

/* The class for 8 * n bytes, as sy_class_of but a constant expression. */
#define HIGHEST(n) (31u - (unsigned)__builtin_clz((8u * (n)-1) | 128))
#define CLASS(n)                                                      \
    (uint8_t)((n) <= 1    ? 1                                         \
              : (n) <= 16 ? (8u * (n) + 15) / 16 + SY_CLASS_16 - 1    \
                          : SY_CLASS_128 + 1 + (HIGHEST(n) - 7) * 8 + \
                                ((8u * (n)-1) >> (HIGHEST(n) - 3)) - 8)
#define CLASSES_4(n)  CLASS(n), CLASS((n) + 1), CLASS((n) + 2), CLASS((n) + 3)
#define CLASSES_16(n) CLASSES_4(n), CLASSES_4((n) + 4), CLASSES_4((n) + 8), CLASSES_4((n) + 12)
#define CLASSES_64(n) \
    CLASSES_16(n), CLASSES_16((n) + 16), CLASSES_16((n) + 32), CLASSES_16((n) + 48)

const uint8_t sy_class_table[SY_CLASS_TABLE_MAX / 8 + 1] = {CLASSES_64(0), CLASSES_64(64),
                                                            CLASS(128)};

/* The classes of a doubling, from 8 * 2^k bytes on; their sizes lie apart by 2^k. */
#define DOUBLING(k)                                                                            \
    {(8u << (k)) + 1, 1u << (k)}, {(9u << (k)) + 1, 1u << (k)}, {(10u << (k)) + 1, 1u << (k)}, \
        {(11u << (k)) + 1, 1u << (k)}, {(12u << (k)) + 1, 1u << (k)},                          \
        {(13u << (k)) + 1, 1u << (k)}, {(14u << (k)) + 1, 1u << (k)}, {                        \
        (15u << (k)) + 1, 1u << (k)                                                            \
    }

const sy_class_sizes sy_class_sizes_of[SY_CLASSES] = {
    {0, 0},      {0, 9},      {9, 8},       {17, 16},     {33, 16},     {49, 16},     {65, 16},
    {81, 16},    {97, 16},    {113, 16},    DOUBLING(4),  DOUBLING(5),  DOUBLING(6),  DOUBLING(7),
    DOUBLING(8), DOUBLING(9), DOUBLING(10), DOUBLING(11), DOUBLING(12), DOUBLING(13),
};
#undef CLASS
#undef CLASSES_16
#undef CLASSES_4
#undef CLASSES_64
#undef DOUBLING
#undef HIGHEST

/* ==== src/heap/heap.c ==== */

/*
 * heap.c: the malloc family: a size comes in, a class's cache or a span answers.
 *
 *     sy_malloc(size) -> class -> this thread's loaded slot for it     (the fast path)
 *                              -> sy_cache_alloc_slow of the class     (magazines, slabs)
 *                     -> sy_limit_take_span | sy_checked_large_alloc   (more than 128 KiB)
 *     sy_free(p)      -> the map -> loaded slot | cache | span | a fault
 *
 * Below: cache/, chunk/.
 */

static sy_cache classes[SY_CLASSES];        /* opened at first use, for ever */
static _Atomic bool class_open[SY_CLASSES]; /* written under the lock of the start */

static void heap_heap_name_class(char *name, size_t size) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "heap-");
    sy_text_add_number(&text, size);
    memcpy(name, text.bytes, text.length);
    name[text.length] = 0;
}

static int open_locked(unsigned class_number) {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size = sy_class_size(class_number), align = size & (~size + 1);
    sy_cache_config config = {.name = name, .size = size};
    config.align = align < SY_UNIT_BYTES ? align : SY_UNIT_BYTES;
    heap_heap_name_class(name, size);
    return sy_cache_open(&classes[class_number], &config, class_number);
}

/* The cache of a class, or NULL with ENOMEM. */
static sy_cache *heap_heap_cache_of_class(unsigned class_number) {
    if (SY_LIKELY(atomic_load_explicit(&class_open[class_number], memory_order_acquire)))
        return &classes[class_number];
    if (sy_start() != 0) {
        sy_limit_refuse(SY_REFUSAL_SYSTEM);
        return NULL;
    }
    if (sy_start_lock()) {
        bool open = atomic_load_explicit(&class_open[class_number], memory_order_relaxed);
        if (!open && open_locked(class_number) == 0) {
            atomic_store_explicit(&class_open[class_number], true, memory_order_release);
            open = true;
        }
        sy_start_unlock();
        if (open) return &classes[class_number];
    }
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return NULL;
}

/* ---- spans ---- */

static void *span_alloc(size_t size, size_t align, size_t room, bool *clean) {
    if (sy_start() != 0) {
        sy_limit_refuse(SY_REFUSAL_SYSTEM);
        return NULL;
    }
    if (SY_UNLIKELY(align <= SY_CACHE_ALIGN_MAX && sy_heap_checks_large())) {
        *clean = false;
        return sy_checked_large_alloc(size, align);
    }
    sy_slab *span = sy_limit_take_span(size, align, room, clean);
    if (!span) return NULL;
    span->first = span->start;
    int error = errno;
    sy_turn();
    errno = error;
    return (void *)span->start;
}

/* Whether the cache is one of the heap's. */
static bool is_own_class(const sy_cache *cache) {
    return cache->class_number || sy_checked_owns(cache);
}

/* The span that begins at `object`, or NULL. */
static sy_slab *span_of(const void *object) {
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab && !slab->owner && slab->first == (uintptr_t)object ? slab : NULL;
}

/* ---- allocation ---- */

/* The cold functions keep their frames: from what they call, tools and audits take stacks. */

static SY_COLD void *sy_class_alloc_slow(unsigned class_number, size_t size, size_t align) {
    sy_cpu_keep_frame();
    sy_cache *cache = heap_heap_cache_of_class(class_number);
    return cache ? sy_cache_alloc_sized(cache, size, align) : NULL;
}

static SY_COLD void *sy_malloc_slow(size_t size) {
    sy_cpu_keep_frame();
    bool clean;
    if (size > SY_CLASS_SIZE_MAX) return span_alloc(size, SY_UNIT_BYTES, 0, &clean);
    return sy_class_alloc_slow(sy_class_of(size), size, SY_MALLOC_ALIGN);
}

static inline void *alloc(size_t size) {
    unsigned class_number;
    if (SY_LIKELY(size <= SY_CLASS_TABLE_MAX))
        class_number = sy_class_table[(size + 7) / 8];
    else if (SY_LIKELY(size <= SY_CLASS_SIZE_MAX))
        class_number = sy_class_of(size);
    else
        return sy_malloc_slow(size);
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(&sy_abi_1[class_number], &object))) return (void *)object;
    return sy_malloc_slow(size);
}

/* The same from a class of larger objects than these. */
static void *alloc_in_class(unsigned class_number, size_t size, size_t align) {
    uintptr_t object;
    if (SY_LIKELY(sy_loaded_pop(&sy_abi_1[class_number], &object))) return (void *)object;
    return sy_class_alloc_slow(class_number, size, align);
}

void *sy_malloc(size_t size) { return alloc(size); }

void *sy_calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        sy_limit_refuse(SY_REFUSAL_SYSTEM);
        errno = ENOMEM;
        return NULL;
    }
    bool clean = false;
    void *object =
        bytes > SY_CLASS_SIZE_MAX ? span_alloc(bytes, SY_UNIT_BYTES, 0, &clean) : alloc(bytes);
    if (object && !clean) memset(object, 0, bytes);
    return object;
}

void *sy_aligned_alloc(size_t align, size_t size) {
    bool clean;
    if (!sy_is_power_of_two(align)) {
        errno = EINVAL;
        return NULL;
    }
    if (align <= 8 || (align == 16 && size > 8)) return alloc(size);
    if (size <= SY_CLASS_SIZE_MAX && align <= SY_UNIT_BYTES) {
        unsigned class_number = sy_class_of(size > align ? size : align);
        while (class_number < SY_CLASSES && sy_class_size(class_number) % align) class_number++;
        if (class_number < SY_CLASSES) return alloc_in_class(class_number, size, align);
    }
    return span_alloc(size ? size : 1, align, 0, &clean);
}

/* ---- free ---- */

static void heap_heap_raise_fault(sy_fault_kind kind, const void *object, const char *found) {
    sy_fault fault = {.kind = kind, .cache = "heap", .address = object, .found_cache = found};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
}

/* The same for a size that no object of that class has. */
static void sy_raise_wrong_size(const void *object, const char *found, size_t told) {
    int error = errno;
    sy_fault fault = {.kind = SY_FAULT_WRONG_SIZE,
                      .cache = "heap",
                      .address = object,
                      .found_cache = found,
                      .told_size = told};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
    errno = error;
}

/* Frees what lies among guarded objects, one of the heap's or one that cannot be freed here. */
static SY_COLD void sy_free_at_guards(void *object, size_t told) {
    sy_cpu_keep_frame();
    sy_cache *cache = sy_guarded_cache(object);
    if (!cache)
        heap_heap_raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
    else if (cache->class_number)
        sy_guarded_free(cache, object, told);
    else if (sy_checked_owns(cache))
        sy_checked_large_free(object, told);
    else
        heap_heap_raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
}

/* Frees what is the C library's; false: nothing is passed to it. */
static bool free_block(void *object, size_t told) {
    sy_cpu_keep_frame();
    size_t size;
    sy_cache *cache = sy_passed_owner(object, &size);
    if (!cache && !sy_watch_passes()) return false;
    if (!cache)
        sy_os_block_free(object);
    else if (is_own_class(cache))
        sy_cache_free_sized(cache, object, told);
    else
        heap_heap_raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
    return true;
}

/* Frees what is of no class: a span, or nothing that can be freed here. */
static void free_unclassed(void *object, size_t told) {
    sy_cpu_keep_frame();
    sy_slab *span = span_of(object);
    if (SY_UNLIKELY(sy_guard_owns((uintptr_t)object))) {
        sy_free_at_guards(object, told);
        return;
    }
    if (SY_UNLIKELY(span && told <= SY_CLASS_SIZE_MAX)) {
        sy_raise_wrong_size(object, NULL, told);
        return;
    }
    if (span) {
        span->first = 0; /* a second free finds no span */
        sy_quota_give_run(&sy_quota_process, span);
        sy_turn();
        return;
    }
    sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? slab->owner : NULL;
    if (!slab && free_block(object, told)) return;
    if (!slab)
        heap_heap_raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
    else if (cache && sy_checked_owns(cache))
        sy_checked_large_free(object, told);
    else if (cache)
        heap_heap_raise_fault(SY_FAULT_WRONG_CACHE, object, cache->name);
    else
        heap_heap_raise_fault(slab->first ? SY_FAULT_MISALIGNED_POINTER : SY_FAULT_DOUBLE_FREE, object, NULL);
}

/* `told`: the size, as far as the caller said it, else SIZE_MAX. */
static void sy_free_in_class(void *object, unsigned class_number, size_t told) {
    sy_cpu_keep_frame();
    int error = errno;
    sy_cache *cache = &classes[class_number];
    if (!class_number || !atomic_load_explicit(&class_open[class_number], memory_order_acquire)) {
        if (object) free_unclassed(object, told);
    } else if (SY_UNLIKELY(sy_cache_checks(cache))) {
        sy_cache_free_sized(cache, object, told);
    } else {
        sy_cache_free_slow(cache, object);
    }
    errno = error;
}

/* It asks for the class again: keeping it would cost the fast path an instruction. */
static SY_COLD void sy_free_slow(void *object) {
    sy_cpu_keep_frame();
    sy_free_in_class(object, sy_class_at((uintptr_t)object), SIZE_MAX);
}

void sy_free(void *object) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (SY_UNLIKELY(!sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object)))
        sy_free_slow(object);
}

/* Where the sizes do not go with the class, the class that checks knows more than that they do not.
 * No object is as large as what SIZE_MAX means. */
static SY_COLD void sy_free_sized_slow(void *object, size_t size) {
    sy_cpu_keep_frame();
    unsigned class_number = sy_class_at((uintptr_t)object);
    size_t told = size == SIZE_MAX ? size - 1 : size;
    if (!class_number || sy_class_has(class_number, size) ||
        sy_cache_checks(&classes[class_number]))
        sy_free_in_class(object, class_number, told);
    else
        sy_raise_wrong_size(object, classes[class_number].name, told);
}

void sy_free_sized(void *object, size_t size) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (SY_UNLIKELY(!sy_class_has(class_number, size) ||
                    !sy_loaded_push_once(&sy_abi_1[class_number], (uintptr_t)object)))
        sy_free_sized_slow(object, size);
}

/* The cache that checks what lies at `object`, guards it or passed it on, or NULL: none does. */
static const sy_cache *checking(const void *object) {
    size_t size;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    const sy_cache *cache = slab ? slab->owner : sy_guarded_cache(object);
    if (!slab && !cache) cache = sy_passed_owner(object, &size);
    return cache && is_own_class(cache) && (!slab || sy_cache_checks(cache)) ? cache : NULL;
}

/* Whether an object of the heap's may begin there (if it is checked or guarded: does), and the
 * bytes that may be used of it. */
static bool find_object(const void *object, size_t *bytes) {
    const sy_cache *checker = object ? checking(object) : NULL;
    if (SY_UNLIKELY(checker)) return sy_cache_find_object(checker, object, bytes);
    unsigned class_number = sy_class_at((uintptr_t)object);
    const sy_slab *span = class_number || !object ? NULL : span_of(object);
    *bytes = class_number ? sy_class_size(class_number) : span ? span->bytes : 0;
    return class_number || span;
}

size_t sy_usable_size(const void *object) {
    size_t bytes;
    return find_object(object, &bytes) ? bytes : 0;
}

/* ---- realloc ---- */

/* Whether the object can stay where it is at the new size: in its class exactly, so that a sized
 * free finds it there. */
static bool fits_in_place(void *object, size_t have, size_t size) {
    unsigned class_number = sy_class_at((uintptr_t)object);
    if (class_number) return size <= SY_CLASS_SIZE_MAX && sy_class_of(size) == class_number;
    /* A large span may be longer than what is in it; what grows needs that again soon. */
    bool large = have > SY_RUN_UNITS_MAX * (size_t)SY_UNIT_BYTES;
    if (large && size <= have && size > have / 2) return true;
    return size > SY_CLASS_SIZE_MAX && sy_limit_resize_span(span_of(object), size);
}

/* What has grown beyond its space once will do so again: as much address space more. */
static void *alloc_growing(size_t size) {
    bool clean;
    return span_alloc(size, SY_UNIT_BYTES, size * 2, &clean);
}

/* Of a large span the memory is moved, if that can be: it takes as long for more, and the growing
 * part of the new one may have memory already. */
static void move_content(const void *from, void *to, size_t bytes) {
    const sy_slab *source = bytes > SY_CLASS_SIZE_MAX ? span_of(from) : NULL;
    const sy_slab *target = source ? span_of(to) : NULL;
    if (!target || !sy_run_move(source, target, sy_round_up(bytes, SY_UNIT_BYTES)))
        memcpy(to, from, bytes);
}

void *sy_realloc(void *object, size_t size) {
    if (!object) return alloc(size);
    size_t have;
    if (!find_object(object, &have)) {
        if (checking(object) || sy_slab_at((uintptr_t)object))
            sy_free(object); /* which names the fault */
        else
            heap_heap_raise_fault(SY_FAULT_FOREIGN_POINTER, object, NULL);
        errno = EINVAL;
        return NULL;
    }
    if (SY_LIKELY(!checking(object)) && fits_in_place(object, have, size)) return object;
    void *moved = size > have && size > SY_CLASS_SIZE_MAX ? alloc_growing(size) : alloc(size);
    if (!moved) return NULL;
    move_content(object, moved, have < size ? have : size);
    sy_free(object);
    return moved;
}

/* ==== src/heap/instance.c ==== */

/*
 * instance.c: heaps of the program's own: their life, and objects by address.
 */

/*
 * leaks.h: live objects of caches with SY_AUDIT, in groups: those of one cache that were allocated
 * by the same stack. slabyard/audit.h has the doors.
 *
 *     leaks.c   the groups, what is told of them
 *     reach.c   which objects something points to; in a copy of the process
 *
 * Above: heap/, when one is destroyed. Below: all layers up to cache/.
 */
#ifndef SY_KEEP_LEAKS_H
#define SY_KEEP_LEAKS_H

/* What is live in a cache that is to be destroyed is told, if the option `leaks` says so. No lock
 * is held; errno is kept. */
void sy_leaks_at_destroy(sy_cache *cache);

/* Has leaks told at the end of the process, if the option says so. */
extern SY_HIDDEN const sy_part sy_leaks_part;

/*
 * For a copy of the process that nobody works in but the caller, and that does nothing but look for
 * leaks: every live object that something points to is made a free one. `stack`: of the calling
 * thread what lies below this address says nothing. False: it could not be found out.
 */
bool sy_reach_all(uintptr_t stack);

#endif

static const unsigned heap_instance_KNOWN_FLAGS = SY_HANDLES | SY_EPOCHS | SY_CHECK_FLAGS;

/* ---- sizes ---- */

static const size_t SIZE_MOST = (size_t)1 << SY_HEAP_SIZE_SHIFT;

/* The class of an object of `size` bytes, at most SIZE_MOST. */
static inline unsigned class_for(size_t size) {
    if (SY_LIKELY(size <= SY_CLASS_TABLE_MAX)) return sy_class_table[(size + 7) / 8];
    if (size > SY_CLASS_SIZE_MAX) size = sy_round_up(size, SY_UNIT_BYTES);
    return sy_class_of(size);
}

/* Objects of a class lie at multiples of the largest power of two that divides its size, up to a
 * unit or what a cache can have. */
static size_t heap_instance_align_of(unsigned class_number) {
    size_t size = sy_heap_class_size(class_number), align = size & (~size + 1);
    size_t most = class_number < SY_HEAP_CLASSES ? SY_UNIT_BYTES : SY_CACHE_ALIGN_MAX;
    return align < most ? align : most;
}

/* The least class for objects of `size` bytes at `align`, which is no more than the size. */
static unsigned class_for_aligned(size_t size, size_t align) {
    unsigned class_number = class_for(size);
    if (align > SY_UNIT_BYTES) class_number += SY_HEAP_CLASSES;
    while (heap_instance_align_of(class_number) < align) class_number++;
    return class_number;
}

/* ---- classes ---- */

/* tenant-112 */
static void heap_instance_name_class(const sy_heap *heap, size_t size, char *name) {
    sy_text text = {.length = 0};
    sy_text_add(&text, heap->name);
    sy_text_add(&text, "-");
    sy_text_add_number(&text, size);
    memcpy(name, text.bytes, text.length);
    name[text.length] = 0;
}

_Static_assert(SY_HEAP_NAME_MAX + 1 + 15 <= SY_CACHE_NAME_MAX, "a name, and 2^47 in digits");

static int heap_instance_open_cache(sy_heap *heap, unsigned class_number, sy_cache *cache) {
    char name[SY_CACHE_NAME_MAX + 1];
    size_t size = sy_heap_class_size(class_number);
    heap_instance_name_class(heap, size, name);
    cache->quota = &heap->quota;
    if (sy_cache_open(cache,
                      &(sy_cache_config){.name = name,
                                         .size = size,
                                         .align = heap_instance_align_of(class_number),
                                         .flags = heap->flags,
                                         .memory = heap->memory},
                      0) != 0)
        return -1;
    /* Units that a large object leaves are for objects of other sizes too. */
    if (cache->layout.slots == 1) cache->empties_least = 0;
    if (heap->classes_of)
        __atomic_store_n(&heap->classes_of[cache->client.number], (uint16_t)class_number,
                         __ATOMIC_RELAXED);
    return 0;
}

static SY_COLD sy_cache *add_class(sy_heap *heap, unsigned class_number) {
    sy_cache *fresh = sy_side_take(sizeof *fresh);
    bool locked = sy_start_lock();
    sy_cache *cache = sy_heap_cache(heap, class_number);
    if (!cache && fresh && locked && heap_instance_open_cache(heap, class_number, fresh) == 0) {
        cache = fresh;
        fresh = NULL;
        atomic_store_explicit(&heap->caches[class_number], cache, memory_order_release);
    }
    if (locked) sy_start_unlock();
    if (fresh) sy_side_give(fresh, sizeof *fresh);
    if (cache) return cache;
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return NULL;
}

static inline sy_cache *heap_instance_cache_of_class(sy_heap *heap, unsigned class_number) {
    sy_cache *cache = sy_heap_cache(heap, class_number);
    return SY_LIKELY(cache != NULL) ? cache : add_class(heap, class_number);
}

static SY_COLD sy_cache *too_large(void) {
    sy_limit_refuse(SY_REFUSAL_SYSTEM);
    errno = ENOMEM;
    return NULL;
}

sy_cache *sy_heap_cache_for(sy_heap *heap, size_t size) {
    return SY_LIKELY(size <= SIZE_MOST) ? heap_instance_cache_of_class(heap, class_for(size)) : too_large();
}

/* ---- life ---- */

static bool valid_heap_config(const sy_heap_config *config) {
    if (!config || config->flags & ~heap_instance_KNOWN_FLAGS || !sy_limit_valid(&config->limit)) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i]) return false;
    return true;
}

static void set_up_heap(sy_heap *heap, const sy_heap_config *config) {
    const char *name = config->name ? config->name : "heap";
    for (size_t i = 0; i < SY_HEAP_NAME_MAX && name[i]; i++) heap->name[i] = name[i];
    heap->flags = config->flags;
    heap->memory = config->memory ? config->memory : &sy_memory_main;
    heap->quota.parent = heap->memory == &sy_memory_main ? &sy_quota_process : NULL;
    sy_quota_set(&heap->quota, &config->limit);
}

sy_heap *sy_heap_create(const sy_heap_config *config) {
    if (!valid_heap_config(config)) {
        errno = EINVAL;
        return NULL;
    }
    bool named = config->flags & SY_HANDLES;
    if (sy_start() != 0 || (named && sy_directory_start() != 0)) return NULL;
    sy_heap *heap = sy_side_take(sizeof *heap);
    if (!heap) return NULL;
    if (named) {
        size_t bytes = sy_round_up(SY_HEAP_NUMBERS_BYTES, sy_os_page_size());
        heap->classes_of = sy_pages_take(bytes, sy_os_page_size(), "slabyard heap");
        if (!heap->classes_of) {
            sy_side_give(heap, sizeof *heap);
            return NULL;
        }
    }
    set_up_heap(heap, config);
    sy_memory_hold(heap->memory);
    return heap;
}

static void heap_instance_end_all(void *heap) { sy_heap_destroy_all(heap); }

void sy_heap_destroy_all(sy_heap *heap) {
    if (!heap) return;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache && !sy_cache_suspend(cache, heap_instance_end_all, heap)) return;
    }
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) sy_cache_destroy_all(sy_heap_cache(heap, i));
    if (heap->classes_of)
        sy_pages_give(heap->classes_of, sy_round_up(SY_HEAP_NUMBERS_BYTES, sy_os_page_size()));
    sy_memory_let_go(heap->memory);
    sy_side_give(heap, sizeof *heap);
}

/* Suspends the caches one after the other, as long as they have no live object and are not at work
 * further up; how many classes that are. */
static unsigned suspend(const sy_heap *heap) {
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        if (!sy_client_suspend(&cache->client, NULL, NULL)) return i;
        if (sy_cache_in_use(cache) == 0) continue;
        sy_client_resume(&cache->client);
        return i;
    }
    return SY_HEAP_CACHES;
}

int sy_heap_destroy(sy_heap *heap) {
    if (!heap) return 0;
    unsigned suspended = suspend(heap);
    if (suspended == SY_HEAP_CACHES) {
        sy_heap_destroy_all(heap);
        return 0;
    }
    for (unsigned i = 0; i < suspended; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache) sy_client_resume(&cache->client);
    }
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++)
        if (sy_heap_cache(heap, i)) sy_leaks_at_destroy(sy_heap_cache(heap, i));
    errno = EBUSY;
    return -1;
}

/* ---- allocation ---- */

void *sy_heap_alloc(sy_heap *heap, size_t size) {
    sy_cache *cache = sy_heap_cache_for(heap, size);
    uintptr_t object;
    if (SY_UNLIKELY(!cache)) return NULL;
    if (SY_LIKELY(sy_loaded_pop(sy_cache_loaded(cache), &object))) return (void *)object;
    return sy_cache_alloc_sized(cache, size, SY_MALLOC_ALIGN);
}

void *sy_heap_calloc(sy_heap *heap, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    void *object = sy_heap_alloc(heap, bytes);
    return object ? memset(object, 0, bytes) : NULL;
}

void *sy_heap_aligned_alloc(sy_heap *heap, size_t align, size_t size) {
    if (!sy_is_power_of_two(align) || align > SY_CACHE_ALIGN_MAX) {
        errno = EINVAL;
        return NULL;
    }
    size_t bytes = size < align ? align : size;
    sy_cache *cache =
        bytes <= SIZE_MOST ? heap_instance_cache_of_class(heap, class_for_aligned(bytes, align)) : too_large();
    return cache ? sy_cache_alloc_sized(cache, size, align) : NULL;
}

/* ---- free ---- */

void sy_heap_fault(const sy_heap *heap, sy_fault_kind kind, const void *object, const char *found) {
    sy_fault fault = {.kind = kind, .cache = heap->name, .address = object, .found_cache = found};
    sy_watched_describe(&fault);
    sy_fault_raise(&fault);
}

/* The cache of the heap's in which an object can begin there, or NULL with the fault that freeing
 * it would be, and whose it is. */
static sy_cache *cache_at(const sy_heap *heap, const void *object, sy_fault_kind *fault,
                          const char **found) {
    size_t size;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    sy_cache *cache = slab ? slab->owner : sy_guarded_cache(object);
    if (!slab && !cache) cache = sy_passed_owner(object, &size);
    *found = NULL;
    if (SY_UNLIKELY(!cache || cache->quota != &heap->quota)) {
        *fault = slab || cache ? SY_FAULT_WRONG_CACHE : SY_FAULT_FOREIGN_POINTER;
        if (slab || cache) *found = cache ? cache->name : "heap";
        return NULL;
    }
    if (SY_UNLIKELY(!slab)) return cache; /* which knows where its objects outside of slabs begin */
    *fault = SY_FAULT_MISALIGNED_POINTER;
    bool begins = sy_slab_index(slab, &cache->layout, (uintptr_t)object) != UINT32_MAX;
    return SY_LIKELY(begins) ? cache : NULL;
}

/* The same for the doors that report it. */
static sy_cache *owner_of(const sy_heap *heap, const void *object) {
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    if (SY_LIKELY(cache != NULL)) return cache;
    if (fault == SY_FAULT_FOREIGN_POINTER && sy_watch_passes())
        sy_os_block_free((void *)(uintptr_t)object); /* it is told what that is */
    else
        sy_heap_fault(heap, fault, object, found);
    return NULL;
}

void sy_heap_free(sy_heap *heap, void *object) {
    sy_cache *cache = object ? owner_of(heap, object) : NULL;
    if (cache) sy_cache_free_inline(cache, object);
}

/* Bytes that the program may use of an object that can begin there. */
static size_t size_of(const sy_cache *cache, const void *object) {
    size_t bytes;
    return sy_cache_find_object(cache, object, &bytes) ? bytes : 0;
}

/* Whether what was asked for of it is known. */
static bool is_sized(const sy_cache *cache, const void *object) {
    return sy_cache_checks(cache) || sy_guard_owns((uintptr_t)object);
}

void sy_heap_free_sized(sy_heap *heap, void *object, size_t size) {
    sy_cache *cache = object ? owner_of(heap, object) : NULL;
    if (!cache) return;
    bool of_class = size <= SIZE_MOST && sy_class_size(class_for(size)) == cache->size;
    if (SY_LIKELY(of_class) || (is_sized(cache, object) && size_of(cache, object) == size))
        sy_cache_free_sized(cache, object, size);
    else
        sy_heap_fault(heap, SY_FAULT_WRONG_SIZE, object, NULL);
}

bool sy_heap_try_free(sy_heap *heap, void *object) {
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    return cache && sy_cache_try_free(cache, object);
}

size_t sy_heap_usable_size(const sy_heap *heap, const void *object) {
    sy_fault_kind fault;
    const char *found;
    const sy_cache *cache = cache_at(heap, object, &fault, &found);
    return cache ? size_of(cache, object) : 0;
}

void *sy_heap_realloc(sy_heap *heap, void *object, size_t size) {
    if (!object) return sy_heap_alloc(heap, size);
    sy_fault_kind fault;
    const char *found;
    sy_cache *cache = cache_at(heap, object, &fault, &found);
    if (!cache) {
        sy_heap_fault(heap, fault, object, found);
        errno = EINVAL;
        return NULL;
    }
    size_t have = size_of(cache, object);
    bool stays = size <= SIZE_MOST && sy_class_size(class_for(size)) == cache->size;
    if (stays && !is_sized(cache, object)) return object;
    void *moved = sy_heap_alloc(heap, size);
    if (!moved) return NULL;
    memcpy(moved, object, have < size ? have : size);
    sy_cache_free_inline(cache, object);
    return moved;
}

/* ---- looking ---- */

static sy_cache *first_cache(const sy_heap *heap) {
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++)
        if (sy_heap_cache(heap, i)) return sy_heap_cache(heap, i);
    return NULL;
}

static size_t trim_caches(sy_heap *heap, sy_cache *first) {
    SY_SLOW_PATH(&first->client); /* the heap does not end before */
    size_t bytes = 0;
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache || !sy_client_pin(&cache->client)) continue;
        bytes += sy_cache_trim_slabs(cache);
        sy_client_unpin(&cache->client);
    }
    return bytes + sy_cache_trim_rest(heap->memory, heap->flags & SY_HANDLES);
}

size_t sy_heap_trim(sy_heap *heap) {
    sy_cache *first = first_cache(heap);
    if (!first) return sy_cache_trim_rest(heap->memory, heap->flags & SY_HANDLES);
    size_t bytes = trim_caches(heap, first);
    sy_turn();
    return bytes;
}

static size_t or_none(size_t bytes) { return bytes == SIZE_MAX ? 0 : bytes; }

int sy_heap_get_stats(const sy_heap *heap, sy_heap_stats *stats) {
    if (!heap || !stats) {
        errno = EINVAL;
        return -1;
    }
    *stats = (sy_heap_stats){
        .used = atomic_load_explicit(&heap->quota.used, memory_order_relaxed),
        .limit = or_none(atomic_load_explicit(&heap->quota.hard, memory_order_relaxed)),
        .soft = or_none(atomic_load_explicit(&heap->quota.soft, memory_order_relaxed)),
        .limits_hit = atomic_load_explicit(&heap->quota.hits, memory_order_relaxed),
    };
    memcpy(stats->name, heap->name, sizeof stats->name);
    for (unsigned i = 0; i < SY_HEAP_CACHES; i++) {
        const sy_cache *cache = sy_heap_cache(heap, i);
        if (!cache) continue;
        size_t objects = sy_cache_in_use(cache);
        stats->caches++;
        stats->objects += objects;
        stats->live_bytes += objects * cache->size;
    }
    return 0;
}

/* ==== src/heap/named.c ==== */

/*
 * named.c: objects of a heap by handle. The word of an ordinal has the number of its cache: the
 * heap's table says whether that is one of its own. The word may change at any moment, so that is a
 * guess, and the cache's own door decides.
 */

/* The cache of the heap's whose handle it may be, or NULL. Any 64 bits. */
static sy_cache *cache_of(const sy_heap *heap, sy_handle handle) {
    if (!heap->classes_of || (uint32_t)handle >= sy_ordinals_limit()) return NULL;
    uint64_t word = __atomic_load_n(&sy_directory_words()[(uint32_t)handle], __ATOMIC_RELAXED);
    uint32_t number = (uint32_t)word >> SY_HANDLE_CACHE;
    unsigned class_number = __atomic_load_n(&heap->classes_of[number], __ATOMIC_RELAXED);
    return class_number ? sy_heap_cache(heap, class_number) : NULL;
}

_Static_assert(SY_CLIENTS_MAX == 1 << (32 - SY_HANDLE_CACHE), "a word has any client's number");

void *sy_heap_alloc_handle(sy_heap *heap, size_t size, sy_handle *handle) {
    if (!heap->classes_of) {
        errno = EINVAL;
        return NULL;
    }
    sy_cache *cache = sy_heap_cache_for(heap, size);
    return cache ? sy_handle_alloc_inline(cache, handle) : NULL;
}

void *sy_heap_get(const sy_heap *heap, sy_handle handle) {
    const sy_cache *cache = cache_of(heap, handle);
    return cache ? sy_handle_get_inline(cache, handle) : NULL;
}

bool sy_heap_free_handle(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    return cache && sy_handle_free_inline(cache, handle);
}

void *sy_heap_pin(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    return cache ? sy_handle_pin(cache, handle) : NULL;
}

void sy_heap_unpin(sy_heap *heap, sy_handle handle) {
    sy_cache *cache = cache_of(heap, handle);
    if (cache)
        sy_handle_unpin(cache, handle);
    else
        sy_heap_fault(heap, SY_FAULT_NOT_PINNED, NULL, NULL);
}

int sy_heap_each(sy_heap *heap, sy_handle_visit visit, void *arg) {
    if (!heap->classes_of) {
        errno = EINVAL;
        return -1;
    }
    int result = 0;
    for (unsigned i = 0; i < SY_HEAP_CACHES && result == 0; i++) {
        sy_cache *cache = sy_heap_cache(heap, i);
        if (cache) result = sy_handle_each(cache, visit, arg);
    }
    return result;
}

/* ==== src/keep/leaks.c ==== */

/*
 * leaks.c: see leaks.h. A cache's records are read under its lock and counted into a table of fixed
 * size; when it is too small all is done again with a larger one. Then they are told, without a
 * lock.
 */

/*
 * report.h: what a person is told, in one format: on stderr, or in the file that the option
 * `report` names. Put together in memory of its own, without allocating, one report at a time.
 *
 *     slabyard: double free: 0x7f2 in cache "order" (64 bytes)    what and where; red on a terminal
 *       allocated 1.2 ms ago by thread 4711:                      who, if it is known
 *         #0 make_order at orders.c:17
 *       next: ...                                                 what to do
 *
 * Below: lookup.h, options.h, os/. Used by fault.c and the reports of leaks. Whoever begins a
 * report holds no lock; errno is kept from its beginning to its end.
 */
#ifndef SY_WATCH_REPORT_H
#define SY_WATCH_REPORT_H

/*
 * lookup.h: the lines of the stacks that a report tells. A look-up costs a child process that reads
 * debug information (symbols.h). A caller that tells many stacks in one report therefore names the
 * later ones, and one child looks up as many as there is room for, each address once.
 *
 * Below: symbols.h. Used by report.c, under its lock.
 */
#ifndef SY_WATCH_LOOKUP_H
#define SY_WATCH_LOOKUP_H

/* Sets the next stack that will be told. False: there is none. */
typedef bool sy_lookup_next(void *arg, const void *const **frames, size_t *depth);

/* Nothing is known: what an address is of may have changed since the last report. */
void sy_lookup_forget(void);

/*
 * Finds the lines of a stack (of its first SY_SYMBOLS_MAX frames), as sy_symbols_find does, unless
 * all are known. If it finds any, it also finds lines of the stacks that `next` (NULL: none) tells,
 * as far as there is room, and forgets all others.
 */
void sy_lookup_stack(const void *const *frames, size_t depth, bool deep, sy_lookup_next *next,
                     void *arg);

/* The lines of a frame; NULL: they are not known. Those of the stack that was found last are. */
const char *sy_lookup_lines(const void *frame);

#endif

/* Begins a report; others wait. If this thread is in one already: false, and nothing is to be
 * done. What is longer than 64 KiB is cut off, and the report says so. */
bool sy_report_begin(void);
/* Writes what there is, and lets others. If the file cannot be written: to stderr, and says so. */
void sy_report_end(void);
/* In the child of a fork nobody is in a report. */
extern SY_HIDDEN const sy_part sy_report_part;

/* A line that is no report: written at once, whatever reports are being made; locks may be held,
 * but that of the options. errno is kept. */
void sy_report_line(const char *line, size_t bytes);

void sy_report_text(const char *text);
void sy_report_number(uint64_t value);
void sy_report_hex(uint64_t value);
/* "1.2 ms", "64 KiB", "1 byte" */
void sy_report_time(uint64_t ns);
void sy_report_bytes(uint64_t bytes);
/* "65536 bytes", "1 byte" */
void sy_report_exactly(uint64_t bytes);
/* The headline is emphasised between these, on a terminal. */
void sy_report_loud(void);
void sy_report_quiet(void);
/*
 * Lines of a stack, each with `indent` before, numbered from #0: the program's function that made
 * the call. Left out are functions of Slabyard and of the libraries of C++ and Rust that it called
 * to get there, and what the C library and Rust's runtime do around main and a thread's function.
 */
void sy_report_stack(const void *const *frames, size_t depth, const char *indent);
/* The same in two steps: the lines are found, and told. Between them: whether Rust's runtime made
 * the call for itself, before main or for what it keeps. `next` (NULL: none) tells the stacks that
 * are told after this one, so that their lines are found together (lookup.h). */
void sy_report_look(const void *const *frames, size_t depth, sy_lookup_next *next, void *arg);
bool sy_report_sees_runtime_alone(void);
void sy_report_looked(const char *indent);
/* Which thread writes the report, and the stack (stack.h) of where it is. */
void sy_report_place(uint32_t stack);
/* What was done ("freed"), when, by whom: a line, and one for each frame; nothing if that was not
 * noted (no frames and no thread). */
void sy_report_trace(const char *done, const sy_trace *trace);
/* `bytes` in hex, 16 in a line, counted from `offset`:  +64  41 00 ...  A. */
void sy_report_dump(const void *start, size_t bytes, ptrdiff_t offset, const char *indent);

#endif
/*
 * stack.h: where the program is: stacks, each kept once, by number.
 *
 * A stack is taken by frame pointers where they lead along one that unwinding tables have
 * confirmed, else by tables (_Unwind_Backtrace); the option `unwind` can demand either. Those taken
 * are kept in a table that only grows, of address space reserved at first use and touched as it
 * fills: the same stack has the same number for as long as the process lives, and is found without
 * a lock.
 *
 * Takes no memory of malloc's. Below: options.h, os/.
 */
#ifndef SY_WATCH_STACK_H
#define SY_WATCH_STACK_H

enum { SY_STACK_DEPTH_MAX = 64 };

/* The number of the calling thread's stack, the library's own innermost frames included (they are
 * left out by name when it is shown); 0: it could not be taken or kept, or this thread is taking
 * one already. errno is kept. */
uint32_t sy_stack_here(void);

/* The same, however deep it is. */
uint32_t sy_stack_whole(void);

/* Whether a frame is on the thread's own stack, and not on one of signals or of coroutines, whose
 * bounds nobody knows. Reads a file at a thread's first call. */
bool sy_stack_is_own(uintptr_t frame);

/* The same from `code` outwards, an instruction that the signal interrupted whose handler calls
 * this; 0 also if it is not found there. */
uint32_t sy_stack_from(uintptr_t code);

/* The number of a stack that is given, `depth` frames of it (1 to SY_STACK_DEPTH_MAX); 0: it could
 * not be kept. errno is kept. */
uint32_t sy_stack_keep(const void *const *frames, size_t depth);

/* The frames of a stack: return addresses, the innermost first. How many; 0 for number 0 and for
 * what is no number. */
size_t sy_stack_frames(uint32_t stack, const void *const **frames);

/* Bytes that the table has committed, and stacks in it. */
size_t sy_stack_bytes(void);
size_t sy_stack_count(void);

#endif

typedef struct sy_group {
    char cache[SY_CACHE_NAME_MAX + 1];
    unsigned number; /* of the cache's client */
    uint32_t stack, thread;
    size_t objects, bytes;
    uint64_t oldest, newest; /* allocated */
    const void *example;
} sy_group;

/* The groups lie in `group` in the order they were found; `index` leads there. */
typedef struct sy_groups {
    bool done, full;
    size_t count, room;
    uint32_t *index; /* INDEX_PER_ROOM * room: a group's number and 1; 0: none */
    sy_group group[];
} sy_groups;

enum { FIRST_ROOM = 1024, INDEX_PER_ROOM = 2 };

/* ---- counting ---- */

/* The place of a group in the index, or where it would be. */
static uint32_t *keep_leaks_place_of(const sy_groups *groups, unsigned number, uint32_t stack) {
    size_t mask = INDEX_PER_ROOM * groups->room - 1;
    uint64_t hash = ((uint64_t)number << 32 | stack) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = hash >> 32 & mask;; at = (at + 1) & mask) {
        uint32_t found = groups->index[at];
        if (!found) return &groups->index[at];
        const sy_group *group = &groups->group[found - 1];
        if (group->number == number && group->stack == stack) return &groups->index[at];
    }
}

static void begin_group(sy_groups *groups, uint32_t *place, const sy_cache *cache,
                        const sy_stamp *allocated) {
    sy_group *group = &groups->group[groups->count++];
    *place = (uint32_t)groups->count;
    memcpy(group->cache, cache->name, sizeof group->cache);
    group->number = cache->client.number;
    group->stack = allocated->stack;
    group->oldest = UINT64_MAX;
}

static void count_object(sy_groups *groups, const sy_cache *cache, const void *object,
                         const sy_live *live) {
    const sy_stamp *allocated = &live->allocated;
    uint32_t *place = keep_leaks_place_of(groups, cache->client.number, allocated->stack);
    if (!*place) {
        groups->full = groups->full || groups->count == groups->room;
        if (groups->full) return;
        begin_group(groups, place, cache, allocated);
    }
    sy_group *group = &groups->group[*place - 1];
    group->objects++;
    group->bytes += live->size;
    if (allocated->time > group->newest) group->newest = allocated->time;
    if (allocated->time >= group->oldest) return;
    group->oldest = allocated->time;
    group->thread = allocated->thread;
    group->example = object;
}

static void count_slab(sy_groups *groups, const sy_cache *cache, const sy_slab *slab) {
    const sy_record *records = sy_watched_records(cache, slab);
    for (uint32_t index = 0; index < slab->slots; index++) {
        sy_live live;
        const void *object = (void *)(slab->first + index * cache->layout.slot);
        if (sy_record_live(&records[index], &live)) count_object(groups, cache, object, &live);
    }
}

typedef struct sy_counting {
    sy_groups *groups;
    const sy_cache *cache;
} sy_counting;

static void count_guarded(void *counting_, const void *object, const sy_record *record) {
    const sy_counting *counting = counting_;
    sy_live live;
    if (!counting->groups->full && sy_record_live(record, &live))
        count_object(counting->groups, counting->cache, object, &live);
}

static void count_cache(sy_groups *groups, sy_cache *cache) {
    if (!(cache->flags & SY_AUDIT)) return;
    sy_counting counting = {groups, cache};
    if (sy_cache_guards(cache)) sy_guard_each(cache->watch, count_guarded, &counting);
    sy_lock_acquire(&cache->lock);
    for (const sy_slab *slab = cache->slabs; slab && !groups->full; slab = slab->next)
        count_slab(groups, cache, slab);
    sy_lock_release(&cache->lock);
}

/* One cache, or all for NULL. */
static void count_all(sy_groups *groups, sy_cache *cache) {
    sy_client *client;
    if (cache) {
        count_cache(groups, cache);
        return;
    }
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) count_cache(groups, client->config.owner);
        sy_client_unpin(client);
    }
}

/* ---- a table of them ---- */

static size_t whole_pages(size_t bytes) { return sy_round_up(bytes, sy_os_page_size()); }

static size_t groups_bytes(size_t room) {
    return whole_pages(sizeof(sy_groups) + room * sizeof(sy_group));
}

static size_t index_bytes(size_t room) {
    return whole_pages(room * INDEX_PER_ROOM * sizeof(uint32_t));
}

static sy_groups *take_groups(size_t room) {
    return sy_pages_take(groups_bytes(room), sy_os_page_size(), "slabyard leaks");
}

static void give_groups(sy_groups *groups, size_t room) {
    sy_pages_give(groups, groups_bytes(room));
}

/* Counts into a table of that room, which reads as zero. */
static void fill_groups(sy_groups *groups, size_t room, sy_cache *cache) {
    size_t bytes = index_bytes(room);
    groups->index = sy_pages_take(bytes, sy_os_page_size(), "slabyard leaks");
    if (!groups->index) return;
    groups->room = room;
    count_all(groups, cache);
    sy_pages_give(groups->index, bytes);
    groups->done = true;
}

typedef struct sy_question {
    size_t room;
    sy_cache *cache;
    uintptr_t stack;
} sy_question;

/* In a copy of the process. */
static void answer(const void *question, void *groups) {
    const sy_question *asked = question;
    sy_tool_enter(); /* what is looked through may never have been written */
    if (sy_reach_all(asked->stack)) fill_groups(groups, asked->room, asked->cache);
    sy_tool_leave();
}

/* Those that nothing points to, by a copy in which every structure is whole. */
static bool ask_copy(sy_groups *groups, const sy_question *question) {
    sy_start_lock_all();
    return sy_os_ask_copy(answer, question, groups, groups_bytes(question->room),
                          sy_start_unlock_all) == 0;
}

/* NULL: it could not be found out. */
static sy_groups *find_groups(unsigned flags, sy_question *question) {
    for (question->room = FIRST_ROOM;; question->room *= 2) {
        sy_groups *groups = take_groups(question->room);
        if (!groups) return NULL;
        if (flags & SY_LEAKS_UNREACHABLE)
            ask_copy(groups, question);
        else
            fill_groups(groups, question->room, question->cache);
        if (groups->done && !groups->full) return groups;
        bool done = groups->done;
        give_groups(groups, question->room);
        if (!done) return NULL;
    }
}

/* ---- telling ---- */

/* Those with the most bytes first, of as many the oldest. */
static bool keep_leaks_is_before(const sy_group *a, const sy_group *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->oldest < b->oldest;
}

/* Shell's method, without memory. */
static void keep_leaks_sort(sy_groups *groups) {
    sy_group *group = groups->group;
    for (size_t gap = groups->count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < groups->count; i++) {
            sy_group moved = group[i];
            size_t at = i;
            for (; at >= gap && keep_leaks_is_before(&moved, &group[at - gap]); at -= gap)
                group[at] = group[at - gap];
            group[at] = moved;
        }
}

static sy_leak leak_of(const sy_group *group, uint64_t now) {
    const sy_stamp allocated = {group->oldest, group->stack, group->thread};
    return (sy_leak){
        .cache = group->cache,
        .objects = group->objects,
        .bytes = group->bytes,
        .oldest = now - group->oldest,
        .newest = now - group->newest,
        .example = group->example,
        .allocated = sy_stamp_trace(&allocated),
    };
}

/* What is done with the groups, sorted. */
typedef int sy_groups_use(void *arg, const sy_groups *groups);

/* The caller's frames begin at this one's, with what registers they have need of in it. */
static __attribute__((noinline)) int with_groups(sy_cache *cache, unsigned flags,
                                                 sy_groups_use *use, void *arg) {
    int error = errno, result = 0;
    sy_question question = {.cache = cache, .stack = (uintptr_t)__builtin_frame_address(0)};
    sy_groups *groups = find_groups(flags, &question);
    if (!groups) {
        errno = ENOMEM;
        return -1;
    }
    keep_leaks_sort(groups);
    errno = error;
    result = use(arg, groups);
    give_groups(groups, question.room);
    return result;
}

static int find_leaks(sy_cache *cache, unsigned flags, sy_groups_use *use, void *arg) {
    if (flags & ~(unsigned)SY_LEAKS_UNREACHABLE) {
        errno = EINVAL;
        return -1;
    }
    __builtin_unwind_init(); /* all registers that a callee keeps go into this frame */
    int result = with_groups(cache, flags, use, arg);
    __asm__ volatile("" ::: "memory"); /* so that the frame stays until then */
    return result;
}

typedef struct sy_visitor {
    int (*visit)(void *arg, const sy_leak *leak);
    void *arg;
} sy_visitor;

static int visit_each(void *visitor_, const sy_groups *groups) {
    const sy_visitor *visitor = visitor_;
    uint64_t now = sy_os_now();
    int result = 0;
    for (size_t i = 0; i < groups->count && result == 0; i++) {
        sy_leak leak = leak_of(&groups->group[i], now);
        SY_CALLBACK(call, .function = "visitor of sy_each_leak");
        result = visitor->visit(visitor->arg, &leak);
        call.returned = true;
    }
    return result;
}

int sy_each_leak(sy_cache *cache, unsigned flags, int (*visit)(void *arg, const sy_leak *leak),
                 void *arg) {
    sy_visitor visitor = {visit, arg};
    return find_leaks(cache, flags, visit_each, &visitor);
}

/* ---- the report ---- */

typedef struct sy_total {
    size_t objects, bytes;
    bool writing; /* there is a report */
} sy_total;

/* The groups whose stacks come next in the report. */
typedef struct sy_later {
    const sy_group *next, *end;
} sy_later;

static void add_objects(size_t objects) {
    sy_report_number(objects);
    sy_report_text(objects == 1 ? " object" : " objects");
}

/* slabyard: 3 objects leaked: 192 bytes in cache "order", allocated 1.2 s to 3 s ago by: */
static void add_leak_headline(const sy_leak *leak) {
    sy_report_loud();
    sy_report_text("slabyard: ");
    add_objects(leak->objects);
    sy_report_text(" leaked: ");
    sy_report_bytes(leak->bytes);
    sy_report_text(" in cache \"");
    sy_report_text(leak->cache);
    sy_report_text("\"");
    sy_report_quiet();
    sy_report_text(", allocated ");
    if (leak->objects > 1) {
        sy_report_time(leak->newest);
        sy_report_text(" to ");
    }
    sy_report_time(leak->oldest);
    sy_report_text(leak->allocated.depth ? " ago by:\n" : " ago\n");
}

static bool next_stack(void *later_, const void *const **frames, size_t *depth) {
    sy_later *later = later_;
    if (later->next == later->end) return false;
    *depth = sy_stack_frames(later->next++->stack, frames);
    return true;
}

static void add_leak(sy_total *total, const sy_leak *leak, sy_later later) {
    const sy_trace *by = &leak->allocated;
    if (total->writing) sy_report_look(by->frames, by->depth, next_stack, &later);
    if (total->writing && sy_report_sees_runtime_alone()) return;
    total->objects += leak->objects;
    total->bytes += leak->bytes;
    if (!total->writing) return;
    add_leak_headline(leak);
    sy_report_looked("    ");
}

static int add_leaks(void *total_, const sy_groups *groups) {
    sy_total *total = total_;
    const sy_group *end = groups->group + groups->count;
    uint64_t now = sy_os_now();
    if (groups->count) total->writing = sy_report_begin();
    for (const sy_group *group = groups->group; group < end; group++) {
        sy_leak leak = leak_of(group, now);
        add_leak(total, &leak, (sy_later){group + 1, end});
    }
    return 0;
}

static void add_total(const sy_total *total) {
    sy_report_text("  total: ");
    add_objects(total->objects);
    sy_report_text(", ");
    sy_report_bytes(total->bytes);
    sy_report_text("\n");
}

static void add_failure(void) {
    if (!sy_report_begin()) return;
    sy_report_text("slabyard: leaks could not be looked for: no memory, or the system does not "
                   "tell what is in use\n");
    sy_report_end();
}

size_t sy_report_leaks(sy_cache *cache, unsigned flags) {
    sy_total total = {0};
    int error = errno;
    if (find_leaks(cache, flags, add_leaks, &total) != 0) add_failure();
    if (total.objects && total.writing) add_total(&total);
    if (total.writing) sy_report_end();
    errno = error;
    return total.objects;
}

/* ---- by the option ---- */

static unsigned keep_leaks_option(void) {
    return atomic_load_explicit(&sy_options_now.leaks, memory_order_relaxed);
}

void sy_leaks_at_destroy(sy_cache *cache) {
    if (keep_leaks_option() & SY_LEAKS_AT_DESTROY && cache->flags & SY_AUDIT) sy_report_leaks(cache, 0);
}

static void tell_at_exit(void) {
    unsigned now = keep_leaks_option();
    if (!(now & SY_LEAKS_AT_EXIT)) return;
    size_t found = sy_report_leaks(NULL, now & SY_LEAKS_LOST ? SY_LEAKS_UNREACHABLE : 0);
    unsigned status = atomic_load_explicit(&sy_options_now.leak_status, memory_order_relaxed);
    if (found && status) sy_os_end((int)status);
}

static int watch_destroys(void) {
    sy_cache_on_destroy(sy_leaks_at_destroy);
    return 0;
}

static int announce_leaks(void) {
    return keep_leaks_option() & SY_LEAKS_AT_EXIT ? sy_os_at_exit(tell_at_exit) : 0;
}

const sy_part sy_leaks_part = {.start = watch_destroys, .finish = announce_leaks};

/* ==== src/keep/maintenance.c ==== */

/*
 * maintenance.c: the thread that does passes by age, where a program wants one.
 *
 *     OFF --start--> RUNS --stop--> ENDING --the thread--> OFF
 */
/*
 * reclaim.h: passes, by which unused memory goes back to the OS, and the thread of maintenance.
 *
 * A *pass* goes through all clients and chunks in steps that are bounded in time. One is at work at
 * most; whoever comes by a slow path while it is does a step of it. There are two kinds:
 *
 *     by age      once a decay time: what was not used since the pass before goes to the OS
 *     by growth   when caches have made a sixteenth more of slabs: what magazines and empty slabs
 *                 of others hold, and did not want since the pass before, goes to the chunks
 *
 * Beside, each thread looks through its own loaded slots, which nobody else may touch.
 *
 * A step is what a thread does in its turn (magazine/turn.h). Below: all layers up to cache/.
 */
#ifndef SY_KEEP_RECLAIM_H
#define SY_KEEP_RECLAIM_H

/* One pass by age from begin to end, unless one is at work already: then the rest of it. */
void sy_reclaim_by_age(void);

/* Nanoseconds from one pass by age to the next; 0: there are none. */
uint64_t sy_reclaim_interval(void);

/* Turns begin. In the child of a fork no pass is at work. */
extern SY_HIDDEN const sy_part sy_reclaim_part;

/* Whether the thread of maintenance runs, so that others leave passes by age to it. */
bool sy_maintenance_runs(void);
/* The options of which this layer and those below are told late. In the child of a fork the thread
 * does not run. */
extern SY_HIDDEN const sy_part sy_maintenance_part;

#endif

enum { OFF, RUNS, ENDING };

static const uint64_t keep_maintenance_LOOK_NS = 1000000000; /* from one look at the decay to the next, at most */

static _Atomic uint32_t keep_maintenance_state;
static SY_TLS bool is_it; /* this thread is the one */

bool sy_maintenance_runs(void) {
    return atomic_load_explicit(&keep_maintenance_state, memory_order_relaxed) == RUNS;
}

/* Whoever stops it, or starts it again, waits for that. */
static void become_off(void) {
    atomic_store_explicit(&keep_maintenance_state, OFF, memory_order_release);
    sy_os_wake(&keep_maintenance_state, 1 << 20);
}

/* Sleeps until the next pass is due, by the decay of then; false: it was stopped. */
static bool wait_until_due(void) {
    uint64_t began = sy_os_now();
    while (atomic_load_explicit(&keep_maintenance_state, memory_order_acquire) == RUNS) {
        uint64_t interval = sy_reclaim_interval(), past = sy_os_now() - began;
        if (interval && past >= interval) return true;
        uint64_t left = interval ? interval - past : keep_maintenance_LOOK_NS;
        sy_os_wait_for(&keep_maintenance_state, RUNS, left < keep_maintenance_LOOK_NS ? left : keep_maintenance_LOOK_NS);
    }
    return false;
}

static void *keep_maintenance_run(void *unused) {
    is_it = true;
    while (wait_until_due()) sy_reclaim_by_age();
    become_off();
    return unused;
}

int sy_maintenance_start(void) {
    if (sy_start() != 0) return -1; /* a fork is noticed from then on */
    for (;;) {
        uint32_t seen = OFF;
        if (atomic_compare_exchange_strong(&keep_maintenance_state, &seen, RUNS)) break;
        if (seen == RUNS) return 0;
        if (is_it && atomic_compare_exchange_strong(&keep_maintenance_state, &seen, RUNS)) return 0; /* it goes on */
        if (!is_it) sy_os_wait(&keep_maintenance_state, seen);
    }
    if (sy_os_start_thread(keep_maintenance_run, NULL) == 0) return 0;
    become_off();
    return -1;
}

void sy_maintenance_stop(void) {
    uint32_t seen = RUNS;
    if (atomic_compare_exchange_strong(&keep_maintenance_state, &seen, ENDING)) {
        sy_os_wake(&keep_maintenance_state, 1 << 20);
        seen = ENDING;
    }
    while (seen == ENDING && !is_it) {
        sy_os_wait(&keep_maintenance_state, ENDING);
        seen = atomic_load_explicit(&keep_maintenance_state, memory_order_acquire);
    }
}

static void forget_thread(void) { atomic_store(&keep_maintenance_state, OFF); }

/* ---- options ---- */

static void tell_no_thread(void) {
    static const char line[] = "slabyard: the thread that the option \"maintenance\" asks for "
                               "cannot be started\n";
    sy_os_write(2, line, sizeof line - 1);
}

/* Carries out what was said in options since the last time. */
static void apply_options(void) {
    int error = errno;
    uint64_t value;
    sy_fail_apply_option();
    if (sy_options_take(SY_LATE_DECAY, &value)) sy_set_decay(value);
    if (sy_options_take(SY_LATE_LIMIT, &value)) sy_set_limit(&(sy_limit){.hard = (size_t)value});
    if (sy_options_take(SY_LATE_MAINTENANCE, &value)) {
        if (!value) sy_maintenance_stop();
        if (value && sy_maintenance_start() != 0) tell_no_thread();
    }
    errno = error;
}

static int obey_options(void) {
    sy_options_on_change(apply_options);
    apply_options();
    return 0;
}

const sy_part sy_maintenance_part = {.finish = obey_options, .recover = forget_thread};

/* ==== src/keep/parts.c ==== */

/*
 * parts.c: the list of all parts of the library, for the start and for forks (os/start.h).
 */
/*
 * checked.h: pools that look for mistakes: the same doors over other means.
 *
 *     slots:    | zone | object 0 | zone | zone | object 1 | zone | ...
 *     records:  | of slot 0 | of slot 1 | ...
 *     free:     | number | number | ...             of the slots freed, the last on top
 *
 * Each of the three is one range of addresses, committed as it is used.
 *
 * The inline words of such a pool are all NULL, which shuts its bump pointer and its list: an
 * allocation comes to sy_pool_grow, and so to sy_checked_pool_alloc. A free that was compiled in
 * (without SY_NO_INLINE) cannot be shut: it puts the object on the inline list, from where it is
 * given again, unseen.
 *
 * All such pools are in one list, so that sy_verify and the end of the process find them. A thread
 * may use its pool while another one verifies it: the records are atomic, and a reset or a destroy
 * keeps the pool from being looked at meanwhile. But while damage in a pool is being reported, no
 * other thread may destroy the pool.
 *
 * Used by pool.c, calls.c and keep/. Below: watch/, os/.
 */
#ifndef SY_POOL_CHECKED_H
#define SY_POOL_CHECKED_H

/* A pool of the other kind has an extent. */
static inline bool sy_pool_is_checked(const sy_pool *pool) { return pool->extent == NULL; }

/* `checks`: flags of checks.h; the configuration is valid. NULL with ENOMEM. */
sy_pool *sy_checked_pool_create(const sy_pool_config *config, size_t align, unsigned checks);
void sy_checked_pool_destroy(sy_pool *pool);
void *sy_checked_pool_alloc(sy_pool *pool);
void sy_checked_pool_free(sy_pool *pool, void *object);
/* The object was freed inline, and is so again. */
void sy_checked_pool_freed_twice(const sy_pool *pool, const void *object);
void sy_checked_pool_reset(sy_pool *pool);
size_t sy_checked_pool_in_use(const sy_pool *pool);
size_t sy_checked_pool_slot_size(const sy_pool *pool);
size_t sy_checked_pool_capacity(const sy_pool *pool);
/* Objects that are damaged; each is reported. */
size_t sy_checked_pool_verify(const sy_pool *pool);

/* The same for all pools that check. Any thread, while others use their pools. */
size_t sy_checked_pools_verify(void);

extern SY_HIDDEN const sy_part sy_pools_part;

#endif
/*
 * tags.h: allocations counted by the part of the program that makes them (slabyard/audit.h).
 *
 * A tag is a number; its counters and its name are in tables of fixed size, for ever. An object's
 * record keeps the tag of its allocation, so that a free by any thread counts where it belongs.
 *
 * Above: watch.c. Below: os/.
 */
#ifndef SY_WATCH_TAGS_H
#define SY_WATCH_TAGS_H

/* Counts an allocation by this thread; the tag that it has. */
sy_tag sy_tag_count_allocation(size_t size);

/* Counts the end of an object of that tag. */
void sy_tag_count_free(sy_tag tag, size_t size);

/* Around a fork nobody is in the midst of adding a name. */
extern SY_HIDDEN const sy_part sy_tags_part;

#endif

/* By the rank of their locks. A part without one stands outside of all parts that it uses. */
const sy_part *const sy_parts[] = {
    &sy_maintenance_part, /* the options that it and the layers below carry out */
    &sy_reclaim_part,     &sy_leaks_part,  &sy_account_part,
    &sy_limits_part,      &sy_epochs_part, /* SY_RANK_EPOCHS */
    &sy_threads_part,                      /* SY_RANK_THREADS */
    &sy_caches_part,                       /* SY_RANK_CACHE */
    &sy_arenas_part,                       /* SY_RANK_ARENAS, SY_RANK_ARENA */
    &sy_memory_part,                       /* SY_RANK_MEMORIES to SY_RANK_SIDE */
    &sy_passed_part,                       /* SY_RANK_PASSED */
    &sy_store_part,                        /* SY_RANK_STORE */
    &sy_pools_part,                        /* SY_RANK_POOLS */
    &sy_report_part,      &sy_guard_part,  /* SY_RANK_GUARD */
    &sy_fail_part,                         /* SY_RANK_FAILURES */
    &sy_options_part,                      /* SY_RANK_OPTIONS */
    &sy_tags_part,                         /* SY_RANK_TAGS */
    &sy_tools_part,                        /* SY_RANK_TOOLS */
};

const size_t sy_part_count = sizeof sy_parts / sizeof *sy_parts;

/* ==== src/keep/reach.c ==== */

/*
 * reach.c: which objects something points to, as far as can be told from memory alone: a word that
 * is the address of any byte of a live object of a cache with SY_AUDIT, or its handle, reaches that
 * object, and is looked for
 *
 *   - in what the process has written of its private memory, as it is: data, stacks, other heaps;
 *   - in objects of caches without SY_AUDIT, in spans, and in what is being allocated or freed;
 *     guarded objects, on their pages, are among these;
 *   - in the objects that are reached so
 *
 * and not in the library's own tables, which have the address of everything, nor in memory that
 * holds no object at present. (As findleaks of illumos' mdb and LeakSanitizer do it.)
 *
 * All of it runs in a copy of the process: so the library's tables stand still, no object changes
 * while it is read, and what is in the way can be overwritten:
 *
 *     what is overwritten              in the original         in the copy
 *     record of an object, `word`      LIVE                    FREE once the object is reached
 *     the same, `freed.time`           when it was freed       the next object to look through
 *     boundary tag of an arena of      the address of a span   0, so that it reaches nothing
 *       addresses, `start`               or segment
 *
 * Below: all layers up to cache/.
 */
/*
 * store.h: magazines and where they come from.
 *
 * A magazine is a header and an array of items, both type-stable: a number names the same magazine
 * for ever, and reading a header that somebody else has taken meanwhile is harmless. The memory of
 * the items of unused magazines goes back to the OS on trim; headers stay.
 *
 *     segment:  | header 0 | header 1 | ... | header 4095 | items of 0 | items of 1 | ...
 *                 64 bytes each                             1 KiB each: | 0 | 127 items |
 *
 * The word before the items of a magazine is 0 for ever: a free that compares with the newest item
 * (sy_loaded_push_once) reads it when the magazine is empty, and meets no other magazine's items.
 *
 * Below: os. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_STORE_H
#define SY_MAGAZINE_STORE_H

enum {
    SY_MAGAZINE_WORDS = 128, /* of memory of each: a word that stays 0, then the items */
    SY_MAGAZINE_ITEMS = SY_MAGAZINE_WORDS - 1, /* most items in one */
    SY_MAGAZINES_PER_SEGMENT = 4096,
    SY_MAGAZINE_NUMBER_BITS = 20, /* so 2^20 magazines: 127 Mi items can wait in them */
    SY_MAGAZINE_SEGMENTS = (1 << SY_MAGAZINE_NUMBER_BITS) / SY_MAGAZINES_PER_SEGMENT,
};

typedef struct sy_magazine {
    /* While in a depot stack; read by threads that lose the race for it. */
    alignas(64) _Atomic uint32_t next; /* number of the one below; 0: none */
    _Atomic uint32_t home;             /* shard that it was put into */
    _Atomic uint64_t items_down;       /* items in it and in all below it */
    /* While out of the store. */
    _Atomic uint32_t count;    /* items, while it is not loaded */
    uint32_t number;           /* for ever; 0 names no magazine */
    uintptr_t *items;          /* SY_MAGAZINE_ITEMS of them; for ever */
    struct sy_magazine *chain; /* for whoever holds it alone */
} sy_magazine;

extern SY_HIDDEN _Atomic(sy_magazine *) sy_magazine_segments[SY_MAGAZINE_SEGMENTS];

/* The magazine of that number, which was given out once. */
static inline sy_magazine *sy_magazine_of(uint32_t number) {
    sy_magazine *segment = atomic_load_explicit(
        &sy_magazine_segments[number / SY_MAGAZINES_PER_SEGMENT], memory_order_acquire);
    return &segment[number % SY_MAGAZINES_PER_SEGMENT];
}

/* An empty magazine, or NULL with errno ENOMEM. */
sy_magazine *sy_store_take(void);
void sy_store_put(sy_magazine *magazine);

/* Gives the memory of unused magazines back; returns bytes. */
size_t sy_store_trim(void);
/* The same in steps, as sy_magazine_trim_step. */
bool sy_store_trim_step(unsigned *at, bool aged, size_t *bytes);

/* Bytes of magazines that hold memory, in whole pages. */
size_t sy_store_bytes(void);

/* Calls for the memory of each segment, with the lock held. */
void sy_store_each_segment(void (*visit)(const void *start, size_t bytes, void *arg), void *arg);

/* Violations of the store's invariants, 0 when sound. */
size_t sy_store_verify(void);

#endif

/* A range of addresses where nothing is looked for. */
typedef struct keep_reach_sy_range {
    uintptr_t start, end;
} keep_reach_sy_range;

typedef struct sy_reach {
    uintptr_t stack;     /* of the calling thread: from here up */
    uintptr_t low, high; /* objects that can be reached lie in between */
    uint64_t ordinals;   /* those of handles are below */
    uintptr_t waiting;   /* the first object that is to be looked through; 0: none */
    keep_reach_sy_range *own;       /* sorted by address once they are complete */
    size_t own_count, own_room;
    bool failed; /* there was no memory for them */
} sy_reach;

/* ---- the library's own memory ---- */

static size_t bytes_of(size_t ranges) {
    return sy_round_up(ranges * sizeof(keep_reach_sy_range), sy_os_page_size());
}

static void add_own(sy_reach *reach, const void *start, size_t bytes);

/* The table is a range as well, and stays one when it was too small: its address must be nobody
 * else's. */
static bool grow_reached(sy_reach *reach) {
    size_t bytes = bytes_of(reach->own_room + 1) * 2;
    keep_reach_sy_range *more = sy_pages_take(bytes, sy_os_page_size(), "slabyard leaks");
    if (!more) return false;
    for (size_t i = 0; i < reach->own_count; i++) more[i] = reach->own[i];
    reach->own = more;
    reach->own_room = bytes / sizeof *more;
    add_own(reach, more, bytes);
    return true;
}

static void add_own(sy_reach *reach, const void *start, size_t bytes) {
    if (reach->own_count == reach->own_room && !grow_reached(reach)) {
        reach->failed = true;
        return;
    }
    uintptr_t at = (uintptr_t)start;
    reach->own[reach->own_count++] = (keep_reach_sy_range){at, at + bytes};
}

static void add_piece(const void *start, size_t bytes, void *reach) {
    add_own(reach, start, bytes);
}

/* Spans of the system's memory; and the tags of all, each of which has an address of a span. */
static void take_arena(sy_memory *memory, void *reach) {
    for (sy_boundary *tag = memory->arena->first; tag; tag = tag->next) {
        if (tag->kind == SY_TAG_SPAN && memory->systems)
            add_own(reach, (void *)tag->start, tag->size);
        tag->start = 0;
    }
}

static void take_watch(sy_reach *reach, const sy_watch *watch) {
    if (watch->waiting) add_own(reach, watch->waiting, watch->waiting_max * sizeof(uintptr_t));
    if (watch->history) add_own(reach, watch->history, sy_history_bytes(watch->history));
}

/* ---- caches ---- */

/* What an owner was may be gone; its memory is side memory still, and says something else. */
static bool is_listed(const sy_slab *slab) {
    const sy_cache *cache = slab->owner;
    if (!cache) return false;
    return slab == (slab->previous ? slab->previous->next : cache->slabs);
}

static void take_cache(sy_reach *reach, sy_cache *cache) {
    if (cache->watch) take_watch(reach, cache->watch);
    if (!(cache->flags & SY_AUDIT)) return;
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next) {
        if (slab->start < reach->low) reach->low = slab->start;
        if (slab->start + slab->bytes > reach->high) reach->high = slab->start + slab->bytes;
    }
}

static void keep_reach_each_cache(sy_reach *reach, void (*visit)(sy_reach *reach, sy_cache *cache)) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) visit(reach, client->config.owner);
        sy_client_unpin(client);
    }
}

/* The record of what is on the pages of its own that an address lies in, if it is of a cache with
 * SY_AUDIT. */
static sy_record *audited_at(uintptr_t address, uintptr_t *object) {
    sy_watch *watch;
    sy_record *record = sy_guard_record(address, object, &watch);
    return record && watch && watch->checks & SY_AUDIT ? record : NULL;
}

/* The object there, if it is live. */
static sy_record *guarded_at(uintptr_t address, uintptr_t *object) {
    sy_record *record = audited_at(address, object);
    return record && sy_record_state(record) == SY_OBJECT_LIVE ? record : NULL;
}

/* ---- words ---- */

/* Shell's method: there are few, and no memory for better ones. */
static void sort_own(sy_reach *reach) {
    keep_reach_sy_range *own = reach->own;
    for (size_t gap = reach->own_count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < reach->own_count; i++) {
            keep_reach_sy_range range = own[i];
            size_t at = i;
            for (; at >= gap && own[at - gap].start > range.start; at -= gap)
                own[at] = own[at - gap];
            own[at] = range;
        }
}

/* The object in whose slot an address lies, if that is live and of a cache with SY_AUDIT. */
static sy_record *live_at(uintptr_t address, uintptr_t *object) {
    const sy_slab *slab = sy_slab_at(address);
    if (!slab || !is_listed(slab)) return NULL;
    const sy_cache *cache = slab->owner;
    if (!(cache->flags & SY_AUDIT) || address < slab->first) return NULL;
    uint64_t index = (address - slab->first) / cache->layout.slot;
    if (index >= slab->slots) return NULL;
    sy_record *record = &sy_watched_records(cache, slab)[index];
    *object = slab->first + index * cache->layout.slot;
    return sy_record_state(record) == SY_OBJECT_LIVE ? record : NULL;
}

/* Whether the byte at an address is one of `size` from `object` on, or there are none. */
static bool is_within(uintptr_t address, uintptr_t object, size_t size) {
    return address - object < (size ? size : 1);
}

static void reach_address(sy_reach *reach, uintptr_t address) {
    uintptr_t object;
    bool guarded = sy_guard_owns(address);
    sy_record *record = guarded ? guarded_at(address, &object) : live_at(address, &object);
    if (!record || !is_within(address, object, sy_record_size(record))) return;
    atomic_store_explicit(&record->word, SY_OBJECT_FREE, memory_order_relaxed);
    record->freed.time = reach->waiting;
    reach->waiting = object;
}

/* A handle (slabyard/handle.h) reaches its object. */
static void reach_handle(sy_reach *reach, sy_handle handle) {
    if (!(handle >> SY_HANDLE_GENERATION)) return;
    const sy_slab *slab = sy_slab_at(sy_directory_places()[(uint32_t)handle / 64]);
    if (!slab || !is_listed(slab)) return;
    const sy_cache *cache = slab->owner;
    if (cache->flags & SY_HANDLES)
        reach_address(reach, (uintptr_t)sy_handle_get_inline(cache, handle));
}

/* Memory that is the program's, in which sanitizers may see whatever they like. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static void look_through(sy_reach *reach,
                                                                                  uintptr_t start,
                                                                                  uintptr_t end) {
    start = sy_round_up(start, sizeof(uintptr_t));
    for (; start + sizeof(uintptr_t) <= end; start += sizeof(uintptr_t)) {
        uintptr_t word = *(const volatile uintptr_t *)start;
        bool may_be = (word >= reach->low && word < reach->high) || sy_guard_owns(word);
        if (may_be) reach_address(reach, word);
        if ((uint32_t)word < reach->ordinals) reach_handle(reach, word);
    }
}

/* Of an object that has been reached. */
static const sy_record *keep_reach_record_of(uintptr_t object) {
    sy_watch *watch;
    if (sy_guard_owns(object)) return sy_guard_record(object, &object, &watch);
    const sy_slab *slab = sy_slab_at(object);
    const sy_cache *cache = slab->owner;
    uint32_t index = sy_slab_index(slab, &cache->layout, object);
    return &sy_watched_records(cache, slab)[index];
}

/* What is reached may reach more. */
static void look_through_waiting(sy_reach *reach) {
    while (reach->waiting) {
        uintptr_t object = reach->waiting;
        const sy_record *record = keep_reach_record_of(object);
        reach->waiting = (uintptr_t)record->freed.time;
        look_through(reach, object, object + sy_record_size(record));
    }
}

/* ---- memory ---- */

/* Whether what lies in the slot is to be looked through whoever points there. */
static bool is_root(const sy_cache *cache, const sy_slab *slab, uint32_t index) {
    if (!sy_cache_checks(cache)) return !sy_slab_bit(slab->free, index);
    sy_object_state state = sy_record_state(&sy_watched_records(cache, slab)[index]);
    if (state == SY_OBJECT_LIVE) return !(cache->flags & SY_AUDIT);
    return state == SY_OBJECT_TAKEN || state == SY_OBJECT_FREEING;
}

/* A part of a slab. */
static void look_at_slots(sy_reach *reach, const sy_slab *slab, uintptr_t start, uintptr_t end) {
    const sy_cache *cache = slab->owner;
    size_t bytes = cache->layout.slot;
    uint64_t index = start > slab->first ? (start - slab->first) / bytes : 0;
    for (; index < slab->slots && slab->first + index * bytes < end; index++) {
        uintptr_t slot = slab->first + index * bytes, slot_end = slot + bytes;
        if (!is_root(cache, slab, (uint32_t)index)) continue;
        look_through(reach, slot > start ? slot : start, slot_end < end ? slot_end : end);
    }
}

/* A part of a run of units, or of what is none: a slab, a span of the heap, the header of a chunk,
 * free units, and what is being made or given back. */
static void look_at_run(sy_reach *reach, uintptr_t start, uintptr_t end) {
    const sy_slab *run = sy_slab_at(start);
    if (run && is_listed(run))
        look_at_slots(reach, run, start, end);
    else if (run && !run->owner && run->first)
        look_through(reach, start, end);
}

/* A part of a page of guarded objects. One that is live, or has been reached, is not looked through
 * because it is there. */
static void look_at_guarded(sy_reach *reach, uintptr_t start, uintptr_t end) {
    uintptr_t object;
    const sy_record *record = audited_at(start, &object);
    sy_object_state state = record ? sy_record_state(record) : SY_OBJECT_TAKEN;
    if (state == SY_OBJECT_TAKEN || state == SY_OBJECT_FREEING) look_through(reach, start, end);
}

/* The first range that ends after the address, or one that begins nowhere. */
static keep_reach_sy_range own_after(const sy_reach *reach, uintptr_t address) {
    size_t low = 0, high = reach->own_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reach->own[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reach->own_count ? reach->own[low] : (keep_reach_sy_range){UINTPTR_MAX, UINTPTR_MAX};
}

/* Looks at what begins at `start`, `end` at most; where it ended. */
static uintptr_t look_at(sy_reach *reach, uintptr_t start, uintptr_t end) {
    bool units = sy_owner_at(start) != NULL;
    bool guarded = sy_guard_owns(start);
    size_t step = guarded ? sy_os_page_size() : SY_UNIT_BYTES;
    uintptr_t next = sy_round_down(start, step) + step;
    if (units || guarded) {
        if (next > end) next = end;
        (units ? look_at_run : look_at_guarded)(reach, start, next);
        return next;
    }
    keep_reach_sy_range own = own_after(reach, start);
    if (own.start <= start) return own.end < next ? own.end : next;
    if (next > own.start) next = own.start;
    if (next > end) next = end;
    look_through(reach, start, next);
    return next;
}

static void look_at_piece(void *arg, const sy_os_piece *piece) {
    sy_reach *reach = arg;
    uintptr_t start = piece->start;
    bool own_stack = piece->mapping <= reach->stack && reach->stack < piece->mapping_end;
    if (own_stack && start < reach->stack) start = reach->stack;
    while (start < piece->end) start = look_at(reach, start, piece->end);
    look_through_waiting(reach);
}

/* The program's own memory need not be private to the process. */
static void look_at_shared(sy_reach *reach, sy_cache *cache) {
    if (cache->memory == &sy_memory_main) return;
    for (const sy_slab *slab = cache->slabs; slab; slab = slab->next)
        look_at_slots(reach, slab, slab->start, slab->start + slab->bytes);
    look_through_waiting(reach);
}

bool sy_reach_all(uintptr_t stack) {
    sy_reach reach = {.stack = stack, .low = UINTPTR_MAX};
    reach.ordinals = sy_ordinals_limit();
    const void *directory;
    size_t bytes = sy_directory_range(&directory);
    if (bytes) add_own(&reach, directory, bytes);
    const void *table = sy_guard_table(&bytes);
    if (bytes) add_own(&reach, table, bytes);
    sy_side_each_area(add_piece, &reach);
    sy_header_each_area(add_piece, &reach);
    sy_store_each_segment(add_piece, &reach);
    sy_memory_each(take_arena, &reach);
    keep_reach_each_cache(&reach, take_cache);
    if (reach.failed) return false;
    sort_own(&reach);
    keep_reach_each_cache(&reach, look_at_shared);
    return sy_os_each_written(look_at_piece, &reach) == 0;
}

/* ==== src/keep/reclaim.c ==== */

/*
 * reclaim.c: passes, and trims of everything.
 */

enum {
    GROWTH_STEPS = 4, /* of a pass by growth in one turn: it must keep up */
};

static const uint64_t LOOKS_APART_NS = 2000000; /* of a thread, through its slots, at least */
static const uint64_t OTHERS_STEP_NS = 1000000; /* waited for, by who has a pass to finish */

/* ---- a pass ---- */

typedef enum sy_stage { NOTHING, CHUNKS_FIRST, CLIENTS, CHUNKS, ORDINALS, MAGAZINES } sy_stage;
typedef enum sy_kind { BY_GROWTH, BY_AGE, WHATEVER_GOES } sy_kind;

typedef struct sy_pass {
    uint64_t number; /* no other pass has it */
    sy_kind kind;
    sy_stage stage;
    bool may_call; /* functions of the program's, as a thread of its own or on request may */
    uint64_t trim; /* of the chunks; in the stage of clients, of the program's own: 0, not begun */
    unsigned done; /* clients up to this number have been dealt with; */
    unsigned client;    /* this is the one at work; 0: none */
    bool slabs;         /* and its depot is done with */
    size_t slabs_left;  /* of it, to be looked at */
    uint64_t ordinals;  /* up to here the words of those that slabs left have been dealt with */
    unsigned magazines; /* done */
    size_t bytes;       /* given back so far */
} sy_pass;

static void enter_stage(sy_pass *pass, sy_stage stage) {
    pass->stage = stage;
    pass->done = pass->client = pass->magazines = 0;
    pass->ordinals = 0;
    if (stage == CHUNKS || stage == CHUNKS_FIRST) pass->trim = sy_chunk_begin_trim(&sy_memory_main);
}

static void begin_stages(sy_pass *pass, sy_kind kind) {
    static _Atomic uint64_t last_number;
    uint64_t number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    *pass = (sy_pass){.number = number, .kind = kind, .may_call = kind == WHATEVER_GOES};
    enter_stage(pass, kind == WHATEVER_GOES ? CHUNKS_FIRST : CLIENTS);
}

/* Each false when the client has no more of that. */
static bool depot_step(sy_pass *pass, sy_client *client, bool first) {
    if (pass->kind == WHATEVER_GOES) return sy_client_drain_step(client, first);
    return sy_client_reap_step(client, first, pass->kind == BY_AGE);
}

static bool slabs_step(sy_pass *pass, sy_cache *cache) {
    bool aged = pass->kind != WHATEVER_GOES;
    if (pass->kind == BY_GROWTH) return sy_cache_release_step(cache, &pass->slabs_left, aged);
    return sy_cache_trim_step(cache, &pass->slabs_left, aged, &pass->bytes);
}

/* The program's own memory is trimmed with each of its caches, by age once a pass with the first.
 */
static bool own_memory_step(sy_pass *pass, sy_memory *memory) {
    if (pass->kind == BY_GROWTH || memory == &sy_memory_main) return false;
    bool aged = pass->kind == BY_AGE;
    if (!pass->trim) {
        uint64_t last = atomic_exchange_explicit(&memory->aged, pass->number, memory_order_relaxed);
        if (aged && last == pass->number) return false;
        pass->trim = sy_chunk_begin_trim(memory);
    }
    return sy_chunk_trim_step(memory, pass->trim, aged, &pass->bytes);
}

/* Works on one client; false when that is done with. */
static bool client_step(sy_pass *pass, sy_client *client) {
    bool first = pass->client != client->number;
    if (first) {
        pass->client = client->number;
        pass->slabs = false;
        pass->slabs_left = SIZE_MAX;
        pass->trim = 0;
    }
    if (!pass->slabs && depot_step(pass, client, first)) return true;
    pass->slabs = true;
    if (client->config.refill != sy_cache_refill) return false;
    sy_cache *cache = client->config.owner;
    return slabs_step(pass, cache) || own_memory_step(pass, cache->memory);
}

static void clients_step(sy_pass *pass) {
    sy_client *client = sy_client_pin_next(pass->done);
    if (!client) {
        enter_stage(pass, pass->kind == BY_GROWTH ? NOTHING : CHUNKS);
        return;
    }
    bool left_alone = client->config.calls_back && !pass->may_call;
    if (left_alone || !client_step(pass, client)) pass->done = client->number;
    sy_client_unpin(client);
}

static void chunks_step(sy_pass *pass) {
    bool aged = pass->kind == BY_AGE;
    if (sy_chunk_trim_step(&sy_memory_main, pass->trim, aged, &pass->bytes)) return;
    enter_stage(pass, pass->stage == CHUNKS_FIRST ? CLIENTS : ORDINALS);
}

static void ordinals_step(sy_pass *pass) {
    if (!sy_directory_trim_step(&pass->ordinals, pass->kind == BY_AGE, &pass->bytes))
        enter_stage(pass, MAGAZINES);
}

static void magazines_step(sy_pass *pass) {
    if (!sy_magazine_trim_step(&pass->magazines, pass->kind == BY_AGE, &pass->bytes))
        enter_stage(pass, NOTHING);
}

/* Some tens of microseconds of work; false: the pass is over. */
static bool step(sy_pass *pass) {
    switch (pass->stage) {
    case NOTHING: return false;
    case CLIENTS: clients_step(pass); break;
    case CHUNKS_FIRST:
    case CHUNKS: chunks_step(pass); break;
    case ORDINALS: ordinals_step(pass); break;
    case MAGAZINES: magazines_step(pass); break;
    }
    return pass->stage != NOTHING;
}

/* ---- the pass at work ---- */

static _Atomic bool held; /* by the thread that is doing a step; guards the pass */
static sy_pass at_work;   /* its stage is NOTHING unless sy_turn_wanted */
static _Atomic uint64_t keep_reclaim_decay = 1000000000; /* nanoseconds */
static _Atomic uint64_t next_pass;          /* by age: when; 0: at nobody's first look yet */
static _Atomic bool age_is_due;             /* once the pass at work is over */
static _Atomic unsigned passes;             /* begun so far */
static _Atomic bool taken;                  /* by a thread that trims some; guards what is */
static sy_pass kept;                        /* for the next: where the last one stopped */

/* Of each thread. */
static SY_TLS struct {
    uint64_t next_look; /* through its own slots: when, or with the next pass */
    uint64_t looked;    /* with a pass: when last */
    unsigned passes;    /* begun by then */
    bool looking, busy; /* at a turn */
    bool holds;         /* the pass at work, or is about to, or has just let go */
    bool has_taken;     /* what sy_trim_some keeps; the same */
} own_turns;

static bool keep_reclaim_hold(void) {
    bool before = own_turns.holds;
    own_turns.holds = true;
    bool got = !atomic_exchange_explicit(&held, true, memory_order_acquire);
    own_turns.holds = got || before;
    return got;
}

static void keep_reclaim_let_go(void) {
    atomic_store_explicit(&held, false, memory_order_release);
    own_turns.holds = false;
}

static void begin_at_work(sy_kind kind) {
    begin_stages(&at_work, kind);
    atomic_fetch_add_explicit(&passes, 1, memory_order_relaxed);
    atomic_store_explicit(&sy_turn_wanted, true, memory_order_relaxed);
}

/* Unless one is at work; one by age then begins after that. */
static void begin_pass(sy_kind kind) {
    if (kind == BY_AGE) atomic_store_explicit(&age_is_due, true, memory_order_relaxed);
    if (!keep_reclaim_hold()) return;
    if (at_work.stage == NOTHING) {
        if (kind == BY_AGE) atomic_store_explicit(&age_is_due, false, memory_order_relaxed);
        begin_at_work(kind);
    }
    keep_reclaim_let_go();
}

/* Who did the last step. */
static void end_pass(void) {
    if (atomic_exchange_explicit(&age_is_due, false, memory_order_relaxed))
        begin_at_work(BY_AGE);
    else
        atomic_store_explicit(&sy_turn_wanted, false, memory_order_relaxed);
}

/* Does a few steps; false: somebody else is at it. Passes by age are for the thread of maintenance,
 * if there is one: `may_call`. */
static bool keep_reclaim_work(bool may_call) {
    if (atomic_load_explicit(&held, memory_order_relaxed) || !keep_reclaim_hold()) return false;
    int steps = at_work.kind == BY_GROWTH ? GROWTH_STEPS : 1;
    if (at_work.kind == BY_AGE && !may_call && sy_maintenance_runs()) steps = 0;
    at_work.may_call = may_call;
    while (steps-- > 0)
        if (!step(&at_work)) end_pass();
    keep_reclaim_let_go();
    return true;
}

void sy_reclaim_by_age(void) {
    static _Atomic uint32_t nothing;
    begin_pass(BY_AGE);
    while (atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed))
        if (!keep_reclaim_work(true)) sy_os_wait_for(&nothing, 0, OTHERS_STEP_NS);
}

/* This thread, in the child of its fork, may itself be in the midst of a step, or of a trim. */
static void recover_passes(void) {
    if (!own_turns.has_taken) atomic_store(&taken, false);
    if (own_turns.holds) return;
    at_work.stage = NOTHING;
    atomic_store(&sy_turn_wanted, false);
    atomic_store(&age_is_due, false);
    atomic_store(&held, false);
}

/* ---- by age ---- */

uint64_t sy_reclaim_interval(void) { return atomic_load_explicit(&keep_reclaim_decay, memory_order_relaxed); }

void sy_set_decay(uint64_t milliseconds) {
    const uint64_t most = UINT64_MAX / 2 / 1000000;
    if (milliseconds > most) milliseconds = most;
    atomic_store_explicit(&keep_reclaim_decay, milliseconds * 1000000, memory_order_relaxed);
    atomic_store_explicit(&next_pass, 0, memory_order_relaxed);
}

/* Whether `*when` is past; then it is one interval from now. */
static bool keep_reclaim_is_due(uint64_t when, uint64_t now, uint64_t interval, uint64_t *next) {
    bool due = when && now >= when;
    *next = due || !when || when > now + interval ? now + interval : when;
    return due;
}

static void look_at_clock(void) {
    uint64_t interval = sy_reclaim_interval(), next;
    if (!interval) return;
    uint64_t now = sy_os_now();
    if (keep_reclaim_is_due(own_turns.next_look, now, interval, &own_turns.next_look)) own_turns.looking = true;
    uint64_t when = atomic_load_explicit(&next_pass, memory_order_relaxed);
    bool due = keep_reclaim_is_due(when, now, interval, &next);
    if (next == when || !atomic_compare_exchange_strong(&next_pass, &when, next)) return;
    if (due && !sy_maintenance_runs()) begin_pass(BY_AGE);
}

/* A pass has begun; passes by growth may follow one another quickly, and what a thread has at hand
 * is no less of use to it for that. */
static void look_with_pass(unsigned begun) {
    uint64_t now = sy_os_now();
    own_turns.passes = begun;
    if (now - own_turns.looked < LOOKS_APART_NS) return;
    own_turns.looked = now;
    own_turns.looking = true;
}

/* What a step calls may come by a slow path again. */
static void take_turn_of_pass(void) {
    if (own_turns.busy) return;
    own_turns.busy = true;
    if (sy_turns % SY_TURNS_PER_LOOK == 0) look_at_clock();
    if (sy_caches_grew()) begin_pass(BY_GROWTH);
    unsigned begun = atomic_load_explicit(&passes, memory_order_relaxed);
    if (own_turns.passes != begun) look_with_pass(begun);
    if (own_turns.looking) own_turns.looking = sy_thread_reap_step();
    if (atomic_load_explicit(&sy_turn_wanted, memory_order_relaxed)) keep_reclaim_work(false);
    own_turns.busy = false;
}

static int serve_turns(void) {
    sy_turn_serve(take_turn_of_pass);
    return 0;
}

const sy_part sy_reclaim_part = {.start = serve_turns, .recover = recover_passes};

/* ---- on request ---- */

size_t sy_trim(void) {
    size_t bytes = 0;
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) {
            sy_cache *cache = client->config.owner;
            bytes += sy_cache_trim_slabs(cache);
            if (cache->memory != &sy_memory_main) bytes += sy_chunk_trim(cache->memory);
        }
        sy_client_unpin(client);
    }
    bytes += sy_directory_trim();
    return bytes + sy_chunk_trim(&sy_memory_main) + sy_magazine_trim();
}

/* Goes on with a pass, and after its end with another, so that nothing is left out that lies before
 * where it was. */
static size_t trim_until(sy_pass *pass, size_t bytes, uint64_t budget_ns) {
    uint64_t began = sy_os_now();
    int rounds = pass->stage == NOTHING ? 1 : 2;
    if (pass->stage == NOTHING) begin_stages(pass, WHATEVER_GOES);
    size_t before = pass->bytes;
    while (pass->bytes - before < bytes && sy_os_now() - began < budget_ns) {
        if (step(pass)) continue;
        if (--rounds == 0) break;
        size_t so_far = pass->bytes;
        begin_stages(pass, WHATEVER_GOES);
        pass->bytes = so_far;
    }
    return pass->bytes - before;
}

size_t sy_trim_some(size_t bytes, uint64_t budget_ns) {
    sy_pass other = {.stage = NOTHING};
    int error = errno;
    bool outer = own_turns.has_taken;
    own_turns.has_taken = true;
    bool mine = !atomic_exchange_explicit(&taken, true, memory_order_acquire);
    own_turns.has_taken = mine || outer;
    size_t done = trim_until(mine ? &kept : &other, bytes, budget_ns);
    if (mine) atomic_store_explicit(&taken, false, memory_order_release);
    own_turns.has_taken = outer;
    errno = error;
    return done;
}

/* ==== src/keep/verify.c ==== */

/*
 * verify.c: everything that always holds, looked at: sy_verify. Each structure under its own lock,
 * one after the other, so the rest of the program goes on.
 *
 * Below: all layers up to cache/.
 */

enum { LINES = 16, NAME_LENGTH = 31 };

_Static_assert((int)SY_CACHE_NAME_MAX <= (int)NAME_LENGTH, "a cache's name fits");
_Static_assert((int)SY_VMEM_NAME_MAX <= (int)NAME_LENGTH, "an arena's name fits");

/* What is to be told, once no lock is held. */
typedef struct sy_line {
    const char *kind;
    char name[NAME_LENGTH + 1];
    size_t wrong;
} sy_line;

typedef struct sy_verdict {
    size_t wrong; /* violations, and damage that was told already */
    size_t lines; /* of them, those that were found; there is room for LINES */
    sy_line line[LINES];
} sy_verdict;

static void note(sy_verdict *verdict, const char *kind, const char *name, size_t wrong) {
    verdict->wrong += wrong;
    if (!wrong || verdict->lines++ >= LINES) return;
    sy_line *line = &verdict->line[verdict->lines - 1];
    *line = (sy_line){.kind = kind, .wrong = wrong};
    for (size_t i = 0; i < NAME_LENGTH && name[i]; i++) line->name[i] = name[i];
}

static void verify_caches(sy_verdict *verdict) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        if (client->config.refill == sy_cache_refill) {
            sy_cache *cache = client->config.owner;
            note(verdict, "cache", cache->name, sy_cache_verify(cache));
            verdict->wrong += sy_watched_verify(cache);
        }
        sy_client_unpin(client);
    }
}

/* ---- on request ---- */

static void verify_memory(sy_memory *memory, void *verdict) {
    note(verdict, "memory", memory->name, sy_chunk_verify(memory));
}

static void verify_arena(sy_vmem *arena, void *verdict) {
    note(verdict, "arena", arena->name, sy_vmem_verify(arena));
}

static void keep_verify_tell(const sy_line *line) {
    sy_report_text("slabyard: ");
    sy_report_number(line->wrong);
    sy_report_text(line->wrong == 1 ? " violation in " : " violations in ");
    sy_report_text(line->kind);
    sy_report_text(" \"");
    sy_report_text(line->name);
    sy_report_text("\"\n");
}

size_t sy_verify(void) {
    int error = errno;
    sy_verdict verdict;
    verdict.wrong = verdict.lines = 0;
    verify_caches(&verdict);
    verdict.wrong += sy_checked_pools_verify();
    sy_memory_each(verify_memory, &verdict);
    sy_vmem_each(verify_arena, &verdict);
    note(&verdict, "store", "magazines", sy_store_verify());
    note(&verdict, "guards", "objects", sy_guard_verify());
    if (verdict.lines && sy_report_begin()) {
        for (size_t i = 0; i < verdict.lines && i < LINES; i++) keep_verify_tell(&verdict.line[i]);
        sy_report_end();
    }
    errno = error;
    return verdict.wrong;
}

/* ==== src/magazine/budget.c ==== */

/*
 * budget.c: decides how many items the magazines of a thread may hold, and whether a full magazine
 * goes to the depot or is flushed to the slabs. It adapts both numbers to what the program uses.
 */
/*
 * budget.h: how many items may wait, in the magazines of a thread and in the depot.
 *
 * All numbers that decide this are in budget.c: both answers spend the same memory, and a number of
 * one of them is judged beside those of the other. (How many items are fetched ahead and how much
 * one step of a drain flushes bounds time, not memory: client.c and drain.c.)
 *
 * A thread's slot has a *capacity*: the items that each of its two magazines may hold. It begins
 * small, so that a client that is seldom used holds little, and doubles at exchanges. The bounds:
 *
 *     of a client      magazine_items; loaded_items in all threads' slots together; what `admits`
 *                      says, for each thread that begins to hold items
 *     of a thread      4 MiB of items in all its slots, beyond the first capacity of each
 *
 * Each shard of the depot has a *budget* of items, 256 KiB of them at first, or a magazine-full if
 * that is more. A magazine beyond it is turned away, to be flushed. When then a magazine is missed
 * that was turned away, the budget grows by as much: after one round a depot holds what the next
 * one wants. A share of the process's memory bounds it.
 *
 * Below: depot.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_BUDGET_H
#define SY_MAGAZINE_BUDGET_H

/*
 * depot.h: where magazines with items wait, in shards.
 *
 * Each client has one stack of magazines a shard (a CPU, more or less). A stack is one 64-bit word,
 * the number of its top magazine and a tag; push and pop are one compare-exchange each (Treiber,
 * "Systems Programming: Coping with Parallelism", 1986, with the tag against reuse of a top).
 *
 *     word:  63                        20 19             0
 *            |           tag             |    number     |      number 0: the stack is empty
 *
 * The tag grows with every push and pop. A popper that read a top and was stalled is fooled only if
 * the same magazine is on top again at the same tag: after a multiple of 2^44 operations on this
 * one stack. A compare-exchange on a contended line takes 5 ns at the very least, so that is 24
 * hours of nothing but exchanges on that stack, and the stalled thread must wake within that one
 * operation's time.
 *
 * Memory order. A pusher writes next and items_down of its magazine, and the items themselves,
 * before its releasing exchange; a popper acquires the word before it reads them. Every exchange is
 * a read-modify-write, so it continues the release sequence of the pushes before it, and a popper
 * sees what the pusher of each magazine below wrote as well. A popper may read next from a magazine
 * that was popped and pushed elsewhere meanwhile: headers are type-stable, so it reads a wrong
 * number, and its exchange fails because the tag moved on.
 *
 * A counter may read items_down of a magazine that has gone to another stack. It looks at the word
 * again, which must then have changed: items_down is released after the exchange that took the
 * magazine, so whoever reads the one sees the other.
 *
 * Whoever looks through a stack without popping (sy_client_holds) may follow next to a magazine of
 * another stack, of which it has acquired nothing. A push therefore releases next, so that the
 * header below is seen whole.
 *
 * tests/models/depot.c has models of this. tests/models/mutants weakens each order, and shows which
 * model then fails, or why none does.
 *
 * Below: store.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_DEPOT_H
#define SY_MAGAZINE_DEPOT_H

enum { SY_DEPOT_SHARDS_MAX = 16 };

typedef struct sy_depot_shard {
    alignas(64) _Atomic uint64_t top; /* number and tag */
    _Atomic uint64_t budget;          /* items that may wait here; 0: none set yet */
    _Atomic uint64_t refused;         /* items turned away since, that a miss has yet to regret */
    _Atomic uint32_t exported;        /* the last magazine taken went to another CPU */
    _Atomic uint32_t surplus;         /* items that were not wanted: to be reaped */
    _Atomic uint64_t low;             /* the fewest items here since reaping began last */
    /* Counted by threads whose shard this is, when they want a full magazine. */
    _Atomic uint64_t hits, misses, steals;
} sy_depot_shard;

enum { SY_DEPOT_TAG_SHIFT = SY_MAGAZINE_NUMBER_BITS };

/* Shards a client has: a power of two; fixed once magazine/ has started. */
extern unsigned sy_depot_shard_count;

/* 0, or -1 with ENOMEM. Called once, by sy_magazine_start. */
int sy_depot_start(unsigned cpus, unsigned clients);

/* The shards of a client: zeroed memory that costs nothing until it is written. */
sy_depot_shard *sy_depot_shards_of(unsigned client);

/* Puts a magazine with items on the stack. */
void sy_depot_push(sy_depot_shard *shard, sy_magazine *magazine);

/* Takes the top magazine, or NULL if there is none. */
sy_magazine *sy_depot_pop(sy_depot_shard *shard);

/* Items that wait in the stack: exact while nobody exchanges, else as of a moment ago. */
uint64_t sy_depot_items(sy_depot_shard *shard);

#endif
/*
 * thread.h: what the layer knows of each thread: a record and its loaded slots.
 *
 *     group:  | record 0 | record 1 | ... | slots of 0: 1 MiB | slots of 1 | ...
 *                                         ^ sy_abi_1 of thread 0 while it runs: 64 bytes a client,
 *                                           lazily touched
 *
 * A thread that has not come here yet, is parked, or has ended, has sy_abi_1 point to shut slots
 * that all such threads share: its next operation takes the slow path, which finds the record or
 * makes one.
 *
 * A group has as many records as there were before it, from 1 to 16. Groups are never unmapped: an
 * ended thread's record is given to the next new one, and a trim discards the memory of the slots
 * of records that nobody has.
 *
 * Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_THREAD_H
#define SY_MAGAZINE_THREAD_H

/* A loaded slot as this layer sees it: slabyard/loaded.h's sy_loaded_slot. All words are written by
 * the owner and may be read by others (statistics, fork), so accesses from other threads are
 * atomic. */
typedef struct sy_slot {
    sy_magazine *loaded;   /* the magazine that top, base and limit point into, or NULL */
    sy_magazine *previous; /* full or empty (of any count), or NULL */
    uint16_t capacity;     /* items that `loaded` may hold at present */
    uint16_t mark;         /* items that it held when they were last counted (sample.h) */
    uint32_t generation;   /* the client's, when last looked at */
    uint32_t exchanges;    /* since first use */
    uint32_t seen;         /* of them: when the thread last looked for idle slots */
    uintptr_t *top, *base, *limit;
    uintptr_t reserved; /* not 0: what it holds was asked for, and is not idle */
} sy_slot;

_Static_assert(sizeof(sy_slot) == sizeof(sy_loaded_slot), "one layout");
_Static_assert(offsetof(sy_slot, top) == offsetof(sy_loaded_slot, top), "one layout");
_Static_assert(SY_MAGAZINE_ITEMS <= UINT16_MAX, "capacity and mark count them");
_Static_assert(offsetof(sy_slot, top) == 32, "hot words where objects do not begin");

enum { SY_ONE_WAY_NOTED = 14 }; /* clients of which a thread knows that it has items of them */
enum { SY_EMPTIES = 6 };        /* empty magazines that a thread keeps, to spare the store's lock */

typedef enum sy_thread_state {
    SY_THREAD_FREE,    /* nobody's; its slots hold nothing */
    SY_THREAD_RUNNING, /* its thread alone may touch its slots */
    SY_THREAD_PARKED,  /* its thread is idle: whoever holds the list's lock may claim its slots */
    SY_THREAD_CLAIMED, /* another thread is taking magazines out of its slots, under that lock */
} sy_thread_state;

typedef struct sy_thread {
    alignas(64) sy_slot *slots;    /* SY_CLIENTS_MAX of them; for ever */
    struct sy_thread *next;        /* all records, newest first; for ever */
    struct sy_thread *next_free;   /* guarded by the list's lock */
    _Atomic uint32_t state;        /* changed under the list's lock, but for the owner's steps
                                    * from RUNNING to PARKED and back */
    _Atomic uint32_t slots_end;    /* slots from here on were never used */
    _Atomic uint64_t loaded_bytes; /* item bytes that the capacities of its slots allow; others
                                    * subtract, when they close a client */
    unsigned empties;
    unsigned inside; /* callbacks of clients that slow paths of this thread are in the midst of */
    unsigned next_idle;     /* slot that it looks at next for being idle */
    unsigned one_way_count; /* one-way clients that were refilled since the last put-back; more than
                             * there is room for: any may have been */
    uint16_t one_way[SY_ONE_WAY_NOTED];
    sy_magazine *empty[SY_EMPTIES];
} sy_thread;

/* To the end of the scope, however that is left, the thread is at work on a slot: it does not look
 * for idle ones. */
#define SY_INSIDE(thread) \
    sy_thread *inside SY_CLEANUP(sy_thread_end_inside) = sy_thread_begin_inside(thread)

static inline sy_thread *sy_thread_begin_inside(sy_thread *thread) {
    thread->inside++;
    return thread;
}

static inline void sy_thread_end_inside(sy_thread *const *thread) { (*thread)->inside--; }

/* The record of this thread, which is running from now on; NULL if the thread has ended or no
 * record is to be had: then it does without magazines. */
sy_thread *sy_thread_self(void);

/* The same if it is running, else NULL: it has no slots to look into. */
sy_thread *sy_thread_running(void);

/* Its record, running or parked, or NULL: it has none. Slots of a parked one are others' too. */
sy_thread *sy_thread_known(void);

/* Whether any thread has ever been parked. If not, nobody needs to look for one. */
bool sy_threads_park(void);

/* Claims the slots of a thread that is parked; false: it is not, or has just come back. The list's
 * lock is held until they are unclaimed, and the thread waits for it if it comes back meanwhile. */
bool sy_thread_claim(sy_thread *thread);
void sy_thread_unclaim(sy_thread *thread);

/* Its slot for a client number. */
static inline sy_slot *sy_thread_slot(sy_thread *thread, unsigned number) {
    return &thread->slots[number];
}

/* The list's lock: guards states, records that do not run, and the clients' numbers. */
void sy_threads_lock(void);
void sy_threads_unlock(void);
/* The same around a fork; start.h. */
void sy_threads_hold(void);
void sy_threads_drop(void);
/* The newest record; the lock is held. */
sy_thread *sy_threads_first(void);

/* An empty magazine, from the thread's few or the store; NULL with ENOMEM. */
sy_magazine *sy_thread_take_empty(sy_thread *thread);
void sy_thread_put_empty(sy_thread *thread, sy_magazine *magazine);

/* `empty` is called at a thread's end, with the lock held, to empty its slots. Once, before all
 * else. */
void sy_threads_start(void (*empty)(sy_thread *thread));

/* Bytes of records and slots that hold memory: what threads have touched. */
size_t sy_threads_bytes(void);

/* Gives the memory of unused records' slots back; returns bytes. Of one: 0 if there is none. */
size_t sy_threads_trim(void);
size_t sy_threads_trim_one(void);

/* In the child of a fork, which has this thread alone: the others end, as far as we are concerned.
 * What one of them had between its hands at the fork, a magazine at most, is lost to the child. The
 * lock is held. */
void sy_threads_orphan_others(void);

#endif

/* ---- of a thread ---- */

/* Lets each magazine of the slot hold `want` items; false: a bound of the client is reached. The
 * slot's `limit` stays where it is. */
bool sy_capacity_widen(sy_client *client, sy_thread *thread, sy_slot *slot, uint32_t want);

/* Raises the slot's capacity, at an exchange, if the bounds allow it. */
bool sy_capacity_grow(sy_client *client, sy_thread *thread, sy_slot *slot);

/* Halves the slot's capacity, which is more than the thread makes use of. Not of a client with a
 * bound of loaded items: its outbox may hold what was granted. */
void sy_capacity_halve(const sy_client *client, sy_thread *thread, sy_slot *slot);

/* The slot may hold nothing any more: other slots may hold as much more. */
void sy_capacity_give_up(sy_client *client, sy_thread *thread, sy_slot *slot);

/* ---- of the depot ---- */

/* 0, or -1 with ENOMEM. Once, before all else. */
int sy_budget_start(void);

/* Puts a magazine with items into this CPU's shard, whatever the budget, and one without into the
 * store. `surplus`: to be reaped. */
void sy_budget_put(const sy_client *client, sy_magazine *magazine, bool surplus);

/* Puts a magazine of items into this CPU's shard; false if that holds enough already. If other CPUs
 * take them from there, items are turned round, so that they are given out in the order in which
 * they were freed: the oldest first, whose lines this CPU has done with. */
bool sy_budget_deposit(sy_client *client, sy_magazine *magazine);

/* Of a client that flushes in bursts: what is flushed along with a magazine that was turned away, a
 * chain. */
sy_magazine *sy_budget_burst(sy_client *client);

/* A magazine of items: from this CPU's shard, else from any other; NULL if there is none. *remote
 * tells whether another CPU filled it. */
sy_magazine *sy_budget_withdraw(sy_client *client, bool *remote);

/* All magazines of the client, a chain. */
sy_magazine *sy_budget_take_all(sy_client *client);

/* The same, but `most` magazines at most. */
sy_magazine *sy_budget_take(sy_client *client, unsigned most);

/*
 * What was in a shard all the time since this was last called is more than the client works with:
 * it is to be reaped (the working set of Bonwick and Adams, "Magazines and Vmem", section 3.6),
 * which sy_budget_reap does, a chain of `most` magazines at most; fewer: there is no more. Budgets
 * shrink by as much. `forget`: what was turned away until now is not regretted any more.
 */
void sy_budget_begin_reap(sy_client *client, bool forget);
sy_magazine *sy_budget_reap(sy_client *client, unsigned most);

/* Forgets budgets and counts, for the next client with the number. */
void sy_budget_reset(const sy_client *client);

#endif

/*
 * slot.h: the steps on a loaded slot and its magazines, of which the slow paths are made.
 *
 * The steps know the kinds of clients. They keep the free direction of a client that is one-way or
 * sees frees shut, and count for sample.h. So the slow paths take these steps for each client
 * alike.
 *
 * A slot is written by its thread alone or, when that does not run, under the thread list's lock.
 * What other threads may read meanwhile (statistics, fork) is written atomically, and in an order
 * in which each state between two stores makes sense: the child of a fork takes up the slots of
 * threads that were stopped anywhere. No magazine is in two places, and none has more items than
 * it has: those of the loaded one end at `top`, or, while that is NULL, are its count.
 *
 * Below: sample.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SLOT_H
#define SY_MAGAZINE_SLOT_H

/*
 * sample.h: decides which allocation is to be guarded, of a client whose allocations are inline.
 *
 * A thread guards one in `guard_every` of its allocations. `sy_guard_left` (watch/guard.h) is how
 * many it makes until then, from all its clients. The inline code does not count. So the slow paths
 * count afterwards what it has allocated, and stop it before the allocation that is to be guarded:
 *
 *          a call or more   inline      counted at the next call
 *          |<------------>|<-------->|<------------------------->|
 *        items           base       top                         mark
 *
 *  - Each free is a call (the client sees frees), so between two calls no item enters the loaded
 *    magazine. Each item that has left it was allocated.
 *  - `mark` is the number of items at the last count. A count subtracts from sy_guard_left what has
 *    left since: mark - (top - items). Each step that changes the loaded magazine counts first; a
 *    free adds its item to `mark` as well.
 *  - After each count the slot is *armed*: `base` leaves sy_guard_left - 1 items to the inline
 *    code. The next allocation is a call, and sy_client_due says that it is to be guarded.
 *
 * This is one in `guard_every` in the long run, although a call arms the slot of its own client
 * only. The inline code may then take more from the slots of other clients than the interval has
 * left. Once these items are counted, sy_guard_left is less than 1: the next call is due, and the
 * interval after it is shorter by as many.
 *
 * Two kinds of allocations are exceptions. Items that the thread reserved are counted, but never
 * guarded: a slot with reserved items is not armed. Items that left a magazine since the last count
 * are not counted if another thread takes the magazine (the thread is parked or has ended), since
 * sy_guard_left is the thread's own.
 *
 * A client that sees frees and is not guarded is not counted; its slot is armed with all its items.
 *
 * Above: slot.h. Below: watch/guard.h, thread.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_SAMPLE_H
#define SY_MAGAZINE_SAMPLE_H

/* Counts what was allocated from the loaded magazine. */
static inline void sy_sample_count(const sy_client *client, sy_slot *slot) {
    if (!client->config.guarded) return;
    uint16_t have = (uint16_t)(slot->top - slot->loaded->items);
    sy_guard_left -= slot->mark - have;
    slot->mark = have;
}

/* Shuts free, and allocation where the one comes that is to be guarded; not within what is
 * reserved. */
static inline void sy_sample_arm(const sy_client *client, sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    int64_t inline_ones = sy_guard_left > 1 ? sy_guard_left - 1 : 0;
    bool shut = client->config.guarded && inline_ones < slot->top - items && !slot->reserved;
    slot->base = shut ? slot->top - inline_ones : items;
    slot->limit = NULL;
}

#endif

/* Releasing: a reader follows them to their headers. */
static inline void sy_slot_set_magazines(sy_slot *slot, sy_magazine *loaded,
                                         sy_magazine *previous) {
    __atomic_store_n(&slot->previous, previous, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->loaded, loaded, __ATOMIC_RELEASE);
}

static inline void sy_slot_set_top(sy_slot *slot, uintptr_t *top) {
    __atomic_store_n(&slot->top, top, __ATOMIC_RELAXED);
}

static inline bool sy_slot_has_magazines(const sy_slot *slot) {
    return slot->loaded || slot->previous;
}

static inline uint32_t sy_magazine_count(const sy_magazine *magazine) {
    return atomic_load_explicit(&magazine->count, memory_order_relaxed);
}

static inline void sy_magazine_set_count(sy_magazine *magazine, size_t count) {
    atomic_store_explicit(&magazine->count, (uint32_t)count, memory_order_relaxed);
}

/* Writes the count of the loaded magazine into it; gives the magazine. */
static inline sy_magazine *sy_slot_unload(sy_slot *slot) {
    sy_magazine *magazine = slot->loaded;
    sy_magazine_set_count(magazine, (size_t)(slot->top - magazine->items));
    return magazine;
}

/* Points the slot at `magazine`, with its count, and opens both directions. */
static inline void sy_slot_open_both(sy_slot *slot, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    __atomic_store_n(&slot->loaded, magazine, __ATOMIC_RELEASE);
    slot->base = magazine->items;
    sy_slot_set_top(slot, magazine->items + count);
    slot->limit = magazine->items + (count > slot->capacity ? count : slot->capacity);
    slot->mark = (uint16_t)count;
}

/* Makes `magazine`, with its count, the loaded one; what was loaded has been dealt with. */
static inline void sy_slot_load(const sy_client *client, sy_slot *slot, sy_magazine *magazine) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees && slot->loaded) sy_sample_count(client, slot);
    sy_slot_open_both(slot, magazine);
    if (client->config.one_way) slot->limit = NULL;
    if (sees_frees) sy_sample_arm(client, slot);
}

/* Changes both magazines, whose counts are written in them; not of a one-way client, which has
 * nothing to exchange. A `top` that points past the end of one magazine may point to the start of
 * the next: it goes first. */
static inline void sy_slot_exchange(const sy_client *client, sy_slot *slot, sy_magazine *loaded,
                                    sy_magazine *previous) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) sy_sample_count(client, slot);
    sy_slot_set_top(slot, NULL);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_magazines(slot, loaded, previous);
    sy_slot_open_both(slot, loaded);
    if (sees_frees) sy_sample_arm(client, slot);
}

static inline bool sy_slot_has_room(const sy_client *client, const sy_slot *slot) {
    bool sees_frees = client->config.sees_frees;
    return slot->top < (sees_frees ? slot->loaded->items + slot->capacity : slot->limit);
}

/* There is room. */
static inline void sy_slot_push(const sy_client *client, sy_slot *slot, uintptr_t item) {
    bool sees_frees = client->config.sees_frees;
    if (sees_frees) sy_sample_count(client, slot);
    __atomic_store_n(slot->top, item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_slot_set_top(slot, slot->top + 1);
    if (!sees_frees) return;
    slot->mark++;
    sy_sample_arm(client, slot);
}

/* As the inline code does. Of a client that sees frees the item is counted later. */
static inline uintptr_t sy_slot_pop_inline(sy_slot *slot) {
    uintptr_t item = slot->top[-1];
    sy_slot_set_top(slot, slot->top - 1);
    return item;
}

/* There is an item. */
static inline uintptr_t sy_slot_pop(const sy_client *client, sy_slot *slot) {
    uintptr_t item = sy_slot_pop_inline(slot);
    if (client->config.sees_frees) {
        sy_sample_count(client, slot);
        sy_sample_arm(client, slot);
    }
    return item;
}

/* Takes the magazines out of a slot, which is shut then, and puts them before `chain`. The list's
 * lock is held: a client that is being closed takes them there too. */
static inline sy_magazine *sy_slot_take(sy_slot *slot, sy_magazine *chain) {
    sy_magazine *magazines[2] = {slot->loaded ? sy_slot_unload(slot) : NULL, slot->previous};
    sy_slot_set_magazines(slot, NULL, NULL);
    slot->reserved = slot->mark = 0;
    slot->base = slot->limit = NULL;
    sy_slot_set_top(slot, NULL);
    for (int i = 0; i < 2; i++)
        if (magazines[i]) magazines[i]->chain = chain, chain = magazines[i];
    return chain;
}

/* Items in a slot, seen from another thread. */
static inline size_t sy_slot_items(const sy_slot *slot) {
    const sy_magazine *loaded = __atomic_load_n(&slot->loaded, __ATOMIC_ACQUIRE);
    const sy_magazine *previous = __atomic_load_n(&slot->previous, __ATOMIC_ACQUIRE);
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    size_t items = previous && previous != loaded ? sy_magazine_count(previous) : 0;
    if (loaded && !top) items += sy_magazine_count(loaded);
    if (loaded && top >= loaded->items && top <= loaded->items + SY_MAGAZINE_ITEMS)
        items += (size_t)(top - loaded->items);
    return items;
}

/* ---- slot.c ---- */

/* The calling thread's slot, with a magazine loaded, after doing what a trim has asked for since;
 * NULL when it has to go without. *self is its record, if there is a slot. */
sy_slot *sy_slot_ready(sy_client *client, sy_thread **self);

/* Fills the loaded magazine, which is empty, from the slabs, and then lets the capacity grow if
 * `grow`; false with errno when there are no items. */
bool sy_slot_refill(sy_client *client, sy_thread *thread, sy_slot *slot, bool grow);

/* Flushes the loaded magazine, which stays. */
void sy_slot_flush_loaded(sy_client *client, sy_slot *slot);

/* Flushes a magazine, whose items nobody counts from now on. No lock is held. */
void sy_magazine_flush(sy_client *client, sy_magazine *magazine);

/* Flushes a magazine whose items are counted until they are in the slabs. */
void sy_magazine_flush_counted(sy_client *client, sy_magazine *magazine);

/* Flushes and stores the magazines of a chain that nobody else counts or looks for. No lock is
 * held. */
void sy_magazine_flush_chain(sy_client *client, sy_magazine *chain);

#endif

enum {
    START_ITEMS = 16,       /* in a magazine at first use, of clients that may be seldom used, */
    START_BYTES = 16 << 10, /* but no more bytes of items than this */
    EASY_ITEMS = 64,        /* doubled at each exchange up to here, */
    EXCHANGES_MORE = 16,    /* and beyond after so many exchanges */
    LOADED_BYTES_MAX = 4 << 20, /* of items in one thread's magazines: what these may grow to */
};

enum {
    BUDGET_START =
        256 << 10,         /* bytes of items in a shard before misses ask for more; or a magazine */
    BUDGET_EASY = 4 << 20, /* bytes that any shard may come to hold */
    MEMORY_SHARE = 8,      /* of the memory limit: the most that one shard may hold */
    BURST_SHARE = 4,       /* of the budget: the part that a burst leaves, */
    BURST_MOST = 16,       /* unless it were more magazines */
};

/* ---- of a thread ---- */

static bool grant(sy_client *client, uint64_t items) {
    if (!client->config.loaded_items) return true;
    uint64_t granted = atomic_fetch_add_explicit(&client->granted, items, memory_order_relaxed);
    if (granted + items <= client->config.loaded_items) return true;
    atomic_fetch_sub_explicit(&client->granted, items, memory_order_relaxed);
    return false;
}

static uint32_t first_capacity(const sy_client *client) {
    size_t items = START_BYTES / client->config.item_bytes;
    return items > START_ITEMS ? START_ITEMS : items ? (uint32_t)items : 1;
}

static void leave_as_holder(sy_client *client) { atomic_fetch_sub(&client->holders, 1); }

/* A thread that holds nothing is about to hold something; false: it may not. It is counted before
 * it asks, so a limit that is set meanwhile counts it. */
static bool enter_as_holder(sy_client *client) {
    const sy_client_config *config = &client->config;
    size_t holders = atomic_fetch_add(&client->holders, 1) + 1;
    if (!config->admits || config->admits(config->owner, holders * 2 * config->magazine_items))
        return true;
    leave_as_holder(client);
    return false;
}

bool sy_capacity_widen(sy_client *client, sy_thread *thread, sy_slot *slot, uint32_t want) {
    if (slot->capacity >= want) return true;
    bool first = !slot->capacity;
    if (first && !enter_as_holder(client)) return false;
    uint64_t more = 2 * (uint64_t)(want - slot->capacity); /* two magazines */
    if (!grant(client, more)) {
        if (first) leave_as_holder(client);
        return false;
    }
    atomic_fetch_add_explicit(&thread->loaded_bytes, more * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint16_t)want;
    return true;
}

bool sy_capacity_grow(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t have = slot->capacity, most = (uint32_t)client->config.magazine_items;
    if (have >= most || (have >= EASY_ITEMS && slot->exchanges < EXCHANGES_MORE)) return false;
    uint32_t want = have ? have * 2 : first_capacity(client);
    if (want > most) want = most;
    uint64_t bytes = 2 * (uint64_t)(want - have) * client->config.item_bytes;
    uint64_t loaded = atomic_load_explicit(&thread->loaded_bytes, memory_order_relaxed);
    if (have && loaded + bytes > LOADED_BYTES_MAX) return false;
    return sy_capacity_widen(client, thread, slot, want);
}

void sy_capacity_give_up(sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint64_t items = 2 * (uint64_t)slot->capacity;
    if (items) leave_as_holder(client);
    atomic_fetch_sub_explicit(&thread->loaded_bytes, items * client->config.item_bytes,
                              memory_order_relaxed);
    if (client->config.loaded_items)
        atomic_fetch_sub_explicit(&client->granted, items, memory_order_relaxed);
    slot->capacity = 0;
}

void sy_capacity_halve(const sy_client *client, sy_thread *thread, sy_slot *slot) {
    uint32_t less = slot->capacity / 2;
    atomic_fetch_sub_explicit(&thread->loaded_bytes, 2 * less * client->config.item_bytes,
                              memory_order_relaxed);
    slot->capacity = (uint16_t)(slot->capacity - less);
}

/* ---- of the depot ---- */

int sy_budget_start(void) { return sy_depot_start(sy_os_affinity_count(), SY_CLIENTS_MAX); }

/* Whether a shard may hold so many bytes of items. The limit of memory is in files: it is read when
 * first it could matter, not by every program that starts. */
static bool is_allowed(uint64_t bytes) {
    static _Atomic uint64_t most; /* 0: not read yet */
    if (bytes <= BUDGET_EASY) return true;
    uint64_t limit = atomic_load_explicit(&most, memory_order_relaxed);
    if (!limit) {
        limit = sy_os_memory_limit() / MEMORY_SHARE;
        if (limit < BUDGET_EASY) limit = BUDGET_EASY;
        atomic_store_explicit(&most, limit, memory_order_relaxed);
    }
    return bytes <= limit;
}

static sy_depot_shard *own_shard(const sy_client *client) {
    return sy_depot_shards_of(client->number) + (sy_os_cpu() & (sy_depot_shard_count - 1));
}

static uint64_t first_budget(const sy_client *client) {
    uint64_t items = BUDGET_START / client->config.item_bytes,
             least = client->config.magazine_items;
    return items > least ? items : least;
}

static uint64_t budget_of(const sy_client *client, const sy_depot_shard *shard) {
    uint64_t budget = atomic_load_explicit(&shard->budget, memory_order_relaxed);
    return budget ? budget : first_budget(client);
}

static void put_in(const sy_client *client, sy_depot_shard *shard, sy_magazine *magazine) {
    uint32_t home = (uint32_t)(shard - sy_depot_shards_of(client->number));
    atomic_store_explicit(&magazine->home, home, memory_order_relaxed);
    sy_depot_push(shard, magazine);
}

void sy_budget_put(const sy_client *client, sy_magazine *magazine, bool surplus) {
    if (!sy_magazine_count(magazine)) {
        sy_store_put(magazine);
        return;
    }
    sy_depot_shard *shard = own_shard(client);
    if (surplus)
        atomic_fetch_add_explicit(&shard->surplus, sy_magazine_count(magazine),
                                  memory_order_relaxed);
    put_in(client, shard, magazine);
}

static void reverse(sy_magazine *magazine) {
    uintptr_t *low = magazine->items, *high = low + sy_magazine_count(magazine);
    while (low < --high) {
        uintptr_t item = *low;
        *low++ = *high;
        *high = item;
    }
}

bool sy_budget_deposit(sy_client *client, sy_magazine *magazine) {
    if (client->config.loaded_items) return false;
    sy_depot_shard *shard = own_shard(client);
    if (sy_depot_items(shard) + sy_magazine_count(magazine) > budget_of(client, shard)) {
        atomic_fetch_add_explicit(&shard->refused, sy_magazine_count(magazine),
                                  memory_order_relaxed);
        return false;
    }
    if (atomic_load_explicit(&shard->exported, memory_order_relaxed)) reverse(magazine);
    put_in(client, shard, magazine);
    return true;
}

sy_magazine *sy_budget_burst(sy_client *client) {
    if (!client->config.bursts || client->config.loaded_items) return NULL;
    sy_depot_shard *shard = own_shard(client);
    uint64_t stays = budget_of(client, shard) / BURST_SHARE;
    sy_magazine *chain = NULL, *magazine;
    for (unsigned i = 1; i < BURST_MOST && sy_depot_items(shard) > stays; i++) {
        if (!(magazine = sy_depot_pop(shard))) break;
        atomic_fetch_add_explicit(&shard->refused, sy_magazine_count(magazine),
                                  memory_order_relaxed);
        magazine->chain = chain, chain = magazine;
    }
    return chain;
}

/*
 * No shard had a magazine. If one was turned away before, it would have served now: the budget of
 * the shard that did so grows by as much, so that after one round a depot holds what the next one
 * wants.
 */
static void raise_budget(sy_client *client, sy_depot_shard *shards) {
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t refused = atomic_load_explicit(&shards[i].refused, memory_order_relaxed);
        if (!refused) continue;
        uint64_t more = refused < SY_MAGAZINE_ITEMS ? refused : SY_MAGAZINE_ITEMS;
        uint64_t budget = budget_of(client, &shards[i]) + more;
        atomic_store_explicit(&shards[i].refused, refused - more, memory_order_relaxed);
        if (is_allowed(budget * client->config.item_bytes))
            atomic_store_explicit(&shards[i].budget, budget, memory_order_relaxed);
        return;
    }
}

static void magazine_budget_count_hit(sy_depot_shard *own, sy_depot_shard *from) {
    uint32_t exported = from != own;
    atomic_fetch_add_explicit(&own->hits, 1, memory_order_relaxed);
    if (exported) atomic_fetch_add_explicit(&own->steals, 1, memory_order_relaxed);
    if (atomic_load_explicit(&from->exported, memory_order_relaxed) != exported)
        atomic_store_explicit(&from->exported, exported, memory_order_relaxed);
}

/* What was left when the magazine was taken. */
static void note_low(sy_depot_shard *shard, const sy_magazine *magazine) {
    uint64_t down = atomic_load_explicit(&magazine->items_down, memory_order_relaxed);
    uint64_t left = down - sy_magazine_count(magazine);
    if (left < atomic_load_explicit(&shard->low, memory_order_relaxed))
        atomic_store_explicit(&shard->low, left, memory_order_relaxed);
}

sy_magazine *sy_budget_withdraw(sy_client *client, bool *remote) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number), *own = own_shard(client);
    unsigned mine = (unsigned)(own - shards), mask = sy_depot_shard_count - 1;
    for (unsigned i = 0; i <= mask; i++) {
        sy_depot_shard *from = &shards[(mine + i) & mask];
        sy_magazine *magazine = sy_depot_pop(from);
        if (!magazine) continue;
        note_low(from, magazine);
        magazine_budget_count_hit(own, from);
        *remote = atomic_load_explicit(&magazine->home, memory_order_relaxed) != mine;
        return magazine;
    }
    atomic_fetch_add_explicit(&own->misses, 1, memory_order_relaxed);
    raise_budget(client, shards);
    return NULL;
}

sy_magazine *sy_budget_take(sy_client *client, unsigned most) {
    sy_magazine *chain = NULL, *magazine;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++)
        while (most > 0 && (magazine = sy_depot_pop(&shards[i])) != NULL) {
            note_low(&shards[i], magazine);
            magazine->chain = chain, chain = magazine;
            most--;
        }
    return chain;
}

sy_magazine *sy_budget_take_all(sy_client *client) { return sy_budget_take(client, UINT32_MAX); }

/* ---- reaping ---- */

void sy_budget_begin_reap(sy_client *client, bool forget) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t items = sy_depot_items(&shards[i]);
        uint64_t low = atomic_load_explicit(&shards[i].low, memory_order_relaxed);
        uint64_t surplus = low < items ? low : items;
        if (forget && atomic_load_explicit(&shards[i].refused, memory_order_relaxed))
            atomic_store_explicit(&shards[i].refused, 0, memory_order_relaxed);
        if (!items && !low) continue; /* perhaps never used: a page of zeros, and shall stay so */
        atomic_store_explicit(&shards[i].surplus, (uint32_t)surplus, memory_order_relaxed);
        atomic_store_explicit(&shards[i].low, items - surplus, memory_order_relaxed);
    }
}

static void lower_budget(const sy_client *client, sy_depot_shard *shard, uint64_t items) {
    uint64_t budget = budget_of(client, shard), least = first_budget(client) + items;
    atomic_store_explicit(&shard->budget, budget > least ? budget - items : 0,
                          memory_order_relaxed);
}

/* A magazine of what is to be reaped of a shard, or NULL. */
static sy_magazine *reap_one(const sy_client *client, sy_depot_shard *shard) {
    uint64_t surplus = atomic_load_explicit(&shard->surplus, memory_order_relaxed);
    sy_magazine *magazine = surplus ? sy_depot_pop(shard) : NULL;
    uint64_t count = magazine ? sy_magazine_count(magazine) : 0;
    bool taken = magazine && count <= surplus;
    if (magazine && !taken) sy_depot_push(shard, magazine);
    if (surplus)
        atomic_store_explicit(&shard->surplus, (uint32_t)(taken ? surplus - count : 0),
                              memory_order_relaxed);
    if (!taken) return NULL;
    lower_budget(client, shard, count);
    return magazine;
}

sy_magazine *sy_budget_reap(sy_client *client, unsigned most) {
    sy_magazine *chain = NULL, *magazine;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++)
        while (most > 0 && (magazine = reap_one(client, &shards[i])) != NULL) {
            magazine->chain = chain, chain = magazine;
            most--;
        }
    return chain;
}

void sy_budget_reset(const sy_client *client) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        atomic_store(&shards[i].budget, 0);
        atomic_store(&shards[i].refused, 0);
        atomic_store(&shards[i].hits, 0);
        atomic_store(&shards[i].misses, 0);
        atomic_store(&shards[i].steals, 0);
        atomic_store(&shards[i].surplus, 0);
        atomic_store(&shards[i].low, 0);
    }
}

/* ==== src/magazine/client.c ==== */

/*
 * client.c: the slow path of an allocation and of a free. The inline code of slabyard/loaded.h
 * comes here when the thread's loaded magazine is empty (allocation) or full (free).
 *
 * A thread has two magazines of a client: the loaded one, and the previous one, which is empty or
 * full (Bonwick and Adams, "Magazines and Vmem", 2001, section 3). An allocation tries, in this
 * order:
 *
 *     1. the loaded magazine, of which only a window was open    next_window
 *     2. the previous magazine, if it is full: exchange          exchange_for_full
 *     3. a full magazine from the depot                          sy_budget_withdraw
 *     4. the slabs: the client's refill fills the magazine       sy_slot_refill
 *     5. items of other shards and of parked threads: flushed    sy_client_alloc_unloaded
 *        to the slabs, then one item
 *     6. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the loaded magazine, if it has room                     sy_slot_push
 *     2. the previous magazine, if it is empty: exchange         sy_client_free_second
 *     3. a larger capacity for both, if the bounds allow it      sy_capacity_grow
 *     4. the previous magazine goes to the depot, or, if that    put_away_previous
 *        has enough, to the slabs: the client's flush
 *     5. an empty magazine takes the previous one's place        make_room_in_slot
 *     6. there is none: the loaded magazine is flushed           sy_slot_flush_loaded
 *
 * A thread without a record, or a client without magazines, goes straight to refill and flush.
 *
 * Two kinds of clients differ. For a one-way client (an epoch's) an allocation or a free goes to
 * one_way.h at the top of its function here. A client that sees frees (guards, zeroing) walks as
 * above, and the steps of slot.h keep its free direction shut: each free comes here, and so does
 * the allocation that is to be guarded (sample.h).
 *
 * Beside this file: how much a slot and the depot may hold (budget.h), reserved items (reserve.c),
 * what brings items back to the slabs (drain.c).
 */

/*
 * drain.h: the last step of an allocation, for client.c and one_way.c. What other layers drain and
 * reap with is in client.h.
 *
 * Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_DRAIN_H
#define SY_MAGAZINE_DRAIN_H

/*
 * An allocation that no magazine serves: the thread has no slot (NULL), or its slot could not be
 * filled. Gets one item from the slabs; if they have none, flushes items that wait elsewhere to the
 * slabs first. False with errno: there are none.
 */
bool sy_client_alloc_unloaded(sy_client *client, sy_slot *slot, uintptr_t *item);

#endif
/*
 * one_way.h: the slow path of a one-way client: what is freed is not given out again, but goes back
 * to the slabs. (A cache with epochs is one: its refill gives a thread that has begun another epoch
 * items of other slabs.)
 *
 *     alloc                free
 *       ^                   |
 *     [ loaded ]          [ outbox ]      the slot's two magazines; the outbox is `previous`
 *       |                   v
 *     refill  (client)    flush  (client)
 *
 * The slot's magazines are never exchanged, and none waits in the depot but those of ended threads.
 * The free direction is always shut. client.c calls these functions in place of its own steps.
 *
 * A thread notes the one-way clients that it has refilled from. sy_thread_put_back flushes what it
 * has loaded of them, and forgets the notes: the next item comes from refill.
 *
 * Below: slot.h. Used by the rest of magazine/ alone.
 */
#ifndef SY_MAGAZINE_ONE_WAY_H
#define SY_MAGAZINE_ONE_WAY_H

/* As sy_client_alloc_second, with its slot: an item of the loaded magazine, if that has one. */
static inline bool sy_one_way_take(const sy_client *client, sy_slot *slot, uintptr_t *item) {
    slot->base = slot->loaded->items;
    if (slot->top <= slot->base) return false;
    *item = sy_slot_pop(client, slot);
    return true;
}

/* As sy_client_free_second, with its slot: into the outbox, if that has room. Under a bound of
 * loaded items this is what the slot was granted. */
static inline bool sy_one_way_put(const sy_client *client, sy_slot *slot, uintptr_t item) {
    sy_magazine *outbox = slot->previous;
    uint32_t count = outbox ? sy_magazine_count(outbox) : 0;
    size_t most = client->config.loaded_items ? slot->capacity : client->config.magazine_items;
    if (!outbox || count >= most) return false;
    __atomic_store_n(&outbox->items[count], item, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    sy_magazine_set_count(outbox, count + 1);
    return true;
}

/* As sy_client_alloc and sy_client_free. */
bool sy_one_way_alloc(sy_client *client, uintptr_t *item);
void sy_one_way_free(sy_client *client, uintptr_t item);

/* Notes that the thread has items of the client; false: it was noted before, since the last
 * put-back. */
bool sy_one_way_note(sy_thread *thread, const sy_client *client);

/* Flushes what waits in the outbox; whether there was something. */
bool sy_one_way_flush_outbox(sy_client *client, sy_slot *slot);

#endif

enum { WINDOW = 16 }; /* items of another CPU's magazine that are fetched at a time */

/* ---- the thread's own magazines ---- */

/* This thread's slot as it stands, if it has a magazine loaded and no trim has asked for it since;
 * else NULL. A thread without slots of its own looks at the shut ones, which have none. */
static inline sy_slot *steady_slot(const sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    bool steady = slot->loaded && slot->generation == atomic_load_explicit(&client->generation,
                                                                           memory_order_relaxed);
    return SY_LIKELY(steady) ? slot : NULL;
}

/*
 * The objects of a magazine that another CPU filled are in that CPU's cache. They are asked for a
 * window at a time, one window ahead of use, by setting `base` in the midst of the magazine: the
 * fast path pays nothing, and comes here when a window has been given out.
 */
static void prefetch_below(uintptr_t *end, const uintptr_t *items) {
    for (unsigned i = 0; i < WINDOW && end > items; i++) sy_prefetch_for_write(*--end);
}

static void next_window(sy_slot *slot) {
    uintptr_t *items = slot->loaded->items;
    slot->base = slot->top - items > WINDOW ? slot->top - WINDOW : items;
    prefetch_below(slot->base, items);
}

static void first_window(sy_slot *slot) {
    prefetch_below(slot->top, slot->loaded->items);
    next_window(slot);
}

static inline bool has_window(const sy_slot *slot) { return slot->base > slot->loaded->items; }

/* The previous magazine, if it has items, takes the place of the loaded one, which is empty. */
static inline bool exchange_for_full(const sy_client *client, sy_slot *slot) {
    sy_magazine *empty = slot->loaded, *full = slot->previous;
    if (!full || !sy_magazine_count(full)) return false;
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(client, slot, full, empty);
    return true;
}

bool sy_client_alloc_second(sy_client *client, uintptr_t *item) {
    sy_slot *slot = steady_slot(client);
    if (!slot) return false;
    if (client->config.one_way) return sy_one_way_take(client, slot, item);
    if (has_window(slot)) {
        next_window(slot);
    } else if (slot->top <= slot->base) {
        if (!exchange_for_full(client, slot)) return false;
        slot->exchanges++;
        if (slot->top <= slot->base) return false; /* the next one is to be guarded */
    }
    *item = sy_slot_pop(client, slot);
    return true;
}

bool sy_client_free_second(sy_client *client, uintptr_t item) {
    sy_slot *slot = steady_slot(client);
    if (!slot) return false;
    if (client->config.one_way) return sy_one_way_put(client, slot, item);
    sy_magazine *empty = slot->previous;
    if (!sy_slot_has_room(client, slot)) {
        if (slot->capacity < client->config.magazine_items) return false;
        if (!empty || sy_magazine_count(empty)) return false;
        sy_slot_exchange(client, slot, empty, sy_slot_unload(slot));
    }
    sy_slot_push(client, slot, item);
    return true;
}

static bool is_last(const uintptr_t *items, size_t count, uintptr_t item) {
    return count && items[count - 1] == item;
}

bool sy_client_freed_last(const sy_client *client, uintptr_t item) {
    const sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    const sy_magazine *loaded = slot->loaded, *previous = slot->previous;
    if (!loaded) return false;
    if (is_last(loaded->items, (size_t)(slot->top - loaded->items), item)) return true;
    return previous && is_last(previous->items, sy_magazine_count(previous), item);
}

/* ---- allocation ---- */

/* The thread had no magazine with items: `full` is from the depot. */
static void load_from_depot(sy_client *client, sy_thread *thread, sy_slot *slot,
                            sy_magazine *full) {
    sy_magazine *empty = slot->loaded, *spare = slot->previous;
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(client, slot, full, spare ? spare : empty);
    /* Not before it is unloaded: the child of a fork would find it in two places. */
    if (spare) sy_thread_put_empty(thread, empty);
}

/* Gets items into the loaded magazine, which is empty; false with errno when there are none. */
static bool magazine_client_fill(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    if (exchange_for_full(client, slot)) return true;
    bool remote;
    sy_magazine *full = sy_budget_withdraw(client, &remote);
    if (!full) return sy_slot_refill(client, thread, slot, true);
    load_from_depot(client, thread, slot, full);
    if (remote && client->config.addresses && !client->config.sees_frees) first_window(slot);
    return true;
}

bool sy_client_alloc(sy_client *client, uintptr_t *item) {
    if (client->config.one_way) return sy_one_way_alloc(client, item);
    sy_thread *thread;
    sy_slot *slot = sy_slot_ready(client, &thread);
    if (slot && slot->top <= slot->base && has_window(slot)) next_window(slot);
    if (SY_LIKELY(slot && (slot->top > slot->base || magazine_client_fill(client, thread, slot)))) {
        *item = sy_slot_pop(client, slot);
        return true;
    }
    return sy_client_alloc_unloaded(client, slot, item);
}

static size_t pop_some(sy_slot *slot, uintptr_t *items, size_t count) {
    slot->base = slot->loaded->items;
    size_t have = (size_t)(slot->top - slot->base), most = have < count ? have : count;
    for (size_t got = 0; got < most; got++) items[got] = sy_slot_pop_inline(slot);
    return most;
}

size_t sy_client_alloc_loaded(sy_client *client, uintptr_t *items, size_t count) {
    sy_thread *thread;
    sy_slot *slot = count ? sy_slot_ready(client, &thread) : NULL;
    if (!slot) return 0;
    size_t got = pop_some(slot, items, count);
    if (got < count && !client->config.one_way && exchange_for_full(client, slot))
        got += pop_some(slot, items + got, count - got);
    return got;
}

/* ---- free ---- */

/* Takes the magazine with items out of `previous`: to the depot or, if that has enough, flushed and
 * kept as a spare. */
static void put_away_previous(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *older = slot->previous;
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    if (sy_budget_deposit(client, older)) return;
    sy_magazine_flush(client, older);
    sy_thread_put_empty(thread, older);
    sy_magazine_flush_chain(client, sy_budget_burst(client));
}

/* Works on a loaded magazine that is full, so that there is room in one, most often: what flush
 * calls (destructors, the handler of faults) may use this slot too. The caller looks again. */
static void make_room_in_slot(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    if (sy_capacity_grow(client, thread, slot)) {
        sy_slot_load(client, slot, sy_slot_unload(slot));
        /* A magazine of another thread may hold more than this one's may, even after growing. */
        if (sy_slot_has_room(client, slot)) return;
    }
    if (slot->previous && sy_magazine_count(slot->previous)) {
        put_away_previous(client, thread, slot);
        if (sy_slot_has_room(client, slot) || slot->previous) return;
    }
    sy_magazine *empty = slot->previous ? slot->previous : sy_thread_take_empty(thread);
    if (!empty) { /* nor is there one to be had: the full one, then */
        sy_slot_flush_loaded(client, slot);
        return;
    }
    sy_magazine_set_count(empty, 0);
    sy_slot_exchange(client, slot, empty, sy_slot_unload(slot));
}

void sy_client_free(sy_client *client, uintptr_t item) {
    if (client->config.one_way) {
        sy_one_way_free(client, item);
        return;
    }
    sy_thread *thread;
    sy_slot *slot;
    while ((slot = sy_slot_ready(client, &thread)) != NULL && !sy_slot_has_room(client, slot)) {
        SY_INSIDE(thread);
        make_room_in_slot(client, thread, slot);
    }
    if (SY_LIKELY(slot))
        sy_slot_push(client, slot, item);
    else
        client->config.flush(client->config.owner, &item, 1, NULL);
}

/* ==== src/magazine/depot.c ==== */

/*
 * depot.c: pushes and pops magazines on a shard's stack without a lock. A thread comes here when
 * its own two magazines are both full or both empty.
 */

static const uint64_t NUMBER_MASK = (UINT64_C(1) << SY_DEPOT_TAG_SHIFT) - 1;

unsigned sy_depot_shard_count = 1;
static sy_depot_shard *shards;

static void *take_shards(unsigned count, unsigned clients) {
    size_t bytes = (size_t)clients * count * sizeof(sy_depot_shard), page = sy_os_page_size();
    return sy_pages_take(sy_round_up(bytes, page), page, "slabyard depots");
}

/* Fewer shards will do where address space is short. */
int sy_depot_start(unsigned cpus, unsigned clients) {
    unsigned count = 1;
    while (count < cpus && count < SY_DEPOT_SHARDS_MAX) count *= 2;
    void *memory;
    while (!(memory = take_shards(count, clients)))
        if ((count /= 2) == 0) return -1;
    sy_depot_shard_count = count;
    shards = memory;
    return 0;
}

sy_depot_shard *sy_depot_shards_of(unsigned client) {
    return &shards[(size_t)client * sy_depot_shard_count];
}

static uint64_t with_next_tag(uint64_t top, uint32_t number) {
    return ((top | NUMBER_MASK) + 1) | number;
}

/* It has an item at least, and no more than fit; its number names it, and the word before its items
 * is 0. Nobody else holds it. */
static bool magazine_is_bounded(const sy_magazine *magazine) {
    uint32_t items = atomic_load_explicit(&magazine->count, memory_order_relaxed);
    return items > 0 && items <= SY_MAGAZINE_ITEMS && magazine->number &&
           sy_magazine_of(magazine->number) == magazine && magazine->items[-1] == 0;
}

void sy_depot_push(sy_depot_shard *shard, sy_magazine *magazine) {
    SY_INVARIANT(magazine_is_bounded(magazine));
    uint64_t items = atomic_load_explicit(&magazine->count, memory_order_relaxed);
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    do {
        uint32_t below = (uint32_t)(top & NUMBER_MASK);
        uint64_t items_below =
            below ? atomic_load_explicit(&sy_magazine_of(below)->items_down, memory_order_relaxed)
                  : 0;
        atomic_store_explicit(&magazine->next, below, memory_order_release);
        atomic_store_explicit(&magazine->items_down, items_below + items, memory_order_release);
    } while (!atomic_compare_exchange_weak_explicit(&shard->top, &top,
                                                    with_next_tag(top, magazine->number),
                                                    memory_order_acq_rel, memory_order_acquire));
}

sy_magazine *sy_depot_pop(sy_depot_shard *shard) {
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    for (;;) {
        uint32_t number = (uint32_t)(top & NUMBER_MASK);
        if (!number) return NULL;
        sy_magazine *magazine = sy_magazine_of(number);
        uint32_t next = atomic_load_explicit(&magazine->next, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&shard->top, &top, with_next_tag(top, next),
                                                  memory_order_acq_rel, memory_order_acquire)) {
            SY_INVARIANT(magazine_is_bounded(magazine));
            return magazine;
        }
    }
}

uint64_t sy_depot_items(sy_depot_shard *shard) {
    uint64_t top = atomic_load_explicit(&shard->top, memory_order_acquire);
    for (;;) {
        uint32_t number = (uint32_t)(top & NUMBER_MASK);
        if (!number) return 0;
        uint64_t items =
            atomic_load_explicit(&sy_magazine_of(number)->items_down, memory_order_acquire);
        uint64_t again = atomic_load_explicit(&shard->top, memory_order_relaxed);
        if (again == top) return items;
        top = atomic_load_explicit(&shard->top, memory_order_acquire);
    }
}

/* ==== src/magazine/drain.c ==== */

/*
 * drain.c: brings items back to the slabs from where they wait: this thread's slot, the slots of
 * parked threads, the depot.
 *
 *     wants                                       calls
 *     an allocation that found no item            sy_client_alloc_unloaded
 *     a trim                                      sy_client_drain
 *     a pass by growth, in steps                  sy_client_drain_step
 *     a pass by age, in steps                     sy_client_reap_step
 *
 * Each works in two stages. Under the lock of the thread list it takes magazines out of slots and
 * of the depot, and notes them as a move (roster.h), so that their items stay counted. With no lock
 * held it flushes and stores them. A thread that runs owns its slot: a drain changes the client's
 * generation, and the thread flushes its magazines when it sees that (sy_slot_ready).
 *
 * What a thread has had idle in its own slots is its own to flush: sy_thread_reap_step, roster.c.
 */

/*
 * roster.h: the clients by number, their pins, and the magazines that are on their way to a client.
 *
 * A client that is pinned is not closed, and its number is nobody else's.
 *
 * Used by the rest of magazine/ alone; client.h has what other layers call.
 */
#ifndef SY_MAGAZINE_ROSTER_H
#define SY_MAGAZINE_ROSTER_H

/* The lock of the thread list is held: the client of that number, or NULL. */
sy_client *sy_roster_at(unsigned number);

/* The lock is held before and after. To unpin lets it go if the client's end was put off. */
void sy_roster_pin(sy_client *client);
void sy_roster_unpin(sy_client *client);

/* What is moved stays counted, and is found by sy_client_holds. The lock of the thread list is held
 * at the beginning, since before the magazines were taken; none is while they are flushed and
 * stored. Whether there was an item in them. */
void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain);
bool sy_move_flush(sy_client *client, sy_move *move);

#endif

enum { STEP_MAGAZINES = 8 }; /* flushed in one step: a thousand items, some microseconds */

/* ---- taking and flushing ---- */

/* Takes the magazines out of the slots of threads that are parked; a chain. The lock is held. */
static sy_magazine *take_parked(sy_client *client) {
    sy_magazine *chain = NULL;
    if (!sy_threads_park()) return NULL;
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next) {
        if (!sy_thread_claim(thread)) continue;
        if (client->number < thread->slots_end) {
            sy_slot *slot = sy_thread_slot(thread, client->number);
            if (sy_slot_has_magazines(slot)) chain = sy_slot_take(slot, chain);
        }
        sy_thread_unclaim(thread);
    }
    return chain;
}

/* What parked threads hold waits in the depot from now on, to be flushed in steps. */
static void deposit_parked(sy_client *client, bool surplus) {
    sy_threads_lock();
    sy_magazine *chain = take_parked(client);
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        sy_budget_put(client, magazine, surplus);
    }
    sy_threads_unlock();
}

/* Of parked threads, and of the depot. The lock is held. */
static sy_magazine *magazine_drain_take_all(sy_client *client, unsigned most) {
    sy_magazine *chain = take_parked(client), **end = &chain;
    while (*end) end = &(*end)->chain;
    *end = sy_budget_take(client, most);
    return chain;
}

/* Flushes magazines that `take` gives, up to `most`; whether there was an item in them. */
static bool move_out(sy_client *client, sy_magazine *(*take)(sy_client *client, unsigned most),
                     unsigned most) {
    sy_move move;
    sy_threads_lock();
    sy_move_begin(client, &move, take(client, most));
    sy_threads_unlock();
    return sy_move_flush(client, &move);
}

/* Brings back items that wait where this thread does not look; whether there were any. */
static bool reclaim_waiting(sy_client *client) { return move_out(client, magazine_drain_take_all, UINT_MAX); }

/* ---- for an allocation ---- */

bool sy_client_alloc_unloaded(sy_client *client, sy_slot *slot, uintptr_t *item) {
    const sy_client_config *config = &client->config;
    if (!slot && config->refill(config->owner, item, 1)) return true;
    int error = errno;
    bool outbox = slot && config->one_way && sy_one_way_flush_outbox(client, slot);
    if ((reclaim_waiting(client) || outbox) && config->refill(config->owner, item, 1)) return true;
    errno = error;
    return false;
}

/* ---- drains ---- */

/* Flushes what this thread's slot holds; its magazines go. */
static void flush_own_slot(sy_client *client, sy_slot *slot) {
    sy_move move;
    if (client->config.sees_frees) sy_sample_count(client, slot);
    sy_threads_lock();
    sy_move_begin(client, &move, sy_slot_take(slot, NULL));
    sy_threads_unlock();
    sy_move_flush(client, &move);
}

/* Asks running threads to flush. This one does, unless it is inside a slot, perhaps this one: a
 * constructor trims. Then it does so at its next slow path, as the others. */
static void begin_drain(sy_client *client) {
    uint32_t before = atomic_fetch_add_explicit(&client->generation, 1, memory_order_relaxed);
    sy_thread *thread = sy_thread_running();
    if (!thread || thread->inside || client->number >= thread->slots_end) return;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    slot->generation = before + 1;
    slot->reserved = 0;
    if (slot->loaded) flush_own_slot(client, slot);
}

void sy_client_drain(sy_client *client) {
    begin_drain(client);
    reclaim_waiting(client);
}

bool sy_client_drain_step(sy_client *client, bool first) {
    if (first) {
        begin_drain(client);
        deposit_parked(client, false);
    }
    return move_out(client, sy_budget_take, STEP_MAGAZINES);
}

bool sy_client_reap_step(sy_client *client, bool first, bool idle) {
    if (first) {
        sy_budget_begin_reap(client, idle);
        if (idle) deposit_parked(client, true);
    }
    return move_out(client, sy_budget_reap, STEP_MAGAZINES);
}

/* ==== src/magazine/one_way.c ==== */

/*
 * one_way.c: the slow path of an allocation and of a free of a one-way client, and what a thread
 * puts back when it begins another epoch.
 *
 * An allocation tries, in this order:
 *
 *     1. the loaded magazine                                     sy_one_way_take
 *     2. the slabs: the client's refill fills the magazine       refill_one_way
 *     3. items of this thread's outbox, of parked threads, of    sy_client_alloc_unloaded
 *        ended ones: flushed to the slabs, then one item
 *     4. no memory: false, with errno
 *
 * A free tries, in this order:
 *
 *     1. the outbox, if it has room                              sy_one_way_put
 *     2. the outbox is flushed; it gets a new magazine           empty_outbox
 *     3. there is no magazine: the item is flushed alone         sy_one_way_free
 */

/* ---- allocation ---- */

bool sy_one_way_note(sy_thread *thread, const sy_client *client) {
    unsigned count = thread->one_way_count;
    for (unsigned i = 0; i < count && i < SY_ONE_WAY_NOTED; i++)
        if (thread->one_way[i] == client->number) return false;
    if (count < SY_ONE_WAY_NOTED) thread->one_way[count] = (uint16_t)client->number;
    if (count <= SY_ONE_WAY_NOTED) thread->one_way_count = count + 1;
    return true;
}

/* The first refill since the last put-back may be for a few items only: the capacity stays. */
static void refill_one_way(sy_client *client, sy_thread *thread, sy_slot *slot) {
    slot->exchanges++;
    slot->reserved = 0;
    bool first = sy_one_way_note(thread, client);
    sy_slot_refill(client, thread, slot, !first);
}

bool sy_one_way_alloc(sy_client *client, uintptr_t *item) {
    sy_thread *thread;
    sy_slot *slot = sy_slot_ready(client, &thread);
    if (slot) {
        if (sy_one_way_take(client, slot, item)) return true;
        refill_one_way(client, thread, slot);
        if (sy_one_way_take(client, slot, item)) return true;
    }
    return sy_client_alloc_unloaded(client, slot, item);
}

/* ---- free ---- */

/* Makes room in the outbox; false: there is no magazine to be had. The caller looks again: what
 * flush calls (destructors, the handler of faults) may use this slot too. */
static bool empty_outbox(sy_client *client, sy_thread *thread, sy_slot *slot) {
    sy_magazine *outbox = slot->previous;
    slot->exchanges++;
    if (!outbox) {
        outbox = sy_thread_take_empty(thread);
        if (!outbox) return false;
        sy_magazine_set_count(outbox, 0);
        sy_slot_set_magazines(slot, slot->loaded, outbox);
        return true;
    }
    sy_slot_set_magazines(slot, slot->loaded, NULL);
    sy_magazine_flush(client, outbox);
    sy_thread_put_empty(thread, outbox);
    return true;
}

void sy_one_way_free(sy_client *client, uintptr_t item) {
    sy_thread *thread;
    sy_slot *slot;
    bool more = true;
    while (more && (slot = sy_slot_ready(client, &thread)) != NULL) {
        if (sy_one_way_put(client, slot, item)) return;
        SY_INSIDE(thread);
        more = empty_outbox(client, thread, slot);
    }
    client->config.flush(client->config.owner, &item, 1, NULL);
}

bool sy_one_way_flush_outbox(sy_client *client, sy_slot *slot) {
    if (!slot->previous || !sy_magazine_count(slot->previous)) return false;
    sy_magazine_flush(client, slot->previous);
    return true;
}

/* ---- put back ---- */

/* Items in the loaded magazine. Not those above `base`: allocation may be shut below `top`. */
static size_t loaded_count(const sy_slot *slot) {
    return slot->loaded ? (size_t)(slot->top - slot->loaded->items) : 0;
}

/* The magazine stays. If most of what it may hold was not used, it may hold less from now on. */
static void put_back_loaded(sy_client *client, sy_thread *thread, sy_slot *slot) {
    bool much = loaded_count(slot) * 2 >= slot->capacity;
    if (much && !client->config.loaded_items) sy_capacity_halve(client, thread, slot);
    sy_slot_flush_loaded(client, slot);
}

/* The lock is held before and after; while the client is pinned its slots are not taken. */
static void put_back(sy_thread *thread, unsigned number) {
    sy_slot *slot = sy_thread_slot(thread, number);
    sy_client *client = sy_roster_at(number);
    if (!client || !client->config.one_way || client->suspended || !loaded_count(slot)) return;
    sy_roster_pin(client);
    sy_threads_unlock();
    put_back_loaded(client, thread, slot);
    sy_threads_lock();
    sy_roster_unpin(client);
}

/* A parked thread has what it had, if nobody has drained it: it runs for this. */
void sy_thread_put_back(void) {
    sy_thread *thread = sy_thread_known();
    unsigned count = thread ? thread->one_way_count : 0;
    if (!count) return;
    uint16_t noted[SY_ONE_WAY_NOTED]; /* destructors may be the reason for noting some again */
    memcpy(noted, thread->one_way, sizeof noted);
    sy_thread_self();
    thread->one_way_count = 0;
    sy_threads_lock();
    if (count <= SY_ONE_WAY_NOTED)
        while (count > 0) put_back(thread, noted[--count]);
    else
        for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++)
            put_back(thread, number);
    sy_threads_unlock();
    sy_clients_leave();
}

/* ==== src/magazine/reserve.c ==== */

/*
 * reserve.c: gives a thread its items before it allocates: sy_client_reserve fills its magazines,
 * so that the next `count` allocations need nothing from below. Reserved items stay in the slot
 * whatever their age, and none of them is guarded, until the slot takes a slow path that finds it
 * empty or full, or the client is drained (`reserved` in sy_slot).
 */

void sy_client_prepare(sy_client *client) {
    sy_thread *thread;
    sy_slot_ready(client, &thread);
}

/* Items behind the `have` that a magazine has, until there are `want`; how many there are. */
static size_t top_up(sy_client *client, sy_magazine *magazine, size_t have, size_t want) {
    const sy_client_config *config = &client->config;
    if (have >= want) return have;
    return have + config->refill(config->owner, magazine->items + have, want - have);
}

static size_t fill_loaded(sy_client *client, sy_slot *slot, size_t want, size_t reserved) {
    size_t have = (size_t)(slot->top - slot->loaded->items);
    have = top_up(client, slot->loaded, have, want);
    slot->reserved = reserved;
    sy_magazine_set_count(slot->loaded, have);
    sy_slot_load(client, slot, slot->loaded);
    return have;
}

static size_t fill_previous(sy_client *client, sy_thread *thread, sy_slot *slot, size_t want) {
    sy_magazine *magazine = slot->previous;
    if (!want) return 0;
    if (!magazine) {
        magazine = sy_thread_take_empty(thread);
        if (!magazine) return 0;
        sy_magazine_set_count(magazine, 0);
        sy_slot_set_magazines(slot, slot->loaded, magazine);
    }
    size_t have = top_up(client, magazine, sy_magazine_count(magazine), want);
    sy_magazine_set_count(magazine, have);
    return have;
}

/* A one-way client allocates from the loaded magazine only: the other one is the outbox. */
size_t sy_client_reserve(sy_client *client, size_t count) {
    sy_thread *thread;
    sy_slot *slot = sy_slot_ready(client, &thread);
    size_t most = client->config.magazine_items;
    size_t first = count < most ? count : most, rest = count - first;
    if (rest > (client->config.one_way ? 0 : most)) return 0;
    if (!slot || !sy_capacity_widen(client, thread, slot, (uint32_t)first)) return 0;
    if (client->config.one_way) sy_one_way_note(thread, client);
    SY_INSIDE(thread);
    size_t have = fill_loaded(client, slot, first, count);
    return have + fill_previous(client, thread, slot, rest);
}

/* ==== src/magazine/roster.c ==== */

/*
 * roster.c: the clients by number: opening, closing and pinning them, what they hold, and what
 * becomes of it when a thread ends or the process forks.
 */

enum { magazine_roster_STEP_SLOTS = 64, STEP_FLUSHES = 4 }; /* of a thread that looks for idle ones */

static sy_client *clients[SY_CLIENTS_MAX];      /* by number; guarded by the thread list's lock */
static uint16_t unused_numbers[SY_CLIENTS_MAX]; /* closed ones, a stack; guarded by the same */
static unsigned unused_count, magazine_roster_next_number = SY_CLIENT_DEMANDED;

sy_client *sy_roster_at(unsigned number) { return clients[number]; }

/* ---- what this thread is in the midst of ---- */

enum { NOTED = 16 }; /* of each: deeper than functions of the program's nest */

/*
 * A thread that is in a function of the program's waits for no pin: it may have the pin itself, or
 * two threads may have one each and wait for the other's. So a client that it wants to end is ended
 * later, by the thread that unpins it last. A slow path has no pin, which would cost a lock; if a
 * function that it has called wants to end its client, the client is pinned then, until the slow
 * path has been left.
 */
static SY_TLS struct {
    sy_client *pinned[NOTED], *called[NOTED];
    unsigned pins, calls; /* more than NOTED: those beyond are not noted, and what is pinned so is
                           * another thread's to the child of a fork */
    sy_client *held;      /* pinned for the slow paths that this thread is in: a list */
} own_moves;

unsigned sy_slow_path_begin(sy_client *client) {
    sy_callback_check();
    if (own_moves.calls < NOTED) own_moves.called[own_moves.calls] = client;
    return own_moves.calls++;
}

/* Whether a slow path of the client, further up, is calling the program. */
static bool is_called(const sy_client *client) {
    for (unsigned i = 0; i < own_moves.calls && i < NOTED; i++)
        if (own_moves.called[i] == client) return true;
    return own_moves.calls > NOTED;
}

void sy_roster_pin(sy_client *client) {
    atomic_fetch_add_explicit(&client->pins, 1, memory_order_relaxed);
    if (own_moves.pins < NOTED) own_moves.pinned[own_moves.pins] = client;
    own_moves.pins++;
}

/* The lock is held before and after, and let go for an end that was put off. */
static void drop_pin(sy_client *client) {
    if (!atomic_load_explicit(&client->pins, memory_order_relaxed))
        return; /* a child's, not noted */
    if (atomic_fetch_sub_explicit(&client->pins, 1, memory_order_relaxed) != 1) return;
    if (client->awaited) sy_os_wake(&client->pins, 1 << 20);
    void (*end)(void *arg) = client->end;
    client->end = NULL;
    if (!end) return;
    void *arg = client->end_arg;
    sy_threads_unlock();
    end(arg);
    sy_threads_lock();
}

void sy_roster_unpin(sy_client *client) {
    own_moves.pins--;
    drop_pin(client);
}

/* The lock is held. */
static void put_off(sy_client *client, void (*end)(void *arg), void *arg) {
    client->suspended = true;
    client->end = end;
    client->end_arg = arg;
    if (!is_called(client)) return;
    atomic_fetch_add_explicit(&client->pins, 1, memory_order_relaxed);
    client->next_held = own_moves.held;
    own_moves.held = client;
}

bool sy_clients_leave(void) {
    sy_client **at = &own_moves.held, *client;
    while ((client = *at) != NULL) {
        if (is_called(client)) {
            at = &client->next_held;
            continue;
        }
        *at = client->next_held;
        sy_threads_lock();
        drop_pin(client);
        sy_threads_unlock();
        at = &own_moves.held; /* what was called may have put off others */
    }
    return own_moves.held;
}

void sy_slow_path_end(const sy_slow_path *path) {
    own_moves.calls = path->outer;
    if (SY_UNLIKELY(!path->done && own_moves.held)) sy_clients_leave();
}

/* ---- flushing ---- */

void sy_move_begin(sy_client *client, sy_move *move, sy_magazine *chain) {
    *move = (sy_move){.chain = chain, .thread = &own_moves, .next = client->moves};
    client->moves = move;
}

/* The lock is held. */
static void sy_move_end(sy_client *client, const sy_move *move) {
    sy_move **at = &client->moves;
    while (*at != move) at = &(*at)->next;
    *at = move->next;
}

bool sy_move_flush(sy_client *client, sy_move *move) {
    bool any = false;
    sy_magazine *magazine;
    while ((magazine = move->chain) != NULL) {
        any |= sy_magazine_count(magazine) > 0;
        sy_magazine_flush_counted(client, magazine);
        sy_threads_lock();
        move->chain = magazine->chain;
        sy_threads_unlock();
        sy_store_put(magazine);
    }
    sy_threads_lock();
    sy_move_end(client, move);
    sy_threads_unlock();
    return any;
}

/* The first magazine may be in the midst of its flush, so what it holds is lost; the others wait in
 * the depot. */
static void end_move_of_other(sy_client *client, sy_move *move) {
    if (move->chain) sy_magazine_set_count(move->chain, 0);
    for (sy_magazine *next, *magazine = move->chain; magazine; magazine = next) {
        next = magazine->chain;
        sy_budget_put(client, magazine, false);
    }
}

/* In the child of a fork. */
static void end_moves_of_others(sy_client *client) {
    sy_move **at = &client->moves, *move;
    while ((move = *at) != NULL) {
        if (move->thread == &own_moves) {
            at = &move->next;
            continue;
        }
        *at = move->next;
        end_move_of_other(client, move);
    }
}

/* Takes the magazines of a slot of this thread, and flushes them. The lock is held before and
 * after: another thread may be destroying a cache that this one has used, so the client is pinned.
 */
static void flush_and_pin(sy_client *client, sy_slot *slot) {
    sy_move move;
    sy_move_begin(client, &move, sy_slot_take(slot, NULL));
    sy_roster_pin(client);
    sy_threads_unlock();
    sy_move_flush(client, &move);
    sy_threads_lock();
    sy_roster_unpin(client);
}

void sy_thread_flush(void) {
    sy_thread *thread = sy_thread_self();
    if (!thread) return;
    sy_threads_lock();
    for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        sy_client *client = clients[number];
        if (sy_slot_has_magazines(slot) && !client->suspended) flush_and_pin(client, slot);
    }
    sy_threads_unlock();
    sy_clients_leave();
}

/* Flushes the slot, of which nobody else may make use, if that can be; the lock is held before and
 * after. */
static void flush_idle(sy_thread *thread, sy_slot *slot, unsigned number) {
    sy_client *client = clients[number];
    if (client->suspended || client->config.calls_back) return;
    sy_capacity_give_up(client, thread, slot);
    flush_and_pin(client, slot);
}

/* Whether the slot holds items and has had no exchange since this was asked before. */
static bool is_idle(sy_slot *slot) {
    if (!sy_slot_has_magazines(slot)) return false;
    bool idle = slot->seen == slot->exchanges && !slot->reserved && sy_slot_items(slot) > 0;
    slot->seen = slot->exchanges;
    return idle;
}

/* The lock is held meanwhile but for the flushes: a client of these slots may be closed by another
 * thread. */
bool sy_thread_reap_step(void) {
    sy_thread *thread = sy_thread_running();
    if (!thread || thread->inside) return false;
    unsigned number = thread->next_idle, looked = 0, flushed = 0;
    sy_threads_lock();
    for (; number < thread->slots_end && looked < magazine_roster_STEP_SLOTS && flushed < STEP_FLUSHES; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        looked++;
        if (!is_idle(slot)) continue;
        flush_idle(thread, slot, number);
        flushed++;
    }
    sy_threads_unlock();
    bool more = number < thread->slots_end;
    thread->next_idle = more ? number : SY_CLIENT_FIRST;
    sy_clients_leave();
    return more;
}

void sy_client_held(const sy_client *client, size_t *depot, size_t *loaded) {
    *depot = *loaded = 0;
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) *depot += sy_depot_items(&shards[i]);
    for (const sy_move *move = client->moves; move; move = move->next)
        for (const sy_magazine *magazine = move->chain; magazine; magazine = magazine->chain)
            *depot += sy_magazine_count(magazine);
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next)
        if (client->number < thread->slots_end)
            *loaded += sy_slot_items(sy_thread_slot(thread, client->number));
}

sy_client_counts sy_client_count(const sy_client *client) {
    sy_client_counts counts = {0};
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        counts.depot_hits += atomic_load_explicit(&shards[i].hits, memory_order_relaxed);
        counts.depot_misses += atomic_load_explicit(&shards[i].misses, memory_order_relaxed);
        counts.depot_steals += atomic_load_explicit(&shards[i].steals, memory_order_relaxed);
    }
    return counts;
}

/* Reads items that their owner may be changing: the answer is then as good as none, and said to be.
 * Not by atomic loads, which ThreadSanitizer sees even where it is told not to look. */
__attribute__((no_sanitize("thread"))) static bool magazine_roster_contains(const uintptr_t *items, size_t count,
                                                            uintptr_t item) {
    for (size_t i = 0; i < count; i++)
        if (*(const volatile uintptr_t *)&items[i] == item) return true;
    return false;
}

static bool slot_holds(const sy_slot *slot, uintptr_t item) {
    const sy_magazine *loaded = __atomic_load_n(&slot->loaded, __ATOMIC_ACQUIRE);
    const sy_magazine *previous = __atomic_load_n(&slot->previous, __ATOMIC_ACQUIRE);
    const uintptr_t *top = __atomic_load_n(&slot->top, __ATOMIC_RELAXED);
    if (loaded && top >= loaded->items && top <= loaded->items + SY_MAGAZINE_ITEMS &&
        magazine_roster_contains(loaded->items, (size_t)(top - loaded->items), item))
        return true;
    return previous && previous != loaded &&
           magazine_roster_contains(previous->items, sy_magazine_count(previous), item);
}

static bool depot_holds(const sy_client *client, uintptr_t item) {
    sy_depot_shard *shards = sy_depot_shards_of(client->number);
    for (unsigned i = 0; i < sy_depot_shard_count; i++) {
        uint64_t top = atomic_load_explicit(&shards[i].top, memory_order_acquire);
        uint32_t number = (uint32_t)(top & ((UINT64_C(1) << SY_DEPOT_TAG_SHIFT) - 1));
        /* The stack may change under us; whatever it becomes has no more magazines than there are.
         */
        for (uint32_t steps = 0; number && steps >> SY_MAGAZINE_NUMBER_BITS == 0; steps++) {
            const sy_magazine *magazine = sy_magazine_of(number);
            if (magazine_roster_contains(magazine->items, sy_magazine_count(magazine), item)) return true;
            number = atomic_load_explicit(&magazine->next, memory_order_acquire);
        }
    }
    return false;
}

static bool moves_hold(const sy_client *client, uintptr_t item) {
    for (const sy_move *move = client->moves; move; move = move->next)
        for (const sy_magazine *magazine = move->chain; magazine; magazine = magazine->chain)
            if (magazine_roster_contains(magazine->items, sy_magazine_count(magazine), item)) return true;
    return false;
}

static bool threads_hold(const sy_client *client, uintptr_t item) {
    bool held = false;
    for (sy_thread *thread = sy_threads_first(); thread && !held; thread = thread->next)
        if (client->number < thread->slots_end)
            held = slot_holds(sy_thread_slot(thread, client->number), item);
    return held;
}

/* Threads twice: a magazine may have gone from the depot to one of them meanwhile. */
bool sy_client_holds(sy_client *client, uintptr_t item) {
    return threads_hold(client, item) || depot_holds(client, item) || moves_hold(client, item) ||
           threads_hold(client, item);
}

void sy_clients_lock(void) { sy_threads_lock(); }

void sy_clients_unlock(void) { sy_threads_unlock(); }

/* The end of a thread, the lock held: its magazines with items wait in the depot, the others are
 * stored. */
static void magazine_roster_empty_slots(sy_thread *thread) {
    for (unsigned number = SY_CLIENT_FIRST; number < thread->slots_end; number++) {
        sy_slot *slot = sy_thread_slot(thread, number);
        sy_client *client = clients[number];
        sy_magazine *magazines[2] = {slot->loaded, slot->previous};
        if (magazines[0] == magazines[1]) magazines[1] = NULL;
        for (int i = 0; i < 2; i++) {
            sy_magazine *magazine = magazines[i];
            if (!magazine) continue;
            if (i == 0)
                sy_magazine_set_count(
                    magazine, sy_slot_items(&(sy_slot){.loaded = magazine, .top = slot->top}));
            sy_budget_put(client, magazine, false);
        }
        if (client) sy_capacity_give_up(client, thread, slot);
        *slot = (sy_slot){0};
    }
}

static int start_magazines(void) {
    sy_threads_start(magazine_roster_empty_slots);
    return sy_budget_start();
}

/*
 * A number for a new client, or 0; the lock is held. Not a multiple of 16: there the loaded slot,
 * at 1 KiB times something, would lie in the cache set in which every object of 1 KiB and of
 * multiples of it begins.
 */
static unsigned take_number(unsigned wanted) {
    if (wanted) return clients[wanted] ? 0 : wanted;
    if (unused_count) return unused_numbers[--unused_count];
    if (magazine_roster_next_number % 16 == 0 && magazine_roster_next_number < SY_CLIENTS_MAX) magazine_roster_next_number++;
    return magazine_roster_next_number < SY_CLIENTS_MAX ? magazine_roster_next_number++ : 0;
}

int sy_client_open(sy_client *client, const sy_client_config *config) {
    *client = (sy_client){.config = *config};
    if (client->config.item_bytes == 0) client->config.item_bytes = 1;
    if (client->config.magazine_items > SY_MAGAZINE_ITEMS)
        client->config.magazine_items = SY_MAGAZINE_ITEMS;
    sy_threads_lock();
    unsigned number = take_number(config->number);
    if (number) {
        client->number = number;
        clients[number] = client;
    }
    sy_threads_unlock();
    if (number) return 0;
    errno = config->number ? EBUSY : ENOMEM;
    return -1;
}

/* The lock is held before and after, and let go while trims finish with the client. */
static void wait_for_pins(sy_client *client) {
    uint32_t pins;
    client->awaited = true;
    while ((pins = atomic_load_explicit(&client->pins, memory_order_relaxed)) != 0) {
        sy_threads_unlock();
        sy_os_wait(&client->pins, pins);
        sy_threads_lock();
    }
    client->awaited = false;
}

bool sy_client_suspend(sy_client *client, void (*end)(void *arg), void *arg) {
    sy_callback_check();
    sy_threads_lock();
    bool pinned = atomic_load_explicit(&client->pins, memory_order_relaxed) != 0;
    bool waits =
        client->closing || is_called(client) || (pinned && (own_moves.pins || own_moves.calls));
    if (!waits) {
        client->suspended = true;
        wait_for_pins(client);
    } else if (end && !client->end && !client->closing) {
        put_off(client, end, arg);
    }
    sy_threads_unlock();
    return !waits;
}

void sy_client_resume(sy_client *client) {
    sy_threads_lock();
    client->suspended = false;
    sy_threads_unlock();
}

/* Takes all magazines of the client out of every thread's slot; nobody uses it. The lock is held.
 */
static sy_magazine *take_loaded(sy_client *client) {
    sy_magazine *chain = NULL;
    for (sy_thread *thread = sy_threads_first(); thread; thread = thread->next) {
        if (client->number >= thread->slots_end) continue;
        sy_slot *slot = sy_thread_slot(thread, client->number);
        chain = sy_slot_take(slot, chain);
        sy_capacity_give_up(client, thread, slot);
        *slot = (sy_slot){0};
    }
    return chain;
}

void sy_client_close(sy_client *client) {
    sy_threads_lock();
    client->closing = true;
    wait_for_pins(client);
    sy_magazine *chain = take_loaded(client);
    clients[client->number] = NULL;
    sy_threads_unlock();
    sy_magazine_flush_chain(client, chain);
    sy_magazine_flush_chain(client, sy_budget_take_all(client));
    sy_budget_reset(client);
}

void sy_client_give_number(const sy_client *client) {
    if (client->number < SY_CLIENT_DEMANDED) return;
    sy_threads_lock();
    unused_numbers[unused_count++] = (uint16_t)client->number;
    sy_threads_unlock();
}

size_t sy_client_offset(const sy_client *client) { return client->number * sizeof(sy_slot); }

sy_client *sy_client_next_locked(unsigned after) {
    for (unsigned number = after + 1; number < magazine_roster_next_number; number++)
        if (clients[number]) return clients[number];
    return NULL;
}

sy_client *sy_client_pin_next(unsigned after) {
    sy_threads_lock();
    sy_client *found = sy_client_next_locked(after);
    while (found && found->suspended) found = sy_client_next_locked(found->number);
    if (found) sy_roster_pin(found);
    sy_threads_unlock();
    return found;
}

bool sy_client_pin(sy_client *client) {
    sy_threads_lock();
    bool open = !client->suspended;
    if (open) sy_roster_pin(client);
    sy_threads_unlock();
    return open;
}

void sy_client_unpin(sy_client *client) {
    sy_threads_lock();
    sy_roster_unpin(client);
    sy_threads_unlock();
    sy_clients_leave();
}

size_t sy_magazine_trim(void) { return sy_threads_trim() + sy_store_trim(); }

bool sy_magazine_trim_step(unsigned *at, bool aged, size_t *bytes) {
    if (sy_store_trim_step(at, aged, bytes)) return true;
    size_t of_thread = sy_threads_trim_one();
    *bytes += of_thread;
    return of_thread > 0;
}

size_t sy_magazine_bytes(void) { return sy_threads_bytes() + sy_store_bytes(); }

static void orphan_others(void) {
    sy_threads_lock();
    sy_threads_orphan_others();
    for (unsigned number = SY_CLIENT_FIRST; number < magazine_roster_next_number; number++)
        if (clients[number]) {
            end_moves_of_others(clients[number]);
            atomic_store(&clients[number]->pins, 0); /* theirs, and our own: */
        }
    for (unsigned i = 0; i < own_moves.pins && i < NOTED; i++)
        atomic_fetch_add(&own_moves.pinned[i]->pins, 1);
    for (sy_client *client = own_moves.held; client; client = client->next_held)
        atomic_fetch_add(&client->pins, 1);
    sy_threads_unlock();
}

const sy_part sy_threads_part = {.start = start_magazines,
                                 .hold = sy_threads_hold,
                                 .drop = sy_threads_drop,
                                 .recover = orphan_others};

/* ==== src/magazine/sample.c ==== */

/*
 * sample.c: tells the slow path of an allocation whether this allocation is to be guarded. It is
 * the first thing that a guarded cache asks there.
 */

bool sy_client_due(sy_client *client) {
    sy_slot *slot = (sy_slot *)sy_abi_1 + client->number;
    if (!client->config.magazine_items) return sy_guard_due();
    if (slot->reserved) return false;
    if (slot->loaded) sy_sample_count(client, slot);
    bool due = sy_guard_left <= 1 && sy_guard_due();
    if (slot->loaded) sy_sample_arm(client, slot);
    return due;
}

/* ==== src/magazine/slot.c ==== */

/*
 * slot.c: the steps on a loaded slot that take more than a few instructions: it gets its first
 * magazine, does what a trim has asked for, is filled from the slabs, is flushed to them.
 */

/* ---- flushing ---- */

void sy_magazine_flush(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    sy_magazine_set_count(magazine, 0);
    if (count) client->config.flush(client->config.owner, magazine->items, count, NULL);
}

void sy_magazine_flush_counted(sy_client *client, sy_magazine *magazine) {
    uint32_t count = sy_magazine_count(magazine);
    if (count) client->config.flush(client->config.owner, magazine->items, count, &magazine->count);
}

void sy_magazine_flush_chain(sy_client *client, sy_magazine *chain) {
    while (chain) {
        sy_magazine *magazine = chain;
        chain = magazine->chain;
        sy_magazine_flush(client, magazine);
        sy_store_put(magazine);
    }
}

void sy_slot_flush_loaded(sy_client *client, sy_slot *slot) {
    size_t count = (size_t)(slot->top - slot->loaded->items);
    if (client->config.sees_frees) sy_sample_count(client, slot);
    slot->base = slot->loaded->items;
    sy_slot_set_top(slot, slot->base);
    slot->mark = 0;
    if (count) client->config.flush(client->config.owner, slot->loaded->items, count, NULL);
}

/* Flushes what the slot holds; its magazines stay. */
static void flush_slot(sy_client *client, sy_slot *slot) {
    if (slot->loaded) sy_slot_flush_loaded(client, slot);
    if (slot->previous) sy_magazine_flush(client, slot->previous);
}

/* ---- a slot that is ready ---- */

/* Gives a slot its first magazine; false if there is none or the slot may hold nothing. */
static bool open_slot(sy_client *client, sy_thread *thread, sy_slot *slot) {
    if (!slot->capacity && !sy_capacity_grow(client, thread, slot)) return false;
    sy_magazine *magazine = sy_thread_take_empty(thread);
    if (!magazine) return false;
    slot->generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    sy_magazine_set_count(magazine, 0);
    if (client->number >= thread->slots_end)
        atomic_store_explicit(&thread->slots_end, client->number + 1, memory_order_relaxed);
    sy_slot_load(client, slot, magazine);
    return true;
}

/* Its two magazines are different ones, and the items of each end within it. */
static bool slot_is_bounded(const sy_slot *slot) {
    const sy_magazine *loaded = slot->loaded, *previous = slot->previous;
    if (loaded == previous || slot->capacity > SY_MAGAZINE_ITEMS) return false;
    if (previous && sy_magazine_count(previous) > SY_MAGAZINE_ITEMS) return false;
    return slot->top >= loaded->items && slot->top <= loaded->items + SY_MAGAZINE_ITEMS;
}

sy_slot *sy_slot_ready(sy_client *client, sy_thread **self) {
    if (!client->config.magazine_items) return NULL;
    sy_thread *thread = *self = sy_thread_self();
    if (!thread) return NULL;
    sy_slot *slot = sy_thread_slot(thread, client->number);
    if (SY_UNLIKELY(!slot->loaded) && !open_slot(client, thread, slot)) return NULL;
    uint32_t generation = atomic_load_explicit(&client->generation, memory_order_relaxed);
    if (SY_UNLIKELY(slot->generation != generation)) {
        slot->generation = generation;
        slot->reserved = 0;
        SY_INSIDE(thread);
        flush_slot(client, slot);
    }
    SY_INVARIANT(slot_is_bounded(slot));
    return slot;
}

/* ---- refill ---- */

static size_t refill_magazine(sy_client *client, sy_thread *thread, sy_magazine *empty,
                              size_t count) {
    SY_INSIDE(thread);
    return client->config.refill(client->config.owner, empty->items, count);
}

bool sy_slot_refill(sy_client *client, sy_thread *thread, sy_slot *slot, bool grow) {
    sy_magazine *empty = slot->loaded;
    size_t count = refill_magazine(client, thread, empty, slot->capacity);
    if (grow) sy_capacity_grow(client, thread, slot);
    sy_magazine_set_count(empty, count);
    sy_slot_load(client, slot, empty);
    return count > 0;
}

/* ==== src/magazine/store.c ==== */

/*
 * store.c: hands out empty magazines, creates them in segments of 4,096, and gives the memory of
 * unused ones to the system.
 */

enum {
    WORDS = SY_MAGAZINES_PER_SEGMENT / 64,
    ITEM_BYTES = SY_MAGAZINE_WORDS * sizeof(uintptr_t),
    magazine_store_HEADER_BYTES = SY_MAGAZINES_PER_SEGMENT * sizeof(sy_magazine),
    SEGMENT_BYTES = magazine_store_HEADER_BYTES + SY_MAGAZINES_PER_SEGMENT * ITEM_BYTES,
    STEP_WORDS = 8, /* trimmed in one step: half a MiB of items */
    FEW_WORDS = 4,  /* of magazines, whose items get memory one page at a time; then 64 KiB */
};

_Static_assert(sizeof(sy_magazine) == 64, "one cache line a header");
_Static_assert(magazine_store_HEADER_BYTES % 65536 == 0, "items begin on a page, whatever its size");

_Atomic(sy_magazine *) sy_magazine_segments[SY_MAGAZINE_SEGMENTS];

static sy_lock magazine_store_lock = SY_LOCK_INIT(SY_RANK_STORE);
static struct segment {
    uint64_t unused[WORDS]; /* a bit a magazine: in the store */
    uint64_t dirty[WORDS];  /* a bit a magazine: its items may hold memory, */
    uint64_t recent[WORDS]; /* and it came back, or got it, since a trim by age looked */
    unsigned first_word;    /* no unused bit in a word before it */
    unsigned made;          /* from here on no magazine was ever given out: no header is written */
} segments[SY_MAGAZINE_SEGMENTS]; /* guarded by lock */
static unsigned segment_count;    /* guarded by lock */

static sy_magazine *headers_of(unsigned segment) {
    return atomic_load_explicit(&sy_magazine_segments[segment], memory_order_relaxed);
}

/* Headers are written when first given out, so that a segment costs no memory before. */
static sy_magazine *with_header(unsigned segment, unsigned index) {
    sy_magazine *headers = headers_of(segment), *magazine = &headers[index];
    if (!magazine->items) {
        magazine->number = segment * SY_MAGAZINES_PER_SEGMENT + index;
        uintptr_t *words = (uintptr_t *)((char *)headers + magazine_store_HEADER_BYTES);
        magazine->items = words + (size_t)index * SY_MAGAZINE_WORDS + 1;
    }
    return magazine;
}

/* Whether the items of that word's magazines get memory together: where many are in use. */
static bool is_backed(unsigned segment, unsigned word) { return segment || word >= FEW_WORDS; }

/* The lowest unused magazine, or NULL; the lock is held. *back: memory is to be brought for the
 * items of its word. */
static sy_magazine *take_lowest(bool *back) {
    for (unsigned index = 0; index < segment_count; index++) {
        struct segment *segment = &segments[index];
        for (; segment->first_word < WORDS; segment->first_word++) {
            uint64_t *word = &segment->unused[segment->first_word];
            if (!*word) continue;
            unsigned bit = sy_lowest_bit(*word);
            *word &= *word - 1;
            uint64_t *dirty = &segment->dirty[segment->first_word];
            *back = !*dirty && is_backed(index, segment->first_word);
            *dirty |= *back ? ~UINT64_C(0) : UINT64_C(1) << bit;
            if (*back) segment->recent[segment->first_word] = ~UINT64_C(0);
            unsigned made = segment->first_word * 64 + bit + 1;
            if (segment->made < made) segment->made = made;
            return with_header(index, made - 1);
        }
    }
    return NULL;
}

/* Adds a segment unless another thread has done so since there were `seen`. 0, or -1 with ENOMEM.
 */
static int magazine_store_add_segment(unsigned seen) {
    if (seen == SY_MAGAZINE_SEGMENTS) {
        errno = ENOMEM;
        return -1;
    }
    sy_magazine *headers = sy_pages_take(SEGMENT_BYTES, 65536, "slabyard magazines");
    if (!headers) return -1;
    sy_lock_acquire(&magazine_store_lock);
    bool mine = segment_count == seen;
    if (mine) {
        for (unsigned word = 0; word < WORDS; word++) segments[seen].unused[word] = ~UINT64_C(0);
        if (seen == 0) segments[0].unused[0] &= ~UINT64_C(1); /* number 0 names none */
        atomic_store_explicit(&sy_magazine_segments[seen], headers, memory_order_release);
        segment_count++;
    }
    sy_lock_release(&magazine_store_lock);
    if (!mine) sy_pages_give(headers, SEGMENT_BYTES);
    return 0;
}

/* One call of the system instead of a page fault for each page. If there is no memory, each page
 * gets it when it is written. */
static void back_items(const sy_magazine *first) {
    unsigned word = first->number % SY_MAGAZINES_PER_SEGMENT / 64;
    int error = errno;
    char *items = (char *)headers_of(first->number / SY_MAGAZINES_PER_SEGMENT) + magazine_store_HEADER_BYTES;
    sy_os_populate(items + (size_t)word * 64 * ITEM_BYTES, 64 * ITEM_BYTES);
    errno = error;
}

sy_magazine *sy_store_take(void) {
    for (;;) {
        bool back = false;
        sy_lock_acquire(&magazine_store_lock);
        sy_magazine *magazine = take_lowest(&back);
        unsigned seen = segment_count;
        sy_lock_release(&magazine_store_lock);
        if (back) back_items(magazine);
        if (magazine) return magazine;
        if (magazine_store_add_segment(seen) != 0) return NULL;
    }
}

/* It was given out and has not come back. The lock is held. */
static bool magazine_is_out(const sy_magazine *magazine) {
    const struct segment *segment = &segments[magazine->number / SY_MAGAZINES_PER_SEGMENT];
    unsigned index = magazine->number % SY_MAGAZINES_PER_SEGMENT;
    return index < segment->made && !(segment->unused[index / 64] >> index % 64 & 1);
}

void sy_store_put(sy_magazine *magazine) {
    unsigned index = magazine->number % SY_MAGAZINES_PER_SEGMENT;
    sy_lock_acquire(&magazine_store_lock);
    SY_INVARIANT(magazine_is_out(magazine));
    struct segment *segment = &segments[magazine->number / SY_MAGAZINES_PER_SEGMENT];
    segment->unused[index / 64] |= UINT64_C(1) << index % 64;
    segment->recent[index / 64] |= UINT64_C(1) << index % 64;
    if (index / 64 < segment->first_word) segment->first_word = index / 64;
    sy_lock_release(&magazine_store_lock);
}

/*
 * Discards the items of the magazines of one bitmap word whose pages are wholly unused, and were
 * so, if `aged`, when this was last done. They are taken out of the store meanwhile, so that no
 * lock is held across the system call. A word is 64 KiB of items, a whole number of pages of every
 * size that Linux has.
 */
static size_t trim_word(unsigned index, unsigned word, bool aged) {
    struct segment *segment = &segments[index];
    size_t page = sy_os_page_size();
    unsigned per_page = page > ITEM_BYTES ? (unsigned)(page / ITEM_BYTES) : 1;
    uint64_t claimed = 0;

    sy_lock_acquire(&magazine_store_lock);
    for (unsigned first = 0; first < 64; first += per_page) {
        uint64_t group = sy_low_bits(per_page) << first;
        bool recent = aged && segment->recent[word] & group;
        if ((segment->unused[word] & group) == group && segment->dirty[word] & group && !recent)
            claimed |= group;
    }
    segment->recent[word] = 0;
    segment->unused[word] &= ~claimed;
    sy_lock_release(&magazine_store_lock);
    if (!claimed) return 0;

    char *items = (char *)headers_of(index) + magazine_store_HEADER_BYTES + (size_t)word * 64 * ITEM_BYTES;
    uint64_t discarded = 0;
    for (unsigned first = 0; first < 64;) {
        uint64_t rest = claimed >> first;
        if (!(rest & 1)) {
            first++;
            continue;
        }
        unsigned run = ~rest ? sy_lowest_bit(~rest) : 64;
        if (run > 64 - first) run = 64 - first;
        if (sy_os_discard(items + (size_t)first * ITEM_BYTES, (size_t)run * ITEM_BYTES) == 0)
            discarded |= sy_low_bits(run) << first;
        first += run;
    }

    sy_lock_acquire(&magazine_store_lock);
    segment->unused[word] |= claimed;
    segment->dirty[word] &= ~discarded;
    if (word < segment->first_word) segment->first_word = word;
    sy_lock_release(&magazine_store_lock);
    return sy_count_bits(discarded) * (size_t)ITEM_BYTES;
}

bool sy_store_trim_step(unsigned *at, bool aged, size_t *bytes) {
    sy_lock_acquire(&magazine_store_lock);
    unsigned end = segment_count * WORDS;
    sy_lock_release(&magazine_store_lock);
    for (unsigned i = 0; i < STEP_WORDS && *at < end; i++, ++*at)
        *bytes += trim_word(*at / WORDS, *at % WORDS, aged);
    return *at < end;
}

size_t sy_store_trim(void) {
    size_t bytes = 0;
    for (unsigned at = 0; sy_store_trim_step(&at, false, &bytes);) {}
    return bytes;
}

/* Magazines whose items lie on a page with some that may hold memory; the lock is held. */
static size_t count_backed(const struct segment *segment) {
    size_t page = sy_os_page_size(), count = 0;
    unsigned per_page = page > ITEM_BYTES ? (unsigned)(page / ITEM_BYTES) : 1;
    for (unsigned word = 0; word < WORDS; word++)
        for (unsigned first = 0; first < 64; first += per_page)
            if (segment->dirty[word] & sy_low_bits(per_page) << first) count += per_page;
    return count;
}

size_t sy_store_bytes(void) {
    size_t bytes = 0;
    sy_lock_acquire(&magazine_store_lock);
    for (unsigned index = 0; index < segment_count; index++) {
        bytes += sy_round_up(segments[index].made * sizeof(sy_magazine), sy_os_page_size());
        bytes += count_backed(&segments[index]) * ITEM_BYTES;
    }
    sy_lock_release(&magazine_store_lock);
    return bytes;
}

void sy_store_each_segment(void (*visit)(const void *start, size_t bytes, void *arg), void *arg) {
    sy_lock_acquire(&magazine_store_lock);
    for (unsigned index = 0; index < segment_count; index++)
        visit(headers_of(index), SEGMENT_BYTES, arg);
    sy_lock_release(&magazine_store_lock);
}

size_t sy_store_verify(void) {
    size_t wrong = 0;
    sy_lock_acquire(&magazine_store_lock);
    for (unsigned index = 0; index < segment_count; index++) {
        for (unsigned word = 0; word < segments[index].first_word; word++)
            wrong += segments[index].unused[word] != 0;
        for (unsigned i = 0; i < SY_MAGAZINES_PER_SEGMENT; i++) {
            const sy_magazine *magazine = &headers_of(index)[i];
            wrong += magazine->items && magazine->number != index * SY_MAGAZINES_PER_SEGMENT + i;
        }
    }
    sy_lock_release(&magazine_store_lock);
    return wrong;
}

static void hold_store(void) { sy_lock_hold(&magazine_store_lock); }

/* In the child a magazine may be in the store before the word where the search begins says so. */
static void drop_store(void) {
    if (!sy_lock_drop(&magazine_store_lock)) return;
    for (unsigned index = 0; index < segment_count; index++) segments[index].first_word = 0;
}

const sy_part sy_store_part = {.hold = hold_store, .drop = drop_store};

/* ==== src/magazine/thread.c ==== */

/*
 * thread.c: the record of each thread. It is made at the thread's first slow path, parked while
 * the thread is idle, and reused by another thread after its end.
 */

enum {
    GROUP_MAX = 16, /* records made at a time */
    magazine_thread_SLOTS_BYTES = SY_CLIENTS_MAX * sizeof(sy_slot),
};

/* What sy_abi_1 points to while a thread has no loaded slots: all zero, so both directions are
 * shut. Never written; reading it costs the system's zero page. */
static sy_loaded_slot shut_slots[SY_CLIENTS_MAX];

SY_API SY_TLS sy_loaded_slot *sy_abi_1 = shut_slots;

static SY_TLS sy_thread *own_record; /* NULL before the first slow path, and after the end */
static SY_TLS sy_thread *in_hand;    /* taken and not its own yet, or not any more */
static SY_TLS bool magazine_thread_ended;            /* this thread's exit hook has run */

static sy_lock magazine_thread_lock = SY_LOCK_INIT(SY_RANK_THREADS);
static sy_thread *all_records;  /* guarded by lock */
static sy_thread *free_records; /* guarded by lock */
static unsigned record_count;   /* guarded by lock */
static _Atomic bool park;       /* a thread has been parked; never false again */
static void (*magazine_thread_empty_slots)(sy_thread *thread);

void sy_threads_lock(void) { sy_lock_acquire(&magazine_thread_lock); }

void sy_threads_unlock(void) { sy_lock_release(&magazine_thread_lock); }

void sy_threads_hold(void) { sy_lock_hold(&magazine_thread_lock); }

bool sy_threads_are_held(void) { return sy_lock_has(&magazine_thread_lock); }

void sy_threads_drop(void) { sy_lock_drop(&magazine_thread_lock); }

sy_thread *sy_threads_first(void) { return all_records; }

unsigned sy_thread_count(void) {
    unsigned count = 0;
    sy_lock_acquire(&magazine_thread_lock);
    for (const sy_thread *thread = all_records; thread; thread = thread->next)
        count += atomic_load_explicit(&thread->state, memory_order_relaxed) != SY_THREAD_FREE;
    sy_lock_release(&magazine_thread_lock);
    return count;
}

/* The lock is held. */
static void set_thread_state(sy_thread *thread, sy_thread_state state) {
    atomic_store_explicit(&thread->state, state, memory_order_relaxed);
}

/* ---- parking ---- */

/*
 * A thread parks its record with a store and takes it back with a compare-exchange; it takes no
 * lock. Others claim a parked record with a compare-exchange too, so either the thread or the
 * claimer has it. What the thread wrote to its slots happens before the claim (release, acquire),
 * and what the claimer wrote happens before the thread's return (the same, or the lock).
 */

static bool change_state(sy_thread *thread, sy_thread_state from, sy_thread_state to) {
    uint32_t expected = from;
    return atomic_compare_exchange_strong_explicit(&thread->state, &expected, to,
                                                   memory_order_acquire, memory_order_relaxed);
}

bool sy_threads_park(void) { return atomic_load_explicit(&park, memory_order_relaxed); }

bool sy_thread_claim(sy_thread *thread) {
    return change_state(thread, SY_THREAD_PARKED, SY_THREAD_CLAIMED);
}

void sy_thread_unclaim(sy_thread *thread) {
    atomic_store_explicit(&thread->state, SY_THREAD_PARKED, memory_order_release);
}

static size_t headers_bytes(unsigned count) {
    return sy_round_up(count * sizeof(sy_thread), sy_os_page_size());
}

static size_t group_bytes(unsigned count) {
    return headers_bytes(count) + count * (size_t)magazine_thread_SLOTS_BYTES;
}

/* The lock is held. */
static void add_records(char *group, unsigned count) {
    sy_thread *records = (sy_thread *)group;
    for (unsigned i = count; i-- > 0;) {
        records[i].slots = (sy_slot *)(group + headers_bytes(count) + i * (size_t)magazine_thread_SLOTS_BYTES);
        records[i].next = all_records;
        all_records = &records[i];
        records[i].next_free = free_records;
        free_records = &records[i];
    }
    record_count += count;
}

/* Adds as many free records as there are, or fewer where address space is short, unless another
 * thread has added some since there were `seen`. 0, or -1 with ENOMEM. */
static int add_group(unsigned seen) {
    unsigned count = seen < 1 ? 1 : seen < GROUP_MAX ? seen : GROUP_MAX;
    char *group;
    while (!(group = sy_pages_take(group_bytes(count), sy_os_page_size(), "slabyard threads")))
        if ((count /= 2) == 0) return -1;
    sy_lock_acquire(&magazine_thread_lock);
    bool mine = record_count == seen;
    if (mine) add_records(group, count);
    sy_lock_release(&magazine_thread_lock);
    if (!mine) sy_pages_give(group, group_bytes(count));
    return 0;
}

static sy_thread *take_record(void) {
    for (;;) {
        sy_lock_acquire(&magazine_thread_lock);
        sy_thread *thread = free_records;
        unsigned seen = record_count;
        if (thread) {
            free_records = thread->next_free;
            set_thread_state(thread, SY_THREAD_RUNNING);
            in_hand = thread;
        }
        sy_lock_release(&magazine_thread_lock);
        if (thread) return thread;
        if (add_group(seen) != 0) return NULL;
    }
}

/* What the thread was in the midst of: in the child of a fork another one may have been. */
static void magazine_thread_forget(sy_thread *thread) {
    thread->inside = thread->one_way_count = 0;
    thread->next_idle = SY_CLIENT_FIRST;
}

static void give_record(sy_thread *thread) {
    sy_lock_acquire(&magazine_thread_lock);
    magazine_thread_empty_slots(thread);
    while (thread->empties > 0) sy_store_put(thread->empty[--thread->empties]);
    magazine_thread_forget(thread);
    set_thread_state(thread, SY_THREAD_FREE);
    thread->next_free = free_records;
    free_records = thread;
    in_hand = NULL;
    sy_lock_release(&magazine_thread_lock);
}

static void magazine_thread_run(sy_thread *thread) {
    own_record = thread;
    in_hand = NULL;
    sy_abi_1 = (sy_loaded_slot *)thread->slots;
}

static void stop(void) {
    sy_abi_1 = shut_slots;
    in_hand = own_record;
    own_record = NULL;
}

/* The thread's exit hook. Whatever its later destructors allocate and free goes without magazines.
 */
static void end_thread(void *record) {
    stop();
    magazine_thread_ended = true;
    give_record(record);
}

/* Registering the hook may allocate, through us: the thread runs before it is registered. */
static SY_COLD sy_thread *attach(void) {
    if (magazine_thread_ended) return NULL;
    sy_thread *thread = take_record();
    if (!thread) return NULL;
    magazine_thread_run(thread);
    if (sy_os_at_thread_exit(end_thread, thread) == 0) return thread;
    stop();
    give_record(thread);
    return NULL;
}

/* Whoever has claimed the record holds the lock until it is parked again. */
static SY_COLD void resume_claimed(sy_thread *thread) {
    sy_lock_acquire(&magazine_thread_lock);
    set_thread_state(thread, SY_THREAD_RUNNING);
    sy_lock_release(&magazine_thread_lock);
}

static sy_thread *resume(sy_thread *thread) {
    if (!change_state(thread, SY_THREAD_PARKED, SY_THREAD_RUNNING)) resume_claimed(thread);
    magazine_thread_run(thread);
    return thread;
}

sy_thread *sy_thread_self(void) {
    sy_thread *thread = own_record;
    if (SY_UNLIKELY(!thread)) return attach();
    if (SY_UNLIKELY(sy_abi_1 == shut_slots)) return resume(thread);
    return thread;
}

sy_thread *sy_thread_running(void) { return sy_abi_1 == shut_slots ? NULL : own_record; }

sy_thread *sy_thread_known(void) { return own_record; }

void sy_thread_idle(void) {
    sy_thread *thread = sy_thread_running();
    if (!thread) return;
    sy_abi_1 = shut_slots;
    if (!sy_threads_park()) atomic_store_explicit(&park, true, memory_order_relaxed);
    atomic_store_explicit(&thread->state, SY_THREAD_PARKED, memory_order_release);
}

sy_magazine *sy_thread_take_empty(sy_thread *thread) {
    if (thread->empties == 0) return sy_store_take();
    sy_magazine *magazine = thread->empty[--thread->empties];
    __atomic_signal_fence(__ATOMIC_RELEASE); /* it is not here any more when it is elsewhere */
    return magazine;
}

void sy_thread_put_empty(sy_thread *thread, sy_magazine *magazine) {
    if (thread->empties == SY_EMPTIES)
        while (thread->empties > SY_EMPTIES / 2) sy_store_put(thread->empty[--thread->empties]);
    thread->empty[thread->empties] = magazine;
    __atomic_signal_fence(__ATOMIC_RELEASE); /* a fork sees it here, or nowhere */
    thread->empties++;
}

void sy_threads_start(void (*empty)(sy_thread *thread)) { magazine_thread_empty_slots = empty; }

size_t sy_threads_bytes(void) {
    size_t bytes = 0;
    sy_lock_acquire(&magazine_thread_lock);
    for (const sy_thread *thread = all_records; thread; thread = thread->next)
        bytes += sizeof *thread + thread->slots_end * sizeof(sy_slot);
    sy_lock_release(&magazine_thread_lock);
    return bytes;
}

/* Takes a free record whose slots may hold memory off the list, or gives NULL. */
static sy_thread *claim_dirty_free_record(void) {
    sy_lock_acquire(&magazine_thread_lock);
    sy_thread **link = &free_records;
    while (*link && (*link)->slots_end == 0) link = &(*link)->next_free;
    sy_thread *thread = *link;
    if (thread) *link = thread->next_free;
    sy_lock_release(&magazine_thread_lock);
    return thread;
}

/* The record goes to the end of the list if its memory stays, so that others come before it. */
static void return_record(sy_thread *thread) {
    sy_lock_acquire(&magazine_thread_lock);
    sy_thread **link = &free_records;
    while (thread->slots_end && *link) link = &(*link)->next_free;
    thread->next_free = *link;
    *link = thread;
    sy_lock_release(&magazine_thread_lock);
}

size_t sy_threads_trim_one(void) {
    sy_thread *thread = claim_dirty_free_record();
    if (!thread) return 0;
    size_t used = sy_round_up(thread->slots_end * sizeof(sy_slot), sy_os_page_size());
    bool gone = sy_os_discard(thread->slots, used) == 0;
    if (gone) thread->slots_end = 0;
    return_record(thread);
    return gone ? used : 0;
}

size_t sy_threads_trim(void) {
    size_t bytes = 0, more;
    while ((more = sy_threads_trim_one()) != 0) bytes += more;
    return bytes;
}

void sy_threads_orphan_others(void) {
    for (sy_thread *thread = all_records; thread; thread = thread->next) {
        if (thread == own_record || thread == in_hand) continue;
        if (atomic_load(&thread->state) == SY_THREAD_FREE) continue;
        magazine_thread_empty_slots(thread);
        magazine_thread_forget(thread);
        set_thread_state(thread, SY_THREAD_FREE);
        thread->next_free = free_records;
        free_records = thread;
    }
}

/* ==== src/magazine/turn.c ==== */

/*
 * turn.c: what a turn does, beside what a layer above has it do.
 */

_Atomic bool sy_turn_wanted;
SY_TLS unsigned sy_turns;

static _Atomic(void (*)(void)) magazine_turn_work;

void sy_turn_serve(void (*served)(void)) { atomic_store(&magazine_turn_work, served); }

/* A client that is still in use further up, by a function of the program's, is left there. */
void sy_turn_slow(void) {
    if (sy_clients_leave()) sy_turn_soon();
    void (*served)(void) = atomic_load_explicit(&magazine_turn_work, memory_order_relaxed);
    if (served) served();
}

/* ==== src/os/invariant.c ==== */

/*
 * invariant.c: reports a broken invariant in a debug build.
 */

#ifdef SY_DEBUG

_Noreturn void sy_invariant_broken(const char *condition, const char *file, int line) {
    char text[512];
    int length = snprintf(text, sizeof text, "slabyard: invariant broken: %s at %s:%d\n", condition,
                          file, line);
    sy_os_write(2, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
    sy_os_abort();
}

#endif

/* ==== src/os/linux.c ==== */

/*
 * linux.c: the contract of os.h on Linux, whole. Control groups are read in linux_limits.c,
 * what an address is of in linux_places.c; a child that works for us is linux_child.c, accesses
 * that the system refuses are in linux_access.c.
 *
 * Address space is a private anonymous mapping without access, commit is mprotect, discard is
 * madvise. The kernel charges a private mapping to its overcommit policy (vm.overcommit_memory) and
 * to RLIMIT_DATA when it becomes writable, not before: so what is reserved is free, and commit asks
 * the policy, like a malloc of as many bytes. (MAP_NORESERVE would spare it the question.) Mappings
 * of one name that touch are one mapping for the kernel, so a reservation committed from its front
 * costs two.
 */
#if !defined(__linux__)
#    error "linux.c is for Linux; another platform needs a file of its own in this folder"
#endif

/*
 * linux_limits.h: what control groups allow this process, versions 1 and 2 and both at once.
 *
 * Above: linux.c, and test_os.c with directories of its own. Below: files under /proc and /sys.
 * `root` is put in front of every path: "" for the machine itself.
 *
 * Never allocates. What cannot be read or understood is taken as no limit.
 */
#ifndef SLABYARD_LINUX_LIMITS_H
#define SLABYARD_LINUX_LIMITS_H

/* The least memory limit in bytes of this process's group and those above it; SIZE_MAX: none. */
size_t sy_linux_group_memory(const char *root);

/* The least processor quota, rounded up to whole processors, at least 1; UINT_MAX: none. */
unsigned sy_linux_group_cpus(const char *root);

#endif
/*
 * linux_thread.h: where the C library keeps what is a thread's own. Of linux.c and its kin.
 */
#ifndef SY_OS_LINUX_THREAD_H
#define SY_OS_LINUX_THREAD_H

static inline const char *sy_linux_thread_pointer(void) {
#if defined(__x86_64__)
    const char *pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return (const char *)__builtin_thread_pointer();
#endif
}

#endif

#if defined(__has_include)
#    if __has_include(<sys/rseq.h>)
#pragma GCC visibility push(default)
#        include <sys/rseq.h>
#pragma GCC visibility pop
#        define HAVE_RSEQ 1
#    endif
#endif

/* Kernel names that older headers lack. */
#define MOVE_AND_KEEP          4   /* 5.7; MREMAP_DONTUNMAP */
#define ADVICE_POPULATE_WRITE  23  /* 5.14 */
#define ADVICE_DONTNEED_LOCKED 24  /* 5.18 */
#define ADVICE_GUARD           102 /* 6.13 */
#define ADVICE_UNGUARD         103
#define NAME_MAPPING           0x53564d41 /* 5.17; PR_SET_VMA */
#define NAME_ANONYMOUS         0          /* PR_SET_VMA_ANON_NAME */

static const uint64_t NS_PER_SECOND = 1000000000;
#define AUXV_RSEQ_FEATURE_SIZE 27 /* 6.3 */

static int fail_with_errno(int error) {
    errno = error;
    return -1;
}

/* ---- failures on demand ---- */

const char *const sy_os_calls[] = {"reserve",      "commit",         "populate", "discard",
                                   "move",         "release",        "huge",     "guard",
                                   "start_thread", "at_thread_exit", "at_fork",  NULL};

typedef bool due_function(const char *call);

static _Atomic(due_function *) failing;

void sy_os_set_failing(due_function *due) {
    atomic_store_explicit(&failing, due, memory_order_release);
}

static bool made_to_fail(const char *call) {
    due_function *due = atomic_load_explicit(&failing, memory_order_acquire);
    if (__builtin_expect(due == NULL, 1) || !due(call)) return false;
    errno = ENOMEM;
    return true;
}

/* ---- memory ---- */

size_t sy_os_page_size(void) {
    static _Atomic size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = (size_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

/* Cut `whole` bytes at `base` down to `bytes` at the first multiple of `align`. Cutting makes
 * holes, which can be one mapping too many: then everything goes. */
static void *trim(unsigned char *base, size_t whole, size_t bytes, size_t align) {
    size_t front = (size_t)(-(uintptr_t)base & (align - 1));
    size_t back = whole - front - bytes;
    unsigned char *start = base + front;
    if (front != 0 && munmap(base, front) != 0) {
        munmap(base, whole);
        return NULL;
    }
    if (back != 0 && munmap(start + bytes, back) != 0) {
        munmap(start, bytes + back);
        return NULL;
    }
    return start;
}

static void name_mapping(void *start, size_t bytes, const char *name) {
    int saved = errno;
    if (name != NULL) prctl(NAME_MAPPING, NAME_ANONYMOUS, start, bytes, name);
    errno = saved;
}

static void *map_nothing(void *hint, size_t bytes) {
    void *start = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* Where the kernel gives addresses downwards, what lies below the place that it chose is free. */
static void *reserve_exactly(size_t bytes, size_t align) {
    char *start = map_nothing(NULL, bytes);
    size_t over = (uintptr_t)start & (align - 1);
    if (over == 0) return start;
    if (munmap(start, bytes) != 0) return NULL;
    start = map_nothing(start - over, bytes);
    if (!((uintptr_t)start & (align - 1))) return start;
    munmap(start, bytes);
    return NULL;
}

static void *reserve_more_and_cut(size_t bytes, size_t align) {
    size_t slack = align - sy_os_page_size();
    if (bytes > SIZE_MAX - slack) return NULL;
    void *base = map_nothing(NULL, bytes + slack);
    return base ? trim(base, bytes + slack, bytes, align) : NULL;
}

/* Exactly first: near a limit there may be no address space for more, and neighbours are one
 * mapping. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name) {
    if (made_to_fail("reserve")) return NULL;
    int saved = errno;
    void *start = reserve_exactly(bytes, align);
    if (!start) start = reserve_more_and_cut(bytes, align);
    if (start) errno = saved;
    if (start == NULL)
        errno = ENOMEM;
    else
        name_mapping(start, bytes, name);
    return start;
}

int sy_os_commit(void *start, size_t bytes) {
    if (made_to_fail("commit")) return -1;
    return mprotect(start, bytes, PROT_READ | PROT_WRITE);
}

/* Tools take stacks here. */
void *sy_os_block(size_t bytes, size_t align) {
    sy_cpu_keep_frame();
    int saved = errno;
    void *block = NULL;
    if (align <= _Alignof(max_align_t))
        block = malloc(bytes);
    else if (posix_memalign(&block, align, bytes) != 0)
        block = NULL;
    errno = block == NULL ? ENOMEM : saved;
    return block;
}

void sy_os_block_free(void *block) {
    sy_cpu_keep_frame();
    int saved = errno;
    free(block);
    errno = saved;
}

/* madvise may be told to come again, while pages move or memory is short for the moment. */
static int advise(void *start, size_t bytes, int advice) {
    int result;
    int left = 100;
    do result = madvise(start, bytes, advice);
    while (result != 0 && (errno == EAGAIN || errno == EINTR) && --left > 0);
    return result;
}

/* Before 5.14: write to each page what it holds, whoever else is writing. */
static void touch(unsigned char *start, size_t bytes) {
    size_t page = sy_os_page_size();
    for (size_t at = 0; at < bytes; at += page) __atomic_fetch_or(&start[at], 0, __ATOMIC_RELAXED);
}

int sy_os_populate(void *start, size_t bytes) {
    if (made_to_fail("populate")) return -1;
    int saved = errno;
    if (advise(start, bytes, ADVICE_POPULATE_WRITE) == 0) {
        errno = saved;
        return 0;
    }
    if (errno != EINVAL) return fail_with_errno(ENOMEM);
    touch(start, bytes);
    errno = saved;
    return 0;
}

static bool move(void *from, void *to, size_t bytes) {
    return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MOVE_AND_KEEP, to) == to;
}

/*
 * Kernels before 6.17 cannot move what is two mappings, and unmap `to` before they see it: another
 * thread might get its addresses. So it is tried once on pages of our own, of which the target is
 * left alone if that fails.
 */
static bool can_move(void) {
    enum { UNKNOWN, CAN, CANNOT };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state != UNKNOWN) return state == CAN;
    size_t page = sy_os_page_size();
    char *from = sy_os_reserve(4 * page, page, NULL), *to = from ? from + 2 * page : NULL;
    if (!from) return false;
    bool can = mprotect(from, page, PROT_READ | PROT_WRITE) == 0 && move(from, to, 2 * page);
    sy_os_release(from, (can ? 4 : 2) * page);
    atomic_store_explicit(&known, can ? CAN : CANNOT, memory_order_relaxed);
    return can;
}

int sy_os_move(void *from, void *to, size_t bytes) {
    if (made_to_fail("move")) return -1;
    int saved = errno;
    bool moved = can_move() && move(from, to, bytes);
    errno = saved;
    if (moved || !can_move()) return moved ? 0 : -1;
    const int again = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(to, bytes, PROT_READ | PROT_WRITE, again, -1, 0) != to) sy_os_abort();
    errno = saved;
    return -1;
}

int sy_os_discard(void *start, size_t bytes) {
    if (made_to_fail("discard")) return -1;
    int saved = errno;
    if (advise(start, bytes, MADV_DONTNEED) != 0 &&
        (errno != EINVAL || advise(start, bytes, ADVICE_DONTNEED_LOCKED) != 0))
        return -1;
    errno = saved;
    return 0;
}

int sy_os_release(void *start, size_t bytes) {
    return made_to_fail("release") ? -1 : munmap(start, bytes);
}

int sy_os_huge(void *start, size_t bytes, bool wanted) {
    if (made_to_fail("huge")) return -1;
    return madvise(start, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

int sy_os_dump(void *start, size_t bytes, bool wanted) {
    return madvise(start, bytes, wanted ? MADV_DODUMP : MADV_DONTDUMP);
}

int sy_os_lock(void *start, size_t bytes, bool wanted) {
    int saved = errno;
    if ((wanted ? mlock(start, bytes) : munlock(start, bytes)) != 0) return fail_with_errno(ENOMEM);
    errno = saved;
    return 0;
}

static bool probe_guards(void) {
    size_t page = sy_os_page_size();
    void *probe = sy_os_reserve(page, page, NULL);
    if (!probe) return false;
    bool has = sy_os_commit(probe, page) == 0 && advise(probe, page, ADVICE_GUARD) == 0;
    sy_os_release(probe, page);
    return has;
}

/* Whether the kernel marks guards in the page tables, where they split no mapping: tried once, on a
 * page of our own. */
static bool has_guards(void) {
    enum { UNKNOWN, HAS, LACKS };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state != UNKNOWN) return state == HAS;
    int found = probe_guards() ? HAS : LACKS;
    return (atomic_compare_exchange_strong(&known, &state, found) ? found : state) == HAS;
}

/* The first answer holds for good: what was guarded in one way is not opened in the other. */
static int os_linux_guard(void *start, size_t bytes, bool wanted) {
    if (has_guards()) return advise(start, bytes, wanted ? ADVICE_GUARD : ADVICE_UNGUARD);
    if (!wanted) return sy_os_commit(start, bytes);
    if (mprotect(start, bytes, PROT_NONE) != 0) return -1;
    return sy_os_discard(start, bytes);
}

int sy_os_guard(void *start, size_t bytes, bool wanted) {
    int saved = errno;
    if (made_to_fail("guard") || os_linux_guard(start, bytes, wanted) != 0) return -1;
    errno = saved;
    return 0;
}

bool sy_os_guards_split(void) {
    int saved = errno;
    bool split = !has_guards();
    errno = saved;
    return split;
}

/* ---- processors ---- */

#if defined(HAVE_RSEQ)

/* The kernel keeps each thread's processor number, and since 6.3 its concurrency id, in a structure
 * that the C library registered, at a fixed distance from the thread pointer. */
enum { RSEQ_CPU_ID = 4, RSEQ_MM_CID = 24, RSEQ_MM_CID_END = 28 };

enum { OFFSET_UNKNOWN = 0, OFFSET_NONE = 1 }; /* real ones are multiples of 4 and never 0 */

static ptrdiff_t find_cpu_offset(void) {
    if (__rseq_size == 0) return OFFSET_NONE;
    int saved = errno;
    bool has_mm_cid = getauxval(AUXV_RSEQ_FEATURE_SIZE) >= RSEQ_MM_CID_END;
    errno = saved;
    return __rseq_offset + (has_mm_cid ? RSEQ_MM_CID : RSEQ_CPU_ID);
}

/* This thread's word in the structure, negative where it is not registered. */
static int registered_cpu(void) {
    static _Atomic ptrdiff_t known;
    ptrdiff_t offset = atomic_load_explicit(&known, memory_order_relaxed);
    if (offset == OFFSET_UNKNOWN) {
        offset = find_cpu_offset();
        atomic_store_explicit(&known, offset, memory_order_relaxed);
    }
    if (offset == OFFSET_NONE) return -1;
    return *(const volatile int *)(const volatile void *)(sy_linux_thread_pointer() + offset);
}

#else

static int registered_cpu(void) { return -1; }

#endif

unsigned sy_os_cpu(void) {
    int cpu = registered_cpu();
    if (cpu >= 0) return (unsigned)cpu;
    int saved = errno;
    cpu = sched_getcpu();
    errno = saved;
    return cpu < 0 ? 0 : (unsigned)cpu;
}

/* Processors in this process's affinity mask, asked of the kernel itself: the C library's sets are
 * of a fixed size, the kernel's answer is as long as it needs. */
unsigned sy_os_affinity_count(void) {
    int saved = errno;
    unsigned long mask[65536 / (CHAR_BIT * sizeof(unsigned long))];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    unsigned count = 0;
    for (size_t i = 0; i < (bytes < 0 ? 0 : (size_t)bytes) / sizeof mask[0]; i++) {
        for (unsigned long bits = mask[i]; bits != 0; bits &= bits - 1) count++;
    }
    errno = saved;
    return count == 0 ? 1 : count;
}

unsigned sy_os_cpu_count(void) {
    int saved = errno;
    unsigned affinity = sy_os_affinity_count();
    unsigned quota = sy_linux_group_cpus("");
    errno = saved;
    return quota < affinity ? quota : affinity;
}

static size_t bytes_allowed(rlim_t limit) {
    return limit == RLIM_INFINITY || limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
}

size_t sy_os_memory_limit(void) {
    size_t least = sy_linux_group_memory("");
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && bytes_allowed(limit.rlim_cur) < least)
        least = bytes_allowed(limit.rlim_cur);
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && bytes_allowed(limit.rlim_cur) < least)
        least = bytes_allowed(limit.rlim_cur);
    return least;
}

/* ---- time, chance ---- */

uint64_t sy_os_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Spread what little differs between calls and processes over 64 bits (the finaliser of
 * splitmix64). */
static uint64_t poor_random(void) {
    static _Atomic uint64_t calls;
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    uint64_t bits = sy_os_now() ^ (uintptr_t)&call ^ (call * UINT64_C(0x9e3779b97f4a7c15));
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

uint64_t sy_os_random(void) {
    int saved = errno;
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) bits = poor_random();
    errno = saved;
    return bits;
}

/* ---- threads and processes ---- */

static __thread unsigned own_number; /* 0: not asked yet */

unsigned sy_os_thread(void) {
    if (!own_number) own_number = (unsigned)syscall(SYS_gettid);
    return own_number;
}

void sy_os_thread_forked(void) { own_number = 0; }

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
    errno = saved;
}

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    int saved = errno;
    const struct timespec time = {(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &time, NULL, 0);
    errno = saved;
}

void sy_os_wake(_Atomic uint32_t *word, int count) {
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}

/* Signals are blocked while the thread is made, which has them blocked from its start then. */
int sy_os_start_thread(void *(*body)(void *), void *arg) {
    if (made_to_fail("start_thread")) return -1;
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return fail_with_errno(error);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0 ? 0 : fail_with_errno(error);
}

typedef void exit_hook(void *);

static _Atomic(exit_hook *) thread_exit_hook;

/* The key plus one, 0 before there is one. */
static _Atomic uint64_t thread_exit_key;

static void run_thread_exit_hook(void *arg) {
    exit_hook *hook = atomic_load_explicit(&thread_exit_hook, memory_order_acquire);
    hook(arg);
}

/* The first to ask makes the key; of several first ones all but one give theirs back. */
static int find_key(pthread_key_t *key) {
    uint64_t known = atomic_load_explicit(&thread_exit_key, memory_order_acquire);
    if (known == 0) {
        int error = pthread_key_create(key, run_thread_exit_hook);
        if (error != 0) return fail_with_errno(error);
        if (atomic_compare_exchange_strong(&thread_exit_key, &known, (uint64_t)*key + 1)) return 0;
        pthread_key_delete(*key);
    }
    *key = (pthread_key_t)(known - 1);
    return 0;
}

int sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    if (made_to_fail("at_thread_exit")) return -1;
    exit_hook *known = NULL;
    if (!atomic_compare_exchange_strong(&thread_exit_hook, &known, hook) && known != hook)
        return fail_with_errno(EINVAL);
    pthread_key_t key;
    if (find_key(&key) != 0) return -1;
    int error = pthread_setspecific(key, arg);
    return error == 0 ? 0 : fail_with_errno(error);
}

int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    if (made_to_fail("at_fork")) return -1;
    int error = pthread_atfork(prepare, parent, child);
    return error == 0 ? 0 : fail_with_errno(error);
}

/*
 * glibc exports the lock of its list of streams, for a library of threads that it once had beside
 * it. It is recursive. fork takes it after the hooks if the process has more than one thread, and
 * makes it anew in the child before the hooks there. Other C libraries have no such lock.
 */
#define OF_GLIBC __attribute__((weak, visibility("default")))

OF_GLIBC void _IO_list_lock(void);
OF_GLIBC void _IO_list_unlock(void);
OF_GLIBC void _IO_list_resetlock(void);
OF_GLIBC extern char __libc_single_threaded;

static __thread unsigned streams_held; /* times */

/* With one thread fork does not wait, and a handler of a signal may have interrupted the lock. */
static bool fork_locks_streams(void) {
    if (!_IO_list_lock || !_IO_list_unlock || !_IO_list_resetlock) return false;
    return !&__libc_single_threaded || !__libc_single_threaded;
}

void sy_os_hold_streams(void) {
    if (!streams_held && !fork_locks_streams()) return;
    _IO_list_lock();
    streams_held++;
}

void sy_os_drop_streams(bool in_child) {
    if (!streams_held) return;
    if (in_child)
        _IO_list_resetlock();
    else
        _IO_list_unlock();
    streams_held = in_child ? 0 : streams_held - 1;
}

int sy_os_at_exit(void (*hook)(void)) { return atexit(hook) == 0 ? 0 : fail_with_errno(ENOMEM); }

/* ---- words with a person ---- */

const char *sy_os_option(const char *name) {
    int saved = errno;
    const char *text = getauxval(AT_SECURE) ? NULL : getenv(name);
    errno = saved;
    return text;
}

bool sy_os_is_terminal(int fd) {
    int saved = errno;
    bool answer = isatty(fd);
    errno = saved;
    return answer;
}

/* errno is that of the error, or as it was. */
static int write_all(int fd, const char *text, size_t length) {
    int saved = errno;
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -1;
        if (written == 0) return fail_with_errno(ENOSPC);
        text += written;
        length -= (size_t)written;
    }
    errno = saved;
    return 0;
}

int sy_os_append(const char *path, const char *text, size_t length) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    int result = write_all(fd, text, length), error = errno;
    close(fd);
    errno = error;
    return result;
}

int sy_os_write(int fd, const char *text, size_t length) {
    int saved = errno;
    int error = write_all(fd, text, length) == 0 ? 0 : errno;
    errno = saved;
    return error;
}

/* ---- the end ---- */

_Noreturn void sy_os_end(int status) {
    fflush(NULL);
    _exit(status);
}

_Noreturn void sy_os_abort(void) { abort(); }
#undef ADVICE_DONTNEED_LOCKED
#undef ADVICE_GUARD
#undef ADVICE_POPULATE_WRITE
#undef ADVICE_UNGUARD
#undef AUXV_RSEQ_FEATURE_SIZE
#undef HAVE_RSEQ
#undef MOVE_AND_KEEP
#undef NAME_ANONYMOUS
#undef NAME_MAPPING
#undef OF_GLIBC

/* ==== src/os/linux_access.c ==== */

/*
 * linux_access.c: of os.h, accesses that the system refuses: the handler of SIGSEGV and SIGBUS, and
 * what the processor's registers were. Nothing here is read but the signal's own words.
 */

/* ---- registers ---- */

#if defined(__x86_64__)

static const struct {
    const char *name;
    int number;
} registers[] = {
    {"rax", REG_RAX}, {"rbx", REG_RBX}, {"rcx", REG_RCX}, {"rdx", REG_RDX}, {"rsi", REG_RSI},
    {"rdi", REG_RDI}, {"rbp", REG_RBP}, {"r8", REG_R8},   {"r9", REG_R9},   {"r10", REG_R10},
    {"r11", REG_R11}, {"r12", REG_R12}, {"r13", REG_R13}, {"r14", REG_R14}, {"r15", REG_R15},
};

enum { REGISTERS = sizeof registers / sizeof *registers };

const char *sy_os_register_name(unsigned number) { return registers[number].name; }

static void read_registers(const ucontext_t *context, sy_os_access *access) {
    access->code = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    for (unsigned i = 0; i < REGISTERS; i++)
        access->values[i] = (uintptr_t)context->uc_mcontext.gregs[registers[i].number];
    access->registers = REGISTERS;
}

enum { PAGE_FAULT = 14, WAS_WRITE = 2 };

static sy_os_way way_of(const ucontext_t *context) {
    if (context->uc_mcontext.gregs[REG_TRAPNO] != PAGE_FAULT) return SY_OS_WAY_UNKNOWN;
    return context->uc_mcontext.gregs[REG_ERR] & WAS_WRITE ? SY_OS_WRITE : SY_OS_READ;
}

#elif defined(__aarch64__)

static const char *const os_linux_access_names[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
                                    "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
                                    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
                                    "x24", "x25", "x26", "x27", "x28", "x29", "x30"};

enum { REGISTERS = sizeof os_linux_access_names / sizeof *os_linux_access_names };

const char *sy_os_register_name(unsigned number) { return os_linux_access_names[number]; }

static void read_registers(const ucontext_t *context, sy_os_access *access) {
    access->code = (uintptr_t)context->uc_mcontext.pc;
    for (unsigned i = 0; i < REGISTERS; i++) access->values[i] = context->uc_mcontext.regs[i];
    access->registers = REGISTERS;
}

/* What the kernel adds to the registers: records, of which one has the syndrome of the fault. */
typedef struct addition {
    uint32_t magic, size;
    uint64_t syndrome;
} addition;

enum { SYNDROME = 0x45535201, CLASS_SHIFT = 26, DATA_ABORT = 0x24, WAS_WRITE = 1 << 6 };

static sy_os_way way_of(const ucontext_t *context) {
    const unsigned char *at = (const unsigned char *)context->uc_mcontext.__reserved;
    const unsigned char *end = at + sizeof context->uc_mcontext.__reserved;
    addition here;
    for (; (size_t)(end - at) >= sizeof here; at += here.size) {
        memcpy(&here, at, sizeof here);
        if (here.size < 8 || here.size > (size_t)(end - at)) break;
        if (here.magic != SYNDROME) continue;
        if (((here.syndrome >> CLASS_SHIFT) & 0x3e) != DATA_ABORT) break;
        return here.syndrome & WAS_WRITE ? SY_OS_WRITE : SY_OS_READ;
    }
    return SY_OS_WAY_UNKNOWN;
}

#else

enum { REGISTERS = 0 };

const char *sy_os_register_name(unsigned number) {
    (void)number;
    return "";
}

static void read_registers(const ucontext_t *context, sy_os_access *access) {
    (void)context;
    (void)access;
}

static sy_os_way way_of(const ucontext_t *context) {
    (void)context;
    return SY_OS_WAY_UNKNOWN;
}

#endif

_Static_assert((int)REGISTERS <= (int)SY_OS_REGISTERS_MAX, "an access has room for all");

/* ---- the handler ---- */

typedef bool os_linux_access_explainer(const sy_os_access *);

static _Atomic(os_linux_access_explainer *) os_linux_access_bad_access;
static struct sigaction before_us[2]; /* SIGSEGV, SIGBUS: written before ours is installed */

/* Threads whose access is being explained. Not thread-local: in a library that was loaded as the
 * program runs the first use of such storage allocates it, and the thread may be within malloc. */
typedef struct explained {
    _Atomic pid_t thread; /* 0: of none */
    uintptr_t code;
} explained;

enum { EXPLAINED_MAX = 16 }; /* at a time; of others the system's word has to do */
static explained all_explained[EXPLAINED_MAX];

static pid_t own_thread(void) { return (pid_t)syscall(SYS_gettid); }

/* The entry that has this thread; `claim`, if none has: a free one, its from now on. */
static explained *explained_of(pid_t thread, bool claim) {
    for (size_t i = 0; i < EXPLAINED_MAX; i++) {
        pid_t free_entry = 0;
        if (claim ? atomic_compare_exchange_strong(&all_explained[i].thread, &free_entry, thread)
                  : atomic_load(&all_explained[i].thread) == thread)
            return &all_explained[i];
    }
    return NULL;
}

uintptr_t sy_os_interrupted(void) {
    const explained *own = explained_of(own_thread(), false);
    return own ? own->code : 0;
}

/* The kernel found it, in doing an access; si_code is not positive for what a process sent. */
static bool is_access(const siginfo_t *info) { return info->si_code > 0; }

static void explain_signal(const siginfo_t *info, const ucontext_t *context) {
    os_linux_access_explainer *body = atomic_load_explicit(&os_linux_access_bad_access, memory_order_acquire);
    if (!is_access(info)) return;
    int saved = errno;
    pid_t thread = own_thread();
    explained *own = explained_of(thread, false) ? NULL : explained_of(thread, true);
    if (!own) return;
    sy_os_access access = {.address = (uintptr_t)info->si_addr};
    access.placed = info->si_code != SI_KERNEL;
    access.way = way_of(context);
    read_registers(context, &access);
    own->code = access.code;
    body(&access);
    own->code = 0;
    atomic_store(&own->thread, 0);
    errno = saved;
}

/* What the system would do, on its way back from the handler: the access is done again, and what
 * was sent is sent again. (What is ignored ends the process all the same, if it is an access.) */
static void leave_to_system(int signal_number, const struct sigaction *before,
                            const siginfo_t *info) {
    if (before->sa_handler == SIG_IGN && !is_access(info)) return;
    sigaction(signal_number, before, NULL);
    if (!is_access(info)) raise(signal_number);
}

static void on_bad_access(int signal_number, siginfo_t *info, void *context) {
    struct sigaction before = before_us[signal_number == SIGBUS];
    explain_signal(info, context);
    if (before.sa_flags & (int)SA_RESETHAND) signal(signal_number, SIG_DFL);
    bool handled = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal_number, info, context);
    else if (handled)
        before.sa_handler(signal_number);
    else
        leave_to_system(signal_number, &before, info);
}

/* The handler there was finds the signals blocked as it asked for, and a stack that has room: on
 * that of the program's, if the thread has one. */
static void install(int signal_number, struct sigaction *before) {
    if (sigaction(signal_number, NULL, before) != 0) return;
    struct sigaction ours = {.sa_sigaction = on_bad_access, .sa_mask = before->sa_mask};
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before->sa_flags & (SA_NODEFER | SA_RESTART));
    sigaction(signal_number, &ours, NULL);
}

void sy_os_on_bad_access(bool (*body)(const sy_os_access *access)) {
    os_linux_access_explainer *none = NULL;
    if (!atomic_compare_exchange_strong(&os_linux_access_bad_access, &none, body)) return;
    int saved = errno;
    install(SIGSEGV, &before_us[0]);
    install(SIGBUS, &before_us[1]);
    errno = saved;
}

/* ==== src/os/linux_child.c ==== */

/*
 * linux_child.c: of os.h, a child process that works for us, or a copy of this one, and libraries
 * that it loads.
 *
 * The child is made by the system call, not by fork: that runs hooks, which take locks, of malloc's
 * among them, and here the caller may be in the handler of a fault with any of them held. A child
 * without a signal at its end is also one that no wait() of the program's comes by. It answers in
 * memory that both have: a pipe would be two descriptors more, and would not end while a child that
 * the program forked meanwhile keeps its copy open.
 */

/* The caller may be on a stack of signals, a few KiB. Address space; what is not touched costs
 * nothing. */
static const size_t STACK_BYTES = (size_t)8 << 20;

/* A reference that nothing needs to satisfy: older C libraries have it in a library of its own.
 * What opens libraries is asked for by name, since the linker warns of a program that is linked
 * statically and refers to it; such a program opens none. */
#pragma weak dlsym

typedef void *open_anew(Lmid_t list, const char *library, int mode);
typedef void *open_here(const char *library, int mode);

/* What a child is for, and how it is to be. */
typedef struct job {
    sy_os_work *work;
    const void *question;
    void *answer;       /* in memory that both have */
    void *stack;        /* for it to work on; NULL: the caller's */
    unsigned seconds;   /* of life; 0: as long as it takes */
    void (*made)(void); /* called in both; NULL: nothing is */
} job;

static job task; /* of the child; one at a time is in it, since each has its own copy */

/* A program's handlers would not know where they are. */
static void forget_handlers(void) {
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    for (int signal = 1; signal < NSIG; signal++) sigaction(signal, &normal, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* If the child comes to grief nobody is to see it: no words of malloc's, no core (1 is what the
 * kernel takes for none also where cores go to a program). Nor does it outlive who asked. */
static void be_silent(void) {
    const struct rlimit none = {1, 1};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

/* No exit: sanitizers and Valgrind have things to do at one, such as writing what is in the buffers
 * of the program's streams. */
static void work_and_end(void) {
    task.work(task.question, task.answer);
    kill(getpid(), SIGKILL);
}

static void go_to(void *stack) {
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&context, work_and_end, 0);
    setcontext(&context);
}

static _Noreturn void be_the_child(void) {
    alarm(task.seconds);
    be_silent();
    if (task.made)
        task.made(); /* a copy: it never lets signals in */
    else
        forget_handlers();
    if (task.stack)
        go_to(task.stack);
    else
        work_and_end();
    abort();
}

/* Signals wait meanwhile: a handler must not find itself in the child. */
static pid_t make_child(const job *wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        task = *wanted;
        be_the_child();
    }
    int error = errno;
    if (wanted->made) wanted->made();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void await(pid_t pid) {
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) continue;
}

/* `bytes` of answer come back in `answer`; the job's own is not set yet. */
static int os_linux_child_ask_child(job *wanted, void *answer, size_t bytes) {
    int saved = errno;
    void *both = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) {
        if (wanted->made) wanted->made();
        errno = ENOMEM;
        return -1;
    }
    wanted->answer = both;
    pid_t pid = make_child(wanted);
    int error = errno;
    if (pid > 0) {
        await(pid);
        memcpy(answer, both, bytes);
    }
    munmap(both, bytes);
    errno = pid > 0 ? saved : error;
    return pid > 0 ? 0 : -1;
}

int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds) {
    const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, own, -1, 0);
    if (stack == MAP_FAILED) return -1;
    job wanted = {.work = work, .question = question, .stack = stack, .seconds = seconds};
    int result = os_linux_child_ask_child(&wanted, answer, bytes), error = errno;
    munmap(stack, STACK_BYTES);
    errno = error;
    return result;
}

int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void)) {
    job wanted = {.work = work, .question = question, .made = made};
    return os_linux_child_ask_child(&wanted, answer, bytes);
}

int sy_os_process(void) { return (int)getpid(); }

/* The number behind the word in /proc/self/status is 0 for none. */
bool sy_os_is_traced(void) {
    static const char word[] = "\nTracerPid:\t";
    char text[1024] = "";
    int saved = errno, file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got = read(file, text, sizeof text - 1);
        text[got < 0 ? 0 : got] = 0;
        close(file);
    }
    errno = saved;
    const char *found = strstr(text, word);
    return found && found[sizeof word - 1] != '0';
}

void *sy_os_symbol(void *library, const char *name) {
    return dlsym ? dlsym(library ? library : RTLD_DEFAULT, name) : NULL;
}

/* In a namespace of its own it comes with a C library of its own, whose heap nobody corrupted. */
void *sy_os_load(const char *library) {
    open_anew *anew = (open_anew *)sy_os_symbol(NULL, "dlmopen");
    void *loaded = anew ? anew(LM_ID_NEWLM, library, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (loaded) return loaded;
    open_here *here = (open_here *)sy_os_symbol(NULL, "dlopen");
    return here ? here(library, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* ==== src/os/linux_limits.c ==== */

/*
 * linux_limits.c: see linux_limits.h.
 *
 * /proc/self/cgroup has one line per hierarchy, `number:controllers:path`; version 2 has number 0
 * and no controllers. The path is relative to where that hierarchy is mounted, or, in a container
 * that sees the host's path under its own mount, to nothing that exists. So for each hierarchy the
 * path is walked up, from the group to the mount, and the least limit found on the way counts,
 * which is also what the kernel enforces.
 */

enum { PATH_BYTES = 4096, VALUE_BYTES = 64 };

/* One limit of one hierarchy: reads the files of the group in `directory`; UINT64_MAX: none. */
typedef uint64_t read_limit(const char *directory);

/* Where a controller can be mounted, and how its limit is read. */
typedef struct controller {
    const char *name; /* in the second field of /proc/self/cgroup; "" is version 2 */
    const char *mounts[2];
    read_limit *read;
} controller;

static bool os_linux_limits_read_text(const char *path, char *text, size_t capacity) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t length = 0;
    ssize_t got = 0;
    while (length < capacity - 1) {
        got = read(fd, text + length, capacity - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    close(fd);
    text[length] = '\0';
    return got >= 0;
}

static bool read_value(const char *directory, const char *file, char value[VALUE_BYTES]) {
    char path[PATH_BYTES + VALUE_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", directory, file);
    return length > 0 && (size_t)length < sizeof path && os_linux_limits_read_text(path, value, VALUE_BYTES);
}

/* A decimal number, and what follows it; UINT64_MAX for "max", -1 and anything else. */
static uint64_t parse_limit(const char *text, char **rest) {
    *rest = (char *)text;
    if (text[0] < '0' || text[0] > '9') return UINT64_MAX;
    return strtoull(text, rest, 10);
}

/* Version 1 says "none" with the largest multiple of a page below 2^63. */
static uint64_t bytes_or_none(uint64_t bytes) {
    return bytes >= (UINT64_C(1) << 62) ? UINT64_MAX : bytes;
}

static uint64_t whole_cpus(uint64_t quota, uint64_t period) {
    if (quota == UINT64_MAX || period == 0 || period == UINT64_MAX) return UINT64_MAX;
    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus == 0 ? 1 : cpus;
}

static uint64_t memory_v1(const char *directory) {
    char value[VALUE_BYTES], *rest;
    if (!read_value(directory, "memory.limit_in_bytes", value)) return UINT64_MAX;
    return bytes_or_none(parse_limit(value, &rest));
}

static uint64_t memory_v2(const char *directory) {
    char value[VALUE_BYTES], *rest;
    if (!read_value(directory, "memory.max", value)) return UINT64_MAX;
    return bytes_or_none(parse_limit(value, &rest));
}

static uint64_t cpus_v1(const char *directory) {
    char quota[VALUE_BYTES], period[VALUE_BYTES], *rest;
    if (!read_value(directory, "cpu.cfs_quota_us", quota) ||
        !read_value(directory, "cpu.cfs_period_us", period))
        return UINT64_MAX;
    return whole_cpus(parse_limit(quota, &rest), parse_limit(period, &rest));
}

static uint64_t cpus_v2(const char *directory) {
    char value[VALUE_BYTES], *rest;
    if (!read_value(directory, "cpu.max", value)) return UINT64_MAX;
    uint64_t quota = parse_limit(value, &rest);
    if (*rest != ' ') return UINT64_MAX;
    return whole_cpus(quota, parse_limit(rest + 1, &rest));
}

/* The least limit from the group at `mount``path` up to the mount itself. */
static uint64_t least_upwards(const char *root, const char *mount, const char *path,
                              read_limit *read) {
    char directory[PATH_BYTES];
    int top = snprintf(directory, sizeof directory, "%s%s", root, mount);
    int length = snprintf(directory, sizeof directory, "%s%s%s", root, mount, path);
    if (top < 0 || length < 0 || (size_t)length >= sizeof directory) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t limit = read(directory);
        if (limit < least) least = limit;
        char *slash = strrchr(directory + top, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

/* Is `name` one of the comma-separated controllers? For "" there must be none at all. */
static bool has_controller(const char *controllers, const char *name) {
    size_t length = strlen(name);
    if (length == 0) return controllers[0] == '\0';
    for (const char *at = controllers; (at = strstr(at, name)) != NULL; at += length) {
        bool opens = at == controllers || at[-1] == ',';
        bool closes = at[length] == '\0' || at[length] == ',';
        if (opens && closes) return true;
    }
    return false;
}

/* The least limit that one line of /proc/self/cgroup, which is cut up, stands for. */
static uint64_t least_of_line(const char *root, char *line, const controller *wanted) {
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) return UINT64_MAX;
    controllers++;
    *path++ = '\0';
    if (!has_controller(controllers, wanted->name)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        uint64_t limit = least_upwards(root, wanted->mounts[i], path, wanted->read);
        if (limit < least) least = limit;
    }
    return least;
}

static uint64_t least_limit(const char *root, const controller *wanted) {
    char path[PATH_BYTES], groups[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (length < 0 || (size_t)length >= sizeof path || !os_linux_limits_read_text(path, groups, sizeof groups))
        return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char *line = groups;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        uint64_t limit = least_of_line(root, line, wanted);
        if (limit < least) least = limit;
    }
    return least;
}

static uint64_t least_of_versions(const char *root, const controller versions[2]) {
    int saved = errno;
    uint64_t first = least_limit(root, &versions[0]);
    uint64_t second = least_limit(root, &versions[1]);
    errno = saved;
    return first < second ? first : second;
}

size_t sy_linux_group_memory(const char *root) {
    static const controller versions[2] = {
        {"memory", {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}, memory_v1},
        {"", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, memory_v2},
    };
    uint64_t limit = least_of_versions(root, versions);
    return limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
}

unsigned sy_linux_group_cpus(const char *root) {
    static const controller versions[2] = {
        {"cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}, cpus_v1},
        {"", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, cpus_v2},
    };
    uint64_t limit = least_of_versions(root, versions);
    return limit > UINT_MAX ? UINT_MAX : (unsigned)limit;
}

/* ==== src/os/linux_maps.c ==== */

/*
 * linux_maps.c: of os.h, the memory that this process has written: the mappings are in
 * /proc/self/maps, and which of their pages hold something in /proc/self/pagemap.
 *
 * A page can also be a guard (MADV_GUARD_INSTALL), which newer kernels tell from one in swap, and
 * those before (6.13, 6.14) do not: so what is said to be in swap is brought in by a call that
 * fails where an access would.
 */

/* Kernel names that older headers lack. */
#define ADVICE_POPULATE_READ 22 /* 5.14 */

static const uint64_t IN_MEMORY = UINT64_C(1) << 63, IN_SWAP = UINT64_C(1) << 62;
static const uint64_t os_linux_maps_GUARD = UINT64_C(1) << 58; /* 6.15 */

static const uint64_t MAPPING_MAX = UINT64_C(512) << 30;

enum { ENTRIES = 512 }; /* of pages, read at a time */

/* ---- mappings ---- */

typedef struct os_linux_maps_reader {
    int file;
    ssize_t at, end; /* in buffer; end is -1 after an error */
    char buffer[4096];
} os_linux_maps_reader;

/* The next character, or -1. */
static int next_of_maps(os_linux_maps_reader *maps) {
    if (maps->at < maps->end) return (unsigned char)maps->buffer[maps->at++];
    do maps->end = read(maps->file, maps->buffer, sizeof maps->buffer);
    while (maps->end < 0 && errno == EINTR);
    maps->at = 0;
    return maps->end > 0 ? (unsigned char)maps->buffer[maps->at++] : -1;
}

/* A number in base 16 and the character behind it, which is skipped. */
static uintptr_t os_linux_maps_next_number(os_linux_maps_reader *maps) {
    uintptr_t number = 0;
    for (;;) {
        int c = next_of_maps(maps);
        if (c >= '0' && c <= '9')
            number = number * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number * 16 + (unsigned)(c - 'a') + 10;
        else
            return number;
    }
}

/* The next line: "start-end rw-p ..."; false: there is none. */
static bool next_mapping(os_linux_maps_reader *maps, sy_os_piece *piece, bool *wanted) {
    piece->mapping = os_linux_maps_next_number(maps);
    piece->mapping_end = os_linux_maps_next_number(maps);
    char rights[4];
    for (int i = 0; i < 4; i++) rights[i] = (char)next_of_maps(maps);
    *wanted = rights[0] == 'r' && rights[1] == 'w' && rights[3] == 'p' &&
              piece->mapping_end - piece->mapping <= MAPPING_MAX;
    int c;
    do c = next_of_maps(maps);
    while (c >= 0 && c != '\n');
    return c >= 0;
}

/* ---- pages ---- */

static bool holds_something(uint64_t entry, uintptr_t address, size_t page) {
    if (entry & IN_MEMORY) return true;
    if (!(entry & IN_SWAP) || entry & os_linux_maps_GUARD) return false;
    return madvise((void *)address, page, ADVICE_POPULATE_READ) == 0 || errno == EINVAL;
}

typedef struct page_walk {
    int pages; /* /proc/self/pagemap */
    void (*visit)(void *arg, const sy_os_piece *piece);
    void *arg;
} page_walk;

/* Goes on with the piece, or ends it and visits it. */
static void add_page(const page_walk *walk, sy_os_piece *piece, uintptr_t address, size_t page,
                     bool holds) {
    if (holds && piece->start == piece->end) piece->start = address;
    if (holds) piece->end = address + page;
    if (holds || piece->start == piece->end) return;
    walk->visit(walk->arg, piece);
    piece->start = piece->end = 0;
}

static int walk_mapping(const page_walk *walk, sy_os_piece *piece) {
    size_t page = sy_os_page_size();
    uint64_t entries[ENTRIES];
    piece->start = piece->end = 0;
    for (uintptr_t at = piece->mapping; at < piece->mapping_end;) {
        size_t left = (piece->mapping_end - at) / page, most = left < ENTRIES ? left : ENTRIES;
        off_t offset = (off_t)(at / page * sizeof *entries);
        ssize_t bytes = pread(walk->pages, entries, most * sizeof *entries, offset);
        if (bytes < (ssize_t)sizeof *entries) return -1;
        for (size_t i = 0; i < (size_t)bytes / sizeof *entries; i++, at += page)
            add_page(walk, piece, at, page, holds_something(entries[i], at, page));
    }
    add_page(walk, piece, piece->mapping_end, page, false);
    return 0;
}

static int walk_mappings(const page_walk *walk, os_linux_maps_reader *maps) {
    sy_os_piece piece;
    bool wanted;
    while (next_mapping(maps, &piece, &wanted))
        if (wanted && walk_mapping(walk, &piece) != 0) return -1;
    return maps->end < 0 ? -1 : 0;
}

static int open_to_read(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg) {
    int saved = errno;
    os_linux_maps_reader maps = {.file = open_to_read("/proc/self/maps")};
    page_walk walk = {.pages = open_to_read("/proc/self/pagemap"), .visit = visit, .arg = arg};
    int result = maps.file < 0 || walk.pages < 0 ? -1 : walk_mappings(&walk, &maps);
    int error = errno;
    if (maps.file >= 0) close(maps.file);
    if (walk.pages >= 0) close(walk.pages);
    errno = result == 0 ? saved : error;
    return result;
}
#undef ADVICE_POPULATE_READ

/* ==== src/os/linux_places.c ==== */

/*
 * linux_places.c: of os.h, what an address is of: by /proc/self/maps, by the loader's list for data
 * (zeroes are in no file), and by the symbols of the ELF file that is mapped there. Reads through
 * small buffers on the stack, since whoever asks may be on one of a few KiB; a file that is not
 * what it says gives no answer, or a wrong one.
 */

typedef struct mapping {
    uintptr_t start, end;
    uint64_t offset; /* in the file */
    char path[SY_OS_FILE_MAX];
} mapping;

/* ---- the list of mappings ---- */

typedef struct os_linux_places_reader {
    int fd;
    size_t at, length;
    char bytes[1024];
} os_linux_places_reader;

/* The next byte, 0 at the end. */
static char next_byte(os_linux_places_reader *from) {
    if (from->at == from->length) {
        ssize_t got;
        do got = read(from->fd, from->bytes, sizeof from->bytes);
        while (got < 0 && errno == EINTR);
        if (got <= 0) return 0;
        from->at = 0;
        from->length = (size_t)got;
    }
    return from->bytes[from->at++];
}

/* A number in hex, and the byte behind it. */
static uint64_t os_linux_places_number(os_linux_places_reader *from) {
    uint64_t value = 0;
    for (;;) {
        char c = next_byte(from);
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t)(c - 'a' + 10);
        else
            return value;
    }
}

/* Up to the next space or the end of the line; whether it was a space. */
static bool skip_word(os_linux_places_reader *from) {
    for (;;) {
        char c = next_byte(from);
        if (c == ' ') return true;
        if (c == '\n' || c == 0) return false;
    }
}

/* The rest of the line without the spaces before it; cut where it is too long. */
static void take_path(os_linux_places_reader *from, char *path) {
    size_t length = 0;
    for (char c = next_byte(from); c != '\n' && c != 0; c = next_byte(from)) {
        if (c == ' ' && length == 0) continue;
        if (length + 1 < SY_OS_FILE_MAX) path[length++] = c;
    }
    path[length] = 0;
}

/* 55d0a000-55d0c000 r-xp 00002000 fe:01 1234     /usr/bin/cat */
static bool take_line(os_linux_places_reader *from, mapping *into) {
    into->start = os_linux_places_number(from);
    into->end = os_linux_places_number(from);
    if (into->end == 0) return false;
    skip_word(from);
    into->offset = os_linux_places_number(from);
    into->path[0] = 0;
    if (skip_word(from) && skip_word(from)) take_path(from, into->path);
    return true;
}

static bool find_mapping(uintptr_t address, mapping *into) {
    int saved = errno;
    os_linux_places_reader from = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool found = false;
    while (from.fd >= 0 && !found && take_line(&from, into))
        found = address >= into->start && address < into->end;
    if (from.fd >= 0) close(from.fd);
    errno = saved;
    return found;
}

/* ---- stacks ---- */

/* The first thread's stack grows: its mapping is what has been touched so far. The kernel keeps at
 * least so much free below it. */
static const uintptr_t GROWTH = (uintptr_t)128 << 20;

/* The mapping of another thread's stack may be one with what lies above; but the thread's own
 * structure is at the end of the stack, and goes no sooner than it does. */
bool sy_os_stack(uintptr_t *low, uintptr_t *high) {
    mapping found;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0),
              self = (uintptr_t)sy_linux_thread_pointer();
    if (!find_mapping(here, &found)) return false;
    *low = found.start;
    *high = found.end;
    if (strcmp(found.path, "[stack]") == 0)
        *low = found.end - GROWTH;
    else if (self > here && self < found.end)
        *high = self;
    else
        return false;
    return true;
}

bool sy_os_on_signal_stack(void) {
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK;
}

/* ---- symbols ---- */

static bool read_at(int fd, uint64_t offset, void *into, size_t bytes) {
    ssize_t got;
    do got = pread(fd, into, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

static bool read_header(int fd, ElfW(Ehdr) * header) {
    return read_at(fd, 0, header, sizeof *header) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_phentsize == sizeof(ElfW(Phdr)) && header->e_ident[EI_CLASS] != ELFCLASSNONE;
}

/* What is at `offset` of the file has which address in the file's own terms? */
static uint64_t own_address(int fd, const ElfW(Ehdr) * header, uint64_t offset) {
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) part;
        if (!read_at(fd, header->e_phoff + i * sizeof part, &part, sizeof part)) break;
        if (part.p_type == PT_LOAD && offset >= part.p_offset &&
            offset - part.p_offset < part.p_filesz)
            return offset - part.p_offset + part.p_vaddr;
    }
    return offset;
}

static bool read_section(int fd, const ElfW(Ehdr) * header, size_t index, ElfW(Shdr) * section) {
    return index < header->e_shnum && header->e_shentsize == sizeof *section &&
           read_at(fd, header->e_shoff + index * sizeof *section, section, sizeof *section);
}

/* The full table where the file was not stripped of it, else that of what is exported. */
static bool find_table(int fd, const ElfW(Ehdr) * header, ElfW(Shdr) * table) {
    bool found = false;
    for (size_t i = 0; i < header->e_shnum; i++) {
        ElfW(Shdr) section;
        if (!read_section(fd, header, i, &section)) break;
        if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
        *table = section;
        found = true;
        if (section.sh_type == SHT_SYMTAB) break;
    }
    return found;
}

enum { os_linux_places_FUNCTIONS = 1 << STT_FUNC, VARIABLES = 1 << STT_OBJECT };

static bool is_around(const ElfW(Sym) * symbol, unsigned kinds, uint64_t address) {
    return kinds & 1u << (symbol->st_info & 0xf) && symbol->st_shndx != SHN_UNDEF &&
           address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

static bool find_symbol(int fd, const ElfW(Shdr) * table, unsigned kinds, uint64_t address,
                        ElfW(Sym) * found) {
    ElfW(Sym) symbols[64];
    const size_t at_once = sizeof symbols / sizeof *symbols;
    size_t count = table->sh_size / sizeof *symbols;
    for (size_t first = 0; first < count; first += at_once) {
        size_t some = count - first < at_once ? count - first : at_once;
        uint64_t offset = table->sh_offset + first * sizeof *symbols;
        if (!read_at(fd, offset, symbols, some * sizeof *symbols)) return false;
        for (size_t i = 0; i < some; i++) {
            if (!is_around(&symbols[i], kinds, address)) continue;
            *found = symbols[i];
            return true;
        }
    }
    return false;
}

/* A name at the very end of the file is shorter than what is asked for. */
static void os_linux_places_read_name(int fd, uint64_t offset, char *name, size_t room) {
    ssize_t got = pread(fd, name, room - 1, (off_t)offset);
    name[got < 0 ? 0 : got] = 0;
}

/* The function or variable at an address in the file's own terms. */
static void name_address(int fd, const ElfW(Ehdr) * header, unsigned kinds, uint64_t address,
                         char *name, uint64_t *behind) {
    ElfW(Shdr) table = {0}, names;
    ElfW(Sym) symbol;
    if (!find_table(fd, header, &table) || !read_section(fd, header, table.sh_link, &names) ||
        !find_symbol(fd, &table, kinds, address, &symbol))
        return;
    *behind = address - symbol.st_value;
    os_linux_places_read_name(fd, names.sh_offset + symbol.st_name, name, SY_OS_FUNCTION_MAX);
}

static void ask_file(int fd, uint64_t offset, sy_os_place *place) {
    ElfW(Ehdr) header;
    if (!read_header(fd, &header)) return;
    place->in_file = own_address(fd, &header, offset);
    name_address(fd, &header, os_linux_places_FUNCTIONS, place->in_file, place->function, &place->in_function);
}

bool sy_os_locate(uintptr_t address, sy_os_place *place) {
    int saved = errno;
    mapping found;
    if (!find_mapping(address, &found) || found.path[0] == 0) return false;
    place->in_file = address - found.start + found.offset;
    place->in_function = 0;
    place->function[0] = 0;
    memcpy(place->file, found.path, sizeof place->file);
    int fd = found.path[0] == '/' ? open(found.path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ask_file(fd, place->in_file, place);
        close(fd);
    }
    errno = saved;
    return true;
}

/* ---- data ---- */

typedef struct os_linux_places_search {
    uintptr_t address;
    uint64_t own; /* the address in the file's own terms */
    char *file;
} os_linux_places_search;

static void copy_path(const char *from, char *to) {
    size_t length = strlen(from);
    if (length >= SY_OS_FILE_MAX) length = SY_OS_FILE_MAX - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

/* The program itself has no name there. */
static void copy_name(const struct dl_phdr_info *object, char *file) {
    if (object->dlpi_name && object->dlpi_name[0] == '/') {
        copy_path(object->dlpi_name, file);
        return;
    }
    ssize_t got = readlink("/proc/self/exe", file, SY_OS_FILE_MAX - 1);
    file[got < 0 ? 0 : got] = 0;
}

static int look_at_object(struct dl_phdr_info *object, size_t bytes, void *arg) {
    os_linux_places_search *for_it = arg;
    (void)bytes;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || for_it->address - start >= part->p_memsz) continue;
        for_it->own = for_it->address - object->dlpi_addr;
        copy_name(object, for_it->file);
        return 1;
    }
    return 0;
}

static void name_section(int fd, const ElfW(Ehdr) * header, uint64_t address, char *name) {
    ElfW(Shdr) names, section;
    if (!read_section(fd, header, header->e_shstrndx, &names)) return;
    for (size_t i = 0; i < header->e_shnum && read_section(fd, header, i, &section); i++) {
        bool here = section.sh_flags & SHF_ALLOC && !(section.sh_flags & SHF_TLS);
        if (!here || address - section.sh_addr >= section.sh_size) continue;
        os_linux_places_read_name(fd, names.sh_offset + section.sh_name, name, SY_OS_SECTION_MAX);
        return;
    }
}

static void ask_program(uint64_t own, sy_os_data *data) {
    ElfW(Ehdr) header;
    int fd = open(data->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (read_header(fd, &header)) {
        name_section(fd, &header, own, data->section);
        name_address(fd, &header, os_linux_places_FUNCTIONS | VARIABLES, own, data->name, &data->behind);
    }
    close(fd);
}

static sy_os_region region_of(const mapping *found) {
    if (found->path[0] == 0) return SY_OS_ANONYMOUS;
    if (found->path[0] == '/') return SY_OS_OF_FILE;
    return strcmp(found->path, "[stack]") == 0 ? SY_OS_FIRST_STACK : SY_OS_NAMED;
}

void sy_os_find(uintptr_t address, sy_os_data *data) {
    int saved = errno;
    mapping found;
    uintptr_t low, high;
    os_linux_places_search for_it = {.address = address, .file = data->file};
    *data = (sy_os_data){.region = SY_OS_NOWHERE};
    if (dl_iterate_phdr(look_at_object, &for_it)) {
        data->region = SY_OS_OF_PROGRAM;
        ask_program(for_it.own, data);
    } else if (find_mapping(address, &found)) {
        bool own = sy_os_stack(&low, &high) && address >= low && address < high;
        data->region = own ? SY_OS_OWN_STACK : region_of(&found);
        copy_path(found.path, data->file);
    }
    errno = saved;
}

/* ==== src/os/lock.c ==== */

/*
 * lock.c: the slow path of a lock, and what happens to locks when a thread forks while it or
 * others hold some.
 */

#ifdef SY_DEBUG
#pragma GCC visibility push(default)
#    include <string.h>
#pragma GCC visibility pop
#endif

enum {
    SPINS = 100, /* about the time of one refill, so that a holder on another CPU is waited out */
    LEVEL_SHIFT = 26,
    LEVELS = 30, /* of forks in handlers of signals that came in forks */
    WAYS = 20,   /* that a thread gives in a row: then it goes on as if it were burdened */
};

static const uint32_t WAITED = UINT32_C(1) << 31, HOLDER = (UINT32_C(1) << LEVEL_SHIFT) - 1;
static const uint32_t INHERITED = 31; /* a level */

/* Of a thread that forks in a handler: longer than locks are held for. */
static const uint64_t PATIENCE_NS = 50000000;
static const uint64_t os_lock_LOOK_NS = 1000000; /* from one look to the next whether a lock can be had */

SY_TLS sy_lock_holder sy_lock_self;

/* This thread's fork. */
static SY_TLS struct {
    uint32_t level;    /* 0: it is in none */
    uint32_t burdened; /* from this level on (0: not): it holds locks for interrupted work, */
    uint64_t until;    /* and waits until then for those that others hold so */
    bool gave_way;     /* it is not, and has met a thread that is, */
    uint32_t ways;     /* so often in a row */
    bool child;        /* it is in the child already, */
    uint32_t before;   /* and had this number in the parent */
} fork_at;

/* Threads that are in a fork so. */
static _Atomic uint32_t burdened;

/* In the child of a fork: what the thread has inherited, and what is to be done after that. */
static SY_TLS uint32_t inherited;
static SY_TLS void (*recover_then)(void);

static uint32_t level_of(uint32_t word) { return (word & ~WAITED) >> LEVEL_SHIFT; }

static uint32_t os_lock_number(void) {
    if (!sy_lock_self.number) sy_lock_self.number = sy_os_thread() & HOLDER;
    return sy_lock_self.number;
}

static bool is_mine(uint32_t word) { return word && (word & HOLDER) == os_lock_number(); }

/* Whether this thread holds it for a fork: then nothing is to be done for having it. */
static bool is_for_fork(uint32_t word) {
    return is_mine(word) && level_of(word) != 0 && level_of(word) != INHERITED;
}

static uint32_t load_word(const sy_lock *lock) {
    return atomic_load_explicit(&lock->word, memory_order_relaxed);
}

static bool try_lock(sy_lock *lock, uint32_t word) {
    uint32_t unheld = 0;
    return load_word(lock) == 0 &&
           atomic_compare_exchange_strong_explicit(&lock->word, &unheld, word, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Marks the word, so that its holder wakes this thread. What it is then, 0 if it is free. */
static uint32_t mark_waited(sy_lock *lock) {
    uint32_t word = load_word(lock);
    while (word && !(word & WAITED))
        if (atomic_compare_exchange_weak_explicit(&lock->word, &word, word | WAITED,
                                                  memory_order_relaxed, memory_order_relaxed))
            return word | WAITED;
    return word;
}

/* Others may still be asleep when this thread has it. */
static void wait_for(sy_lock *lock, uint32_t word) {
    for (int spin = 0; spin < SPINS; spin++) {
        if (try_lock(lock, word)) return;
        sy_cpu_relax();
    }
    while (!try_lock(lock, word | WAITED)) {
        uint32_t seen = mark_waited(lock);
        if (seen) sy_os_wait(&lock->word, seen);
    }
}

void sy_lock_acquire_slow(sy_lock *lock) {
    uint32_t self = os_lock_number();
    if (!is_for_fork(load_word(lock))) wait_for(lock, self);
}

/* What the word was. */
static uint32_t set_free(sy_lock *lock) {
    uint32_t word = atomic_exchange_explicit(&lock->word, 0, memory_order_release);
    if (word & WAITED) sy_os_wake(&lock->word, 1);
    return word;
}

/* ---- the order, in debug builds ---- */

#ifdef SY_DEBUG
static _Thread_local uint32_t held_of_rank[SY_RANK_LAST + 1];

static _Noreturn void out_of_order(const char *message) {
    sy_os_write(2, message, strlen(message));
    sy_os_abort();
}

void sy_lock_note_acquire(const sy_lock *lock) {
    for (unsigned rank = lock->rank + 1; rank <= SY_RANK_LAST; rank++)
        if (held_of_rank[rank]) out_of_order("slabyard: a lock was taken out of order\n");
    held_of_rank[lock->rank]++;
}

void sy_lock_note_release(const sy_lock *lock) {
    if (held_of_rank[lock->rank]-- == 0) out_of_order("slabyard: a lock was released unheld\n");
}

/* Work that a signal has interrupted may have been about to take a lock, which is noted already. */
static void run_recovery(void (*recover)(void)) {
    uint32_t noted[SY_RANK_LAST + 1];
    memcpy(noted, held_of_rank, sizeof noted);
    memset(held_of_rank, 0, sizeof held_of_rank);
    recover();
    memcpy(held_of_rank, noted, sizeof noted);
}

#else

static void run_recovery(void (*recover)(void)) { recover(); }

#endif

/* ---- acquire and release ---- */

/* One of what the thread had inherited is let go. */
static void shed(void) {
    if (--inherited > 0) return;
    void (*recover)(void) = recover_then;
    recover_then = NULL;
    if (recover) run_recovery(recover);
}

void sy_lock_release_slow(sy_lock *lock) {
    if (is_for_fork(load_word(lock))) return;
    if (level_of(set_free(lock)) == INHERITED) shed();
}

bool sy_lock_is_mine(const sy_lock *lock) {
    uint32_t word = load_word(lock);
    return is_mine(word) && !is_for_fork(word);
}

/* ---- around a fork ---- */

static uint32_t word_for_fork(void) {
    uint32_t level = fork_at.level < LEVELS ? fork_at.level : LEVELS;
    return level << LEVEL_SHIFT | os_lock_number();
}

/* A fork within a fork holds what the outer one holds. */
void sy_lock_begin_fork(void) {
    fork_at.child = fork_at.gave_way = false;
    bool outermost = fork_at.level++ == 0;
    bool unburdened = outermost && sy_lock_self.held == 0 && fork_at.ways < WAYS;
    if (fork_at.burdened || unburdened) return;
    fork_at.burdened = fork_at.level;
    fork_at.until = sy_os_now() + PATIENCE_NS;
    atomic_fetch_add_explicit(&burdened, 1, memory_order_relaxed);
}

/* Whether to go on without a lock that another thread has. If it has it for a fork, it needs none
 * of this thread's locks that it cannot go on without. */
static bool is_hopeless(uint32_t word) {
    bool for_work = level_of(word) == 0 || level_of(word) == INHERITED;
    if (fork_at.burdened) return for_work && sy_os_now() >= fork_at.until;
    if (atomic_load_explicit(&burdened, memory_order_relaxed)) fork_at.gave_way = true;
    return fork_at.gave_way;
}

bool sy_lock_hold(sy_lock *lock) {
    if (is_mine(load_word(lock))) return true;
    for (uint32_t word = word_for_fork(); !try_lock(lock, word); word |= WAITED) {
        uint32_t seen = mark_waited(lock);
        if (seen && is_hopeless(seen)) return false;
        if (seen) sy_os_wait_for(&lock->word, seen, os_lock_LOOK_NS);
    }
    return true;
}

bool sy_lock_gave_way(void) { return fork_at.gave_way; }

/* A handler that forks may have interrupted the counting, so what is counted may be too much. */
void sy_lock_wait_for_way(void) {
    uint32_t seen = atomic_load_explicit(&burdened, memory_order_relaxed);
    fork_at.ways++;
    if (seen) sy_os_wait_for(&burdened, seen, PATIENCE_NS);
}

bool sy_lock_has(const sy_lock *lock) { return fork_at.child || is_mine(load_word(lock)); }

/* Locks of an outer fork, which this one came in, stay that one's. */
static bool drop_in_child(sy_lock *lock) {
    uint32_t word = load_word(lock), level = level_of(word), kept = 0;
    bool mine = word && (word & HOLDER) == fork_at.before;
    bool for_work = level == 0 || level == INHERITED;
    if (mine && for_work) {
        kept = INHERITED << LEVEL_SHIFT | os_lock_number();
        inherited++;
    } else if (mine && level < level_of(word_for_fork())) {
        kept = level << LEVEL_SHIFT | os_lock_number();
    }
    atomic_store_explicit(&lock->word, kept, memory_order_relaxed);
    return !mine;
}

bool sy_lock_drop(sy_lock *lock) {
    if (fork_at.child) return drop_in_child(lock);
    if ((load_word(lock) & ~WAITED) == word_for_fork()) set_free(lock);
    return false;
}

static void uncount_burdened(void) {
    uint32_t seen = atomic_load_explicit(&burdened, memory_order_relaxed);
    while (seen && !atomic_compare_exchange_weak_explicit(
                       &burdened, &seen, seen - 1, memory_order_relaxed, memory_order_relaxed)) {}
    sy_os_wake(&burdened, 1 << 20);
}

void sy_lock_end_fork(void) {
    if (!fork_at.gave_way) fork_at.ways = 0;
    if (fork_at.level == fork_at.burdened) {
        fork_at.burdened = 0;
        uncount_burdened();
    }
    fork_at.level--;
}

void sy_lock_begin_child(void) {
    fork_at.child = true;
    fork_at.before = sy_lock_self.number;
    sy_lock_self.number = 0;
    inherited = 0;
    atomic_store_explicit(&burdened, fork_at.burdened != 0, memory_order_relaxed);
}

void sy_lock_end_child(void (*recover)(void)) {
    fork_at.child = false;
    sy_lock_end_fork();
    if (inherited > 0)
        recover_then = recover;
    else
        run_recovery(recover);
}

bool sy_lock_is_forking(void) { return fork_at.level > 0; }

/* ==== src/os/pages.c ==== */

/*
 * pages.c: whole mappings for the library's own tables.
 */

void *sy_pages_take(size_t bytes, size_t align, const char *name) {
    void *start = sy_os_reserve(bytes, align, name);
    if (!start) return NULL;
    if (sy_os_commit(start, bytes) == 0) return start;
    sy_os_release(start, bytes);
    errno = ENOMEM;
    return NULL;
}

void sy_pages_give(void *start, size_t bytes) {
    int error = errno;
    if (sy_os_release(start, bytes) != 0) sy_os_discard(start, bytes);
    errno = error;
}

/* ==== src/os/start.c ==== */

/*
 * start.c: starts the parts on the first call of the process, in order, and takes and releases all
 * locks around a fork.
 */

enum { NOT_STARTED, STARTING, STARTED };

static _Atomic uint32_t os_start_state;
static SY_TLS bool starting; /* it is this thread that does */
/* What has been done of it, should the start as a whole have failed before. */
static bool survives_forks;
static size_t parts_started, parts_finished;

static sy_lock os_start_lock = SY_LOCK_INIT(SY_RANK_START);

bool sy_start_lock(void) {
    if (sy_lock_is_mine(&os_start_lock)) return false;
    sy_lock_acquire(&os_start_lock);
    return true;
}

void sy_start_unlock(void) { sy_lock_release(&os_start_lock); }

/* ---- fork ---- */

static void hold_all(void) {
    sy_lock_hold(&os_start_lock);
    for (size_t i = 0; i < sy_part_count; i++)
        if (sy_parts[i]->hold) sy_parts[i]->hold();
}

static void drop_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->drop) sy_parts[i]->drop();
    sy_lock_drop(&os_start_lock);
}

/* Another thread that starts the library would be missing in the child, the start half done. */
static void wait_for_start(void) {
    while (atomic_load_explicit(&os_start_state, memory_order_acquire) == STARTING && !starting &&
           sy_lock_self.held == 0)
        sy_os_wait(&os_start_state, STARTING);
}

/* All locks, with those of the C library's that `streams` is for before them. */
static void lock_all(bool streams) {
    int error = errno;
    for (;;) {
        sy_lock_begin_fork();
        if (streams) sy_os_hold_streams();
        hold_all();
        if (!sy_lock_gave_way()) break;
        drop_all();
        if (streams) sy_os_drop_streams(false);
        sy_lock_end_fork();
        sy_lock_wait_for_way();
    }
    errno = error;
}

void sy_start_lock_all(void) { lock_all(false); }

void sy_start_unlock_all(void) {
    drop_all();
    sy_lock_end_fork();
}

static void before_fork(void) {
    wait_for_start();
    lock_all(true);
}

static void after_fork_in_parent(void) {
    sy_start_unlock_all();
    sy_os_drop_streams(false);
}

static void inherit_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->inherit) sy_parts[i]->inherit();
}

static void recover_all(void) {
    for (size_t i = sy_part_count; i-- > 0;)
        if (sy_parts[i]->recover) sy_parts[i]->recover();
}

static void after_fork_in_child(void) {
    int error = errno;
    sy_os_thread_forked();
    sy_lock_begin_child();
    drop_all();
    inherit_all();
    if (atomic_load(&os_start_state) == STARTING && !starting) atomic_store(&os_start_state, NOT_STARTED);
    sy_lock_end_child(recover_all);
    sy_os_drop_streams(true);
    errno = error;
}

static int survive_forks(void) {
    if (survives_forks) return 0;
    if (sy_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) return -1;
    survives_forks = true;
    return 0;
}

/* Hooks that the program registers come later then, so they run before the locks are held and after
 * they are let go; only other libraries' constructors can come before. If this fails, or somebody
 * comes before this, the start does it. 101 is the fake OS's (os/fake.c). */
__attribute__((constructor(102))) static void survive_forks_early(void) {
    int error = errno;
    (void)survive_forks();
    errno = error;
}

/* ---- start ---- */

static const sy_part *from_innermost(size_t i) { return sy_parts[sy_part_count - 1 - i]; }

static int start_parts(void) {
    if (survive_forks() != 0) return -1;
    for (; parts_started < sy_part_count; parts_started++) {
        const sy_part *part = from_innermost(parts_started);
        if (part->start && part->start() != 0) return -1;
    }
    for (; parts_finished < sy_part_count; parts_finished++) {
        const sy_part *part = from_innermost(parts_finished);
        if (part->finish && part->finish() != 0) return -1;
    }
    return 0;
}

/* What the system's functions allocate that the start itself calls, where this library is the
 * program's malloc: served as soon as there is what it takes. */
static int start_within(void) {
    if (parts_started == sy_part_count) return 0;
    errno = ENOMEM;
    return -1;
}

int sy_start(void) {
    for (;;) {
        uint32_t seen = NOT_STARTED;
        if (atomic_load_explicit(&os_start_state, memory_order_acquire) == STARTED) return 0;
        if (starting) return start_within();
        if (atomic_compare_exchange_strong(&os_start_state, &seen, STARTING)) break;
        if (seen == STARTING) sy_os_wait(&os_start_state, STARTING);
    }
    starting = true;
    int result = start_parts();
    if (result != 0) errno = ENOMEM;
    starting = false;
    atomic_store_explicit(&os_start_state, result == 0 ? STARTED : NOT_STARTED, memory_order_release);
    sy_os_wake(&os_start_state, 1 << 20);
    return result;
}

/* ==== src/pool/calls.c ==== */

/*
 * calls.c: the inline doors of pool.h as exported functions, for callers that cannot inline C or
 * were compiled with SY_NO_INLINE.
 */

void *sy_pool_alloc(sy_pool *pool) { return sy_pool_alloc_inline(pool); }

void sy_pool_free(sy_pool *pool, void *object) {
    if (SY_UNLIKELY(sy_pool_is_checked(pool)))
        sy_checked_pool_free(pool, object);
    else
        sy_pool_free_inline(pool, object);
}

/* ==== src/pool/checked.c ==== */

/*
 * checked.c: pools with checks on. They have the same functions as plain pools, and keep their
 * records and free list outside of the slots.
 */

static const size_t pool_checked_SLOTS_BYTES = (size_t)64 << 30; /* of address space, for an unbounded pool */
enum { pool_checked_STEP_BYTES = 64 << 10 };                     /* committed at a time */

/* A range of addresses that is used from its front. */
typedef struct pool_checked_sy_range {
    char *start;
    size_t bytes, committed;
} pool_checked_sy_range;

typedef struct checked_pool {
    _Alignas(64) sy_pool pool; /* first: what callers hold is its address */
    uintptr_t word;            /* the caller's */
    char name[SY_POOL_NAME_MAX + 1];
    sy_watch watch;
    size_t size, lead;    /* of an object; bytes before the first */
    _Atomic size_t slots; /* that were given ever */
    size_t most;          /* that fit */
    size_t live, free_count;
    pool_checked_sy_range memory, records, numbers;
    struct checked_pool *next; /* in the list; guarded by its lock */
    bool passed_over;          /* it is being reset; guarded by the list's lock */
} checked_pool;

_Static_assert(offsetof(checked_pool, word) == sizeof(sy_pool), "where sy_pool_word says");

static checked_pool *checked_whole_of(const sy_pool *pool) {
    return (checked_pool *)(uintptr_t)pool;
}

/* ---- memory ---- */

static bool pool_checked_reserve(pool_checked_sy_range *range, size_t bytes, size_t align) {
    range->bytes = sy_round_up(bytes, pool_checked_STEP_BYTES);
    size_t least = align > sy_os_page_size() ? align : sy_os_page_size();
    range->start = sy_os_reserve(range->bytes, least, "slabyard:checked pool");
    return range->start;
}

static void pool_checked_release(const pool_checked_sy_range *range) {
    int error = errno;
    if (range->start) (void)sy_os_release(range->start, range->bytes);
    errno = error;
}

/* Makes the first `bytes` usable. */
static bool use(pool_checked_sy_range *range, size_t bytes) {
    if (bytes <= range->committed) return true;
    size_t end = sy_round_up(bytes, pool_checked_STEP_BYTES);
    if (sy_os_commit(range->start + range->committed, end - range->committed) != 0) return false;
    range->committed = end;
    return true;
}

/* ---- slots ---- */

static char *object_at(const checked_pool *pool, size_t slot) {
    return pool->memory.start + pool->lead + slot * pool->pool.stride;
}

static sy_record *record_at(const checked_pool *pool, size_t slot) {
    return (sy_record *)(void *)pool->records.start + slot;
}

static bool use_slots(checked_pool *pool, size_t slots) {
    return use(&pool->memory, pool->lead + slots * pool->pool.stride) &&
           use(&pool->records, slots * sizeof(sy_record)) &&
           use(&pool->numbers, slots * sizeof(size_t));
}

/* A slot that was freed, the last first, or else a new one. */
static bool take_slot(checked_pool *pool, size_t *slot) {
    if (!pool->free_count && (pool->slots == pool->most || !use_slots(pool, pool->slots + 1))) {
        uintptr_t waited; /* in quarantine there may be some */
        bool any = sy_watch_next(&pool->watch, &waited);
        *slot = waited;
        return any;
    }
    const size_t *numbers = (const size_t *)(const void *)pool->numbers.start;
    *slot = pool->free_count ? numbers[--pool->free_count] : pool->slots++;
    return true;
}

static void pool_checked_put_slot(checked_pool *pool, size_t slot) {
    ((size_t *)(void *)pool->numbers.start)[pool->free_count++] = slot;
}

/* ---- the list of all ---- */

enum { pool_checked_TOLD_MAX = 16 }; /* faults of one walk that are described; the others are counted */

typedef struct pool_walk {
    bool free_only; /* live objects are passed over */
    size_t wrong, told;
    sy_fault faults[pool_checked_TOLD_MAX];
    char names[pool_checked_TOLD_MAX][SY_POOL_NAME_MAX + 1]; /* a pool may be gone when its fault is told */
} pool_walk;

static sy_lock pool_checked_lock = SY_LOCK_INIT(SY_RANK_POOLS);
static checked_pool *pools; /* guarded by lock */

static void list_pool(checked_pool *pool) {
    sy_lock_acquire(&pool_checked_lock);
    pool->next = pools;
    pools = pool;
    sy_lock_release(&pool_checked_lock);
}

static void unlist_pool(const checked_pool *pool) {
    sy_lock_acquire(&pool_checked_lock);
    checked_pool **at = &pools;
    while (*at != pool) at = &(*at)->next;
    *at = pool->next;
    sy_lock_release(&pool_checked_lock);
}

static void pass_pool_over(checked_pool *pool, bool passed_over) {
    sy_lock_acquire(&pool_checked_lock);
    pool->passed_over = passed_over;
    sy_lock_release(&pool_checked_lock);
}

static void look_at_pool(const checked_pool *pool, pool_walk *walk) {
    for (size_t slot = 0; slot < pool->slots; slot++) {
        const sy_record *record = record_at(pool, slot);
        sy_fault fault;
        if (walk->free_only && sy_record_state(record) != SY_OBJECT_FREE) continue;
        if (!sy_watch_look(&pool->watch, record, object_at(pool, slot), &fault)) continue;
        walk->wrong++;
        if (walk->told == pool_checked_TOLD_MAX) continue;
        char *name = walk->names[walk->told];
        memcpy(name, pool->name, sizeof pool->name);
        fault.cache = name;
        walk->faults[walk->told++] = fault;
    }
}

/* `found` is called for what is described, without the lock. */
static size_t look_at_pools(bool free_only, void (*found)(const sy_fault *fault)) {
    pool_walk walk;
    walk.free_only = free_only;
    walk.wrong = walk.told = 0;
    sy_lock_acquire(&pool_checked_lock);
    for (const checked_pool *pool = pools; pool; pool = pool->next)
        if (!pool->passed_over) look_at_pool(pool, &walk);
    sy_lock_release(&pool_checked_lock);
    for (size_t i = 0; i < walk.told; i++) found(&walk.faults[i]);
    return walk.wrong;
}

size_t sy_checked_pools_verify(void) { return look_at_pools(false, sy_fault_tell); }

static void verify_pools_at_exit(void) {
    if (atomic_load_explicit(&sy_options_now.exit_check, memory_order_relaxed))
        look_at_pools(true, sy_fault_raise);
}

static void hold_pools(void) { sy_lock_hold(&pool_checked_lock); }

/* Each change of the list is one store: it is whole in the child of a fork, whoever was at it. */
static void drop_pools(void) { sy_lock_drop(&pool_checked_lock); }

const sy_part sy_pools_part = {.hold = hold_pools, .drop = drop_pools};

/* ---- creation ---- */

static bool reserve_all(checked_pool *pool, size_t align) {
    return pool_checked_reserve(&pool->memory, pool->lead + pool->most * pool->pool.stride, align) &&
           pool_checked_reserve(&pool->records, pool->most * sizeof(sy_record), 1) &&
           pool_checked_reserve(&pool->numbers, pool->most * sizeof(size_t), 1);
}

static void release_all(checked_pool *pool) {
    pool_checked_release(&pool->memory);
    pool_checked_release(&pool->records);
    pool_checked_release(&pool->numbers);
    pool->memory = pool->records = pool->numbers = (pool_checked_sy_range){0};
}

/* As many slots as there is address space for, should that be limited. */
static bool reserve_slots(checked_pool *pool, size_t capacity, size_t align) {
    if (capacity) {
        pool->most = capacity;
        return capacity <= PTRDIFF_MAX / 2 / pool->pool.stride && reserve_all(pool, align);
    }
    for (pool->most = pool_checked_SLOTS_BYTES / pool->pool.stride + 1; pool->most; pool->most /= 2) {
        if (reserve_all(pool, align)) return true;
        release_all(pool);
    }
    return false;
}

static size_t pool_bytes(void) { return sy_round_up(sizeof(checked_pool), sy_os_page_size()); }

static void sy_checked_pool_give_up(checked_pool *pool) {
    release_all(pool);
    sy_watch_close(&pool->watch);
    sy_pages_give(pool, pool_bytes());
}

sy_pool *sy_checked_pool_create(const sy_pool_config *config, size_t align, unsigned checks) {
    size_t zone = sy_watch_zone(checks);
    checked_pool *pool = sy_pages_take(pool_bytes(), sy_os_page_size(), "slabyard:checked pool");
    if (!pool) return NULL;
    const char *name = config->name ? config->name : "pool";
    for (size_t i = 0; i < SY_POOL_NAME_MAX && name[i]; i++) pool->name[i] = name[i];
    /* A free that is compiled in writes a pointer into the object. */
    pool->size = config->size < sizeof(void *) ? sizeof(void *) : config->size;
    pool->lead = sy_round_up(zone, align);
    pool->pool.stride = sy_round_up(pool->size + 2 * zone, align);
    pool->pool.capacity = config->capacity;
    static sy_exit_check check = {.verify = verify_pools_at_exit};
    if ((!(checks & SY_POISON) || sy_watch_at_exit(&check) == 0) &&
        sy_watch_open(&pool->watch, pool->name, pool->size, checks) == 0 &&
        reserve_slots(pool, config->capacity, align) && use_slots(pool, config->capacity)) {
        list_pool(pool);
        return &pool->pool;
    }
    sy_checked_pool_give_up(pool);
    errno = ENOMEM;
    return NULL;
}

/* ---- doors ---- */

void *sy_checked_pool_alloc(sy_pool *pool_) {
    checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    if (!take_slot(pool, &slot)) {
        errno = ENOMEM;
        return NULL;
    }
    void *object = object_at(pool, slot);
    sy_watch_taken(&pool->watch, record_at(pool, slot), object);
    sy_watch_given(&pool->watch, record_at(pool, slot), object, pool->size, false);
    pool->live++;
    return object;
}

/* The slot that begins there, or the fault that its free is. */
static bool find_slot(const checked_pool *pool, const void *object, size_t *slot,
                      sy_fault_kind *kind) {
    size_t offset = (uintptr_t)object - (uintptr_t)object_at(pool, 0);
    size_t stride = pool->pool.stride;
    *kind = offset / stride >= pool->slots ? SY_FAULT_FOREIGN_POINTER : SY_FAULT_MISALIGNED_POINTER;
    *slot = offset / stride;
    return offset / stride < pool->slots && offset % stride == 0;
}

void sy_checked_pool_free(sy_pool *pool_, void *object) {
    checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    sy_fault_kind kind;
    uintptr_t out;
    if (!object) return;
    if (!find_slot(pool, object, &slot, &kind)) {
        sy_watch_raise(&pool->watch, NULL, kind, object, NULL);
        return;
    }
    sy_record *record = record_at(pool, slot);
    if (!sy_watch_claim(&pool->watch, record, object, SIZE_MAX)) return;
    sy_watch_fill(&pool->watch, record, object);
    pool->live--;
    if (sy_watch_wait(&pool->watch, slot, &out)) pool_checked_put_slot(pool, out);
}

void sy_checked_pool_freed_twice(const sy_pool *pool_, const void *object) {
    const checked_pool *pool = checked_whole_of(pool_);
    size_t slot;
    sy_fault_kind kind;
    const sy_record *record = find_slot(pool, object, &slot, &kind) ? record_at(pool, slot) : NULL;
    sy_watch_raise(&pool->watch, record, SY_FAULT_DOUBLE_FREE, object, NULL);
}

/* What was freed inline is on the list. */
static size_t freed_inline(const checked_pool *pool) {
    size_t count = 0;
    for (const void *slot = pool->pool.free; slot && count < pool->live; count++)
        slot = *(const sy_pool_link *)slot;
    return count;
}

size_t sy_checked_pool_in_use(const sy_pool *pool) {
    return checked_whole_of(pool)->live - freed_inline(checked_whole_of(pool));
}

size_t sy_checked_pool_slot_size(const sy_pool *pool) { return checked_whole_of(pool)->size; }

size_t sy_checked_pool_capacity(const sy_pool *pool) {
    return pool->capacity ? pool->capacity : checked_whole_of(pool)->slots;
}

size_t sy_checked_pool_verify(const sy_pool *pool_) {
    const checked_pool *pool = checked_whole_of(pool_);
    size_t wrong = 0;
    sy_fault fault;
    for (size_t slot = 0; slot < pool->slots; slot++) {
        if (!sy_watch_look(&pool->watch, record_at(pool, slot), object_at(pool, slot), &fault))
            continue;
        sy_fault_tell(&fault);
        wrong++;
    }
    return wrong;
}

/* All objects go: what they have suffered is seen now, or never. */
static void forget_all(checked_pool *pool) {
    sy_fault fault;
    for (size_t slot = 0; slot < pool->slots; slot++) {
        sy_record *record = record_at(pool, slot);
        if (sy_watch_look(&pool->watch, record, object_at(pool, slot), &fault))
            sy_fault_raise(&fault);
        *record = (sy_record){0};
    }
}

void sy_checked_pool_reset(sy_pool *pool_) {
    checked_pool *pool = checked_whole_of(pool_);
    uintptr_t waited;
    pass_pool_over(pool, true);
    forget_all(pool);
    while (sy_watch_next(&pool->watch, &waited)) {}
    pool->pool.free = NULL;
    pool->slots = pool->live = pool->free_count = 0;
    pass_pool_over(pool, false);
}

void sy_checked_pool_destroy(sy_pool *pool) {
    unlist_pool(checked_whole_of(pool));
    forget_all(checked_whole_of(pool));
    sy_checked_pool_give_up(checked_whole_of(pool));
}

/* ==== src/pool/pool.c ==== */

/*
 * pool.c: where a pool's slots come from. What happens to them while there are some is inline in
 * pool.h.
 *
 * Above: programs, and the layers that need records of one size under a lock of their own.
 * Below: os.h; checked.h, for pools that look for mistakes. A pool takes no lock and knows of no
 * other pool.
 *
 * A pool is a chain of extents, each one reservation of address space, carved from its front and
 * committed ahead of the carving. The last bytes of an extent are the record of the next one; by
 * the time it is written the slots beside it have been given, so growing touches no page of the new
 * extent. The last bytes of the first extent are the pool itself, which ends with that record:
 *
 *      base                       bump         limit     committed                base + bytes
 *      |  given, or on free list  |  to carve  |  < a slot  |  reserved  | next    |
 *      +--------------------------+------------+------------+------------+---------+
 *      |<----------------- stride * n ---------------------------------->|
 *
 * A base is aligned for the objects and at least to a page, and a stride is a multiple of the
 * alignment. So every slot is aligned, slots whose size is a power of two pack without loss, and a
 * slot whose size is a multiple of a cache line has its lines to itself.
 *
 * What always holds (sy_pool_audit):
 *   - pool->extent is in the chain; those before it are committed whole and carved whole, those
 *     after it were left by a reset.
 *   - base <= bump <= limit <= committed, and bump and limit are whole strides from base.
 *   - The free list has each of its slots once, and all of them were carved.
 */

/*
 * audit.h: what always holds in a pool, as a function. For tests and for who looks for a misuse.
 */
#ifndef SLABYARD_POOL_AUDIT_H
#define SLABYARD_POOL_AUDIT_H

/* NULL, or a sentence that names what does not hold. Costs a few loads for each free slot; ends and
 * reads only the pool's own memory, whatever was done to it through its objects. */
const char *sy_pool_audit(const sy_pool *pool);

#endif

/* A reservation of `bytes`, usable up to `committed`. No reservation: all zero. */
typedef struct sy_pool_extent {
    unsigned char *base;
    size_t bytes;
    unsigned char *committed;
} sy_pool_extent;

enum { LINE_BYTES = 64 };

/* The last bytes of the first extent. */
typedef struct whole_pool {
    _Alignas(LINE_BYTES) sy_pool pool; /* first: what callers hold is its address */
    uintptr_t word;                    /* the caller's (sy_pool_word) */
    unsigned align_log2;               /* of every extent */
    unsigned flags;
    size_t size; /* of an object, as it was asked for */
    char name[SY_POOL_NAME_MAX + 1];
    unsigned char unused[24]; /* of the last line */
    sy_pool_extent first;
    sy_pool_extent next; /* last, as in every extent */
} whole_pool;

enum {
    DEFAULT_ALIGN = 16,
    DEFAULT_CHUNK_BYTES = 64 << 10,
    HUGE_BYTES = 2 << 20,
    pool_pool_EXTENT_BYTES_MAX = 1 << 30,
    /* An extent is committed in so many steps at most: it costs no memory, and a call each. */
    COMMIT_STEPS = 8,
};

_Static_assert(sizeof(sy_pool) == 8 * sizeof(void *),
               "the inline words fill the line's second half");
_Static_assert(offsetof(whole_pool, next) + sizeof(sy_pool_extent) == sizeof(whole_pool),
               "the record of the next extent is the last bytes of the first, as of any other");
_Static_assert(offsetof(whole_pool, word) == sizeof(sy_pool), "where sy_pool_word says");

static whole_pool *whole_of(const sy_pool *pool) { return (whole_pool *)(uintptr_t)pool; }

/* `align` is a power of two; SIZE_MAX, which no request can meet, where the result would wrap. */
static size_t round_up(size_t bytes, size_t align) {
    return bytes > SIZE_MAX - (align - 1) ? SIZE_MAX : (bytes + align - 1) & ~(align - 1);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- extents ---- */

/* Where the extent says what comes after it: only once it is committed whole. */
static sy_pool_extent *pool_pool_next_of(const sy_pool_extent *extent) {
    return (sy_pool_extent *)(void *)(extent->base + extent->bytes - sizeof(sy_pool_extent));
}

static bool committed_whole(const sy_pool_extent *extent) {
    return extent->committed == extent->base + extent->bytes;
}

/* Slots that can be carved from the extent as it is committed now. */
static size_t pool_pool_slots_in(const whole_pool *whole, const sy_pool_extent *extent) {
    bool first = extent == &whole->first;
    size_t trailer = first ? sizeof(whole_pool) : sizeof(sy_pool_extent);
    size_t committed = (size_t)(extent->committed - extent->base);
    size_t usable = extent->bytes - trailer;
    size_t slots = (committed < usable ? committed : usable) / whole->pool.stride;
    bool bounded = whole->pool.capacity != 0;
    return bounded && slots > whole->pool.capacity ? whole->pool.capacity : slots;
}

/* Carve from the start of the extent. */
static void enter_extent(whole_pool *whole, sy_pool_extent *extent) {
    whole->pool.extent = extent;
    whole->pool.bump = extent->base;
    whole->pool.limit = extent->base + pool_pool_slots_in(whole, extent) * whole->pool.stride;
}

static bool pool_pool_reserve(sy_pool_extent *extent, size_t bytes, size_t align, unsigned flags) {
    if (bytes > PTRDIFF_MAX) {
        errno = ENOMEM;
        return false;
    }
    size_t start = larger(align, sy_os_page_size());
    if (bytes >= HUGE_BYTES) start = larger(start, HUGE_BYTES);
    unsigned char *base = sy_os_reserve(bytes, start, "slabyard:pool");
    if (base == NULL) return false;
    *extent = (sy_pool_extent){base, bytes, base};
    if ((flags & SY_POOL_HUGE) != 0) {
        int saved = errno;
        (void)sy_os_huge(base, bytes, true);
        errno = saved;
    }
    return true;
}

/* Address space goes; where the system cannot (a hole needs one mapping too many), memory does. */
static void pool_pool_release(const sy_pool_extent *extent) {
    int saved = errno;
    size_t committed = (size_t)(extent->committed - extent->base);
    if (sy_os_release(extent->base, extent->bytes) != 0 && committed != 0)
        (void)sy_os_discard(extent->base, committed);
    errno = saved;
}

/* Commit `bytes` more, and back them if the pool was made so. What fails is given up again, but for
 * the right to use the pages, which costs nothing. */
static bool commit_extent(sy_pool_extent *extent, size_t bytes, unsigned flags) {
    if (sy_os_commit(extent->committed, bytes) != 0) return false;
    if ((flags & SY_POOL_PREFAULT) != 0 && sy_os_populate(extent->committed, bytes) != 0) {
        int saved = errno;
        (void)sy_os_discard(extent->committed, bytes);
        errno = saved;
        return false;
    }
    extent->committed += bytes;
    return true;
}

/* base <= bump <= limit <= committed, and bump and limit are whole strides from base. */
static bool pool_is_bounded(const sy_pool *pool) {
    const sy_pool_extent *extent = pool->extent;
    if (pool->limit > extent->committed || pool->bump > pool->limit) return false;
    size_t carved = (size_t)(pool->bump - extent->base),
           room = (size_t)(pool->limit - extent->base);
    return pool->bump >= extent->base && carved % pool->stride == 0 && room % pool->stride == 0;
}

/* ---- growing ---- */

/* The offset in the extent up to which to commit next, `step` being the least that is of use. Large
 * steps end where a huge page does. */
static size_t commit_end(const sy_pool_extent *extent, size_t step) {
    size_t granule = step >= HUGE_BYTES ? HUGE_BYTES : sy_os_page_size();
    size_t end = round_up((size_t)(extent->committed - extent->base) + step, granule);
    return end < extent->bytes ? end : extent->bytes;
}

/* Commit the next step of the extent, a large one if the system grants it. */
static bool commit_step(const whole_pool *whole, sy_pool_extent *extent) {
    size_t done = (size_t)(extent->committed - extent->base);
    size_t least = larger(whole->pool.chunk_bytes, whole->pool.stride);
    size_t most = larger(least, extent->bytes / COMMIT_STEPS);
    if ((whole->flags & SY_POOL_PREFAULT) != 0) most = least;
    return commit_extent(extent, commit_end(extent, most) - done, whole->flags) ||
           (most > least && commit_extent(extent, commit_end(extent, least) - done, whole->flags));
}

/* Reserve the extent after the last: as much again as there is, or half of that, or a quarter, down
 * to one chunk or one slot. Then its first step; without it, nothing. */
static bool add_extent(const whole_pool *whole, size_t reserved, sy_pool_extent *extent) {
    size_t slot = whole->pool.stride + sizeof(sy_pool_extent);
    size_t least = round_up(larger(whole->pool.chunk_bytes, slot), sy_os_page_size());
    size_t bytes = reserved < pool_pool_EXTENT_BYTES_MAX ? reserved : pool_pool_EXTENT_BYTES_MAX;
    bytes = round_up(larger(bytes, least), sy_os_page_size());
    while (!pool_pool_reserve(extent, bytes, (size_t)1 << whole->align_log2, whole->flags)) {
        if (bytes == least) return false;
        bytes = larger(bytes / 2 & ~(sy_os_page_size() - 1), least);
    }
    if (commit_step(whole, extent)) return true;
    pool_pool_release(extent);
    return false;
}

static size_t pool_pool_bytes_reserved(const whole_pool *whole) {
    size_t bytes = 0;
    const sy_pool_extent *extent = &whole->first;
    for (;; extent = pool_pool_next_of(extent)) {
        bytes += extent->bytes;
        if (extent == whole->pool.extent) return bytes;
    }
}

/* From a carved extent to the next one, which a reset may have left, or which is made now. */
static bool enter_next(whole_pool *whole) {
    sy_pool_extent *next = pool_pool_next_of(whole->pool.extent);
    if (next->base == NULL) {
        sy_pool_extent made;
        if (!add_extent(whole, pool_pool_bytes_reserved(whole), &made)) return false;
        *next = made;
    }
    whole->pool.carved_before += pool_pool_slots_in(whole, whole->pool.extent);
    enter_extent(whole, next);
    return true;
}

/* Make bump < limit. Every step of the loop commits more or moves on, and each extent holds a slot
 * once it is committed whole. */
static bool grow_pool(whole_pool *whole) {
    sy_pool *pool = &whole->pool;
    while (pool->bump == pool->limit) {
        if (committed_whole(pool->extent)) {
            if (!enter_next(whole)) return false;
        } else {
            if (!commit_step(whole, pool->extent)) return false;
            pool->limit = pool->extent->base + pool_pool_slots_in(whole, pool->extent) * pool->stride;
        }
    }
    SY_INVARIANT(pool_is_bounded(pool));
    return true;
}

void *SY_ABI_NAME(sy_pool_grow)(sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_alloc(pool);
    SY_INVARIANT(pool_is_bounded(pool));
    bool bounded = pool->capacity != 0;
    if (bounded || !grow_pool(whole_of(pool))) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *slot = pool->bump;
    pool->bump = slot + pool->stride;
    return slot;
}

void SY_ABI_NAME(sy_pool_freed_twice)(sy_pool *pool, void *object) {
    int error = errno;
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_freed_twice(pool, object);
    } else {
        const sy_fault fault = {.kind = SY_FAULT_DOUBLE_FREE,
                                .cache = whole_of(pool)->name,
                                .object_size = whole_of(pool)->size,
                                .address = object};
        sy_fault_raise(&fault);
    }
    errno = error;
}

/* ---- doors ---- */

enum { POOL_CHECKS = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT | SY_ZERO };

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

static bool valid(const sy_pool_config *config) {
    if (config == NULL || config->size == 0 || config->size > PTRDIFF_MAX) return false;
    if (config->align != 0 && (!is_power_of_two(config->align) || config->align > PTRDIFF_MAX))
        return false;
    const unsigned known = SY_POOL_PREFAULT | SY_POOL_HUGE | POOL_CHECKS;
    if ((config->flags & ~known) != 0) return false;
    for (size_t i = 0; i < sizeof config->reserved / sizeof config->reserved[0]; i++) {
        if (config->reserved[i] != 0) return false;
    }
    return true;
}

static size_t pool_pool_align_of(const sy_pool_config *config) {
    size_t align = config->align;
    if (align == 0) align = config->size < DEFAULT_ALIGN ? sizeof(void *) : DEFAULT_ALIGN;
    return larger(align, sizeof(void *));
}

static size_t pool_pool_chunk_of(const sy_pool_config *config) {
    size_t bytes = config->chunk_bytes == 0 ? DEFAULT_CHUNK_BYTES : config->chunk_bytes;
    if ((config->flags & SY_POOL_HUGE) != 0) bytes = round_up(bytes, HUGE_BYTES);
    return round_up(bytes, sy_os_page_size());
}

/* Bytes of the first extent: all slots of a bounded pool, or a chunk with one slot at least, and
 * the pool behind them. SIZE_MAX where that is more than there is. */
static size_t first_extent_bytes(const sy_pool_config *config, size_t stride) {
    size_t slots = config->capacity == 0 ? 1 : config->capacity;
    if (slots > (PTRDIFF_MAX - sizeof(whole_pool)) / stride) return SIZE_MAX;
    size_t bytes = slots * stride + sizeof(whole_pool);
    if (config->capacity == 0) bytes = larger(bytes, pool_pool_chunk_of(config));
    return round_up(bytes, sy_os_page_size());
}

sy_pool *sy_pool_create(const sy_pool_config *config) {
    if (!valid(config)) {
        errno = EINVAL;
        return NULL;
    }
    size_t align = pool_pool_align_of(config);
    sy_options_load();
    unsigned checks = sy_watch_untold(config->flags, config->name ? config->name : "pool");
    if ((checks & POOL_CHECKS) != 0)
        return sy_checked_pool_create(config, align, checks & POOL_CHECKS);
    size_t stride = round_up(larger(config->size, sizeof(void *)), align);
    sy_pool_extent first;
    if (!pool_pool_reserve(&first, first_extent_bytes(config, stride), align, config->flags)) return NULL;
    if (!commit_extent(&first, first.bytes, config->flags)) {
        pool_pool_release(&first);
        return NULL;
    }
    void *end = first.base + first.bytes;
    whole_pool *whole = (whole_pool *)end - 1;
    *whole = (whole_pool){.flags = config->flags, .first = first};
    whole->align_log2 = sy_lowest_bit(align);
    whole->size = config->size;
    const char *name = config->name ? config->name : "pool";
    for (size_t i = 0; i < SY_POOL_NAME_MAX && name[i]; i++) whole->name[i] = name[i];
    whole->pool.capacity = config->capacity;
    whole->pool.chunk_bytes = pool_pool_chunk_of(config);
    whole->pool.stride = stride;
    enter_extent(whole, &whole->first);
    return &whole->pool;
}

void sy_pool_destroy(sy_pool *pool) {
    if (pool == NULL) return;
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_destroy(pool);
        return;
    }
    sy_pool_extent extent = whole_of(pool)->first;
    while (extent.base != NULL) {
        sy_pool_extent next = {0};
        if (committed_whole(&extent)) next = *pool_pool_next_of(&extent);
        pool_pool_release(&extent);
        extent = next;
    }
}

void sy_pool_reset(sy_pool *pool) {
    if (sy_pool_is_checked(pool)) {
        sy_checked_pool_reset(pool);
        return;
    }
    whole_pool *whole = whole_of(pool);
    pool->free = NULL;
    pool->carved_before = 0;
    enter_extent(whole, &whole->first);
}

size_t sy_pool_trim(sy_pool *pool) {
    if (sy_pool_is_checked(pool) || sy_pool_in_use(pool) != 0) return 0;
    whole_pool *whole = whole_of(pool);
    if ((whole->flags & SY_POOL_PREFAULT) != 0) return 0;
    sy_pool_reset(pool);
    size_t bytes = 0;
    sy_pool_extent extent = whole->next;
    whole->next = (sy_pool_extent){0};
    while (extent.base != NULL) {
        sy_pool_extent next = {0};
        if (committed_whole(&extent)) next = *pool_pool_next_of(&extent);
        bytes += (size_t)(extent.committed - extent.base);
        pool_pool_release(&extent);
        extent = next;
    }
    size_t before_pool = (size_t)((unsigned char *)whole - whole->first.base);
    before_pool &= ~(sy_os_page_size() - 1);
    int saved = errno;
    if (before_pool != 0 && sy_os_discard(whole->first.base, before_pool) == 0)
        bytes += before_pool;
    errno = saved;
    return bytes;
}

static size_t slots_carved(const sy_pool *pool) {
    return pool->carved_before + (size_t)(pool->bump - pool->extent->base) / pool->stride;
}

size_t sy_pool_in_use(const sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_in_use(pool);
    size_t in_use = slots_carved(pool);
    for (const void *slot = pool->free; slot != NULL && in_use > 0; in_use--)
        slot = *(const sy_pool_link *)slot;
    return in_use;
}

size_t sy_pool_slot_size(const sy_pool *pool) {
    return sy_pool_is_checked(pool) ? sy_checked_pool_slot_size(pool) : pool->stride;
}

size_t sy_pool_capacity(const sy_pool *pool) {
    if (sy_pool_is_checked(pool)) return sy_checked_pool_capacity(pool);
    const whole_pool *whole = whole_of(pool);
    size_t slots = 0;
    const sy_pool_extent *extent = &whole->first;
    for (; extent->base != NULL; extent = pool_pool_next_of(extent)) {
        slots += pool_pool_slots_in(whole, extent);
        if (!committed_whole(extent)) break;
    }
    return slots;
}

/* ---- invariants ---- */

/* Is the address that of a slot which was carved? */
static bool was_carved(const whole_pool *whole, const void *address) {
    const unsigned char *slot = address;
    const sy_pool_extent *extent = &whole->first;
    for (;; extent = pool_pool_next_of(extent)) {
        const unsigned char *end = extent->base + pool_pool_slots_in(whole, extent) * whole->pool.stride;
        if (extent == whole->pool.extent) end = whole->pool.bump;
        if (slot >= extent->base && slot < end)
            return (size_t)(slot - extent->base) % whole->pool.stride == 0;
        if (extent == whole->pool.extent) return false;
    }
}

static const char *audit_extents(const whole_pool *whole) {
    size_t before = 0;
    const sy_pool_extent *extent = &whole->first;
    while (extent != whole->pool.extent) {
        if (extent->base == NULL) return "the extent being carved is not in the chain";
        if (!committed_whole(extent)) return "an extent was left before it was committed whole";
        before += pool_pool_slots_in(whole, extent);
        extent = pool_pool_next_of(extent);
    }
    if (before != whole->pool.carved_before) return "carved_before is not what lies before";
    return NULL;
}

static const char *audit_carving(const sy_pool *pool) {
    const sy_pool_extent *extent = pool->extent;
    size_t slots = pool_pool_slots_in(whole_of(pool), extent);
    if (pool->limit != extent->base + slots * pool->stride)
        return "limit is not the last slot's end";
    if (pool->bump < extent->base || pool->bump > pool->limit) return "bump is out of its extent";
    if ((size_t)(pool->bump - extent->base) % pool->stride != 0) return "bump is not at a slot";
    return NULL;
}

const char *sy_pool_audit(const sy_pool *pool) {
    if (sy_pool_is_checked(pool))
        return sy_checked_pool_verify(pool) ? "an object is damaged" : NULL;
    const char *broken = audit_extents(whole_of(pool));
    if (broken == NULL) broken = audit_carving(pool);
    if (broken != NULL) return broken;
    size_t left = slots_carved(pool);
    for (const void *slot = pool->free; slot != NULL; left--) {
        if (!was_carved(whole_of(pool), slot)) return "the free list leaves the slots given";
        if (left == 0) return "the free list is a circle: something was freed twice";
        slot = *(const sy_pool_link *)slot;
    }
    return NULL;
}

/* ==== src/vmem/fit.c ==== */

/*
 * fit.c: which free segment serves a request, and where in it.
 */

/* A source is asked before the lists are looked through, whose members may all be too small. */
enum { PATIENCE = 64 };

/* ---- requests ---- */

static int invalid(void) {
    errno = EINVAL;
    return -1;
}

static bool valid_constraints(const sy_request *request, size_t quantum) {
    size_t unit = quantum - 1;
    if (!sy_is_power_of_two(request->align) || request->align < quantum) return false;
    if (request->phase >= request->align || request->phase & unit) return false;
    if (request->size - 1 > request->max - request->min || request->max < request->min)
        return false;
    if (!request->nocross) return true;
    if (!sy_is_power_of_two(request->nocross) || request->nocross < quantum) return false;
    /* Of every value at the phase, the best placed of those between two multiples of nocross. */
    size_t offset = request->phase & (request->nocross - 1);
    return request->size <= request->nocross && offset <= request->nocross - request->size;
}

/* Room to align and, if what is aligned crosses, to go beyond the boundary; 0 where that overflows.
 */
static size_t ample(const sy_request *request, size_t quantum) {
    size_t slack = request->align - quantum, total;
    bool may_cross = request->nocross > request->align; /* else all values lie alike in it */
    if (may_cross) slack += request->size - quantum + request->phase;
    return __builtin_add_overflow(request->size, slack, &total) ? 0 : total;
}

int sy_request_make(const sy_vmem *arena, size_t size, const sy_vmem_constraints *constraints,
                    sy_vmem_fit fit, sy_request *request) {
    static const sy_vmem_constraints none = {0};
    if (!constraints) constraints = &none;
    if (fit > SY_VMEM_NEXT || !sy_vmem_round(arena, size, &size)) return invalid();
    *request = (sy_request){
        .size = size,
        .align = constraints->align ? constraints->align : arena->quantum,
        .phase = constraints->phase,
        .nocross = constraints->nocross,
        .min = constraints->min,
        .max = constraints->max - 1, /* 0: the end of the integers */
        .patience = fit == SY_VMEM_INSTANT && arena->import ? PATIENCE : SY_PATIENCE_WITHOUT_END,
        .fit = fit,
    };
    if (!valid_constraints(request, arena->quantum)) return invalid();
    request->ample = ample(request, arena->quantum);
    return 0;
}

/* The first value at the phase from `from` on; false past the end of the integers. */
static bool at_phase(const sy_request *request, uintptr_t from, uintptr_t *value) {
    *value = from + ((request->phase - from) & (request->align - 1));
    return *value >= from;
}

/*
 *      start                 boundary of nocross                last
 *      |        value [     size    :   ]   value [   size   ]   |
 *                     crosses                     the first at the phase beyond it
 */
bool sy_request_fits(const sy_request *request, uintptr_t start, uintptr_t last, uintptr_t *value) {
    size_t extent = request->size - 1;
    if (request->min > start) start = request->min;
    if (request->max < last) last = request->max;
    if (start > last || !at_phase(request, start, value)) return false;
    if (*value > last || last - *value < extent) return false;
    if (!request->nocross) return true;
    uintptr_t boundary = (*value + extent) & ~(request->nocross - 1);
    if (boundary <= *value) return true;
    if (!at_phase(request, boundary, value)) return false;
    return *value <= last && last - *value >= extent;
}

/* ---- finding ---- */

static bool tag_fits(sy_vmem *arena, const sy_request *request, const sy_boundary *tag,
                     uintptr_t *value) {
    arena->probes++;
    return sy_request_fits(request, tag->start, sy_tag_last(tag), value);
}

/* The first of a list that serves, as long as the probes are fewer than `most`. */
static sy_boundary *first_in(sy_vmem *arena, const sy_request *request, unsigned list,
                             uint64_t most, uintptr_t *value) {
    for (sy_boundary *tag = arena->list[list]; tag && arena->probes < most; tag = tag->kin)
        if (tag_fits(arena, request, tag, value)) return tag;
    return NULL;
}

/* The smallest of a list that serves. */
static sy_boundary *smallest_in(sy_vmem *arena, const sy_request *request, unsigned list,
                                uintptr_t *value) {
    sy_boundary *best = NULL;
    for (sy_boundary *tag = arena->list[list]; tag; tag = tag->kin) {
        uintptr_t at;
        if ((best && tag->size >= best->size) || !tag_fits(arena, request, tag, &at)) continue;
        best = tag;
        *value = at;
        if (tag->size == request->size) break;
    }
    return best;
}

/* Lists from that of the size on: what is in the first that has any that serves is no larger than
 * what is in the others. */
static sy_boundary *find_in_lists(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    unsigned list = sy_list_filled(arena, sy_list_of(request->size >> arena->quantum_shift));
    uint64_t from = arena->probes;
    while (list < SY_LISTS) {
        sy_boundary *tag = request->fit == SY_VMEM_BEST
                               ? smallest_in(arena, request, list, value)
                               : first_in(arena, request, list, from + request->patience, value);
        if (tag || arena->probes - from >= request->patience) return tag;
        list = sy_list_filled(arena, list + 1);
    }
    return NULL;
}

static sy_boundary *find_instant(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    bool bounded = request->min || request->max != UINTPTR_MAX;
    if (request->ample && !bounded) {
        unsigned sure = sy_list_above(request->ample >> arena->quantum_shift);
        unsigned list = sy_list_filled(arena, sure);
        if (list < SY_LISTS) return first_in(arena, request, list, UINT64_MAX, value);
    }
    return find_in_lists(arena, request, value);
}

static sy_boundary *find_from(sy_vmem *arena, const sy_request *request, sy_boundary *tag,
                              uintptr_t *value) {
    while (tag && (tag->kind != SY_TAG_FREE || !tag_fits(arena, request, tag, value))) {
        arena->probes += tag->kind != SY_TAG_FREE;
        tag = tag->next;
    }
    return tag;
}

/* The request for what lies after the rotor; false if next fit has no such part. */
static bool beyond_rotor(const sy_vmem *arena, const sy_request *request, sy_request *beyond) {
    if (request->fit != SY_VMEM_NEXT || !arena->rotor_set || arena->rotor == UINTPTR_MAX)
        return false;
    *beyond = *request;
    if (beyond->min <= arena->rotor) beyond->min = arena->rotor + 1;
    return true;
}

/* The lowest value that serves, of all free segments. */
static sy_boundary *lowest_of_all(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    sy_boundary *lowest = NULL;
    unsigned list = sy_list_filled(arena, sy_list_of(request->size >> arena->quantum_shift));
    for (; list < SY_LISTS; list = sy_list_filled(arena, list + 1))
        for (sy_boundary *tag = arena->list[list]; tag; tag = tag->kin) {
            uintptr_t at;
            if ((lowest && tag->start > lowest->start) || !tag_fits(arena, request, tag, &at))
                continue;
            lowest = tag;
            *value = at;
        }
    return lowest;
}

/*
 * In order of value from the rotor on, then all around. With f free segments among n allocated ones
 * the next is some n / f tags away, and looking at all free ones takes f steps: the lesser of the
 * two is never more than the root of n.
 */
static sy_boundary *find_next(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    sy_request beyond;
    sy_boundary *found = NULL, *from = arena->rotor_tag ? arena->rotor_tag : arena->first;
    bool goes_on = beyond_rotor(arena, request, &beyond);
    if (arena->free_segments < arena->allocated_segments / (arena->free_segments + 1)) {
        if (goes_on) found = lowest_of_all(arena, &beyond, value);
        return found ? found : lowest_of_all(arena, request, value);
    }
    if (goes_on) found = find_from(arena, &beyond, from, value);
    return found ? found : find_from(arena, request, arena->first, value);
}

bool sy_fit_in(sy_vmem *arena, const sy_request *request, const sy_boundary *tag,
               uintptr_t *value) {
    sy_request beyond;
    if (beyond_rotor(arena, request, &beyond) && tag_fits(arena, &beyond, tag, value)) return true;
    return tag_fits(arena, request, tag, value);
}

sy_boundary *sy_fit_find(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    if (request->fit == SY_VMEM_NEXT) return find_next(arena, request, value);
    if (request->fit == SY_VMEM_BEST) return find_in_lists(arena, request, value);
    return find_instant(arena, request, value);
}

/* ==== src/vmem/look.c ==== */

/*
 * look.c: what an arena says of itself: extents, sizes, statistics, a walk, and its invariants as a
 * function.
 */

static const unsigned EVERYTHING = SY_VMEM_ALLOCATED | SY_VMEM_FREE | SY_VMEM_SPANS;

/* Looking takes the lock, which is all that it changes. */
static sy_vmem *vmem_look_lock(const sy_vmem *arena_) {
    sy_vmem *arena = (sy_vmem *)(uintptr_t)arena_;
    sy_lock_acquire(&arena->lock);
    return arena;
}

int sy_vmem_contains(const sy_vmem *arena_, uintptr_t start, size_t size) {
    bool inside = size && size - 1 <= UINTPTR_MAX - start;
    if (!inside) return 0;
    uintptr_t last = start + (size - 1);
    sy_vmem *arena = vmem_look_lock(arena_);
    for (;;) {
        const sy_boundary *span = sy_span_at_or_before(arena, start);
        inside = span && sy_tag_last(span) >= start;
        if (!inside || sy_tag_last(span) >= last) break;
        start = sy_tag_last(span) + 1;
    }
    sy_lock_release(&arena->lock);
    return inside;
}

/* Both locks, so that what is on its way from magazines is counted once. */
static sy_vmem *lock_with_held(const sy_vmem *arena_, size_t *held) {
    *held = 0;
    if (!arena_->cached_sizes) return vmem_look_lock(arena_);
    sy_clients_lock();
    sy_vmem *arena = vmem_look_lock(arena_);
    *held = sy_quantum_held(arena);
    sy_clients_unlock();
    return arena;
}

size_t sy_vmem_size(const sy_vmem *arena_, unsigned what) {
    size_t held;
    sy_vmem *arena = lock_with_held(arena_, &held);
    size_t free = arena->free, allocated = arena->total - free;
    sy_lock_release(&arena->lock);
    size_t units = 0;
    if (what & SY_VMEM_FREE) units += free;
    if (what & SY_VMEM_ALLOCATED) units += allocated - (held < allocated ? held : allocated);
    if ((what & (SY_VMEM_FREE | SY_VMEM_ALLOCATED)) == (SY_VMEM_FREE | SY_VMEM_ALLOCATED))
        units = free + allocated;
    return units;
}

int sy_vmem_get_stats(const sy_vmem *arena_, sy_vmem_stats *stats) {
    if (!arena_ || !stats) {
        errno = EINVAL;
        return -1;
    }
    size_t held;
    sy_vmem *arena = lock_with_held(arena_, &held);
    size_t allocated = arena->total - arena->free;
    *stats = (sy_vmem_stats){
        .quantum = arena->quantum,
        .total = arena->total,
        .cached = held < allocated ? held : allocated,
        .free = arena->free,
        .imported = arena->imported,
        .spans = arena->spans,
        .imported_spans = arena->imported_spans,
        .segments_allocated = arena->allocated_segments,
        .segments_free = arena->free_segments,
        .buckets = arena->buckets,
        .allocs = arena->allocs,
        .frees = arena->frees,
        .failures = arena->failures,
        .imports = arena->imports,
        .releases = arena->releases,
        .probes = arena->probes,
        .steps = arena->steps,
        .bytes = arena->tag_bytes + sy_table_bytes(arena) + sizeof *arena,
    };
    stats->allocated = allocated - stats->cached;
    memcpy(stats->name, arena->name, sizeof stats->name);
    for (unsigned word = SY_LISTS / 64; word-- > 0;) {
        if (!arena->filled[word]) continue;
        const sy_boundary *tag = arena->list[word * 64 + sy_highest_bit(arena->filled[word])];
        stats->largest_free = tag->size;
        break;
    }
    sy_lock_release(&arena->lock);
    return 0;
}

/* ---- walk ---- */

typedef struct vmem_look_sy_view {
    uintptr_t start;
    size_t size;
    unsigned what;
} vmem_look_sy_view;

static unsigned what_is(const sy_boundary *tag) {
    switch ((sy_tag_kind)tag->kind) {
    case SY_TAG_SPAN: return SY_VMEM_SPANS;
    case SY_TAG_FREE: return SY_VMEM_FREE;
    case SY_TAG_ALLOCATED: break;
    }
    return SY_VMEM_ALLOCATED;
}

static size_t count_of(const sy_vmem *arena, unsigned what) {
    return (what & SY_VMEM_SPANS ? arena->spans : 0) +
           (what & SY_VMEM_FREE ? arena->free_segments : 0) +
           (what & SY_VMEM_ALLOCATED ? arena->allocated_segments : 0);
}

/* All of `what` if there is room for it; how many there are. */
static size_t copy_views(const sy_vmem *arena_, unsigned what, vmem_look_sy_view *views, size_t room) {
    sy_vmem *arena = vmem_look_lock(arena_);
    size_t count = count_of(arena, what), done = 0;
    if (count <= room)
        for (const sy_boundary *tag = arena->first; done < count; tag = tag->next)
            if (what_is(tag) & what) views[done++] = (vmem_look_sy_view){tag->start, tag->size, what_is(tag)};
    sy_lock_release(&arena->lock);
    return count;
}

static vmem_look_sy_view *take_views(size_t views, size_t *bytes) {
    *bytes = sy_round_up((views + 1) * sizeof(vmem_look_sy_view), sy_os_page_size());
    return sy_pages_take(*bytes, sy_os_page_size(), "slabyard arena walk");
}

int sy_vmem_walk(const sy_vmem *arena, unsigned what, sy_vmem_visit visit, void *arg) {
    if (!what || what & ~EVERYTHING) {
        errno = EINVAL;
        return -1;
    }
    sy_vmem_drain((sy_vmem *)(uintptr_t)arena);
    for (size_t room = copy_views(arena, what, NULL, 0);;) {
        size_t bytes;
        vmem_look_sy_view *views = take_views(room, &bytes);
        if (!views) {
            errno = ENOMEM;
            return -1;
        }
        size_t count = copy_views(arena, what, views, room);
        int result = 0;
        SY_CALLBACK(call, .function = "visitor of sy_vmem_walk");
        if (count <= room)
            for (size_t i = 0; i < count && result == 0; i++)
                result = visit(arg, views[i].what, views[i].start, views[i].size);
        call.returned = true;
        sy_pages_give(views, bytes);
        if (count <= room) return result;
        room = count + count / 8;
    }
}

/* ---- invariants ---- */

typedef struct sy_tally {
    size_t wrong, spans, imported_spans, free_segments, allocated_segments, total, imported, free;
} sy_tally;

static void tally_segment(sy_vmem *arena, const sy_boundary *tag, sy_tally *tally) {
    const sy_boundary *previous = tag->previous;
    bool first = previous && previous->kind == SY_TAG_SPAN;
    tally->wrong += !previous;
    if (!previous) return;
    tally->wrong += tag->start != (first ? previous->start : sy_tag_last(previous) + 1);
    if (tag->kind == SY_TAG_FREE) {
        tally->free_segments++;
        tally->free += tag->size;
        tally->wrong += previous->kind == SY_TAG_FREE;
    } else {
        tally->allocated_segments++;
        tally->wrong += sy_table_find(arena, tag->start) != tag;
    }
    bool ends = !tag->next || tag->next->kind == SY_TAG_SPAN;
    if (!ends) return;
    const sy_boundary *span = sy_span_at_or_before(arena, tag->start);
    tally->wrong += !span || sy_tag_last(span) != sy_tag_last(tag);
    tally->wrong += span && span->imported && first && tag->kind == SY_TAG_FREE;
}

static void tally_span(const sy_vmem *arena, const sy_boundary *span, sy_tally *tally) {
    tally->spans++;
    tally->total += span->size;
    tally->imported_spans += span->imported;
    tally->imported += span->imported ? span->size : 0;
    tally->wrong += sy_span_at_or_before(arena, span->start) != span;
    tally->wrong += !span->next || span->next->kind == SY_TAG_SPAN;
    tally->wrong += span->previous && sy_tag_last(span->previous) >= span->start;
}

static size_t verify_lists(const sy_vmem *arena) {
    size_t wrong = 0, members = 0;
    for (unsigned list = 0; list < SY_LISTS; list++) {
        const sy_boundary *previous = NULL;
        wrong += (arena->list[list] != NULL) != (arena->filled[list / 64] >> list % 64 & 1);
        for (const sy_boundary *tag = arena->list[list]; tag;
             previous = tag, tag = tag->kin, members++) {
            wrong += tag->kind != SY_TAG_FREE || tag->kin_previous != previous;
            wrong += sy_list_of(tag->size >> arena->quantum_shift) != list;
        }
    }
    return wrong + (members != arena->free_segments);
}

static size_t verify_blocks(const sy_vmem *arena) {
    size_t wrong = 0, spare = 0;
    const sy_tag_block *previous = NULL;
    for (const sy_tag_block *block = arena->blocks; block; previous = block, block = block->next) {
        wrong += block->previous != previous || block->used >= block->tags;
        wrong += sy_pool_in_use(block->pool) != block->used + 1;
        spare += block->tags - block->used;
    }
    return wrong + (spare != arena->spare);
}

size_t sy_vmem_verify(const sy_vmem *arena_) {
    sy_vmem *arena = vmem_look_lock(arena_);
    sy_tally tally = {0};
    uint64_t steps = arena->steps;
    const sy_boundary *previous = NULL;
    for (const sy_boundary *tag = arena->first; tag; previous = tag, tag = tag->next) {
        tally.wrong += tag->previous != previous;
        tally.wrong += ((tag->start | tag->size) & (arena->quantum - 1)) != 0 || !tag->size;
        if (tag->kind == SY_TAG_SPAN)
            tally_span(arena, tag, &tally);
        else
            tally_segment(arena, tag, &tally);
    }
    arena->steps = steps; /* looking is not freeing */
    size_t wrong = tally.wrong + verify_lists(arena) + verify_blocks(arena);
    wrong += arena->last != previous;
    wrong += tally.spans != arena->spans || tally.imported_spans != arena->imported_spans;
    wrong += tally.free_segments != arena->free_segments;
    wrong += tally.allocated_segments != arena->allocated_segments;
    wrong += tally.total != arena->total || tally.imported != arena->imported;
    wrong += tally.free != arena->free;
    sy_lock_release(&arena->lock);
    return wrong;
}

/* ==== src/vmem/quantum.c ==== */

/*
 * quantum.c: caches of small segments: for each size of so many quanta a client of the magazine
 * layer, whose words are the segments' values. (Bonwick and Adams, section 4.4; without slabs
 * between: a magazine is filled from one place in the arena, and emptied segment by segment.)
 *
 * What waits in magazines is allocated as the arena sees it.
 */

enum { MAGAZINE_ITEMS = 127, vmem_quantum_FAULTS_MAX = 4 };

/* ---- the client's callbacks ---- */

/* What is free in the arena, up to `count` segments under one lock; those given out first, from the
 * end on, have the lowest values. How many. */
static size_t take_segments(sy_vmem *arena, const sy_request *request, uintptr_t *end,
                            size_t count) {
    size_t taken = 0;
    sy_lock_acquire(&arena->lock);
    for (; taken < count; taken++) {
        uintptr_t value;
        sy_table_ready(arena);
        if (!sy_tags_ready(arena, SY_TAGS_PER_SPLIT)) break;
        sy_boundary *free = sy_fit_find(arena, request, &value);
        if (!free) break;
        sy_segment_carve(arena, free, value, request->size);
        *--end = value;
    }
    sy_lock_release(&arena->lock);
    return taken;
}

static size_t refill_segments(void *owner, uintptr_t *items, size_t count) {
    sy_quantum_cache *cache = owner;
    sy_vmem *arena = cache->arena;
    sy_request request;
    sy_request_make(arena, cache->size, NULL, SY_VMEM_INSTANT, &request);
    size_t taken = take_segments(arena, &request, items + count, count);
    /* Not from the quantum caches: what draining calls could use the magazine that is being filled.
     */
    if (!taken) return sy_vmem_serve(arena, &request, items, false) == 0;
    if (taken < count)
        for (size_t i = 0; i < taken; i++) items[i] = items[count - taken + i];
    return taken;
}

static void flush_segments(void *owner, uintptr_t *items, size_t count, _Atomic uint32_t *held) {
    sy_quantum_cache *cache = owner;
    sy_vmem *arena = cache->arena;
    struct {
        uintptr_t value;
        size_t found_size;
    } fault[vmem_quantum_FAULTS_MAX];
    size_t faults = 0;
    sy_leavings leavings = {0};
    sy_lock_acquire(&arena->lock);
    for (size_t i = 0; i < count; i++) {
        sy_boundary *tag = sy_table_find(arena, items[i]);
        if (SY_LIKELY(tag && tag->size == cache->size)) {
            sy_segment_free(arena, tag, &leavings);
        } else if (faults < vmem_quantum_FAULTS_MAX) {
            fault[faults].value = items[i];
            fault[faults++].found_size = tag ? tag->size : 0;
        }
        if (held) atomic_fetch_sub_explicit(held, 1, memory_order_relaxed);
        if (SY_LIKELY(!leavings.any)) continue;
        sy_lock_release(&arena->lock);
        sy_leavings_settle(arena, &leavings);
        sy_lock_acquire(&arena->lock);
    }
    sy_lock_release(&arena->lock);
    for (size_t i = 0; i < faults; i++)
        sy_vmem_fault(arena, fault[i].value, cache->size, fault[i].found_size);
}

/* ---- life ---- */

static int vmem_quantum_open_cache(sy_vmem *arena, size_t index) {
    sy_quantum_cache *cache = &arena->caches[index];
    cache->arena = arena;
    cache->size = (index + 1) << arena->quantum_shift;
    const sy_client_config config = {
        .refill = refill_segments,
        .flush = flush_segments,
        .owner = cache,
        .item_bytes = sizeof(sy_boundary),
        /* what a waiting segment holds up of the library's memory */ .magazine_items =
            MAGAZINE_ITEMS,
        .calls_back = true, /* what spans were imported from */
    };
    if (sy_client_open(&cache->client, &config) != 0) return -1;
    arena->cached_offset[index] = sy_client_offset(&cache->client);
    return 0;
}

int sy_quantum_open(sy_vmem *arena, size_t cached_max) {
    for (size_t index = 0; index < cached_max >> arena->quantum_shift; index++) {
        if (vmem_quantum_open_cache(arena, index) != 0) {
            sy_quantum_close(arena);
            return -1;
        }
        arena->cached_sizes++;
    }
    return 0;
}

bool sy_quantum_suspend(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        if (sy_client_suspend(&arena->caches[i].client, NULL, NULL)) continue;
        while (i > 0) sy_client_resume(&arena->caches[--i].client);
        return false;
    }
    return true;
}

void sy_quantum_resume(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) sy_client_resume(&arena->caches[i].client);
}

void sy_quantum_close(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        sy_client_close(&arena->caches[i].client);
        sy_client_give_number(&arena->caches[i].client);
    }
    arena->cached_sizes = 0;
}

size_t sy_quantum_held(const sy_vmem *arena) {
    size_t units = 0;
    for (unsigned i = 0; i < arena->cached_sizes; i++) {
        size_t depot, loaded;
        sy_client_held(&arena->caches[i].client, &depot, &loaded);
        units += (depot + loaded) * arena->caches[i].size;
    }
    return units;
}

void sy_vmem_drain(sy_vmem *arena) {
    for (unsigned i = 0; i < arena->cached_sizes; i++) sy_client_drain(&arena->caches[i].client);
}

/* ---- the doors with a fast path ---- */

static inline sy_loaded_slot *slot_of_size(const sy_vmem *arena, size_t index) {
    return (sy_loaded_slot *)((char *)sy_abi_1 + arena->cached_offset[index]);
}

/* Of the quantum cache for the size; SY_VMEM_CACHED_SIZES and more, size 0 among them: none. */
static inline size_t index_of_size(const sy_vmem *arena, size_t size) {
    return (size - 1) >> arena->quantum_shift;
}

static SY_COLD int alloc_segment_slow(sy_vmem *arena, size_t index, uintptr_t *value) {
    sy_client *client = &arena->caches[index].client;
    uintptr_t found;
    int error = errno;
    if (!sy_client_alloc_second(client, &found)) {
        if (!sy_client_alloc(client, &found)) {
            sy_vmem_drain(arena);
            if (!sy_client_alloc(client, &found)) return -1;
        }
        errno = error;
    }
    *value = found;
    return 0;
}

static SY_COLD int free_segment_slow(sy_vmem *arena, size_t index, uintptr_t value) {
    sy_client *client = &arena->caches[index].client;
    if (sy_client_freed_last(client, value)) {
        sy_vmem_fault(arena, value, arena->caches[index].size, 0);
        errno = EINVAL;
        return -1;
    }
    if (sy_client_free_second(client, value)) return 0;
    int error = errno;
    sy_client_free(client, value);
    errno = error;
    return 0;
}

int sy_vmem_alloc(sy_vmem *arena, size_t size, sy_vmem_fit fit, uintptr_t *value) {
    size_t index = index_of_size(arena, size);
    if (SY_UNLIKELY(index >= arena->cached_sizes || fit != SY_VMEM_INSTANT))
        return sy_vmem_xalloc(arena, size, NULL, fit, value);
    if (SY_LIKELY(sy_loaded_pop(slot_of_size(arena, index), value))) return 0;
    return alloc_segment_slow(arena, index, value);
}

int sy_vmem_free(sy_vmem *arena, uintptr_t value, size_t size) {
    size_t index = index_of_size(arena, size);
    if (SY_UNLIKELY(index >= arena->cached_sizes)) return sy_vmem_xfree(arena, value, size);
    if (SY_LIKELY(sy_loaded_push_once(slot_of_size(arena, index), value))) return 0;
    return free_segment_slow(arena, index, value);
}

/* ==== src/vmem/segments.c ==== */

/*
 * segments.c: segments in order of value, and the free ones in lists by size: cutting, freeing,
 * making one of neighbours.
 */

/* ---- lists by size ---- */

unsigned sy_list_of(size_t quanta) {
    if (quanta < 1u << SY_SPLIT_SHIFT) return (unsigned)quanta;
    unsigned shift = sy_highest_bit(quanta) - SY_SPLIT_SHIFT;
    return (shift << SY_SPLIT_SHIFT) + (unsigned)(quanta >> shift);
}

unsigned sy_list_above(size_t quanta) {
    unsigned list = sy_list_of(quanta);
    if (quanta < 2u << SY_SPLIT_SHIFT) return list;
    unsigned shift = sy_highest_bit(quanta) - SY_SPLIT_SHIFT;
    return list + ((quanta & sy_low_bits(shift)) != 0);
}

unsigned sy_list_filled(const sy_vmem *arena, unsigned from) {
    if (from >= SY_LISTS) return SY_LISTS;
    uint64_t word = arena->filled[from / 64] & ~sy_low_bits(from % 64);
    for (unsigned index = from / 64;;) {
        if (word) return index * 64 + sy_lowest_bit(word);
        if (++index == SY_LISTS / 64) return SY_LISTS;
        word = arena->filled[index];
    }
}

static void list_add(sy_vmem *arena, sy_boundary *tag, unsigned list) {
    tag->kin_previous = NULL;
    tag->kin = arena->list[list];
    if (tag->kin) tag->kin->kin_previous = tag;
    arena->list[list] = tag;
    arena->filled[list / 64] |= UINT64_C(1) << list % 64;
}

static void list_remove(sy_vmem *arena, sy_boundary *tag, unsigned list) {
    if (tag->kin) tag->kin->kin_previous = tag->kin_previous;
    if (tag->kin_previous) {
        tag->kin_previous->kin = tag->kin;
        return;
    }
    arena->list[list] = tag->kin;
    if (!tag->kin) arena->filled[list / 64] &= ~(UINT64_C(1) << list % 64);
}

static unsigned list_of_size(const sy_vmem *arena, size_t size) {
    return sy_list_of(size >> arena->quantum_shift);
}

void sy_free_list_add(sy_vmem *arena, sy_boundary *tag) {
    arena->free_segments++;
    arena->free += tag->size;
    list_add(arena, tag, list_of_size(arena, tag->size));
}

void sy_free_list_remove(sy_vmem *arena, sy_boundary *tag) {
    arena->free_segments--;
    arena->free -= tag->size;
    list_remove(arena, tag, list_of_size(arena, tag->size));
}

/* Gives a free segment other bounds; most often it stays in its list. */
static void change_free(sy_vmem *arena, sy_boundary *tag, uintptr_t start, size_t size) {
    unsigned from = list_of_size(arena, tag->size), to = list_of_size(arena, size);
    arena->free += size - tag->size;
    if (from != to) list_remove(arena, tag, from);
    tag->start = start;
    tag->size = size;
    if (from != to) list_add(arena, tag, to);
}

/* ---- order of value ---- */

void sy_tag_link(sy_vmem *arena, sy_boundary *tag, sy_boundary *previous) {
    tag->previous = previous;
    tag->next = previous ? previous->next : arena->first;
    if (tag->next)
        tag->next->previous = tag;
    else
        arena->last = tag;
    if (previous)
        previous->next = tag;
    else
        arena->first = tag;
}

void sy_tag_unlink(sy_vmem *arena, sy_boundary *tag) {
    if (tag->next)
        tag->next->previous = tag->previous;
    else
        arena->last = tag->previous;
    if (tag->previous)
        tag->previous->next = tag->next;
    else
        arena->first = tag->next;
    if (arena->rotor_tag == tag) arena->rotor_tag = tag->previous;
}

/* The rotor is in `tag` or in one of the segments behind it, whose bounds have changed. */
static void settle_rotor(sy_vmem *arena, sy_boundary *tag) {
    while (tag->next && tag->next->kind != SY_TAG_SPAN && tag->next->start <= arena->rotor)
        tag = tag->next;
    arena->rotor_tag = tag;
}

/* ---- segments ---- */

/* Two tags that follow one another: the second begins where the first ends, or, after a span, where
 * the span begins; and they are not both free. Between spans there may be a gap. */
static bool tags_agree(const sy_boundary *tag, const sy_boundary *next) {
    if (next->previous != tag) return false;
    if (next->kind == SY_TAG_SPAN) return sy_tag_last(tag) < next->start;
    if (tag->kind == SY_TAG_SPAN) return next->start == tag->start;
    bool both_free = tag->kind == SY_TAG_FREE && next->kind == SY_TAG_FREE;
    return next->start == sy_tag_last(tag) + 1 && !both_free;
}

/* The segment and those beside it, in its span. */
static bool segment_neighbours_agree(const sy_boundary *tag) {
    if (!tag->previous || tag->previous->next != tag || tag->kind == SY_TAG_SPAN) return false;
    return tags_agree(tag->previous, tag) && (!tag->next || tags_agree(tag, tag->next));
}

/* A tag whose segment has become part of the one before it. */
static void vmem_segments_drop(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_tag_unlink(arena, tag);
    sy_tag_give(arena, tag, leavings);
}

sy_boundary *sy_segment_carve(sy_vmem *arena, sy_boundary *free, uintptr_t value, size_t size) {
    bool rotor = arena->rotor_tag == free;
    size_t before = value - free->start, after = free->size - before - size;
    sy_boundary *leftmost = free, *taken = free;
    if (!before && !after) {
        sy_free_list_remove(arena, free);
        free->kind = SY_TAG_ALLOCATED;
    } else {
        taken = sy_tag_take(arena, SY_TAG_ALLOCATED, value, size);
        if (!before) {
            sy_tag_link(arena, taken, free->previous);
            change_free(arena, free, value + size, after);
            leftmost = taken;
        } else {
            change_free(arena, free, free->start, before);
            sy_tag_link(arena, taken, free);
            if (after) {
                sy_boundary *rest = sy_tag_take(arena, SY_TAG_FREE, value + size, after);
                sy_tag_link(arena, rest, taken);
                sy_free_list_add(arena, rest);
            }
        }
    }
    if (rotor) settle_rotor(arena, leftmost);
    sy_table_insert(arena, taken);
    arena->allocs++;
    SY_INVARIANT(segment_neighbours_agree(taken));
    return taken;
}

void sy_segment_free(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    arena->frees++;
    sy_table_remove(arena, tag, leavings);
    tag->kind = SY_TAG_FREE;
    sy_boundary *before = tag->previous, *after = tag->next;
    if (after && after->kind == SY_TAG_FREE) {
        tag->size += after->size;
        sy_free_list_remove(arena, after);
        vmem_segments_drop(arena, after, leavings);
    }
    if (before->kind == SY_TAG_FREE) {
        change_free(arena, before, before->start, before->size + tag->size);
        vmem_segments_drop(arena, tag, leavings);
        tag = before;
    } else {
        sy_free_list_add(arena, tag);
    }
    SY_INVARIANT(segment_neighbours_agree(tag));
    sy_boundary *span = tag->previous;
    if (span->kind == SY_TAG_SPAN && span->imported && span->size == tag->size)
        sy_span_remove(arena, span, leavings);
}

bool sy_segment_resize(sy_vmem *arena, sy_boundary *tag, size_t size, sy_leavings *leavings) {
    sy_boundary *after = tag->next && tag->next->kind == SY_TAG_FREE ? tag->next : NULL;
    size_t room = tag->size + (after ? after->size : 0);
    if (size > room) return false;
    bool rotor = arena->rotor_tag == tag || (after && arena->rotor_tag == after);
    tag->size = size;
    if (after && size == room) {
        sy_free_list_remove(arena, after);
        vmem_segments_drop(arena, after, leavings);
    } else if (after) {
        change_free(arena, after, tag->start + size, room - size);
    } else if (size < room) {
        after = sy_tag_take(arena, SY_TAG_FREE, tag->start + size, room - size);
        sy_tag_link(arena, after, tag);
        sy_free_list_add(arena, after);
    }
    if (rotor) settle_rotor(arena, tag);
    SY_INVARIANT(segment_neighbours_agree(tag));
    return true;
}

/* ==== src/vmem/spans.c ==== */

/*
 * spans.c: the spans of an arena: a tree by value, so that importing is as quick for the
 * hundred-thousandth span as for the first. (A treap: a search tree by start that is a heap by the
 * start's hash; Seidel and Aragon, "Randomized search trees", Algorithmica 1996.)
 */

/* A span's kin are its children. */
static sy_boundary **lesser(sy_boundary *span) { return &span->kin; }

static sy_boundary **greater(sy_boundary *span) { return &span->kin_previous; }

static uint64_t priority(const sy_boundary *span) {
    uint64_t hash = (uint64_t)span->start * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static void tree_insert(sy_boundary **at, sy_boundary *span) {
    while (*at && priority(*at) >= priority(span))
        at = span->start < (*at)->start ? lesser(*at) : greater(*at);
    /* What stands there is split in what lies before the span and what lies after it. */
    sy_boundary **low = lesser(span), **high = greater(span);
    for (sy_boundary *rest = *at; rest;) {
        if (rest->start < span->start) {
            *low = rest;
            low = greater(rest);
            rest = *low;
        } else {
            *high = rest;
            high = lesser(rest);
            rest = *high;
        }
    }
    *low = *high = NULL;
    *at = span;
}

static void tree_remove(sy_boundary **at, sy_boundary *span) {
    while (*at != span) at = span->start < (*at)->start ? lesser(*at) : greater(*at);
    sy_boundary *low = *lesser(span), *high = *greater(span);
    while (low && high) {
        if (priority(low) >= priority(high)) {
            *at = low;
            at = greater(low);
            low = *at;
        } else {
            *at = high;
            at = lesser(high);
            high = *at;
        }
    }
    *at = low ? low : high;
}

sy_boundary *sy_span_at_or_before(const sy_vmem *arena, uintptr_t value) {
    sy_boundary *found = NULL;
    for (sy_boundary *span = arena->span_tree; span;) {
        if (span->start <= value) {
            found = span;
            span = *greater(span);
        } else {
            span = *lesser(span);
        }
    }
    return found;
}

sy_boundary *sy_span_after(const sy_vmem *arena, uintptr_t value) {
    sy_boundary *found = NULL;
    for (sy_boundary *span = arena->span_tree; span;) {
        if (span->start > value) {
            found = span;
            span = *lesser(span);
        } else {
            span = *greater(span);
        }
    }
    return found;
}

bool sy_span_overlaps(const sy_vmem *arena, uintptr_t start, size_t size) {
    const sy_boundary *before = sy_span_at_or_before(arena, start);
    if (before && sy_tag_last(before) >= start) return true;
    const sy_boundary *after = sy_span_after(arena, start);
    return after && after->start <= start + (size - 1);
}

sy_boundary *sy_span_insert(sy_vmem *arena, uintptr_t start, size_t size, bool imported) {
    sy_boundary *span = sy_tag_take(arena, SY_TAG_SPAN, start, size);
    sy_boundary *free = sy_tag_take(arena, SY_TAG_FREE, start, size);
    sy_boundary *after = sy_span_after(arena, start);
    span->imported = imported;
    tree_insert(&arena->span_tree, span);
    sy_tag_link(arena, span, after ? after->previous : arena->last);
    sy_tag_link(arena, free, span);
    sy_free_list_add(arena, free);
    arena->spans++;
    arena->total += size;
    if (imported) {
        arena->imported_spans++;
        arena->imported += size;
        arena->imports++;
    }
    return free;
}

void sy_span_remove(sy_vmem *arena, sy_boundary *span, sy_leavings *leavings) {
    sy_boundary *free = span->next;
    leavings->any = leavings->span = true;
    leavings->span_start = span->start;
    leavings->span_size = span->size;
    arena->spans--;
    arena->imported_spans--;
    arena->total -= span->size;
    arena->imported -= span->size;
    arena->releases++;
    sy_free_list_remove(arena, free);
    tree_remove(&arena->span_tree, span);
    sy_tag_unlink(arena, free);
    sy_tag_unlink(arena, span);
    sy_tag_give(arena, free, leavings);
    sy_tag_give(arena, span, leavings);
}

/* ==== src/vmem/table.c ==== */

/*
 * table.c: allocated segments by value: a hash table that grows and shrinks by one bucket at a
 * time, so that no single operation pays for all. (Litwin, "Linear hashing: a new tool for file and
 * table addressing", VLDB 1980.)
 *
 * There are n buckets, 2^s <= n < 2^(s+1). A hash's bucket is its lowest s + 1 bits, or, where that
 * is not below n, its lowest s. Bucket n splits off from bucket n - 2^s.
 *
 *     bucket[]       part[0]        part[1]
 *     0 ... 511      512 ... 1023   1024 ... 2047     n is anywhere up to the end of the last part
 */

enum {
    SHRINK_AT = 4,    /* buckets for each segment */
    SHRINK_STEPS = 8, /* buckets at a time */
};

static uint64_t vmem_table_hash_of(const sy_vmem *arena, uintptr_t value) {
    uint64_t hash = (uint64_t)(value >> arena->quantum_shift) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static unsigned part_of(size_t bucket) { return sy_highest_bit(bucket) - SY_BUCKETS_SHIFT; }

static size_t part_bytes(unsigned part) {
    return sy_round_up(((size_t)SY_BUCKETS << part) * sizeof(sy_boundary *), sy_os_page_size());
}

static sy_boundary **bucket_at(sy_vmem *arena, size_t index) {
    if (index < SY_BUCKETS) return &arena->bucket[index];
    unsigned part = part_of(index);
    return &arena->part[part][index - ((size_t)SY_BUCKETS << part)];
}

static sy_boundary **vmem_table_bucket_of(sy_vmem *arena, uintptr_t value) {
    unsigned digits = sy_highest_bit(arena->buckets);
    size_t index = vmem_table_hash_of(arena, value) & sy_low_bits(digits + 1);
    if (index >= arena->buckets) index -= (size_t)1 << digits;
    return bucket_at(arena, index);
}

void sy_table_ready(sy_vmem *arena) {
    if (SY_LIKELY(arena->allocated_segments < arena->grow_at)) return;
    unsigned part = part_of(arena->buckets);
    if (part == SY_TABLE_PARTS || arena->part[part]) return;
    size_t bytes = part_bytes(part);
    sy_lock_release(&arena->lock);
    void *memory = sy_pages_take(bytes, sy_os_page_size(), "slabyard arena table");
    sy_lock_acquire(&arena->lock);
    bool wanted = part == part_of(arena->buckets) && !arena->part[part];
    if (memory && wanted) {
        arena->part[part] = memory;
        arena->grow_at = (size_t)SY_BUCKETS << (part + 1);
    } else if (memory) {
        sy_lock_release(&arena->lock);
        sy_pages_give(memory, bytes);
        sy_lock_acquire(&arena->lock);
    } else {
        arena->grow_at += arena->grow_at / 4; /* to be tried again */
    }
}

/* Splits one bucket off, if there is memory for it. */
static void grow_table(sy_vmem *arena) {
    size_t added = arena->buckets;
    unsigned digits = sy_highest_bit(added);
    if (!arena->part[part_of(added)]) return;
    sy_boundary **from = bucket_at(arena, added - ((size_t)1 << digits));
    sy_boundary **to = bucket_at(arena, added);
    *to = NULL;
    while (*from) {
        sy_boundary *tag = *from;
        if ((vmem_table_hash_of(arena, tag->start) & sy_low_bits(digits + 1)) == added) {
            *from = tag->kin;
            tag->kin = *to;
            *to = tag;
        } else {
            from = &tag->kin;
        }
    }
    arena->buckets++;
}

/* Joins the last bucket to the one that it was split from. */
static void shrink(sy_vmem *arena, sy_leavings *leavings) {
    size_t gone = --arena->buckets;
    unsigned digits = sy_highest_bit(gone), part = part_of(gone);
    sy_boundary **end = bucket_at(arena, gone - ((size_t)1 << digits));
    while (*end) end = &(*end)->kin;
    *end = *bucket_at(arena, gone);
    if (gone != (size_t)1 << digits) return;
    leavings->part = arena->part[part];
    leavings->part_bytes = part_bytes(part);
    leavings->any = true;
    arena->part[part] = NULL;
    arena->grow_at = gone;
}

void sy_table_insert(sy_vmem *arena, sy_boundary *tag) {
    sy_boundary **bucket = vmem_table_bucket_of(arena, tag->start);
    tag->kin = *bucket;
    *bucket = tag;
    if (++arena->allocated_segments > arena->buckets) grow_table(arena);
}

sy_boundary *sy_table_find(sy_vmem *arena, uintptr_t value) {
    sy_boundary *tag = *vmem_table_bucket_of(arena, value);
    for (; tag; tag = tag->kin) {
        arena->steps++;
        if (tag->start == value) break;
    }
    return tag;
}

void sy_table_remove(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_boundary **link = vmem_table_bucket_of(arena, tag->start);
    while (*link != tag) link = &(*link)->kin;
    *link = tag->kin;
    arena->allocated_segments--;
    /* Faster than segments go, so that few segments end with few buckets. */
    for (int i = 0; i < SHRINK_STEPS && !leavings->part; i++)
        if (arena->buckets > SY_BUCKETS && arena->allocated_segments < arena->buckets / SHRINK_AT)
            shrink(arena, leavings);
}

size_t sy_table_bytes(const sy_vmem *arena) {
    size_t bytes = 0;
    for (unsigned part = 0; part < SY_TABLE_PARTS; part++)
        if (arena->part[part]) bytes += part_bytes(part);
    return bytes;
}

void sy_table_release(sy_vmem *arena) {
    for (unsigned part = 0; part < SY_TABLE_PARTS; part++)
        if (arena->part[part]) sy_pages_give(arena->part[part], part_bytes(part));
}

/* ==== src/vmem/tags.c ==== */

/*
 * tags.c: the memory of boundary tags: pools on pages of the system's own, each of a size that is
 * known when it is made, so that a tag is taken and given without asking anybody. A pool that has
 * no tag in use goes back to the system.
 */

enum {
    BLOCK_BYTES_MAX = 1 << 20,
    POOL_TAGS = 4, /* of a block, taken by what the pool itself keeps there */
};

static void add_block(sy_vmem *arena, sy_tag_block *block) {
    block->previous = NULL;
    block->next = arena->blocks;
    if (block->next) block->next->previous = block;
    arena->blocks = block;
}

static void drop_block(sy_vmem *arena, sy_tag_block *block) {
    if (block->previous)
        block->previous->next = block->next;
    else
        arena->blocks = block->next;
    if (block->next) block->next->previous = block->previous;
}

/* As large as all blocks before it. */
static sy_tag_block *vmem_tags_make_block(size_t bytes) {
    size_t page = sy_os_page_size();
    if (bytes < page) bytes = page;
    if (bytes > BLOCK_BYTES_MAX) bytes = BLOCK_BYTES_MAX;
    bytes = sy_round_up(bytes, page);
    size_t slots = bytes / sizeof(sy_boundary) - POOL_TAGS;
    sy_pool *pool = sy_pool_create(&(sy_pool_config){
        .size = sizeof(sy_boundary), .align = sizeof(sy_boundary), .capacity = slots});
    if (!pool) return NULL;
    sy_tag_block *block = sy_pool_alloc_inline(pool);
    *block = (sy_tag_block){.pool = pool, .tags = slots - 1, .bytes = bytes};
    return block;
}

bool sy_tags_ready(sy_vmem *arena, size_t count) {
    while (arena->spare < count) {
        size_t bytes = arena->tag_bytes;
        sy_lock_release(&arena->lock);
        sy_tag_block *block = vmem_tags_make_block(bytes);
        sy_lock_acquire(&arena->lock);
        if (!block) {
            errno = ENOMEM;
            return false;
        }
        add_block(arena, block);
        arena->spare += block->tags;
        arena->tag_bytes += block->bytes;
    }
    return true;
}

sy_boundary *sy_tag_take(sy_vmem *arena, sy_tag_kind kind, uintptr_t start, size_t size) {
    sy_tag_block *block = arena->blocks;
    sy_boundary *tag = sy_pool_alloc_inline(block->pool);
    arena->spare--;
    if (++block->used == block->tags) drop_block(arena, block);
    tag->start = start;
    tag->size = size;
    tag->block = block;
    tag->kind = (uint8_t)kind;
    tag->imported = false;
    return tag;
}

void sy_tag_give(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_tag_block *block = tag->block;
    sy_pool_free_inline(block->pool, tag);
    arena->spare++;
    if (block->used-- == block->tags) add_block(arena, block);
    /* Enough remains, so that the next operations do not make it again. */
    bool plenty = arena->spare - block->tags >= block->tags / 2 + SY_TAGS_MOST;
    if (block->used > 0 || !plenty) return;
    drop_block(arena, block);
    arena->spare -= block->tags;
    arena->tag_bytes -= block->bytes;
    block->next = leavings->blocks;
    leavings->blocks = block;
    leavings->any = true;
}

void sy_tag_blocks_release(sy_tag_block *blocks) {
    while (blocks) {
        sy_pool *pool = blocks->pool;
        blocks = blocks->next;
        sy_pool_destroy(pool);
    }
}

/* ==== src/vmem/vmem.c ==== */

/*
 * vmem.c: the doors of slabyard/vmem.h but for what only looks (look.c): the life of an arena,
 * allocation down to the source, free up to it.
 */

/* All arenas, for fork. */
static sy_lock vmem_vmem_list_lock = SY_LOCK_INIT(SY_RANK_ARENAS);
static sy_vmem *arenas; /* guarded by it */

static int fail_with(int error) {
    errno = error;
    return -1;
}

/* ---- creation ---- */

bool sy_vmem_round(const sy_vmem *arena, size_t size, size_t *rounded) {
    size_t unit = arena->quantum - 1;
    *rounded = (size + unit) & ~unit;
    return size != 0 && *rounded >= size;
}

/* Whether it is a range of integers in whole quanta. */
static bool valid_range(size_t quantum, uintptr_t start, size_t size) {
    return size && ((start | size) & (quantum - 1)) == 0 && size - 1 <= UINTPTR_MAX - start;
}

static bool valid_config(const sy_vmem_config *config) {
    if (!config) return false;
    size_t quantum = config->quantum ? config->quantum : 1;
    bool imports = config->import || config->source;
    bool valid = sy_is_power_of_two(quantum) && (config->base & (quantum - 1)) == 0 &&
                 (!config->size || valid_range(quantum, config->base, config->size)) &&
                 config->cached_max / quantum <= SY_VMEM_CACHED_SIZES &&
                 (config->cached_max / quantum < SY_VMEM_CACHED_SIZES ||
                  config->cached_max % quantum == 0) &&
                 !config->import == !config->release && (imports || !config->import_min) &&
                 !(config->source && !config->import && config->source->quantum > quantum);
    for (size_t i = 0; valid && i < sizeof config->reserved / sizeof *config->reserved; i++)
        valid = config->reserved[i] == 0;
    return valid;
}

/* What a source without functions is asked by. Its values are multiples of its own quantum only. */
static int import_from(sy_vmem *source, void *arg, size_t size, uintptr_t *start, size_t *got) {
    const sy_vmem *arena = arg;
    *got = size;
    if (source->quantum == arena->quantum)
        return sy_vmem_alloc(source, size, SY_VMEM_INSTANT, start);
    const sy_vmem_constraints aligned = {.align = arena->quantum};
    return sy_vmem_xalloc(source, size, &aligned, SY_VMEM_INSTANT, start);
}

static void release_to(sy_vmem *source, void *arg, uintptr_t start, size_t size) {
    const sy_vmem *arena = arg;
    if (source->quantum == arena->quantum)
        sy_vmem_free(source, start, size);
    else
        sy_vmem_xfree(source, start, size);
}

static void set_up_arena(sy_vmem *arena, const sy_vmem_config *config) {
    const char *name = config->name ? config->name : "arena";
    for (size_t i = 0; i < SY_VMEM_NAME_MAX && name[i]; i++) arena->name[i] = name[i];
    arena->quantum = config->quantum ? config->quantum : 1;
    arena->quantum_shift = sy_lowest_bit(arena->quantum);
    arena->import = config->import;
    arena->release = config->release;
    arena->source = config->source;
    arena->arg = config->arg;
    arena->import_min = config->import_min;
    if (config->source && !config->import) {
        arena->import = import_from;
        arena->release = release_to;
        arena->arg = arena;
    }
    arena->buckets = SY_BUCKETS;
    arena->grow_at = SY_BUCKETS;
    sy_lock_init(&arena->lock, SY_RANK_ARENA);
}

static void enlist(sy_vmem *arena) {
    sy_lock_acquire(&vmem_vmem_list_lock);
    arena->next = arenas;
    if (arena->next) arena->next->previous = arena;
    arenas = arena;
    sy_lock_release(&vmem_vmem_list_lock);
}

static void delist(sy_vmem *arena) {
    sy_lock_acquire(&vmem_vmem_list_lock);
    if (arena->previous)
        arena->previous->next = arena->next;
    else
        arenas = arena->next;
    if (arena->next) arena->next->previous = arena->previous;
    sy_lock_release(&vmem_vmem_list_lock);
}

int sy_vmem_open(sy_vmem *arena, const sy_vmem_config *config) {
    if (!valid_config(config)) return fail_with(EINVAL);
    set_up_arena(arena, config);
    enlist(arena);
    if (!config->size || sy_vmem_add(arena, config->base, config->size) == 0) return 0;
    sy_vmem_close(arena);
    return -1;
}

void sy_vmem_close(sy_vmem *arena) {
    sy_leavings leavings = {0};
    delist(arena);
    while (arena->first) {
        sy_boundary *tag = arena->first;
        sy_tag_unlink(arena, tag);
        sy_tag_give(arena, tag, &leavings);
    }
    /* None of them is full any more, so what did not leave is in the list. */
    sy_tag_blocks_release(leavings.blocks);
    sy_tag_blocks_release(arena->blocks);
    sy_table_release(arena);
}

static size_t bytes_of_arena(void) { return sy_round_up(sizeof(sy_vmem), sy_os_page_size()); }

sy_vmem *sy_vmem_create(const sy_vmem_config *config) {
    if (!valid_config(config)) {
        errno = EINVAL;
        return NULL;
    }
    if (sy_start() != 0) return NULL;
    sy_vmem *arena = sy_pages_take(bytes_of_arena(), sy_os_page_size(), "slabyard arena");
    if (!arena) return NULL;
    if (sy_vmem_open(arena, config) != 0) {
        sy_pages_give(arena, bytes_of_arena());
        return NULL;
    }
    if (sy_quantum_open(arena, config->cached_max) != 0) {
        sy_vmem_close(arena);
        sy_pages_give(arena, bytes_of_arena());
        errno = ENOMEM;
        return NULL;
    }
    return arena;
}

/* Nobody uses the arena. */
static bool has_segments(sy_vmem *arena) {
    sy_clients_lock();
    sy_lock_acquire(&arena->lock);
    bool any = arena->total - arena->free > sy_quantum_held(arena);
    sy_lock_release(&arena->lock);
    sy_clients_unlock();
    return any;
}

int sy_vmem_destroy(sy_vmem *arena) {
    if (!arena) return 0;
    if (atomic_load_explicit(&arena->calls, memory_order_relaxed)) return fail_with(EBUSY);
    if (!sy_quantum_suspend(arena)) return fail_with(EBUSY);
    if (has_segments(arena)) {
        sy_quantum_resume(arena);
        return fail_with(EBUSY);
    }
    sy_quantum_close(arena);
    sy_vmem_close(arena);
    sy_pages_give(arena, bytes_of_arena());
    return 0;
}

int sy_vmem_add(sy_vmem *arena, uintptr_t start, size_t size) {
    if (!valid_range(arena->quantum, start, size)) return fail_with(EINVAL);
    int error = 0;
    sy_lock_acquire(&arena->lock);
    bool ready = sy_tags_ready(arena, SY_TAGS_PER_SPAN);
    if (sy_span_overlaps(arena, start, size))
        error = EEXIST;
    else if (!ready || size > SIZE_MAX - arena->total)
        error = ENOMEM;
    else
        sy_span_insert(arena, start, size, false);
    sy_lock_release(&arena->lock);
    return error ? fail_with(error) : 0;
}

/* ---- allocation ---- */

static int call_import(sy_vmem *arena, size_t size, uintptr_t *start, size_t *got) {
    atomic_fetch_add_explicit(&arena->calls, 1, memory_order_relaxed);
    SY_CALLBACK(call, "import function", "arena", arena->name, false);
    int result = arena->import(arena->source, arena->arg, size, start, got);
    call.returned = true;
    atomic_fetch_sub_explicit(&arena->calls, 1, memory_order_relaxed);
    return result;
}

static void call_release(sy_vmem *arena, uintptr_t start, size_t size) {
    atomic_fetch_add_explicit(&arena->calls, 1, memory_order_relaxed);
    SY_CALLBACK(call, "release function", "arena", arena->name, false);
    arena->release(arena->source, arena->arg, start, size);
    call.returned = true;
    atomic_fetch_sub_explicit(&arena->calls, 1, memory_order_relaxed);
}

void sy_leavings_settle(sy_vmem *arena, sy_leavings *leavings) {
    if (SY_LIKELY(!leavings->any)) return;
    int error = errno;
    sy_tag_blocks_release(leavings->blocks);
    if (leavings->part) sy_pages_give(leavings->part, leavings->part_bytes);
    if (leavings->span) call_release(arena, leavings->span_start, leavings->span_size);
    errno = error;
    *leavings = (sy_leavings){0};
}

/* Takes the request from a free segment; the lock is held. */
static void vmem_vmem_take_segment(sy_vmem *arena, const sy_request *request, sy_boundary *free,
                         uintptr_t value) {
    sy_boundary *taken = sy_segment_carve(arena, free, value, request->size);
    if (request->fit != SY_VMEM_NEXT) return;
    arena->rotor_set = true;
    arena->rotor = value + (request->size - 1);
    arena->rotor_tag = taken;
}

/* From what is free in the arena. 0; -1 with errno: ENOMEM for no memory, EAGAIN for no room. */
static int serve_here(sy_vmem *arena, const sy_request *request, uintptr_t *value) {
    int error = 0;
    sy_lock_acquire(&arena->lock);
    sy_table_ready(arena);
    if (SY_LIKELY(sy_tags_ready(arena, SY_TAGS_PER_SPLIT))) {
        sy_boundary *free = sy_fit_find(arena, request, value);
        if (SY_LIKELY(free != NULL))
            vmem_vmem_take_segment(arena, request, free, *value);
        else
            error = EAGAIN;
    } else {
        error = ENOMEM;
    }
    sy_lock_release(&arena->lock);
    return error ? fail_with(error) : 0;
}

typedef enum sy_import_result { SERVED, NOTHING_TO_IMPORT, OF_NO_USE } sy_import_result;

/* Adds what was imported and serves the request from there. False: it is to be released. */
static bool add_and_serve(sy_vmem *arena, const sy_request *request, uintptr_t start, size_t size,
                          uintptr_t *value) {
    bool served = false;
    if (!valid_range(arena->quantum, start, size)) return false;
    if (!sy_request_fits(request, start, start + (size - 1), value)) return false;
    sy_lock_acquire(&arena->lock);
    if (sy_tags_ready(arena, SY_TAGS_MOST) && size <= SIZE_MAX - arena->total &&
        !sy_span_overlaps(arena, start, size)) {
        sy_boundary *free = sy_span_insert(arena, start, size, true);
        served = sy_fit_in(arena, request, free, value);
        vmem_vmem_take_segment(arena, request, free, *value);
    }
    sy_lock_release(&arena->lock);
    return served;
}

/* From a new span. What the source gives is used at once or given back. */
static sy_import_result serve_by_import(sy_vmem *arena, const sy_request *request,
                                        uintptr_t *value) {
    if (!arena->import) return NOTHING_TO_IMPORT;
    size_t size = request->ample ? request->ample : request->size;
    if (size < arena->import_min && !sy_vmem_round(arena, arena->import_min, &size))
        return NOTHING_TO_IMPORT;
    uintptr_t start = 0;
    size_t got = size;
    if (call_import(arena, size, &start, &got) != 0) return NOTHING_TO_IMPORT;
    if (got >= size && add_and_serve(arena, request, start, got, value)) return SERVED;
    call_release(arena, start, got);
    return OF_NO_USE;
}

/* With what waits in quantum caches, here or, if that gave spans back, at the source. */
static bool serve_after_drain(sy_vmem *arena, const sy_request *request, uintptr_t *value,
                              bool import) {
    sy_vmem_drain(arena);
    return serve_here(arena, request, value) == 0 ||
           (import && serve_by_import(arena, request, value) == SERVED);
}

/* There is no room that was found at once. */
static bool serve_otherwise(sy_vmem *arena, const sy_request *request, uintptr_t *value,
                            bool drain) {
    sy_request patient = *request;
    patient.patience = SY_PATIENCE_WITHOUT_END;
    sy_import_result result = serve_by_import(arena, request, value);
    if (result == SERVED) return true;
    if (request->patience < SY_PATIENCE_WITHOUT_END && serve_here(arena, &patient, value) == 0)
        return true;
    return drain && arena->cached_sizes &&
           serve_after_drain(arena, &patient, value, result == NOTHING_TO_IMPORT);
}

static void count_failure(sy_vmem *arena) {
    sy_lock_acquire(&arena->lock);
    arena->failures++;
    sy_lock_release(&arena->lock);
}

int sy_vmem_serve(sy_vmem *arena, const sy_request *request, uintptr_t *value, bool drain) {
    int error = errno;
    if (SY_UNLIKELY(serve_here(arena, request, value) != 0)) {
        if (errno == ENOMEM) return -1;
        if (!serve_otherwise(arena, request, value, drain)) {
            count_failure(arena);
            return fail_with(ENOMEM);
        }
    }
    errno = error;
    return 0;
}

/* Not into the quantum caches' fast path, where all sources are one. */
__attribute__((noinline)) int sy_vmem_xalloc(sy_vmem *arena, size_t size,
                                             const sy_vmem_constraints *constraints,
                                             sy_vmem_fit fit, uintptr_t *value) {
    sy_request request;
    uintptr_t found;
    if (sy_request_make(arena, size, constraints, fit, &request) != 0) return -1;
    if (sy_vmem_serve(arena, &request, &found, true) != 0) return -1;
    *value = found;
    return 0;
}

/* ---- free ---- */

void sy_vmem_fault(const sy_vmem *arena, uintptr_t value, size_t size, size_t found_size) {
    const sy_fault fault = {
        .kind = found_size ? SY_FAULT_SEGMENT_SIZE : SY_FAULT_NOT_ALLOCATED,
        .cache = arena->name,
        .object_size = size,
        .address = (const void *)value,
        .found_size = found_size,
    };
    sy_fault_raise(&fault);
}

/* The allocated segment that is [value, value + size), or NULL and the size that it has, 0 for no
 * segment. The lock is held. */
static sy_boundary *find_exact(sy_vmem *arena, uintptr_t value, size_t size, size_t *found_size) {
    size_t rounded;
    sy_boundary *tag = sy_table_find(arena, value);
    *found_size = tag ? tag->size : 0;
    return tag && sy_vmem_round(arena, size, &rounded) && rounded == tag->size ? tag : NULL;
}

int sy_vmem_xfree(sy_vmem *arena, uintptr_t value, size_t size) {
    sy_leavings leavings = {0};
    size_t found_size;
    sy_lock_acquire(&arena->lock);
    sy_boundary *tag = find_exact(arena, value, size, &found_size);
    if (SY_LIKELY(tag != NULL)) sy_segment_free(arena, tag, &leavings);
    sy_lock_release(&arena->lock);
    if (SY_UNLIKELY(!tag)) {
        sy_vmem_fault(arena, value, size, found_size);
        return fail_with(EINVAL);
    }
    sy_leavings_settle(arena, &leavings);
    return 0;
}

int sy_vmem_resize(sy_vmem *arena, uintptr_t value, size_t size, size_t new_size) {
    sy_leavings leavings = {0};
    size_t rounded, found_size;
    if (!sy_vmem_round(arena, new_size, &rounded)) return fail_with(EINVAL);
    sy_lock_acquire(&arena->lock);
    bool ready = sy_tags_ready(arena, 1);
    sy_boundary *tag = find_exact(arena, value, size, &found_size);
    bool done = ready && tag && sy_segment_resize(arena, tag, rounded, &leavings);
    sy_lock_release(&arena->lock);
    if (!tag) {
        sy_vmem_fault(arena, value, size, found_size);
        return fail_with(EINVAL);
    }
    sy_leavings_settle(arena, &leavings);
    return done ? 0 : fail_with(ENOMEM);
}

/* ---- fork ---- */

void sy_vmem_each(void (*visit)(sy_vmem *arena, void *arg), void *arg) {
    sy_lock_acquire(&vmem_vmem_list_lock);
    for (sy_vmem *arena = arenas; arena; arena = arena->next) visit(arena, arg);
    sy_lock_release(&vmem_vmem_list_lock);
}

static void hold_arenas(void) {
    if (!sy_lock_hold(&vmem_vmem_list_lock)) return;
    for (sy_vmem *arena = arenas; arena; arena = arena->next) sy_lock_hold(&arena->lock);
}

static void drop_arenas(void) {
    if (!sy_lock_has(&vmem_vmem_list_lock)) return;
    for (sy_vmem *arena = arenas; arena; arena = arena->next) sy_lock_drop(&arena->lock);
    sy_lock_drop(&vmem_vmem_list_lock);
}

const sy_part sy_arenas_part = {.hold = hold_arenas, .drop = drop_arenas};

/* ==== src/watch/access.c ==== */

/*
 * access.c: see access.h. Where the address is none at all the system does not say which it was;
 * but the register is as it was at the instruction, and has what was read from a pattern, and
 * perhaps the offset of a member added.
 */
/*
 * access.h: accesses that the system refuses, as far as something is known of them: of guarded
 * objects, and by pointers that were read from where watch.h had written a pattern. The option
 * `explain` decides who is heard.
 *
 * Below: fault.h, options.h, os/. Used by guard.c and watch.c.
 */
#ifndef SY_WATCH_ACCESS_H
#define SY_WATCH_ACCESS_H

/* What watch.h fills objects with: free ones, and those just allocated. What illumos made famous. A
 * pointer read from either leads nowhere. */
#define SY_PATTERN_FREE UINT64_C(0xdeadbeefdeadbeef)
#define SY_PATTERN_NEW  UINT64_C(0xbaddcafebaddcafe)

/* Tells the fault that an access was, and true; false: nothing is known of it. Takes no lock; as
 * safe in the handler of a signal as a report is. */
typedef bool sy_explainer(const sy_os_access *access);

/* From now on there are guarded objects, of which `explain` knows; or patterns. */
void sy_access_expect_guards(sy_explainer *explain);
void sy_access_expect_patterns(void);

/* One by a pointer that was read from a pattern, as the registers have it. */
bool sy_access_explain_pattern(const sy_os_access *access);

#endif

/* No member lies further from the start of what a pointer is thought to lead to. */
static const uint64_t MEMBER_MAX = (uint64_t)1 << 20;

enum { TAG_BITS = 8 }; /* above an address, where the processor may leave them out */

static _Atomic(sy_explainer *) guards;
static _Atomic bool patterns;

/* ---- patterns ---- */

static bool is_near(uint64_t value, uint64_t pattern) {
    return value - pattern + MEMBER_MAX <= 2 * MEMBER_MAX;
}

/* Whether the access can have been by such a pointer; the registers decide. */
static bool can_be_of(const sy_os_access *access, uint64_t pattern) {
    const uint64_t untagged = UINT64_MAX >> TAG_BITS;
    uint64_t distance = (access->address - pattern + MEMBER_MAX) & untagged;
    return !access->placed || distance <= 2 * MEMBER_MAX;
}

static bool explain_by(const sy_os_access *access, uint64_t pattern, sy_fault_kind kind) {
    if (!can_be_of(access, pattern)) return false;
    for (unsigned i = 0; i < access->registers; i++) {
        if (!is_near(access->values[i], pattern)) continue;
        sy_fault_tell(&(sy_fault){
            .kind = kind,
            .cache = "",
            .address = (void *)access->values[i],
            .held_in = sy_os_register_name(i),
            .access = (sy_access)access->way,
        });
        return true;
    }
    return false;
}

bool sy_access_explain_pattern(const sy_os_access *access) {
    return explain_by(access, SY_PATTERN_FREE, SY_FAULT_FREED_POINTER) ||
           explain_by(access, SY_PATTERN_NEW, SY_FAULT_UNWRITTEN_POINTER);
}

/* ---- the handler ---- */

static bool explain_access(const sy_os_access *access) {
    sy_explainer *of_guards = atomic_load_explicit(&guards, memory_order_acquire);
    if (of_guards && of_guards(access)) return true;
    return atomic_load_explicit(&patterns, memory_order_relaxed) &&
           sy_access_explain_pattern(access);
}

static sy_explain watch_access_option(void) {
    return (sy_explain)atomic_load_explicit(&sy_options_now.explain, memory_order_relaxed);
}

void sy_access_expect_guards(sy_explainer *of_guards) {
    if (watch_access_option() == SY_EXPLAIN_NO) return;
    atomic_store_explicit(&guards, of_guards, memory_order_release);
    sy_os_on_bad_access(explain_access);
}

void sy_access_expect_patterns(void) {
    if (watch_access_option() == SY_EXPLAIN_NO) return;
    atomic_store_explicit(&patterns, true, memory_order_relaxed);
    if (watch_access_option() == SY_EXPLAIN_YES) sy_os_on_bad_access(explain_access);
}

/* ==== src/watch/callback.c ==== */

/*
 * callback.c: notes each call of a function of the program's, and reports one that did not return.
 */

SY_TLS sy_callback_note sy_callback_now;

/* The destructor of cache "order" */
static void add_callee(const sy_callee *callee) {
    sy_report_text("the ");
    sy_report_text(callee->function);
    if (!callee->of) return;
    sy_report_text(" of ");
    sy_report_text(callee->of);
    sy_report_text(" \"");
    sy_report_text(callee->name);
    sy_report_text("\"");
}

static SY_COLD void sy_callback_report(const char *how, const char *next) {
    if (sy_report_begin()) {
        sy_report_loud();
        sy_report_text("slabyard: callback left: ");
        add_callee(&sy_callback_now.callee);
        sy_report_text(how);
        sy_report_quiet();
        sy_report_text("\n");
        sy_report_place(sy_stack_whole());
        sy_report_text("  next: ");
        sy_report_text(next);
        sy_report_text("\n");
        sy_report_end();
    }
    sy_os_abort();
}

SY_COLD void sy_callback_unwound(void) {
    sy_callback_report(" was left by an exception, or by the end of its thread",
                       "catch what it throws, and let it return");
}

/* The stack of a fiber may be gone with the frame that is noted. */
SY_COLD bool sy_callback_returns_elsewhere(uintptr_t frame) {
    return sy_stack_is_own(frame) &&
           sy_callback_return((const uintptr_t *)frame) != sy_callback_now.returns_to;
}

SY_COLD void sy_callback_jumped(uintptr_t frame) {
    bool both = sy_stack_is_own(frame) && sy_stack_is_own((uintptr_t)sy_callback_now.frame);
    if (!both || sy_os_on_signal_stack()) return;
    sy_callback_report(" was left by longjmp, before this call",
                       "look for the longjmp, and let the function return");
}

/* ==== src/watch/cxx_name.c ==== */

/*
 * cxx_name.c: see cxx_name.h. A library that is loaded for it comes first: its heap is sound. The
 * program's own is asked for by name; or referred to, where a program that is linked statically can
 * load nothing, and has the function if it is one of C++.
 */
/*
 * cxx_name.h: names of C++ functions as their authors write them, by the C++ library's own
 * function. Works in a child process that is made for it: it allocates, and may load a library.
 *
 * Below: os/. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_CXX_NAME_H
#define SY_WATCH_CXX_NAME_H

/* What `mangled` stands for, kept as long as the child lives. NULL: it is no such name, or there
 * is no C++ library. */
const char *sy_cxx_name(const char *mangled);

#endif

#pragma weak __cxa_demangle
extern char *__cxa_demangle(const char *name, char *into, size_t *length, int *status);

typedef char *demangler(const char *name, char *into, size_t *length, int *status);

static demangler *find_demangler(void) {
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    static const char function[] = "__cxa_demangle";
    void *found = NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !found; i++) {
        void *library = sy_os_load(libraries[i]);
        if (library) found = sy_os_symbol(library, function);
    }
    if (!found) found = sy_os_symbol(NULL, function);
    return found ? (demangler *)found : __cxa_demangle;
}

const char *sy_cxx_name(const char *mangled) {
    static bool sought;
    static demangler *demangle;
    if (strncmp(mangled, "_Z", 2) != 0) return NULL;
    if (!sought) demangle = find_demangler();
    sought = true;
    int status = -1;
    char *name = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    if (!name || status != 0) return NULL;
    char *part = strstr(name, " [clone "); /* of the function that was compiled apart */
    if (part) *part = 0;
    return name;
}

/* ==== src/watch/dwarf.c ==== */

/*
 * dwarf.c: see dwarf.h. The part of libdw's interface that is used is declared here, so that its
 * headers are not needed; it has been the same since elfutils 0.171, and its soname says so.
 *
 * Addresses are the process's (Dwarf_Addr with the bias of its module) unless they say otherwise.
 */
/*
 * dwarf.h: what debug information says of an address, by libdw. Works in a child process that is
 * made for it: it allocates, may hang, and leaves all of it open.
 *
 * Below: rust_name.h, cxx_name.h, whose.h, os/. Used by symbols.c.
 */
#ifndef SY_WATCH_DWARF_H
#define SY_WATCH_DWARF_H

/*
 * whose.h: whose a function of a stack is, by its name and its source: so that a report can begin
 * with the program's function that made the call, and end with the first one of the program.
 *
 * Nothing below. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_WHOSE_H
#define SY_WATCH_WHOSE_H

typedef enum sy_whose {
    SY_WHOSE_PROGRAM = 'p',  /* the program's, or not known */
    SY_WHOSE_OWN = 'o',      /* Slabyard's: the C core, slabyard.hpp, the Rust crate */
    SY_WHOSE_LANGUAGE = 'l', /* of the library of C++ or Rust: containers, operator new, Box */
    SY_WHOSE_RUNTIME = 'r',  /* of Rust's runtime, for what it keeps until the process ends */
    SY_WHOSE_START = 's',    /* of Rust's runtime, around main or a thread's function */
} sy_whose;

/* `name`: as in the language, with its namespaces where they are known. `path`: of its source, NULL
 * where that is not known. `rust`: the name was mangled as Rust does it. */
sy_whose sy_whose_function(const char *name, const char *path, bool rust);

/* Whether a file that is loaded, of this path, is Slabyard's shared library. */
bool sy_whose_library(const char *file);

#endif

/* Loads the library and tells it of this process. False: there is none, or it could not. */
bool sy_dwarf_open(void);

typedef void sy_dwarf_line(void *arg, sy_whose whose, const char *function, const char *path,
                           int line);

/*
 * Tells the functions that the code at `address` is of: those inlined there, the innermost first,
 * then the one they are in. A path is what the compiler was given, or the last two names of it if
 * that was an absolute one; of a source of this library it begins with slabyard/src/. False: there
 * is no debug information of it; nothing was told.
 */
bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg);

/* The function by the tables of symbols that the library finds, those in files of debug information
 * included, as it stands there; NULL: none. It lies `*behind` bytes before. */
const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind);

#endif

/*
 * rust_name.h: names of Rust functions as their authors write them. The compiler mangles them in
 * one of two ways, both of which are found in one program (the standard library is compiled apart):
 *
 *     _ZN4shop5order17h20d18f73558f62dfE     legacy:  shop::order
 *     _RNvCs1234_4shop5order                 v0:      shop::order   (Rust RFC 2603)
 *
 * Allocates nothing and follows no pointer but those that it is given; the name may be any text.
 * Below: nothing. Used by symbols.c and dwarf.c.
 */
#ifndef SY_WATCH_RUST_NAME_H
#define SY_WATCH_RUST_NAME_H

enum { SY_RUST_NAME_MAX = 1024 }; /* of a function with the names of its types: room enough */

/* Writes the name that `mangled` stands for, without hashes; what does not fit is cut off. False:
 * it is no name of Rust's, and `name` holds nothing of use. */
bool sy_rust_name(const char *mangled, char name[SY_RUST_NAME_MAX]);

#endif

/* ---- libdw ---- */

typedef struct die {
    void *at, *unit, *abbreviation;
    long reserved;
} die;

typedef struct attribute {
    unsigned code, form;
    void *value, *unit;
} attribute;

typedef struct callbacks {
    void *find_elf, *find_debuginfo, *section_address;
    char **debuginfo_path;
} callbacks;

enum {
    TAG_CLASS = 0x02,
    TAG_ENUMERATION = 0x04,
    TAG_LEXICAL_BLOCK = 0x0b,
    TAG_STRUCTURE = 0x13,
    TAG_UNION = 0x17,
    TAG_INLINED = 0x1d,
    TAG_MODULE = 0x1e,
    TAG_TRY_BLOCK = 0x32,
    TAG_CATCH_BLOCK = 0x25,
    TAG_SUBPROGRAM = 0x2e,
    TAG_NAMESPACE = 0x39,
    AT_COMP_DIR = 0x1b,
    AT_CALL_FILE = 0x58,
    AT_CALL_LINE = 0x59,
    AT_LINKAGE_NAME = 0x6e,
};

/* Its functions, each under its name. Written by address in `names`, which has them in this order.
 */
static struct {
    void *(*dwfl_begin)(const callbacks *);
    int (*dwfl_linux_proc_report)(void *session, int process);
    int (*dwfl_report_end)(void *session, void *removed, void *arg);
    void *(*dwfl_addrmodule)(void *session, uint64_t address);
    die *(*dwfl_module_addrdie)(void *module, uint64_t address, uint64_t *bias);
    const char *(*dwfl_module_addrinfo)(void *module, uint64_t address, uint64_t *behind,
                                        void *symbol, void *index, void *elf, void *bias);
    die *(*dwfl_module_nextcu)(void *module, die *unit, uint64_t *bias);
    int (*dwarf_haspc)(die *, uint64_t address);
    int (*dwarf_cu_info)(void *unit, void *version, void *type, die *whole, die *split, void *id,
                         void *address_size, void *offset_size);
    int (*dwarf_child)(die *of, die *first);
    int (*dwarf_siblingof)(die *of, die *next);
    int (*dwarf_tag)(die *);
    const char *(*dwarf_diename)(die *);
    attribute *(*dwarf_attr)(die *, unsigned code, attribute *);
    attribute *(*dwarf_attr_integrate)(die *, unsigned code, attribute *);
    const char *(*dwarf_formstring)(attribute *);
    int (*dwarf_formudata)(attribute *, uint64_t *value);
    int (*dwarf_getsrcfiles)(die *unit, void **files, size_t *count);
    const char *(*dwarf_filesrc)(void *files, size_t index, uint64_t *time, uint64_t *length);
    void *(*dwarf_getsrc_die)(die *unit, uint64_t address);
    const char *(*dwarf_linesrc)(void *line, uint64_t *time, uint64_t *length);
    int (*dwarf_lineno)(void *line, int *number);
    void *dwfl_linux_proc_find_elf, *dwfl_standard_find_debuginfo;
} dw;

static const char *const watch_dwarf_names[] = {
    "dwfl_begin",
    "dwfl_linux_proc_report",
    "dwfl_report_end",
    "dwfl_addrmodule",
    "dwfl_module_addrdie",
    "dwfl_module_addrinfo",
    "dwfl_module_nextcu",
    "dwarf_haspc",
    "dwarf_cu_info",
    "dwarf_child",
    "dwarf_siblingof",
    "dwarf_tag",
    "dwarf_diename",
    "dwarf_attr",
    "dwarf_attr_integrate",
    "dwarf_formstring",
    "dwarf_formudata",
    "dwarf_getsrcfiles",
    "dwarf_filesrc",
    "dwarf_getsrc_die",
    "dwarf_linesrc",
    "dwarf_lineno",
    "dwfl_linux_proc_find_elf",
    "dwfl_standard_find_debuginfo",
};

enum { watch_dwarf_FUNCTIONS = sizeof watch_dwarf_names / sizeof *watch_dwarf_names };
_Static_assert(sizeof dw == watch_dwarf_FUNCTIONS * sizeof(void *), "a name for each function");

static void *session;

/* The source of this file, as debug information has it, up to the folder of all sources; or this
 * whole path, where all sources are one file. NULL: there is none of this library. */
static const char *own_path;
static size_t own_length;

static bool load_libdw(void) {
    void *library = sy_os_load("libdw.so.1");
    if (!library) return false;
    for (size_t i = 0; i < watch_dwarf_FUNCTIONS; i++) {
        void *function = sy_os_symbol(library, watch_dwarf_names[i]);
        if (!function) return false;
        memcpy((char *)&dw + i * sizeof function, &function, sizeof function);
    }
    return true;
}

/* ---- words ---- */

/* A name in words. In the child nobody else uses the room for it. */
static const char *in_words(const char *name, bool *rust) {
    static char words[SY_RUST_NAME_MAX];
    *rust = sy_rust_name(name, words);
    if (*rust) return words;
    const char *cxx = sy_cxx_name(name);
    return cxx ? cxx : name;
}

/* Of a function that is local to its source (gcc), or whose debug information is lines alone, the
 * table of symbols knows more. */
static const char *name_by_symbol(const char *short_name, uintptr_t address, bool *rust) {
    uint64_t behind;
    const char *symbol = sy_dwarf_symbol(address, &behind);
    if (!symbol || strcmp(symbol, short_name) == 0) return short_name;
    const char *name = in_words(symbol, rust);
    return name != symbol && strstr(name, short_name) ? name : short_name;
}

/* With its namespaces and what it takes, where that is known. `address`: of code that is the
 * function's own, 0 if that was inlined. */
static const char *name_of(die *function, uintptr_t address, bool *rust) {
    attribute linkage;
    *rust = false;
    if (dw.dwarf_attr_integrate(function, AT_LINKAGE_NAME, &linkage))
        return in_words(dw.dwarf_formstring(&linkage), rust);
    const char *name = dw.dwarf_diename(function);
    if (!name) return "?";
    return address ? name_by_symbol(name, address, rust) : name;
}

static bool is_own_file(const char *path) {
    return own_path && strncmp(path, own_path, own_length) == 0;
}

/* Of a source of this library, wherever it was built. */
static const char *own_file(const char *path) {
    static char file[256] = "slabyard/src/";
    static const size_t start = sizeof "slabyard/src/" - 1;
    const char *below = path[own_length] ? path + own_length : "slabyard.c";
    if (strlen(below) >= sizeof file - start) return below;
    strcpy(file + start, below);
    return file;
}

/* As the compiler was given it, if that was relative to where it ran; else its last two names. */
static const char *shortened(const char *path, const char *directory) {
    if (is_own_file(path)) return own_file(path);
    size_t length = directory ? strlen(directory) : 0;
    if (length && strncmp(path, directory, length) == 0 && path[length] == '/') {
        path += length + 1;
        while (strncmp(path, "../", 3) == 0) path += 3;
    }
    if (*path != '/') return path;
    const char *last = strrchr(path, '/'), *first = last;
    while (first > path && first[-1] != '/') first--;
    return first > path ? first : last + 1;
}

static int watch_dwarf_number_of(die *of, unsigned code) {
    attribute found;
    uint64_t value = 0;
    if (!dw.dwarf_attr(of, code, &found) || dw.dwarf_formudata(&found, &value) != 0) return 0;
    return (int)value;
}

static const char *file_of_call(die *inlined, die *unit) {
    void *files;
    size_t count;
    size_t index = (size_t)watch_dwarf_number_of(inlined, AT_CALL_FILE);
    if (dw.dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count) return NULL;
    return dw.dwarf_filesrc(files, index, NULL, NULL);
}

/* Compilers that write no table from addresses to units (clang) leave it to the ranges of each; if
 * others in the same file wrote theirs, the address seems to be of the unit before it. */
static die *unit_at(uint64_t address, uint64_t *bias) {
    void *module = dw.dwfl_addrmodule(session, address);
    if (!module) return NULL;
    die *unit = dw.dwfl_module_addrdie(module, address, bias);
    if (unit && dw.dwarf_haspc(unit, address - *bias) > 0) return unit;
    unit = NULL;
    do unit = dw.dwfl_module_nextcu(module, unit, bias);
    while (unit && dw.dwarf_haspc(unit, address - *bias) <= 0);
    return unit;
}

/* Where the code of a scope is from. */
typedef struct source {
    const char *path, *directory;
    int line;
} source;

static source source_at(die *unit, uint64_t address) {
    source at = {.line = 0};
    attribute directory;
    void *line = dw.dwarf_getsrc_die(unit, address);
    if (line) at.path = dw.dwarf_linesrc(line, NULL, NULL);
    if (line) dw.dwarf_lineno(line, &at.line);
    if (dw.dwarf_attr(unit, AT_COMP_DIR, &directory))
        at.directory = dw.dwarf_formstring(&directory);
    return at;
}

static void find_own_path(void) {
    static const char here[] = "watch/dwarf.c";
    uint64_t bias = 0, address = (uintptr_t)&sy_dwarf_open;
    die *unit = unit_at(address, &bias);
    own_path = unit ? source_at(unit, address - bias).path : NULL;
    own_length = own_path ? strlen(own_path) : 0;
    if (own_length > strlen(here) && strcmp(own_path + own_length - strlen(here), here) == 0)
        own_length -= strlen(here);
}

bool sy_dwarf_open(void) {
    if (!load_libdw()) return false;
    static callbacks ways;
    ways.find_elf = dw.dwfl_linux_proc_find_elf;
    ways.find_debuginfo = dw.dwfl_standard_find_debuginfo;
    session = dw.dwfl_begin(&ways);
    if (!session || dw.dwfl_linux_proc_report(session, sy_os_process()) != 0) return false;
    if (dw.dwfl_report_end(session, NULL, NULL) != 0) return false;
    find_own_path();
    return true;
}

/* ---- functions ---- */

/* What the unit says of functions may be in a file of its own (-gsplit-dwarf). */
static die whole_unit_of(die *unit) {
    die split = {0};
    dw.dwarf_cu_info(unit->unit, NULL, NULL, NULL, &split, NULL, NULL, NULL);
    return split.at ? split : *unit;
}

enum { SCOPES_MAX = 256 }; /* blocks and inlined functions in one another */

typedef struct scopes {
    uint64_t address;
    size_t count;
    die at[SCOPES_MAX]; /* the function first, then each in the one before */
} scopes;

static bool is_at(die *scope, uint64_t address) { return dw.dwarf_haspc(scope, address) > 0; }

/* What functions are written in. */
static bool may_hold_functions(int tag) {
    return tag == TAG_NAMESPACE || tag == TAG_STRUCTURE || tag == TAG_CLASS || tag == TAG_UNION ||
           tag == TAG_ENUMERATION || tag == TAG_MODULE;
}

/* Finds the function that the address is of, in what is written within `outer`. With `nested` also
 * in functions that the address is not of: theirs may lie elsewhere. */
static bool find_function(die *outer, bool nested, unsigned depth, scopes *found) {
    die inner;
    int end = depth ? dw.dwarf_child(outer, &inner) : 1;
    for (; end == 0; end = dw.dwarf_siblingof(&inner, &inner)) {
        int tag = dw.dwarf_tag(&inner);
        bool function = tag == TAG_SUBPROGRAM;
        if (function && is_at(&inner, found->address)) {
            found->at[0] = inner;
            found->count = 1;
            return true;
        }
        bool within = may_hold_functions(tag) || (nested && (function || tag == TAG_LEXICAL_BLOCK));
        if (within && find_function(&inner, nested, depth - 1, found)) return true;
    }
    return false;
}

/* The scope within the last one that the address is of; false: there is none. */
static bool find_inner(scopes *found) {
    die *inner = &found->at[found->count];
    int end = dw.dwarf_child(&found->at[found->count - 1], inner);
    for (; end == 0; end = dw.dwarf_siblingof(inner, inner)) {
        int tag = dw.dwarf_tag(inner);
        bool scope = tag == TAG_INLINED || tag == TAG_LEXICAL_BLOCK || tag == TAG_TRY_BLOCK ||
                     tag == TAG_CATCH_BLOCK;
        if (scope && is_at(inner, found->address)) return true;
    }
    return false;
}

/* The scopes that are around one another in the code. (Those that libdw itself finds are of
 * functions outside of namespaces and types alone.) */
static void find_scopes(die *unit, scopes *found) {
    enum { DEPTH = 32 }; /* namespaces, types and functions in one another */
    if (!find_function(unit, false, DEPTH, found)) find_function(unit, true, DEPTH, found);
    while (found->count && found->count < SCOPES_MAX && find_inner(found)) found->count++;
}

/* What the compiler put into a function of the core is of the core. */
static bool is_of_core(die *function) {
    const char *name = dw.dwarf_diename(function);
    return name && strncmp(name, "sy_", 3) == 0;
}

/* `address`: of the process, if the code is of no function that was inlined; else 0. */
static void tell_function(sy_dwarf_line *tell, void *arg, die *function, uintptr_t address,
                          const source *at, bool core) {
    bool rust;
    const char *name = name_of(function, address, &rust);
    bool own = core || (at->path && is_own_file(at->path));
    sy_whose whose = own ? SY_WHOSE_OWN : sy_whose_function(name, at->path, rust);
    tell(arg, whose, name, at->path ? shortened(at->path, at->directory) : NULL, at->line);
}

bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg) {
    static scopes found; /* in the child nobody else uses it */
    uint64_t bias = 0;
    die *unit = unit_at(address, &bias);
    if (!unit) return false;
    found.address = address - bias;
    found.count = 0;
    die whole = whole_unit_of(unit);
    find_scopes(&whole, &found);
    bool core = found.count && is_of_core(&found.at[0]);
    source at = source_at(unit, found.address);
    for (size_t i = found.count; i > 0; i--) {
        die *scope = &found.at[i - 1];
        int tag = dw.dwarf_tag(scope);
        if (tag == TAG_INLINED || tag == TAG_SUBPROGRAM)
            tell_function(tell, arg, scope, tag == TAG_SUBPROGRAM ? address : 0, &at, core);
        if (tag != TAG_INLINED) continue;
        at.path = file_of_call(scope, &whole);
        at.line = watch_dwarf_number_of(scope, AT_CALL_LINE);
    }
    return found.count > 0;
}

const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind) {
    uint64_t symbol[8]; /* of ELF, with room to spare */
    void *module = dw.dwfl_addrmodule(session, address);
    if (!module) return NULL;
    return dw.dwfl_module_addrinfo(module, address, behind, symbol, NULL, NULL, NULL);
}

/* ==== src/watch/explain.c ==== */

/*
 * explain.c: what a tool cannot know of an address: which object of which cache it belongs to, and
 * who had that. Called at the end of the tool's report.
 */

static void add_trace(const char *done, const sy_stamp *stamp) {
    sy_trace trace = sy_stamp_trace(stamp);
    sy_report_trace(done, &trace);
}

/* 4 bytes behind | 8 bytes before | 16 bytes into */
static void watch_explain_add_place(const sy_record *record, const char *address, const char *object) {
    size_t size = sy_record_size(record);
    ptrdiff_t offset = address - object;
    bool behind = offset >= 0 && (size_t)offset >= size;
    sy_report_exactly(offset < 0 ? (uint64_t)-offset : (uint64_t)offset - (behind ? size : 0));
    sy_report_text(offset < 0 ? " before" : behind ? " behind" : " into");
    sy_report_text(sy_record_state(record) == SY_OBJECT_LIVE ? " a live object of "
                                                             : " a freed object of ");
    sy_report_exactly(size);
}

static void add_object_headline(const sy_watch *watch, const sy_record *record, const void *address,
                                const void *object) {
    sy_report_loud();
    sy_report_text("slabyard: ");
    sy_report_hex((uintptr_t)address);
    sy_report_text(" is ");
    if (sy_record_state(record) == SY_OBJECT_FRESH)
        sy_report_text("where no object has been");
    else
        watch_explain_add_place(record, address, object);
    sy_report_text(" in cache \"");
    sy_report_text(watch->name);
    sy_report_text("\"");
    sy_report_quiet();
    sy_report_text("\n");
}

void sy_watch_explain(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object) {
    if (!sy_report_begin()) return;
    add_object_headline(watch, record, address, object);
    if (sy_record_state(record) != SY_OBJECT_FRESH) {
        add_trace("allocated", &record->allocated);
        if (sy_record_state(record) != SY_OBJECT_LIVE) add_trace("freed", &record->freed);
    }
    sy_report_end();
}

/* ==== src/watch/fail.c ==== */

/*
 * fail.c: the rules, from their text to the failures. One lock guards them, taken by whoever asks:
 * only caches that have their fast path shut do, and calls to the system.
 */

/*
 * glob.h: names with * (any text) and ? (any one character), as in file names.
 *
 * Lowest layer: includes nothing of the project.
 */
#ifndef SY_BASE_GLOB_H
#define SY_BASE_GLOB_H

/* Whether the pattern of `length` characters means `name`. Where it does not fit, the last * takes
 * one character more: that is enough, since what an earlier one could take a later one can too. */
static inline bool sy_glob(const char *pattern, size_t length, const char *name) {
    size_t at = 0, star = length; /* length: there was none */
    const char *resume = name;
    while (*name) {
        if (at < length && pattern[at] == '*') {
            star = at++;
            resume = name;
        } else if (at < length && (pattern[at] == '?' || pattern[at] == *name)) {
            at++;
            name++;
        } else if (star < length) {
            at = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (at < length && pattern[at] == '*') at++;
    return at == length;
}

#endif

enum { RULES_MAX = 16 };

static const uint64_t BILLION = 1000000000; /* probabilities are in billionths */

typedef enum how { NTH, watch_fail_EVERY, watch_fail_RANDOM, LARGER } how;

/* Text that is part of another. */
typedef struct watch_fail_piece {
    const char *start, *end;
} watch_fail_piece;

typedef struct rule {
    bool system; /* means calls to the system */
    how how;
    watch_fail_piece names;     /* in the text of its rules; empty: all */
    uint64_t number; /* which, each how many, of a billion how many, bytes */
    uint64_t seed;
    uint64_t seen;
} rule;

typedef struct rules {
    size_t count;
    rule rule[RULES_MAX];
    char text[SY_OPTION_TEXT_MAX + 1];
} rules;

static sy_lock watch_fail_lock = SY_LOCK_INIT(SY_RANK_FAILURES);
static rules now; /* guarded by it */

_Atomic bool sy_fail_armed;
static _Atomic uint64_t watch_fail_failures;

/* ---- from text ---- */

static bool is_empty(watch_fail_piece text) { return text.start == text.end; }

static bool watch_fail_begins(watch_fail_piece *text, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(text->end - text->start) < length || memcmp(text->start, word, length) != 0)
        return false;
    text->start += length;
    return true;
}

static bool watch_fail_is(watch_fail_piece text, const char *word) { return watch_fail_begins(&text, word) && is_empty(text); }

/* What follows the last colon of *text, or all of it, is taken from its end, with the colon. */
static watch_fail_piece last_word(watch_fail_piece *text) {
    const char *start = text->end;
    while (start > text->start && start[-1] != ':') start--;
    const watch_fail_piece word = {start, text->end};
    text->end = start > text->start ? start - 1 : start;
    return word;
}

static bool read_number(watch_fail_piece text, uint64_t *number) {
    uint64_t value = 0;
    for (const char *at = text.start; at < text.end; at++) {
        if (*at < '0' || *at > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) return false;
    }
    *number = value;
    return !is_empty(text);
}

/* "0.01", ".5", "1": above 0, at most 1. */
static bool read_probability(watch_fail_piece text, uint64_t *billionths) {
    const char *point = text.start;
    while (point < text.end && *point != '.') point++;
    uint64_t whole = 0, part = 0;
    watch_fail_piece fraction = {point < text.end ? point + 1 : point, text.end};
    size_t digits = (size_t)(fraction.end - fraction.start);
    if (digits > 9 || (point > text.start && !read_number((watch_fail_piece){text.start, point}, &whole)) ||
        (point < text.end && !read_number(fraction, &part)) || whole > 1)
        return false;
    for (; digits < 9; digits++) part *= 10;
    *billionths = whole * BILLION + part;
    return *billionths > 0 && *billionths <= BILLION;
}

/* Takes WHEN from the end of *text. */
static bool read_when(watch_fail_piece *text, rule *read) {
    watch_fail_piece word = last_word(text), rest = *text;
    if (watch_fail_begins(&word, "size>")) {
        read->how = LARGER;
        return read_number(word, &read->number);
    }
    if (!read_number(word, &read->number)) return false;
    const watch_fail_piece before = last_word(&rest);
    if (watch_fail_is(before, "every")) {
        read->how = watch_fail_EVERY;
        *text = rest;
    } else if (watch_fail_is(last_word(&rest), "random")) {
        read->how = watch_fail_RANDOM;
        read->seed = read->number;
        *text = rest;
        return read_probability(before, &read->number);
    }
    return read->number > 0 && !watch_fail_is(before, "random");
}

/* Whether one of its names, which have | between, stands for this one. */
static bool means(const rule *one, const char *name) {
    if (is_empty(one->names)) return true;
    for (watch_fail_piece each = {one->names.start, one->names.start};; each.start = ++each.end) {
        while (each.end < one->names.end && *each.end != '|') each.end++;
        if (sy_glob(each.start, (size_t)(each.end - each.start), name)) return true;
        if (each.end == one->names.end) return false;
    }
}

static bool means_a_call(const rule *one) {
    const char *const *call = sy_os_calls;
    while (*call && !means(one, *call)) call++;
    return *call != NULL;
}

static bool read_rule(watch_fail_piece text, rule *read) {
    if (is_empty(text) || *text.start == ':' || !read_when(&text, read)) return false;
    read->system = watch_fail_begins(&text, "os:");
    read->names = text;
    if (!read->system) return !watch_fail_is(text, "os");
    return !is_empty(text) && read->how != LARGER && means_a_call(read);
}

/* `read` is all zero before, and has a copy of the text, of which its rules are parts. */
static bool read_rules(const char *text, rules *read) {
    size_t length = strnlen(text, sizeof read->text);
    if (length == sizeof read->text) return false;
    memcpy(read->text, text, length);
    watch_fail_piece part = {read->text, read->text};
    while (*part.start != '\0') {
        while (*part.end != '\0' && *part.end != '+') part.end++;
        if (read->count == RULES_MAX || !read_rule(part, &read->rule[read->count++])) return false;
        if (*part.end == '\0') return true;
        part.start = ++part.end;
    }
    return length == 0;
}

bool sy_fail_valid(const char *specification) {
    rules read = {.count = 0};
    return read_rules(specification, &read);
}

/* ---- who asks ---- */

/* The finaliser of splitmix64: the number of an allocation decides about it, whoever asks. */
static uint64_t mix(uint64_t seed, uint64_t count) {
    uint64_t bits = seed + count * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

static bool watch_fail_is_due(const rule *one, size_t size) {
    switch (one->how) {
    case NTH: return one->seen == one->number;
    case watch_fail_EVERY: return one->seen % one->number == 0;
    case watch_fail_RANDOM: return mix(one->seed, one->seen) % BILLION < one->number;
    case LARGER: return size > one->number;
    }
    return false;
}

/* The count of the first rule by which it is to fail; 0: none. Each that means it counts it. */
static uint64_t watch_fail_count_one(bool system, const char *name, size_t size) {
    uint64_t due = 0;
    sy_lock_acquire(&watch_fail_lock);
    for (rule *one = now.rule; one < now.rule + now.count; one++) {
        if (one->system != system || !means(one, name)) continue;
        one->seen++;
        if (due == 0 && watch_fail_is_due(one, size)) due = one->seen;
    }
    if (due != 0) atomic_fetch_add_explicit(&watch_fail_failures, 1, memory_order_relaxed);
    sy_lock_release(&watch_fail_lock);
    return due;
}

bool sy_fail_due_armed(const char *cache, size_t size) {
    uint64_t count = watch_fail_count_one(false, cache, size);
    if (count == 0) return false;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: made allocation ");
    sy_text_add_number(&text, count);
    sy_text_add(&text, " of cache \"");
    sy_text_add(&text, cache);
    sy_text_add(&text, "\" (");
    sy_text_add_number(&text, size);
    sy_text_add(&text, " bytes) fail\n");
    sy_report_line(text.bytes, text.length);
    errno = ENOMEM;
    return true;
}

static bool call_due(const char *call) {
    uint64_t count = watch_fail_count_one(true, call, 0);
    if (count == 0) return false;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: made call ");
    sy_text_add_number(&text, count);
    sy_text_add(&text, " of sy_os_");
    sy_text_add(&text, call);
    sy_text_add(&text, " fail\n");
    sy_report_line(text.bytes, text.length);
    return true;
}

bool sy_fail_wants(const char *cache) {
    bool wanted = false;
    sy_lock_acquire(&watch_fail_lock);
    for (const rule *one = now.rule; !wanted && one < now.rule + now.count; one++)
        wanted = !one->system && means(one, cache);
    sy_lock_release(&watch_fail_lock);
    return wanted;
}

/* ---- the doors ---- */

/* The text is a specification. */
static void watch_fail_set(const char *text) {
    bool calls = false, allocations = false;
    sy_lock_acquire(&watch_fail_lock);
    now = (rules){.count = 0};
    read_rules(text, &now);
    for (const rule *one = now.rule; one < now.rule + now.count; one++)
        *(one->system ? &calls : &allocations) = true;
    atomic_store_explicit(&watch_fail_failures, 0, memory_order_relaxed);
    atomic_store_explicit(&sy_fail_armed, allocations, memory_order_relaxed);
    sy_os_set_failing(calls ? call_due : NULL);
    sy_lock_release(&watch_fail_lock);
}

void sy_fail_apply_option(void) {
    uint64_t nothing;
    char text[SY_OPTION_TEXT_MAX + 1];
    if (!sy_options_take(SY_LATE_FAILURES, &nothing)) return;
    sy_options_failures(text);
    watch_fail_set(text);
}

int sy_set_failures(const char *specification) {
    const char *text = specification ? specification : "";
    uint64_t said_before;
    if (!sy_fail_valid(text)) {
        errno = EINVAL;
        return -1;
    }
    sy_options_load();
    sy_options_take(SY_LATE_FAILURES, &said_before);
    watch_fail_set(text);
    return 0;
}

uint64_t sy_failures(void) { return atomic_load_explicit(&watch_fail_failures, memory_order_relaxed); }

static int start_failures(void) {
    sy_fail_apply_option();
    return 0;
}

static void hold_failures(void) { sy_lock_hold(&watch_fail_lock); }

static void drop_failures(void) { sy_lock_drop(&watch_fail_lock); }

const sy_part sy_fail_part = {
    .start = start_failures, .hold = hold_failures, .drop = drop_failures};

/* ==== src/watch/fault.c ==== */

/*
 * fault.c: see fault.h. A report is a headline and lines that are indented under it, each only when
 * something is known:
 *
 *     slabyard: overflow: 0x7f0012345644 in cache "order" (64 bytes)
 *       offset 68: 4 bytes past the end
 *       2 bytes damaged from offset 68:
 *         +68  41 41                                            AA
 *       allocated 1.2 ms ago by thread 4711:
 *         #0 make_order at orders.c:17
 *       next: run with SLABYARD=guard=all to stop at the write itself
 */

enum { DUMP_MAX = 64 }; /* damaged bytes that are shown */

static _Atomic(sy_fault_handler) handler;

sy_fault_handler sy_set_fault_handler(sy_fault_handler new_handler) {
    return atomic_exchange(&handler, new_handler);
}

/* What is said of a kind: what happened, and what if a guard says that it was a read, or a write;
 * what to do next; and what, if who allocated the object is known already, or all is guarded. */
typedef struct words {
    const char *what, *what_read, *what_write, *next, *next_of_known, *next_of_guarded;
} words;

static const char stop_at_write[] = "run with SLABYARD=guard=all to stop at the write itself";

static const char watch_it[] =
    "no guard was hit: set a watchpoint on the damaged bytes in a debugger";

static const words words_of[] = {
    [SY_FAULT_FOREIGN_POINTER] =
        {.what = "free of a pointer that is not an object of Slabyard's",
         .next = "see where the pointer comes from: another allocator, the stack, a variable, or "
                 "memory that was freed and has gone back"},
    [SY_FAULT_MISALIGNED_POINTER] =
        {.what = "free of a pointer that is not the start of an object",
         .next = "free the pointer that the allocation gave, not one into the object"},
    [SY_FAULT_WRONG_CACHE] = {.what = "free to the wrong cache",
                              .next = "free the object to what it was allocated from"},
    [SY_FAULT_DOUBLE_FREE] = {.what = "double free",
                              .next = "run with SLABYARD=audit to see who freed it before",
                              .next_of_known =
                                  "one of the two frees has to go: look for who owns the object"},
    [SY_FAULT_WRONG_SIZE] = {.what = "free with the wrong size",
                             .next = "free with the size that was asked for, or without one"},
    [SY_FAULT_NOT_ALLOCATED] = {.what = "free of a segment that is not allocated",
                                .next =
                                    "free a segment once, by the value that its allocation gave"},
    [SY_FAULT_SEGMENT_SIZE] = {.what = "free of a segment with the wrong size",
                               .next = "free the segment with the size that it was allocated with"},
    [SY_FAULT_OVERFLOW] = {.what = "overflow",
                           .next =
                               "run with SLABYARD=redzone,audit to see who allocated the object, "
                               "with SLABYARD=guard=all to stop at the write itself",
                           .next_of_known = stop_at_write,
                           .next_of_guarded = watch_it},
    [SY_FAULT_UNDERFLOW] = {.what = "underflow",
                            .next =
                                "run with SLABYARD=redzone,audit to see who allocated the object, "
                                "with SLABYARD=guard=all to stop at the write itself",
                            .next_of_known = stop_at_write,
                            .next_of_guarded = watch_it},
    [SY_FAULT_WRITE_AFTER_FREE] =
        {.what = "write after free",
         .next = "run with SLABYARD=poison,audit to see who freed the object, with "
                 "SLABYARD=guard=all to stop at the write itself",
         .next_of_known = stop_at_write,
         .next_of_guarded = watch_it},
    [SY_FAULT_SLAB_EDGE] = {.what = "slab edge overwritten",
                            .next =
                                "run with SLABYARD=redzone,audit to find the object that was left"},
    [SY_FAULT_GUARD_OVERFLOW] =
        {.what = "access behind an object (guard page)",
         .what_read = "read behind an object (guard page)",
         .what_write = "write behind an object (guard page)",
         .next = "look at the stack of this access in a debugger: an index or a length is too "
                 "large"},
    [SY_FAULT_GUARD_UNDERFLOW] =
        {.what = "access before an object (guard page)",
         .what_read = "read before an object (guard page)",
         .what_write = "write before an object (guard page)",
         .next = "look at the stack of this access in a debugger: an index is negative, or a "
                 "pointer was moved back"},
    [SY_FAULT_USE_AFTER_FREE] =
        {.what = "use after free (guard page)",
         .what_read = "read after free (guard page)",
         .what_write = "write after free (guard page)",
         .next = "look at the stack of this access in a debugger: a pointer was kept after the "
                 "free"},
    [SY_FAULT_NOT_PINNED] = {.what = "unpin without a pin",
                             .next = "unpin a handle once for each pin of it that gave an object"},
    [SY_FAULT_FREED_POINTER] =
        {.what = "access by a pointer read from freed memory",
         .next = "run with SLABYARD=guard=all to stop where the freed object is read",
         .next_of_guarded = "look for who freed the object that this pointer was read from"},
    [SY_FAULT_UNWRITTEN_POINTER] =
        {.what = "access by a pointer read from memory never written",
         .next = "look for the member that this access follows, and who was to set it"},
};

static const words *words_for(sy_fault_kind kind) {
    static const words unknown = {.what = "misuse", .next = "see slabyard/fault.h of this version"};
    bool known = (size_t)kind < sizeof words_of / sizeof *words_of && words_of[kind].what;
    return known ? &words_of[kind] : &unknown;
}

/* ---- the headline ---- */

static void add_quoted(const char *before, const char *name) {
    sy_report_text(before);
    sy_report_text("\"");
    sy_report_text(name);
    sy_report_text("\"");
}

/* (size 16) in arena "ports" */
static void watch_fault_add_segment(const sy_fault *fault) {
    sy_report_text(" (size ");
    sy_report_number(fault->object_size);
    add_quoted(") in arena ", fault->cache);
}

static void add_size(size_t size) {
    if (!size) return;
    sy_report_text(" (");
    sy_report_number(size);
    sy_report_text(" bytes)");
}

/* in cache "order" (64 bytes), belongs to "trade" */
static void add_object(const sy_fault *fault) {
    add_quoted(" in cache ", fault->cache);
    add_size(fault->object_size);
    if (fault->found_cache) add_quoted(", belongs to ", fault->found_cache);
}

static bool is_heap(const char *name) { return strcmp(name, "heap") == 0; }

/* freed to cache "order" (64 bytes), belongs to cache "trade" (48 bytes) */
static void add_both_caches(const sy_fault *fault) {
    if (fault->object_size)
        add_quoted(" freed to cache ", fault->cache);
    else if (is_heap(fault->cache))
        sy_report_text(" freed by sy_free");
    else
        add_quoted(" freed to heap ", fault->cache);
    add_size(fault->object_size);
    if (is_heap(fault->found_cache))
        sy_report_text(", belongs to sy_malloc's heap");
    else
        add_quoted(", belongs to cache ", fault->found_cache);
    add_size(fault->found_size);
}

static void add_place_of_pointer(const sy_fault *fault) {
    sy_report_text(" in register ");
    sy_report_text(fault->held_in);
}

static const char *what_of(const sy_fault *fault) {
    const words *said = words_for(fault->kind);
    if (fault->access == SY_ACCESS_READ && said->what_read) return said->what_read;
    if (fault->access == SY_ACCESS_WRITE && said->what_write) return said->what_write;
    return said->what;
}

static bool tells_found_size(const sy_fault *fault) {
    return fault->kind == SY_FAULT_SEGMENT_SIZE || fault->kind == SY_FAULT_WRONG_SIZE;
}

static void add_fault_headline(const sy_fault *fault) {
    bool segment = fault->kind == SY_FAULT_NOT_ALLOCATED || fault->kind == SY_FAULT_SEGMENT_SIZE;
    sy_report_loud();
    sy_report_text("slabyard: ");
    sy_report_text(what_of(fault));
    sy_report_text(": ");
    sy_report_hex((uintptr_t)fault->address);
    if (segment)
        watch_fault_add_segment(fault);
    else if (fault->held_in)
        add_place_of_pointer(fault);
    else if (fault->kind == SY_FAULT_WRONG_CACHE && fault->found_cache)
        add_both_caches(fault);
    else
        add_object(fault);
    if (fault->told_size) {
        sy_report_text(", freed with size ");
        sy_report_number(fault->told_size);
    }
    if (fault->found_size && tells_found_size(fault)) {
        sy_report_text(", allocated with size ");
        sy_report_number(fault->found_size);
    }
    sy_report_quiet();
    sy_report_text("\n");
}

/* ---- the lines under it ---- */

static void add_signed(ptrdiff_t value) {
    if (value < 0) sy_report_text("-");
    sy_report_number(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void watch_fault_add_bytes(uint64_t count, const char *after) {
    sy_report_exactly(count);
    sy_report_text(after);
}

/* The bytes that the program may use of the object concerned. */
static uint64_t size_of_object(const sy_fault *fault) {
    return fault->found_size ? fault->found_size : fault->object_size;
}

static void add_past_the_end(const sy_fault *fault, uint64_t size) {
    uint64_t past = (uint64_t)fault->offset - size;
    if (past)
        watch_fault_add_bytes(past, " past the end");
    else
        sy_report_text("the first byte past the end");
    if (size != fault->object_size) {
        sy_report_text(" of the ");
        sy_report_number(size);
        sy_report_text(" asked for");
    }
}

/* Where in the object; its start alone is nothing new. */
static void add_position(const sy_fault *fault) {
    if (!fault->object || (!fault->offset && !fault->damage)) return;
    uint64_t size = size_of_object(fault);
    sy_report_text("  offset ");
    add_signed(fault->offset);
    sy_report_text(": ");
    if (fault->offset < 0) {
        watch_fault_add_bytes(0 - (uint64_t)fault->offset, " before its start");
    } else if (size && (uint64_t)fault->offset >= size) {
        add_past_the_end(fault, size);
    } else if (!fault->offset) {
        sy_report_text("its start");
    } else {
        sy_report_text("inside, ");
        watch_fault_add_bytes((uint64_t)fault->offset, " from its start");
    }
    sy_report_text("\n");
}

static void add_damage(const sy_fault *fault) {
    if (!fault->damage) return;
    size_t shown = fault->damage_bytes < DUMP_MAX ? fault->damage_bytes : DUMP_MAX;
    sy_report_text("  ");
    watch_fault_add_bytes(fault->damage_bytes, " damaged");
    if (fault->object) {
        sy_report_text(" from offset ");
        add_signed(fault->offset);
    }
    sy_report_text(":\n");
    sy_report_dump(fault->damage, shown, fault->object ? fault->offset : 0, "    ");
    if (shown == fault->damage_bytes) return;
    sy_report_text("    ... ");
    watch_fault_add_bytes(fault->damage_bytes - shown, " more\n");
}

/* price+0x4 (.data) in /usr/bin/shop */
static void add_variable(const sy_os_data *data) {
    if (data->name[0]) {
        sy_report_text(data->name);
        sy_report_text("+");
        sy_report_hex(data->behind);
    } else {
        sy_report_text("data");
    }
    if (data->section[0]) {
        sy_report_text(" (");
        sy_report_text(data->section);
        sy_report_text(")");
    }
    sy_report_text(" in ");
    sy_report_text(data->file);
}

/* What a pointer that is none of ours leads to. */
static void add_target(const sy_fault *fault) {
    static const char *const regions[] = {
        [SY_OS_NOWHERE] = "nothing: no memory is mapped there",
        [SY_OS_ANONYMOUS] = "memory without a name, of another allocator's or of a stack",
        [SY_OS_NAMED] = "memory of the process, ",
        [SY_OS_OWN_STACK] = "the stack of this thread",
        [SY_OS_FIRST_STACK] = "the stack of the first thread",
        [SY_OS_OF_FILE] = "a mapping of ",
        [SY_OS_OF_PROGRAM] = "",
    };
    sy_os_data data;
    if (fault->kind != SY_FAULT_FOREIGN_POINTER) return;
    sy_os_find((uintptr_t)fault->address, &data);
    sy_report_text("  points to: ");
    sy_report_text(regions[data.region]);
    if (data.region == SY_OS_NAMED || data.region == SY_OS_OF_FILE) sy_report_text(data.file);
    if (data.region == SY_OS_OF_PROGRAM) add_variable(&data);
    sy_report_text(strcmp(data.file, "[heap]") == 0 ? " (the C library's heap)\n" : "\n");
}

/* In the handler of a signal: without the handler. */
static uint32_t stack_seen(void) {
    uintptr_t code = sy_os_interrupted();
    uint32_t stack = code ? sy_stack_from(code) : 0;
    return stack ? stack : sy_stack_whole();
}

static bool guards_all(void) {
    return atomic_load_explicit(&sy_options_now.checks, memory_order_relaxed) & SY_GUARD &&
           atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed) == 1;
}

static const char *watch_fault_next_of(const sy_fault *fault) {
    const words *said = words_for(fault->kind);
    bool known = said->next_of_known && (fault->allocated.thread || fault->freed.thread);
    if (said->next_of_guarded && guards_all()) return said->next_of_guarded;
    return known ? said->next_of_known : said->next;
}

static void add_next(const sy_fault *fault) {
    sy_report_text("  next: ");
    sy_report_text(watch_fault_next_of(fault));
    sy_report_text("\n");
}

/* ---- the doors ---- */

void sy_report_fault(const sy_fault *fault) {
    if (!sy_report_begin()) return;
    add_fault_headline(fault);
    add_position(fault);
    add_target(fault);
    add_damage(fault);
    sy_report_place(stack_seen()); /* the second of two frees, or the first look at damage */
    sy_report_trace("allocated", &fault->allocated);
    sy_report_trace("freed", &fault->freed);
    add_next(fault);
    sy_report_end();
}

/* Whether there is a handler that was told. */
static bool handled(const sy_fault *fault) {
    sy_fault_handler current = atomic_load(&handler);
    if (!current) return false;
    if (sy_os_interrupted()) { /* thread-local storage may have to be made yet, which allocates */
        current(fault);
        return true;
    }
    SY_CALLBACK(call, .function = "fault handler");
    current(fault);
    call.returned = true;
    return true;
}

void sy_fault_raise(const sy_fault *fault) {
    if (handled(fault)) return;
    sy_report_fault(fault);
    if (!atomic_load_explicit(&sy_options_now.go_on, memory_order_relaxed)) sy_os_abort();
}

void sy_fault_tell(const sy_fault *fault) {
    if (!handled(fault)) sy_report_fault(fault);
}

/* ==== src/watch/guard.c ==== */

/*
 * guard.c: see guard.h.
 *
 *     region:  | guard | slot 0: a page | guard | slot 1 | ... | slot n - 1 | guard |
 *     slots:   carved into runs up to `fresh`, committed up to `ready`, n in all
 *
 * A run is 1, 2, 4 ... slots, for ever. It is live, or in the queue of its length, or between the
 * two in the hands of one thread (TAKEN, FREEING), which does the system calls without the lock.
 * The lock guards the queues, `fresh` and `ready`; the state of a record decides who frees.
 */

enum {
    NAME_BYTES = 32,       /* of a cache's name, kept for reports after the cache is gone */
    ORDER_MAX = 7,         /* runs of up to 128 slots: almost 1 MiB of pages, */
    ORDER_NONE,            /* for nothing larger */
    watch_guard_STEP_SLOTS = 256,      /* committed at a time: 2 MiB, the memory of one page table, */
    ALL_SLOTS = 1 << 20,   /* of so many for guard=all: 8 GiB, and 128 MiB of records, if touched */
    SPLIT_SLOTS = 8 << 10, /* of so many where each guard splits a mapping: a quarter of Linux's
                              65,530 */
    watch_guard_EVERY = 1000,          /* for caches with SY_GUARD, where the option is not given */
};
static const uint32_t watch_guard_NONE = UINT32_MAX;

_Static_assert(watch_guard_STEP_SLOTS >= 2 << (ORDER_MAX - 1), "one step has room for the longest run");

/* Of the first slot of a run; the others have `head` alone. */
typedef struct sy_guarded {
    sy_record record;
    _Atomic(sy_watch *) watch; /* whose it is or was last; NULL: nobody's, or he is gone */
    _Atomic uintptr_t object;  /* its place; 0: there has been none */
    uint32_t head;             /* number of the run's first slot */
    uint32_t next;             /* in a queue */
    uint32_t order;            /* it has 1 << order slots */
    size_t object_size;        /* of the cache's objects; may be more than this one's */
    char name[NAME_BYTES];
} sy_guarded;

/* Runs that wait, the one freed longest ago first. */
typedef struct sy_queue {
    uint32_t first, last;
} sy_queue;

_Atomic uintptr_t sy_guard_start;
_Atomic size_t sy_guard_bytes;
SY_TLS int64_t sy_guard_left;

static sy_lock watch_guard_lock = SY_LOCK_INIT(SY_RANK_GUARD);
/* Written under the lock, once. */
static sy_guarded *slots;
static uint32_t slot_count;
/* Guarded by it. */
static uint32_t ready;
static bool growing;            /* a thread is at it */
static SY_TLS bool own_growing; /* this one */
static bool left_side;          /* where the next object lies */
static sy_queue queues[ORDER_NONE];
static _Atomic uint32_t fresh; /* read without it too: slots below it belong to runs */

/* ---- chance ---- */

static SY_TLS uint64_t chance; /* of random.h; 0: not seeded, and no interval has begun */

/* Exponentially distributed, of mean 1: the logarithm of 64 random bits, within a hundredth. */
static double next_exponential(void) {
    uint64_t bits = sy_random_next(&chance);
    unsigned high = sy_highest_bit(bits);
    double fraction = (double)(bits << (63 - high)) / 0x1p63 - 1;
    double log2 = high + fraction * (1.3465 - 0.3465 * fraction);
    return (64 - log2) * 0.6931472;
}

/* Geometrically distributed, of mean `every`. */
static int64_t next_interval(void) {
    uint32_t every = atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed);
    if (!every) every = watch_guard_EVERY;
    return every == 1 ? 1 : 1 + (int64_t)(next_exponential() * (every - 0.5));
}

static SY_COLD bool begin_interval(void) {
    if (!chance) {
        chance = sy_os_random() | 1;
        sy_guard_left = next_interval() - 1;
        if (sy_guard_left > 0) return false;
    }
    sy_guard_left += next_interval();
    return true;
}

bool sy_guard_due(void) { return SY_UNLIKELY(--sy_guard_left <= 0) && begin_interval(); }

/* ---- geometry ---- */

static size_t page_bytes(void) { return sy_os_page_size(); }

static uintptr_t region_start(void) {
    return atomic_load_explicit(&sy_guard_start, memory_order_relaxed);
}

static size_t region_bytes_of(uint32_t count) { return (2 * (size_t)count + 1) * page_bytes(); }

static uint32_t watch_guard_number_of(const sy_guarded *run) { return (uint32_t)(run - slots); }

static uintptr_t slot_start(uint32_t slot) {
    return region_start() + (2 * (uintptr_t)slot + 1) * page_bytes();
}

static uint32_t run_slots(const sy_guarded *run) { return UINT32_C(1) << run->order; }

static uintptr_t run_end(const sy_guarded *run) {
    return slot_start(watch_guard_number_of(run) + run_slots(run)) - page_bytes();
}

/* The run that a slot is of; NULL: of none yet. */
static sy_guarded *run_of_slot(size_t slot) {
    bool carved = slot < atomic_load_explicit(&fresh, memory_order_acquire);
    return carved ? &slots[slots[slot].head] : NULL;
}

/* The run that the address lies in; NULL: it is in a guard between two, or none is there yet. */
static sy_guarded *run_at(uintptr_t address) {
    size_t page = (address - region_start()) / page_bytes();
    sy_guarded *run = page ? run_of_slot((page - 1) / 2) : NULL;
    return run && address < run_end(run) ? run : NULL;
}

static uintptr_t object_end(const sy_guarded *run) {
    return run->object + sy_record_size(&run->record);
}

/* The pages that its object touches. */
static uintptr_t open_start(const sy_guarded *run) {
    return sy_round_down(run->object, page_bytes());
}

static uintptr_t open_end(const sy_guarded *run) {
    return sy_round_up(object_end(run), page_bytes());
}

/* ---- the region ---- */

static uint32_t slots_wanted(bool all) {
    uint32_t count = atomic_load_explicit(&sy_options_now.guard_slots, memory_order_relaxed);
    if (!count) count = watch_guard_STEP_SLOTS;
    if (all && count < ALL_SLOTS) count = ALL_SLOTS;
    if (sy_os_guards_split() && count > SPLIT_SLOTS) count = SPLIT_SLOTS;
    return count;
}

static size_t table_bytes_of(uint32_t count) {
    return sy_round_up(count * sizeof(sy_guarded), page_bytes());
}

/* Whether this thread's region is the one. */
static bool watch_guard_publish(void *start, sy_guarded *table, uint32_t count) {
    sy_lock_acquire(&watch_guard_lock);
    bool first = !slots;
    if (first) {
        slots = table;
        slot_count = count;
        for (unsigned order = 0; order <= ORDER_MAX; order++) queues[order].first = watch_guard_NONE;
        atomic_store_explicit(&sy_guard_start, (uintptr_t)start, memory_order_relaxed);
        atomic_store_explicit(&sy_guard_bytes, region_bytes_of(count), memory_order_release);
    }
    sy_lock_release(&watch_guard_lock);
    return first;
}

static bool make_region_of(uint32_t count) {
    sy_guarded *table =
        sy_pages_take(table_bytes_of(count), page_bytes(), "slabyard guard records");
    if (!table) return false;
    void *start = sy_os_reserve(region_bytes_of(count), page_bytes(), "slabyard guarded");
    bool mine = start && watch_guard_publish(start, table, count);
    if (mine) {
        (void)sy_os_huge(start, region_bytes_of(count), false);
        return true;
    }
    if (start) sy_os_release(start, region_bytes_of(count));
    sy_pages_give(table, table_bytes_of(count));
    return start;
}

/* Whether there is one. It is made once, in a process that is short of addresses the smaller one.
 */
static bool make_region(bool all) {
    if (atomic_load_explicit(&sy_guard_bytes, memory_order_acquire)) return true;
    if (!make_region_of(slots_wanted(all)) && !(all && make_region_of(slots_wanted(false))))
        return false;
    sy_access_expect_guards(sy_guard_explain);
    return true;
}

/* Commits a step more, all of it guards: pages from the first slot's up to the guard behind the
 * last. */
static void grow_guards(void) {
    uint32_t more = slot_count - ready < watch_guard_STEP_SLOTS ? slot_count - ready : watch_guard_STEP_SLOTS;
    void *start = (void *)slot_start(ready);
    size_t bytes = 2 * (size_t)more * page_bytes();
    bool grown = sy_os_commit(start, bytes) == 0 && sy_os_guard(start, bytes, true) == 0;
    sy_lock_acquire(&watch_guard_lock);
    growing = own_growing = false;
    if (grown) ready += more;
    sy_lock_release(&watch_guard_lock);
}

/* ---- runs; the lock is held ---- */

static sy_guarded *carve(unsigned order) {
    uint32_t first = atomic_load_explicit(&fresh, memory_order_relaxed), count = 1u << order;
    if (ready - first < count) return NULL;
    for (uint32_t slot = first; slot < first + count; slot++) slots[slot].head = first;
    slots[first].order = order;
    atomic_store_explicit(&fresh, first + count, memory_order_release);
    return &slots[first];
}

static void enqueue(sy_guarded *run) {
    sy_queue *queue = &queues[run->order];
    run->next = watch_guard_NONE;
    if (queue->first == watch_guard_NONE)
        queue->first = watch_guard_number_of(run);
    else
        slots[queue->last].next = watch_guard_number_of(run);
    queue->last = watch_guard_number_of(run);
}

/* One of that length that waits, or else a longer one. */
static sy_guarded *dequeue(unsigned order) {
    while (order <= ORDER_MAX && queues[order].first == watch_guard_NONE) order++;
    if (order > ORDER_MAX) return NULL;
    sy_guarded *run = &slots[queues[order].first];
    queues[order].first = run->next;
    return run;
}

/* ---- runs ---- */

static void set_run_state(sy_guarded *run, sy_object_state state) {
    atomic_store_explicit(&run->record.word, state, memory_order_release);
}

/* Runs that this thread is taking or freeing, in functions of the program's that come back here; in
 * the child of its fork it still is. More than that a child takes for others'. */
enum { OWN_MAX = 4 };
static SY_TLS const sy_guarded *own_runs[OWN_MAX];

static void replace_own(const sy_guarded *from, const sy_guarded *to) {
    unsigned i = 0;
    while (i < OWN_MAX && own_runs[i] != from) i++;
    if (i < OWN_MAX) own_runs[i] = to;
}

static bool is_own_place(const sy_guarded *run) {
    for (unsigned i = 0; i < OWN_MAX; i++)
        if (own_runs[i] == run) return true;
    return false;
}

static sy_object_state state_of(const sy_guarded *run) { return sy_record_state(&run->record); }

/* Of a live object: makes it this thread's to free; false: another's, or it is not live. */
static bool win(sy_guarded *run) {
    uint32_t live = SY_OBJECT_LIVE;
    replace_own(NULL, run);
    bool won = atomic_compare_exchange_strong(&run->record.word, &live, SY_OBJECT_FREEING);
    if (!won) replace_own(run, NULL);
    return won;
}

/* A fresh one, or `reused`: one that waits. */
static sy_guarded *try_run(unsigned order, bool reused) {
    sy_guarded *run = carve(order);
    if (!run && reused) run = dequeue(order);
    if (run) set_run_state(run, SY_OBJECT_TAKEN);
    if (run) replace_own(NULL, run);
    return run;
}

/* As long as the region grows nothing is reused. */
static sy_guarded *watch_guard_take_run(unsigned order, bool *left) {
    sy_lock_acquire(&watch_guard_lock);
    bool may_grow = ready < slot_count && !growing;
    sy_guarded *run = try_run(order, !may_grow);
    own_growing = !run && may_grow;
    growing |= own_growing;
    *left = left_side;
    left_side = !left_side;
    sy_lock_release(&watch_guard_lock);
    if (run || !may_grow) return run;
    grow_guards();
    sy_lock_acquire(&watch_guard_lock);
    run = try_run(order, true);
    sy_lock_release(&watch_guard_lock);
    return run;
}

static void put_run(sy_guarded *run) {
    sy_lock_acquire(&watch_guard_lock);
    set_run_state(run, SY_OBJECT_FREE);
    enqueue(run);
    replace_own(run, NULL);
    sy_lock_release(&watch_guard_lock);
}

/* The length of run in which an object has its place wherever that begins; of more than a slot only
 * if all are to be guarded. */
static unsigned order_for(size_t size, size_t align, bool all) {
    size_t page = page_bytes(), slack = align > page ? align - page : 0;
    size_t most = all ? (2 * (size_t)(1 << ORDER_MAX) - 1) * page : page;
    unsigned order = 0;
    if (size > most || slack > most - size) return ORDER_NONE;
    while ((2 * ((size_t)1 << order) - 1) * page < sy_round_up(size, page) + slack) order++;
    return order;
}

/* ---- who, and what ---- */

/* Audit or not. */
static sy_stamp stamp(void) {
    static const sy_watch noting = {.checks = SY_AUDIT};
    return sy_stamp_here(&noting);
}

static sy_fault fault_of(const sy_guarded *run, sy_fault_kind kind, uintptr_t address) {
    return (sy_fault){
        .kind = kind,
        .cache = run->name,
        .object_size = run->object_size,
        .found_size = sy_record_size(&run->record),
        .address = (void *)address,
        .object = (void *)run->object,
        .offset = (ptrdiff_t)(address - run->object),
        .allocated = sy_stamp_trace(&run->record.allocated),
        .freed = sy_stamp_trace(&run->record.freed),
    };
}

/* ---- allocation ---- */

static uintptr_t place(const sy_guarded *run, size_t size, size_t align, bool left) {
    if (left) return sy_round_up(slot_start(watch_guard_number_of(run)), align);
    return sy_round_down(run_end(run) - size, align);
}

static void fill_beside(const sy_watch *watch, const sy_guarded *run) {
    sy_watch_lay(watch, (void *)open_start(run), run->object - open_start(run));
    sy_watch_lay(watch, (void *)object_end(run), open_end(run) - object_end(run));
}

static void note_owner(sy_guarded *run, sy_watch *watch) {
    size_t length = 0;
    for (; length < NAME_BYTES - 1 && watch->name[length]; length++)
        run->name[length] = watch->name[length];
    run->name[length] = 0;
    run->object_size = watch->size;
    atomic_store_explicit(&run->watch, watch, memory_order_relaxed);
}

/* Makes an object in a run that this thread has taken; NULL, with the run as it was, if its pages
 * cannot be opened. */
static void *begin_object(sy_guarded *run, sy_watch *watch, uintptr_t object, size_t size) {
    uintptr_t start = sy_round_down(object, page_bytes());
    if (sy_os_guard((void *)start, sy_round_up(object + size, page_bytes()) - start, false) != 0)
        return NULL;
    run->object = object;
    atomic_store_explicit(&run->record.size, size, memory_order_relaxed);
    run->record.allocated = stamp();
    run->record.freed = (sy_stamp){0};
    note_owner(run, watch);
    fill_beside(watch, run);
    set_run_state(run, SY_OBJECT_LIVE);
    replace_own(run, NULL);
    return (void *)object;
}

void *sy_guard_alloc(sy_watch *watch, size_t size, size_t align) {
    int error = errno;
    bool left, all = atomic_load_explicit(&sy_options_now.guard_every, memory_order_relaxed) == 1;
    unsigned order = order_for(size, align, all);
    sy_guarded *run = order < ORDER_NONE && make_region(all) ? watch_guard_take_run(order, &left) : NULL;
    void *object = run ? begin_object(run, watch, place(run, size, align, left), size) : NULL;
    if (run && !object) put_run(run);
    errno = error;
    return object;
}

/* ---- free ---- */

/* What is wrong with it, but for its state; 0: nothing. */
static sy_fault_kind misuse(const sy_guarded *run, const sy_watch *owner, const sy_watch *watch,
                            uintptr_t object, size_t told) {
    if (!run || !owner) return SY_FAULT_FOREIGN_POINTER;
    if (owner != watch) return SY_FAULT_WRONG_CACHE;
    if (object != run->object) return SY_FAULT_MISALIGNED_POINTER;
    return told != SIZE_MAX && told != sy_record_size(&run->record) ? SY_FAULT_WRONG_SIZE : 0;
}

static SY_COLD void raise_misuse(const sy_guarded *run, const sy_watch *watch, uintptr_t object,
                                 size_t told, sy_fault_kind kind) {
    sy_fault fault = {.kind = kind, .address = (void *)object};
    if (kind != SY_FAULT_FOREIGN_POINTER) fault = fault_of(run, kind, object);
    fault.cache = watch->name;
    fault.object_size = watch->size;
    if (kind == SY_FAULT_WRONG_CACHE) fault.found_cache = run->name;
    if (kind == SY_FAULT_WRONG_SIZE) fault.told_size = told;
    sy_fault_raise(&fault);
}

/* Makes it this thread's to free; false, with the fault raised, if it is not live. */
static bool claim_run(sy_guarded *run, const sy_watch *watch, uintptr_t object, size_t told) {
    const sy_watch *owner = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    sy_fault_kind kind = misuse(run, owner, watch, object, told);
    if (!kind && !win(run)) kind = SY_FAULT_DOUBLE_FREE;
    if (kind) raise_misuse(run, watch, object, told, kind);
    return !kind;
}

static void verify_beside(const sy_guarded *run, const sy_watch *watch, sy_fault_kind kind,
                          uintptr_t start, uintptr_t watch_guard_end) {
    sy_fault found;
    if (!sy_watch_look_at_edge(watch, (void *)start, watch_guard_end - start, &found)) return;
    sy_fault fault = fault_of(run, kind, (uintptr_t)found.damage);
    fault.damage = found.damage;
    fault.damage_bytes = found.damage_bytes;
    sy_fault_raise(&fault);
}

/* Where its pages cannot be made inaccessible it is free all the same. */
static void watch_guard_end(sy_guarded *run, sy_guard_visit *last, void *arg) {
    uintptr_t start = open_start(run);
    if (last) last((void *)run->object, arg);
    run->record.freed = stamp();
    sy_os_guard((void *)start, open_end(run) - start, true);
    put_run(run);
}

static void sy_guard_free_claimed(sy_guarded *run, const sy_watch *watch, sy_guard_visit *last,
                                  void *arg) {
    int error = errno;
    verify_beside(run, watch, SY_FAULT_UNDERFLOW, open_start(run), run->object);
    verify_beside(run, watch, SY_FAULT_OVERFLOW, object_end(run), open_end(run));
    watch_guard_end(run, last, arg);
    errno = error;
}

bool sy_guard_free(sy_watch *watch, void *object, size_t told, sy_guard_visit *last, void *arg) {
    sy_guarded *run = run_at((uintptr_t)object);
    bool claimed = claim_run(run, watch, (uintptr_t)object, told);
    if (claimed) sy_guard_free_claimed(run, watch, last, arg);
    return claimed;
}

bool sy_guard_try_free(sy_watch *watch, void *object, sy_guard_visit *last, void *arg) {
    sy_guarded *run = run_at((uintptr_t)object);
    const sy_watch *owner = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    bool won = !misuse(run, owner, watch, (uintptr_t)object, SIZE_MAX) && win(run);
    if (won) sy_guard_free_claimed(run, watch, last, arg);
    return won;
}

size_t sy_guard_size(const void *object, sy_watch **watch) {
    const sy_guarded *run = run_at((uintptr_t)object);
    *watch = run ? atomic_load_explicit(&run->watch, memory_order_acquire) : NULL;
    bool live = run && state_of(run) == SY_OBJECT_LIVE && run->object == (uintptr_t)object;
    return live ? sy_record_size(&run->record) : 0;
}

sy_record *sy_guard_record(uintptr_t address, uintptr_t *object, sy_watch **watch) {
    sy_guarded *run = run_at(address);
    if (!run || !run->object) return NULL;
    *object = run->object;
    *watch = atomic_load_explicit(&run->watch, memory_order_acquire);
    return &run->record;
}

/* ---- all of a cache ---- */

/* The run behind this one, or the first; NULL: there is no more. */
static sy_guarded *watch_guard_next_run(const sy_guarded *run) {
    return run_of_slot(run ? watch_guard_number_of(run) + run_slots(run) : 0);
}

static bool belongs(const sy_guarded *run, const sy_watch *watch) {
    return atomic_load_explicit(&run->watch, memory_order_acquire) == watch;
}

size_t sy_guard_live(const sy_watch *watch) {
    size_t count = 0;
    for (const sy_guarded *run = watch_guard_next_run(NULL); run; run = watch_guard_next_run(run))
        count += belongs(run, watch) && state_of(run) == SY_OBJECT_LIVE;
    return count;
}

void sy_guard_each(const sy_watch *watch,
                   void (*visit)(void *arg, const void *object, const sy_record *record),
                   void *arg) {
    for (const sy_guarded *run = watch_guard_next_run(NULL); run; run = watch_guard_next_run(run))
        if (belongs(run, watch)) visit(arg, (const void *)atomic_load(&run->object), &run->record);
}

void sy_guard_forget(sy_watch *watch, sy_guard_visit *last, void *arg) {
    for (sy_guarded *run = watch_guard_next_run(NULL); run; run = watch_guard_next_run(run)) {
        if (!belongs(run, watch)) continue;
        if (win(run)) watch_guard_end(run, last, arg);
        atomic_store_explicit(&run->watch, NULL, memory_order_release);
    }
}

/* ---- bad accesses ---- */

/* Bytes between its object and the address. */
static size_t distance(const sy_guarded *run, uintptr_t address) {
    if (address < run->object) return run->object - address;
    return address >= object_end(run) ? address - object_end(run) : 0;
}

/* The run whose object an access to the guard between two was meant for, most likely. */
static const sy_guarded *nearest(uintptr_t address) {
    size_t page = (address - region_start()) / page_bytes();
    const sy_guarded *left = page ? run_of_slot(page / 2 - 1) : NULL;
    const sy_guarded *right = run_of_slot(page / 2);
    if (!left || !left->object) return right;
    if (!right || !right->object) return left;
    return distance(right, address) < distance(left, address) ? right : left;
}

/* What an access to the address did wrong; SY_FAULT_NONE: it is allowed. */
static sy_fault_kind watch_guard_bad_access(const sy_guarded *run, uintptr_t address) {
    if (state_of(run) != SY_OBJECT_LIVE) return SY_FAULT_USE_AFTER_FREE;
    if (address < open_start(run)) return SY_FAULT_GUARD_UNDERFLOW;
    return address >= open_end(run) ? SY_FAULT_GUARD_OVERFLOW : SY_FAULT_NONE;
}

bool sy_guard_explain(const sy_os_access *access) {
    uintptr_t address = access->address;
    if (!access->placed || !sy_guard_owns(address)) return false;
    const sy_guarded *run = run_at(address);
    if (!run) run = nearest(address);
    if (!run || !run->object) return false;
    sy_fault_kind kind = watch_guard_bad_access(run, address);
    if (kind == SY_FAULT_NONE) return false;
    sy_fault fault = fault_of(run, kind, address);
    fault.access = (sy_access)access->way;
    sy_fault_tell(&fault);
    return true;
}

/* ---- invariants ---- */

const void *sy_guard_table(size_t *bytes) {
    *bytes = slots ? table_bytes_of(slot_count) : 0;
    return slots;
}

/* Runs of a queue, or as many as there are slots, and one, if it has no end. */
static size_t verify_queue(unsigned order, size_t *wrong) {
    size_t count = 0;
    for (uint32_t at = queues[order].first; at != watch_guard_NONE && count <= slot_count; count++) {
        const sy_guarded *run = &slots[at];
        *wrong += state_of(run) != SY_OBJECT_FREE || run->order != order;
        *wrong += (run->next == watch_guard_NONE) != (at == queues[order].last);
        at = run->next;
    }
    return count;
}

static size_t verify_run(const sy_guarded *run) {
    size_t wrong = 0;
    for (uint32_t i = 0; i < run_slots(run); i++) wrong += run[i].head != watch_guard_number_of(run);
    if (state_of(run) == SY_OBJECT_TAKEN) return wrong; /* it is being written to */
    if (!run->object) return wrong + (state_of(run) == SY_OBJECT_LIVE);
    bool inside = run->object >= slot_start(watch_guard_number_of(run)) && object_end(run) <= run_end(run);
    return wrong + !inside;
}

size_t sy_guard_verify(void) {
    size_t wrong = 0, waiting = 0, free_runs = 0;
    sy_lock_acquire(&watch_guard_lock);
    wrong += atomic_load(&fresh) > ready || ready > slot_count;
    for (const sy_guarded *run = watch_guard_next_run(NULL); run; run = watch_guard_next_run(run)) {
        wrong += verify_run(run);
        free_runs += state_of(run) == SY_OBJECT_FREE;
    }
    for (unsigned order = 0; slots && order <= ORDER_MAX; order++)
        waiting += verify_queue(order, &wrong);
    wrong += waiting != free_runs;
    sy_lock_release(&watch_guard_lock);
    return wrong;
}

/* ---- fork ---- */

static void hold_guarded(void) { sy_lock_hold(&watch_guard_lock); }

static void drop_guarded(void) { sy_lock_drop(&watch_guard_lock); }

static void recover_guarded(void) {
    growing = own_growing;
    for (sy_guarded *run = watch_guard_next_run(NULL); run; run = watch_guard_next_run(run)) {
        sy_object_state state = state_of(run);
        if (state != SY_OBJECT_TAKEN && state != SY_OBJECT_FREEING) continue;
        if (is_own_place(run)) continue;
        uintptr_t start = slot_start(watch_guard_number_of(run));
        sy_os_guard((void *)start, run_end(run) - start, true);
        put_run(run);
    }
}

const sy_part sy_guard_part = {
    .hold = hold_guarded, .drop = drop_guarded, .recover = recover_guarded};

/* ==== src/watch/history.c ==== */

/*
 * history.c: the ring of a cache's last operations, written by any number of threads without a
 * lock.
 */

/* An entry as it was read. */
typedef struct sy_noted {
    uint64_t object, size_and_freed, time, stack_and_thread;
} sy_noted;

sy_history *sy_history_make(size_t operations) {
    size_t bytes = sizeof(sy_history) + operations * sizeof(sy_entry);
    bytes = sy_round_up(bytes, sy_os_page_size());
    sy_history *history = sy_pages_take(bytes, sy_os_page_size(), "slabyard history");
    if (!history) return NULL;
    history->operations = operations;
    history->bytes = bytes;
    return history;
}

void sy_history_end(sy_history *history) {
    if (history) sy_pages_give(history, history->bytes);
}

size_t sy_history_bytes(const sy_history *history) { return history->bytes; }

/* ---- writing ---- */

static bool claim_entry(sy_entry *entry, uint64_t number) {
    uint64_t seen = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    if (seen % 2 || seen > 2 * number) return false;
    return atomic_compare_exchange_strong_explicit(&entry->sequence, &seen, 2 * number + 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Each releasing, so that who reads one of them has the odd sequence to see; and acquired by them
 * for the same reason. */
static void watch_history_set(_Atomic uint64_t *word, uint64_t value) {
    atomic_store_explicit(word, value, memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *word) {
    return atomic_load_explicit(word, memory_order_acquire);
}

void sy_history_note(sy_history *history, bool freed, const void *object, size_t size,
                     const sy_stamp *stamp) {
    uint64_t number = atomic_fetch_add_explicit(&history->next, 1, memory_order_relaxed);
    sy_entry *entry = &history->entries[number & (history->operations - 1)];
    if (!claim_entry(entry, number)) return;
    watch_history_set(&entry->object, (uintptr_t)object);
    watch_history_set(&entry->size_and_freed, (uint64_t)size << 1 | freed);
    watch_history_set(&entry->time, stamp->time);
    watch_history_set(&entry->stack_and_thread, (uint64_t)stamp->stack << 32 | stamp->thread);
    watch_history_set(&entry->sequence, 2 * number + 2);
}

/* ---- reading ---- */

static bool read_entry(const sy_entry *entry, uint64_t number, sy_noted *noted) {
    if (get(&entry->sequence) != 2 * number + 2) return false;
    noted->object = get(&entry->object);
    noted->size_and_freed = get(&entry->size_and_freed);
    noted->time = get(&entry->time);
    noted->stack_and_thread = get(&entry->stack_and_thread);
    return atomic_load_explicit(&entry->sequence, memory_order_relaxed) == 2 * number + 2;
}

static size_t copy(const sy_history *history, sy_noted *noted) {
    uint64_t next = atomic_load_explicit(&history->next, memory_order_acquire);
    uint64_t last = next > history->operations ? next - history->operations : 0;
    size_t count = 0;
    while (next-- > last) {
        const sy_entry *entry = &history->entries[next & (history->operations - 1)];
        count += read_entry(entry, next, &noted[count]);
    }
    return count;
}

static sy_operation operation_of(const sy_noted *noted) {
    const sy_stamp stamp = {
        .time = noted->time,
        .stack = (uint32_t)(noted->stack_and_thread >> 32),
        .thread = (uint32_t)noted->stack_and_thread,
    };
    return (sy_operation){
        .freed = noted->size_and_freed & 1,
        .object = (void *)(uintptr_t)noted->object,
        .size = (size_t)(noted->size_and_freed >> 1),
        .trace = sy_stamp_trace(&stamp),
    };
}

int sy_history_each(const sy_history *history,
                    int (*visit)(void *arg, const sy_operation *operation), void *arg) {
    size_t bytes = sy_round_up(history->operations * sizeof(sy_noted), sy_os_page_size());
    sy_noted *noted = sy_pages_take(bytes, sy_os_page_size(), "slabyard history walk");
    if (!noted) {
        errno = ENOMEM;
        return -1;
    }
    size_t count = copy(history, noted);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        sy_operation operation = operation_of(&noted[i]);
        SY_CALLBACK(call, .function = "visitor of sy_cache_history");
        result = visit(arg, &operation);
        call.returned = true;
    }
    sy_pages_give(noted, bytes);
    return result;
}

/* ==== src/watch/lookup.c ==== */

/*
 * lookup.c: see lookup.h. `asked` has the addresses in the order in which they were told, each
 * once; symbols.count of them have lines.
 */

/*
 * symbols.h: return addresses in words: function, file and line, by elfutils' libdw where the
 * machine has it (libdw.so.1, loaded when it is first needed), else what the file says that is
 * mapped there: the function in its table of symbols, or the file and the address in it.
 *
 * The library allocates, and may be asked in a process whose malloc is broken, or is Slabyard; so a
 * child process does that work and writes into memory that both have, with an alarm for the case
 * that it hangs. What it has not said when it ends is told without it, and so is everything under a
 * debugger, which would stop in the child, or wait for it. A program that is linked statically can
 * load no library: its child knows functions, and no lines.
 *
 * Names of Rust are in its own words always, those of C++ by the child.
 *
 * Below: dwarf.h, rust_name.h, cxx_name.h, whose.h, os/. Used by lookup.c.
 */
#ifndef SY_WATCH_SYMBOLS_H
#define SY_WATCH_SYMBOLS_H

enum { SY_SYMBOLS_MAX = 1024, SY_SYMBOLS_TEXT = 256 << 10 };

/* Text of addresses; large, so callers have one for the process, under their own lock. */
typedef struct sy_symbols {
    _Atomic size_t count;      /* addresses whose lines are there */
    size_t length;             /* bytes of `text` */
    size_t at[SY_SYMBOLS_MAX]; /* where its lines begin in `text` */
    char text[SY_SYMBOLS_TEXT];
} sy_symbols;

/*
 * Words for `count` return addresses (not more than SY_SYMBOLS_MAX are taken). The first `needed`
 * have words in any case; those behind them have words if the child finds room and time for them.
 * symbols->count says how many have. Each has one line, or several where functions were inlined
 * there, the innermost first:
 *
 *     parse_header at src/parser.c:120
 *     main at server.c:17
 *     qsort_r+0x1f3 in /usr/lib/libc.so.6     (no line is known)
 *     0x5581 in /usr/lib/libfoo.so            (no function; as addr2line -e libfoo.so takes it)
 *     0x7f0012345640                          (no file)
 *
 * They are of the call, the instruction before the address. Paths are as dwarf.h says. Before each
 * line stands a character, whose function it is: a sy_whose. Text that is too long is cut, if it is
 * of an address that is needed.
 *
 * `deep` false, or the process is traced: only what the files say, without a child. Calls no malloc
 * of this process, takes no lock, and needs a few KiB of stack. errno is kept.
 */
void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep);

/* The lines of address `index` (below symbols->count), each ended by \n, the last by a 0 besides;
 * "" where there was no more room. */
const char *sy_symbols_lines(const sy_symbols *symbols, size_t index);

#endif

enum { watch_lookup_PLACES = 2 * SY_SYMBOLS_MAX };
_Static_assert((watch_lookup_PLACES & (watch_lookup_PLACES - 1)) == 0, "a power of two");
_Static_assert(SY_SYMBOLS_MAX <= UINT16_MAX, "numbers of addresses fit");

static sy_symbols symbols;
static const void *asked[SY_SYMBOLS_MAX];
static size_t asked_count;
static uint16_t places[watch_lookup_PLACES]; /* by address: its number in `asked` and 1; 0: none */

void sy_lookup_forget(void) {
    memset(places, 0, sizeof places);
    asked_count = 0;
    symbols.count = 0;
}

/* The place of an address, or where it would be. */
static uint16_t *watch_lookup_place_of(const void *address) {
    size_t at = (uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (watch_lookup_PLACES - 1);
    while (places[at] && asked[places[at] - 1] != address) at = (at + 1) & (watch_lookup_PLACES - 1);
    return &places[at];
}

const char *sy_lookup_lines(const void *frame) {
    size_t number = *watch_lookup_place_of(frame);
    return number && number <= symbols.count ? sy_symbols_lines(&symbols, number - 1) : NULL;
}

static bool is_known(const void *const *frames, size_t depth) {
    while (depth > 0 && sy_lookup_lines(frames[depth - 1])) depth--;
    return depth == 0;
}

/* All of a stack, or false: there is no room for as many addresses. */
static bool add_stack(const void *const *frames, size_t depth) {
    if (depth > SY_SYMBOLS_MAX - asked_count) return false;
    for (size_t i = 0; i < depth; i++) {
        uint16_t *place = watch_lookup_place_of(frames[i]);
        if (*place) continue;
        asked[asked_count++] = frames[i];
        *place = (uint16_t)asked_count;
    }
    return true;
}

void sy_lookup_stack(const void *const *frames, size_t depth, bool deep, sy_lookup_next *next,
                     void *arg) {
    if (depth > SY_SYMBOLS_MAX) depth = SY_SYMBOLS_MAX;
    if (is_known(frames, depth)) return;
    sy_lookup_forget();
    add_stack(frames, depth);
    size_t needed = asked_count;
    while (next && next(arg, &frames, &depth) && add_stack(frames, depth)) continue;
    sy_symbols_find(&symbols, asked, asked_count, needed, deep);
}

/* ==== src/watch/options.c ==== */

/*
 * options.c: see options.h. Settings are one number for each row of the table, and the texts; they
 * change as a whole, under a lock, and are then published to the words that the library reads.
 */

/*
 * values.h: how the values of options are written: numbers, sizes, times, words.
 *
 * A value is a number of 64 bits. Reading understands what people write ("64M", "on", "1/100"),
 * printing has one way for each value, which reading gives back. Used by options.c alone; nothing
 * below but base/.
 */
#ifndef SY_WATCH_VALUES_H
#define SY_WATCH_VALUES_H

/* The value of what is off. */
#define SY_VALUE_OFF UINT64_MAX

/* A piece of a text. */
typedef struct sy_word {
    const char *start;
    size_t length;
} sy_word;

bool sy_word_is(sy_word word, const char *text);
/* Without white space before and behind. */
sy_word sy_word_trim(sy_word word);
/* Cuts off what stands before the first `separator`, which goes too; all, if there is none. */
sy_word sy_word_split(sy_word *rest, char separator);

typedef struct sy_value_type sy_value_type;

struct sy_value_type {
    /* False: the word is no such value. */
    bool (*read)(const sy_value_type *type, sy_word word, uint64_t *value);
    void (*print)(const sy_value_type *type, uint64_t value, sy_text *text);
    uint64_t low, high;  /* of numbers */
    uint64_t granule;    /* numbers are rounded up to a multiple of this; 0: they are not */
    bool power_of_two;   /* or to a power of two, if they are not 0 */
    bool can_be_off;     /* "off" and "no" are values, and so is 0 if `low` is more */
    const char *choices; /* words with | between; the value is their number, from 0 */
};

/* Whole numbers. */
bool sy_read_number(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_number(const sy_value_type *type, uint64_t value, sy_text *text);

/* Bytes: 4096, 4K, 64M, 2G, 1T; an iB or B may follow. */
bool sy_read_bytes(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_bytes(const sy_value_type *type, uint64_t value, sy_text *text);

/* Milliseconds: 1500, 1500ms, 2s, 1min. */
bool sy_read_time(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_time(const sy_value_type *type, uint64_t value, sy_text *text);

/* One in how many: 1/1000, or 1000; all for 1. */
bool sy_read_rate(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_rate(const sy_value_type *type, uint64_t value, sy_text *text);

/* yes, on, 1: 1; no, off, 0: SY_VALUE_OFF. */
bool sy_read_yes(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_yes(const sy_value_type *type, uint64_t value, sy_text *text);

/* One of the choices; or several joined by +, a bit for each, and "off" for none. */
bool sy_read_choice(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_choice(const sy_value_type *type, uint64_t value, sy_text *text);
bool sy_read_set(const sy_value_type *type, sy_word word, uint64_t *value);
void sy_print_set(const sy_value_type *type, uint64_t value, sy_text *text);

/* In how many steps one becomes the other: a character more, less, another, or two exchanged. */
unsigned sy_word_distance(sy_word word, const char *text);

#endif

/* ---- the table ---- */

enum {
    CHECK,
    REDZONE,
    POISON,
    QUARANTINE,
    EXIT_CHECK,
    ZERO,
    watch_options_GUARD,
    GUARD_SLOTS,
    watch_options_RANDOM,
    EDGES,
    DUMP,
    LOCK,
    AUDIT,
    STACK_DEPTH,
    UNWIND,
    LEAKS,
    LEAK_STATUS,
    FAIL,
    ONLY,
    REPORT,
    STATS,
    HELP,
    COLOUR,
    SYMBOLS,
    EXPLAIN,
    ON_FAULT,
    TOOLS,
    DECAY,
    MAINTENANCE,
    LIMIT,
    OPTIONS
};

/* Numbers of texts, from 1. */
enum { NO_TEXT, TEXT_FAIL, TEXT_ONLY, TEXT_REPORT, TEXTS };

typedef struct watch_options_row {
    sy_option says; /* what is said of it; `bare` and `initial` are read like any value */
    const sy_value_type *type;
    unsigned check; /* the flag of a cache that it sets, if it is on */
    unsigned text;  /* the number of its text */
} watch_options_row;

static bool read_leaks(const sy_value_type *type, sy_word word, uint64_t *value) {
    bool all = sy_word_is(word, "all");
    *value = SY_LEAKS_AT_DESTROY | SY_LEAKS_AT_EXIT;
    if (!all && !sy_read_set(type, word, value)) return false;
    if (*value == SY_LEAKS_LOST) *value |= SY_LEAKS_AT_EXIT;
    return true;
}

/* auto, or any word for yes or no. */
static bool read_explain(const sy_value_type *type, sy_word word, uint64_t *value) {
    if (sy_read_choice(type, word, value)) return true;
    if (!sy_read_yes(type, word, value)) return false;
    *value = *value == SY_VALUE_OFF ? SY_EXPLAIN_NO : SY_EXPLAIN_YES;
    return true;
}

/* Not empty, and nothing that would make a mess of a terminal. */
static bool watch_options_read_text(const sy_value_type *type, sy_word word, uint64_t *value) {
    (void)type;
    for (size_t i = 0; i < word.length; i++)
        if ((unsigned char)word.start[i] < ' ' || word.start[i] == 127) return false;
    *value = 0;
    return word.length > 0 && word.length <= SY_OPTION_TEXT_MAX;
}

static bool read_failures(const sy_value_type *type, sy_word word, uint64_t *value) {
    char text[SY_OPTION_TEXT_MAX + 1] = "";
    if (!watch_options_read_text(type, word, value)) return false;
    memcpy(text, word.start, word.length);
    return strcmp(text, "off") == 0 || sy_fail_valid(text);
}

enum {
    REDZONE_MAX = 64 << 10, /* a unit */
    WAITING_MAX = 1 << 20,  /* 8 MiB of pointers for a cache */
    LOG_MAX = 1 << 20,
    SLOTS_MAX = 64 << 10, /* a quarter of a GiB of guarded pages */
    watch_options_DEPTH_MAX = 64,
    STATUS_MAX = 255, /* of a process */
    RARELY = 1000000000,
    DECAY_MAX = 1000000000, /* milliseconds: 11 days */
};

static const sy_value_type yes_no = {.read = sy_read_yes, .print = sy_print_yes};
static const sy_value_type any_text = {.read = watch_options_read_text};
static const sy_value_type watch_options_failures = {.read = read_failures};
static const sy_value_type redzone = {.read = sy_read_bytes,
                                      .print = sy_print_bytes,
                                      .low = 16,
                                      .high = REDZONE_MAX,
                                      .granule = 16,
                                      .can_be_off = true};
static const sy_value_type quarantine = {.read = sy_read_number,
                                         .print = sy_print_number,
                                         .low = 1,
                                         .high = WAITING_MAX,
                                         .can_be_off = true};
static const sy_value_type watch_options_guard = {
    .read = sy_read_rate, .print = sy_print_rate, .low = 1, .high = RARELY, .can_be_off = true};
static const sy_value_type guard_slots = {
    .read = sy_read_number, .print = sy_print_number, .low = 1, .high = SLOTS_MAX};
static const sy_value_type audit = {.read = sy_read_number,
                                    .print = sy_print_number,
                                    .high = LOG_MAX,
                                    .power_of_two = true,
                                    .can_be_off = true};
static const sy_value_type stack_depth = {
    .read = sy_read_number, .print = sy_print_number, .low = 1, .high = watch_options_DEPTH_MAX};
static const sy_value_type watch_options_decay = {
    .read = sy_read_time, .print = sy_print_time, .low = 1, .high = DECAY_MAX, .can_be_off = true};
static const sy_value_type watch_options_limit = {.read = sy_read_bytes,
                                    .print = sy_print_bytes,
                                    .low = 1,
                                    .high = INT64_MAX,
                                    .can_be_off = true};
static const sy_value_type leaks = {
    .read = read_leaks, .print = sy_print_set, .choices = "destroy|exit|unreachable"};
static const sy_value_type leak_status = {
    .read = sy_read_number, .print = sy_print_number, .high = STATUS_MAX};
static const sy_value_type explain = {
    .read = read_explain, .print = sy_print_choice, .choices = "auto|yes|no"};
static const sy_value_type unwind = {
    .read = sy_read_choice, .print = sy_print_choice, .choices = "auto|frames|tables"};
static const sy_value_type colour = {
    .read = sy_read_choice, .print = sy_print_choice, .choices = "auto|always|never"};
static const sy_value_type on_fault = {
    .read = sy_read_choice, .print = sy_print_choice, .choices = "abort|continue"};
static const sy_value_type tools = {
    .read = sy_read_choice, .print = sy_print_choice, .choices = "auto|off|malloc"};

static const watch_options_row watch_options_table[OPTIONS] = {
    [CHECK] = {.says = {"check", "yes|no", "yes", "no",
                        "Every free is validated: foreign pointers, double frees, wrong caches and "
                        "sizes."},
               .type = &yes_no,
               .check = SY_CHECKED},
    [REDZONE] = {.says = {"redzone", "BYTES, 16 to 64K, or off", "64", "off",
                          "This many bytes before and behind each object are filled and "
                          "verified."},
                 .type = &redzone,
                 .check = SY_REDZONE},
    [POISON] = {.says = {"poison", "yes|no", "yes", "no",
                         "Free objects are filled with a pattern, which is verified "
                         "before they are given out again."},
                .type = &yes_no,
                .check = SY_POISON},
    [QUARANTINE] = {.says = {"quarantine", "N, 1 to 1048576, or off", "256", "off",
                             "This many freed objects of each cache wait before they are "
                             "reused."},
                    .type = &quarantine,
                    .check = SY_QUARANTINE},
    [EXIT_CHECK] = {.says = {"exit-check", "yes|no", "yes", "yes",
                             "Free objects that poison has filled are verified once more "
                             "when the process ends."},
                    .type = &yes_no},
    [ZERO] = {.says = {"zero", "yes|no", "yes", "no",
                       "Objects are filled with zeroes when they are freed."},
              .type = &yes_no,
              .check = SY_ZERO},
    [watch_options_GUARD] = {.says = {"guard", "1/N, N, all or off", "1/1000", "off",
                        "One allocation in N gets pages of its own, with inaccessible "
                        "pages beside them."},
               .type = &watch_options_guard,
               .check = SY_GUARD},
    [GUARD_SLOTS] = {.says = {"guard-slots", "N, 1 to 65536", NULL, "256",
                              "The number of objects that are guarded at a time, freed ones "
                              "included."},
                     .type = &guard_slots},
    [watch_options_RANDOM] = {.says = {"random", "yes|no", "yes", "no", "Slots are given out in random order."},
                .type = &yes_no,
                .check = SY_RANDOM},
    [EDGES] = {.says = {"edges", "yes|no", "yes", "no",
                        "The ends of each slab are filled, and verified when the slab "
                        "is released."},
               .type = &yes_no,
               .check = SY_EDGES},
    [DUMP] = {.says = {"dump", "yes|no", "yes", "yes", "Core dumps contain the memory of objects."},
              .type = &yes_no},
    [LOCK] = {.says = {"lock", "yes|no", "yes", "no",
                       "The memory of objects is locked: never written to swap."},
              .type = &yes_no,
              .check = SY_LOCKED},
    [AUDIT] = {.says = {"audit", "N, 0 to 1048576, or off", "0", "off",
                        "The stack, thread and time of each allocation and free are "
                        "recorded, and the last N operations of each cache are kept "
                        "(N is rounded up to a power of two)."},
               .type = &audit,
               .check = SY_AUDIT},
    [STACK_DEPTH] = {.says = {"stack-depth", "N, 1 to 64", NULL, "16",
                              "The number of frames that are recorded of each stack."},
                     .type = &stack_depth},
    [UNWIND] = {.says = {"unwind", "auto|frames|tables", NULL, "auto",
                         "How stacks are found: by frame pointers, by unwinding tables, or by "
                         "whichever works."},
                .type = &unwind},
    [LEAKS] = {.says = {"leaks", "off, all, or destroy, exit, unreachable with + between", "exit",
                        "off",
                        "Live objects are reported when their cache is destroyed, "
                        "when the process exits, or at both times (all); with "
                        "unreachable, the report at exit lists only those that "
                        "nothing points to. Turns audit on."},
               .type = &leaks},
    [LEAK_STATUS] = {.says = {"leak-status", "N, 0 to 255", NULL, "0",
                              "The exit status of a process that has leaks at exit; 0: the "
                              "status stays as it is."},
                     .type = &leak_status},
    [FAIL] = {.says = {"fail", "SPECIFICATION, or off", NULL, "off",
                       "Allocations, or calls to the system, are made to fail."},
              .type = &watch_options_failures,
              .text = TEXT_FAIL},
    [ONLY] = {.says = {"only", "NAMES", NULL, "*",
                       "The caches that checks apply to: names, which may contain * "
                       "and ?, with + between them."},
              .type = &any_text,
              .text = TEXT_ONLY},
    [REPORT] = {.says = {"report", "PATH, or stderr", NULL, "stderr",
                         "The file that reports are appended to."},
                .type = &any_text,
                .text = TEXT_REPORT},
    [STATS] = {.says = {"stats", "yes|no", "yes", "no",
                        "A table of memory by cache is written to stderr at exit."},
               .type = &yes_no},
    [HELP] = {.says = {"help", "yes|no", "yes", "no",
                       "All options are listed on stderr at start; the program then "
                       "runs as usual."},
              .type = &yes_no},
    [COLOUR] = {.says = {"colour", "auto|always|never", NULL, "auto",
                         "Colours in reports; auto: on a terminal, if NO_COLOR is not set."},
                .type = &colour},
    [SYMBOLS] = {.says = {"symbols", "yes|no", "yes", "yes",
                          "Reports name functions, files and lines."},
                 .type = &yes_no},
    [EXPLAIN] = {.says = {"explain", "auto|yes|no", "yes", "auto",
                          "A report explains a SIGSEGV or SIGBUS that hits a guarded "
                          "object or comes from a pointer that was read from poison; "
                          "auto: once an object is guarded."},
                 .type = &explain},
    [ON_FAULT] = {.says = {"on-fault", "abort|continue", NULL, "abort",
                           "After a report, the process aborts or continues."},
                  .type = &on_fault},
    [TOOLS] = {.says = {"tools", "auto|off|malloc", NULL, "auto",
                        "Valgrind or AddressSanitizer, if present, is told about each "
                        "object (auto) or not (off); or objects are allocated with "
                        "malloc (malloc)."},
               .type = &tools},
    [DECAY] = {.says = {"decay", "TIME: 1500ms, 2s, 1min, or off", NULL, "1s",
                        "Memory that stays unused returns to the system within two to "
                        "four times this time."},
               .type = &watch_options_decay},
    [MAINTENANCE] = {.says = {"maintenance", "yes|no", "yes", "no",
                              "A background thread returns unused memory, instead of the "
                              "threads that allocate."},
                     .type = &yes_no},
    [LIMIT] = {.says = {"limit", "BYTES: 500M, 2G, or off", NULL, "off",
                        "The most bytes that slabs and large objects of the process "
                        "may take."},
               .type = &watch_options_limit},
};

static const unsigned late_rows[] = {[SY_LATE_DECAY] = DECAY,
                                     [SY_LATE_MAINTENANCE] = MAINTENANCE,
                                     [SY_LATE_LIMIT] = LIMIT,
                                     [SY_LATE_FAILURES] = FAIL};

/* ---- settings ---- */

typedef struct settings {
    uint64_t value[OPTIONS];
    char text[TEXTS][SY_OPTION_TEXT_MAX + 1];
} settings;

static sy_lock watch_options_lock = SY_LOCK_INIT(SY_RANK_OPTIONS);
static settings watch_options_current; /* guarded by the lock, as is `waiting` */
static uint64_t waiting; /* a bit for each row that was said and not taken */
static _Atomic bool loaded;
static _Atomic(void (*)(void)) on_change;

/* As the table's initial values say, for those who read before anything is loaded. */
sy_options sy_options_now = {.redzone = 64,
                             .quarantine = 256,
                             .guard_every = 1000,
                             .guard_slots = 256,
                             .stack_depth = 16,
                             .exit_check = true,
                             .symbols = true};

static sy_word watch_options_word_of(const char *text) { return (sy_word){text, strlen(text)}; }

static bool set_value(settings *all, unsigned which, sy_word word) {
    const watch_options_row *it = &watch_options_table[which];
    uint64_t value;
    if (!it->type->read(it->type, word, &value)) return false;
    all->value[which] = value;
    if (it->text) {
        memcpy(all->text[it->text], word.start, word.length);
        all->text[it->text][word.length] = 0;
    }
    return true;
}

static void set_initial(settings *all) {
    for (unsigned i = 0; i < OPTIONS; i++) set_value(all, i, watch_options_word_of(watch_options_table[i].says.initial));
}

/* The number of an option; of one that is off, what its name alone would mean. */
static uint32_t amount(unsigned which) {
    uint64_t value = watch_options_current.value[which];
    const watch_options_row *it = &watch_options_table[which];
    if (value == SY_VALUE_OFF && it->says.bare)
        it->type->read(it->type, watch_options_word_of(it->says.bare), &value);
    return (uint32_t)value;
}

static bool is_on(unsigned which) { return watch_options_current.value[which] != SY_VALUE_OFF; }

static unsigned choice(unsigned which) { return (unsigned)watch_options_current.value[which]; }

static unsigned checks(void) {
    unsigned flags = is_on(DUMP) ? 0 : SY_NO_DUMP;
    for (unsigned i = 0; i < OPTIONS; i++)
        if (is_on(i)) flags |= watch_options_table[i].check;
    return choice(LEAKS) ? flags | SY_AUDIT : flags;
}

/* Writes the settings to where the library reads them. The lock is held. */
static void watch_options_publish(void) {
    sy_options_now.checks = checks();
    sy_options_now.redzone = amount(REDZONE);
    sy_options_now.quarantine = amount(QUARANTINE);
    sy_options_now.audit_log = amount(AUDIT);
    sy_options_now.guard_every = amount(watch_options_GUARD);
    sy_options_now.guard_slots = amount(GUARD_SLOTS);
    sy_options_now.stack_depth = amount(STACK_DEPTH);
    sy_options_now.unwind = choice(UNWIND);
    sy_options_now.leaks = choice(LEAKS);
    sy_options_now.leak_status = choice(LEAK_STATUS);
    sy_options_now.tools = choice(TOOLS);
    sy_options_now.colour = choice(COLOUR);
    sy_options_now.exit_check = is_on(EXIT_CHECK);
    sy_options_now.symbols = is_on(SYMBOLS);
    sy_options_now.stats = is_on(STATS);
    sy_options_now.explain = choice(EXPLAIN);
    sy_options_now.go_on = choice(ON_FAULT) != 0;
}

/* ---- reading ---- */

typedef enum problem { watch_options_NONE, UNKNOWN, NO_SUCH_VALUE, VALUE_NEEDED } problem;

static unsigned find_option(sy_word name) {
    unsigned which = 0;
    while (which < OPTIONS && !sy_word_is(name, watch_options_table[which].says.name)) which++;
    return which;
}

/* One part of what was said, `name` or `name=value`. */
typedef struct part {
    sy_word name, value;
    bool bare;
} part;

/* The next part that is not empty; false: there is none. */
static bool next_part(sy_word *rest, part *next) {
    while (rest->length) {
        sy_word whole = sy_word_split(rest, ',');
        size_t length = whole.length;
        sy_word name = sy_word_split(&whole, '=');
        *next = (part){sy_word_trim(name), sy_word_trim(whole), name.length == length};
        if (next->name.length || !next->bare) return true;
    }
    return false;
}

/* Sets what a part says, and notes its row in *said. */
static problem set_part(settings *all, part said_part, uint64_t *said) {
    unsigned which = find_option(said_part.name);
    if (which == OPTIONS) return UNKNOWN;
    const char *bare = watch_options_table[which].says.bare;
    if (said_part.bare && !bare) return VALUE_NEEDED;
    if (!set_value(all, which, said_part.bare ? watch_options_word_of(bare) : said_part.value))
        return NO_SUCH_VALUE;
    *said |= UINT64_C(1) << which;
    return watch_options_NONE;
}

/* Sets what is understood, and says whether that is all. */
static bool set_all(settings *all, const char *text, uint64_t *said) {
    bool fine = true;
    part next;
    for (sy_word rest = watch_options_word_of(text); next_part(&rest, &next);)
        if (set_part(all, next, said) != watch_options_NONE) fine = false;
    return fine;
}

/* ---- the environment ---- */

enum {
    ECHO_MAX = 60, /* characters of what was said that are repeated */
    NEAR = 2,      /* a name so many steps away may have been meant, */
    NEAR_SHARE = 2 /* if the word is more than so many times as long */
};

static void add_word(sy_text *text, sy_word word) {
    sy_text_add(text, "\"");
    for (size_t i = 0; i < word.length && i < ECHO_MAX; i++) {
        bool plain = (unsigned char)word.start[i] >= ' ' && word.start[i] != 127;
        sy_text_add(text, (char[]){plain ? word.start[i] : '?', 0});
    }
    sy_text_add(text, word.length > ECHO_MAX ? "...\"" : "\"");
}

static void add_nearest(sy_text *text, sy_word name) {
    unsigned nearest = OPTIONS, least = NEAR + 1;
    for (unsigned i = 0; i < OPTIONS; i++) {
        unsigned distance = sy_word_distance(name, watch_options_table[i].says.name);
        if (distance >= least || distance * NEAR_SHARE >= name.length) continue;
        least = distance;
        nearest = i;
    }
    if (nearest == OPTIONS) return;
    sy_text_add(text, ", did you mean ");
    add_word(text, watch_options_word_of(watch_options_table[nearest].says.name));
    sy_text_add(text, "?");
}

/* slabyard: option "chekc" is unknown (SLABYARD), did you mean "check"? */
static void watch_options_tell(problem what, part said) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: option ");
    add_word(&text, said.name);
    if (what == UNKNOWN) {
        sy_text_add(&text, " is unknown (SLABYARD)");
        add_nearest(&text, said.name);
    } else {
        sy_text_add(&text, what == VALUE_NEEDED ? " needs a value" : " cannot be ");
        if (what == NO_SUCH_VALUE) add_word(&text, said.value);
        sy_text_add(&text, " (SLABYARD), it takes ");
        sy_text_add(&text, watch_options_table[find_option(said.name)].says.values);
    }
    sy_text_add(&text, "\n");
    sy_os_write(2, text.bytes, text.length);
}

static void tell_problems(const char *text) {
    settings nowhere;
    uint64_t said = 0;
    part next;
    for (sy_word rest = watch_options_word_of(text); next_part(&rest, &next);) {
        problem what = set_part(&nowhere, next, &said);
        if (what != watch_options_NONE) watch_options_tell(what, next);
    }
}

/* ---- help ---- */

enum { HELP_WIDTH = 80, HELP_INDENT = 6 };

/* Words of a sentence, in lines that are not longer than the terminal's usual width. */
static void add_wrapped(sy_text *text, const char *sentence) {
    size_t column = HELP_WIDTH;
    for (sy_word rest = watch_options_word_of(sentence); rest.length;) {
        sy_word word = sy_word_split(&rest, ' ');
        bool fits = column + 1 + word.length <= HELP_WIDTH;
        sy_text_add(text, fits ? " " : "\n      ");
        column = (fits ? column + 1 : HELP_INDENT) + word.length;
        for (size_t i = 0; i < word.length; i++) sy_text_add(text, (char[]){word.start[i], 0});
    }
    sy_text_add(text, "\n");
}

/*   redzone=BYTES, 16 to 64K, or off  (default: off; name alone: 64)
 *       This many bytes before and behind ... */
static void tell_option(const sy_option *option) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "  ");
    sy_text_add(&text, option->name);
    sy_text_add(&text, "=");
    sy_text_add(&text, option->values);
    sy_text_add(&text, "  (default: ");
    sy_text_add(&text, option->initial);
    if (option->bare) {
        sy_text_add(&text, "; name alone: ");
        sy_text_add(&text, option->bare);
    }
    sy_text_add(&text, ")");
    add_wrapped(&text, option->meaning);
    sy_os_write(2, text.bytes, text.length);
}

static void tell_help(void) {
    static const char title[] = "slabyard: options of SLABYARD, with commas between:\n";
    sy_os_write(2, title, sizeof title - 1);
    for (unsigned i = 0; i < OPTIONS; i++) tell_option(&watch_options_table[i].says);
}

void sy_options_load(void) {
    if (atomic_load_explicit(&loaded, memory_order_acquire)) return;
    const char *text = sy_os_option("SLABYARD");
    bool first = false, fine = true, help = false;
    sy_lock_acquire(&watch_options_lock);
    if (!atomic_load_explicit(&loaded, memory_order_relaxed)) {
        first = true;
        set_initial(&watch_options_current);
        if (text) fine = set_all(&watch_options_current, text, &waiting);
        watch_options_publish();
        help = is_on(HELP);
        atomic_store_explicit(&loaded, true, memory_order_release);
    }
    sy_lock_release(&watch_options_lock);
    if (first && !fine) tell_problems(text);
    if (help) tell_help();
}

/* ---- the doors ---- */

int sy_set_options(const char *text) {
    settings draft;
    uint64_t said = 0;
    if (!text) {
        errno = EINVAL;
        return -1;
    }
    sy_options_load();
    sy_lock_acquire(&watch_options_lock);
    draft = watch_options_current;
    bool fine = set_all(&draft, text, &said);
    if (fine) {
        watch_options_current = draft;
        waiting |= said;
        watch_options_publish();
    }
    sy_lock_release(&watch_options_lock);
    if (!fine) errno = EINVAL;
    void (*changed)(void) = atomic_load(&on_change);
    if (fine && changed) changed();
    return fine ? 0 : -1;
}

int sy_get_option(const char *name, char *value, size_t room) {
    unsigned which = name ? find_option(watch_options_word_of(name)) : OPTIONS;
    if (which == OPTIONS) {
        errno = EINVAL;
        return -1;
    }
    const watch_options_row *it = &watch_options_table[which];
    sy_text text = {.length = 0};
    sy_options_load();
    sy_lock_acquire(&watch_options_lock);
    if (it->text)
        sy_text_add(&text, watch_options_current.text[it->text]);
    else
        it->type->print(it->type, watch_options_current.value[which], &text);
    sy_lock_release(&watch_options_lock);
    if (text.length >= room) {
        errno = ERANGE;
        return -1;
    }
    memcpy(value, text.bytes, text.length);
    value[text.length] = 0;
    return (int)text.length;
}

int sy_each_option(int (*visit)(void *arg, const sy_option *option), void *arg) {
    int result = 0;
    SY_CALLBACK(call, .function = "visitor of sy_each_option");
    for (unsigned i = 0; i < OPTIONS && result == 0; i++) result = visit(arg, &watch_options_table[i].says);
    call.returned = true;
    return result;
}

/* ---- for the library ---- */

bool sy_options_mean(const char *cache) {
    bool meant = false;
    sy_options_load();
    sy_lock_acquire(&watch_options_lock);
    for (sy_word rest = watch_options_word_of(watch_options_current.text[TEXT_ONLY]); rest.length && !meant;) {
        sy_word pattern = sy_word_split(&rest, '+');
        meant = sy_glob(pattern.start, pattern.length, cache);
    }
    sy_lock_release(&watch_options_lock);
    return meant;
}

/* A copy of a text, "" for the word that means that there is none. */
static void copy_text(unsigned which, const char *none, char *text) {
    sy_options_load();
    sy_lock_acquire(&watch_options_lock);
    bool set = strcmp(watch_options_current.text[which], none) != 0;
    memcpy(text, watch_options_current.text[which], sizeof watch_options_current.text[which]);
    sy_lock_release(&watch_options_lock);
    if (!set) text[0] = 0;
}

void sy_options_report_path(char *path) { copy_text(TEXT_REPORT, "stderr", path); }

void sy_options_failures(char *text) { copy_text(TEXT_FAIL, "off", text); }

bool sy_options_take(sy_late option, uint64_t *value) {
    uint64_t bit = UINT64_C(1) << late_rows[option];
    sy_lock_acquire(&watch_options_lock);
    bool said = waiting & bit;
    waiting &= ~bit;
    *value = watch_options_current.value[late_rows[option]];
    sy_lock_release(&watch_options_lock);
    if (*value == SY_VALUE_OFF) *value = 0;
    return said;
}

void sy_options_on_change(void (*changed)(void)) { atomic_store(&on_change, changed); }

static int start_options(void) {
    sy_options_load();
    return 0;
}

static void hold_options(void) { sy_lock_hold(&watch_options_lock); }

static void drop_options(void) { sy_lock_drop(&watch_options_lock); }

const sy_part sy_options_part = {
    .start = start_options, .hold = hold_options, .drop = drop_options};

/* ==== src/watch/report.c ==== */

/*
 * report.c: see report.h. What is guarded by the lock belongs to the report that is being made.
 */

enum {
    REPORT_MAX = 64 << 10,
    DUMP_LINE = 16, /* bytes in a line of a dump */
};

static const char cut_off[] = "  (the report is longer: what follows is cut off)\n";
static const char emphasis[] = "\033[1;31m", plain[] = "\033[0m";

static sy_lock watch_report_lock = SY_LOCK_INIT(SY_RANK_REPORT);
static char buffer[REPORT_MAX + sizeof cut_off];
static size_t length;
static bool full; /* something did not fit */
static bool coloured;
static char path[SY_OPTION_TEXT_MAX + 1]; /* "": stderr */

static SY_TLS bool in_report;
static SY_TLS int errno_before;

/* ---- begin and end ---- */

static bool is_said(const char *name) {
    const char *text = sy_os_option(name);
    return text && *text;
}

static bool wants_colour(void) {
    unsigned when = atomic_load_explicit(&sy_options_now.colour, memory_order_relaxed);
    if (when != SY_WHEN_AUTO) return when == SY_WHEN_ALWAYS;
    return !*path && sy_os_is_terminal(2) && !is_said("NO_COLOR");
}

bool sy_report_begin(void) {
    if (in_report) return false;
    in_report = true;
    errno_before = errno;
    sy_options_load();
    sy_lock_acquire(&watch_report_lock);
    length = 0;
    full = false;
    sy_lookup_forget();
    sy_options_report_path(path);
    coloured = wants_colour();
    return true;
}

/* To the end of the file, or to stderr if it is "" or cannot be written to. */
static void write_out(const char *file, const char *what, size_t bytes) {
    if (*file && sy_os_append(file, what, bytes) == 0) return;
    if (*file) {
        sy_text text = {.length = 0};
        sy_text_add(&text, "slabyard: cannot write to ");
        sy_text_add(&text, file);
        sy_text_add(&text, ", so here:\n");
        sy_os_write(2, text.bytes, text.length);
    }
    sy_os_write(2, what, bytes);
}

/* What was cut ends with a whole line, and says so. */
static void mark_cut(void) {
    while (length && buffer[length - 1] != '\n') length--;
    memcpy(buffer + length, cut_off, sizeof cut_off - 1);
    length += sizeof cut_off - 1;
}

void sy_report_end(void) {
    if (full) mark_cut();
    if (length) write_out(path, buffer, length);
    sy_lock_release(&watch_report_lock);
    errno = errno_before;
    in_report = false;
}

void sy_report_line(const char *line, size_t bytes) {
    int error = errno;
    char file[SY_OPTION_TEXT_MAX + 1];
    sy_options_report_path(file);
    write_out(file, line, bytes);
    errno = error;
}

static void forget_report(void) {
    sy_lock_init(&watch_report_lock, SY_RANK_REPORT);
    in_report = false;
}

const sy_part sy_report_part = {.inherit = forget_report};

/* ---- words ---- */

static void add_text(const char *text, size_t bytes) {
    if (bytes > REPORT_MAX - length || full) {
        full = true;
        return;
    }
    memcpy(buffer + length, text, bytes);
    length += bytes;
}

void sy_report_text(const char *text) { add_text(text, strlen(text)); }

static void add_in_base(uint64_t value, unsigned base) {
    sy_text text = {.length = 0};
    sy_text_add_in_base(&text, value, base);
    add_text(text.bytes, text.length);
}

void sy_report_number(uint64_t value) { add_in_base(value, 10); }

void sy_report_hex(uint64_t value) {
    add_text("0x", 2);
    add_in_base(value, 16);
}

/* The value in units of `unit`, with one digit behind the point while it is small. */
static void add_amount(uint64_t value, uint64_t unit, const char *name) {
    add_in_base(value / unit, 10);
    if (unit > 1 && value / unit < 10) {
        add_text(".", 1);
        add_in_base(value % unit * 10 / unit, 10);
    }
    add_text(" ", 1);
    sy_report_text(name);
}

typedef struct unit {
    uint64_t worth;
    const char *name;
} unit;

/* In the largest unit of which there is one. */
static void add_in_units(uint64_t value, const unit *units, size_t count) {
    size_t which = 0;
    while (which + 1 < count && value >= units[which + 1].worth) which++;
    add_amount(value, units[which].worth, units[which].name);
}

void sy_report_time(uint64_t ns) {
    static const unit units[] = {{1, "ns"},
                                 {1000, "us"},
                                 {1000000, "ms"},
                                 {1000000000, "s"},
                                 {UINT64_C(60) * 1000000000, "min"},
                                 {UINT64_C(3600) * 1000000000, "h"}};
    add_in_units(ns, units, sizeof units / sizeof *units);
}

void sy_report_bytes(uint64_t bytes) {
    static const unit units[] = {{1, "bytes"},
                                 {1 << 10, "KiB"},
                                 {1 << 20, "MiB"},
                                 {1 << 30, "GiB"},
                                 {UINT64_C(1) << 40, "TiB"}};
    if (bytes == 1)
        sy_report_text("1 byte");
    else
        add_in_units(bytes, units, sizeof units / sizeof *units);
}

void sy_report_exactly(uint64_t bytes) {
    sy_report_number(bytes);
    sy_report_text(bytes == 1 ? " byte" : " bytes");
}

void sy_report_loud(void) {
    if (coloured) sy_report_text(emphasis);
}

void sy_report_quiet(void) {
    if (coloured) sy_report_text(plain);
}

/* ---- stacks ---- */

enum {
    LINES_MAX = 2 * SY_SYMBOLS_MAX,
    START_LINES = 3, /* of the C library, which calls main */
};

/* The lines of the stack that was looked up, each beginning with its sy_whose. */
static const char *lines[LINES_MAX];
static size_t line_count;

void sy_report_look(const void *const *frames, size_t depth, sy_lookup_next *next, void *arg) {
    bool deep = atomic_load_explicit(&sy_options_now.symbols, memory_order_relaxed);
    sy_lookup_stack(frames, depth, deep, next, arg);
    if (depth > SY_SYMBOLS_MAX) depth = SY_SYMBOLS_MAX;
    line_count = 0;
    for (size_t i = 0; i < depth; i++)
        for (const char *line = sy_lookup_lines(frames[i]); *line;) {
            if (line_count < LINES_MAX) lines[line_count++] = line;
            line = strchr(line, '\n') + 1;
        }
}

static bool is_whose(size_t line, sy_whose whose) { return *lines[line] == (char)whose; }

/* The first line from `line` on that is of somebody else. */
static size_t past(size_t line, sy_whose whose, sy_whose or_whose) {
    while (line < line_count && (is_whose(line, whose) || is_whose(line, or_whose))) line++;
    return line;
}

/* Where the program begins; if it does not, behind our own. 0, if there is nothing else. */
static size_t first_line(void) {
    size_t first = past(0, SY_WHOSE_OWN, SY_WHOSE_LANGUAGE);
    while (first < line_count && is_whose(first, SY_WHOSE_RUNTIME))
        first = past(first, SY_WHOSE_LANGUAGE, SY_WHOSE_RUNTIME);
    if (first < line_count && is_whose(first, SY_WHOSE_PROGRAM)) return first;
    first = past(0, SY_WHOSE_OWN, SY_WHOSE_OWN);
    return first < line_count ? first : 0;
}

/* Compilers put what is rarely run of main apart, as main.cold. */
static bool is_main(const char *line) {
    static const char name[] = "main";
    if (strncmp(line + 1, name, sizeof name - 1) != 0) return false;
    return line[sizeof name] == ' ' || line[sizeof name] == '+' || line[sizeof name] == '.';
}

static size_t past_main(void) {
    for (size_t line = line_count; line > 0 && line_count - line <= START_LINES; line--)
        if (is_main(lines[line - 1])) return line;
    return line_count;
}

/* Where what is around the program begins. */
static size_t last_line(size_t first) {
    size_t start = first;
    while (start < line_count && !is_whose(start, SY_WHOSE_START)) start++;
    if (start == line_count) return past_main();
    while (start > first && is_whose(start - 1, SY_WHOSE_LANGUAGE)) start--;
    return start > first ? start : line_count;
}

bool sy_report_sees_runtime_alone(void) {
    size_t outer = past(0, SY_WHOSE_OWN, SY_WHOSE_LANGUAGE);
    if (outer == line_count) return false;
    return is_whose(outer, SY_WHOSE_START) || is_whose(outer, SY_WHOSE_RUNTIME);
}

static void watch_report_add_frame(const char *indent, size_t number, const char *line) {
    const char *end = strchr(line, '\n') + 1;
    sy_report_text(indent);
    add_text("#", 1);
    sy_report_number(number);
    add_text(" ", 1);
    add_text(line + 1, (size_t)(end - line) - 1);
}

void sy_report_looked(const char *indent) {
    size_t first = first_line(), end = last_line(first);
    for (size_t i = first; i < end; i++) watch_report_add_frame(indent, i - first, lines[i]);
}

void sy_report_stack(const void *const *frames, size_t depth, const char *indent) {
    sy_report_look(frames, depth, NULL, NULL);
    sy_report_looked(indent);
}

void sy_report_place(uint32_t stack) {
    const void *const *frames;
    size_t depth = sy_stack_frames(stack, &frames);
    sy_report_text("  seen by thread ");
    sy_report_number(sy_os_thread());
    sy_report_text(depth ? ":\n" : "\n");
    if (depth) sy_report_stack(frames, depth, "    ");
}

void sy_report_trace(const char *done, const sy_trace *trace) {
    if (!trace->depth && !trace->thread) return;
    sy_report_text("  ");
    sy_report_text(done);
    sy_report_text(" ");
    sy_report_time(trace->age);
    sy_report_text(" ago by thread ");
    sy_report_number(trace->thread);
    sy_report_text(trace->depth ? ":\n" : "\n");
    if (trace->depth) sy_report_stack(trace->frames, trace->depth, "    ");
}

/* ---- dumps ---- */

/* "+64", "-8" */
static void add_offset(sy_text *text, ptrdiff_t offset) {
    sy_text_add(text, offset < 0 ? "-" : "+");
    sy_text_add_number(text, offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset);
}

static size_t width_of(ptrdiff_t offset) {
    sy_text text = {.length = 0};
    add_offset(&text, offset);
    return text.length;
}

static void pad_to(sy_text *text, size_t column) {
    while (text->length < column) sy_text_add(text, " ");
}

/* What is shown may be hidden from the program, or being written by others. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static void dump_line(
    const unsigned char *at, size_t bytes, ptrdiff_t offset, size_t width) {
    sy_text text = {.length = 0};
    add_offset(&text, offset);
    pad_to(&text, width + 1);
    for (size_t i = 0; i < bytes; i++) {
        sy_text_add(&text, " ");
        sy_text_add_in_base(&text, at[i] >> 4, 16);
        sy_text_add_in_base(&text, at[i] & 15, 16);
    }
    pad_to(&text, width + 1 + 3 * DUMP_LINE + 2);
    for (size_t i = 0; i < bytes; i++) {
        bool printable = at[i] >= ' ' && at[i] < 127;
        sy_text_add(&text, (char[]){printable ? (char)at[i] : '.', 0});
    }
    add_text(text.bytes, text.length);
}

void sy_report_dump(const void *start, size_t bytes, ptrdiff_t offset, const char *indent) {
    size_t lines_before_last = bytes ? (bytes - 1) / DUMP_LINE : 0;
    size_t width = width_of(offset);
    size_t last = width_of(offset + (ptrdiff_t)(lines_before_last * DUMP_LINE));
    if (last > width) width = last;
    for (size_t done = 0; done < bytes; done += DUMP_LINE) {
        size_t left = bytes - done;
        sy_report_text(indent);
        dump_line((const unsigned char *)start + done, left < DUMP_LINE ? left : DUMP_LINE,
                  offset + (ptrdiff_t)done, width);
        add_text("\n", 1);
    }
}

/* ==== src/watch/rust_name.c ==== */

/*
 * rust_name.c: see rust_name.h. A reader that goes through the mangled name once and writes as it
 * goes. A back reference sends it to an earlier place, so a short name could have a text without
 * end: depth, steps and room are limited, and whichever runs out ends the reading.
 */

enum {
    watch_rust_name_DEPTH_MAX = 64,   /* paths and types in one another: some hundred bytes of stack each */
    STEPS_MAX = 4096, /* paths, types and constants read */
    HASH_DIGITS = 16, /* of a legacy name's last part, behind an h */
};

typedef struct watch_rust_name_reader {
    const char *begin, *at, *end; /* of the mangled name, without its prefix */
    char *to;
    size_t length;
    unsigned depth, steps;
    unsigned silent; /* read what follows without writing it */
    bool failed;
} watch_rust_name_reader;

typedef struct watch_rust_name_piece {
    const char *start;
    size_t length;
} watch_rust_name_piece;

/* ---- reading and writing ---- */

static void put_bytes(watch_rust_name_reader *in, const char *text, size_t bytes) {
    if (in->silent || in->failed) return;
    for (size_t i = 0; i < bytes && in->length < SY_RUST_NAME_MAX - 1; i++)
        in->to[in->length++] = text[i];
}

static void put(watch_rust_name_reader *in, const char *text) { put_bytes(in, text, strlen(text)); }

static void put_number(watch_rust_name_reader *in, uint64_t value) {
    char digits[21], *first = digits + sizeof digits - 1;
    *first = 0;
    do *--first = (char)('0' + value % 10);
    while (value /= 10);
    put(in, first);
}

static void fail_name(watch_rust_name_reader *in) {
    in->failed = true;
    in->at = in->end;
}

static char peek(const watch_rust_name_reader *in) { return in->at < in->end ? *in->at : 0; }

static char next_char(watch_rust_name_reader *in) {
    if (in->at == in->end) {
        fail_name(in);
        return 0;
    }
    return *in->at++;
}

static bool take_char(watch_rust_name_reader *in, char wanted) {
    if (peek(in) != wanted) return false;
    in->at++;
    return true;
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

static uint64_t read_decimal(watch_rust_name_reader *in) {
    uint64_t value = 0;
    if (!is_digit(peek(in))) fail_name(in);
    if (take_char(in, '0')) return 0; /* what follows is of something else */
    while (is_digit(peek(in)) && value < UINT32_MAX)
        value = value * 10 + (uint64_t)(next_char(in) - '0');
    return value;
}

/* Digits 0 to 9, a to z, A to Z and a _ behind them; the _ alone is 0. */
static uint64_t read_base_62(watch_rust_name_reader *in) {
    uint64_t value = 0;
    if (take_char(in, '_')) return 0;
    while (!in->failed && !take_char(in, '_')) {
        char digit = next_char(in);
        if (is_digit(digit))
            value = value * 62 + (uint64_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'z')
            value = value * 62 + (uint64_t)(digit - 'a') + 10;
        else if (digit >= 'A' && digit <= 'Z')
            value = value * 62 + (uint64_t)(digit - 'A') + 36;
        else
            fail_name(in);
    }
    return value + 1;
}

/* What tells things of the same name apart: s and a number; 0: nothing does. */
static uint64_t read_disambiguator(watch_rust_name_reader *in) {
    return take_char(in, 's') ? read_base_62(in) + 1 : 0;
}

static watch_rust_name_piece read_bytes(watch_rust_name_reader *in, uint64_t length) {
    watch_rust_name_piece bytes = {in->at, (size_t)length};
    if (length > (uint64_t)(in->end - in->at)) {
        fail_name(in);
        return (watch_rust_name_piece){in->end, 0};
    }
    in->at += length;
    return bytes;
}

/* ---- v0 ---- */

static void read_path(watch_rust_name_reader *in, bool in_value);
static void read_type(watch_rust_name_reader *in);
static void read_constant(watch_rust_name_reader *in);

/* Counts a path, type or constant that begins. If true, call leave_nested() at its end. */
static bool enter_nested(watch_rust_name_reader *in) {
    if (in->failed || in->depth == watch_rust_name_DEPTH_MAX || ++in->steps > STEPS_MAX) fail_name(in);
    if (in->failed) return false;
    in->depth++;
    return true;
}

static void leave_nested(watch_rust_name_reader *in) { in->depth--; }

/* The name of something: u, if it is no ASCII, its length and itself. */
static watch_rust_name_piece watch_rust_name_read_name(watch_rust_name_reader *in) {
    take_char(in, 'u');
    uint64_t length = read_decimal(in);
    take_char(in, '_');
    return read_bytes(in, length);
}

/* Goes on where B says, and comes back. */
static void follow(watch_rust_name_reader *in, void (*read)(watch_rust_name_reader *in)) {
    const char *from = in->at - 1;
    uint64_t where = read_base_62(in);
    const char *back = in->at;
    if (in->failed || where >= (uint64_t)(from - in->begin)) {
        fail_name(in);
        return;
    }
    if (in->silent) return;
    in->at = in->begin + where;
    read(in);
    if (!in->failed) in->at = back;
}

static void read_value_path(watch_rust_name_reader *in) { read_path(in, true); }

static void read_type_path(watch_rust_name_reader *in) { read_path(in, false); }

/* Where an implementation stands: nobody wants to know. */
static void skip_place(watch_rust_name_reader *in) {
    in->silent++;
    read_disambiguator(in);
    read_path(in, false);
    in->silent--;
}

/* A lifetime has no name. */
static void skip_lifetime(watch_rust_name_reader *in) {
    if (take_char(in, 'L')) read_base_62(in);
}

static void skip_binder(watch_rust_name_reader *in) {
    if (take_char(in, 'G')) read_base_62(in);
}

/* How many there were. */
static unsigned read_each_until_end(watch_rust_name_reader *in, void (*read)(watch_rust_name_reader *in), const char *between) {
    unsigned count = 0;
    for (; !in->failed && !take_char(in, 'E'); count++) {
        if (count) put(in, between);
        read(in);
    }
    return count;
}

static void read_argument(watch_rust_name_reader *in) {
    if (peek(in) == 'L') {
        put(in, "'_");
        skip_lifetime(in);
    } else if (take_char(in, 'K')) {
        read_constant(in);
    } else {
        read_type(in);
    }
}

/* A name within another: a function, a type, a closure. */
static void read_nested(watch_rust_name_reader *in, bool in_value) {
    char kind = next_char(in);
    read_path(in, in_value);
    uint64_t which = read_disambiguator(in);
    watch_rust_name_piece name = watch_rust_name_read_name(in);
    bool special = kind >= 'A' && kind <= 'Z';
    if (!special && !name.length) return;
    put(in, special ? "::{" : "::");
    if (special) put(in, kind == 'C' ? "closure" : kind == 'S' ? "shim" : "part");
    if (special && name.length) put(in, ":");
    put_bytes(in, name.start, name.length);
    if (!special) return;
    put(in, "#");
    put_number(in, which);
    put(in, "}");
}

/* <Type>, <Type as Trait>. */
static void read_implementation(watch_rust_name_reader *in, bool of_trait, bool has_place) {
    if (has_place) skip_place(in);
    put(in, "<");
    read_type(in);
    if (of_trait) {
        put(in, " as ");
        read_path(in, false);
    }
    put(in, ">");
}

static void read_path_of(watch_rust_name_reader *in, char kind, bool in_value) {
    switch (kind) {
    case 'C': {
        read_disambiguator(in);
        watch_rust_name_piece name = watch_rust_name_read_name(in);
        put_bytes(in, name.start, name.length);
        return;
    }
    case 'N': read_nested(in, in_value); return;
    case 'M': read_implementation(in, false, true); return;
    case 'X': read_implementation(in, true, true); return;
    case 'Y': read_implementation(in, true, false); return;
    case 'I':
        read_path(in, in_value);
        put(in, in_value ? "::<" : "<");
        read_each_until_end(in, read_argument, ", ");
        put(in, ">");
        return;
    case 'B': follow(in, in_value ? read_value_path : read_type_path); return;
    default: fail_name(in);
    }
}

static void read_path(watch_rust_name_reader *in, bool in_value) {
    if (!enter_nested(in)) return;
    read_path_of(in, next_char(in), in_value);
    leave_nested(in);
}

static const char *basic_type(char letter) {
    static const char *const names[26] = {"i8",   "bool",  "char",  "f64", "str", "f32", NULL,
                                          "u8",   "isize", "usize", NULL,  "i32", "u32", "i128",
                                          "u128", "_",     NULL,    NULL,  "i16", "u16", "()",
                                          "...",  NULL,    "i64",   "u64", "!"};
    return letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : NULL;
}

static void read_function_type(watch_rust_name_reader *in) {
    skip_binder(in);
    if (take_char(in, 'U')) put(in, "unsafe ");
    if (take_char(in, 'K')) {
        put(in, "extern ");
        if (!take_char(in, 'C')) watch_rust_name_read_name(in);
    }
    put(in, "fn(");
    read_each_until_end(in, read_type, ", ");
    put(in, ")");
    if (take_char(in, 'u')) return; /* gives nothing back */
    put(in, " -> ");
    read_type(in);
}

/* A trait. What types it is said to have (p, name, type) would make the line long. */
static void read_bound(watch_rust_name_reader *in) {
    read_path(in, false);
    in->silent++;
    while (take_char(in, 'p')) {
        watch_rust_name_read_name(in);
        read_type(in);
    }
    in->silent--;
}

static void read_dynamic_type(watch_rust_name_reader *in) {
    put(in, "dyn ");
    skip_binder(in);
    read_each_until_end(in, read_bound, " + ");
    skip_lifetime(in);
}

static void read_reference(watch_rust_name_reader *in, const char *words) {
    put(in, words);
    skip_lifetime(in);
    read_type(in);
}

static void read_sequence(watch_rust_name_reader *in, bool has_length) {
    put(in, "[");
    read_type(in);
    if (has_length) {
        put(in, "; ");
        read_constant(in);
    }
    put(in, "]");
}

static void read_tuple(watch_rust_name_reader *in) {
    put(in, "(");
    bool single = read_each_until_end(in, read_type, ", ") == 1;
    put(in, single ? ",)" : ")");
}

static void read_type_of(watch_rust_name_reader *in, char kind) {
    switch (kind) {
    case 'A': read_sequence(in, true); return;
    case 'S': read_sequence(in, false); return;
    case 'R': read_reference(in, "&"); return;
    case 'Q': read_reference(in, "&mut "); return;
    case 'P': read_reference(in, "*const "); return;
    case 'O': read_reference(in, "*mut "); return;
    case 'F': read_function_type(in); return;
    case 'D': read_dynamic_type(in); return;
    case 'B': follow(in, read_type); return;
    case 'T': read_tuple(in); return;
    default: in->at--; read_path(in, false);
    }
}

static void read_type(watch_rust_name_reader *in) {
    if (!enter_nested(in)) return;
    char kind = next_char(in);
    const char *basic = basic_type(kind);
    if (basic)
        put(in, basic);
    else if (!in->failed)
        read_type_of(in, kind);
    leave_nested(in);
}

/* The digits of a constant, and the _ behind them; -1: there are more than a number has. */
static uint64_t read_hex(watch_rust_name_reader *in) {
    uint64_t value = 0;
    while (!in->failed && !take_char(in, '_')) {
        char digit = next_char(in);
        bool letter = digit >= 'a' && digit <= 'f';
        if (!letter && !is_digit(digit)) fail_name(in);
        value = value << 4 | (uint64_t)(letter ? digit - 'a' + 10 : digit - '0');
    }
    return value;
}

/* Numbers and truth values in words, all else as _ (text, structs), which ends what is read. */
static void read_constant_of(watch_rust_name_reader *in, char kind) {
    if (kind == 'p') {
        put(in, "_");
    } else if (kind == 'B') {
        follow(in, read_constant);
    } else if (basic_type(kind)) {
        if (take_char(in, 'n')) put(in, "-");
        uint64_t value = read_hex(in);
        if (kind == 'b')
            put(in, value ? "true" : "false");
        else
            put_number(in, value);
    } else {
        fail_name(in);
    }
}

static void read_constant(watch_rust_name_reader *in) {
    if (!enter_nested(in)) return;
    read_constant_of(in, next_char(in));
    leave_nested(in);
}

/* ---- legacy ---- */

/* What stands between two $ in a part. */
static const char *escaped(watch_rust_name_piece word) {
    static const char *const words[][2] = {
        {"SP", "@"},  {"BP", "*"},  {"RF", "&"},  {"LT", "<"},   {"GT", ">"},  {"LP", "("},
        {"RP", ")"},  {"C", ","},   {"u20", " "}, {"u22", "\""}, {"u27", "'"}, {"u2b", "+"},
        {"u3b", ";"}, {"u3d", "="}, {"u5b", "["}, {"u5d", "]"},  {"u7b", "{"}, {"u7d", "}"},
        {"u7e", "~"}, {"u21", "!"}, {"u23", "#"}, {"u2e", "."}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == word.length && !memcmp(words[i][0], word.start, word.length))
            return words[i][1];
    return NULL;
}

/* Puts what the part begins with: a character that is written in another way, or as it is. How many
 * characters that was. */
static size_t put_character(watch_rust_name_reader *in, watch_rust_name_piece part) {
    if (part.length > 1 && part.start[0] == '.' && part.start[1] == '.') {
        put(in, "::");
        return 2;
    }
    const char *stop = NULL;
    if (*part.start == '$') stop = memchr(part.start + 1, '$', part.length - 1);
    const char *word = NULL;
    if (stop) word = escaped((watch_rust_name_piece){part.start + 1, (size_t)(stop - part.start) - 1});
    if (!word) {
        put_bytes(in, part.start, 1);
        return 1;
    }
    put(in, word);
    return (size_t)(stop + 1 - part.start);
}

static void put_part(watch_rust_name_reader *in, watch_rust_name_piece part) {
    bool underscored = part.length > 1 && part.start[0] == '_' && part.start[1] == '$';
    if (underscored) part = (watch_rust_name_piece){part.start + 1, part.length - 1};
    while (part.length) {
        size_t done = put_character(in, part);
        part = (watch_rust_name_piece){part.start + done, part.length - done};
    }
}

static bool is_hash(watch_rust_name_piece part) {
    if (part.length != HASH_DIGITS + 1 || *part.start != 'h') return false;
    for (size_t i = 1; i < part.length; i++)
        if (!is_digit(part.start[i]) && (part.start[i] < 'a' || part.start[i] > 'f')) return false;
    return true;
}

/* Names of C++ look the same, but for the hash at the end. */
static bool read_legacy(watch_rust_name_reader *in) {
    while (is_digit(peek(in))) {
        watch_rust_name_piece part = read_bytes(in, read_decimal(in));
        if (in->failed) return false;
        if (peek(in) == 'E') return is_hash(part);
        if (in->length) put(in, "::");
        put_part(in, part);
    }
    return false;
}

/* ---- both ---- */

bool sy_rust_name(const char *mangled, char name[SY_RUST_NAME_MAX]) {
    bool legacy = strncmp(mangled, "_ZN", 3) == 0;
    if (!legacy && strncmp(mangled, "_R", 2) != 0) return false;
    const char *begin = mangled + (legacy ? 3 : 2);
    watch_rust_name_reader in = {.begin = begin, .at = begin, .end = begin + strlen(begin), .to = name};
    if (legacy && !read_legacy(&in)) return false;
    if (!legacy) read_path(&in, true);
    name[in.length] = 0;
    return !in.failed && in.length > 0;
}

/* ==== src/watch/stack.c ==== */

/*
 * stack.c: see stack.h. Two ways to take a stack, and the table of those taken.
 *
 * Frame pointers. Each function that keeps one has two words on the stack, and a walk from one to
 * the next costs about a nanosecond a frame. Where a function keeps none the walk goes wrong
 * without a sign: it passes over that function's caller, or follows a number that was never a frame
 * pointer. It reads nothing but this thread's stack, above itself, so that a wrong one does no
 * harm. Tables are right wherever there are any, and take microseconds.
 *
 * Both together. Whether a step of the walk is right depends on the return address alone: it is
 * right where the code at that address has a frame pointer set up. So if tables have confirmed a
 * chain once, each of its steps is right, and the same chain is the right one whenever it is walked
 * again. The table of stacks remembers for each whether its STEPS were confirmed, and whether its
 * END was (where there was no next step, rather than no more room for one); a walk that comes to
 * such a stack is done, any other is followed by tables. Code without frame pointers anywhere in
 * the chain makes the two differ, so its stacks are never confirmed, and come from tables always.
 * (What lies outside of a thread's first function is not compared: ROOT_FRAMES.)
 *
 * The table.
 *
 *     | heads: a word a chain | entry | entry | ...          one reservation; an entry's number
 *          |                     ^  next |                   is its distance in units of 16 bytes
 *          +---------------------+       +--> older ones of the chain
 *
 * An entry is written once and then entered at the front of its chain, by a compare-exchange with
 * release; whoever finds it there has read the head with acquire, or an entry's `next` that was
 * written before such a release, so he sees all of the entry. (The exchanges of one head are a
 * release sequence: a later one does not take the effect of an earlier one away.) `next` does not
 * change after, and nothing is ever taken out, so there is no ABA, and a chain that was searched
 * from a head on needs to be searched again only down to that head. Two threads with the same stack
 * exchange the same head: the second fails, and finds the entry of the first. Nobody waits for
 * anybody: a thread that is stopped in the midst, or does not exist after a fork, leaves at most
 * some bytes unused.
 */

/* ---- the table ---- */

enum {
    HEADS = 1 << 16, /* chains of 15 entries when the table is full of usual ones */
    UNIT = 16,
};

/* Stacks of 15 frames have 136 bytes: a million of them. More than that is a program that makes
 * code as it runs, and whose stacks tell nobody anything. */
static const size_t watch_stack_TABLE_BYTES = (size_t)128 << 20;

/* Committed at once: a system call for thousands of stacks. */
static const size_t COMMIT_BYTES = (size_t)1 << 20;

enum { STEPS = 1, END = 2 };

typedef struct entry {
    uint32_t next; /* number of the next older one in its chain, 0: none */
    uint32_t hash;
    uint32_t number; /* its own, which tells entries from anything else */
    uint16_t depth;
    _Atomic uint8_t confirmed; /* STEPS, END */
    const void *frames[];
} entry;

typedef struct watch_stack_table {
    _Atomic uint32_t heads[HEADS];
    _Atomic size_t used, committed; /* bytes, from the beginning of the table */
    _Atomic size_t count;
} watch_stack_table;

_Static_assert(sizeof(entry) == 16, "an entry begins with two words, on either side of a unit");
_Static_assert(sizeof(watch_stack_table) < (size_t)1 << 20, "the first commit holds the heads");

static _Atomic(watch_stack_table *) stacks;

static size_t entry_bytes(size_t depth) {
    return (sizeof(entry) + depth * sizeof(void *) + UNIT - 1) / UNIT * UNIT;
}

static entry *entry_at(watch_stack_table *in, uint32_t number) {
    return (entry *)(void *)((char *)in + (size_t)number * UNIT);
}

/* Of several first ones all but one give theirs back. */
static watch_stack_table *watch_stack_make_table(void) {
    watch_stack_table *made = sy_os_reserve(watch_stack_TABLE_BYTES, sy_os_page_size(), "slabyard stacks"), *known = NULL;
    if (!made) return NULL;
    if (sy_os_commit(made, COMMIT_BYTES) != 0) {
        sy_os_release(made, watch_stack_TABLE_BYTES);
        return NULL;
    }
    atomic_init(&made->used, (sizeof(watch_stack_table) + UNIT - 1) / UNIT * UNIT);
    atomic_init(&made->committed, COMMIT_BYTES);
    if (atomic_compare_exchange_strong_explicit(&stacks, &known, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    sy_os_release(made, watch_stack_TABLE_BYTES);
    return known;
}

static watch_stack_table *known_table(void) { return atomic_load_explicit(&stacks, memory_order_acquire); }

/* Makes the table's first `bytes` accessible. Whoever reads `committed` has it so: the one who
 * wrote it had. */
static bool commit_table(watch_stack_table *in, size_t bytes) {
    size_t known = atomic_load_explicit(&in->committed, memory_order_acquire);
    while (known < bytes) {
        if (sy_os_commit((char *)in + known, COMMIT_BYTES) != 0) return false;
        if (atomic_compare_exchange_strong_explicit(&in->committed, &known, known + COMMIT_BYTES,
                                                    memory_order_acq_rel, memory_order_acquire))
            known += COMMIT_BYTES;
    }
    return true;
}

/* Room for an entry: its number, 0 if there is none. */
static uint32_t take_room(watch_stack_table *in, size_t bytes) {
    size_t at = atomic_load_explicit(&in->used, memory_order_relaxed);
    do {
        if (bytes > watch_stack_TABLE_BYTES - at || !commit_table(in, at + bytes)) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&in->used, &at, at + bytes,
                                                    memory_order_acquire, memory_order_relaxed));
    return (uint32_t)(at / UNIT);
}

/* Back, unless somebody has taken the room behind it meanwhile: then it stays unused. With release,
 * so that what was written there comes before what the next one writes. */
static void give_room(watch_stack_table *in, uint32_t number, size_t bytes) {
    size_t at = (size_t)number * UNIT, end = at + bytes;
    atomic_compare_exchange_strong_explicit(&in->used, &end, at, memory_order_release,
                                            memory_order_relaxed);
}

static uint32_t watch_stack_hash_of(const void *const *frames, size_t depth) {
    uint64_t hash = depth;
    for (size_t i = 0; i < depth; i++) {
        hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* In the chain from entry `from` down to before entry `to`. */
static entry *watch_stack_search(watch_stack_table *in, uint32_t from, uint32_t to, uint32_t hash,
                     const void *const *frames, size_t depth) {
    while (from != to) {
        entry *here = entry_at(in, from);
        if (here->hash == hash && here->depth == depth &&
            memcmp(here->frames, frames, depth * sizeof *frames) == 0)
            return here;
        from = here->next;
    }
    return NULL;
}

static entry *find_stack(const void *const *frames, size_t depth) {
    watch_stack_table *in = known_table();
    if (!in) return NULL;
    uint32_t hash = watch_stack_hash_of(frames, depth);
    uint32_t head = atomic_load_explicit(&in->heads[hash % HEADS], memory_order_acquire);
    return watch_stack_search(in, head, 0, hash, frames, depth);
}

static entry *write_entry(watch_stack_table *in, uint32_t hash, const void *const *frames, size_t depth) {
    uint32_t number = take_room(in, entry_bytes(depth));
    if (!number) return NULL;
    entry *made = entry_at(in, number);
    made->hash = hash;
    made->number = number;
    made->depth = (uint16_t)depth;
    atomic_init(&made->confirmed, 0);
    memcpy(made->frames, frames, depth * sizeof *frames);
    return made;
}

static entry *keep_in(watch_stack_table *in, const void *const *frames, size_t depth) {
    uint32_t hash = watch_stack_hash_of(frames, depth);
    _Atomic uint32_t *head = &in->heads[hash % HEADS];
    uint32_t first = atomic_load_explicit(head, memory_order_acquire);
    entry *known = watch_stack_search(in, first, 0, hash, frames, depth);
    entry *made = known ? NULL : write_entry(in, hash, frames, depth);
    while (made && !known) {
        made->next = first;
        if (atomic_compare_exchange_strong_explicit(head, &first, made->number,
                                                    memory_order_acq_rel, memory_order_acquire)) {
            atomic_fetch_add_explicit(&in->count, 1, memory_order_relaxed);
            return made;
        }
        known = watch_stack_search(in, first, made->next, hash, frames, depth);
    }
    if (made) give_room(in, made->number, entry_bytes(depth));
    return known;
}

static entry *watch_stack_keep(const void *const *frames, size_t depth) {
    watch_stack_table *in = known_table();
    if (!in) in = watch_stack_make_table();
    return in ? keep_in(in, frames, depth) : NULL;
}

uint32_t sy_stack_keep(const void *const *frames, size_t depth) {
    int saved = errno;
    const entry *kept = watch_stack_keep(frames, depth);
    errno = saved;
    return kept ? kept->number : 0;
}

size_t sy_stack_frames(uint32_t stack, const void *const **frames) {
    watch_stack_table *in = known_table();
    *frames = NULL;
    if (!in || stack < sizeof(watch_stack_table) / UNIT) return 0;
    size_t used = atomic_load_explicit(&in->used, memory_order_relaxed);
    size_t at = (size_t)stack * UNIT;
    if (at >= used) return 0;
    const entry *here = entry_at(in, stack);
    if (here->number != stack || here->depth == 0 || here->depth > SY_STACK_DEPTH_MAX ||
        entry_bytes(here->depth) > used - at || watch_stack_hash_of(here->frames, here->depth) != here->hash)
        return 0;
    *frames = here->frames;
    return here->depth;
}

size_t sy_stack_bytes(void) {
    watch_stack_table *in = known_table();
    return in ? atomic_load_explicit(&in->committed, memory_order_relaxed) : 0;
}

size_t sy_stack_count(void) {
    watch_stack_table *in = known_table();
    return in ? atomic_load_explicit(&in->count, memory_order_relaxed) : 0;
}

/* ---- taking one ---- */

/* Frames outside of a thread's first function, or of main, in the C library, some of which keep no
 * frame pointers: the walk ends at the first of them, and there may be so many more (_start and
 * what it calls, before that calls main). If it had ended earlier, main would be one more. */
enum { ROOT_FRAMES = 2 };

/* No function has a larger frame, or what looks like one is not. */
static const uintptr_t FRAME_BYTES_MAX = (uintptr_t)1 << 20;

/* Longer than what is kept: whether a walk ended where it should is seen by what comes after. */
typedef struct trace {
    size_t depth, max;
    uintptr_t inner; /* frames up to this one are our own */
    uintptr_t from;  /* frames inside of this address are left out; 0: none */
    const void *frames[SY_STACK_DEPTH_MAX + ROOT_FRAMES + 1];
} trace;

static void begin_trace(trace *empty, size_t max, uintptr_t inner) {
    empty->depth = 0;
    empty->max = max;
    empty->inner = inner;
    empty->from = 0;
}

typedef struct bounds {
    bool asked;
    uintptr_t low, high; /* 0: not known */
} bounds;

static SY_TLS bounds own_stack;
static SY_TLS bool busy;

bool sy_stack_is_own(uintptr_t frame) {
    if (!own_stack.asked) {
        own_stack.asked = true;
        if (!sy_os_stack(&own_stack.low, &own_stack.high)) own_stack.low = own_stack.high = 0;
    }
    return frame >= own_stack.low && frame < own_stack.high;
}

/* Sanitizers are told nothing of this: it reads what may be no frame at all. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static void walk(uintptr_t frame,
                                                                                uintptr_t high,
                                                                                trace *into) {
    const uintptr_t record = 2 * sizeof(uintptr_t);
    while (into->depth < into->max) {
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t code = sy_cpu_return_address(words[1]), outer = words[0];
        if (code == 0) return;
        into->frames[into->depth++] = (const void *)code;
        if (outer <= frame || outer - frame > FRAME_BYTES_MAX || outer % sizeof outer != 0 ||
            outer >= high || high - outer < record)
            return;
        frame = outer;
    }
}

static _Unwind_Reason_Code watch_stack_add_frame(struct _Unwind_Context *context, void *arg) {
    trace *into = arg;
    int interrupted = 0;
    uintptr_t code = (uintptr_t)_Unwind_GetIPInfo(context, &interrupted);
    if (code == 0) return _URC_END_OF_STACK;
    if ((uintptr_t)_Unwind_GetCFA(context) <= into->inner) return _URC_NO_REASON;
    if (into->depth == 0 && into->from && code != into->from) return _URC_NO_REASON;
    /* What a signal interrupted has not been called; as all the others, the address is one that
     * the instruction of interest lies before. */
    into->frames[into->depth++] = (const void *)(code + (interrupted ? 1 : 0));
    return into->depth < into->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static uint32_t keep_trace(const trace *taken) {
    const entry *kept = taken->depth ? watch_stack_keep(taken->frames, taken->depth) : NULL;
    return kept ? kept->number : 0;
}

/* What of a walk needs to be confirmed, or is when it agrees with tables. */
static uint8_t claims(const trace *walked) { return walked->depth == walked->max ? STEPS : END; }

static bool agree(const trace *walked, const trace *taken) {
    if (walked->depth == 0 || walked->depth > taken->depth) return false;
    if (claims(walked) == END && taken->depth - walked->depth > ROOT_FRAMES) return false;
    return memcmp(walked->frames, taken->frames, walked->depth * sizeof *walked->frames) == 0;
}

/* If its end was, its steps were. */
static bool is_confirmed(const entry *known, const trace *walked) {
    return atomic_load_explicit(&known->confirmed, memory_order_relaxed) >= claims(walked);
}

static uint32_t take_by_frames(uintptr_t frame, unsigned max) {
    trace walked;
    begin_trace(&walked, max, frame);
    walk(frame, sy_stack_is_own(frame) ? own_stack.high : 0, &walked);
    return keep_trace(&walked);
}

static uint32_t take_by_tables(uintptr_t frame, unsigned max, uintptr_t from) {
    trace taken;
    begin_trace(&taken, max, frame);
    taken.from = from;
    _Unwind_Backtrace(watch_stack_add_frame, &taken);
    return keep_trace(&taken);
}

/* Both ways; the stack as walked is the one that is kept if they agree, so that it is found. */
static uint32_t confirm(const trace *walked, uintptr_t frame) {
    trace taken;
    begin_trace(&taken, walked->max + ROOT_FRAMES + 1, frame);
    _Unwind_Backtrace(watch_stack_add_frame, &taken);
    if (!agree(walked, &taken)) {
        if (taken.depth > walked->max) taken.depth = walked->max;
        return keep_trace(&taken);
    }
    entry *kept = watch_stack_keep(walked->frames, walked->depth);
    if (!kept) return 0;
    atomic_fetch_or_explicit(&kept->confirmed, claims(walked), memory_order_relaxed);
    return kept->number;
}

static uint32_t take_by_either(uintptr_t frame, unsigned max) {
    if (!sy_stack_is_own(frame)) return take_by_tables(frame, max, 0);
    trace walked;
    begin_trace(&walked, max, frame);
    walk(frame, own_stack.high, &walked);
    const entry *known = walked.depth ? find_stack(walked.frames, walked.depth) : NULL;
    if (known && is_confirmed(known, &walked)) return known->number;
    return confirm(&walked, frame);
}

/* `from`: as in a trace. Frame pointers pass by the function that a signal interrupted. */
static uint32_t take_stack(uintptr_t frame, uintptr_t from, unsigned max) {
    unsigned way = atomic_load_explicit(&sy_options_now.unwind, memory_order_relaxed);
    if (max > SY_STACK_DEPTH_MAX) max = SY_STACK_DEPTH_MAX;
    if (max == 0) return 0;
    if (way == SY_UNWIND_TABLES || !sy_cpu_has_frames() || from)
        return take_by_tables(frame, max, from);
    return way == SY_UNWIND_FRAMES ? take_by_frames(frame, max) : take_by_either(frame, max);
}

/* Of the frames around `frame`. */
static uint32_t take_once(uintptr_t frame, uintptr_t from, unsigned max) {
    if (busy) return 0;
    int saved = errno;
    busy = true;
    uint32_t number = take_stack(frame, from, max);
    busy = false;
    errno = saved;
    return number;
}

__attribute__((noinline)) uint32_t sy_stack_here(void) {
    unsigned max = atomic_load_explicit(&sy_options_now.stack_depth, memory_order_relaxed);
    return take_once((uintptr_t)__builtin_frame_address(0), 0, max);
}

__attribute__((noinline)) uint32_t sy_stack_whole(void) {
    return take_once((uintptr_t)__builtin_frame_address(0), 0, SY_STACK_DEPTH_MAX);
}

__attribute__((noinline)) uint32_t sy_stack_from(uintptr_t code) {
    return take_once((uintptr_t)__builtin_frame_address(0), code, SY_STACK_DEPTH_MAX);
}

/* ==== src/watch/symbols.c ==== */

/*
 * symbols.c: see symbols.h. The child fills a sy_symbols of its own, address by address, and counts
 * one when all its lines are there; so whatever ends it, what it counted is whole, and the parent
 * goes on behind what it wrote. The parent validates counts and
 * offsets before it uses them.
 */

/* Of the child: some thousand files of debug information are opened in less. */
enum { SECONDS = 20 };

/* ---- text ---- */

/* Room is kept for the end of a line and of an address. */
static void add_symbol_text(sy_symbols *to, const char *text) {
    while (*text && to->length < SY_SYMBOLS_TEXT - 2) to->text[to->length++] = *text++;
}

static void add_number(sy_symbols *to, const char *before, uint64_t value, unsigned base) {
    sy_text digits = {.length = 0};
    sy_text_add(&digits, before);
    sy_text_add_in_base(&digits, value, base);
    digits.bytes[digits.length] = 0;
    add_symbol_text(to, digits.bytes);
}

static void watch_symbols_end_line(sy_symbols *to) {
    if (to->length < SY_SYMBOLS_TEXT - 1) to->text[to->length++] = '\n';
}

static void begin_line(sy_symbols *to, sy_whose whose) {
    add_symbol_text(to, (const char[]){(char)whose, 0});
}

/* A line of what is known without debug information: of `function`, whose name is in words. */
static void watch_symbols_add_place(sy_symbols *to, uintptr_t address, const char *function, uint64_t behind,
                      const sy_os_place *place, bool rust) {
    bool known = function && *function;
    sy_whose whose = known ? sy_whose_function(function, NULL, rust) : SY_WHOSE_PROGRAM;
    begin_line(to, place && sy_whose_library(place->file) ? SY_WHOSE_OWN : whose);
    if (known) {
        add_symbol_text(to, function);
        add_number(to, "+0x", behind, 16);
    } else {
        add_number(to, "0x", place ? place->in_file : address, 16);
    }
    if (place) {
        add_symbol_text(to, " in ");
        add_symbol_text(to, place->file);
    }
    watch_symbols_end_line(to);
}

static void add_line(void *arg, sy_whose whose, const char *function, const char *path, int line) {
    sy_symbols *to = arg;
    begin_line(to, whose);
    add_symbol_text(to, function);
    if (path) {
        add_symbol_text(to, " at ");
        add_symbol_text(to, path);
        if (line > 0) add_number(to, ":", (uint64_t)line, 10);
    }
    watch_symbols_end_line(to);
}

/* ---- addresses ---- */

static size_t counted(sy_symbols *of) {
    return atomic_load_explicit(&of->count, memory_order_relaxed);
}

/* Something may have been cut. */
static bool is_full(const sy_symbols *symbols) { return symbols->length >= SY_SYMBOLS_TEXT - 1; }

static void begin_address(sy_symbols *to) { to->at[counted(to)] = to->length; }

/* When the count is seen, by whoever waited for the child's end, so are the lines. */
static void end_address(sy_symbols *to) {
    to->text[to->length] = 0;
    if (to->length < SY_SYMBOLS_TEXT - 1) to->length++;
    atomic_store_explicit(&to->count, counted(to) + 1, memory_order_release);
}

/* The name as it stands in a table of symbols, in words; those of C++ only `in_child`. */
static void add_mangled(sy_symbols *to, uintptr_t address, const char *function, uint64_t behind,
                        const sy_os_place *place, bool in_child) {
    char words[SY_RUST_NAME_MAX];
    bool rust = function && sy_rust_name(function, words);
    const char *name = rust ? words : NULL;
    if (!name && function && in_child) name = sy_cxx_name(function);
    watch_symbols_add_place(to, address, name ? name : function, behind, place, rust);
}

static void add_shallow(sy_symbols *to, uintptr_t address, bool in_child) {
    sy_os_place place;
    if (sy_os_locate(address, &place))
        add_mangled(to, address, place.function, place.in_function, &place, in_child);
    else
        add_mangled(to, address, NULL, 0, NULL, in_child);
}

/* What libdw has no lines for it may still have a name for. */
static void add_named(sy_symbols *to, uintptr_t address) {
    sy_os_place place;
    uint64_t behind = 0;
    bool known = sy_os_locate(address, &place);
    const char *function = sy_dwarf_symbol(address, &behind);
    if (!function && known) {
        function = place.function;
        behind = place.in_function;
    }
    add_mangled(to, address, function, behind, known ? &place : NULL, true);
}

static void add_deep(sy_symbols *to, uintptr_t address) {
    if (!sy_dwarf_look(address, add_line, to)) add_named(to, address);
}

/* ---- the child ---- */

typedef struct question {
    const void *const *addresses;
    size_t count, needed;
} question;

static uintptr_t call_before(const void *address) { return (uintptr_t)address - (address ? 1 : 0); }

/* Would have the library ask servers in the network for files of debug information. */
static void stay_here(void) {
    char *servers = getenv("DEBUGINFOD_URLS");
    if (servers) *servers = 0;
}

static void answer_all(const void *asked, void *answer) {
    const question *all = asked;
    stay_here();
    bool deep = sy_dwarf_open();
    for (size_t i = 0; i < all->count; i++) {
        uintptr_t address = call_before(all->addresses[i]);
        begin_address(answer);
        if (deep)
            add_deep(answer, address);
        else
            add_shallow(answer, address, true);
        if (i >= all->needed && is_full(answer)) return;
        end_address(answer);
    }
}

/* Is it what the child means to leave? */
static bool is_sound(sy_symbols *answer, size_t asked) {
    size_t known = counted(answer);
    if (known > asked || answer->length >= SY_SYMBOLS_TEXT) return false;
    for (size_t i = 0; i < known; i++) {
        if (answer->at[i] > answer->length) return false;
    }
    return true;
}

static void watch_symbols_ask_child(sy_symbols *symbols, const question *all) {
    if (sy_os_ask_child(answer_all, all, symbols, sizeof *symbols, SECONDS) != 0) return;
    symbols->text[SY_SYMBOLS_TEXT - 1] = 0;
    if (is_sound(symbols, all->count)) return;
    atomic_store_explicit(&symbols->count, 0, memory_order_relaxed);
    symbols->length = 0;
}

static size_t at_most(size_t count) { return count < SY_SYMBOLS_MAX ? count : SY_SYMBOLS_MAX; }

void sy_symbols_find(sy_symbols *symbols, const void *const *addresses, size_t count, size_t needed,
                     bool deep) {
    int saved = errno;
    const question all = {addresses, at_most(count), at_most(needed)};
    atomic_store_explicit(&symbols->count, 0, memory_order_relaxed);
    symbols->length = 0;
    if (deep && all.count > 0 && !sy_os_is_traced()) watch_symbols_ask_child(symbols, &all);
    for (size_t i = counted(symbols); i < all.needed; i++) {
        begin_address(symbols);
        add_shallow(symbols, call_before(addresses[i]), false);
        end_address(symbols);
    }
    errno = saved;
}

const char *sy_symbols_lines(const sy_symbols *symbols, size_t index) {
    return symbols->text + symbols->at[index];
}

/* ==== src/watch/tags.c ==== */

/*
 * tags.c: see tags.h. Names are added under the lock and never change; who has the number of one
 * reads it without. Counters are changed by whoever allocates or frees:
 *
 *     live == allocations - frees        live_bytes <= peak_bytes
 *
 * An allocation is counted before the object is anybody's, so no free of it is counted before.
 */

typedef struct sy_tag_counts {
    alignas(64) _Atomic uint64_t allocations;
    _Atomic uint64_t frees;
    _Atomic size_t live_bytes, peak_bytes;
} sy_tag_counts;

enum { TAGS = SY_TAGS_MAX + 1 }; /* that of the untagged, 0, included */

static sy_lock watch_tags_lock = SY_LOCK_INIT(SY_RANK_TAGS);
static char watch_tags_names[TAGS][SY_TAG_NAME_MAX + 1];
static _Atomic sy_tag count = 1; /* tags that have a name; grows under the lock */
static sy_tag_counts counts[TAGS];
static SY_TLS sy_tag watch_tags_current;

/* ---- names ---- */

static sy_tag find_tag(const char *name, sy_tag end) {
    sy_tag tag = 0;
    while (tag < end && strncmp(watch_tags_names[tag], name, SY_TAG_NAME_MAX) != 0) tag++;
    return tag;
}

/* The lock is held. */
static sy_tag add_tag(const char *name) {
    sy_tag end = atomic_load_explicit(&count, memory_order_relaxed), tag = find_tag(name, end);
    if (tag < end || tag == TAGS) return tag;
    for (size_t i = 0; i < SY_TAG_NAME_MAX && name[i]; i++) watch_tags_names[tag][i] = name[i];
    atomic_store_explicit(&count, tag + 1, memory_order_release);
    return tag;
}

sy_tag sy_tag_open(const char *name) {
    sy_lock_acquire(&watch_tags_lock);
    sy_tag tag = add_tag(name);
    sy_lock_release(&watch_tags_lock);
    if (tag < TAGS) return tag;
    errno = ENOMEM;
    return 0;
}

sy_tag sy_tag_set(sy_tag tag) {
    sy_tag before = watch_tags_current;
    watch_tags_current = tag < atomic_load_explicit(&count, memory_order_acquire) ? tag : 0;
    return before;
}

static void hold_names(void) { sy_lock_hold(&watch_tags_lock); }

static void drop_names(void) { sy_lock_drop(&watch_tags_lock); }

const sy_part sy_tags_part = {.hold = hold_names, .drop = drop_names};

/* ---- counts ---- */

static void raise_peak(_Atomic size_t *peak, size_t bytes) {
    size_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < bytes && !atomic_compare_exchange_weak_explicit(
                               peak, &seen, bytes, memory_order_relaxed, memory_order_relaxed)) {}
}

sy_tag sy_tag_count_allocation(size_t size) {
    sy_tag_counts *of = &counts[watch_tags_current];
    atomic_fetch_add_explicit(&of->allocations, 1, memory_order_relaxed);
    size_t before = atomic_fetch_add_explicit(&of->live_bytes, size, memory_order_relaxed);
    raise_peak(&of->peak_bytes, before + size);
    return watch_tags_current;
}

/* Releasing: who sees it sees the allocation. */
void sy_tag_count_free(sy_tag tag, size_t size) {
    atomic_fetch_sub_explicit(&counts[tag].live_bytes, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[tag].frees, 1, memory_order_release);
}

static sy_tag_stats stats_of(sy_tag tag) {
    sy_tag_counts *of = &counts[tag];
    sy_tag_stats stats = {.tag = tag};
    memcpy(stats.name, watch_tags_names[tag], sizeof stats.name);
    stats.frees = atomic_load_explicit(&of->frees, memory_order_acquire);
    stats.allocations = atomic_load_explicit(&of->allocations, memory_order_relaxed);
    stats.live = (size_t)(stats.allocations - stats.frees);
    stats.live_bytes = atomic_load_explicit(&of->live_bytes, memory_order_relaxed);
    stats.peak_bytes = atomic_load_explicit(&of->peak_bytes, memory_order_relaxed);
    if (stats.peak_bytes < stats.live_bytes) stats.peak_bytes = stats.live_bytes; /* not yet told */
    return stats;
}

int sy_each_tag(int (*visit)(void *arg, const sy_tag_stats *stats), void *arg) {
    sy_tag end = atomic_load_explicit(&count, memory_order_acquire);
    int result = 0;
    for (sy_tag tag = 0; tag < end && result == 0; tag++) {
        sy_tag_stats stats = stats_of(tag);
        SY_CALLBACK(call, .function = "visitor of sy_each_tag");
        result = visit(arg, &stats);
        call.returned = true;
    }
    return result;
}

/* ==== src/watch/tools.c ==== */

/*
 * tools.c: tells Valgrind and AddressSanitizer which objects are live, if the process runs under
 * one of them.
 */

/* ---- AddressSanitizer: functions that are there where it is ---- */

#define OF_TOOL extern __attribute__((weak, visibility("default")))

OF_TOOL void __asan_poison_memory_region(const volatile void *start, size_t bytes);
OF_TOOL void __asan_unpoison_memory_region(const volatile void *start, size_t bytes);
OF_TOOL void __asan_set_error_report_callback(void (*callback)(const char *report));
OF_TOOL void *__asan_get_report_address(void);
OF_TOOL void __lsan_register_root_region(const void *start, size_t bytes);
OF_TOOL void __lsan_unregister_root_region(const void *start, size_t bytes);

/* ---- Valgrind: requests, by their numbers ---- */

enum {
    DISABLE_ERRORS = 0x1801, /* of this thread: 1 more reason, or -1 */
    CREATE_POOL = 0x1303,
    DESTROY_POOL = 0x1304,
    POOL_ALLOC = 0x1305,
    POOL_FREE = 0x1306,
    /* Of memcheck; it answers -1 to them, other tools nothing. */
    MAKE_NOACCESS = 'M' << 24 | 'C' << 16,
    MAKE_UNDEFINED,
    MAKE_DEFINED,
};

static uintptr_t ask_valgrind(uintptr_t number, uintptr_t first, uintptr_t second,
                              uintptr_t third) {
    const uintptr_t request[6] = {number, first, second, third, 0, 0};
    return sy_valgrind_ask(request, 0);
}

static uintptr_t mark(uintptr_t number, const void *start, size_t bytes) {
    return ask_valgrind(number, (uintptr_t)start, bytes, 0);
}

/* ---- which ---- */

static _Atomic sy_tool watch_tools_told; /* NONE until somebody has something to tell */

sy_tool sy_tool_present(void) {
    char probe = 0;
    if (__asan_poison_memory_region && __asan_unpoison_memory_region) return SY_TOOL_ASAN;
    return mark(MAKE_DEFINED, &probe, sizeof probe) ? SY_TOOL_MEMCHECK : SY_TOOL_NONE;
}

static inline bool watch_tools_is(sy_tool tool) {
    return SY_UNLIKELY(atomic_load_explicit(&watch_tools_told, memory_order_relaxed) == tool);
}

void sy_tool_open(const void *owner, size_t zone) {
    sy_tool present = sy_tool_present();
    atomic_store_explicit(&watch_tools_told, present, memory_order_relaxed);
    if (present == SY_TOOL_MEMCHECK) ask_valgrind(CREATE_POOL, (uintptr_t)owner, zone, false);
}

void sy_tool_close(const void *owner) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(DESTROY_POOL, (uintptr_t)owner, 0, 0);
}

/* ---- slabs ---- */

/* LeakSanitizer has a lock for these that it lets a child inherit as it is: nobody holds it while
 * nobody holds ours. */
static sy_lock watch_tools_lock = SY_LOCK_INIT(SY_RANK_TOOLS);

static void hold_roots(void) { sy_lock_hold(&watch_tools_lock); }

static void drop_roots(void) { sy_lock_drop(&watch_tools_lock); }

const sy_part sy_tools_part = {.hold = hold_roots, .drop = drop_roots};

static void register_root(const void *slab, size_t bytes) {
    if (!__lsan_register_root_region) return;
    sy_lock_acquire(&watch_tools_lock);
    __lsan_register_root_region(slab, bytes);
    sy_lock_release(&watch_tools_lock);
}

static void unregister_root(const void *slab, size_t bytes) {
    if (!__lsan_unregister_root_region) return;
    sy_lock_acquire(&watch_tools_lock);
    __lsan_unregister_root_region(slab, bytes);
    sy_lock_release(&watch_tools_lock);
}

void sy_tool_begin(const void *slab, size_t bytes) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) mark(MAKE_NOACCESS, slab, bytes);
    if (!watch_tools_is(SY_TOOL_ASAN)) return;
    __asan_poison_memory_region(slab, bytes);
    register_root(slab, bytes);
}

void sy_tool_end(const void *slab, size_t bytes) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) mark(MAKE_DEFINED, slab, bytes);
    if (!watch_tools_is(SY_TOOL_ASAN)) return;
    unregister_root(slab, bytes);
    __asan_unpoison_memory_region(slab, bytes);
}

/* ---- objects ---- */

void sy_tool_allocated(const void *owner, const void *object, size_t size) {
    if (watch_tools_is(SY_TOOL_ASAN)) __asan_unpoison_memory_region(object, size);
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_ALLOC, (uintptr_t)owner, (uintptr_t)object, size);
}

void sy_tool_freed(const void *owner, const void *object, size_t size) {
    if (watch_tools_is(SY_TOOL_ASAN)) __asan_poison_memory_region(object, size);
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_FREE, (uintptr_t)owner, (uintptr_t)object, 0);
}

void sy_tool_freed_twice(const void *owner, const void *object) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_FREE, (uintptr_t)owner, (uintptr_t)object, 0);
}

void sy_tool_unwritten(const void *object, size_t size) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) mark(MAKE_UNDEFINED, object, size);
}

/* ---- the library's own accesses ---- */

void sy_tool_enter(void) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(DISABLE_ERRORS, 1, 0, 0);
}

void sy_tool_leave(void) {
    if (watch_tools_is(SY_TOOL_MEMCHECK)) ask_valgrind(DISABLE_ERRORS, (uintptr_t)-1, 0, 0);
}

/* ---- reports ---- */

static void (*_Atomic watch_tools_explainer)(uintptr_t address);

static void at_report(const char *report) {
    (void)report;
    atomic_load (&watch_tools_explainer)((uintptr_t)__asan_get_report_address());
}

void sy_tool_on_report(void (*explain)(uintptr_t address)) {
    if (!watch_tools_is(SY_TOOL_ASAN) || !__asan_set_error_report_callback || !__asan_get_report_address)
        return;
    if (atomic_exchange(&watch_tools_explainer, explain) != explain)
        __asan_set_error_report_callback(at_report);
}
#undef OF_TOOL

/* ==== src/watch/values.c ==== */

/*
 * values.c: reads and prints the values of options: numbers, sizes, times, words.
 */

enum { DISTANCE_LENGTH = 24 }; /* words longer than this are like no other */

/* ---- words ---- */

bool sy_word_is(sy_word word, const char *text) {
    return strlen(text) == word.length && memcmp(word.start, text, word.length) == 0;
}

static bool is_space(char character) {
    return character == ' ' || (character >= '\t' && character <= '\r');
}

sy_word sy_word_trim(sy_word word) {
    while (word.length && is_space(word.start[0])) word.start++, word.length--;
    while (word.length && is_space(word.start[word.length - 1])) word.length--;
    return word;
}

sy_word sy_word_split(sy_word *rest, char separator) {
    const char *end = rest->length ? memchr(rest->start, separator, rest->length) : NULL;
    sy_word first = {rest->start, end ? (size_t)(end - rest->start) : rest->length};
    size_t gone = first.length + (end != NULL);
    rest->start += gone;
    rest->length -= gone;
    return first;
}

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Row i of the table of distances between all beginnings, of which the last three are kept. */
unsigned sy_word_distance(sy_word word, const char *text) {
    size_t length = strlen(text);
    unsigned rows[3][DISTANCE_LENGTH + 1];
    if (word.length > DISTANCE_LENGTH || length > DISTANCE_LENGTH) return DISTANCE_LENGTH;
    for (unsigned j = 0; j <= length; j++) rows[0][j] = j;
    for (unsigned i = 1; i <= word.length; i++) {
        unsigned *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            char a = word.start[i - 1], b = text[j - 1];
            row[j] = least(before[j - 1] + (a != b), least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a == text[j - 2] && word.start[i - 2] == b)
                row[j] = least(row[j], earlier[j - 2] + 1);
        }
    }
    return rows[word.length % 3][length];
}

/* ---- numbers ---- */

/* Takes digits from the front of the word; false: there are none, or too many. */
static bool take_digits(sy_word *word, uint64_t *value) {
    uint64_t number = 0;
    size_t at = 0;
    for (; at < word->length && word->start[at] >= '0' && word->start[at] <= '9'; at++) {
        unsigned digit = (unsigned)(word->start[at] - '0');
        if (number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    word->start += at;
    word->length -= at;
    *value = number;
    return at > 0;
}

static bool is_off(const sy_value_type *type, sy_word word) {
    if (!type->can_be_off) return false;
    return sy_word_is(word, "off") || sy_word_is(word, "no") ||
           (type->low > 0 && sy_word_is(word, "0"));
}

/* A number within the bounds, rounded as the type says; both bounds are round. */
static bool accept(const sy_value_type *type, uint64_t number, uint64_t *value) {
    if (number < type->low || number > type->high) return false;
    if (type->granule) number += (type->granule - number % type->granule) % type->granule;
    uint64_t power = 1;
    while (type->power_of_two && power < number) power *= 2;
    *value = type->power_of_two && number ? power : number;
    return true;
}

/* A number with a unit: `read` gives what one is worth, 0 for no unit. */
static bool read_units(const sy_value_type *type, sy_word word, uint64_t (*worth)(sy_word unit),
                       uint64_t *value) {
    uint64_t number;
    *value = SY_VALUE_OFF;
    if (is_off(type, word)) return true;
    if (!take_digits(&word, &number)) return false;
    uint64_t unit = worth(word);
    return unit && number <= UINT64_MAX / unit && accept(type, number * unit, value);
}

static bool print_off(uint64_t value, sy_text *text) {
    if (value == SY_VALUE_OFF) sy_text_add(text, "off");
    return value == SY_VALUE_OFF;
}

static uint64_t worth_one(sy_word unit) { return unit.length == 0; }

bool sy_read_number(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_one, value);
}

void sy_print_number(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (!print_off(value, text)) sy_text_add_number(text, value);
}

static const char byte_units[] = "KMGT";

static uint64_t worth_bytes(sy_word unit) {
    if (unit.length == 0 || sy_word_is(unit, "B")) return 1;
    for (unsigned i = 0; byte_units[i]; i++) {
        if (unit.start[0] != byte_units[i] && unit.start[0] != byte_units[i] - 'A' + 'a') continue;
        sy_word rest = {unit.start + 1, unit.length - 1};
        bool fine = rest.length == 0 || sy_word_is(rest, "B") || sy_word_is(rest, "iB");
        return fine ? UINT64_C(1) << (10 * (i + 1)) : 0;
    }
    return 0;
}

bool sy_read_bytes(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_bytes, value);
}

void sy_print_bytes(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    unsigned unit = 0;
    while (value && value % 1024 == 0 && byte_units[unit]) value /= 1024, unit++;
    sy_text_add_number(text, value);
    if (unit) sy_text_add(text, (char[]){byte_units[unit - 1], 0});
}

static uint64_t worth_time(sy_word unit) {
    if (unit.length == 0 || sy_word_is(unit, "ms")) return 1;
    if (sy_word_is(unit, "s")) return 1000;
    return sy_word_is(unit, "min") ? 60000 : 0;
}

bool sy_read_time(const sy_value_type *type, sy_word word, uint64_t *value) {
    return read_units(type, word, worth_time, value);
}

void sy_print_time(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    bool seconds = value % 1000 == 0;
    sy_text_add_number(text, seconds ? value / 1000 : value);
    sy_text_add(text, seconds ? "s" : "ms");
}

bool sy_read_rate(const sy_value_type *type, sy_word word, uint64_t *value) {
    *value = 1;
    if (sy_word_is(word, "all")) return true;
    if (word.length > 2 && memcmp(word.start, "1/", 2) == 0) {
        word.start += 2;
        word.length -= 2;
    }
    return read_units(type, word, worth_one, value);
}

void sy_print_rate(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    if (print_off(value, text)) return;
    sy_text_add(text, value == 1 ? "all" : "1/");
    if (value > 1) sy_text_add_number(text, value);
}

/* ---- words that are values ---- */

static bool is_one_of(sy_word word, const char *choices, uint64_t *number) {
    sy_word rest = {choices, strlen(choices)};
    for (*number = 0; rest.length; ++*number) {
        sy_word choice = sy_word_split(&rest, '|');
        if (choice.length == word.length && memcmp(choice.start, word.start, word.length) == 0)
            return true;
    }
    return false;
}

bool sy_read_yes(const sy_value_type *type, sy_word word, uint64_t *value) {
    (void)type;
    uint64_t which;
    if (!is_one_of(word, "yes|on|1|no|off|0", &which)) return false;
    *value = which < 3 ? 1 : SY_VALUE_OFF;
    return true;
}

void sy_print_yes(const sy_value_type *type, uint64_t value, sy_text *text) {
    (void)type;
    sy_text_add(text, value == SY_VALUE_OFF ? "no" : "yes");
}

bool sy_read_choice(const sy_value_type *type, sy_word word, uint64_t *value) {
    return is_one_of(word, type->choices, value);
}

void sy_print_choice(const sy_value_type *type, uint64_t value, sy_text *text) {
    sy_word rest = {type->choices, strlen(type->choices)}, choice;
    do choice = sy_word_split(&rest, '|');
    while (value-- > 0);
    for (size_t i = 0; i < choice.length; i++) sy_text_add(text, (char[]){choice.start[i], 0});
}

bool sy_read_set(const sy_value_type *type, sy_word word, uint64_t *value) {
    uint64_t bits = 0, which;
    bool none = sy_word_is(word, "off") || sy_word_is(word, "no") || sy_word_is(word, "0");
    for (bool more = !none; more;) {
        size_t before = word.length;
        sy_word choice = sy_word_split(&word, '+');
        if (!is_one_of(choice, type->choices, &which)) return false;
        bits |= UINT64_C(1) << which;
        more = choice.length < before;
    }
    *value = bits;
    return true;
}

void sy_print_set(const sy_value_type *type, uint64_t value, sy_text *text) {
    if (!value) sy_text_add(text, "off");
    for (uint64_t bit = 0; value >> bit; bit++) {
        if (!(value >> bit & 1)) continue;
        sy_print_choice(type, bit, text);
        if (value >> bit > 1) sy_text_add(text, "+");
    }
}

/* ==== src/watch/watch.c ==== */

/*
 * watch.c: red zones, poison and records of the slots of one cache or pool: they are written at
 * each allocation and free, and compared later.
 */

/* Text that runs over, and the byte 0 that ends it, must show: no byte of a pattern is ASCII. */
static const uint64_t NO_ASCII = UINT64_C(0x8080808080808080);

static const unsigned BRING_CHECKED = SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT;

unsigned sy_watch_untold(unsigned flags, const char *name) {
    unsigned checks = atomic_load_explicit(&sy_options_now.checks, memory_order_relaxed);
    if (checks && sy_options_mean(name)) flags |= checks;
    return flags & BRING_CHECKED ? flags | SY_CHECKED : flags;
}

static unsigned tools_option(void) {
    return atomic_load_explicit(&sy_options_now.tools, memory_order_relaxed);
}

bool sy_watch_passes(void) { return tools_option() == SY_TOOLS_MALLOC; }

/* What a tool is told of is not put elsewhere besides. memcheck keeps stacks of its own. */
static unsigned watch_watch_told(unsigned flags, sy_tool present) {
    flags = (flags & ~(unsigned)SY_GUARD) | SY_TOLD | SY_CHECKED | SY_QUARANTINE;
    return present == SY_TOOL_ASAN ? flags | SY_AUDIT : flags;
}

unsigned sy_watch_checks(unsigned flags, const char *name, bool passable) {
    sy_tool present = tools_option() == SY_TOOLS_OFF ? SY_TOOL_NONE : sy_tool_present();
    bool passes = passable && sy_watch_passes();
    if (passes && sy_options_mean(name))
        return (flags & ~(unsigned)SY_CHECK_FLAGS) | SY_PASSED | SY_CHECKED;
    flags = sy_watch_untold(flags, name);
    return present != SY_TOOL_NONE && sy_options_mean(name) ? watch_watch_told(flags, present) : flags;
}

/* A tool sees the first byte beside an object; 16 keep the next object's out of sight. */
static const size_t TOLD_ZONE = 16;

size_t sy_watch_zone(unsigned checks) {
    if (!(checks & SY_REDZONE)) return checks & SY_TOLD ? TOLD_ZONE : 0;
    return atomic_load_explicit(&sy_options_now.redzone, memory_order_relaxed);
}

static bool is_told(const sy_watch *watch) { return watch->checks & SY_TOLD; }

/* What one cache keeps from being reused at most, however many objects it may keep. */
enum { QUARANTINE_BYTES = 16 << 20 };

/* Each 0, or -1 with ENOMEM. */

static int begin_history(sy_watch *watch) {
    uint32_t operations = atomic_load_explicit(&sy_options_now.audit_log, memory_order_relaxed);
    if (!(watch->checks & SY_AUDIT) || !operations) return 0;
    watch->history = sy_history_make(operations);
    return watch->history ? 0 : -1;
}

static int begin_quarantine(sy_watch *watch) {
    if (!(watch->checks & SY_QUARANTINE)) return 0;
    uint32_t most = atomic_load_explicit(&sy_options_now.quarantine, memory_order_relaxed);
    if (most > QUARANTINE_BYTES / watch->size)
        most = (uint32_t)(QUARANTINE_BYTES / watch->size) + 1;
    size_t bytes = sy_round_up(most * sizeof *watch->waiting, sy_os_page_size());
    watch->waiting = sy_pages_take(bytes, sy_os_page_size(), "slabyard quarantine");
    watch->waiting_max = most;
    return watch->waiting ? 0 : -1;
}

int sy_watch_open(sy_watch *watch, const char *name, size_t size, unsigned checks) {
    *watch = (sy_watch){
        .name = name,
        .size = size,
        .checks = checks,
        .zone = (uint32_t)sy_watch_zone(checks),
        .pattern = sy_os_random() | NO_ASCII,
        .random = sy_os_random() | 1,
    };
    if (begin_history(watch) != 0) return -1;
    if (begin_quarantine(watch) != 0) {
        sy_history_end(watch->history);
        return -1;
    }
    if (is_told(watch)) sy_tool_open(watch, watch->zone);
    if (checks & SY_POISON) sy_access_expect_patterns();
    return 0;
}

void sy_watch_close(sy_watch *watch) {
    if (is_told(watch)) sy_tool_close(watch);
    sy_history_end(watch->history);
    if (watch->waiting)
        sy_pages_give(watch->waiting,
                      sy_round_up(watch->waiting_max * sizeof *watch->waiting, sy_os_page_size()));
}

/* ---- patterns: the byte at an address is the one of the pattern at the address modulo 8 ---- */

/* Whoever verifies may read what is being written, and what is hidden from the program. */
#define UNSEEN __attribute__((no_sanitize_address, no_sanitize_thread))

UNSEEN static unsigned char byte_of(uint64_t pattern, uintptr_t address) {
    unsigned char bytes[sizeof pattern];
    __builtin_memcpy(bytes, &pattern, sizeof bytes);
    return bytes[address % sizeof bytes];
}

UNSEEN static void watch_watch_fill(void *start, size_t bytes, uint64_t pattern) {
    sy_tool_enter();
    unsigned char *at = start, *end = at + bytes;
    for (; at < end && (uintptr_t)at % sizeof pattern; at++) *at = byte_of(pattern, (uintptr_t)at);
    for (; (size_t)(end - at) >= sizeof pattern; at += sizeof pattern)
        __builtin_memcpy(at, &pattern, sizeof pattern);
    for (; at < end; at++) *at = byte_of(pattern, (uintptr_t)at);
    sy_tool_leave();
}

/* The first byte from `at` on that is not of the pattern, or `end`. */
UNSEEN static const unsigned char *find_other(const unsigned char *at, const unsigned char *end,
                                              uint64_t pattern) {
    for (; at < end && (uintptr_t)at % sizeof pattern; at++)
        if (*at != byte_of(pattern, (uintptr_t)at)) return at;
    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        __builtin_memcpy(&word, at, sizeof word);
        if (word != pattern) break;
    }
    for (; at < end; at++)
        if (*at != byte_of(pattern, (uintptr_t)at)) return at;
    return end;
}

/* NULL, or the first byte that is not of the pattern; *damaged: up to the last such. */
UNSEEN static const void *find_damage(const void *start, size_t bytes, uint64_t pattern,
                                      size_t *damaged) {
    const unsigned char *end = (const unsigned char *)start + bytes;
    const unsigned char *first = find_other(start, end, pattern);
    if (first == end) return NULL;
    while (end[-1] == byte_of(pattern, (uintptr_t)(end - 1))) end--;
    *damaged = (size_t)(end - first);
    return first;
}

void sy_watch_lay(const sy_watch *watch, void *start, size_t bytes) {
    watch_watch_fill(start, bytes, watch->pattern);
}

/* ---- audit ---- */

sy_stamp sy_stamp_here(const sy_watch *watch) {
    if (!(watch->checks & SY_AUDIT)) return (sy_stamp){0};
    return (sy_stamp){
        .time = sy_os_now(),
        .stack = sy_stack_here(),
        .thread = sy_os_thread(),
    };
}

sy_trace sy_stamp_trace(const sy_stamp *stamp) {
    sy_trace trace = {.thread = stamp->thread};
    if (!stamp->time) return trace;
    trace.age = sy_os_now() - stamp->time;
    trace.depth = sy_stack_frames(stamp->stack, &trace.frames);
    return trace;
}

/* An object's life begins: it is counted before anybody can end it. */
static void note_allocation(const sy_watch *watch, sy_record *record, const void *object,
                            size_t size) {
    record->allocated = sy_stamp_here(watch);
    if (!(watch->checks & SY_AUDIT)) return;
    record->tag = sy_tag_count_allocation(size);
    if (watch->history) sy_history_note(watch->history, false, object, size, &record->allocated);
}

static void note_free(const sy_watch *watch, sy_record *record, const void *object) {
    record->freed = sy_stamp_here(watch);
    if (!(watch->checks & SY_AUDIT)) return;
    size_t size = sy_record_size(record);
    sy_tag_count_free(record->tag, size);
    if (watch->history) sy_history_note(watch->history, true, object, size, &record->freed);
}

/* Of an object that may be in other hands, so that no half of it means anything. */
UNSEEN static sy_stamp read_stamp(const sy_stamp *stamp) {
    const volatile sy_stamp *now = stamp;
    return (sy_stamp){.time = now->time, .stack = now->stack, .thread = now->thread};
}

static sy_trace trace_of(const sy_stamp *of_record) {
    sy_stamp stamp = read_stamp(of_record);
    return sy_stamp_trace(&stamp);
}

bool sy_record_live(const sy_record *record, sy_live *live) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    if (word % SY_OBJECT_STATES != SY_OBJECT_LIVE) return false;
    *live = (sy_live){sy_record_size(record), read_stamp(&record->allocated)};
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&record->word, memory_order_relaxed) == word;
}

/* ---- faults ---- */

void sy_watch_describe(const sy_record *record, sy_fault *fault) {
    sy_object_state state = sy_record_state(record);
    bool free = state != SY_OBJECT_LIVE && state != SY_OBJECT_FREEING;
    fault->found_size = sy_record_size(record);
    fault->allocated = trace_of(&record->allocated);
    if (free) fault->freed = trace_of(&record->freed);
}

static sy_fault describe_fault(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                               const void *address, const void *object) {
    sy_fault fault = {
        .kind = kind,
        .cache = watch->name,
        .object_size = watch->size,
        .address = address,
        .object = object,
        .offset = object ? (const char *)address - (const char *)object : 0,
    };
    if (record) sy_watch_describe(record, &fault);
    return fault;
}

void sy_watch_raise(const sy_watch *watch, const sy_record *record, sy_fault_kind kind,
                    const void *address, const void *object) {
    sy_fault fault = describe_fault(watch, record, kind, address, object);
    sy_fault_raise(&fault);
}

/* ---- damage ---- */

typedef struct sy_finding {
    sy_fault_kind kind; /* SY_FAULT_NONE: nothing was found */
    const void *first;
    size_t bytes;
} sy_finding;

static sy_finding look(const void *start, size_t bytes, uint64_t pattern, sy_fault_kind kind) {
    sy_finding finding = {.kind = kind};
    sy_tool_enter();
    finding.first = find_damage(start, bytes, pattern, &finding.bytes);
    sy_tool_leave();
    return finding.first ? finding : (sy_finding){0};
}

/* What is behind an object is looked at first: it is what programs overwrite most. */
static sy_finding look_at_zones(const sy_watch *watch, const sy_record *record,
                                const void *object) {
    if (!(watch->checks & SY_REDZONE)) return (sy_finding){0};
    const char *start = object;
    size_t size = sy_record_size(record);
    sy_finding behind =
        look(start + size, watch->size - size + watch->zone, watch->pattern, SY_FAULT_OVERFLOW);
    if (behind.kind) return behind;
    return look(start - watch->zone, watch->zone, watch->pattern, SY_FAULT_UNDERFLOW);
}

static sy_finding look_at_poison(const sy_watch *watch, const void *object) {
    if (!(watch->checks & SY_POISON)) return (sy_finding){0};
    return look(object, watch->size, SY_PATTERN_FREE, SY_FAULT_WRITE_AFTER_FREE);
}

static sy_fault describe_finding(const sy_watch *watch, const sy_record *record, const void *object,
                                 const sy_finding *finding) {
    sy_fault fault = describe_fault(watch, record, finding->kind, finding->first, object);
    fault.damage = finding->first;
    fault.damage_bytes = finding->bytes;
    return fault;
}

static void raise_finding(const sy_watch *watch, const sy_record *record, const void *object,
                          const sy_finding *finding) {
    sy_fault fault = describe_finding(watch, record, object, finding);
    sy_tool_enter(); /* what is damaged is shown, and may be hidden */
    sy_fault_raise(&fault);
    sy_tool_leave();
}

bool sy_watch_look_at_edge(const sy_watch *watch, const void *start, size_t bytes,
                           sy_fault *fault) {
    sy_finding finding = look(start, bytes, watch->pattern, SY_FAULT_SLAB_EDGE);
    if (finding.kind) *fault = describe_finding(watch, NULL, NULL, &finding);
    return finding.kind;
}

/* ---- when the process ends ---- */

int sy_watch_at_exit(sy_exit_check *check) {
    if (atomic_exchange(&check->registered, true)) return 0;
    if (sy_os_at_exit(check->verify) == 0) return 0;
    atomic_store(&check->registered, false);
    return -1;
}

/* ---- an object's life ---- */

static uint32_t changed(uint32_t word, sy_object_state state) {
    return (word / SY_OBJECT_STATES + 1) * SY_OBJECT_STATES + state;
}

/* Of an object that is this thread's at the moment. */
static void set_record_state(sy_record *record, sy_object_state state) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_relaxed);
    atomic_store_explicit(&record->word, changed(word, state), memory_order_release);
}

static void sy_watch_verify_free(const sy_watch *watch, const sy_record *record,
                                 const void *object) {
    sy_finding finding = look_at_poison(watch, object);
    if (finding.kind) raise_finding(watch, record, object, &finding);
}

void sy_watch_taken(const sy_watch *watch, sy_record *record, void *object) {
    bool was_free = sy_record_state(record) == SY_OBJECT_FREE;
    set_record_state(record, SY_OBJECT_TAKEN);
    if (was_free) sy_watch_verify_free(watch, record, object);
}

void sy_watch_show(const sy_watch *watch, sy_record *record, const void *object, size_t size) {
    if (!is_told(watch)) return;
    atomic_store_explicit(&record->size, size, memory_order_relaxed);
    sy_tool_allocated(watch, object, size);
}

static void watch_watch_hide(const sy_watch *watch, const void *object, size_t size) {
    if (is_told(watch)) sy_tool_freed(watch, object, size);
}

void sy_watch_given(const sy_watch *watch, sy_record *record, void *object, size_t size,
                    bool built) {
    atomic_store_explicit(&record->size, size, memory_order_relaxed);
    note_allocation(watch, record, object, size);
    if (watch->checks & SY_POISON && !built) {
        watch_watch_fill(object, size, SY_PATTERN_NEW);
        if (is_told(watch)) sy_tool_unwritten(object, size);
    }
    if (watch->checks & SY_REDZONE) {
        watch_watch_fill((char *)object + size, watch->size - size + watch->zone, watch->pattern);
        watch_watch_fill((char *)object - watch->zone, watch->zone, watch->pattern);
    }
    set_record_state(record, SY_OBJECT_LIVE);
}

static void wrong_size(const sy_watch *watch, const sy_record *record, const void *object,
                       size_t watch_watch_told) {
    sy_fault fault = describe_fault(watch, record, SY_FAULT_WRONG_SIZE, object, object);
    fault.told_size = watch_watch_told;
    sy_fault_raise(&fault);
}

void sy_watch_claimed(const sy_watch *watch, sy_record *record, const void *object) {
    sy_finding finding = look_at_zones(watch, record, object);
    record->freed = (sy_stamp){0};
    if (finding.kind) raise_finding(watch, record, object, &finding);
    note_free(watch, record, object);
}

bool sy_watch_claim(const sy_watch *watch, sy_record *record, void *object, size_t watch_watch_told) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    bool live = word % SY_OBJECT_STATES == SY_OBJECT_LIVE;
    if (live && watch_watch_told != SIZE_MAX && watch_watch_told != sy_record_size(record)) {
        wrong_size(watch, record, object, watch_watch_told);
        return false;
    }
    if (!live ||
        !atomic_compare_exchange_strong(&record->word, &word, changed(word, SY_OBJECT_FREEING))) {
        if (is_told(watch)) sy_tool_freed_twice(watch, object);
        sy_watch_raise(watch, record, SY_FAULT_DOUBLE_FREE, object, object);
        return false;
    }
    sy_watch_claimed(watch, record, object);
    return true;
}

bool sy_watch_try_claim(sy_record *record) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    return word % SY_OBJECT_STATES == SY_OBJECT_LIVE &&
           atomic_compare_exchange_strong(&record->word, &word, changed(word, SY_OBJECT_FREEING));
}

void sy_watch_fill(const sy_watch *watch, sy_record *record, void *object) {
    if (watch->checks & SY_POISON)
        watch_watch_fill(object, watch->size, SY_PATTERN_FREE);
    else if (watch->checks & SY_ZERO)
        memset(object, 0, sy_record_size(record));
    watch_watch_hide(watch, object, sy_record_size(record));
    set_record_state(record, SY_OBJECT_FREE);
}

void sy_watch_forget(const sy_watch *watch, sy_record *record, void *object) {
    sy_object_state state = sy_record_state(record);
    bool counted = state == SY_OBJECT_LIVE && watch->checks & SY_AUDIT;
    if (counted) sy_tag_count_free(record->tag, sy_record_size(record));
    if (state == SY_OBJECT_LIVE || state == SY_OBJECT_TAKEN)
        watch_watch_hide(watch, object, sy_record_size(record));
    set_record_state(record, SY_OBJECT_FRESH);
    if (state == SY_OBJECT_FREE) sy_watch_verify_free(watch, record, object);
}

bool sy_watch_look(const sy_watch *watch, const sy_record *record, const void *object,
                   sy_fault *fault) {
    uint32_t word = atomic_load_explicit(&record->word, memory_order_acquire);
    sy_finding finding = {0};
    if (word % SY_OBJECT_STATES == SY_OBJECT_LIVE) finding = look_at_zones(watch, record, object);
    if (word % SY_OBJECT_STATES == SY_OBJECT_FREE) finding = look_at_poison(watch, object);
    if (finding.kind == SY_FAULT_NONE) return false;
    *fault = describe_finding(watch, record, object, &finding);
    /* It may have been given out, or back, while it was looked at. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&record->word, memory_order_relaxed) == word;
}

/* ---- quarantine ---- */

bool sy_watch_next(sy_watch *watch, uintptr_t *out) {
    if (!watch->waiting_count) return false;
    uint32_t index = sy_random_below(&watch->random, watch->waiting_count);
    *out = watch->waiting[index];
    watch->waiting[index] = watch->waiting[--watch->waiting_count];
    return true;
}

bool sy_watch_wait(sy_watch *watch, uintptr_t item, uintptr_t *out) {
    if (!watch->waiting_max) {
        *out = item;
        return true;
    }
    bool full = watch->waiting_count == watch->waiting_max && sy_watch_next(watch, out);
    watch->waiting[watch->waiting_count++] = item;
    return full;
}
#undef UNSEEN

/* ==== src/watch/whose.c ==== */

/*
 * whose.c: tells from a function's name and source file whether it is the program's, Slabyard's,
 * or the C++ or Rust library's.
 */

static bool watch_whose_begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_among(const char *text, const char *const *beginnings) {
    while (*beginnings && !watch_whose_begins(text, *beginnings)) beginnings++;
    return *beginnings != NULL;
}

static bool watch_whose_contains(const char *text, const char *piece) { return strstr(text, piece) != NULL; }

static bool is_name_character(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '_';
}

/* ---- Rust ---- */

/* Past what stands before the path of a type: < & * mut ... */
static const char *path_within(const char *type) {
    static const char *const before[] = {"<", "&", "*", "(", "[", "mut ", "const ", "dyn ", NULL};
    while (is_among(type, before)) type += is_name_character(*type) ? strcspn(type, " ") + 1 : 1;
    return type;
}

static bool is_path(const char *text) {
    while (is_name_character(*text)) text++;
    return watch_whose_begins(text, "::");
}

/* The path that begins with the crate whose function it is. Of <Type as Trait>::function that is
 * the type's; the trait's, if the type is of no crate. */
static const char *crate_of(const char *name) {
    if (*name != '<') return name;
    const char *type = path_within(name), *trait = strstr(name, " as ");
    return is_path(type) || !trait ? type : path_within(trait + strlen(" as "));
}

/* What the runtime keeps until the process ends: the tables that it read for backtraces, and
 * buffers of the standard streams. */
static bool is_kept_by_runtime(const char *name) {
    return watch_whose_contains(name, "std::backtrace_rs::") || watch_whose_contains(name, "std::io::stdio::");
}

static bool is_of_runtime(const char *crate) {
    if (watch_whose_begins(crate, "std::sys::")) return watch_whose_contains(crate, "::thread_start");
    return watch_whose_begins(crate, "std::rt::lang_start") || watch_whose_begins(crate, "lang_start");
}

static bool is_of_rust_library(const char *path) {
    return watch_whose_begins(path, "/rustc/") || watch_whose_begins(path, "/rust/deps/") ||
           watch_whose_contains(path, "/rustlib/src/rust/library/");
}

/* Whether the folder, from here to `end`, is of that crate: by its name, or with a version. */
static bool is_folder_of(const char *folder, const char *end, const char *crate) {
    if (!watch_whose_begins(folder, crate)) return false;
    folder += strlen(crate);
    bool version = *folder == '-' && folder[1] >= '0' && folder[1] <= '9';
    return folder == end || (version && folder + strcspn(folder, "/") == end);
}

/* A source of the crates slabyard and slabyard-sys, in the repository or as they are published. */
static bool is_of_crate(const char *path) {
    const char *source = strstr(path, "/src/"), *folder = source;
    if (!source || watch_whose_begins(source, "/src/bin/") || watch_whose_begins(source, "/src/main.rs")) return false;
    while (folder > path && folder[-1] != '/') folder--;
    return is_folder_of(folder, source, "slabyard") || is_folder_of(folder, source, "slabyard-sys");
}

static sy_whose whose_in_rust(const char *name, const char *path) {
    static const char *const own[] = {"slabyard::", "slabyard_sys::", NULL};
    static const char *const language[] = {
        "core::", "alloc::",     "std::",   "__rustc::",   "__rust_",       "__rdl_",
        "__rg_",  "hashbrown::", "gimli::", "addr2line::", "miniz_oxide::", NULL};
    const char *crate = crate_of(name);
    /* The program's main is called there; where no lines are known, it may have been inlined. */
    if (watch_whose_contains(name, "__rust_begin_short_backtrace"))
        return path ? SY_WHOSE_START : SY_WHOSE_PROGRAM;
    if (is_of_runtime(crate)) return SY_WHOSE_START;
    if (is_kept_by_runtime(name)) return SY_WHOSE_RUNTIME;
    if (is_among(crate, own)) return SY_WHOSE_OWN;
    if (is_among(crate, language)) return SY_WHOSE_LANGUAGE;
    if (!path || is_path(crate)) return SY_WHOSE_PROGRAM;
    if (is_of_rust_library(path)) return SY_WHOSE_LANGUAGE;
    return is_of_crate(path) ? SY_WHOSE_OWN : SY_WHOSE_PROGRAM;
}

/* ---- C and C++ ---- */

/* Past the type that a function of a template gives back, which its name begins with. */
static const char *past_type(const char *name) {
    const char *word = name;
    int depth = 0;
    for (const char *at = name; *at; at++) {
        if (watch_whose_begins(at, "(anonymous namespace)")) at += strlen("(anonymous namespace)");
        if (watch_whose_begins(at, "operator")) break;
        if (*at == '(' && depth == 0) break;
        if (strchr("<([{", *at)) depth++;
        if (strchr(">)]}", *at)) depth--;
        if (*at == ' ' && depth == 0) word = at + 1;
        if (!*at) break;
    }
    return word;
}

/* A public header, wherever it was installed. */
static bool is_of_header(const char *path) {
    const char *last = strrchr(path, '/');
    static const char folder[] = "slabyard";
    size_t length = sizeof folder - 1;
    return last && (size_t)(last - path) > length && watch_whose_begins(last - length, folder) &&
           last[-(ptrdiff_t)length - 1] == '/' && watch_whose_contains(last, ".h");
}

static sy_whose whose_in_c(const char *name, const char *path) {
    static const char *const own[] = {"sy_", "slabyard::", NULL};
    static const char *const language[] = {"std::", "__gnu_cxx::", "operator new",
                                           "operator delete", NULL};
    const char *function = past_type(name);
    if (is_among(function, own)) return SY_WHOSE_OWN;
    if (is_among(function, language)) return SY_WHOSE_LANGUAGE;
    if (!path) return SY_WHOSE_PROGRAM;
    if (is_of_header(path)) return SY_WHOSE_OWN;
    return watch_whose_contains(path, "/include/c++/") ? SY_WHOSE_LANGUAGE : SY_WHOSE_PROGRAM;
}

/* ---- both ---- */

sy_whose sy_whose_function(const char *name, const char *path, bool rust) {
    const char *ending = path ? strrchr(path, '.') : NULL;
    if (ending && strcmp(ending, ".rs") == 0) rust = true;
    return rust ? whose_in_rust(name, path) : whose_in_c(name, path);
}

bool sy_whose_library(const char *file) {
    const char *last = strrchr(file, '/');
    return watch_whose_begins(last ? last + 1 : file, "libslabyard");
}
