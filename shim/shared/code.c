/*
 * code.c: which code is the library's own. Only in the shared library: elsewhere the program's code
 * lies in the same file.
 */
#include "os/os.h"

#if SY_OS_UNWINDS_REBUILT /* elsewhere os/absent.c has the function */

/* Of the linker: the first byte of the file in memory, and the end of its code. */
extern SY_HIDDEN const char __ehdr_start[], etext[];

bool sy_os_is_own_code(uintptr_t code) {
    const uintptr_t start = (uintptr_t)__ehdr_start;
    return code - start < (uintptr_t)etext - start;
}

#endif
