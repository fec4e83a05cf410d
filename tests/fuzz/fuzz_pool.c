/*
 * fuzz_pool.c: runs random operations on a pool, and compares it with a model that says which slot
 * each allocation must return.
 *
 * In the model, `order` lists the slots in the order of their first allocation. The first `carved`
 * of them were allocated since the last reset. `freed` is a stack. An allocation must return the
 * top of the stack; if it is empty, the next slot in `order`; after the last one, a new slot.
 * Objects are filled when they are allocated and checked when they are freed, so overlapping slots
 * and a free list through live objects are noticed.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/pool.h>

#include "debug/stack.h"
#include "fuzz.h"
#include "os/fake.h"
#include "os/os.h"
#include "pool/audit.h"
#include "pool/checked.h"

enum { SLOTS_MAX = 20000, MARKED_BYTES = 64 };

typedef struct model {
    unsigned char *order[SLOTS_MAX];
    size_t known, carved;
    unsigned char *freed[SLOTS_MAX];
    size_t freed_count;
    unsigned char *live[SLOTS_MAX];
    size_t live_count;
    size_t size, align, capacity;
    bool stuck; /* the system refused a release: address space stays reserved */
} model;

static model the_model;

/* The ends of an object hold a byte made from its address. */
static unsigned char mark_of(const unsigned char *object) {
    uintptr_t bits = (uintptr_t)object;
    return (unsigned char)(bits >> 3 ^ bits >> 11 ^ bits >> 19);
}

static size_t marked(const model *m) { return m->size < MARKED_BYTES ? m->size : MARKED_BYTES; }

static void mark(const model *m, unsigned char *object) {
    memset(object, mark_of(object), marked(m));
    memset(object + m->size - marked(m), mark_of(object), marked(m));
}

static void expect_marked(const model *m, const unsigned char *object) {
    for (size_t i = 0; i < marked(m); i++) {
        fuzz_expect(object[i] == mark_of(object), "a live object's front is untouched");
        fuzz_expect(object[m->size - 1 - i] == mark_of(object), "a live object's end is untouched");
    }
}

static void alloc_one(model *m, sy_pool *pool) {
    if (m->live_count == SLOTS_MAX) return;
    unsigned char *object = sy_pool_alloc(pool);
    if (object == NULL) {
        fuzz_expect(errno == ENOMEM, "no object is ENOMEM");
        fuzz_expect(m->freed_count == 0, "a freed slot is given without fail");
        fuzz_expect(m->live_count >= m->capacity, "a bounded pool holds its capacity");
        return;
    }
    fuzz_expect(m->capacity == 0 || m->live_count < m->capacity, "a full pool gives nothing");
    fuzz_expect((uintptr_t)object % m->align == 0, "an object is aligned");
    if (m->freed_count > 0) {
        fuzz_expect(object == m->freed[--m->freed_count], "the slot freed last is given first");
    } else {
        if (m->carved == m->known) m->order[m->known++] = object;
        fuzz_expect(object == m->order[m->carved], "after a reset slots are given in order");
        m->carved++;
    }
    mark(m, object);
    m->live[m->live_count++] = object;
}

static void free_one(model *m, sy_pool *pool, size_t which) {
    if (m->live_count == 0) return;
    which %= m->live_count;
    unsigned char *object = m->live[which];
    m->live_count--;
    m->live[which] = m->live[m->live_count];
    expect_marked(m, object);
    sy_pool_free(pool, object);
    m->freed[m->freed_count++] = object;
}

static void reset(model *m, sy_pool *pool) {
    sy_pool_reset(pool);
    m->carved = m->freed_count = m->live_count = 0;
}

static void compare(const model *m, const sy_pool *pool) {
    const char *broken = sy_pool_audit(pool);
    fuzz_expect(broken == NULL, broken == NULL ? "" : broken);
    fuzz_expect(sy_pool_in_use(pool) == m->live_count, "in_use is what is live");
    fuzz_expect(sy_pool_capacity(pool) >= m->carved, "capacity is no less than what was given");
    for (size_t i = 0; i < m->live_count; i++) expect_marked(m, m->live[i]);
}

static void end_script(model *m) {
    m->stuck = m->stuck || sy_fake_failures(SY_FAKE_RELEASE) > 0;
    sy_fake_reset();
}

/* Sets which calls to the system will fail: none in half of the cases. */
static void script(model *m, fuzz_input *input) {
    uint8_t choice = fuzz_byte(input);
    end_script(m);
    if (choice % 4 == 0) sy_fake_fail_nth(SY_FAKE_ANY, 1 + choice / 4 % 8);
    if (choice % 4 == 1) sy_fake_fail_randomly(SY_FAKE_ANY, 200, choice);
}

static void step(model *m, sy_pool *pool, fuzz_input *input) {
    uint8_t operation = fuzz_byte(input);
    uint8_t count = fuzz_byte(input);
    switch (operation % 16) {
    case 0: script(m, input); break;
    case 1:
        if (count < 16) reset(m, pool);
        break;
    case 2: compare(m, pool); break;
    case 3: sy_pool_free(pool, NULL); break;
    case 4:
    case 5:
    case 6:
    case 7: free_one(m, pool, fuzz_u16(input)); break;
    case 8: /* many objects, last in first out */
        for (; count > 0; count--) free_one(m, pool, m->live_count - 1);
        break;
    case 9: /* many objects, at random */
        for (size_t at = fuzz_u16(input); count > 0; count--) free_one(m, pool, at += 7919);
        break;
    case 10:
    case 11:
        for (; count > 0; count--) alloc_one(m, pool);
        break;
    default: alloc_one(m, pool); break;
    }
}

/* Mostly valid configurations, with sizes up to some pages. */
static sy_pool_config make_config(fuzz_input *input) {
    sy_pool_config config = {0};
    config.size = 1 + fuzz_u16(input) % (1u << fuzz_byte(input) % 16);
    uint8_t align = fuzz_byte(input);
    if (align % 2 == 0) config.align = (size_t)1 << align / 2 % 17;
    uint8_t chunk = fuzz_byte(input);
    if (chunk % 2 == 0) config.chunk_bytes = (size_t)chunk << chunk / 2 % 10;
    if (fuzz_byte(input) % 4 == 0) config.capacity = fuzz_u16(input);
    config.flags = fuzz_byte(input) % 4;
    bool small = config.size <= 4096 && config.align <= 4096 && config.capacity < 512;
    if (!small) config.flags &= ~SY_POOL_PREFAULT;
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    model *m = &the_model;
    sy_fake_reset();
    (void)sy_stack_here(); /* makes the table of stacks, which stays */
    size_t reserved = sy_fake_reserved(), committed = sy_fake_committed();
    sy_pool_config config = make_config(&input);
    sy_pool *pool = sy_pool_create(&config);
    fuzz_expect(pool != NULL, "a sensible pool is made");
    m->known = m->carved = m->freed_count = m->live_count = 0;
    m->stuck = false;
    m->size = sy_pool_slot_size(pool);
    m->capacity = config.capacity;
    m->align = config.align != 0 ? config.align : config.size < 16 ? 8 : 16;
    bool checked = sy_pool_is_checked(pool); /* then a slot is no larger than the object */
    fuzz_expect(m->size >= config.size && (checked || m->size % m->align == 0),
                "a slot holds an object");
    while (input.size > 0) step(m, pool, &input);
    end_script(m);
    compare(m, pool);
    sy_pool_destroy(pool);
    fuzz_expect(m->stuck || sy_fake_reserved() == reserved, "a pool gives everything back");
    fuzz_expect(m->stuck || sy_fake_committed() == committed, "a pool gives all memory back");
    return 0;
}
