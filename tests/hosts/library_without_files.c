/*
 * Reports in a process that cannot open files, as where there is no /proc: stacks have the file and
 * the address in it, and the report says what is missing.
 */
#define _GNU_SOURCE

#include <slabyard/slabyard.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hosts/hosts.h"

static char report[64 << 10];

static void free_twice(void *unused) {
    (void)unused;
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0);
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    void *object = sy_cache_alloc(cache);
    CHECK(object);
    sy_cache_free(cache, object);
    sy_cache_free(cache, object);
}

static void free_foreign(void *pointer) {
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0);
    sy_cache *cache =
        sy_cache_create(&(sy_cache_config){.name = "order", .size = 64, .flags = SY_CHECKED});
    CHECK(cache);
    sy_cache_free(cache, pointer);
}

static void free_variable(void *unused) {
    (void)unused;
    free_foreign(report);
}

static void free_mapping(void *unused) {
    (void)unused;
    free_foreign(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

int main(int count, char **arguments) {
    (void)count;
    with_options("tools=off", arguments);
    (void)host_listen(free_twice, NULL, report, sizeof report);
    host_expect(report, "slabyard: double free: ");
    host_expect(report, "hosts_library_without_files_library\n");
    host_expect(report,
                "  note: files of /proc cannot be read, so lines are missing: see addr2line ");
    (void)host_listen(free_variable, NULL, report, sizeof report);
    host_expect(report, "  points to: data in ");
    (void)host_listen(free_mapping, NULL, report, sizeof report);
    host_expect(report, "  points to: not known: files of /proc cannot be read\n");
    return 0;
}
