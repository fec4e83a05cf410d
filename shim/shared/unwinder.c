/*
 * unwinder.c: lets the program's exceptions pass through the drop-in malloc, if this contains an
 * unwinder of its own.
 *
 * The drop-in malloc needs an unwinder for two purposes:
 *
 * It takes stacks. For this it contains a copy of GCC's unwinder (-static-libgcc). With
 * libgcc_s.so.1 each small C program would have 120 KiB more in memory. The copy does not know the
 * functions that a just-in-time compiler registers with libgcc_s.so.1: a stack may end there.
 *
 * A callback may be left by an exception or by the end of its thread. Then the library's cleanups
 * run. They are called by the unwinder that the program uses, perhaps of another version, and work
 * on its data. So the two functions that compilers call for cleanups are defined here, and call the
 * program's unwinder.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <unwind.h>

#include "os/os.h"

/* Returns a function of the program's unwinder. If the unwinder is in the scope of a library that
 * was loaded with dlopen, it is found by its name. The C library loads it by this name too. */
static uintptr_t unwinder_function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        void *unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY);
        if (unwinder) found = dlsym(unwinder, name);
    }
    if (!found) sy_os_abort("slabyard: an exception is thrown, and there is no unwinder\n");
    return (uintptr_t)found;
}

typedef _Unwind_Reason_Code personality(int version, _Unwind_Action actions,
                                        _Unwind_Exception_Class kind,
                                        struct _Unwind_Exception *exception,
                                        struct _Unwind_Context *context);

/* The unwinder calls this for each function of the library that has cleanups. */
personality __gcc_personality_v0;

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
                                         _Unwind_Exception_Class kind,
                                         struct _Unwind_Exception *exception,
                                         struct _Unwind_Context *context) {
    personality *real = (personality *)unwinder_function("__gcc_personality_v0");
    return real(version, actions, kind, exception, context);
}

/* The library's cleanups end with a call of _Unwind_Resume, which the linker directs to this
 * function (--wrap). */
typedef void resume_function(struct _Unwind_Exception *exception);
_Noreturn void __wrap__Unwind_Resume(struct _Unwind_Exception *exception);

_Noreturn void __wrap__Unwind_Resume(struct _Unwind_Exception *exception) {
    ((resume_function *)unwinder_function("_Unwind_Resume"))(exception);
    sy_os_abort("slabyard: the unwinder has returned to a cleanup\n");
}
