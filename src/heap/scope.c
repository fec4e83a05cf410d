/*
 * scope.c: scopes of the heap: entering and leaving, the buffers of threads, and what survives. See
 * scope.h. Objects that are checked lie in no scope; with audit their records have its number.
 */
#include "heap/scope.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "base/fork.h"
#include "base/text.h"
#include "cache/kind.h"
#include "cache/limit.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/callback.h"
#include "debug/tell.h"
#include "debug/watch.h"
#include "heap/classes.h"
#include "magazine/turn.h"
#include "os/os.h"
#include "os/pages.h"

struct sy_scope {
    sy_lots lots;
    uint32_t number; /* below SY_WATCH_SCOPES, not 0: recorded objects have it (debug/watch.h) */
    char name[SY_SCOPE_NAME_MAX + 1];
};

_Static_assert(sizeof(sy_scope) <= 256, "a small scope stays small");

enum {
    BUFFER_ITEMS = 64,
    FILLS_MAX = 7,           /* the buffer then gets so many */
    BUFFER_BYTES = 16 << 10, /* of objects that are made ahead, at most */
};

_Static_assert(1 << (FILLS_MAX - 1) == BUFFER_ITEMS, "as next_batch computes");

/* Of a thread that has been in a scope; never freed, but used again. */
typedef struct sy_scoped {
    struct sy_scoped *next; /* all; guarded by the lock of mixed units, as is `used` */
    bool used;
    sy_loaded_slot *slots;                      /* of the thread's second record */
    _Atomic(sy_scope *) in[SY_SCOPE_DEPTH_MAX]; /* the outermost first; NULL: a time in no scope */
    _Atomic unsigned depth;                     /* others read both (is_in_use) */
    unsigned touched_count;
    uint8_t
        touched[SY_CLASSES];   /* classes whose buffers were filled since the last sy_scope_enter */
    uint8_t fills[SY_CLASSES]; /* how often such a buffer was filled, up to FILLS_MAX */
    sy_cache *cache[SY_CLASSES]; /* of the objects in it */
    uintptr_t items[SY_CLASSES][BUFFER_ITEMS];
} sy_scoped;

static sy_scoped *all_scoped;
static SY_TLS sy_scoped *own; /* NULL: this thread has been in no scope yet */
SY_TLS sy_scope *sy_scope_now;

static size_t scoped_bytes(void) { return sy_round_up(sizeof(sy_scoped), sy_os_page_size()); }

/* ---- buffers ---- */

static void set_slot(sy_loaded_slot *slot, uintptr_t *base, uintptr_t *top) {
    __atomic_store_n(&slot->base, base, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->top, top, __ATOMIC_RELAXED);
}

/* What is left in the buffer of a class, which was filled. */
static size_t left_in(const sy_scoped *scoped, unsigned class_number) {
    const uintptr_t *top = __atomic_load_n(&scoped->slots[class_number].top, __ATOMIC_RELAXED);
    return top ? (size_t)(top - scoped->items[class_number]) : 0;
}

static void flush_buffer(sy_scoped *scoped, unsigned number) {
    uintptr_t *items = scoped->items[number];
    size_t left = left_in(scoped, number);
    set_slot(&scoped->slots[number], items, items);
    if (left) sy_mixed.client.config.flush(&sy_mixed, items, left, NULL);
}

/* Gives what is left in the buffers back to the scope. What lies in no lot of it, in the child of a
 * fork, is freed. */
static void put_back(sy_scoped *scoped, sy_scope *scope) {
    unsigned count = scoped->touched_count;
    bool others = false;
    if (!count) return;
    sy_lock_acquire(&sy_mixed.lock);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = scoped->touched[i];
        size_t left = left_in(scoped, number);
        scoped->fills[number] = 0;
        if (!left) continue;
        uintptr_t *items = scoped->items[number];
        set_slot(&scoped->slots[number], items, items); /* a fork must not see them twice */
        if (sy_lots_put_back(&scope->lots, scoped->cache[number], items[left - 1], left)) continue;
        set_slot(&scoped->slots[number], items, items + left);
        others = true;
    }
    sy_slab *empty = sy_unit_take_emptied();
    sy_lock_release(&sy_mixed.lock);
    sy_mixed_release(empty);
    scoped->touched_count = 0;
    for (unsigned i = 0; others && i < count; i++) flush_buffer(scoped, scoped->touched[i]);
}

/* Leaves the slots of the second record as they were, for the next thread that gets the record. */
static void clear_slots(sy_scoped *scoped) {
    for (unsigned number = 1; number < SY_CLASSES; number++)
        if (scoped->cache[number]) set_slot(&scoped->slots[number], NULL, NULL);
    memset(scoped->cache, 0, sizeof scoped->cache);
}

/* The objects that a buffer gets next: 1, 1, 2, 4 ... So few are left at sy_scope_leave. */
static size_t next_batch(const sy_scoped *scoped, const sy_cache *cache, unsigned class_number) {
    size_t most = BUFFER_BYTES / cache->layout.slot, fills = scoped->fills[class_number];
    size_t batch = fills < 2 ? 1 : (size_t)1 << (fills - 1);
    return batch < most ? batch : most;
}

static bool fill_buffer(sy_cache *cache, unsigned class_number) {
    uintptr_t *items = own->items[class_number];
    if (left_in(own, class_number)) return true; /* a function of the program has filled it */
    size_t batch = next_batch(own, cache, class_number);
    size_t got = sy_lots_take(&sy_scope_now->lots, cache, items + batch, batch, SY_GRAIN);
    if (!got) return false;
    if (got < batch) memmove(items, items + batch - got, got * sizeof *items);
    own->cache[class_number] = cache;
    if (!own->fills[class_number]) own->touched[own->touched_count++] = (uint8_t)class_number;
    if (own->fills[class_number] < FILLS_MAX) own->fills[class_number]++;
    set_slot(&own->slots[class_number], items, items + got);
    return true;
}

/* While a profile is taken, no object is left to the inline code. */
static void *pop(const sy_cache *cache, unsigned class_number) {
    sy_loaded_slot *slot = &own->slots[class_number];
    uintptr_t *top = slot->top - 1;
    bool shuts = sy_client_is_profiled(&cache->client);
    set_slot(slot, shuts ? top : own->items[class_number], top);
    return (void *)*top;
}

/* Fills the buffer of the class or, if that is 0, makes an object at a multiple of `align`. */
static bool make(sy_cache *cache, unsigned class_number, size_t align, uintptr_t *object) {
    if (class_number) return fill_buffer(cache, class_number);
    return sy_lots_take(&sy_scope_now->lots, cache, object + 1, 1, align) != 0;
}

/* As sy_cache_take_item: if there is no memory, makes room and tries once more. */
static bool make_or_make_room(sy_cache *cache, unsigned class_number, size_t align,
                              uintptr_t *object) {
    SY_SLOW_PATH(&cache->client);
    bool made = make(cache, class_number, align, object);
    if (SY_UNLIKELY(!made)) {
        made = sy_limit_make_room(cache) && make(cache, class_number, align, object);
        if (!made) sy_limit_count_refusal(cache);
        errno = ENOMEM;
    }
    if (SY_UNLIKELY(sy_quota_crossed(cache->quota))) sy_limit_tell(cache->quota);
    return made;
}

static void *end_alloc(sy_cache *cache, size_t size, void *object, int error) {
    if (SY_UNLIKELY(sy_client_is_profiled(&cache->client)))
        sy_plain_profile(cache, size, (uintptr_t)object);
    sy_turn_of_alloc();
    errno = error;
    return object;
}

void *sy_scope_alloc(sy_cache *cache, unsigned class_number, size_t size) {
    sy_cpu_keep_frame();
    int error = errno;
    sy_second_resume();
    while (!left_in(own, class_number))
        if (!make_or_make_room(cache, class_number, SY_GRAIN, NULL)) return NULL;
    return end_alloc(cache, size, pop(cache, class_number), error);
}

void *sy_scope_alloc_aligned(sy_cache *cache, size_t size, size_t align) {
    sy_cpu_keep_frame();
    int error = errno;
    uintptr_t object;
    if (!make_or_make_room(cache, 0, align, &object)) return NULL;
    return end_alloc(cache, size, (void *)object, error);
}

/* ---- enter and leave ---- */

/* The classes whose objects can lie in scopes. */
static void find_placed(uint64_t placed[2]) {
    unsigned last = sy_class_of(SY_MIXED_SIZE_MAX);
    placed[0] = sy_low_bits(last + 1) & ~UINT64_C(1);
    placed[1] = UINT64_C(1) << (SY_CLASS_PAGES - 64);
}

/* How deep in scopes a thread is, and the scope that many levels above the innermost one. */
static unsigned depth_of(const sy_scoped *scoped) {
    return atomic_load_explicit(&scoped->depth, memory_order_acquire);
}

static sy_scope *scope_at(const sy_scoped *scoped, unsigned above) {
    unsigned depth = depth_of(scoped);
    if (above >= depth) return NULL;
    return atomic_load_explicit(&scoped->in[depth - 1 - above], memory_order_relaxed);
}

static void set_depth(unsigned depth) {
    atomic_store_explicit(&own->depth, depth, memory_order_release);
}

static void leave_all(void) {
    if (!own) return; /* there was no memory for it */
    if (sy_scope_now) put_back(own, sy_scope_now);
    sy_scope_now = NULL;
    sy_watch_scope = 0;
    set_depth(0);
    clear_slots(own);
    sy_lock_acquire(&sy_mixed.lock);
    own->used = false;
    sy_lock_release(&sy_mixed.lock);
    own = NULL;
}

static int begin_second(void) {
    uint64_t placed[2];
    find_placed(placed);
    return sy_second_begin(placed, leave_all);
}

/* Makes one the thread's own that no thread uses, if there is one. */
static void find_unused(void) {
    sy_lock_acquire(&sy_mixed.lock);
    sy_scoped *found = all_scoped;
    while (found && found->used) found = found->next;
    own = found; /* first, so that it is this thread's own in the child of a fork */
    sy_fork_order();
    if (found) found->used = true;
    sy_lock_release(&sy_mixed.lock);
}

static void make_scoped(void) {
    sy_scoped *made = sy_pages_take(scoped_bytes(), sy_os_page_size(), "slabyard scopes");
    if (!made) return;
    own = made;
    made->used = true;
    sy_lock_acquire(&sy_mixed.lock);
    made->next = all_scoped;
    sy_fork_order();
    all_scoped = made;
    sy_lock_release(&sy_mixed.lock);
}

/* The second record and the buffers of this thread; false with errno. */
static SY_COLD bool prepare(void) {
    if (begin_second() != 0) return false;
    find_unused();
    if (!own) make_scoped();
    if (own) own->slots = sy_abi_1;
    sy_second_end();
    if (!own) errno = ENOMEM;
    return own != NULL;
}

/* Makes this thread allocate in `scope`; 0, or -1 with errno. */
static int change_to(sy_scope *scope) {
    sy_scope *before = sy_scope_now;
    if (scope == before) return 0;
    if (scope ? begin_second() != 0 : !sy_second_end()) {
        if (!scope) errno = EBUSY;
        return -1;
    }
    if (before) put_back(own, before);
    sy_scope_now = scope;
    sy_watch_scope = scope ? scope->number : 0;
    return 0;
}

/* A function of the program may have been called in the midst of an allocation in a scope. */
static bool is_called_back(void) {
    sy_callback_check();
    if (SY_LIKELY(!sy_callback_now.frame)) return false;
    errno = EBUSY;
    return true;
}

int sy_scope_enter(sy_scope *scope) {
    if (is_called_back()) return -1;
    if (SY_UNLIKELY(!own) && !prepare()) return -1;
    unsigned depth = depth_of(own);
    if (depth == SY_SCOPE_DEPTH_MAX) {
        errno = EAGAIN;
        return -1;
    }
    if (change_to(scope) != 0) return -1;
    atomic_store_explicit(&own->in[depth], scope, memory_order_relaxed);
    set_depth(depth + 1);
    return 0;
}

int sy_scope_leave(sy_scope *scope) {
    unsigned depth = own ? depth_of(own) : 0;
    if (is_called_back()) return -1;
    if (!depth || scope_at(own, 0) != scope) {
        errno = EINVAL;
        return -1;
    }
    if (change_to(scope_at(own, 1)) != 0) return -1;
    set_depth(depth - 1);
    return 0;
}

sy_scope *sy_scope_current(void) { return sy_scope_now; }

/* ---- fork ---- */

static void recover_scoped(sy_scoped *scoped) {
    sy_scope *scope = scope_at(scoped, 0);
    if (scope) put_back(scoped, scope);
    clear_slots(scoped);
    atomic_store(&scoped->depth, 0);
    scoped->touched_count = 0;
    scoped->used = false;
}

/* Takes the other threads out of their scopes. Units are whole again, and the other threads'
 * records are as they were. */
static void recover(void) {
    for (sy_scoped *scoped = all_scoped; scoped; scoped = scoped->next)
        if (scoped->used && scoped != own) recover_scoped(scoped);
}

/* ---- create and destroy ---- */

static uint32_t next_number(void) {
    static _Atomic uint32_t last;
    uint32_t number;
    do number = (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) % SY_WATCH_SCOPES;
    while (!number);
    return number;
}

sy_scope *sy_scope_create(const char *name) {
    if (sy_start() != 0 || !sy_mixed_begin()) {
        errno = ENOMEM;
        return NULL;
    }
    sy_scope *scope = sy_side_take(sizeof *scope);
    if (!scope) return NULL;
    if (!name) name = "scope";
    scope->number = next_number();
    for (size_t i = 0; i < SY_SCOPE_NAME_MAX && name[i]; i++) scope->name[i] = name[i];
    sy_lots_begin(&scope->lots, recover);
    return scope;
}

/* Whether a thread is in the scope. */
static bool is_in_use(const sy_scope *scope) {
    bool used = false;
    sy_lock_acquire(&sy_mixed.lock);
    for (const sy_scoped *scoped = all_scoped; scoped && !used; scoped = scoped->next)
        for (unsigned above = 0; above < depth_of(scoped) && !used; above++)
            used = scope_at(scoped, above) == scope;
    sy_lock_release(&sy_mixed.lock);
    return used;
}

int sy_scope_destroy(sy_scope *scope) {
    if (!scope) return 0;
    if (is_in_use(scope)) {
        errno = EBUSY;
        return -1;
    }
    int error = errno;
    sy_lots_end(&scope->lots);
    sy_side_give(scope, sizeof *scope);
    errno = error;
    return 0;
}

/* ---- what lives in it ---- */

/* What this thread has freed does not count, nor what ended threads and passes have left in the
 * depot. */
static void put_back_freed(void) {
    int error = errno;
    sy_client_flush_own(&sy_mixed.client);
    while (sy_client_drain_step(&sy_mixed.client, false)) {}
    errno = error;
}

typedef void sy_survivor_visit(void *arg, uintptr_t object, size_t bytes);

typedef struct sy_survivors {
    const sy_scope *scope;
    sy_survivor_visit *visit;
    void *arg;
} sy_survivors;

static void visit_recorded(void *survivors_, const sy_cache *cache, const void *object,
                           const sy_live *live) {
    const sy_survivors *survivors = survivors_;
    if (live->scope != survivors->scope->number) return;
    survivors->visit(survivors->arg, (uintptr_t)object, cache->size);
}

/* The objects that lie elsewhere, because they are checked, if their records say where they were
 * allocated. */
static void each_recorded(const sy_scope *scope, sy_survivor_visit *visit, void *arg) {
    sy_survivors survivors = {scope, visit, arg};
    sy_client *client;
    if (!sy_watch_changes_any()) return;
    for (unsigned number = 0; number < SY_CLASSES && (client = sy_client_pin_next(number));) {
        number = client->number;
        sy_cache *cache = number < SY_CLASSES ? sy_cache_of_client(client) : NULL;
        if (cache) sy_watched_each(cache, visit_recorded, &survivors);
        sy_client_unpin(client);
    }
}

static void each_survivor(sy_scope *scope, sy_survivor_visit *visit, void *arg) {
    put_back_freed();
    sy_lots_each(&scope->lots, visit, arg);
    each_recorded(scope, visit, arg);
}

typedef struct sy_scope_count {
    size_t objects, bytes;
} sy_scope_count;

static void count_object(void *arg, uintptr_t object, size_t bytes) {
    sy_scope_count *count = arg;
    (void)object;
    count->objects++;
    count->bytes += bytes;
}

size_t sy_scope_live(sy_scope *scope, size_t *bytes) {
    sy_scope_count count = {0};
    if (scope) {
        put_back_freed();
        count.objects = sy_lots_out(&scope->lots, &count.bytes);
        each_recorded(scope, count_object, &count);
    }
    if (bytes) *bytes = count.bytes;
    return count.objects;
}

typedef struct sy_scope_listing {
    void **objects;
    size_t most, count;
} sy_scope_listing;

static void list_object(void *arg, uintptr_t object, size_t bytes) {
    sy_scope_listing *listing = arg;
    (void)bytes;
    if (listing->count < listing->most) listing->objects[listing->count++] = (void *)object;
}

size_t sy_scope_list(sy_scope *scope, void **objects, size_t most) {
    sy_scope_listing listing = {objects, most, 0};
    if (scope) each_survivor(scope, list_object, &listing);
    return listing.count;
}

typedef struct sy_scope_tally {
    sy_scope_count all;
    uint32_t of[SY_CLASSES];
} sy_scope_tally;

static void tally_object(void *arg, uintptr_t object, size_t bytes) {
    sy_scope_tally *tally = arg;
    count_object(&tally->all, object, bytes);
    tally->of[sy_class_for(bytes)]++;
}

static void describe(sy_text *text, const sy_scope *scope, const sy_scope_tally *tally) {
    sy_text_add(text, "slabyard: scope \"");
    sy_text_add(text, scope->name);
    sy_text_add(text, "\": ");
    sy_text_add_number(text, tally->all.objects);
    sy_text_add(text, tally->all.objects == 1 ? " object survives (" : " objects survive (");
    sy_text_add_number(text, (tally->all.bytes + 1023) / 1024);
    sy_text_add(text, " KiB)");
    const char *before = ": ";
    for (unsigned number = 1; number < SY_CLASSES; number++) {
        if (!tally->of[number]) continue;
        sy_text_add(text, before);
        sy_text_add_number(text, tally->of[number]);
        sy_text_add(text, " of ");
        sy_text_add_number(text, sy_class_size(number));
        sy_text_add(text, " bytes");
        before = ", ";
    }
    if (text->length == SY_TEXT_MAX) text->length--;
    sy_text_add(text, "\n");
}

size_t sy_scope_report(sy_scope *scope) {
    sy_scope_tally tally = {0};
    sy_text text = {.length = 0};
    if (scope) each_survivor(scope, tally_object, &tally);
    if (!tally.all.objects) return 0;
    describe(&text, scope, &tally);
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
    sy_tell->survivors(scope->number);
    return tally.all.objects;
}
