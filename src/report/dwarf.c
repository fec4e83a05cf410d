/*
 * dwarf.c: see dwarf.h. The part of libdw's interface that is used is declared here, so its headers
 * are not needed. It has been the same since elfutils 0.171, and the library's soname guarantees
 * it.
 *
 * Addresses are the process's (Dwarf_Addr plus the bias of its module), except where a comment says
 * otherwise.
 */
#include "report/dwarf.h"

#include <stddef.h>
#include <string.h>

#include "os/os.h"
#include "report/cxx_name.h"
#include "report/rust_name.h"

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

/* libdw's functions, each under its name. load_libdw stores them in the order of `names`. */
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

static const char *const names[] = {
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

enum { FUNCTIONS = sizeof names / sizeof *names };
_Static_assert(sizeof dw == FUNCTIONS * sizeof(void *), "a name for each function");

static void *session;

/* The path of this file in the debug information, without "report/dwarf.c"; the whole path if all
 * sources were compiled as one file. NULL: this library has no debug information. */
static const char *own_path;
static size_t own_length;

static bool load_libdw(void) {
    void *library = sy_os_load("libdw.so.1");
    if (!library) return false;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *function = sy_os_symbol(library, names[i]);
        if (!function) return false;
        memcpy((char *)&dw + i * sizeof function, &function, sizeof function);
    }
    return true;
}

/* ---- words ---- */

/* Demangles a name. The child has one thread, so one buffer is enough. */
static const char *in_words(const char *name, bool *rust) {
    static char words[SY_RUST_NAME_MAX];
    *rust = sy_rust_name(name, words);
    if (*rust) return words;
    const char *cxx = sy_cxx_name(name);
    return cxx ? cxx : name;
}

/* The symbol table may know the full name of a function for which the debug information has only
 * the short one: one that is local to its source (gcc), or one with line tables alone. */
static const char *name_by_symbol(const char *short_name, uintptr_t address, bool *rust) {
    uint64_t behind;
    const char *symbol = sy_dwarf_symbol(address, &behind);
    if (!symbol || strcmp(symbol, short_name) == 0) return short_name;
    const char *name = in_words(symbol, rust);
    return name != symbol && strstr(name, short_name) ? name : short_name;
}

/* Returns the name, with namespaces and parameters if they are known. `address` lies in the
 * function's own code; 0 if the function was inlined. */
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

/* Returns the path of a source of this library, independent of the place where it was built. */
static const char *own_file(const char *path) {
    static char file[256] = "slabyard/src/";
    static const size_t start = sizeof "slabyard/src/" - 1;
    const char *below = path[own_length] ? path + own_length : "slabyard.c";
    if (strlen(below) >= sizeof file - start) return below;
    strcpy(file + start, below);
    return file;
}

/* Keeps a path as the compiler got it, if it was relative; else keeps its last two names. */
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

static int number_of(die *of, unsigned code) {
    attribute found;
    uint64_t value = 0;
    if (!dw.dwarf_attr(of, code, &found) || dw.dwarf_formudata(&found, &value) != 0) return 0;
    return (int)value;
}

static const char *file_of_call(die *inlined, die *unit) {
    void *files;
    size_t count;
    size_t index = (size_t)number_of(inlined, AT_CALL_FILE);
    if (dw.dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count) return NULL;
    return dw.dwarf_filesrc(files, index, NULL, NULL);
}

/* Some compilers (clang) write no table from addresses to units. Then only the ranges of each unit
 * tell where an address belongs. If other units of the file have such a table, libdw attributes the
 * address to the unit before it, so that answer is checked. */
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

/* The source line of a scope's code. */
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
    /* cppcheck-suppress returnDanglingLifetime ; the string lies in the debug information */
    return at;
}

static void find_own_path(void) {
    static const char here[] = "report/dwarf.c";
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

/* The unit's functions may be described in a separate file (-gsplit-dwarf). */
static die whole_unit_of(die *unit) {
    die split = {0};
    dw.dwarf_cu_info(unit->unit, NULL, NULL, NULL, &split, NULL, NULL, NULL);
    return split.at ? split : *unit;
}

enum { SCOPES_MAX = 256 }; /* nested blocks and inlined functions */

typedef struct scopes {
    uint64_t address;
    size_t count;
    die at[SCOPES_MAX]; /* the function first, then each scope within the previous one */
} scopes;

static bool is_at(die *scope, uint64_t address) { return dw.dwarf_haspc(scope, address) > 0; }

/* Whether functions may be declared inside. */
static bool may_hold_functions(int tag) {
    return tag == TAG_NAMESPACE || tag == TAG_STRUCTURE || tag == TAG_CLASS || tag == TAG_UNION ||
           tag == TAG_ENUMERATION || tag == TAG_MODULE;
}

/* Finds the function that contains the address among the declarations within `outer`. With `nested`
 * it also searches functions that do not contain the address: the code of a nested function may lie
 * elsewhere. */
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

/* Finds the scope within the last one that contains the address. Returns false if there is none. */
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

/* Finds all scopes that contain the address, from the function inwards. (libdw's own function finds
 * none for functions inside of namespaces and types.) */
static void find_scopes(die *unit, scopes *found) {
    enum { DEPTH = 32 }; /* of nested namespaces, types and functions */
    if (!find_function(unit, false, DEPTH, found)) find_function(unit, true, DEPTH, found);
    while (found->count && found->count < SCOPES_MAX && find_inner(found)) found->count++;
}

/* Whether the function is of the library's core. Then code that was inlined into it counts as the
 * core's too. */
static bool is_of_core(die *function) {
    const char *name = dw.dwarf_diename(function);
    return name && strncmp(name, "sy_", 3) == 0;
}

/* `address`: of the process, if `function` is not an inlined one; else 0. */
static void tell_function(sy_dwarf_line *tell, void *arg, die *function, uintptr_t address,
                          const source *at, bool core) {
    bool rust;
    const char *name = name_of(function, address, &rust);
    bool own = core || (at->path && is_own_file(at->path));
    sy_whose whose = own ? SY_WHOSE_OWN : sy_whose_function(name, at->path, rust);
    tell(arg, whose, name, at->path ? shortened(at->path, at->directory) : NULL, at->line);
}

bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg) {
    static scopes found; /* one is enough: the child has one thread */
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
        at.line = number_of(scope, AT_CALL_LINE);
    }
    return found.count > 0;
}

const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind) {
    uint64_t symbol[8]; /* an ELF symbol, with room to spare */
    void *module = dw.dwfl_addrmodule(session, address);
    if (!module) return NULL;
    return dw.dwfl_module_addrinfo(module, address, behind, symbol, NULL, NULL, NULL);
}
