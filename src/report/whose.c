/*
 * whose.c: tells from a function's name and source file whether the function belongs to the
 * program, to Slabyard, or to the C++ or Rust library.
 */
#include "report/whose.h"

#include <stddef.h>
#include <string.h>

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_among(const char *text, const char *const *beginnings) {
    while (*beginnings && !begins(text, *beginnings)) beginnings++;
    return *beginnings != NULL;
}

static bool contains(const char *text, const char *piece) { return strstr(text, piece) != NULL; }

static bool is_name_character(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '_';
}

/* ---- Rust ---- */

/* Skips what precedes the path of a type: < & * mut ... */
static const char *path_within(const char *type) {
    static const char *const before[] = {"<", "&", "*", "(", "[", "mut ", "const ", "dyn ", NULL};
    while (is_among(type, before)) type += is_name_character(*type) ? strcspn(type, " ") + 1 : 1;
    return type;
}

static bool is_path(const char *text) {
    while (is_name_character(*text)) text++;
    return begins(text, "::");
}

/* Returns the path that begins with the function's crate. For <Type as Trait>::function it is the
 * type's path, or the trait's if the type is of no crate. */
static const char *crate_of(const char *name) {
    if (*name != '<') return name;
    const char *type = path_within(name), *trait = strstr(name, " as ");
    return is_path(type) || !trait ? type : path_within(trait + strlen(" as "));
}

/* Whether the function allocates what the runtime keeps until the process ends: the tables that it
 * reads for backtraces, and buffers of the standard streams. */
static bool is_kept_by_runtime(const char *name) {
    return contains(name, "std::backtrace_rs::") || contains(name, "std::io::stdio::");
}

/* A function of the crate. One of them allocates the callback of a limit, which the crate keeps as
 * the runtime keeps its memory. */
static sy_whose whose_in_crate(const char *name) {
    return contains(name, "keep_for_limit") ? SY_WHOSE_RUNTIME : SY_WHOSE_OWN;
}

static bool is_of_runtime(const char *crate) {
    if (begins(crate, "std::sys::")) return contains(crate, "::thread_start");
    return begins(crate, "std::rt::lang_start") || begins(crate, "lang_start");
}

static bool is_of_rust_library(const char *path) {
    return begins(path, "/rustc/") || begins(path, "/rust/deps/") ||
           contains(path, "/rustlib/src/rust/library/");
}

/* Whether the folder that ends at `end` is the crate's: its name, or its name and a version. */
static bool is_folder_of(const char *folder, const char *end, const char *crate) {
    if (!begins(folder, crate)) return false;
    folder += strlen(crate);
    bool version = *folder == '-' && folder[1] >= '0' && folder[1] <= '9';
    return folder == end || (version && folder + strcspn(folder, "/") == end);
}

/* Whether it is a source of the crates slabyard or slabyard-sys, published or not. */
static bool is_of_crate(const char *path) {
    const char *source = strstr(path, "/src/"), *folder = source;
    if (!source || begins(source, "/src/bin/") || begins(source, "/src/main.rs")) return false;
    while (folder > path && folder[-1] != '/') folder--;
    return is_folder_of(folder, source, "slabyard") || is_folder_of(folder, source, "slabyard-sys");
}

static sy_whose whose_in_rust(const char *name, const char *path) {
    static const char *const own[] = {"slabyard::", "slabyard_sys::", NULL};
    static const char *const language[] = {
        "core::", "alloc::",     "std::",   "__rustc::",   "__rust_",       "__rdl_",
        "__rg_",  "hashbrown::", "gimli::", "addr2line::", "miniz_oxide::", NULL};
    const char *crate = crate_of(name);
    /* This function calls the program's main. Without lines, main may have been inlined into it. */
    if (contains(name, "__rust_begin_short_backtrace"))
        return path ? SY_WHOSE_START : SY_WHOSE_PROGRAM;
    if (is_of_runtime(crate)) return SY_WHOSE_START;
    if (is_kept_by_runtime(name)) return SY_WHOSE_RUNTIME;
    if (is_among(crate, own)) return whose_in_crate(name);
    if (is_among(crate, language)) return SY_WHOSE_LANGUAGE;
    if (!path || is_path(crate)) return SY_WHOSE_PROGRAM;
    if (is_of_rust_library(path)) return SY_WHOSE_LANGUAGE;
    return is_of_crate(path) ? whose_in_crate(name) : SY_WHOSE_PROGRAM;
}

/* ---- C and C++ ---- */

/* Skips the return type, with which the name of a template's function begins. */
static const char *past_type(const char *name) {
    const char *word = name;
    int depth = 0;
    for (const char *at = name; *at; at++) {
        if (begins(at, "(anonymous namespace)")) at += strlen("(anonymous namespace)");
        if (begins(at, "operator")) break;
        if (*at == '(' && depth == 0) break;
        if (strchr("<([{", *at)) depth++;
        if (strchr(">)]}", *at)) depth--;
        if (*at == ' ' && depth == 0) word = at + 1;
        if (!*at) break;
    }
    return word;
}

/* Whether it is a public header, installed anywhere. */
static bool is_of_header(const char *path) {
    const char *last = strrchr(path, '/');
    static const char folder[] = "slabyard";
    size_t length = sizeof folder - 1;
    return last && (size_t)(last - path) > length && begins(last - length, folder) &&
           last[-(ptrdiff_t)length - 1] == '/' && contains(last, ".h");
}

static sy_whose whose_in_c(const char *name, const char *path) {
    static const char *const own[] = {"sy_", "slabyard::", NULL};
    static const char *const language[] = {"std::", "__gnu_cxx::", "operator new",
                                           "operator delete", NULL};
    const char *function = past_type(name);
    if (is_among(function, own)) return SY_WHOSE_OWN;
    if (is_among(function, language)) return SY_WHOSE_LANGUAGE;
    if (!path) return SY_WHOSE_PROGRAM;
    if (is_of_header(path)) return SY_WHOSE_OWN;
    return contains(path, "/include/c++/") ? SY_WHOSE_LANGUAGE : SY_WHOSE_PROGRAM;
}

/* ---- both ---- */

sy_whose sy_whose_function(const char *name, const char *path, bool rust) {
    const char *ending = path ? strrchr(path, '.') : NULL;
    if (ending && strcmp(ending, ".rs") == 0) rust = true;
    return rust ? whose_in_rust(name, path) : whose_in_c(name, path);
}

bool sy_whose_library(const char *file) {
    const char *last = strrchr(file, '/');
    return begins(last ? last + 1 : file, "libslabyard");
}
