/*
 * stay.c: the part of os.h that keeps the shared object loaded that contains the library.
 *
 * The linker can mark a shared object as one that dlclose does not unload (-z nodelete), and marks
 * the project's own shared libraries so. But the library may be linked statically into a plug-in,
 * by a build that does not know this flag: cargo passes no flag from a crate to the plug-ins that
 * use it. So an object without the mark opens itself once more, and never closes this handle.
 */
#define _GNU_SOURCE

#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <dlfcn.h>
#    include <errno.h>
#    include <link.h>

/* The dynamic section of the object that contains this file; none in a static executable. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));

/* An executable has an entry for debuggers; no shared object has one. */
static bool stays_anyway(void) {
    const ElfW(Dyn) *entry = _DYNAMIC;
    if (!entry) return true;
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_DEBUG) return true;
        if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE)) return true;
    }
    return false;
}

typedef int describe_address(const void *address, Dl_info *about); /* dladdr */
typedef void *open_again(const char *path, int mode);              /* dlopen */

/* The loader finds an object that is loaded by its path, without a look at the file. */
void sy_os_stay_loaded(void) {
    if (stays_anyway()) return;
    int error = errno;
    describe_address *describe = (describe_address *)sy_os_symbol(NULL, "dladdr");
    open_again *again = (open_again *)sy_os_symbol(NULL, "dlopen");
    Dl_info about;
    if (describe && again && describe(_DYNAMIC, &about) && about.dli_fname)
        (void)again(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    errno = error;
}

#endif
