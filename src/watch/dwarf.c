/*
 * dwarf.c: see dwarf.h. The part of libdw's interface that is used is declared here, so that its
 * headers are not needed; it has been the same since elfutils 0.158, and its soname says so.
 *
 * Addresses are the process's (Dwarf_Addr with the bias of its module) unless they say otherwise.
 */
#include "watch/dwarf.h"

#include <stddef.h>
#include <string.h>

#include "os/os.h"

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
    TAG_INLINED = 0x1d,
    TAG_SUBPROGRAM = 0x2e,
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
    int (*dwarf_getscopes)(die *unit, uint64_t address, die **scopes);
    int (*dwarf_getscopes_die)(die *inner, die **scopes);
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
    "dwarf_getscopes",
    "dwarf_getscopes_die",
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

typedef char *demangler(const char *name, char *into, size_t *length, int *status);

static void *session;
static demangler *demangle; /* of the program's C++ library, if it has one */

static bool load(void) {
    void *library = sy_os_load("libdw.so.1");
    if (!library) return false;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *function = sy_os_symbol(library, names[i]);
        if (!function) return false;
        memcpy((char *)&dw + i * sizeof function, &function, sizeof function);
    }
    return true;
}

bool sy_dwarf_open(void) {
    if (!load()) return false;
    static callbacks ways;
    ways.find_elf = dw.dwfl_linux_proc_find_elf;
    ways.find_debuginfo = dw.dwfl_standard_find_debuginfo;
    session = dw.dwfl_begin(&ways);
    if (!session || dw.dwfl_linux_proc_report(session, sy_os_process()) != 0) return false;
    if (dw.dwfl_report_end(session, NULL, NULL) != 0) return false;
    demangle = (demangler *)sy_os_symbol(NULL, "__cxa_demangle");
    return true;
}

/* ---- words ---- */

static const char *plain(const char *name) {
    if (!name || strncmp(name, "_Z", 2) != 0 || !demangle) return name;
    int status = -1;
    const char *words = demangle(name, NULL, NULL, &status);
    return words && status == 0 ? words : name;
}

/* With its class and what it takes, where that is known. */
static const char *name_of(die *function) {
    attribute linkage;
    if (demangle && dw.dwarf_attr_integrate(function, AT_LINKAGE_NAME, &linkage))
        return plain(dw.dwarf_formstring(&linkage));
    return dw.dwarf_diename(function);
}

#ifdef SY_AMALGAMATION
static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* All sources are one file, under any name. */
static const char *own_file(const char *path) {
    bool own = strcmp(last_name(path), last_name(__FILE__)) == 0;
    return own ? SY_DWARF_OWN_FILES "slabyard.c" : NULL;
}
#else
/* Of a source of this library, where that is known; else NULL. In the child nobody else uses it. */
static const char *own_file(const char *path) {
    static char own[256] = SY_DWARF_OWN_FILES;
    static const char here[] = __FILE__, below[] = "watch/dwarf.c";
    size_t root = sizeof here - sizeof below, start = sizeof SY_DWARF_OWN_FILES - 1;
    if (*here != '/' || strncmp(path, here, root) != 0) return NULL;
    if (strlen(path + root) >= sizeof own - start) return NULL;
    strcpy(own + start, path + root);
    return own;
}
#endif

/* As the compiler was given it, if that was relative to where it ran; else its last two names. */
static const char *shortened(const char *path, const char *directory) {
    const char *own = own_file(path);
    if (own) return own;
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

/* The scopes that are around one another in the code: what was inlined is in what it is called by,
 * not in what it was written in. */
static int scopes_at(die *unit, uint64_t address, die **scopes) {
    die *written;
    int count = dw.dwarf_getscopes(unit, address, &written);
    return count > 0 ? dw.dwarf_getscopes_die(&written[0], scopes) : count;
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

bool sy_dwarf_look(uintptr_t address, sy_dwarf_line *tell, void *arg) {
    uint64_t bias = 0;
    die *unit = unit_at(address, &bias), *scopes = NULL;
    if (!unit) return false;
    int count = scopes_at(unit, address - bias, &scopes);
    source at = source_at(unit, address - bias);
    bool told = false;
    for (int i = 0; i < count; i++) {
        int tag = dw.dwarf_tag(&scopes[i]);
        if (tag != TAG_INLINED && tag != TAG_SUBPROGRAM) continue;
        const char *name = name_of(&scopes[i]);
        tell(arg, name ? name : "?", at.path ? shortened(at.path, at.directory) : NULL, at.line);
        told = true;
        if (tag == TAG_SUBPROGRAM) break;
        at.path = file_of_call(&scopes[i], unit);
        at.line = number_of(&scopes[i], AT_CALL_LINE);
    }
    return told;
}

const char *sy_dwarf_symbol(uintptr_t address, uint64_t *behind) {
    uint64_t symbol[8]; /* of ELF, with room to spare */
    void *module = dw.dwfl_addrmodule(session, address);
    if (!module) return NULL;
    return plain(dw.dwfl_module_addrinfo(module, address, behind, symbol, NULL, NULL, NULL));
}
