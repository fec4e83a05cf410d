/*
 * limits.c: reads the limits of control groups for limits.h.
 *
 * /proc/self/cgroup has one line per hierarchy, `number:controllers:path`; version 2 has number 0
 * and no controllers. The path is relative to the mount point of that hierarchy. In a container it
 * can be the host's path, which does not exist there. So for each hierarchy the path is walked up,
 * from the group to the mount point, and the least limit found on the way counts. The kernel
 * enforces this limit too.
 *
 * It also reads the process's resident memory, and how long tasks have waited for memory.
 *
 * The observer calls these functions, perhaps as a hidden thread (hidden.c): so there are no
 * streams and no snprintf here, and system calls are made by `syscall`.
 *
 * Paths and the content of /proc/self/cgroup are in static memory, because the caller's stack may
 * be small. So one thread at a time may call these functions.
 */
#define _GNU_SOURCE

#include "os/linux/limits.h"
#include "os/platform.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <fcntl.h>
#    include <limits.h>
#    include <stdbool.h>
#    include <stdint.h>
#    include <string.h>
#    include <sys/syscall.h>
#    include <unistd.h>

enum { PATH_BYTES = 4096, VALUE_BYTES = 64, STALL_BYTES = 256 };

static char groups[PATH_BYTES];                  /* the content of /proc/self/cgroup */
static char group_directory[PATH_BYTES];         /* of the group that is looked at */
static char file_path[PATH_BYTES + VALUE_BYTES]; /* of the file that is read */

/* Reads a limit from the files of the group in `directory`; UINT64_MAX: no limit. */
typedef uint64_t read_limit(const char *directory);

/* Where a controller can be mounted, and how its limit is read. */
typedef struct controller {
    const char *name; /* in the second field of /proc/self/cgroup; "" is version 2 */
    const char *mounts[2];
    read_limit *read;
} controller;

static bool read_text(const char *path, char *text, size_t capacity) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t length = 0;
    long got = 0;
    while (length < capacity - 1) {
        got = syscall(SYS_read, fd, text + length, capacity - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    syscall(SYS_close, fd);
    text[length] = '\0';
    return got >= 0;
}

/* Joins the parts of a path. False: there is no room for it. */
static bool join_path(char *path, size_t room, const char *const parts[]) {
    size_t length = 0;
    for (; *parts; parts++) {
        size_t more = strlen(*parts);
        if (more >= room - length) return false;
        memcpy(path + length, *parts, more);
        length += more;
    }
    path[length] = '\0';
    return true;
}

/* Reads root``directory/file. */
static bool read_file(const char *root, const char *directory, const char *file, char *text,
                      size_t capacity) {
    const char *const parts[] = {root, directory, "/", file, NULL};
    return join_path(file_path, sizeof file_path, parts) && read_text(file_path, text, capacity);
}

static bool read_value(const char *directory, const char *file, char value[VALUE_BYTES]) {
    return read_file("", directory, file, value, VALUE_BYTES);
}

/* The decimal number at `text`, and in `*rest` the text behind it. UINT64_MAX for "max", "-1" and
 * anything else. */
static uint64_t parse_limit(const char *text, char **rest) {
    uint64_t number = *text >= '0' && *text <= '9' ? 0 : UINT64_MAX;
    for (; *text >= '0' && *text <= '9'; text++) {
        unsigned digit = (unsigned)(*text - '0');
        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *rest = (char *)text;
    return number;
}

/* In version 1 "no limit" is the largest multiple of a page below 2^63. */
static uint64_t bytes_or_none(uint64_t bytes) {
    return bytes >= (UINT64_C(1) << 62) ? UINT64_MAX : bytes;
}

static uint64_t whole_cpus(uint64_t quota, uint64_t period) {
    if (quota == UINT64_MAX || period == 0 || period == UINT64_MAX) return UINT64_MAX;
    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus == 0 ? 1 : cpus;
}

static uint64_t bytes_of_file(const char *directory, const char *file) {
    char value[VALUE_BYTES], *rest;
    if (!read_value(directory, file, value)) return UINT64_MAX;
    return bytes_or_none(parse_limit(value, &rest));
}

static uint64_t memory_v1(const char *directory) {
    return bytes_of_file(directory, "memory.limit_in_bytes");
}

/* Above memory.high the kernel slows the group's tasks down, so that is a limit too. */
static uint64_t memory_v2(const char *directory) {
    uint64_t max = bytes_of_file(directory, "memory.max");
    uint64_t high = bytes_of_file(directory, "memory.high");
    return high < max ? high : max;
}

static uint64_t cpus_v1(const char *directory) {
    char quota[VALUE_BYTES], period[VALUE_BYTES], *rest;
    if (!read_value(directory, "cpu.cfs_quota_us", quota) ||
        !read_value(directory, "cpu.cfs_period_us", period))
        return UINT64_MAX;
    return whole_cpus(parse_limit(quota, &rest), parse_limit(period, &rest));
}

static uint64_t cpus_v2(const char *directory) {
    char value[VALUE_BYTES], *rest;
    if (!read_value(directory, "cpu.max", value)) return UINT64_MAX;
    uint64_t quota = parse_limit(value, &rest);
    if (*rest != ' ') return UINT64_MAX;
    return whole_cpus(quota, parse_limit(rest + 1, &rest));
}

/* The least limit from the group at `mount``path` up to the mount itself. */
static uint64_t least_upwards(const char *root, const char *mount, const char *path,
                              read_limit *read) {
    char *directory = group_directory;
    const size_t top = strlen(root) + strlen(mount);
    const char *const parts[] = {root, mount, path, NULL};
    if (!join_path(directory, PATH_BYTES, parts)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t limit = read(directory);
        if (limit < least) least = limit;
        char *slash = strrchr(directory + top, '/');
        if (slash == NULL) return least;
        *slash = '\0';
    }
}

/* Whether `name` is one of the comma-separated controllers; for "", whether there are none. */
static bool has_controller(const char *controllers, const char *name) {
    size_t length = strlen(name);
    if (length == 0) return controllers[0] == '\0';
    for (const char *at = controllers; (at = strstr(at, name)) != NULL; at += length) {
        bool opens = at == controllers || at[-1] == ',';
        bool closes = at[length] == '\0' || at[length] == ',';
        if (opens && closes) return true;
    }
    return false;
}

/* The least limit of the group in one line of /proc/self/cgroup. Changes the line. */
static uint64_t least_of_line(const char *root, char *line, const controller *wanted) {
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) return UINT64_MAX;
    controllers++;
    *path++ = '\0';
    if (!has_controller(controllers, wanted->name)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        uint64_t limit = least_upwards(root, wanted->mounts[i], path, wanted->read);
        if (limit < least) least = limit;
    }
    return least;
}

static uint64_t least_limit(const char *root, const controller *wanted) {
    if (!read_file(root, "/proc/self", "cgroup", groups, sizeof groups)) return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char *line = groups;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        uint64_t limit = least_of_line(root, line, wanted);
        if (limit < least) least = limit;
    }
    return least;
}

static uint64_t least_of_versions(const char *root, const controller versions[2]) {
    int saved = errno;
    uint64_t first = least_limit(root, &versions[0]);
    uint64_t second = least_limit(root, &versions[1]);
    errno = saved;
    return first < second ? first : second;
}

size_t sy_linux_group_memory(const char *root) {
    static const controller versions[2] = {
        {"memory", {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}, memory_v1},
        {"", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, memory_v2},
    };
    uint64_t limit = least_of_versions(root, versions);
    return limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
}

unsigned sy_linux_group_cpus(const char *root) {
    static const controller versions[2] = {
        {"cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}, cpus_v1},
        {"", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, cpus_v2},
    };
    uint64_t limit = least_of_versions(root, versions);
    return limit > UINT_MAX ? UINT_MAX : (unsigned)limit;
}

/* ---- what is used, and waiting ---- */

static char stall_path[sizeof file_path]; /* of the file with the least stall, */
static uint64_t least_stall;              /* which is this; UINT64_MAX: there is none */

/* The first line of such a file: some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS */
static uint64_t parse_stall(const char *text) {
    char *rest;
    const char *total = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    uint64_t microseconds = total ? parse_limit(total + 6, &rest) : UINT64_MAX;
    return microseconds > UINT64_MAX / 1000 ? UINT64_MAX : microseconds * 1000;
}

static uint64_t stall_of_file(const char *root, const char *directory, const char *file) {
    char text[STALL_BYTES];
    if (!read_file(root, directory, file, text, sizeof text)) return UINT64_MAX;
    uint64_t stall = parse_stall(text);
    if (stall < least_stall) {
        least_stall = stall;
        strcpy(stall_path, file_path);
    }
    return stall;
}

static uint64_t stall_of_group(const char *directory) {
    return stall_of_file("", directory, "memory.pressure");
}

/* The groups above it count the tasks of this group too, so the least number is that of its own. */
uint64_t sy_linux_memory_stall(const char *root) {
    static const controller own = {
        "", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, stall_of_group};
    int saved = errno;
    least_stall = UINT64_MAX;
    (void)least_limit(root, &own);
    if (least_stall == UINT64_MAX) (void)stall_of_file(root, "/proc/pressure", "memory");
    errno = saved;
    return least_stall;
}

uint64_t sy_linux_memory_stall_again(void) {
    char text[STALL_BYTES];
    int saved = errno;
    bool known = least_stall != UINT64_MAX && read_text(stall_path, text, sizeof text);
    errno = saved;
    return known ? parse_stall(text) : UINT64_MAX;
}

/* The file has numbers of pages: in address space, in RAM, in RAM and of files or shared, ... */
size_t sy_linux_resident(const char *root) {
    char value[VALUE_BYTES], *rest;
    int saved = errno;
    uint64_t all = UINT64_MAX, shared = UINT64_MAX;
    if (read_file(root, "/proc/self", "statm", value, sizeof value)) {
        (void)parse_limit(value, &rest);
        if (*rest == ' ') all = parse_limit(rest + 1, &rest);
        if (*rest == ' ') shared = parse_limit(rest + 1, &rest);
    }
    errno = saved;
    return all == UINT64_MAX || shared > all ? 0 : (size_t)(all - shared);
}

/* Reads a file of the directory /proc or /sys in `root`. errno is kept. */
static bool read_setting(const char *root, const char *directory, const char *file,
                         char value[VALUE_BYTES]) {
    int saved = errno;
    bool known = read_file(root, directory, file, value, VALUE_BYTES);
    errno = saved;
    return known;
}

sy_linux_huge sy_linux_huge_setting(const char *root) {
    char value[VALUE_BYTES];
    if (!read_setting(root, "/sys/kernel/mm/transparent_hugepage", "enabled", value))
        return SY_LINUX_HUGE_NEVER;
    if (strstr(value, "[always]")) return SY_LINUX_HUGE_ALWAYS;
    return strstr(value, "[madvise]") ? SY_LINUX_HUGE_ASKED : SY_LINUX_HUGE_NEVER;
}

#endif
