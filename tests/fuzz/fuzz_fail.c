/*
 * fuzz_fail.c: tests the specifications of failures (the option `fail`) against a model.
 *
 * An input is either a list of rules or random text. The rules are made from a model that says for
 * each allocation and call whether it has to fail. Random text may be accepted or refused; refused
 * text changes nothing.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <slabyard/fail.h>

#include "debug/fail.h"
#include "fuzz.h"
#include "os/fake.h"
#include "os/os.h"

enum { RULES_MAX = 16, TEXT_MAX = 255, ASKED = 40 };

static const char *const names[] = {"order", "orders", "heap-64", "std::list", ""};
enum { NAMES = sizeof names / sizeof *names };

/* Patterns, and the names that each one matches. */
static const struct {
    const char *text;
    bool means[NAMES];
} patterns[] = {
    {"", {true, true, true, true, true}},
    {"*:", {true, true, true, true, true}},
    {"order:", {true, false, false, false, false}},
    {"order*:", {true, true, false, false, false}},
    {"?????:", {true, false, false, false, false}},
    {"*r*|heap-*:", {true, true, true, false, false}},
    {"std::list:", {false, false, false, true, false}},
    {"*:*:", {false, false, false, true, false}},
    {"*s|*4:", {false, true, true, false, false}},
    {"nobody:", {false, false, false, false, false}},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

typedef struct model_rule {
    unsigned pattern, how; /* how: 0 the n-th, 1 each n-th, 2 larger, 3 all (by chance 1) */
    bool system;           /* the rule is for discards, and the pattern is unused */
    uint64_t number, seen;
} model_rule;

typedef struct model {
    model_rule rules[RULES_MAX + 1];
    unsigned count;
    uint64_t failures;
    char text[1024];
} model;

static model the_model;

static void write_rule(model *m, const model_rule *rule) {
    static const char *const whens[] = {"", "every:", "size>", "random:1:"};
    char *end = m->text + strlen(m->text);
    snprintf(end, (size_t)(m->text + sizeof m->text - end), "%s%s%s%llu", m->count > 1 ? "+" : "",
             rule->system ? "os:commit:" : patterns[rule->pattern].text, whens[rule->how],
             (unsigned long long)rule->number);
}

static void make_rules(model *m, fuzz_input *input) {
    memset(m, 0, sizeof *m);
    unsigned wanted = fuzz_byte(input) % (RULES_MAX + 2);
    while (m->count < wanted) {
        model_rule *rule = &m->rules[m->count++];
        uint8_t byte = fuzz_byte(input);
        rule->how = byte % 4;
        rule->system = rule->how != 2 && byte >= 224;
        rule->pattern = fuzz_byte(input) % PATTERNS;
        rule->number = 1 + fuzz_byte(input) % 20;
        write_rule(m, rule);
    }
}

static bool rule_is_due(model_rule *rule, size_t size) {
    rule->seen++;
    switch (rule->how) {
    case 0: return rule->seen == rule->number;
    case 1: return rule->seen % rule->number == 0;
    case 2: return size > rule->number;
    default: return true;
    }
}

static bool model_is_due(model *m, bool system, unsigned name, size_t size) {
    bool due = false;
    for (model_rule *rule = m->rules; rule < m->rules + m->count; rule++) {
        if (rule->system != system) continue;
        if (system || patterns[rule->pattern].means[name]) due |= rule_is_due(rule, size);
    }
    m->failures += due;
    return due;
}

static char *pages;

static void ask_once(model *m, fuzz_input *input) {
    uint8_t byte = fuzz_byte(input);
    unsigned name = byte % NAMES;
    size_t size = fuzz_byte(input) % 24;
    if (byte >= 192) {
        bool due = model_is_due(m, true, 0, 0);
        fuzz_expect((sy_os_commit(pages, sy_os_page_size()) != 0) == due,
                    "a call fails when it is due");
        return;
    }
    errno = 4321;
    bool due = model_is_due(m, false, name, size);
    fuzz_expect(sy_fail_due(names[name], size) == due, "an allocation fails when it is due");
    fuzz_expect(errno == (due ? ENOMEM : 4321), "errno is kept, or ENOMEM");
}

static void check_wants(const model *m) {
    for (unsigned name = 0; name < NAMES; name++) {
        bool wanted = false;
        for (unsigned i = 0; i < m->count; i++)
            wanted |= !m->rules[i].system && patterns[m->rules[i].pattern].means[name];
        fuzz_expect(sy_fail_wants(names[name]) == wanted, "wanted are those that a rule means");
    }
}

static void ask(model *m, fuzz_input *input) {
    for (int i = 0; i < ASKED; i++) ask_once(m, input);
    check_wants(m);
    fuzz_expect(sy_failures() == m->failures, "failures are counted");
}

static void set_any_text(model *m, fuzz_input *input) {
    static const char signs[] = "0123456789:+*?|.>eveyrandomsizosc,mit ";
    char text[TEXT_MAX + 8];
    size_t length = fuzz_byte(input);
    if (length == 255) length += fuzz_byte(input) % 8;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = fuzz_byte(input);
        text[i] = byte < 250 ? signs[byte % (sizeof signs - 1)] : (char)(byte | 1);
    }
    text[length] = '\0';
    bool valid = sy_fail_valid(text);
    fuzz_expect(!valid || length <= TEXT_MAX, "what is too long is not taken");
    if (!valid) {
        fuzz_expect(sy_set_failures(text) == -1 && errno == EINVAL, "what is not valid is EINVAL");
        ask(m, input);
        return;
    }
    fuzz_expect(sy_set_failures(text) == 0 && sy_failures() == 0, "what is valid is taken");
    for (int i = 0; i < ASKED; i++) sy_fail_due(names[i % NAMES], (size_t)i);
}

static void run(void *arg) {
    fuzz_input *input = arg;
    model *m = &the_model;
    make_rules(m, input);
    bool valid = m->count <= RULES_MAX && strlen(m->text) <= TEXT_MAX;
    fuzz_expect((sy_set_failures(m->text) == 0) == valid, "a specification is taken");
    if (!valid) return;
    ask(m, input);
    set_any_text(m, input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input input = {data, size};
    if (!pages) {
        pages = sy_os_reserve(sy_os_page_size(), sy_os_page_size(), NULL);
        fuzz_expect(pages && sy_os_commit(pages, sy_os_page_size()) == 0, "there is a page");
    }
    sy_set_failures(NULL);
    sy_fake_catch(run, &input);
    return 0;
}
