/*
 * leaks.c: groups the live objects of caches with SY_AUDIT by cache and stack, and reports the
 * groups (leaks.h). In reports the size classes of a heap are one: a place that leaks texts of many
 * lengths has one group, not one for each class. The stacks of one line come one after the other,
 * the line with the most bytes first.
 *
 * It reads a cache's records under the cache's lock, and counts them in a table
 * of fixed size. If the table is too small, it begins again with a larger one. The report is made
 * without a lock.
 */
#include "report/leaks.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/random.h"
#include "cache/watched.h"
#include "debug/callback.h"
#include "debug/options.h"
#include "debug/stack.h"
#include "debug/tools.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/start.h"
#include "report/report.h"

typedef struct sy_group {
    char cache[SY_CACHE_NAME_MAX + 1];
    unsigned number; /* of the cache's client */
    const void *owner;
    uint32_t stack, thread;
    size_t objects, bytes, smallest, largest;
    uint64_t oldest, newest; /* allocated */
    const void *example;
    /* For a report: */
    uint32_t line;     /* the same for the same line of the program */
    bool of_runtime;   /* Rust's runtime made the allocations for itself */
    size_t line_bytes; /* of all groups of the line */
} sy_group;

/* A table of groups. `group` has them in the order in which they were found; `index` is a hash
 * table of their numbers. */
typedef struct sy_groups {
    bool done, full;
    bool by_heap;   /* size classes of a heap are one owner */
    uint32_t scope; /* not 0: objects of sy_malloc's family from this scope (watch.h) alone */
    size_t count, room;
    uint32_t *index; /* INDEX_PER_ROOM * room entries: a group's number plus 1; 0: none */
    sy_group group[];
} sy_groups;

enum { FIRST_ROOM = 1024, INDEX_PER_ROOM = 2 };

/* ---- counting ---- */

/* Whose objects are in one group, if they have the same stack. */
static const void *owner_of(const sy_groups *groups, const sy_cache *cache) {
    static const char general_heap;
    if (!groups->by_heap) return cache;
    if (cache->class_number) return &general_heap;
    return sy_cache_is_of_heap(cache) ? (const void *)cache->quota : cache;
}

/* The index entry of a group, or the empty entry where it belongs. */
static uint32_t *place_of(const sy_groups *groups, const void *owner, uint32_t stack) {
    size_t mask = INDEX_PER_ROOM * groups->room - 1;
    uint64_t hash = sy_random_mix(((uint64_t)(uintptr_t)owner << 16) ^ stack);
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        uint32_t found = groups->index[at];
        if (!found) return &groups->index[at];
        const sy_group *group = &groups->group[found - 1];
        if (group->owner == owner && group->stack == stack) return &groups->index[at];
    }
}

static void begin_group(sy_groups *groups, uint32_t *place, const sy_cache *cache,
                        const sy_stamp *allocated) {
    sy_group *group = &groups->group[groups->count++];
    *place = (uint32_t)groups->count;
    memcpy(group->cache, cache->name, sizeof group->cache);
    group->number = cache->client.number;
    group->owner = owner_of(groups, cache);
    group->stack = allocated->stack;
    group->oldest = UINT64_MAX;
    group->smallest = SIZE_MAX;
}

/* The group has objects of several classes: it is called by the heap's name, which precedes the
 * class's size in the names of classes. */
static void name_by_heap(sy_group *group) {
    char *size = strrchr(group->cache, '-');
    if (size) *size = 0;
    group->number = 0;
}

static void count_object(void *groups_, const sy_cache *cache, const void *object,
                         const sy_live *live) {
    sy_groups *groups = groups_;
    const sy_stamp *allocated = &live->allocated;
    if (groups->full || (groups->scope && live->scope != groups->scope)) return;
    uint32_t *place = place_of(groups, owner_of(groups, cache), allocated->stack);
    if (!*place) {
        groups->full = groups->full || groups->count == groups->room;
        if (groups->full) return;
        begin_group(groups, place, cache, allocated);
    }
    sy_group *group = &groups->group[*place - 1];
    if (group->number && group->number != cache->client.number) name_by_heap(group);
    group->objects++;
    group->bytes += live->size;
    if (live->size < group->smallest) group->smallest = live->size;
    if (live->size > group->largest) group->largest = live->size;
    if (allocated->time > group->newest) group->newest = allocated->time;
    if (allocated->time >= group->oldest) return;
    group->oldest = allocated->time;
    group->thread = allocated->thread;
    group->example = object;
}

static void count_cache(sy_groups *groups, sy_cache *cache) {
    bool of_heap = cache->class_number && !sy_cache_is_of_heap(cache);
    if (!groups->full && (of_heap || !groups->scope)) sy_watched_each(cache, count_object, groups);
}

/* Counts the objects of a cache, or of the heap that the cache belongs to. */
static void count_owner(sy_groups *groups, sy_cache *cache) {
    bool all = groups->by_heap && sy_cache_is_of_heap(cache);
    for (; cache; cache = all ? cache->of_quota : NULL) count_cache(groups, cache);
}

/* For NULL, counts the objects of all caches. */
static void count_all(sy_groups *groups, sy_cache *cache) {
    sy_client *client;
    if (cache) {
        count_owner(groups, cache);
        return;
    }
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        cache = sy_cache_of_client(client);
        if (cache) count_cache(groups, cache);
        sy_client_unpin(client);
    }
}

/* ---- making the table ---- */

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

typedef struct sy_question {
    size_t room;
    sy_cache *cache;
    bool by_heap;
    uint32_t scope;
    uintptr_t stack;
} sy_question;

/* Counts the objects in a table for `room` groups, which reads as zero. Without memory for the
 * index, `done` stays false. */
static void fill_groups(sy_groups *groups, const sy_question *question) {
    size_t room = question->room, bytes = index_bytes(room);
    groups->index = sy_pages_take(bytes, sy_os_page_size(), "slabyard leaks");
    if (!groups->index) return;
    groups->room = room;
    groups->by_heap = question->by_heap;
    groups->scope = question->scope;
    count_all(groups, question->cache);
    sy_pages_give(groups->index, bytes);
    groups->done = true;
}

/* Runs in a copy of the process: counts the objects that nothing points to. */
static void answer(const void *question, void *groups) {
    const sy_question *asked = question;
    sy_tool_enter(); /* the memory that is searched may never have been written */
    if (sy_reach_all(asked->stack)) fill_groups(groups, asked);
    sy_tool_leave();
}

/* Lets a copy of the process count the objects that nothing points to. All locks are held while the
 * copy is made, so that every structure in it is whole. */
static bool ask_copy(sy_groups *groups, const sy_question *question) {
    sy_start_lock_all();
    return sy_os_ask_copy(answer, question, groups, groups_bytes(question->room),
                          sy_start_unlock_all) == 0;
}

/* Makes the table of groups. NULL: there is no memory, or the search failed. */
static sy_groups *find_groups(unsigned flags, sy_question *question) {
    for (question->room = FIRST_ROOM;; question->room *= 2) {
        sy_groups *groups = take_groups(question->room);
        if (!groups) return NULL;
        if (flags & SY_LEAKS_UNREACHABLE)
            ask_copy(groups, question);
        else
            fill_groups(groups, question);
        if (groups->done && !groups->full) return groups;
        bool done = groups->done;
        give_groups(groups, question->room);
        if (!done) return NULL;
    }
}

/* ---- visiting the groups ---- */

/* The order of groups: those with more bytes come first; with as many bytes, the older ones. */
static bool has_more_bytes(const sy_group *a, const sy_group *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->oldest < b->oldest;
}

typedef bool sy_order(const sy_group *a, const sy_group *b);

/* Shell sort, which needs no memory. */
static void sort(sy_groups *groups, sy_order *is_before) {
    sy_group *group = groups->group;
    for (size_t gap = groups->count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < groups->count; i++) {
            sy_group moved = group[i];
            size_t at = i;
            for (; at >= gap && is_before(&moved, &group[at - gap]); at -= gap)
                group[at] = group[at - gap];
            group[at] = moved;
        }
}

/* Another thread may have allocated an object since `now`. */
static uint64_t sy_age(uint64_t time, uint64_t now) { return now > time ? now - time : 0; }

static sy_leak leak_of(const sy_group *group, uint64_t now) {
    const sy_stamp allocated = {group->oldest, group->stack, group->thread};
    return (sy_leak){
        .cache = group->cache,
        .objects = group->objects,
        .bytes = group->bytes,
        .oldest = sy_age(group->oldest, now),
        .newest = sy_age(group->newest, now),
        .example = group->example,
        .allocated = sy_stamp_trace(&allocated, now),
    };
}

/* A function that gets the sorted groups. `now`: when the search began. */
typedef int sy_groups_use(void *arg, sy_groups *groups, uint64_t now);

/* Makes the groups and passes them to `use`. The search covers the stack from this function's frame
 * up: the caller has saved its registers in its own frame, just above. */
static __attribute__((noinline)) int with_groups(sy_question *question, unsigned flags,
                                                 sy_groups_use *use, void *arg) {
    int error = errno, result = 0;
    uint64_t now = sy_os_now();
    question->stack = (uintptr_t)__builtin_frame_address(0);
    sy_groups *groups = find_groups(flags, question);
    if (!groups) {
        errno = ENOMEM;
        return -1;
    }
    sort(groups, has_more_bytes);
    errno = error;
    result = use(arg, groups, now);
    give_groups(groups, question->room);
    return result;
}

static int find_leaks(sy_cache *cache, bool by_heap, unsigned flags, sy_groups_use *use,
                      void *arg) {
    bool known = !(flags & ~(unsigned)SY_LEAKS_UNREACHABLE);
    if (!known || (flags && !sy_os_has(SY_OS_COPIES))) {
        errno = known ? ENOTSUP : EINVAL;
        return -1;
    }
    sy_question question = {.cache = cache, .by_heap = by_heap};
    __builtin_unwind_init(); /* saves all callee-saved registers in this frame, where the search
                              * finds them */
    int result = with_groups(&question, flags, use, arg);
    __asm__ volatile("" ::: "memory"); /* prevents a tail call, so that the frame stays */
    return result;
}

typedef struct sy_visitor {
    int (*visit)(void *arg, const sy_leak *leak);
    void *arg;
} sy_visitor;

static int visit_each(void *visitor_, sy_groups *groups, uint64_t now) {
    const sy_visitor *visitor = visitor_;
    int result = 0;
    for (size_t i = 0; i < groups->count && result == 0; i++) {
        sy_leak leak = leak_of(&groups->group[i], now);
        SY_CALLBACK(call, .function = "visitor of sy_leak_each");
        result = visitor->visit(visitor->arg, &leak);
        call.returned = true;
    }
    return result;
}

int sy_leak_each(sy_cache *cache, unsigned flags, int (*visit)(void *arg, const sy_leak *leak),
                 void *arg) {
    sy_visitor visitor = {visit, arg};
    return find_leaks(cache, false, flags, visit_each, &visitor);
}

/* ---- the report ---- */

typedef struct sy_total {
    size_t objects, bytes;
    bool writing; /* a report is being written */
} sy_total;

/* The groups that come later in the report. Their stacks are looked up together with the first
 * one's. */
typedef struct sy_later {
    const sy_group *next, *end;
} sy_later;

static void add_objects(size_t objects) {
    sy_report_number(objects);
    sy_report_text(objects == 1 ? " object" : " objects");
}

/* " of 10 to 300 bytes", if they have different sizes */
static void add_sizes(const sy_group *group) {
    if (group->smallest == group->largest) return;
    sy_report_text(" of ");
    sy_report_number(group->smallest);
    sy_report_text(" to ");
    sy_report_exactly(group->largest);
}

static void add_ages(const sy_leak *leak) {
    sy_report_text(", allocated ");
    if (leak->objects > 1) {
        sy_report_time(leak->newest);
        sy_report_text(" to ");
    }
    sy_report_time(leak->oldest);
    sy_report_text(leak->allocated.depth ? " ago by:\n" : " ago\n");
}

/* slabyard: 3 objects of 10 to 300 bytes leaked: 512 bytes in cache "order", allocated 1.2 s to 3 s
 * ago by: */
static void add_leak_headline(const sy_group *group, const sy_leak *leak) {
    sy_report_loud();
    sy_report_text("slabyard: ");
    add_objects(group->objects);
    add_sizes(group);
    sy_report_text(" leaked: ");
    sy_report_bytes(group->bytes);
    sy_report_text(" in cache \"");
    sy_report_text(group->cache);
    sy_report_text("\"");
    sy_report_quiet();
    add_ages(leak);
}

static bool next_stack(void *later_, const void *const **frames, size_t *depth) {
    sy_later *later = later_;
    if (later->next == later->end) return false;
    *depth = sy_stack_frames(later->next++->stack, frames);
    return true;
}

static void look_at(const sy_groups *groups, const sy_group *group) {
    const void *const *frames;
    size_t depth = sy_stack_frames(group->stack, &frames);
    sy_later later = {group + 1, groups->group + groups->count};
    sy_report_look(frames, depth, next_stack, &later);
}

static bool has_lower_line(const sy_group *a, const sy_group *b) { return a->line < b->line; }

/* The order of a report. The lines are sorted by their bytes, and then the groups of each. */
static bool has_more_line_bytes(const sy_group *a, const sy_group *b) {
    if (a->line_bytes != b->line_bytes) return a->line_bytes > b->line_bytes;
    return a->line != b->line ? a->line < b->line : has_more_bytes(a, b);
}

/* Finds the line of each group, and sorts the groups by the bytes of their lines. */
static void sort_by_line(sy_groups *groups) {
    sy_group *group = groups->group;
    for (size_t i = 0; i < groups->count; i++) {
        look_at(groups, &group[i]);
        group[i].line = sy_report_seen_line();
        group[i].of_runtime = sy_report_sees_runtime_alone();
    }
    sort(groups, has_lower_line);
    for (size_t i = 0, end; i < groups->count; i = end) {
        size_t bytes = 0;
        for (end = i; end < groups->count && group[end].line == group[i].line; end++)
            bytes += group[end].bytes;
        for (size_t at = i; at < end; at++) group[at].line_bytes = bytes;
    }
    sort(groups, has_more_line_bytes);
}

static void add_leak(sy_total *total, const sy_groups *groups, const sy_group *group,
                     uint64_t now) {
    if (group->of_runtime) return;
    total->objects += group->objects;
    total->bytes += group->bytes;
    if (!total->writing) return;
    sy_leak leak = leak_of(group, now);
    look_at(groups, group);
    add_leak_headline(group, &leak);
    sy_report_looked("    ");
}

static int add_leaks(void *total_, sy_groups *groups, uint64_t now) {
    sy_total *total = total_;
    if (groups->count) total->writing = sy_report_begin();
    if (total->writing) sort_by_line(groups);
    for (size_t i = 0; i < groups->count; i++) add_leak(total, groups, &groups->group[i], now);
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
    if (find_leaks(cache, true, flags, add_leaks, &total) != 0) add_failure();
    if (total.objects && total.writing) add_total(&total);
    if (total.writing) sy_report_end();
    errno = error;
    return total.objects;
}

/* ---- what survives a scope ---- */

/*   3 objects of 10 to 300 bytes: 512 bytes, allocated 1.2 s to 3 s ago by: */
static void add_survivors(const sy_group *group, uint64_t now) {
    sy_leak leak = leak_of(group, now);
    sy_report_text("  ");
    add_objects(group->objects);
    add_sizes(group);
    sy_report_text(": ");
    sy_report_bytes(group->bytes);
    add_ages(&leak);
}

static int report_survivors(void *unused, sy_groups *groups, uint64_t now) {
    (void)unused;
    if (!groups->count || !sy_report_begin()) return 0;
    sort_by_line(groups);
    for (size_t i = 0; i < groups->count; i++) {
        look_at(groups, &groups->group[i]);
        add_survivors(&groups->group[i], now);
        sy_report_looked("      ");
    }
    sy_report_end();
    return 0;
}

void sy_survivors_write(uint32_t scope) {
    int error = errno;
    sy_question question = {.by_heap = true, .scope = scope};
    if (with_groups(&question, 0, report_survivors, NULL) != 0) add_failure();
    errno = error;
}

/* ---- the option `leaks` ---- */

static unsigned option(void) {
    return atomic_load_explicit(&sy_options_now.leaks, memory_order_relaxed);
}

void sy_leaks_at_destroy(sy_cache *cache) {
    if (option() & SY_LEAKS_AT_DESTROY && cache->flags & SY_AUDIT) sy_report_leaks(cache, 0);
}

static void tell_at_exit(void) {
    unsigned now = option();
    if (!(now & SY_LEAKS_AT_EXIT)) return;
    size_t found = sy_report_leaks(NULL, now & SY_LEAKS_LOST ? SY_LEAKS_UNREACHABLE : 0);
    unsigned status = atomic_load_explicit(&sy_options_now.leak_status, memory_order_relaxed);
    if (found && status) sy_os_end((int)status);
}

static int announce_leaks(void) {
    return option() & SY_LEAKS_AT_EXIT ? sy_os_at_exit(tell_at_exit) : 0;
}

const sy_part sy_leaks_part = {.finish = announce_leaks};
