/*
 * system.h: the system's headers, for the files of this folder, without the macros of theirs that
 * are names of this library; and functions that are found by name.
 */
#ifndef SY_OS_WINDOWS_SYSTEM_H
#define SY_OS_WINDOWS_SYSTEM_H

#include "os/platform.h"

#if SY_PLATFORM_WINDOWS

#    ifndef WIN32_LEAN_AND_MEAN
#        define WIN32_LEAN_AND_MEAN
#    endif
#    ifndef NOMINMAX
#        define NOMINMAX
#    endif
#    if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0602 /* Windows 8 */
#        undef _WIN32_WINNT
#        define _WIN32_WINNT 0x0602
#    endif
#    include <windows.h>

#    include <dbghelp.h>
#    include <psapi.h>

/* A function that older systems, or the import libraries of a compiler, lack; NULL: the system has
 * none. Takes the loader's lock, so it is called at the start. */
FARPROC sy_windows_function(const char *name);

/* Words of compilers for 16 bits, which mean nothing today. No header of the system is included
 * after this. */
#    undef FAR
#    undef NEAR
#    undef far
#    undef near

#endif
#endif
