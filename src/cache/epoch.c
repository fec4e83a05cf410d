/*
 * epoch.c: epochs, their views of caches, and the record of the epochs that each thread is in.
 *
 * An epoch is held by its creator until it is closed, by each thread that is in it, and by each
 * slab of its views. The thread that lets go of the last hold takes the epoch off the list and
 * frees it with its views. A listed epoch may have no holds left for a moment: under the list's
 * lock it may then be read, but not be held again.
 */
#include "cache/epoch.h"

#include <errno.h>
#include <string.h>

#include "base/fork.h"
#include "base/text.h"
#include "cache/watched.h"
#include "chunk/side.h"
#include "debug/callback.h"
#include "os/os.h"
#include "os/start.h"

struct sy_epoch {
    char name[SY_EPOCH_NAME_MAX + 1];
    uint64_t number, made_at;
    _Atomic uint64_t closed_at; /* 0: it is open */
    _Atomic size_t holds;
    _Atomic unsigned threads;
    _Atomic(sy_view *) views;  /* of caches, the newest first; written under the lock */
    sy_epoch *next, *previous; /* guarded by the lock */
};

static sy_lock lock = SY_LOCK_INIT(SY_RANK_EPOCHS);
static sy_epoch *first_epoch, *last_epoch; /* in order of number; guarded by the lock */
static uint64_t epochs_made;               /* guarded by the lock */

/* The epochs that this thread is in, the outermost first. NULL stands for a time in no epoch. */
static SY_TLS struct {
    sy_epoch *in[SY_EPOCH_DEPTH_MAX];
    unsigned depth;
    sy_epoch *passing; /* the epoch that the thread is beginning or ending at present */
} own_epochs;

/* The epochs of which this thread is letting go. */
static SY_TLS sy_own own_leaving;

/* ---- holds ---- */

static void hold(sy_epoch *epoch) {
    atomic_fetch_add_explicit(&epoch->holds, 1, memory_order_relaxed);
}

/* Holds an epoch that is on the list; false: its last hold is gone already. The lock is held. */
static bool hold_listed(sy_epoch *epoch) {
    SY_HOLDS(&lock);
    size_t holds = atomic_load_explicit(&epoch->holds, memory_order_relaxed);
    while (holds &&
           !atomic_compare_exchange_weak_explicit(&epoch->holds, &holds, holds + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    return holds > 0;
}

/* One store takes effect: the one of `next` or of first_epoch. recover_epochs mends the others. */
static void unlist(sy_epoch *epoch) {
    *(epoch->previous ? &epoch->previous->next : &first_epoch) = epoch->next;
    *(epoch->next ? &epoch->next->previous : &last_epoch) = epoch->previous;
}

static void end_epoch(sy_epoch *epoch) {
    sy_lock_acquire(&lock);
    unlist(epoch);
    sy_lock_release(&lock);
    for (sy_view *view = epoch->views, *next; view; view = next) {
        next = view->next;
        sy_side_give(view, sizeof *view);
    }
    sy_side_give(epoch, sizeof *epoch);
}

/* Lets go of a hold. The last one ends the epoch. */
static void let_go(sy_epoch *epoch) {
    sy_own_replace(&own_leaving, NULL, epoch);
    if (atomic_fetch_sub_explicit(&epoch->holds, 1, memory_order_acq_rel) == 1) end_epoch(epoch);
    sy_own_replace(&own_leaving, epoch, NULL);
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

/* Makes the cache's view of the epoch, unless another thread in the epoch makes it meanwhile. */
static sy_view *add_view(sy_epoch *epoch, sy_cache *cache) {
    sy_view *view = sy_side_take(sizeof *view), *other;
    if (!view) return NULL;
    view->epoch = epoch;
    view->bins.counted = &cache->bins;
    atomic_init(&view->cache, cache);
    sy_lock_acquire(&lock);
    other = find_view(epoch, cache);
    if (!other) {
        view->next = atomic_load_explicit(&epoch->views, memory_order_relaxed);
        atomic_store_explicit(&epoch->views, view, memory_order_release);
    }
    sy_lock_release(&lock);
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

void sy_epochs_each_view(const sy_cache *cache, void (*visit)(sy_view *view)) {
    for (const sy_epoch *epoch = first_epoch; epoch; epoch = epoch->next) {
        sy_view *view = find_view(epoch, cache);
        if (view) visit(view);
    }
}

void sy_view_hold(sy_view *view) { hold(view->epoch); }

void sy_view_let_go(sy_view *view) { let_go(view->epoch); }

void sy_epochs_forget(sy_cache *cache) {
    sy_lock_acquire(&lock);
    for (sy_epoch *epoch = first_epoch; epoch; epoch = epoch->next) {
        sy_view *view = find_view(epoch, cache);
        if (view) atomic_store_explicit(&view->cache, NULL, memory_order_relaxed);
    }
    sy_lock_release(&lock);
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
    sy_lock_acquire(&lock);
    epoch->number = ++epochs_made;
    epoch->previous = last_epoch;
    sy_fork_order();
    *(last_epoch ? &last_epoch->next : &first_epoch) = epoch;
    last_epoch = epoch;
    sy_lock_release(&lock);
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
        hold(epoch);
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
    if (epoch) let_go(epoch);
    return 0;
}

/* ---- close ---- */

bool sy_epoch_is_over(const sy_cache *cache, const void *object) {
    if (!(cache->flags & SY_EPOCHS)) return false;
    const sy_slab *slab = sy_slab_at((uintptr_t)object);
    return slab->bins != &cache->bins && is_closed(sy_view_of(slab->bins)->epoch);
}

/* Drains a view and releases its empty slabs; returns the slots that are still out. The client is
 * pinned. A drain releases the slabs that it empties. The loop finds the others: empty slabs that
 * were made for a refill which took nothing from them. */
static size_t close_view(sy_view *view, sy_cache *cache) {
    sy_watched_drain(cache);
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

/* The view's cache, pinned so that it is not destroyed; NULL: it was or is being destroyed. */
static sy_cache *pin_cache(const sy_view *view) {
    sy_lock_acquire(&lock);
    sy_cache *cache = atomic_load_explicit(&view->cache, memory_order_relaxed);
    if (cache && !sy_client_pin(&cache->client)) cache = NULL;
    sy_lock_release(&lock);
    return cache;
}

/* Marks the epoch as closed; returns the views that it has so far. Threads that add a view later
 * find the epoch closed. */
static sy_view *shut(sy_epoch *epoch) {
    uint64_t now = sy_os_now();
    sy_lock_acquire(&lock);
    atomic_store_explicit(&epoch->closed_at, now ? now : 1, memory_order_relaxed);
    sy_view *views = atomic_load_explicit(&epoch->views, memory_order_relaxed);
    sy_lock_release(&lock);
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
    let_go(epoch);
    errno = error;
    return left;
}

/* ---- statistics ---- */

/* Adds the view's slabs and objects. The lock of the epochs is held: sy_epochs_forget takes it
 * before a cache is destroyed, so the view's cache exists. */
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

/* The epoch after `held`, or the first one (NULL): now held itself, with its statistics. Lets go of
 * `held`. NULL: there is no further epoch. */
static sy_epoch *next_epoch(sy_epoch *held, sy_epoch_stats *stats) {
    sy_lock_acquire(&lock);
    sy_epoch *epoch = held ? held->next : first_epoch;
    while (epoch && !hold_listed(epoch)) epoch = epoch->next;
    if (epoch) fill_stats(epoch, sy_os_now(), stats);
    sy_lock_release(&lock);
    if (held) let_go(held);
    return epoch;
}

int sy_epoch_each(sy_epoch_visit visit, void *arg) {
    sy_epoch_stats stats;
    for (sy_epoch *epoch = NULL; (epoch = next_epoch(epoch, &stats)) != NULL;) {
        SY_CALLBACK(call, .function = "visitor of sy_epoch_each");
        int result = visit(arg, &stats);
        call.returned = true;
        if (result == 0) continue;
        let_go(epoch);
        return result;
    }
    return 0;
}

/* ---- the report ---- */

static void add_count(sy_text *text, size_t count, const char *of) {
    sy_text_add_number(text, count);
    sy_text_add(text, of);
}

/* Adds `, 12 of "session"` for each cache. The lock is held. */
static void add_caches(sy_text *text, const sy_epoch *epoch) {
    SY_HOLDS(&lock);
    for (sy_view *view = epoch->views; view; view = view->next) {
        sy_epoch_stats of_view = {.objects = 0};
        const sy_cache *cache = atomic_load_explicit(&view->cache, memory_order_relaxed);
        count_view(view, &of_view);
        if (!of_view.objects) continue;
        sy_text_add(text, ", ");
        add_count(text, of_view.objects, " of \"");
        sy_text_add(text, cache->name);
        sy_text_add(text, "\"");
    }
}

/*
 * Writes a line such as
 *
 *     slabyard: epoch "login" is stuck: closed 12 s ago, 2 threads in it, 17 objects in 3 slabs
 *     (192 KiB), 12 of "session", 5 of "packet"
 *
 * The lock is held.
 */
static void describe_epoch(sy_text *text, const sy_epoch *epoch, const sy_epoch_stats *stats) {
    SY_HOLDS(&lock);
    sy_text_add(text, "slabyard: epoch \"");
    sy_text_add(text, stats->name);
    sy_text_add(text, "\" is stuck: closed ");
    add_count(text, (size_t)(stats->closed_ns / 1000000000), " s ago, ");
    add_count(text, stats->threads, stats->threads == 1 ? " thread in it, " : " threads in it, ");
    add_count(text, stats->objects, stats->objects == 1 ? " object in " : " objects in ");
    add_count(text, stats->slabs, stats->slabs == 1 ? " slab (" : " slabs (");
    add_count(text, stats->bytes / 1024, " KiB)");
    add_caches(text, epoch);
    sy_text_add(text, "\n");
}

static void report(const sy_epoch *epoch, const sy_epoch_stats *stats) {
    sy_text text = {.length = 0};
    sy_lock_acquire(&lock);
    describe_epoch(&text, epoch, stats);
    sy_lock_release(&lock);
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
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

static void hold_epochs(void) { sy_lock_hold(&lock); }

static void drop_epochs(void) { sy_lock_drop(&lock); }

static unsigned times_in(const sy_epoch *epoch) {
    unsigned times = own_epochs.passing == epoch;
    for (unsigned i = 0; i < own_epochs.depth; i++) times += own_epochs.in[i] == epoch;
    return times;
}

/* Sets the links that lead back: another thread may have been changing the list. */
static void mend_list(void) {
    last_epoch = NULL;
    for (sy_epoch *epoch = first_epoch; epoch; last_epoch = epoch, epoch = epoch->next)
        epoch->previous = last_epoch;
}

/* Whether this thread has dropped the last hold, and is about to end the epoch. */
static bool is_ending(const sy_epoch *epoch) {
    return sy_own_times(&own_leaving, epoch) && atomic_load(&epoch->holds) == 0;
}

/* Takes the holds of the parent's other threads back, which the child lacks. An epoch that only
 * they held ends here, or as soon as its slabs are released. */
static void recover_epochs(void) {
    mend_list();
    for (sy_epoch *epoch = first_epoch, *next; epoch; epoch = next) {
        next = epoch->next;
        if (is_ending(epoch)) continue;
        unsigned all = atomic_load(&epoch->threads), mine = times_in(epoch);
        unsigned gone = all > mine ? all - mine : 0;
        atomic_fetch_sub(&epoch->threads, gone);
        hold(epoch);
        atomic_fetch_sub(&epoch->holds, gone);
        let_go(epoch);
    }
}

const sy_part sy_epochs_part = {
    .hold = hold_epochs, .drop = drop_epochs, .recover = recover_epochs};
