/*
 * fuzz_options.c: tests the parser of options against a model, and with random text.
 *
 * An input is put together from pieces of options: names, values, separators and single bytes. A
 * refused text changes nothing. An accepted text gives the same values when the options are printed
 * and read again. Texts made from valid parts must be accepted, and the model knows the value that
 * each option must have then.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/options.h>

#include "fuzz.h"
#include "os/os.h"

enum { OPTIONS_MAX = 40, VALUE_MAX = 256, TEXT_BYTES = 2048 };

static const char *names[OPTIONS_MAX];
static size_t count;

typedef struct values {
    char of[OPTIONS_MAX][VALUE_MAX];
} values;

/* Valid parts, and how the options are printed then. */
static const struct known {
    const char *name, *said, *value;
} known[] = {
    {"check", "check", "yes"},
    {"check", "check=0", "no"},
    {"poison", " poison = on ", "yes"},
    {"poison", "poison=no", "no"},
    {"dump", "dump=off", "no"},
    {"dump", "dump=yes", "yes"},
    {"redzone", "redzone", "64"},
    {"redzone", "redzone=100", "112"},
    {"redzone", "redzone=off", "off"},
    {"quarantine", "quarantine=7", "7"},
    {"guard", "guard=1/50", "1/50"},
    {"guard", "guard=1", "all"},
    {"guard", "guard=0", "off"},
    {"audit", "audit", "0"},
    {"audit", "audit=100", "128"},
    {"leaks", "leaks=unreachable+destroy", "destroy+unreachable"},
    {"leaks", "leaks=no", "off"},
    {"only", "only=a*+b", "a*+b"},
    {"only", "only=*", "*"},
    {"report", "report=/tmp/x", "/tmp/x"},
    {"decay", "decay=1min", "60s"},
    {"limit", "limit=1024K", "1M"},
    {"huge", "huge=2048K", "2M"},
    {"unwind", "unwind=tables", "tables"},
    {"tools", "tools=off", "off"},
};
enum { KNOWN = sizeof known / sizeof *known };

static const char *const pieces[] = {
    "=",  ",",   ",",   "=", "1/",   "64",    "K",      "ms",       "+", "*",          "yes",
    "no", "off", "all", " ", "exit", "1min ", "999999", "continue", "0", "unreachable"};
enum { PIECES = sizeof pieces / sizeof *pieces };

static int note_name(void *arg, const sy_option *option) {
    (void)arg;
    fuzz_expect(count < OPTIONS_MAX, "there is room for the names");
    names[count++] = option->name;
    return 0;
}

static size_t index_of(const char *name) {
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0) i++;
    fuzz_expect(i < count, "the model knows options that there are");
    return i;
}

static void get_all(values *all) {
    for (size_t i = 0; i < count; i++)
        fuzz_expect(sy_get_option(names[i], all->of[i], VALUE_MAX) > 0, "every option has a value");
}

static void expect_all(const values *expected, const char *what) {
    static values now;
    get_all(&now);
    for (size_t i = 0; i < count; i++) fuzz_expect(strcmp(now.of[i], expected->of[i]) == 0, what);
}

/* The text of each option alone. */
static void say_back(const values *all) {
    for (size_t i = 0; i < count; i++) {
        char text[VALUE_MAX + 32];
        snprintf(text, sizeof text, "%s=%s", names[i], all->of[i]);
        fuzz_expect(sy_set_options(text) == 0, "what an option is called can be said");
    }
}

/* Adds the piece of this number; a number without a piece stands for a name, a part of one, or the
 * byte. */
static void add_piece(char *text, fuzz_input *input) {
    size_t length = strlen(text);
    uint8_t kind = fuzz_byte(input), which = fuzz_byte(input);
    if (kind < 60)
        snprintf(text + length, TEXT_BYTES - length, "%s", names[which % count]);
    else if (kind < 70)
        snprintf(text + length, TEXT_BYTES - length, "%.*s", which % 8, names[which % count]);
    else if (kind < 90)
        snprintf(text + length, TEXT_BYTES - length, "%s", known[which % KNOWN].said);
    else if (kind < 240)
        snprintf(text + length, TEXT_BYTES - length, "%s", pieces[which % PIECES]);
    else
        snprintf(text + length, TEXT_BYTES - length, "%c", which ? which : 1);
}

/* Options may need services that the platform does not have. */
static bool lacks_some(void) { return SY_OS_SERVICES != 2 * SY_OS_DETECTORS - 1; }

static void say_anything(fuzz_input *input) {
    static values before, after;
    char text[TEXT_BYTES] = "";
    for (unsigned left = fuzz_byte(input) % 24; left > 0; left--) add_piece(text, input);
    get_all(&before);
    errno = 0;
    if (sy_set_options(text) != 0) {
        fuzz_expect(errno == EINVAL || (errno == ENOTSUP && lacks_some()), "a refusal is EINVAL");
        expect_all(&before, "a refusal changes nothing");
        return;
    }
    get_all(&after);
    say_back(&before);
    expect_all(&before, "what was can be brought back");
    say_back(&after);
    expect_all(&after, "what was accepted can be said back");
}

static void say_what_is_known(fuzz_input *input) {
    static values model;
    char text[TEXT_BYTES] = "";
    get_all(&model);
    for (unsigned left = fuzz_byte(input) % 8; left > 0; left--) {
        const struct known *it = &known[fuzz_byte(input) % KNOWN];
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", length ? "," : "", it->said);
        strcpy(model.of[index_of(it->name)], it->value);
    }
    bool spoilt = fuzz_byte(input) % 4 == 0;
    if (spoilt) {
        get_all(&model);
        strcat(text, ",nothing");
    }
    bool said = sy_set_options(text) == 0;
    if (!said && errno == ENOTSUP) { /* then nothing of it was set */
        fuzz_expect(lacks_some(), "a platform that lacks nothing accepts all");
        return;
    }
    fuzz_expect(said != spoilt, "what is good is accepted, all or nothing");
    expect_all(&model, "each option has the value that was said last");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    if (!count) sy_option_each(note_name, NULL);
    while (input.size > 0)
        if (fuzz_byte(&input) % 2)
            say_anything(&input);
        else
            say_what_is_known(&input);
    return 0;
}
