/*
 * test_start_hooks.c: the library registers its hooks of fork once, in a constructor or at the
 * start. This also works if the system's function for it allocates from the library, as musl's
 * pthread_atfork does under the drop-in malloc.
 *
 * Each case runs in a new process of this program, with the name of the case as argument, because
 * the constructor runs before main.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabyard/heap.h>

#include "os/fake.h"
#include "support/child.h"

static uint64_t registered(void) {
    return sy_fake_calls(SY_FAKE_AT_FORK) - sy_fake_failures(SY_FAKE_AT_FORK);
}

/* Allocates before hooks are registered, as musl does. If there is no memory, the registration
 * fails. */
static void allocate(void) {
    void *object = sy_malloc(40);
    if (!object) sy_fake_fail_nth(SY_FAKE_AT_FORK, 1);
    sy_free(object);
}

static void must_be_registered(void) { must(registered() == 1); }

/* Runs before the library's constructor, which has priority 102. */
__attribute__((constructor(101))) static void begin_case(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "allocating constructor") == 0)
        sy_fake_run_before(SY_FAKE_AT_FORK, allocate);
    else if (strcmp(name, "start first") == 0) {
        sy_fake_run_before(SY_FAKE_RESERVE, must_be_registered);
        must(sy_malloc(10) != NULL);
    } else if (strcmp(name, "allocating start") == 0)
        sy_fake_fail_nth(SY_FAKE_AT_FORK, 1);
}

static int end_case(const char *name) {
    if (strcmp(name, "allocating start") == 0) {
        must(registered() == 0); /* the constructor's attempt failed */
        sy_fake_run_before(SY_FAKE_AT_FORK, allocate);
    }
    must(sy_malloc(10) != NULL && registered() == 1);
    pid_t child = fork();
    int status;
    if (child == 0) _exit(sy_malloc(10) ? 0 : 1);
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

/* Runs the case in a new process. */
static void run_case(const char *name) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        execl("/proc/self/exe", "test_start_hooks", name, (char *)NULL);
        _exit(99);
    }
    must(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static void a_constructor_registers_though_this_allocates(void **state) {
    (void)state;
    run_case("allocating constructor");
}

static void a_start_before_the_constructor_registers_first_of_all(void **state) {
    (void)state;
    run_case("start first");
}

static void a_start_registers_when_it_can_allocate(void **state) {
    (void)state;
    run_case("allocating start");
}

int main(int argc, char **argv) {
    if (argc > 1) return end_case(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constructor_registers_though_this_allocates),
        cmocka_unit_test(a_start_before_the_constructor_registers_first_of_all),
        cmocka_unit_test(a_start_registers_when_it_can_allocate),
    };
    return cmocka_run_group_tests_name("start hooks", tests, NULL, NULL);
}
