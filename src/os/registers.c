/*
 * registers.c: the names of the registers of 64-bit Arm, which all systems number alike.
 */
#include "os/registers.h"

#include "os/os.h"

#if defined(__aarch64__) && SY_OS_SERVICES & SY_OS_ACCESSES

static const char *const names[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
                                    "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
                                    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23",
                                    "x24", "x25", "x26", "x27", "x28", "x29", "x30"};

_Static_assert(sizeof names / sizeof *names == SY_ARM_REGISTERS, "a name for each");

const char *sy_os_register_name(unsigned number) { return names[number]; }

#endif
