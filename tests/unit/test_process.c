/*
 * test_process.c: os.h on the process as a whole: copies of the process that work for it, the pages
 * that it has written, and its end.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/child.h"
#include "support/emulated.h"
#include "support/page_size.h"
#include "support/services.h"

/* ---- copies ---- */

static int made_count, shared_word;

static void count_made(void) { made_count++; }

static void nothing(void) {}

typedef struct reply {
    int question, made, word, process;
} reply;

static void work(const void *question, void *answer) {
    reply *said = answer;
    said->question = *(const int *)question;
    said->made = made_count;
    said->word = shared_word;
    said->process = (int)getpid();
    shared_word = 99;
}

static void a_copy_answers_and_changes_nothing(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    if (is_emulated()) skip(); /* it makes no child that ends without SIGCHLD */
    int question = 17;
    reply said = {0};
    made_count = 0;
    shared_word = 5;
    errno = 12345;
    assert_int_equal(sy_os_ask_copy(work, &question, &said, sizeof said, count_made), 0);
    assert_int_equal(errno, 12345);
    assert_int_equal(said.question, 17);
    assert_int_equal(said.word, 5);
    assert_int_equal(said.made, 1);  /* in the copy, before its work */
    assert_int_equal(made_count, 1); /* in this process */
    assert_int_equal(shared_word, 5);
    assert_int_not_equal(said.process, getpid());
}

/* `question` is memory that may not be written, so the second write ends the copy. */
static void die(const void *question, void *answer) {
    *(volatile int *)answer = 3;
    *(volatile char *)(uintptr_t)question = 1;
    *(volatile int *)answer = 4;
}

static void kill_itself(const void *question, void *answer) {
    (void)question;
    *(volatile int *)answer = 3;
    kill(getpid(), SIGKILL);
}

static void what_a_copy_wrote_before_it_died_is_there(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    if (is_emulated()) skip(); /* it makes no child that ends without SIGCHLD */
    int answer = 0;
    assert_int_equal(sy_os_ask_copy(kill_itself, NULL, &answer, sizeof answer, nothing), 0);
    assert_int_equal(answer, 3);
}

/* No handler of the program runs in the copy. */
static volatile sig_atomic_t handled;

static void handle(int signal) {
    (void)signal;
    handled = 1;
}

static void signal_itself(const void *question, void *answer) {
    (void)question;
    kill(getpid(), SIGUSR1);
    *(int *)answer = 1 + handled;
}

static void die_and_be_handled(void *arg) {
    int answer = 0;
    void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, handle);
    signal(SIGUSR1, handle);
    signal(SIGCHLD, handle);
    must(sy_os_ask_copy(die, closed, &answer, sizeof answer, nothing) == 0 && answer == 3);
    must(sy_os_ask_copy(signal_itself, arg, &answer, sizeof answer, nothing) == 0 && answer == 1);
    must(!handled); /* the copy's end sends no signal either */
    must(wait(NULL) == -1 && errno == ECHILD);
    raise(SIGUSR1); /* later signals are handled */
    must(handled);
}

static void the_program_notices_no_child(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    if (is_emulated()) skip(); /* it makes no child that ends without SIGCHLD */
    assert_int_equal(in_child(die_and_be_handled, NULL), 0);
}

static void without_memory_for_the_answer_there_is_no_copy(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    made_count = 0;
    errno = 0;
    size_t bytes = SIZE_MAX / 16 * 15;
    assert_int_equal(sy_os_ask_copy(work, &made_count, NULL, bytes, count_made), -1);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(made_count, 1);
}

/* ---- written pages ---- */

enum { PAGES = 3000 }; /* more than one call to the system asks for */

static char *mapping;
static size_t page;

typedef struct pages {
    uintptr_t last;
    bool rising;
    bool found[PAGES];
    size_t pieces, other;
} pages;

static void note(void *arg, const sy_os_piece *piece) {
    pages *seen = arg;
    uintptr_t start = (uintptr_t)mapping, end = start + PAGES * page;
    seen->rising = seen->rising && piece->start >= seen->last && piece->end > piece->start &&
                   piece->mapping <= piece->start && piece->end <= piece->mapping_end;
    seen->last = piece->end;
    if (piece->end <= start || piece->start >= end) {
        seen->other++;
        return;
    }
    seen->pieces++;
    for (uintptr_t at = piece->start; at < piece->end; at += page)
        if (at >= start && at < end) seen->found[(at - start) / page] = true;
}

static pages written(void) {
    pages seen = {.rising = true};
    errno = 12345;
    assert_int_equal(sy_os_each_written(note, &seen), 0);
    assert_int_equal(errno, 12345);
    assert_true(seen.rising && seen.other > 0);
    return seen;
}

static size_t count(const pages *seen) {
    size_t found = 0;
    for (size_t i = 0; i < PAGES; i++) found += seen->found[i];
    return found;
}

static void map(int kind) {
    page = sy_os_page_size();
    mapping = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    must(mapping != MAP_FAILED);
    madvise(mapping, PAGES * page, MADV_NOHUGEPAGE);
}

static void pages_that_were_written_are_found(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    needs_pages_of_the_kernel();
    map(MAP_PRIVATE);
    pages before = written();
    assert_int_equal(count(&before), 0);
    const size_t touched[] = {0, 1, 511, 512, 513, 1024, PAGES - 1};
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) mapping[touched[i] * page] = 1;
    pages seen = written();
    assert_int_equal(count(&seen), sizeof touched / sizeof *touched);
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++)
        assert_true(seen.found[touched[i]]);
    assert_int_equal(seen.pieces, 4); /* pages 511 to 513 are one piece */
    munmap(mapping, PAGES * page);
}

static void what_cannot_be_read_or_is_shared_is_left_out(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    needs_pages_of_the_kernel();
    map(MAP_PRIVATE);
    for (size_t i = 0; i < 10; i++) mapping[i * page] = 1;
    must(mprotect(mapping + 2 * page, page, PROT_NONE) == 0);
    must(mprotect(mapping + 4 * page, page, PROT_READ) == 0);
    bool guarded = !is_emulated() && /* MADV_GUARD_INSTALL */
                   madvise(mapping + 6 * page, page, 102) == 0;
    pages seen = written();
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(seen.found[i], i != 2 && i != 4 && !(guarded && i == 6));
    munmap(mapping, PAGES * page);
    map(MAP_SHARED);
    memset(mapping, 1, 10 * page);
    seen = written();
    assert_int_equal(count(&seen), 0);
    munmap(mapping, PAGES * page);
}

static void without_files_nothing_is_known(void *arg) {
    const struct rlimit none = {0, 0};
    pages seen = {0};
    must(setrlimit(RLIMIT_NOFILE, &none) == 0);
    errno = 0;
    must(sy_os_each_written(note, &seen) == -1 && errno == EMFILE && seen.other == 0);
    (void)arg;
}

static void what_the_system_does_not_say_is_an_error(void **state) {
    needs(SY_OS_COPIES);
    (void)state;
    assert_int_equal(in_child(without_files_nothing_is_known, NULL), 0);
}

/* ---- the end ---- */

static int pipe_to_parent;

static void write_a(void) { must(write(pipe_to_parent, "a", 1) == 1); }
static void write_b(void) { must(write(pipe_to_parent, "b", 1) == 1); }

static void hooks_run_at_the_end_the_last_first(void **state) {
    (void)state;
    int fds[2];
    char text[3] = "";
    must(pipe(fds) == 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        pipe_to_parent = fds[1];
        must(sy_os_at_exit(write_a) == 0 && sy_os_at_exit(write_b) == 0);
        exit(0);
    }
    must(waitpid(pid, NULL, 0) == pid);
    assert_int_equal(read(fds[0], text, 2), 2);
    assert_string_equal(text, "ba");
    close(fds[0]);
    close(fds[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_answers_and_changes_nothing),
        cmocka_unit_test(what_a_copy_wrote_before_it_died_is_there),
        cmocka_unit_test(the_program_notices_no_child),
        cmocka_unit_test(without_memory_for_the_answer_there_is_no_copy),
        cmocka_unit_test(pages_that_were_written_are_found),
        cmocka_unit_test(what_cannot_be_read_or_is_shared_is_left_out),
        cmocka_unit_test(what_the_system_does_not_say_is_an_error),
        cmocka_unit_test(hooks_run_at_the_end_the_last_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
