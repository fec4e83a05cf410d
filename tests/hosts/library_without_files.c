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

static void free_twice(void) {
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

static void free_variable(void) { free_foreign(report); }

static void free_mapping(void) {
    free_foreign(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void run(void (*program)(void)) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        program();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0; length += got > 0 ? (size_t)got : 0)
        got = read(ends[0], report + length, sizeof report - 1 - length);
    report[length] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

#define EXPECT(words) (strstr(report, words) ? (void)0 : failed_report(words))

static void failed_report(const char *words) {
    host_say("no \"");
    host_say(words);
    host_say("\" in the report:\n");
    host_say(report);
    CHECK(!"a report");
}

int main(int count, char **arguments) {
    (void)count;
    with_options("tools=off", arguments);
    run(free_twice);
    EXPECT("slabyard: double free: ");
    EXPECT("hosts_library_without_files_library\n");
    EXPECT("  note: files of /proc cannot be read, so lines are missing: see addr2line ");
    run(free_variable);
    EXPECT("  points to: data in ");
    run(free_mapping);
    EXPECT("  points to: not known: files of /proc cannot be read\n");
    return 0;
}
