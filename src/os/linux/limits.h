/*
 * limits.h: the limits of memory and processors that control groups set for this process
 * (version 1, version 2, and both at once), the memory that it uses, how long tasks wait for
 * memory, and the system's overcommit policy.
 *
 * Above: the files of this folder, and test_os_limits.c, which makes its own directories with such
 * files. Below: files under /proc and /sys. `root` is put in front of every path: "" for the
 * machine's own files.
 *
 * Never allocates. A file that cannot be read or understood counts as no limit. One thread at a
 * time may call these functions (os/facts.c sees to this).
 */
#ifndef SLABYARD_LINUX_LIMITS_H
#define SLABYARD_LINUX_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least memory limit of this process's group and the groups above it, in bytes; SIZE_MAX:
 * none. */
size_t sy_linux_group_memory(const char *root);

/* Pages of anonymous memory that this process has in RAM; 0: unknown. */
size_t sy_linux_resident(const char *root);

/* Nanoseconds during which tasks have waited for memory: tasks of this process's group (version 2),
 * or else all tasks of the system. UINT64_MAX: unknown. */
uint64_t sy_linux_memory_stall(const char *root);
/* The time of these waits, by the file in which the last call of sy_linux_memory_stall found it. */
uint64_t sy_linux_memory_stall_again(void);

/* The least processor quota, rounded up to whole processors, at least 1; UINT_MAX: none. */
unsigned sy_linux_group_cpus(const char *root);

/* To which programs the system gives transparent huge pages: to none, to those that ask for them,
 * or to all. */
typedef enum sy_linux_huge {
    SY_LINUX_HUGE_NEVER,
    SY_LINUX_HUGE_ASKED,
    SY_LINUX_HUGE_ALWAYS,
} sy_linux_huge;

sy_linux_huge sy_linux_huge_setting(const char *root);

#endif
