/*
 * test_options.c: which options there are, what they do, and that the documents list them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <slabyard/heap.h>
#include <slabyard/limit.h>
#include <slabyard/options.h>
#include <slabyard/reclaim.h>

#include "debug/options.h"
#include "os/fake.h"
#include "os/start.h"
#include "reclaim/reclaim.h"
#include "support/child.h"
#include "support/services.h"

static void expect(const char *name, const char *value) {
    char text[300];
    int length = sy_get_option(name, text, sizeof text);
    assert_true(length >= 0);
    assert_string_equal(text, value);
    assert_int_equal(length, strlen(value));
}

static void set(const char *text) { assert_int_equal(sy_set_options(text), 0); }

static void refused(const char *text) {
    errno = 0;
    assert_int_equal(sy_set_options(text), -1);
    assert_int_equal(errno, EINVAL);
}

static int set_to_initial(void *arg, const sy_option *option) {
    char text[300];
    (void)arg;
    snprintf(text, sizeof text, "%s=%s", option->name, option->initial);
    set(text);
    return 0;
}

static int begin(void **state) {
    (void)state;
    sy_fake_reset();
    return sy_option_each(set_to_initial, NULL);
}

/* ---- the table ---- */

static int expect_initial(void *arg, const sy_option *option) {
    ++*(int *)arg;
    expect(option->name, option->initial);
    assert_true(strlen(option->meaning) > 10 && option->values[0]);
    return 0;
}

static void every_option_is_as_the_table_says_at_first(void **state) {
    (void)state;
    int count = 0;
    assert_int_equal(sy_option_each(expect_initial, &count), 0);
    assert_int_equal(count, 40);
}

static int set_bare(void *arg, const sy_option *option) {
    (void)arg;
    if (option->bare) {
        set(option->name);
        expect(option->name, option->bare);
    } else {
        refused(option->name);
        expect(option->name, option->initial);
    }
    return 0;
}

static void a_name_alone_means_what_the_table_says(void **state) {
    needs(SY_OS_GUARDS | SY_OS_ACCESSES);
    (void)state;
    sy_option_each(set_bare, NULL);
}

static int stop_at_poison(void *arg, const sy_option *option) {
    ++*(int *)arg;
    return strcmp(option->name, "poison") == 0 ? 42 : 0;
}

static void the_visit_ends_when_told(void **state) {
    (void)state;
    int count = 0;
    assert_int_equal(sy_option_each(stop_at_poison, &count), 42);
    assert_int_equal(count, 4);
}

/* The words hold the default values before the options are loaded. */
static void the_words_are_right_before_they_are_loaded(void *arg) {
    (void)arg;
    static sy_options before;
    memcpy(&before, &sy_options_now, sizeof before);
    sy_fake_set_option("SLABYARD", NULL);
    sy_options_load();
    must(memcmp(&before, &sy_options_now, sizeof before) == 0);
}

static void initial_words(void **state) {
    (void)state;
    assert_int_equal(in_child(the_words_are_right_before_they_are_loaded, NULL), 0);
}

/* Opens docs/options.md. The rows of its table of options begin with | `. */
static FILE *open_document(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s", __FILE__);
    char *end = strstr(path, "tests/unit/");
    assert_non_null(end);
    strcpy(end, "docs/options.md");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static bool next_row(FILE *file, char *line, size_t room) {
    while (fgets(line, (int)room, file))
        if (strncmp(line, "| `", 3) == 0) return true;
    return false;
}

static int expect_in_document(void *arg, const sy_option *option) {
    char expected[600], line[600];
    const char *bare = option->bare ? option->bare : "";
    snprintf(expected, sizeof expected, "| `%s` | %s | %s | %s | %s |\n", option->name,
             option->values, bare, option->initial, option->meaning);
    for (char *bar = expected; (bar = strchr(bar, '|')) != NULL;) /* a bar in a value is \| */
        if (bar == expected || bar[-1] == ' ') {
            bar++;
        } else {
            memmove(bar + 1, bar, strlen(bar) + 1);
            *bar = '\\';
            bar += 2;
        }
    assert_true(next_row(arg, line, sizeof line));
    assert_string_equal(line, expected);
    return 0;
}

static void the_document_shows_the_table(void **state) {
    (void)state;
    char line[600];
    FILE *file = open_document();
    sy_option_each(expect_in_document, file);
    assert_false(next_row(file, line, sizeof line));
    fclose(file);
}

/* ---- values ---- */

/* A value that needs a service which the platform lacks is refused for this reason alone. */
static void each(const char *name, const char *const *pairs, size_t count) {
    for (size_t i = 0; i < count; i += 2) {
        char text[100];
        snprintf(text, sizeof text, "%s=%s", name, pairs[i]);
        if (sy_set_options(text) != 0 && errno == ENOTSUP) {
            assert_false(SY_PLATFORM_LINUX);
        } else if (pairs[i + 1]) {
            set(text);
            expect(name, pairs[i + 1]);
        } else {
            refused(text);
        }
    }
}

/* Pairs of a value and how sy_get_option gives it back. NULL: the value is refused. */
#define EACH(name, ...)                                  \
    do {                                                 \
        const char *const pairs[] = {__VA_ARGS__};       \
        each(name, pairs, sizeof pairs / sizeof *pairs); \
    } while (0)

static void switches(void **state) {
    (void)state;
    EACH("check", "yes", "yes", "no", "no", "on", "yes", "off", "no", "1", "yes", "0", "no", "",
         NULL, "maybe", NULL, "yes|no", NULL, "2", NULL, "ye", NULL);
}

static void sizes(void **state) {
    (void)state;
    EACH("redzone", "16", "16", "17", "32", "4096", "4K", "64K", "64K", "64k", "64K", "64KiB",
         "64K", "64B", "64", "off", "off", "no", "off", "0", "off", "15", NULL, "65537", NULL,
         "65K", NULL, "-16", NULL, "x", NULL, "16x", NULL, "16 K", NULL, "", NULL, "K", NULL,
         "16KK", NULL);
    EACH("limit", "500M", "500M", "2G", "2G", "2048M", "2G", "1T", "1T", "1025", "1025", "off",
         "off", "0", "off", "9999999999999999999999", NULL, "18014398509481985K", NULL, "8388608T",
         NULL, "8388607T", "8388607T");
    EACH("huge", "128M", "128M", "2M", "2M", "2097151", NULL, "1G", "1G", "off", "off", "", NULL,
         "8388608T", NULL);
}

static void numbers(void **state) {
    (void)state;
    EACH("quarantine", "1", "1", "1000", "1000", "1048576", "1048576", "0", "off", "1048577", NULL,
         "1K", NULL, "1.5", NULL);
    EACH("guard-slots", "1", "1", "65536", "65536", "0", NULL, "off", NULL, "65537", NULL);
    EACH("stack-depth", "64", "64", "65", NULL, "0", NULL, "007", "7");
    EACH("audit", "0", "0", "1", "1", "1000", "1024", "1048576", "1048576", "off", "off", "no",
         "off", "1048577", NULL);
}

static void percents(void **state) {
    (void)state;
    EACH("slack", "50", "50%", "1%", "1%", "1000000%", "1000000%", "0", "off", "off", "off",
         "1000001", NULL, "5 %", NULL, "5x", NULL, "%", NULL, "-1", NULL, "", NULL);
}

static void rates(void **state) {
    (void)state;
    EACH("guard", "all", "all", "1", "all", "1/1", "all", "1000", "1/1000", "1/5000", "1/5000", "0",
         "off", "off", "off", "2/3", NULL, "1/", NULL, "1/x", NULL, "", NULL, "1/1/1", NULL);
}

static void times(void **state) {
    (void)state;
    EACH("decay", "1500", "1500ms", "2000ms", "2s", "3s", "3s", "1min", "60s", "0", "off", "off",
         "off", "1h", NULL, "s", NULL, "1000000001", NULL);
}

static void choices(void **state) {
    (void)state;
    EACH("unwind", "frames", "frames", "tables", "tables", "auto", "auto", "", NULL, "frame", NULL,
         "auto|frames", NULL, "no", NULL);
    EACH("colour", "always", "always", "never", "never", "auto", "auto", "yes", NULL);
    EACH("on-fault", "continue", "continue", "abort", "abort", "off", NULL);
    EACH("tools", "off", "off", "malloc", "malloc", "auto", "auto", "asan", NULL);
}

static void sets(void **state) {
    (void)state;
    EACH("leaks", "exit", "exit", "destroy", "destroy", "exit+destroy", "destroy+exit", "all",
         "destroy+exit", "unreachable", "exit+unreachable", "destroy+unreachable",
         "destroy+unreachable", "unreachable+exit+destroy", "destroy+exit+unreachable", "off",
         "off", "no", "off", "exit+", NULL, "+exit", NULL, "exit++destroy", NULL, "", NULL,
         "exit+off", NULL);
}

static void texts(void **state) {
    (void)state;
    char long_text[SY_OPTION_TEXT_MAX + 10] = "only=";
    EACH("only", "order", "order", "a*+b?", "a*+b?", "a=b", "a=b", " x y ", "x y", "", NULL,
         "\x1b[", NULL, "a\tb", NULL);
    memset(long_text + 5, 'x', SY_OPTION_TEXT_MAX);
    set(long_text);
    expect("only", long_text + 5);
    memset(long_text + 5, 'x', SY_OPTION_TEXT_MAX + 1);
    refused(long_text);
}

/* ---- the syntax of options ---- */

static void parts_may_have_space_around_and_be_empty(void **state) {
    (void)state;
    set(" check , redzone = 128 ,, ,\n\tpoison,");
    expect("check", "yes");
    expect("redzone", "128");
    expect("poison", "yes");
    set("");
    set(" , ");
    expect("redzone", "128");
}

static void the_later_one_holds(void **state) {
    (void)state;
    set("redzone=16,check,redzone=32,check=no");
    expect("redzone", "32");
    expect("check", "no");
}

static void all_or_nothing(void **state) {
    (void)state;
    const char *const wrong[] = {"nothing",   "redzone=1", "only", "check=", "=yes",
                                 "check yes", "Check",     "chec", "checks"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int behind = 0; behind < 2; behind++) {
            char text[100];
            snprintf(text, sizeof text, behind ? "poison,only=x,%s" : "%s,poison,only=x", wrong[i]);
            refused(text);
            expect("poison", "no");
            expect("only", "*");
        }
    refused(NULL);
}

static void getting_says_what_is_wrong(void **state) {
    (void)state;
    char value[6];
    errno = 0;
    assert_int_equal(sy_get_option("nothing", value, sizeof value), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(sy_get_option(NULL, value, sizeof value), -1);
    set("redzone=16,only=12345");
    assert_int_equal(sy_get_option("only", value, 6), 5);
    assert_string_equal(value, "12345");
    errno = 0;
    assert_int_equal(sy_get_option("only", value, 5), -1);
    assert_int_equal(errno, ERANGE);
    assert_int_equal(sy_get_option("redzone", NULL, 0), -1);
}

/* ---- the words that the library reads ---- */

static void each_check_has_its_flag(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    static const struct {
        const char *text;
        unsigned flag;
    } flags[] = {
        {"check", SY_CHECKED},         {"redzone", SY_REDZONE},     {"poison", SY_POISON},
        {"quarantine", SY_QUARANTINE}, {"zero", SY_ZERO},           {"guard", SY_GUARD},
        {"random", SY_RANDOM},         {"edges", SY_EDGES},         {"dump=no", SY_NO_DUMP},
        {"lock", SY_LOCKED},           {"audit", SY_AUDIT},         {"audit=16", SY_AUDIT},
        {"leaks", SY_AUDIT},           {"leaks=destroy", SY_AUDIT}, {"decay=5", 0}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        begin(NULL);
        assert_int_equal(sy_options_now.checks, 0);
        set(flags[i].text);
        assert_int_equal(sy_options_now.checks, flags[i].flag);
    }
}

static void each_word_has_its_writer(void **state) {
    needs(SY_OS_GUARDS | SY_OS_STACKS | SY_OS_ACCESSES | SY_OS_HUGE_PAGES | SY_OS_COPIES);
    (void)state;
    set("redzone=32,quarantine=7,audit=5,guard=1/77,guard-slots=9,stack-depth=3,unwind=tables,"
        "leaks=all,tools=malloc,colour=never,symbols=no,explain,on-fault=continue,huge=8M");
    sy_options *now = &sy_options_now;
    assert_int_equal(now->redzone, 32);
    assert_int_equal(now->quarantine, 7);
    assert_int_equal(now->audit_log, 8);
    assert_int_equal(now->guard_every, 77);
    assert_int_equal(now->guard_slots, 9);
    assert_int_equal(now->stack_depth, 3);
    assert_int_equal(now->unwind, SY_UNWIND_TABLES);
    assert_int_equal(now->leaks, SY_LEAKS_AT_DESTROY | SY_LEAKS_AT_EXIT);
    assert_int_equal(now->tools, SY_TOOLS_MALLOC);
    assert_int_equal(now->colour, SY_WHEN_NEVER);
    assert_false(now->symbols);
    assert_int_equal(now->explain, SY_EXPLAIN_YES);
    assert_true(now->go_on);
    assert_int_equal(now->huge, 8 << 20);
    set("huge=off,unwind=frames,leaks=unreachable,tools=off,colour=always");
    assert_int_equal(now->unwind, SY_UNWIND_FRAMES);
    assert_int_equal(now->leaks, SY_LEAKS_AT_EXIT | SY_LEAKS_LOST);
    assert_int_equal(now->tools, SY_TOOLS_OFF);
    assert_int_equal(now->colour, SY_WHEN_ALWAYS);
    assert_int_equal(now->huge, 0);
}

/* A cache may still ask for the check by its flags. Then it gets the default amount. */
static void what_is_off_has_the_amount_of_its_name_alone(void **state) {
    needs(SY_OS_GUARDS);
    (void)state;
    set("redzone=32,redzone=off,quarantine=7,quarantine=off,guard=all,guard=off,audit=8,audit=off");
    assert_int_equal(sy_options_now.checks, 0);
    assert_int_equal(sy_options_now.redzone, 64);
    assert_int_equal(sy_options_now.quarantine, 256);
    assert_int_equal(sy_options_now.guard_every, 1000);
    assert_int_equal(sy_options_now.audit_log, 0);
}

static void debug_stands_for_several(void **state) {
    needs(SY_OS_ACCESSES);
    (void)state;
    const unsigned flags = SY_CHECKED | SY_REDZONE | SY_POISON | SY_QUARANTINE | SY_AUDIT;
    set("debug");
    assert_int_equal(sy_options_now.checks, flags);
    assert_int_equal(sy_options_now.explain, SY_EXPLAIN_YES);
    assert_int_equal(sy_options_now.redzone, 64);
    set("debug,redzone=128,audit=off,guard=1/10");
    assert_int_equal(sy_options_now.checks, (flags & ~(unsigned)SY_AUDIT) | SY_GUARD);
    assert_int_equal(sy_options_now.redzone, 128);
    set("debug=no");
    assert_int_equal(sy_options_now.checks, SY_GUARD);
    assert_int_equal(sy_options_now.explain, SY_EXPLAIN_AUTO);
}

static void only_says_which_caches_are_meant(void **state) {
    (void)state;
    assert_true(sy_options_mean("order"));
    assert_true(sy_options_mean(""));
    set("only=order+heap-*+x?");
    assert_true(sy_options_mean("order"));
    assert_true(sy_options_mean("heap-64"));
    assert_true(sy_options_mean("x1"));
    assert_false(sy_options_mean("orders"));
    assert_false(sy_options_mean("order+heap-64"));
    assert_false(sy_options_mean("x"));
    assert_false(sy_options_mean(""));
}

static void texts_are_copied(void **state) {
    (void)state;
    char text[SY_OPTION_TEXT_MAX + 1];
    sy_options_report_path(text);
    assert_string_equal(text, "");
    sy_options_failures(text);
    assert_string_equal(text, "");
    set("report=/tmp/x y,fail=order:3+os:commit:2");
    sy_options_report_path(text);
    assert_string_equal(text, "/tmp/x y");
    sy_options_failures(text);
    assert_string_equal(text, "order:3+os:commit:2");
}

static void what_is_late_is_taken_once(void **state) {
    needs(SY_OS_BACKGROUND);
    (void)state;
    uint64_t value;
    set("decay=2s,limit=1G,maintenance");
    assert_true(sy_options_take(SY_LATE_DECAY, &value));
    assert_int_equal(value, 2000);
    assert_false(sy_options_take(SY_LATE_DECAY, &value));
    assert_int_equal(value, 2000);
    assert_true(sy_options_take(SY_LATE_LIMIT, &value));
    assert_int_equal(value, 1 << 30);
    assert_true(sy_options_take(SY_LATE_MAINTENANCE, &value));
    assert_int_equal(value, SY_MAINTENANCE_YES);
    set("decay=off,limit=off,maintenance=no");
    assert_true(sy_options_take(SY_LATE_DECAY, &value) && value == 0);
    assert_true(sy_options_take(SY_LATE_LIMIT, &value) && value == 0);
    assert_true(sy_options_take(SY_LATE_MAINTENANCE, &value) && value == SY_MAINTENANCE_NO);
    refused("decay=3s,nothing");
    assert_false(sy_options_take(SY_LATE_DECAY, &value));
}

/* ---- the environment ---- */

static void load(void *arg) {
    (void)arg;
    sy_options_load();
}

/* Loads the options of the environment, and expects these reports. */
static void load_from(const char *text, const char *told) {
    sy_fake_set_option("SLABYARD", text);
    errno = 1234;
    must(!sy_fake_catch(load, NULL));
    must(errno == 1234);
    if (strcmp(sy_fake_written(), told) == 0) return;
    fprintf(stderr, "told: %sexpected: %s", sy_fake_written(), told);
    abort();
}

static bool is(const char *name, const char *value) {
    char text[300];
    return sy_get_option(name, text, sizeof text) >= 0 && strcmp(text, value) == 0;
}

static void load_all_fine(void *arg) {
    load_from("check,redzone=128, only=order ", "");
    must(is("check", "yes") && is("redzone", "128") && is("only", "order"));
    must(sy_options_now.checks == (SY_CHECKED | SY_REDZONE));
    load_from("poison", arg); /* the environment is read once */
    must(is("poison", "no"));
}

static void the_environment_is_read_once(void **state) {
    (void)state;
    assert_int_equal(in_child(load_all_fine, ""), 0);
}

static void load_with_problems(void *arg) {
    (void)arg;
    load_from(
        "chekc,redzone=7,only,=1,nothing=2,poison,audit=x\x1b,symblos=no,check=1",
        "slabyard: option \"chekc\" is unknown (SLABYARD), did you mean \"check\"?\n"
        "slabyard: option \"redzone\" cannot be \"7\" (SLABYARD), it takes BYTES, 16 to 64K, "
        "or off\n"
        "slabyard: option \"only\" needs a value (SLABYARD), it takes NAMES\n"
        "slabyard: option \"\" is unknown (SLABYARD)\n"
        "slabyard: option \"nothing\" is unknown (SLABYARD)\n"
        "slabyard: option \"audit\" cannot be \"x?\" (SLABYARD), it takes N, 0 to 1048576, or "
        "off\n"
        "slabyard: option \"symblos\" is unknown (SLABYARD), did you mean \"symbols\"?\n");
    must(is("poison", "yes") && is("check", "yes") && is("redzone", "off"));
}

static void problems_are_told_and_the_rest_holds(void **state) {
    (void)state;
    assert_int_equal(in_child(load_with_problems, NULL), 0);
}

static void load_what_is_long(void *arg) {
    (void)arg;
    char text[5000], told[200], shown[61];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    memcpy(shown, text, 60);
    shown[60] = 0;
    snprintf(told, sizeof told, "slabyard: option \"%s...\" is unknown (SLABYARD)\n", shown);
    load_from(text, told);
}

static void what_is_long_is_told_in_short(void **state) {
    (void)state;
    assert_int_equal(in_child(load_what_is_long, NULL), 0);
}

static void load_names_nearby(void *arg) {
    static const char *const near[][2] = {
        {"gard", "guard"},   {"quarentine", "quarantine"}, {"stack_depth", "stack-depth"},
        {"color", "colour"}, {"posion", "poison"},         {"lcok", "lock"}};
    size_t which = *(size_t *)arg;
    char told[200];
    if (which == sizeof near / sizeof *near) _exit(1);
    snprintf(told, sizeof told,
             "slabyard: option \"%s\" is unknown (SLABYARD), did you mean \"%s\"?\n",
             near[which][0], near[which][1]);
    load_from(near[which][0], told);
}

static void load_a_name_far_away(void *arg) {
    (void)arg;
    load_from("maintenxxxe", "slabyard: option \"maintenxxxe\" is unknown (SLABYARD)\n");
}

static void a_name_far_away_is_not_suggested(void **state) {
    (void)state;
    assert_int_equal(in_child(load_a_name_far_away, NULL), 0);
}

static void a_name_nearby_is_suggested(void **state) {
    (void)state;
    size_t which = 0;
    int status;
    while ((status = in_child(load_names_nearby, &which)) == 0) which++;
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void load_nothing(void *arg) {
    (void)arg;
    load_from(NULL, "");
    must(is("check", "no") && is("redzone", "off"));
}

/* test_os.c has the test for processes with more rights than their user, which get no options. */
static void no_environment_is_fine(void **state) {
    (void)state;
    assert_int_equal(in_child(load_nothing, NULL), 0);
}

/* Under memcheck the default is larger (watch.c). */
static void set_the_quarantine(void *arg) {
    (void)arg;
    load_from("debug", "");
    must(!sy_options_now.quarantine_said);
    must(sy_set_options("quarantine=256") == 0);
    must(sy_options_now.quarantine_said);
}

static void a_number_for_the_quarantine_is_known(void **state) {
    (void)state;
    assert_int_equal(in_child(set_the_quarantine, NULL), 0);
}

static bool asks_for_accesses(const char *text) {
    sy_fake_set_option("SLABYARD", text);
    return sy_options_ask_for_accesses();
}

static void ask_for_accesses(void *arg) {
    (void)arg;
    must(asks_for_accesses("guard=all") && asks_for_accesses("check,sample=1/50000"));
    must(asks_for_accesses("explain") && asks_for_accesses("debug"));
    must(!asks_for_accesses(NULL) && !asks_for_accesses("poison,chekc"));
    must(!asks_for_accesses("guard=off") && !asks_for_accesses("guard=all,explain=no"));
    must(is("guard", "all")); /* SLABYARD is read now, not before */
}

static void the_start_knows_whether_accesses_matter(void **state) {
    needs(SY_OS_ACCESSES);
    (void)state;
    assert_int_equal(in_child(ask_for_accesses, NULL), 0);
}

static void set_before_anything(void *arg) {
    (void)arg;
    sy_fake_set_option("SLABYARD", "redzone=128,check");
    must(sy_set_options("redzone=32") == 0);
    must(is("redzone", "32") && is("check", "yes"));
}

static void a_call_comes_after_the_environment(void **state) {
    (void)state;
    assert_int_equal(in_child(set_before_anything, NULL), 0);
}

static void *load_here(void *arg) {
    sy_options_load();
    must(sy_options_now.redzone == 128);
    return arg;
}

static void load_together(void *arg) {
    pthread_t threads[8];
    sy_fake_set_option("SLABYARD", "redzone=128");
    for (int i = 0; i < 8; i++) must(pthread_create(&threads[i], NULL, load_here, arg) == 0);
    for (int i = 0; i < 8; i++) must(pthread_join(threads[i], NULL) == 0);
}

static void several_threads_may_load(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) assert_int_equal(in_child(load_together, NULL), 0);
}

/* ---- options that take effect at the start ---- */

static void start_with_late_options(void *arg) {
    (void)arg;
    sy_fake_set_option("SLABYARD", "decay=7s,maintenance,limit=64M");
    sy_set_decay(5);
    errno = 1234;
    must(sy_start() == 0);
    must(errno == 1234);
    must(sy_reclaim_interval() == UINT64_C(7000000000));
    must(sy_maintenance_runs());
    must(sy_set_options("maintenance=no,decay=8s") == 0);
    must(!sy_maintenance_runs());
    must(sy_reclaim_interval() == UINT64_C(8000000000));
    sy_set_decay(5);
    must(sy_set_options("check") == 0); /* none of these is reported again */
    must(sy_reclaim_interval() == 5000000);
    must(sy_malloc(100 << 20) == NULL && sy_last_refusal() == SY_REFUSAL_PROCESS_LIMIT);
    must(sy_set_options("limit=off") == 0);
    must(sy_malloc(100 << 20) != NULL);
}

static void the_start_carries_out_what_layers_above_do(void **state) {
    needs(SY_OS_BACKGROUND);
    (void)state;
    assert_int_equal(in_child(start_with_late_options, NULL), 0);
}

static void start_without_options(void *arg) {
    (void)arg;
    sy_fake_set_option("SLABYARD", NULL);
    sy_set_decay(5);
    must(sy_start() == 0);
    must(sy_reclaim_interval() == 5000000);
    must(!sy_maintenance_runs());
}

static void what_is_not_said_is_left_alone(void **state) {
    (void)state;
    assert_int_equal(in_child(start_without_options, NULL), 0);
}

static void start(void *arg) { *(int *)arg = sy_start(); }

static void start_without_a_thread(void *arg) {
    (void)arg;
    int result = -1;
    sy_fake_set_option("SLABYARD", "maintenance");
    sy_fake_fail_from(SY_FAKE_START_THREAD, 1);
    must(!sy_fake_catch(start, &result));
    must(result == 0);
    must(strcmp(sy_fake_written(), "slabyard: the thread that the option \"maintenance\" asks for "
                                   "cannot be started\n") == 0);
}

static void a_maintenance_that_cannot_start_is_told(void **state) {
    needs(SY_OS_BACKGROUND);
    (void)state;
    assert_int_equal(in_child(start_without_a_thread, NULL), 0);
}

/* ---- fork ---- */

static _Atomic bool stop;

static void *set_all_the_time(void *arg) {
    while (!stop) must(sy_set_options("redzone=32,only=order,report=x") == 0);
    return arg;
}

static void set_in_the_child(void *arg) {
    (void)arg;
    alarm(30);
    must(sy_set_options("redzone=64") == 0 && is("redzone", "64"));
}

static void fork_while_options_are_set(void *arg) {
    pthread_t thread;
    must(sy_start() == 0);
    must(pthread_create(&thread, NULL, set_all_the_time, NULL) == 0);
    for (int i = 0; i < 100; i++) must(in_child(set_in_the_child, arg) == 0);
    stop = true;
    must(pthread_join(thread, NULL) == 0);
}

static void a_child_finds_the_options_whole(void **state) {
    needs(SY_OS_FORKS);
    (void)state;
    assert_int_equal(in_child(fork_while_options_are_set, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First, before options are loaded. */
        cmocka_unit_test(initial_words),
        cmocka_unit_test(the_environment_is_read_once),
        cmocka_unit_test(problems_are_told_and_the_rest_holds),
        cmocka_unit_test(what_is_long_is_told_in_short),
        cmocka_unit_test(a_name_far_away_is_not_suggested),
        cmocka_unit_test(a_name_nearby_is_suggested),
        cmocka_unit_test(no_environment_is_fine),
        cmocka_unit_test(a_number_for_the_quarantine_is_known),
        cmocka_unit_test(a_call_comes_after_the_environment),
        cmocka_unit_test(the_start_knows_whether_accesses_matter),
        cmocka_unit_test(several_threads_may_load),
        cmocka_unit_test(the_start_carries_out_what_layers_above_do),
        cmocka_unit_test(what_is_not_said_is_left_alone),
        cmocka_unit_test(a_maintenance_that_cannot_start_is_told),
        cmocka_unit_test(a_child_finds_the_options_whole),
        TEST(every_option_is_as_the_table_says_at_first),
        TEST(a_name_alone_means_what_the_table_says),
        TEST(the_visit_ends_when_told),
        TEST(the_document_shows_the_table),
        TEST(switches),
        TEST(sizes),
        TEST(numbers),
        TEST(percents),
        TEST(rates),
        TEST(times),
        TEST(choices),
        TEST(sets),
        TEST(texts),
        TEST(parts_may_have_space_around_and_be_empty),
        TEST(the_later_one_holds),
        TEST(all_or_nothing),
        TEST(getting_says_what_is_wrong),
        TEST(each_check_has_its_flag),
        TEST(each_word_has_its_writer),
        TEST(what_is_off_has_the_amount_of_its_name_alone),
        TEST(debug_stands_for_several),
        TEST(only_says_which_caches_are_meant),
        TEST(texts_are_copied),
        TEST(what_is_late_is_taken_once),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
