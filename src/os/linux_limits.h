/*
 * linux_limits.h: what control groups allow this process (versions 1 and 2, and both at once), and
 * the system's policy of overcommit.
 *
 * Above: linux.c, and test_os.c with directories of its own. Below: files under /proc and /sys.
 * `root` is put in front of every path: "" for the machine itself.
 *
 * Never allocates. What cannot be read or understood is taken as no limit.
 */
#ifndef SLABYARD_LINUX_LIMITS_H
#define SLABYARD_LINUX_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* The least memory limit in bytes of this process's group and those above it; SIZE_MAX: none. */
size_t sy_linux_group_memory(const char *root);

/* The least processor quota, rounded up to whole processors, at least 1; UINT_MAX: none. */
unsigned sy_linux_group_cpus(const char *root);

/* Whether the system promises no more memory than it has (vm.overcommit_memory is 2). */
bool sy_linux_commit_is_strict(const char *root);

#endif
