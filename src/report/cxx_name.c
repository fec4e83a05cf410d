/*
 * cxx_name.c: see cxx_name.h. It looks for __cxa_demangle in three places. The first is a C++
 * library that it loads: this library has a malloc of its own, which is intact. The second is the
 * program, by name. The third is a weak reference, for a program that is linked statically: it can
 * load nothing, and has the function if it is written in C++.
 */
#include "report/cxx_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "os/os.h"

typedef char *demangler(const char *name, char *into, size_t *length, int *status);

#if SY_PLATFORM_WEAK_REFERENCES
#    pragma weak __cxa_demangle
extern demangler __cxa_demangle;
#else
static demangler *const __cxa_demangle = NULL;
#endif

static demangler *find_demangler(void) {
    static const char libraries[][16] = {"libstdc++.so.6", "libc++abi.so.1", "libstdc++-6.dll"};
    static const char function[] = "__cxa_demangle";
    void *found = NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !found; i++) {
        void *library = sy_os_load(libraries[i]);
        if (library) found = sy_os_symbol(library, function);
    }
    if (!found) found = sy_os_symbol(NULL, function);
    return found ? (demangler *)found : __cxa_demangle;
}

const char *sy_cxx_name(const char *mangled) {
    static bool sought;
    static demangler *demangle;
    if (strncmp(mangled, "_Z", 2) != 0) return NULL;
    if (!sought) demangle = find_demangler();
    sought = true;
    int status = -1;
    char *name = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    if (!name || status != 0) return NULL;
    char *part = strstr(name, " [clone "); /* gcc's name for a part of the function that was
                                            * compiled separately */
    if (part) *part = 0;
    return name;
}
