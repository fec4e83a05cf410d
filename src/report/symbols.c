/*
 * symbols.c: see symbols.h. The child fills a sy_symbols in memory shared with the parent, address
 * by address, and increments the count when all lines of an address are there. So whenever the
 * child ends, the counted addresses are complete, and the parent adds the rest behind them. The
 * parent validates counts and offsets before it uses them.
 */
#include "report/symbols.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/facts.h"
#include "os/os.h"
#include "report/cxx_name.h"
#include "report/dwarf.h"
#include "report/rust_name.h"

/* Time limit for the child. Some thousand files of debug information are opened in less. */
enum { SECONDS = 20 };

/* ---- text ---- */

/* Adds text. Leaves room for the end of a line and of an address. */
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

static void end_line(sy_symbols *to) {
    if (to->length < SY_SYMBOLS_TEXT - 1) to->text[to->length++] = '\n';
}

static void begin_line(sy_symbols *to, sy_whose whose) {
    add_symbol_text(to, (const char[]){(char)whose, 0});
}

/* Adds a line without debug information. `function` is the demangled name; NULL: not known. */
static void add_place(sy_symbols *to, uintptr_t address, const char *function, uint64_t behind,
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
    end_line(to);
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
    end_line(to);
}

/* ---- addresses ---- */

static size_t counted(sy_symbols *of) {
    return atomic_load_explicit(&of->count, memory_order_relaxed);
}

/* Whether the text is full, so that lines may have been cut off. */
static bool is_full(const sy_symbols *symbols) { return symbols->length >= SY_SYMBOLS_TEXT - 1; }

static void begin_address(sy_symbols *to) { to->at[counted(to)] = to->length; }

/* Release: a thread that has waited for the child's end and sees the count also sees the lines. */
static void end_address(sy_symbols *to) {
    to->text[to->length] = 0;
    if (to->length < SY_SYMBOLS_TEXT - 1) to->length++;
    atomic_store_explicit(&to->count, counted(to) + 1, memory_order_release);
}

/* Adds a line with the function's name from a symbol table, demangled. Names of C++ are demangled
 * only with `in_child`. */
static void add_mangled(sy_symbols *to, uintptr_t address, const char *function, uint64_t behind,
                        const sy_os_place *place, bool in_child) {
    char words[SY_RUST_NAME_MAX];
    bool rust = function && sy_rust_name(function, words);
    const char *name = rust ? words : NULL;
    if (!name && function && in_child) name = sy_cxx_name(function);
    add_place(to, address, name ? name : function, behind, place, rust);
}

static void add_shallow(sy_symbols *to, uintptr_t address, bool in_child) {
    sy_os_place place;
    if (sy_is_in_sandbox() ? sy_os_locate_loaded(address, &place) : sy_os_locate(address, &place))
        add_mangled(to, address, place.function, place.in_function, &place, in_child);
    else
        add_mangled(to, address, NULL, 0, NULL, in_child);
}

/* Adds an address for which libdw has no lines. It may still have a name. */
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

/* Keeps libdw from asking servers in the network for debug information. */
static void stay_here(void) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this process has no other thread. */
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

/* Whether the counts and offsets are such as the child leaves. */
static bool is_sound(sy_symbols *answer, size_t asked) {
    size_t known = counted(answer);
    if (known > asked || answer->length >= SY_SYMBOLS_TEXT) return false;
    for (size_t i = 0; i < known; i++) {
        if (answer->at[i] > answer->length) return false;
    }
    return true;
}

static void ask_child(sy_symbols *symbols, const question *all) {
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
    deep = deep && all.count > 0 && !sy_is_in_sandbox();
    if (deep && !sy_os_is_traced()) ask_child(symbols, &all);
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
