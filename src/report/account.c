/*
 * account.c: sy_print_stats writes a table of all caches, and one of the separate heaps. The rows,
 * one for each cache, are collected and sorted in pages from the OS. So writing the tables
 * allocates nothing from a cache, and no cache is pinned while a line is written. A separate heap
 * has a cache for each size class; its line sums up the rows of these.
 */
#include "report/account.h"

#include <errno.h>
#include <slabyard/stats.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "cache/mixed.h"
#include "debug/guard.h"
#include "debug/options.h"
#include "magazine/client.h"
#include "os/os.h"
#include "os/pages.h"
#include "report/json.h"
#include "report/output.h"

/* ---- rows ---- */

typedef struct row {
    char name[SY_CACHE_NAME_MAX + 1];
    sy_cache_kind kind;
    size_t size, live, held, memory, waiting; /* bytes, objects, bytes, bytes, objects */
    uint64_t slow;
    uintptr_t heap;     /* identifies the separate heap of a size class; 0: of no heap */
    size_t used, limit; /* of the heap: bytes; SIZE_MAX: no limit */
    uint64_t refused;   /* of the heap: allocations */
} row;

typedef struct account {
    size_t count, room, unused; /* rows, room for them, caches without memory */
    size_t untouched;           /* bytes of slabs that hold no memory */
    row rows[];
} account;

static void note_heap(row *it, const sy_quota *heap) {
    it->heap = (uintptr_t)heap;
    it->used = atomic_load_explicit(&heap->used, memory_order_relaxed);
    it->limit = atomic_load_explicit(&heap->hard, memory_order_relaxed);
    it->refused = atomic_load_explicit(&heap->hits, memory_order_relaxed);
}

/* The cache is pinned. */
static void add_row(account *to, const sy_cache_account *of) {
    const sy_cache_stats *stats = &of->stats;
    bool used = stats->mapped || stats->in_use;
    to->unused += !used;
    size_t untouched = stats->discarded + stats->never_used;
    to->untouched += untouched;
    if (!used || to->count == to->room) return;
    row *fresh = &to->rows[to->count++];
    memcpy(fresh->name, stats->name, sizeof fresh->name);
    fresh->kind = of->kind;
    fresh->size = stats->object_size;
    fresh->live = stats->in_use;
    fresh->held = stats->mapped;
    fresh->memory = stats->mapped > untouched ? stats->mapped - untouched : 0;
    fresh->waiting = stats->in_depot + stats->in_loaded;
    fresh->slow = stats->refills + stats->flushes;
    if (of->kind == SY_CACHE_OF_HEAP) note_heap(fresh, of->cache->quota);
}

static void add_rows(account *to) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_account one;
        number = client->number;
        if (sy_cache_take_account(client, &one)) add_row(to, &one);
        sy_client_unpin(client);
    }
}

typedef bool order(const row *a, const row *b);

static bool holds_more(const row *a, const row *b) {
    return a->held != b->held ? a->held > b->held : strcmp(a->name, b->name) < 0;
}

/* The size classes of a heap come one after the other. */
static bool by_heap(const row *a, const row *b) { return a->heap < b->heap; }

/* Shell sort: it works in place, and needs no memory. */
static void sort(account *all, order *is_before) {
    for (size_t gap = all->count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < all->count; i++) {
            row moved = all->rows[i];
            size_t at = i;
            for (; at >= gap && is_before(&moved, &all->rows[at - gap]); at -= gap)
                all->rows[at] = all->rows[at - gap];
            all->rows[at] = moved;
        }
}

/* ---- columns ---- */

enum {
    NAME_COLUMN = 24, /* where the first figure of a row may begin */
    DECIMALS_BELOW = 10,
};

/* Adds the figure so that it ends at `column`, counted from the beginning of the line. */
static void add_right(sy_text *line, const sy_text *figure, size_t column) {
    do sy_text_add(line, " ");
    while (line->length + figure->length < column);
    for (size_t i = 0; i < figure->length; i++) sy_text_add(line, (char[]){figure->bytes[i], 0});
}

static void add_bytes(sy_text *line, uint64_t bytes, size_t column) {
    static const char units[][5] = {" B", " KiB", " MiB", " GiB", " TiB"};
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

static void add_limit(sy_text *line, size_t bytes, size_t column) {
    sy_text none = {.length = 0};
    if (bytes != SIZE_MAX) {
        add_bytes(line, bytes, column);
        return;
    }
    sy_text_add(&none, "none");
    add_right(line, &none, column);
}

static void add_count(sy_text *line, uint64_t count, size_t column) {
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

static void end_line(sy_output *to, sy_text *line) {
    sy_text_add(line, "\n");
    sy_output_add(to, line->bytes, line->length);
    line->length = 0;
}

static void write_text(sy_output *to, const char *text) {
    sy_text line = {.length = 0};
    sy_text_add(&line, text);
    end_line(to, &line);
}

static void write_total(sy_output *to, const char *what, size_t bytes, const char *remark) {
    sy_text line = {.length = 0};
    sy_text_add(&line, what);
    add_bytes(&line, bytes, 40);
    sy_text_add(&line, remark);
    end_line(to, &line);
}

static void write_totals(sy_output *to, const account *all) {
    sy_stats stats;
    sy_get_stats(&stats);
    size_t beside = stats.magazines + stats.side;
    sy_mixed_bytes mixed = sy_mixed_count();
    size_t untouched = stats.units_clean + all->untouched + mixed.discarded;
    size_t touched = stats.mapped > untouched ? stats.mapped - untouched : 0;
    write_total(to, "mapped for objects", stats.mapped, "");
    write_total(to, "  slabs of caches", stats.slabs, "");
    if (mixed.all) write_total(to, "    holes between objects", mixed.holes, "  (for any size)");
    write_total(to, "  large objects", stats.spans, "");
    write_total(to, "  free, for any of these", stats.units_free, "");
    write_total(to, "  headers", stats.chunk_headers, "");
    write_total(to, "magazines and tables", beside, "");
    write_total(to, "in memory, about", touched + beside, "  (without what was never touched)");
}

static void write_row(sy_output *to, const row *of) {
    sy_text line = {.length = 0};
    sy_text_add(&line, of->name);
    if (line.length >= NAME_COLUMN) end_line(to, &line); /* the figures in a line of their own */
    add_bytes(&line, of->size, 32);
    add_count(&line, of->live, 42);
    add_bytes(&line, of->held, 51);
    add_bytes(&line, of->memory, 60);
    add_percent(&line, (uint64_t)of->live * of->size, of->held, 66);
    add_count(&line, of->waiting, 74);
    add_count(&line, of->slow, 80);
    end_line(to, &line);
}

static void write_rows(sy_output *to, const account *all, sy_cache_kind kind, const char *title) {
    bool begun = false;
    for (size_t i = 0; i < all->count && !to->error; i++) {
        if (all->rows[i].kind != kind) continue;
        if (!begun) write_text(to, title);
        begun = true;
        write_row(to, &all->rows[i]);
    }
}

/* Writes a line about a heap, the size classes of which are `count` rows. */
static void write_heap(sy_output *to, const row *rows, size_t count) {
    char name[sizeof rows->name];
    sy_text line = {.length = 0};
    size_t live = 0;
    for (size_t i = 0; i < count; i++) live += rows[i].live;
    memcpy(name, rows->name, sizeof name);
    char *end = strrchr(name, '-'); /* the name of a class: tenant-112 */
    if (end) *end = 0;
    sy_text_add(&line, name);
    add_count(&line, count, 32);
    add_count(&line, live, 42);
    add_bytes(&line, rows->used, 51);
    add_limit(&line, rows->limit, 60);
    add_count(&line, rows->refused, 68);
    end_line(to, &line);
}

/* The rows are sorted by heap. */
static void write_heaps(sy_output *to, const account *all) {
    bool begun = false;
    for (size_t i = 0, count; i < all->count && !to->error; i += count) {
        const row *first = &all->rows[i];
        for (count = 1; i + count < all->count && first[count].heap == first->heap;) count++;
        if (!first->heap) continue;
        if (!begun)
            write_text(to, "heaps:                     sizes      live     used    limit refused");
        begun = true;
        write_heap(to, first, count);
    }
    if (begun) write_text(to, "");
}

static void write_guarded(sy_output *to) {
    sy_guard_counts counts;
    sy_text line = {.length = 0};
    if (!sy_guard_get_counts(&counts)) return;
    sy_text_add(&line, "guarded objects: ");
    sy_text_add_number(&line, counts.held);
    sy_text_add(&line, " live, ");
    sy_text_add_number(&line, counts.freed);
    sy_text_add(&line, " freed; not guarded for want of slots: ");
    sy_text_add_number(&line, counts.left_out);
    end_line(to, &line);
}

static void write_account(sy_output *to, account *all) {
    sy_text line = {.length = 0};
    sy_text_add(&line, "slabyard: memory of process ");
    sy_text_add_number(&line, (uint64_t)sy_os_process());
    end_line(to, &line);
    write_totals(to, all);
    write_text(to, "");
    sort(all, by_heap);
    write_heaps(to, all);
    sort(all, holds_more);
    write_text(to, "                            size      live     held   memory  used"
                   " waiting  slow");
    write_rows(to, all, SY_CACHE_OF_PROGRAM, "caches:");
    write_rows(to, all, SY_CACHE_OF_HEAP, "sizes of heaps:");
    write_rows(to, all, SY_CACHE_OF_SIZES, "sizes of sy_malloc:");
    if (all->unused) {
        sy_text_add(&line, "caches without memory:");
        add_count(&line, all->unused, 0);
        end_line(to, &line);
    }
    write_guarded(to);
    write_text(to,
               "held: address space of slabs; memory: of it, without what was returned and what");
    write_text(to,
               "was never used; used: part of what is held that live objects are; waiting: free");
    write_text(to,
               "objects in magazines; slow: magazines filled from slabs and emptied into slabs");
}

/* ---- public functions ---- */

/* Rows beyond the present number of caches: other threads may create caches meanwhile. */
enum { ROOM_MORE = 64 };

/* With room for the rows, and behind them for the text. NULL with ENOMEM. */
static account *take_account(size_t *bytes) {
    sy_stats stats;
    sy_get_stats(&stats);
    size_t room = stats.caches + ROOM_MORE;
    *bytes = sizeof(account) + room * sizeof(row) + SY_OUTPUT_ROOM;
    *bytes = sy_round_up(*bytes, sy_os_page_size());
    account *all = sy_pages_take(*bytes, sy_os_page_size(), "slabyard account");
    if (all) all->room = room;
    return all;
}

static void write_table(sy_output *to, account *all) {
    add_rows(all);
    write_account(to, all);
}

static void write_json(sy_output *to, account *all) {
    (void)all;
    sy_client *client;
    bool first = true;
    sy_account sums;
    sy_get_account(&sums);
    sy_json_begin(to, &sums);
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        sy_cache_account one;
        number = client->number;
        bool known = sy_cache_take_account(client, &one);
        sy_client_unpin(client);
        if (!known) continue;
        sy_json_cache(to, &one, first);
        first = false;
    }
    sy_json_end(to);
}

/* 0, or the number of the error. */
static int write_as(sy_output *to, void (*write)(sy_output *to, account *all)) {
    size_t bytes;
    account *all = take_account(&bytes);
    if (!all) return ENOMEM;
    to->text = (char *)all + bytes - SY_OUTPUT_ROOM;
    write(to, all);
    sy_output_flush(to);
    sy_pages_give(all, bytes);
    return to->error;
}

int sy_print_stats(int fd) {
    sy_output to = {.fd = fd};
    int error = write_as(&to, write_table);
    if (error) errno = error;
    return error ? -1 : 0;
}

static bool ends_in(const char *path, const char *end) {
    size_t length = strlen(path), of_end = strlen(end);
    return length >= of_end && strcmp(path + length - of_end, end) == 0;
}

static void tell_no_file(const char *path) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: stats-file: cannot write to ");
    sy_text_add(&text, path);
    sy_text_add(&text, "\n");
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
}

void sy_account_write(void) {
    char path[SY_OPTION_TEXT_MAX + 1];
    int saved = errno, cancellation = sy_os_hold_cancellation();
    sy_options_stats_path(path);
    sy_output to = {.fd = sy_os_stderr(), .path = *path ? path : NULL};
    int error = write_as(&to, ends_in(path, ".json") ? write_json : write_table);
    if (error && *path) tell_no_file(path);
    sy_os_drop_cancellation(cancellation);
    errno = saved;
}

static void print_at_exit(void) {
    if (atomic_load_explicit(&sy_options_now.stats, memory_order_relaxed)) sy_account_write();
}

static int announce_account(void) {
    bool wanted = atomic_load_explicit(&sy_options_now.stats, memory_order_relaxed);
    return wanted ? sy_os_at_exit(print_at_exit) : 0;
}

const sy_part sy_account_part = {.finish = announce_account};
