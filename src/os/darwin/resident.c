/*
 * resident.c: the part of os.h for the memory in use, by a call of the kernel of macOS.
 */
#include "os/os.h"

#if SY_PLATFORM_DARWIN

#    include <errno.h>
#    include <mach/mach.h>

/* The footprint is what the system judges a process by: memory that is dirty or compressed. */
size_t sy_os_resident(void) {
    int saved = errno;
    task_vm_info_data_t info;
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
    bool told =
        task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) == KERN_SUCCESS;
    errno = saved;
    return told ? (size_t)info.phys_footprint : 0;
}

#endif
