/*
 * test_os_limits.c: what control groups and the system's policy of overcommit allow, the memory in
 * use, and how long tasks wait for memory. The functions read a tree of files that each test
 * writes.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "os/linux/limits.h"

static char root[] = "/tmp/slabyard-test-os-XXXXXX";

static void make_directories(char *path) {
    for (char *slash = strchr(path + sizeof root, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0) assert_int_equal(errno, EEXIST);
        *slash = '/';
    }
}

static void put(const char *path, const char *text) {
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    make_directories(whole);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state) {
    (void)state;
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_root(void **state) {
    (void)state;
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void huge_pages_are_allowed_if_the_system_says_so(void **state) {
    (void)state;
    assert_int_equal(sy_linux_huge_setting(root), SY_LINUX_HUGE_NEVER); /* there is no such file */
    static const struct {
        const char *text;
        sy_linux_huge setting;
    } rows[] = {{"always [madvise] never\n", SY_LINUX_HUGE_ASKED},
                {"[always] madvise never\n", SY_LINUX_HUGE_ALWAYS},
                {"always madvise [never]\n", SY_LINUX_HUGE_NEVER},
                {"", SY_LINUX_HUGE_NEVER}};
    for (int i = 0; i < 4; i++) {
        put("/sys/kernel/mm/transparent_hugepage/enabled", rows[i].text);
        assert_int_equal(sy_linux_huge_setting(root), rows[i].setting);
    }
}

static void groups_absent_are_no_limit(void **state) {
    (void)state;
    assert_true(sy_linux_group_memory(root) == SIZE_MAX);
    assert_int_equal(sy_linux_group_cpus(root), UINT_MAX);
}

static void groups_v2_least_on_the_way_up_counts(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "3000000\n");
    put("/sys/fs/cgroup/a/memory.max", "2000000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "800000 100000\n");
    assert_int_equal(sy_linux_group_memory(root), 2000000);
    assert_int_equal(sy_linux_group_cpus(root), 2);
}

static void groups_v2_max_is_no_limit(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_true(sy_linux_group_memory(root) == SIZE_MAX);
    assert_int_equal(sy_linux_group_cpus(root), UINT_MAX);
}

static void groups_v2_beside_v1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/a\n0::/a\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n");
    put("/sys/fs/cgroup/unified/a/memory.max", "4000000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(sy_linux_group_memory(root), 4000000);
    assert_int_equal(sy_linux_group_cpus(root), 1);
}

static void groups_v1_unlimited_values(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:memory:/\n1:cpu:/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_true(sy_linux_group_memory(root) == SIZE_MAX);
    assert_int_equal(sy_linux_group_cpus(root), UINT_MAX);
}

static void groups_of_the_host_under_a_containers_mount(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:memory:/docker/0123456789abcdef\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n");
    assert_int_equal(sy_linux_group_memory(root), 7000000);
}

static void groups_other_controllers_are_not_ours(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:memory_v9,cpuset:/a\nnonsense\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "7000000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    assert_true(sy_linux_group_memory(root) == SIZE_MAX);
    assert_int_equal(sy_linux_group_cpus(root), UINT_MAX);
}

static void groups_nonsense_is_no_limit(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "");
    put("/sys/fs/cgroup/a/cpu.max", "100000 0\n");
    assert_true(sy_linux_group_memory(root) == SIZE_MAX);
    assert_int_equal(sy_linux_group_cpus(root), UINT_MAX);
}

static void groups_v2_high_is_a_limit(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "5000000\n");
    put("/sys/fs/cgroup/a/memory.high", "4000000\n");
    assert_int_equal(sy_linux_group_memory(root), 4000000);
    put("/sys/fs/cgroup/a/memory.high", "max\n");
    assert_int_equal(sy_linux_group_memory(root), 5000000);
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.high", "6000000\n");
    assert_int_equal(sy_linux_group_memory(root), 6000000);
}

/* ---- what is used, and waiting ---- */

#define STALL(some, full)                                     \
    "some avg10=0.00 avg60=0.12 avg300=0.03 total=" some "\n" \
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=" full "\n"

static void the_stall_is_that_of_the_group(void **state) {
    (void)state;
    put("/proc/pressure/memory", STALL("9000", "7000"));
    put("/proc/self/cgroup", "4:memory:/a\n0::/a/b\n");
    put("/sys/fs/cgroup/unified/a/b/memory.pressure", STALL("2000", "1000"));
    put("/sys/fs/cgroup/unified/a/memory.pressure", STALL("3000", "1000"));
    errno = 77;
    assert_int_equal(sy_linux_memory_stall(root), 2000 * 1000);
    assert_int_equal(errno, 77);
    put("/sys/fs/cgroup/unified/a/memory.pressure", STALL("1000", "1000"));
    put("/sys/fs/cgroup/unified/a/b/memory.pressure", STALL("2500", "1000"));
    errno = 77;
    assert_int_equal(sy_linux_memory_stall_again(), 2500 * 1000); /* the same group's */
    assert_int_equal(sy_linux_memory_stall(root), 1000 * 1000);
    assert_int_equal(sy_linux_memory_stall_again(), 1000 * 1000);
    assert_int_equal(errno, 77);
}

static void without_a_group_the_stall_is_that_of_the_system(void **state) {
    (void)state;
    errno = 77;
    assert_true(sy_linux_memory_stall(root) == UINT64_MAX);
    put("/proc/self/cgroup", "0::/a\n");
    put("/proc/pressure/memory", STALL("9000", "7000"));
    errno = 77;
    assert_true(sy_linux_memory_stall_again() == UINT64_MAX); /* there was none */
    assert_int_equal(errno, 77);
    assert_int_equal(sy_linux_memory_stall(root), 9000 * 1000);
    put("/proc/pressure/memory", STALL("9001", "7000"));
    assert_int_equal(sy_linux_memory_stall_again(), 9001 * 1000);
    put("/proc/pressure/memory", "");
    assert_true(sy_linux_memory_stall_again() == UINT64_MAX);
    assert_true(sy_linux_memory_stall(root) == UINT64_MAX);
    put("/proc/pressure/memory", STALL("9001", "7000"));
    assert_true(sy_linux_memory_stall_again() == UINT64_MAX);
}

static void nonsense_is_no_stall(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "full avg10=0 total=5\n",
                                        "some avg10=0\n",
                                        "some total=x\n",
                                        "some total=18446744073709551615\n",
                                        "some total=99999999999999999999999\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/proc/pressure/memory", texts[i]);
        assert_true(sy_linux_memory_stall(root) == UINT64_MAX);
    }
}

static void resident_memory_is_what_is_not_shared(void **state) {
    (void)state;
    errno = 77;
    assert_int_equal(sy_linux_resident(root), 0); /* the file does not exist */
    put("/proc/self/statm", "90000 5000 1200 30 0 4000 0\n");
    assert_int_equal(sy_linux_resident(root), 3800);
    assert_int_equal(errno, 77);
    static const char *const texts[] = {
        "", "90000", "90000 5000", "90000 5000 x", "a b c", "90000 1000 2000 30 0 4000 0\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/proc/self/statm", texts[i]);
        assert_int_equal(sy_linux_resident(root), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(huge_pages_are_allowed_if_the_system_says_so),
        TEST(groups_absent_are_no_limit),
        TEST(groups_v2_least_on_the_way_up_counts),
        TEST(groups_v2_max_is_no_limit),
        TEST(groups_v2_beside_v1),
        TEST(groups_v1_unlimited_values),
        TEST(groups_of_the_host_under_a_containers_mount),
        TEST(groups_other_controllers_are_not_ours),
        TEST(groups_nonsense_is_no_limit),
        TEST(groups_v2_high_is_a_limit),
        TEST(the_stall_is_that_of_the_group),
        TEST(without_a_group_the_stall_is_that_of_the_system),
        TEST(nonsense_is_no_stall),
        TEST(resident_memory_is_what_is_not_shared),
    };
    return cmocka_run_group_tests_name("os_limits", tests, NULL, NULL);
}
