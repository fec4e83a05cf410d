/*
 * table.c: the hash table of allocated segments, by value. A free looks up its segment here. The
 * table grows and shrinks by one bucket at a time, so that no single operation rehashes all
 * segments. (Litwin, "Linear hashing: a new tool for file and table addressing", VLDB 1980.)
 *
 * There are n buckets, 2^s <= n < 2^(s+1). The bucket of a hash is its lowest s + 1 bits if that
 * number is below n, else its lowest s bits. When the table grows, bucket n splits off from bucket
 * n - 2^s.
 *
 *     bucket[]       part[0]        part[1]
 *     0 ... 511      512 ... 1023   1024 ... 2047     n is anywhere up to the end of the last part
 */
#include "base/bits.h"
#include "os/os.h"
#include "os/pages.h"
#include "vmem/arena.h"

enum {
    SHRINK_AT = 4,    /* the table shrinks when it has more than so many buckets a segment */
    SHRINK_STEPS = 8, /* the most buckets that one removal joins */
};

static uint64_t hash_of(const sy_vmem *arena, uintptr_t value) {
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

static sy_boundary **bucket_of(sy_vmem *arena, uintptr_t value) {
    unsigned digits = sy_highest_bit(arena->buckets);
    size_t index = (size_t)(hash_of(arena, value) & sy_low_bits(digits + 1));
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
        arena->grow_at += arena->grow_at / 4; /* tried again with a quarter more segments */
    }
}

/* Splits one bucket off, if the table's parts have room for it. */
static void grow_table(sy_vmem *arena) {
    size_t added = arena->buckets;
    unsigned digits = sy_highest_bit(added);
    if (!arena->part[part_of(added)]) return;
    sy_boundary **from = bucket_at(arena, added - ((size_t)1 << digits));
    sy_boundary **to = bucket_at(arena, added);
    *to = NULL;
    while (*from) {
        sy_boundary *tag = *from;
        if ((hash_of(arena, tag->start) & sy_low_bits(digits + 1)) == added) {
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
    sy_boundary **bucket = bucket_of(arena, tag->start);
    tag->kin = *bucket;
    *bucket = tag;
    if (++arena->allocated_segments > arena->buckets) grow_table(arena);
}

sy_boundary *sy_table_find(sy_vmem *arena, uintptr_t value) {
    sy_boundary *tag = *bucket_of(arena, value);
    for (; tag; tag = tag->kin) {
        arena->steps++;
        if (tag->start == value) break;
    }
    return tag;
}

void sy_table_remove(sy_vmem *arena, sy_boundary *tag, sy_leavings *leavings) {
    sy_boundary **link = bucket_of(arena, tag->start);
    while (*link != tag) link = &(*link)->kin;
    *link = tag->kin;
    arena->allocated_segments--;
    /* Several buckets for each segment removed, so that few segments end with few buckets. */
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
