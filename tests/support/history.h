/*
 * history.h: the phases of a program, run many times in children. In each run another call to the
 * system fails.
 */
#ifndef SLABYARD_TESTS_HISTORY_H
#define SLABYARD_TESTS_HISTORY_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/fake.h"
#include "support/child.h"

typedef void phase(void);

typedef struct history {
    phase *const *phases;
    size_t count;
    phase *begin; /* before calls fail; or NULL */
    phase *look;  /* after each phase: checks the state */
    phase *end;   /* once no call fails any more */
} history;

typedef struct history_run {
    const history *history;
    uint64_t n;
    bool for_good; /* all calls from the n-th on fail, until the phase is over */
} history_run;

/* Exits with 1 if there were fewer calls. */
static inline void history_live_through(void *arg) {
    const history_run *run = arg;
    if (run->history->begin) run->history->begin();
    if (run->for_good)
        sy_fake_fail_from(SY_FAKE_ANY, run->n);
    else
        sy_fake_fail_nth(SY_FAKE_ANY, run->n);
    for (size_t i = 0; i < run->history->count; i++) {
        errno = 0;
        run->history->phases[i]();
        if (sy_fake_failures(SY_FAKE_ANY) > 0) sy_fake_succeed(SY_FAKE_ANY);
        run->history->look();
    }
    bool failed = sy_fake_failures(SY_FAKE_ANY) > 0;
    run->history->end();
    if (!failed) _exit(1);
}

/* Runs the history with the first call failing, then the second, and so on to the last. There must
 * be at least `least` calls. */
static inline void history_fail_each(const history *of, bool for_good, uint64_t least) {
    history_run run = {.history = of, .n = 1, .for_good = for_good};
    int status;
    while ((status = in_child(history_live_through, &run)) == 0) run.n++;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        print_error("with call %llu failing\n", (unsigned long long)run.n);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(run.n - 1 > least);
}

#endif
