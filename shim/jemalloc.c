/*
 * jemalloc.c: jemalloc's own interface, as of its version 5.3, over Slabyard's memory: mallctl and
 * malloc_stats_print, and the functions mallocx to nallocx.
 *
 * A program that is linked with jemalloc calls these functions beside malloc. If only malloc were
 * replaced, mallctl would describe and purge an allocator that the program does not use, and blocks
 * of mallocx would be jemalloc's, which this library's free refuses. So all of them are replaced.
 *
 * There is one arena, number 0. Names for which Slabyard has no figure (profiles; the bytes that a
 * thread has allocated, which would cost each allocation) are not known: ENOENT, as of a jemalloc
 * that was built without them. A program that asks for thread.allocatedp to find out whether
 * jemalloc is its malloc, as folly does, then uses malloc_usable_size and realloc instead.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slabyard/slabyard.h>

#include "base/flag.h"
#include "heap/aligned.h"
#include "os/os.h"
#include "reclaim/reclaim.h"
#include "shim/shim.h"
#include "shim/sums.h"

#define NAME __attribute__((visibility("default")))

#define VERSION "5.3.0-slabyard-" SLABYARD_VERSION

/* ---- flags ---- */

/* The lowest six bits are the logarithm of the alignment. The bits for a cache of the thread and
 * for an arena have no meaning here. */
enum { LG_ALIGN = 63, ZERO = 64 };

static size_t align_of(int flags) {
    size_t align = (size_t)1 << (flags & LG_ALIGN);
    return align < SY_SHIM_ALIGN ? SY_SHIM_ALIGN : align;
}

/* ---- allocation ---- */

/* All usable bytes become zero: rallocx makes only the bytes after these zero. */
NAME void *mallocx(size_t size, int flags);
NAME void *mallocx(size_t size, int flags) {
    size_t align = align_of(flags);
    if (align == SY_SHIM_ALIGN)
        return flags & ZERO ? calloc(1, sy_good_size(sy_shim_size(size))) : sy_shim_alloc(size);
    void *object = sy_shim_alloc_aligned(size, align);
    if (object && flags & ZERO) memset(object, 0, sy_usable_size(object));
    return object;
}

static void *move_to(void *object, size_t size, int flags) {
    void *moved = mallocx(size, flags & ~ZERO);
    if (!moved) return NULL;
    size_t old = sy_usable_size(object);
    memcpy(moved, object, old < size ? old : size);
    sy_shim_free(object);
    return moved;
}

NAME void *rallocx(void *object, size_t size, int flags);
NAME void *rallocx(void *object, size_t size, int flags) {
    size_t old = sy_usable_size(object);
    bool moves = align_of(flags) != SY_SHIM_ALIGN;
    void *resized = moves ? move_to(object, size, flags) : realloc(object, size ? size : 1);
    size_t now = resized && flags & ZERO ? sy_usable_size(resized) : 0;
    if (now > old) memset((char *)resized + old, 0, now - old);
    return resized;
}

/* Resizes in place, which is never necessary: the caller learns the size that there is. */
NAME size_t xallocx(void *object, size_t size, size_t extra, int flags);
NAME size_t xallocx(void *object, size_t size, size_t extra, int flags) {
    (void)size, (void)extra, (void)flags;
    return sy_usable_size(object);
}

NAME size_t sallocx(const void *object, int flags);
NAME size_t sallocx(const void *object, int flags) {
    (void)flags;
    return sy_usable_size(object);
}

NAME void dallocx(void *object, int flags);
NAME void dallocx(void *object, int flags) {
    (void)flags;
    sy_shim_free(object);
}

/* The size may be any from the requested one to that of sallocx. With checks, a sized free of the
 * heap allows the requested one only. */
NAME void sdallocx(void *object, size_t size, int flags);
NAME void sdallocx(void *object, size_t size, int flags) {
    (void)size, (void)flags;
    sy_shim_free(object);
}

NAME size_t nallocx(size_t size, int flags);
NAME size_t nallocx(size_t size, int flags) {
    size_t align = align_of(flags);
    if (size > PTRDIFF_MAX || align > PTRDIFF_MAX) return 0;
    return sy_good_size_aligned(align, sy_shim_size(size));
}

/* ---- figures ---- */

enum { FIRST_BIN = SY_CLASS_16, BINS = SY_CLASSES - FIRST_BIN }; /* bin 0 has 16 bytes */

/* Bins are in the order of their sizes. */
static unsigned class_of_bin(size_t bin) {
    unsigned number = (unsigned)bin + FIRST_BIN, pages = sy_class_of(SY_PAGES_LEAST);
    return number < pages ? number : number == pages ? (unsigned)SY_CLASS_PAGES : number - 1;
}

enum { ALLOCATED, SMALL, LARGE, ACTIVE, DIRTY, METADATA, RESIDENT, RETAINED, FIGURES };

/* The state at the last write to "epoch". Other threads may write it at the same time: the figures
 * are then of two states. */
static _Atomic uint64_t epoch; /* 0: there is none yet */
static _Atomic size_t figures[FIGURES], bin_live[BINS], bin_slabs[BINS];

static const size_t HEADER_BYTES = 16 << 10; /* of a chunk: its descriptors */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static void look(void) {
    sy_shim_sums sums;
    sy_shim_add_up(&sums);
    const sy_stats *memory = &sums.memory;
    size_t of[FIGURES] = {[SMALL] = sums.used, [LARGE] = memory->spans};
    of[ALLOCATED] = of[SMALL] + of[LARGE];
    size_t used_pages = sy_shim_difference(memory->slabs, sums.untouched) + memory->spans;
    of[ACTIVE] = larger(used_pages, of[ALLOCATED]);
    of[DIRTY] = sy_shim_difference(memory->units_free, memory->units_clean);
    of[METADATA] = memory->magazines + memory->side + memory->chunks * HEADER_BYTES;
    of[RESIDENT] = of[ACTIVE] + of[DIRTY] + of[METADATA];
    of[RETAINED] = memory->units_clean + sums.untouched;
    for (unsigned i = 0; i < FIGURES; i++) atomic_store(&figures[i], of[i]);
    for (unsigned i = 0; i < BINS; i++) {
        atomic_store(&bin_live[i], sums.classes[class_of_bin(i)].live);
        atomic_store(&bin_slabs[i], sums.classes[class_of_bin(i)].slabs);
    }
    atomic_fetch_add(&epoch, 1);
}

/* ---- the names of mallctl: what each reads and writes ---- */

typedef enum value_type { NOTHING, BOOL, UNSIGNED, WORD, UINT64, TEXT } value_type;

typedef enum reader {
    VALUE_ITSELF,
    READ_FIGURE,
    READ_EPOCH,
    READ_BACKGROUND,
    READ_DECAY,
    READ_PAGE,
    READ_BIN_SIZE,
    READ_BIN_SLOTS,
    READ_SLAB_BYTES,
    READ_PAGES,
    READ_LIVE,
    READ_SLABS,
} reader;

typedef enum writer {
    CANNOT_BE_WRITTEN,
    WRITE_EPOCH,
    WRITE_BACKGROUND,
    WRITE_ARENA_OF_THREAD,
    WRITE_ACCEPT,
    WRITE_FLUSH,
    WRITE_IDLE,
    WRITE_PURGE,
} writer;

enum { NAME_BYTES = 40, TEXT_BYTES = 32 };

/* Without pointers: the loader would adjust them in each process, and so give it a page of memory
 * of its own. */
typedef struct sy_shim_control {
    char name[NAME_BYTES]; /* <a>: the index of an arena; <b>: of a bin */
    char text[TEXT_BYTES];
    uint8_t type, read, write; /* value_type, reader, writer */
    uint64_t value;
} sy_shim_control;

static uint64_t read_figure(const size_t *index, uint64_t value) {
    (void)index;
    return figures[value];
}

static uint64_t page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static uint64_t read_page(const size_t *index, uint64_t value) {
    (void)index, (void)value;
    return page_size();
}

static uint64_t read_pages(const size_t *index, uint64_t value) {
    return read_figure(index, value) / page_size();
}

/* Milliseconds; -1: memory is not returned by its age. */
static uint64_t read_decay(const size_t *index, uint64_t value) {
    (void)index, (void)value;
    uint64_t interval = sy_reclaim_interval();
    return interval ? interval / 1000000 : UINT64_MAX;
}

static uint64_t read_live(const size_t *index, uint64_t value) {
    (void)value;
    return bin_live[index[1]];
}

static uint64_t read_slabs(const size_t *index, uint64_t value) {
    (void)value;
    return bin_slabs[index[1]];
}

static uint64_t read_bin_size(const size_t *index, uint64_t value) {
    (void)value;
    return sy_class_size(class_of_bin(index[0]));
}

static sy_layout bin_layout(const size_t *index) {
    return sy_layout_make(sy_class_size(class_of_bin(index[0])), 0, false, 0, 0);
}

static uint64_t read_bin_slots(const size_t *index, uint64_t value) {
    (void)value;
    return bin_layout(index).slots;
}

static uint64_t read_slab_bytes(const size_t *index, uint64_t value) {
    (void)value;
    return bin_layout(index).slab_bytes;
}

static uint64_t read_epoch(const size_t *index, uint64_t value) {
    (void)index, (void)value;
    return epoch;
}

static int write_epoch(uint64_t value) {
    (void)value;
    look();
    return 0;
}

/* The background thread is the option `maintenance`. A program can turn it off, and on again after
 * that. An option of the user that turns it off holds. */
static sy_flag stopped; /* by the program */

static bool is_maintained(void) {
    char value[8] = "";
    sy_get_option("maintenance", value, sizeof value);
    return strcmp(value, "no") != 0;
}

static uint64_t read_background(const size_t *index, uint64_t value) {
    (void)index, (void)value;
    return is_maintained();
}

static int write_background(uint64_t value) {
    if (value && atomic_exchange(&stopped, false)) sy_set_options("maintenance=auto");
    if (value || !is_maintained()) return 0;
    atomic_store(&stopped, true);
    sy_set_options("maintenance=no");
    return 0;
}

static int purge(uint64_t value) {
    (void)value;
    sy_trim();
    return 0;
}

static int flush_thread(uint64_t value) {
    (void)value;
    sy_thread_flush();
    return 0;
}

static int thread_is_idle(uint64_t value) {
    (void)value;
    sy_thread_idle();
    return 0;
}

static int write_arena_of_thread(uint64_t value) { return value == 0 ? 0 : EFAULT; }

/* Parameters of jemalloc's own strategy are accepted and change nothing, as those of mallopt. */
static int accept(uint64_t value) {
    (void)value;
    return 0;
}

/* Returns the value. `index`: those in the name. */
static uint64_t (*const readers[])(const size_t *index, uint64_t value) = {
    [READ_FIGURE] = read_figure,
    [READ_EPOCH] = read_epoch,
    [READ_BACKGROUND] = read_background,
    [READ_DECAY] = read_decay,
    [READ_PAGE] = read_page,
    [READ_BIN_SIZE] = read_bin_size,
    [READ_BIN_SLOTS] = read_bin_slots,
    [READ_SLAB_BYTES] = read_slab_bytes,
    [READ_PAGES] = read_pages,
    [READ_LIVE] = read_live,
    [READ_SLABS] = read_slabs,
};

/* Returns an error. A control of type NOTHING calls it without a value. */
static int (*const writers[])(uint64_t value) = {
    [WRITE_EPOCH] = write_epoch,
    [WRITE_BACKGROUND] = write_background,
    [WRITE_ARENA_OF_THREAD] = write_arena_of_thread,
    [WRITE_ACCEPT] = accept,
    [WRITE_FLUSH] = flush_thread,
    [WRITE_IDLE] = thread_is_idle,
    [WRITE_PURGE] = purge,
};

#define IS(name_, ...) \
    { .name = (name_), __VA_ARGS__ }
#define FIGURE(figure) .type = WORD, .read = READ_FIGURE, .value = (figure)

static const sy_shim_control controls[] = {
    IS("version", .type = TEXT, .text = VERSION),
    IS("epoch", .type = UINT64, .read = READ_EPOCH, .write = WRITE_EPOCH),
    IS("background_thread", .type = BOOL, .read = READ_BACKGROUND, .write = WRITE_BACKGROUND),
    IS("max_background_threads", .type = WORD, .value = 1, .write = WRITE_ACCEPT),
    IS("thread.arena", .type = UNSIGNED, .write = WRITE_ARENA_OF_THREAD),
    IS("thread.tcache.enabled", .type = BOOL, .value = true, .write = WRITE_ACCEPT),
    IS("thread.tcache.flush", .type = NOTHING, .write = WRITE_FLUSH),
    IS("thread.idle", .type = NOTHING, .write = WRITE_IDLE),
    IS("tcache.create", .type = UNSIGNED),
    IS("tcache.flush", .type = UNSIGNED, .write = WRITE_ACCEPT),
    IS("tcache.destroy", .type = UNSIGNED, .write = WRITE_ACCEPT),
    IS("config.cache_oblivious", .type = BOOL),
    IS("config.debug", .type = BOOL),
    IS("config.fill", .type = BOOL),
    IS("config.lazy_lock", .type = BOOL),
    IS("config.malloc_conf", .type = TEXT, .text = ""),
    IS("config.prof", .type = BOOL),
    IS("config.prof_libgcc", .type = BOOL),
    IS("config.prof_libunwind", .type = BOOL),
    IS("config.stats", .type = BOOL, .value = true),
    IS("config.utrace", .type = BOOL),
    IS("config.xmalloc", .type = BOOL),
    IS("opt.abort", .type = BOOL, .value = true),
    IS("opt.abort_conf", .type = BOOL),
    IS("opt.background_thread", .type = BOOL, .read = READ_BACKGROUND),
    IS("opt.dirty_decay_ms", .type = WORD, .read = READ_DECAY),
    IS("opt.dss", .type = TEXT, .text = "disabled"),
    IS("opt.junk", .type = TEXT, .text = "false"),
    IS("opt.metadata_thp", .type = TEXT, .text = "disabled"),
    IS("opt.muzzy_decay_ms", .type = WORD),
    IS("opt.narenas", .type = UNSIGNED, .value = 1),
    IS("opt.percpu_arena", .type = TEXT, .text = "disabled"),
    IS("opt.retain", .type = BOOL, .value = true),
    IS("opt.stats_print", .type = BOOL),
    IS("opt.tcache", .type = BOOL, .value = true),
    IS("opt.thp", .type = TEXT, .text = "default"),
    IS("opt.zero", .type = BOOL),
    IS("arena.<a>.initialized", .type = BOOL, .value = true),
    IS("arena.<a>.purge", .type = NOTHING, .write = WRITE_PURGE),
    IS("arena.<a>.decay", .type = NOTHING,
       .write = WRITE_ACCEPT), /* memory goes back by its age anyway */
    IS("arena.<a>.destroy", .type = NOTHING, .write = WRITE_ACCEPT),
    IS("arena.<a>.dirty_decay_ms", .type = WORD, .read = READ_DECAY, .write = WRITE_ACCEPT),
    IS("arena.<a>.muzzy_decay_ms", .type = WORD, .write = WRITE_ACCEPT),
    IS("arenas.narenas", .type = UNSIGNED, .value = 1),
    IS("arenas.create", .type = UNSIGNED), /* the only arena serves as a new one */
    IS("arenas.dirty_decay_ms", .type = WORD, .read = READ_DECAY, .write = WRITE_ACCEPT),
    IS("arenas.muzzy_decay_ms", .type = WORD, .write = WRITE_ACCEPT),
    IS("arenas.quantum", .type = WORD, .value = SY_SHIM_ALIGN),
    IS("arenas.page", .type = WORD, .read = READ_PAGE),
    IS("arenas.tcache_max", .type = WORD, .value = SY_CLASS_SIZE_MAX),
    IS("arenas.nbins", .type = UNSIGNED, .value = BINS),
    IS("arenas.nhbins", .type = UNSIGNED, .value = BINS),
    IS("arenas.nlextents", .type = UNSIGNED),
    IS("arenas.bin.<b>.size", .type = WORD, .read = READ_BIN_SIZE),
    IS("arenas.bin.<b>.nregs", .type = UNSIGNED, .read = READ_BIN_SLOTS),
    IS("arenas.bin.<b>.slab_size", .type = WORD, .read = READ_SLAB_BYTES),
    IS("stats.allocated", FIGURE(ALLOCATED)),
    IS("stats.active", FIGURE(ACTIVE)),
    IS("stats.metadata", FIGURE(METADATA)),
    IS("stats.resident", FIGURE(RESIDENT)),
    IS("stats.mapped", FIGURE(RESIDENT)),
    IS("stats.retained", FIGURE(RETAINED)),
    IS("stats.arenas.<a>.nthreads", .type = UNSIGNED),
    IS("stats.arenas.<a>.pactive", .type = WORD, .read = READ_PAGES, .value = ACTIVE),
    IS("stats.arenas.<a>.pdirty", .type = WORD, .read = READ_PAGES, .value = DIRTY),
    IS("stats.arenas.<a>.pmuzzy", .type = WORD),
    IS("stats.arenas.<a>.mapped", FIGURE(RESIDENT)),
    IS("stats.arenas.<a>.retained", FIGURE(RETAINED)),
    IS("stats.arenas.<a>.base", FIGURE(METADATA)),
    IS("stats.arenas.<a>.internal", .type = WORD),
    IS("stats.arenas.<a>.resident", FIGURE(RESIDENT)),
    IS("stats.arenas.<a>.small.allocated", FIGURE(SMALL)),
    IS("stats.arenas.<a>.large.allocated", FIGURE(LARGE)),
    IS("stats.arenas.<a>.bins.<b>.curregs", .type = WORD, .read = READ_LIVE),
    IS("stats.arenas.<a>.bins.<b>.curslabs", .type = WORD, .read = READ_SLABS),
};

enum { CONTROLS = sizeof controls / sizeof *controls };

/* ---- the names of mallctl: how one is found ---- */

/* A name has up to five components. In the form of numbers (MIB), an index stands for itself, and
 * each other component is the place of the name in `controls`. */
enum { INDICES_MAX = 2 };

enum { ARENA = 0, OLD_ALL_ARENAS = 1, ALL_ARENAS = 4096, DESTROYED_ARENAS = 4097 };

/* `kind`: the pattern's component, `<a>` or `<b>` */
static bool is_valid(const char *kind, size_t index) {
    if (kind[1] == 'b') return index < BINS;
    return index <= OLD_ALL_ARENAS || index == ALL_ARENAS || index == DESTROYED_ARENAS;
}

/* Returns the component after this one. */
static const char *after(const char *component) {
    component += strcspn(component, ".");
    return component + (*component == '.');
}

static bool read_index(const char *component, size_t length, size_t *index) {
    size_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (component[i] < '0' || component[i] > '9' || value > ALL_ARENAS) return false;
        value = value * 10 + (size_t)(component[i] - '0');
    }
    *index = value;
    return length > 0;
}

/* Whether the name, or its beginning, is this control. */
static bool agree(const char *pattern, const char *name, size_t *index) {
    for (; *name && *pattern; name = after(name), pattern = after(pattern)) {
        size_t length = strcspn(name, ".");
        if (name[length] && !name[length + 1]) return false; /* a dot at the end */
        if (*pattern == '<') {
            if (!read_index(name, length, index) || !is_valid(pattern, *index)) return false;
            index++;
        } else if (length != strcspn(pattern, ".") || memcmp(name, pattern, length) != 0) {
            return false;
        }
    }
    return !*name;
}

/* The first control that has the name or begins with it; CONTROLS: none. */
static size_t find(const char *name, size_t *index) {
    size_t place = 0;
    while (place < CONTROLS && !agree(controls[place].name, name, index)) place++;
    return place;
}

static bool is_whole(const char *pattern, const char *name) {
    for (; *name && *pattern; name = after(name)) pattern = after(pattern);
    return !*pattern;
}

static size_t size_of(value_type type) {
    static const size_t sizes[] = {
        0, sizeof(bool), sizeof(unsigned), sizeof(size_t), sizeof(uint64_t), sizeof(char *)};
    return sizes[type];
}

/* A value in the form in which a program reads and writes it. */
typedef union passed_value {
    bool flag;
    unsigned number;
    size_t word;
    uint64_t wide;
    const char *text;
} passed_value;

static passed_value pass(const sy_shim_control *control, uint64_t value) {
    switch ((value_type)control->type) {
    case BOOL: return (passed_value){.flag = value};
    case UNSIGNED: return (passed_value){.number = (unsigned)value};
    case WORD: return (passed_value){.word = (size_t)value};
    case TEXT: return (passed_value){.text = control->text};
    default: return (passed_value){.wide = value};
    }
}

static uint64_t value_passed(value_type type, const void *in) {
    passed_value from = {.wide = 0};
    memcpy(&from, in, size_of(type));
    return type == BOOL       ? from.flag
           : type == UNSIGNED ? from.number
           : type == WORD     ? from.word
                              : from.wide;
}

static int give(const sy_shim_control *control, uint64_t value, void *out, size_t *out_bytes) {
    size_t bytes = size_of(control->type), room = *out_bytes;
    const passed_value from = pass(control, value);
    *out_bytes = room < bytes ? room : bytes;
    memcpy(out, &from, *out_bytes);
    return room == bytes ? 0 : EINVAL;
}

static int serve(const sy_shim_control *control, const size_t *index, void *out, size_t *out_bytes,
                 const void *in, size_t in_bytes) {
    if (control->type == NOTHING)
        return out || out_bytes || in || in_bytes ? EPERM : writers[control->write](0);
    if ((in || in_bytes) && !control->write) return EPERM;
    if (in && in_bytes != size_of(control->type)) return EINVAL;
    uint64_t value = 0, before = control->read ? readers[control->read](index, control->value)
                                               : control->value;
    if (in) value = value_passed(control->type, in);
    int error = in ? writers[control->write](value) : 0;
    if (control->write == WRITE_EPOCH) before = epoch;
    return error || !out || !out_bytes ? error : give(control, before, out, out_bytes);
}

/* ---- mallctl ---- */

NAME int mallctl(const char *name, void *out, size_t *out_bytes, void *in, size_t in_bytes);
NAME int mallctl(const char *name, void *out, size_t *out_bytes, void *in, size_t in_bytes) {
    size_t index[INDICES_MAX], place = find(name, index);
    if (place == CONTROLS || !is_whole(controls[place].name, name)) return ENOENT;
    if (!epoch) look();
    return serve(&controls[place], index, out, out_bytes, in, in_bytes);
}

NAME int mallctlnametomib(const char *name, size_t *mib, size_t *length);
NAME int mallctlnametomib(const char *name, size_t *mib, size_t *length) {
    size_t index[INDICES_MAX], *next = index, count = 0, place = find(name, index);
    if (place == CONTROLS) return ENOENT;
    const char *pattern = controls[place].name;
    for (; *name && count < *length; name = after(name), pattern = after(pattern))
        mib[count++] = *pattern == '<' ? *next++ : place;
    *length = count;
    return 0;
}

NAME int mallctlbymib(const size_t *mib, size_t length, void *out, size_t *out_bytes, void *in,
                      size_t in_bytes);
NAME int mallctlbymib(const size_t *mib, size_t length, void *out, size_t *out_bytes, void *in,
                      size_t in_bytes) {
    size_t index[INDICES_MAX], *next = index, i = 0;
    if (length == 0 || mib[0] >= CONTROLS) return ENOENT;
    const char *pattern = controls[mib[0]].name;
    for (; *pattern && i < length; pattern = after(pattern), i++) {
        if (*pattern == '<' ? !is_valid(pattern, mib[i]) : mib[i] != mib[0]) return ENOENT;
        if (*pattern == '<') *next++ = mib[i];
    }
    if (*pattern || i < length) return ENOENT;
    if (!epoch) look();
    return serve(&controls[mib[0]], index, out, out_bytes, in, in_bytes);
}

/* ---- the report ---- */

static void write_to_stderr(void *unused, const char *text) {
    (void)unused;
    sy_os_write(sy_os_stderr(), text, strlen(text));
}

/* jemalloc's frame and its line of totals, which programs look for. The options choose parts of
 * jemalloc's report that this one does not have. */
NAME void malloc_stats_print(void (*write)(void *, const char *), void *arg, const char *options);
NAME void malloc_stats_print(void (*write)(void *, const char *), void *arg, const char *options) {
    (void)options;
    char line[256];
    if (!write) write = write_to_stderr;
    look();
    write(arg, "___ Begin jemalloc statistics ___\nVersion: \"" VERSION "\"\n");
    snprintf(line, sizeof line,
             "Allocated: %zu, active: %zu, metadata: %zu, resident: %zu, mapped: %zu, retained: "
             "%zu\n",
             figures[ALLOCATED], figures[ACTIVE], figures[METADATA], figures[RESIDENT],
             figures[RESIDENT], figures[RETAINED]);
    write(arg, line);
    write(arg, "bins:         size      curregs     curslabs\n");
    for (unsigned i = 0; i < BINS; i++) {
        if (!bin_slabs[i]) continue;
        snprintf(line, sizeof line, "%18zu %12zu %12zu\n", sy_class_size(class_of_bin(i)),
                 bin_live[i], bin_slabs[i]);
        write(arg, line);
    }
    snprintf(line, sizeof line, "large:             %12zu\n", figures[LARGE]);
    write(arg, line);
    write(arg, "--- End jemalloc statistics ---\n");
}
