/*
 * options.c: see options.h. The settings are one number for each row of the table, and the texts.
 * They change together, under a lock, and are then published to the words that the library reads.
 */
#include "debug/options.h"

#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "debug/callback.h"
#include "debug/fail.h"
#include "debug/services.h"
#include "debug/values.h"
#include "os/lock.h"
#include "os/os.h"

/* ---- the table ---- */

enum {
    DEBUG,
    CHECK,
    REDZONE,
    POISON,
    QUARANTINE,
    EXIT_CHECK,
    ZERO,
    GUARD,
    SAMPLE,
    PROFILE,
    PROFILE_FILE,
    GUARD_SLOTS,
    RANDOM,
    EDGES,
    DUMP,
    LOCK,
    AUDIT,
    STACK_DEPTH,
    UNWIND,
    LEAKS,
    LEAK_STATUS,
    FAIL,
    ONLY,
    REPORT,
    STATS,
    STATS_ON,
    STATS_FILE,
    HELP,
    COLOUR,
    SYMBOLS,
    EXPLAIN,
    ON_FAULT,
    TOOLS,
    DECAY,
    MAINTENANCE,
    SYSTEM_FILES,
    NAMES,
    LIMIT,
    SLACK,
    HUGE_PAGES,
    OPTIONS
};

/* Indexes of texts, from 1. */
enum { NO_TEXT, TEXT_FAIL, TEXT_ONLY, TEXT_REPORT, TEXT_STATS_FILE, TEXT_PROFILE_FILE, TEXTS };

/* Indexes of types of values. */
typedef enum value_type {
    TYPE_YES_NO,
    TYPE_TEXT,
    TYPE_FAILURES,
    TYPE_REDZONE,
    TYPE_QUARANTINE,
    TYPE_GUARD,
    TYPE_GUARD_SLOTS,
    TYPE_AUDIT,
    TYPE_STACK_DEPTH,
    TYPE_DECAY,
    TYPE_LIMIT,
    TYPE_PROFILE,
    TYPE_SLACK,
    TYPE_HUGE,
    TYPE_LEAKS,
    TYPE_LEAK_STATUS,
    TYPE_EXPLAIN,
    TYPE_MAINTENANCE,
    TYPE_SIGNALS,
    TYPE_UNWIND,
    TYPE_COLOUR,
    TYPE_ON_FAULT,
    TYPE_TOOLS,
} value_type;

/* As few pointers as possible: they take pages of each process's own. */
typedef struct row {
    sy_option says; /* describes the option; `bare` and `initial` are read as any value is */
    unsigned check; /* the flag of a cache that the option sets if it is on */
    /* Without this service of the platform, the option keeps its initial value. 0: needs none. */
    unsigned service;
    uint8_t type; /* value_type */
    uint8_t text; /* the index of its text */
} row;

static bool read_leaks(const sy_value_type *type, sy_word word, uint64_t *value) {
    bool all = sy_word_is(word, "all");
    *value = SY_LEAKS_AT_DESTROY | SY_LEAKS_AT_EXIT;
    if (!all && !sy_read_set(type, word, value)) return false;
    if (*value == SY_LEAKS_LOST) *value |= SY_LEAKS_AT_EXIT;
    return true;
}

/* Reads auto, or any word for yes or no. */
static bool read_explain(const sy_value_type *type, sy_word word, uint64_t *value) {
    if (sy_read_choice(type, word, value)) return true;
    if (!sy_read_yes(type, word, value)) return false;
    *value = *value == SY_VALUE_OFF ? SY_EXPLAIN_NO : SY_EXPLAIN_YES;
    return true;
}

static bool read_maintenance(const sy_value_type *type, sy_word word, uint64_t *value) {
    if (sy_read_choice(type, word, value)) return true;
    if (!sy_read_yes(type, word, value)) return false;
    *value = *value == SY_VALUE_OFF ? SY_MAINTENANCE_NO : SY_MAINTENANCE_YES;
    return true;
}

/* Reads a text: not empty, and without control characters, which would disturb a terminal. */
static bool read_text(const sy_value_type *type, sy_word word, uint64_t *value) {
    (void)type;
    for (size_t i = 0; i < word.length; i++)
        if ((unsigned char)word.start[i] < ' ' || word.start[i] == 127) return false;
    *value = 0;
    return word.length > 0 && word.length <= SY_OPTION_TEXT_MAX;
}

static bool read_failures(const sy_value_type *type, sy_word word, uint64_t *value) {
    char text[SY_OPTION_TEXT_MAX + 1] = "";
    if (!read_text(type, word, value)) return false;
    memcpy(text, word.start, word.length);
    return strcmp(text, "off") == 0 || sy_fail_valid(text);
}

enum {
    REDZONE_MAX = 64 << 10, /* a unit */
    WAITING_MAX = 1 << 20,  /* 8 MiB of pointers for a cache */
    LOG_MAX = 1 << 20,
    SLOTS_MAX = 64 << 10, /* 256 MiB of guarded pages */
    SLOTS_USUAL = 16 << 10,
    DEPTH_MAX = 64,
    STATUS_MAX = 255, /* of a process */
    RARELY = 1000000000,
    DECAY_MAX = 1000000000, /* milliseconds: 11 days */
    PERCENT_MAX = 1000000,
    PROFILE_MAX = 1 << 30, /* bytes: a sample may stand for so many */
};

static const sy_value_type types[] = {
    [TYPE_YES_NO] = {.read = sy_read_yes, .print = sy_print_yes},
    [TYPE_TEXT] = {.read = read_text},
    [TYPE_FAILURES] = {.read = read_failures},
    [TYPE_REDZONE] = {.read = sy_read_bytes,
                      .print = sy_print_bytes,
                      .low = 16,
                      .high = REDZONE_MAX,
                      .granule = 16,
                      .can_be_off = true},
    [TYPE_QUARANTINE] = {.read = sy_read_number,
                         .print = sy_print_number,
                         .low = 1,
                         .high = WAITING_MAX,
                         .can_be_off = true},
    [TYPE_GUARD] = {.read = sy_read_rate,
                    .print = sy_print_rate,
                    .low = 1,
                    .high = RARELY,
                    .can_be_off = true},
    [TYPE_GUARD_SLOTS] = {.read = sy_read_number,
                          .print = sy_print_number,
                          .low = 1,
                          .high = SLOTS_MAX},
    [TYPE_AUDIT] = {.read = sy_read_number,
                    .print = sy_print_number,
                    .high = LOG_MAX,
                    .power_of_two = true,
                    .can_be_off = true},
    [TYPE_STACK_DEPTH] = {.read = sy_read_number,
                          .print = sy_print_number,
                          .low = 1,
                          .high = DEPTH_MAX},
    [TYPE_DECAY] = {.read = sy_read_time,
                    .print = sy_print_time,
                    .low = 1,
                    .high = DECAY_MAX,
                    .can_be_off = true},
    [TYPE_LIMIT] = {.read = sy_read_bytes,
                    .print = sy_print_bytes,
                    .low = 1,
                    .high = INT64_MAX,
                    .can_be_off = true},
    [TYPE_PROFILE] = {.read = sy_read_bytes,
                      .print = sy_print_bytes,
                      .low = 1,
                      .high = PROFILE_MAX,
                      .can_be_off = true},
    [TYPE_SLACK] = {.read = sy_read_percent,
                    .print = sy_print_percent,
                    .low = 1,
                    .high = PERCENT_MAX,
                    .can_be_off = true},
    [TYPE_HUGE] = {.read = sy_read_bytes,
                   .print = sy_print_bytes,
                   .low = 2 << 20,
                   .high = INT64_MAX,
                   .can_be_off = true},
    [TYPE_LEAKS] = {.read = read_leaks,
                    .print = sy_print_set,
                    .choices = "destroy|exit|unreachable"},
    [TYPE_LEAK_STATUS] = {.read = sy_read_number, .print = sy_print_number, .high = STATUS_MAX},
    [TYPE_EXPLAIN] = {.read = read_explain, .print = sy_print_choice, .choices = "auto|yes|no"},
    [TYPE_MAINTENANCE] = {.read = read_maintenance,
                          .print = sy_print_choice,
                          .choices = "auto|yes|no"},
    [TYPE_SIGNALS] = {.read = sy_read_choice,
                      .print = sy_print_choice,
                      .choices = "off|SIGUSR1|SIGUSR2|SIGHUP|SIGURG"},
    [TYPE_UNWIND] = {.read = sy_read_choice,
                     .print = sy_print_choice,
                     .choices = "auto|frames|tables"},
    [TYPE_COLOUR] = {.read = sy_read_choice,
                     .print = sy_print_choice,
                     .choices = "auto|always|never"},
    [TYPE_ON_FAULT] = {.read = sy_read_choice,
                       .print = sy_print_choice,
                       .choices = "abort|continue"},
    [TYPE_TOOLS] = {.read = sy_read_choice, .print = sy_print_choice, .choices = "auto|off|malloc"},
};

static const row table[OPTIONS] = {
    [DEBUG] =
        {.says = {"debug", "yes|no", "yes", "no",
                  "The checks for development and tests: sets check, redzone, poison, "
                  "quarantine, audit and explain. Options after it can change each of these."},
         .type = TYPE_YES_NO},
    [CHECK] = {.says = {"check", "yes|no", "yes", "no",
                        "Every free is validated: foreign pointers, double frees, wrong caches and "
                        "sizes."},
               .type = TYPE_YES_NO,
               .check = SY_CHECKED},
    [REDZONE] = {.says = {"redzone", "BYTES, 16 to 64K, or off", "64", "off",
                          "This many bytes, rounded up to a multiple of 16, before and behind "
                          "each object are filled and verified."},
                 .type = TYPE_REDZONE,
                 .check = SY_REDZONE},
    [POISON] = {.says = {"poison", "yes|no", "yes", "no",
                         "Free objects are filled with a pattern, which is verified "
                         "before they are given out again."},
                .type = TYPE_YES_NO,
                .check = SY_POISON},
    [QUARANTINE] = {.says = {"quarantine", "N, 1 to 1048576, or off", "256", "off",
                             "This many freed objects of each cache wait before they are "
                             "reused."},
                    .type = TYPE_QUARANTINE,
                    .check = SY_QUARANTINE},
    [EXIT_CHECK] = {.says = {"exit-check", "yes|no", "yes", "yes",
                             "Free objects that poison has filled are verified once more "
                             "when the process ends."},
                    .type = TYPE_YES_NO},
    [ZERO] = {.says = {"zero", "yes|no", "yes", "no",
                       "Objects are filled with zeroes when they are freed."},
              .type = TYPE_YES_NO,
              .check = SY_ZERO},
    [GUARD] = {.says = {"guard", "1/N, N, all or off", "1/1000", "off",
                        "One allocation in N gets pages of its own, with inaccessible "
                        "pages beside them."},
               .type = TYPE_GUARD,
               .check = SY_GUARD,
               .service = SY_OS_GUARDS},
    [SAMPLE] = {.says = {"sample", "1/N, N, all or off", "1/50000", "off",
                         "The drop-in malloc gives one allocation in N pages of its own, as guard "
                         "does, but with N of 10,000 or more at most 200 in a second; each "
                         "allocation takes two instructions more, and frees stay as fast as "
                         "without."},
                .type = TYPE_GUARD,
                .service = SY_OS_GUARDS},
    [PROFILE] = {.says = {"profile", "BYTES, or off", "512K", "off",
                          "Samples objects, one in so many allocated bytes, with their stacks, for "
                          "sy_profile_write."},
                 .type = TYPE_PROFILE,
                 .service = SY_OS_STACKS},
    [PROFILE_FILE] = {.says = {"profile-file", "PATH, or off", NULL, "off",
                               "The file that the profile is written to at exit, in the format of "
                               "pprof; %p in the name stands for the number of the process. Sets "
                               "profile, unless that is set itself."},
                      .type = TYPE_TEXT,
                      .text = TEXT_PROFILE_FILE,
                      .service = SY_OS_STACKS},
    [GUARD_SLOTS] = {.says = {"guard-slots", "N, 1 to 65536", NULL, "16384",
                              "The most objects that are guarded at a time, freed ones included; "
                              "at first 256, and more as objects that live long need them."},
                     .type = TYPE_GUARD_SLOTS,
                     .service = SY_OS_GUARDS},
    [RANDOM] = {.says = {"random", "yes|no", "yes", "no", "Slots are given out in random order."},
                .type = TYPE_YES_NO,
                .check = SY_RANDOM},
    [EDGES] = {.says = {"edges", "yes|no", "yes", "no",
                        "The ends of each slab are filled, and verified when the slab "
                        "is released."},
               .type = TYPE_YES_NO,
               .check = SY_EDGES},
    [DUMP] = {.says = {"dump", "yes|no", "yes", "yes", "Core dumps contain the memory of objects."},
              .type = TYPE_YES_NO},
    [LOCK] = {.says = {"lock", "yes|no", "yes", "no",
                       "The memory of objects is locked: never written to swap."},
              .type = TYPE_YES_NO,
              .check = SY_LOCKED,
              .service = SY_OS_LOCKS},
    [AUDIT] = {.says = {"audit", "N, 0 to 1048576, or off", "0", "off",
                        "The stack, thread and time of each allocation and free are "
                        "recorded, and the last N operations of each cache are kept "
                        "(N is rounded up to a power of two)."},
               .type = TYPE_AUDIT,
               .check = SY_AUDIT},
    [STACK_DEPTH] = {.says = {"stack-depth", "N, 1 to 64", NULL, "16",
                              "The number of frames that are recorded of each stack."},
                     .type = TYPE_STACK_DEPTH,
                     .service = SY_OS_STACKS},
    [UNWIND] = {.says = {"unwind", "auto|frames|tables", NULL, "auto",
                         "How stacks are found: by frame pointers, by unwinding tables, or by "
                         "whichever works."},
                .type = TYPE_UNWIND,
                .service = SY_OS_STACKS},
    [LEAKS] = {.says = {"leaks", "off, all, or destroy, exit, unreachable with + between", "exit",
                        "off",
                        "Live objects are reported when their cache is destroyed, "
                        "when the process exits, or at both times (all); with "
                        "unreachable, the report at exit lists only those that "
                        "nothing points to. Turns audit on."},
               .type = TYPE_LEAKS,
               .service = SY_OS_REPORTS},
    [LEAK_STATUS] = {.says = {"leak-status", "N, 0 to 255", NULL, "0",
                              "The exit status of a process that has leaks at exit; 0: the "
                              "status stays as it is."},
                     .type = TYPE_LEAK_STATUS,
                     .service = SY_OS_REPORTS},
    [FAIL] = {.says = {"fail", "SPECIFICATION, or off", NULL, "off",
                       "Allocations, or calls to the system, are made to fail."},
              .type = TYPE_FAILURES,
              .text = TEXT_FAIL},
    [ONLY] = {.says = {"only", "NAMES", NULL, "*",
                       "The caches that checks apply to: names, which may contain * "
                       "and ?, with + between them."},
              .type = TYPE_TEXT,
              .text = TEXT_ONLY},
    [REPORT] = {.says = {"report", "PATH, or stderr", NULL, "stderr",
                         "The file that reports are appended to."},
                .type = TYPE_TEXT,
                .text = TEXT_REPORT,
                .service = SY_OS_REPORTS},
    [STATS] = {.says = {"stats", "yes|no", "yes", "no",
                        "A table of memory by cache is written at exit."},
               .type = TYPE_YES_NO,
               .service = SY_OS_REPORTS},
    [STATS_ON] = {.says = {"stats-on", "SIGUSR1, SIGUSR2, SIGHUP, SIGURG, or off", NULL, "off",
                           "The background thread writes this table at this signal, within a "
                           "second. The program must not use the signal itself."},
                  .type = TYPE_SIGNALS,
                  .service = SY_OS_SIGNALS},
    [STATS_FILE] = {.says = {"stats-file", "PATH, or stderr", NULL, "stderr",
                             "The file that these tables are appended to; if its name ends in "
                             ".json, each is a line of JSON."},
                    .type = TYPE_TEXT,
                    .text = TEXT_STATS_FILE,
                    .service = SY_OS_REPORTS},
    [HELP] = {.says = {"help", "yes|no", "yes", "no",
                       "All options are listed on stderr at start; the program then "
                       "runs as usual."},
              .type = TYPE_YES_NO},
    [COLOUR] = {.says = {"colour", "auto|always|never", NULL, "auto",
                         "Colours in reports; auto: on a terminal, if NO_COLOR is not set."},
                .type = TYPE_COLOUR,
                .service = SY_OS_REPORTS},
    [SYMBOLS] = {.says = {"symbols", "yes|no", "yes", "yes",
                          "Reports name functions, files and lines."},
                 .type = TYPE_YES_NO,
                 .service = SY_OS_REPORTS},
    [EXPLAIN] = {.says = {"explain", "auto|yes|no", "yes", "auto",
                          "A report explains a SIGSEGV or SIGBUS that hits a guarded "
                          "object or comes from a pointer that was read from poison; "
                          "auto: once an object is guarded."},
                 .type = TYPE_EXPLAIN,
                 .service = SY_OS_ACCESSES},
    [ON_FAULT] = {.says = {"on-fault", "abort|continue", NULL, "abort",
                           "After a report, the process aborts or continues."},
                  .type = TYPE_ON_FAULT},
    [TOOLS] = {.says = {"tools", "auto|off|malloc", NULL, "auto",
                        "Valgrind or AddressSanitizer, if present, is told about each "
                        "object (auto) or not (off); or objects are allocated with "
                        "malloc (malloc)."},
               .type = TYPE_TOOLS},
    [DECAY] = {.says = {"decay", "TIME: 1500ms, 2s, 1min, or off", NULL, "250ms",
                        "Memory that stays unused returns to the system within two to "
                        "four times this time."},
               .type = TYPE_DECAY},
    [MAINTENANCE] = {.says = {"maintenance", "auto|yes|no", "yes", "no",
                              "A background thread returns unused memory, instead of the "
                              "threads that allocate; auto: once 16 MiB are in use. "
                              "libslabyard-malloc: auto."},
                     .type = TYPE_MAINTENANCE,
                     .service = SY_OS_BACKGROUND},
    [SYSTEM_FILES] = {.says = {"system-files", "yes|no", "yes", "yes",
                               "Files of the system tell the memory limit, the memory in use and "
                               "the setting of huge pages. They are read at the start and by the "
                               "background thread; with no, never, and maintenance=auto starts "
                               "no thread."},
                      .type = TYPE_YES_NO},
    [NAMES] = {.says = {"names", "yes|no", "yes", "no",
                        "Mappings of the library have names in the system's list of them "
                        "(/proc/PID/maps), such as [anon:slabyard]."},
               .type = TYPE_YES_NO},
    [LIMIT] = {.says = {"limit", "BYTES: 500M, 2G, or off", NULL, "off",
                        "The most bytes that slabs and large objects of the process "
                        "may take."},
               .type = TYPE_LIMIT},
    [SLACK] = {.says = {"slack", "PER CENT: 25%, 100%, or off", NULL, "off",
                        "Bounds the memory that Slabyard holds: to the most that live objects "
                        "needed at a moment of the last one to two seconds, plus this part of it, "
                        "at least 4 MiB."},
               .type = TYPE_SLACK},
    [HUGE_PAGES] = {.says = {"huge", "BYTES, 2M or more, or off", NULL, "128M",
                             "Once this many bytes are in use, caches that grow get huge "
                             "pages, if the system has them. Large objects that the program "
                             "writes get them from a quarter of it."},
                    .type = TYPE_HUGE,
                    .service = SY_OS_HUGE_PAGES},
};

static bool read_value(const row *it, sy_word word, uint64_t *value) {
    return types[it->type].read(&types[it->type], word, value);
}

static const unsigned late_rows[] = {
    [SY_LATE_DECAY] = DECAY, [SY_LATE_MAINTENANCE] = MAINTENANCE, [SY_LATE_LIMIT] = LIMIT,
    [SY_LATE_SLACK] = SLACK, [SY_LATE_FAILURES] = FAIL,           [SY_LATE_STATS_ON] = STATS_ON};

/* ---- settings ---- */

typedef struct settings {
    uint64_t value[OPTIONS];
    char text[TEXTS][SY_OPTION_TEXT_MAX + 1];
} settings;

static sy_lock lock = SY_LOCK_INIT(SY_RANK_OPTIONS);
static settings current; /* guarded by the lock, as is `waiting` */
static uint64_t waiting; /* a bit for each row that was set and not yet taken by its layer */
static uint64_t chosen;  /* a bit for each row that SLABYARD or the program has set */
static _Atomic bool loaded;
static _Atomic(void (*)(void)) on_change;

/* The table's initial values, for readers before SLABYARD is read. */
sy_options sy_options_now = {.redzone = 64,
                             .quarantine = 256,
                             .guard_every = 1000,
                             .guard_slots = SLOTS_USUAL,
                             .stack_depth = 16,
                             .huge = (size_t)128 << 20,
                             .exit_check = true,
                             .symbols = true,
                             .system_files = true};

/* The defaults that this library has in place of the table's, as sy_os_default_options gives them.
 * A 0 byte ends each of them, and one more ends the list. Written before `loaded` is set. */
static char own_defaults[80];

static sy_word word_of(const char *text) { return (sy_word){text, strlen(text)}; }

static void keep_defaults(const char *defaults) {
    for (size_t i = 0; i < sizeof own_defaults - 2 && defaults[i]; i++)
        if (defaults[i] != ',') own_defaults[i] = defaults[i];
}

/* The option as the table describes it, with the default that it has in this library. */
static sy_option describe(unsigned which) {
    sy_option says = table[which].says;
    size_t length = strlen(says.name);
    for (const char *next = own_defaults; *next; next += strlen(next) + 1)
        if (strncmp(next, says.name, length) == 0 && next[length] == '=')
            says.initial = next + length + 1;
    return says;
}

static bool set_value(settings *all, unsigned which, sy_word word) {
    const row *it = &table[which];
    uint64_t value;
    if (!read_value(it, word, &value)) return false;
    all->value[which] = value;
    if (it->text) {
        memcpy(all->text[it->text], word.start, word.length);
        all->text[it->text][word.length] = 0;
    }
    return true;
}

static void set_initial(settings *all) {
    for (unsigned i = 0; i < OPTIONS; i++) set_value(all, i, word_of(table[i].says.initial));
}

/* The number of an option. If the option is off: the number that its name alone would mean. */
static uint32_t amount(unsigned which) {
    uint64_t value = current.value[which];
    const row *it = &table[which];
    if (value == SY_VALUE_OFF && it->says.bare) read_value(it, word_of(it->says.bare), &value);
    return (uint32_t)value;
}

static bool is_on(unsigned which) { return current.value[which] != SY_VALUE_OFF; }

static unsigned choice(unsigned which) { return (unsigned)current.value[which]; }

static unsigned checks(void) {
    unsigned flags = is_on(DUMP) ? 0 : SY_NO_DUMP;
    for (unsigned i = 0; i < OPTIONS; i++)
        if (is_on(i)) flags |= table[i].check;
    return choice(LEAKS) ? flags | SY_AUDIT : flags;
}

/* Bytes a sample; 0: none is taken. */
static uint64_t profile_mean(void) {
    bool has_file = strcmp(current.text[TEXT_PROFILE_FILE], "off") != 0;
    bool implied = has_file && !(chosen & UINT64_C(1) << PROFILE);
    return is_on(PROFILE) || implied ? amount(PROFILE) : 0;
}

/* Writes the settings to the words that the library reads. The lock is held. */
static void publish(void) {
    SY_HOLDS(&lock);
    sy_options_now.checks = checks();
    sy_options_now.redzone = amount(REDZONE);
    sy_options_now.quarantine = amount(QUARANTINE);
    sy_options_now.quarantine_said = chosen & UINT64_C(1) << QUARANTINE;
    sy_options_now.audit_log = amount(AUDIT);
    sy_options_now.guard_every = amount(GUARD);
    sy_options_now.sample_every = is_on(SAMPLE) ? amount(SAMPLE) : 0;
    sy_options_now.profile = profile_mean();
    sy_options_now.guard_slots = amount(GUARD_SLOTS);
    sy_options_now.stack_depth = amount(STACK_DEPTH);
    sy_options_now.unwind = choice(UNWIND);
    sy_options_now.leaks = choice(LEAKS);
    sy_options_now.leak_status = choice(LEAK_STATUS);
    sy_options_now.tools = choice(TOOLS);
    sy_options_now.colour = choice(COLOUR);
    sy_options_now.huge = is_on(HUGE_PAGES) ? (size_t)current.value[HUGE_PAGES] : 0;
    sy_options_now.exit_check = is_on(EXIT_CHECK);
    sy_options_now.symbols = is_on(SYMBOLS);
    sy_options_now.system_files = is_on(SYSTEM_FILES);
    sy_os_show_names(is_on(NAMES));
    sy_options_now.stats = is_on(STATS);
    sy_options_now.explain = choice(EXPLAIN);
    sy_options_now.go_on = choice(ON_FAULT) != 0;
}

/* ---- reading ---- */

typedef enum problem { NONE, UNKNOWN, NO_SUCH_VALUE, VALUE_NEEDED, NOT_HERE } problem;

static unsigned find_option(sy_word name) {
    unsigned which = 0;
    while (which < OPTIONS && !sy_word_is(name, table[which].says.name)) which++;
    return which;
}

/* A part of the options' text: `name` or `name=value`. */
typedef struct part {
    sy_word name, value;
    bool bare;
} part;

/* Finds the next part that is not empty. Returns false if there is none. */
static bool next_part(sy_word *rest, part *next) {
    while (rest->length) {
        sy_word whole = sy_word_split(rest, ',');
        size_t length = whole.length;
        sy_word name = sy_word_split(&whole, '=');
        *next = (part){sy_word_trim(name), sy_word_trim(whole), name.length == length};
        if (next->name.length || !next->bare) return true;
    }
    return false;
}

/* The service that an option needs, and that is missing; 0: none. `stats-on`, and one value of
 * `leaks`, need one more. */
static unsigned missing_service(unsigned which) {
    unsigned service = table[which].service;
    if (which == LEAKS && sy_os_has(service)) service = SY_OS_COPIES;
    if (which == STATS_ON && sy_os_has(service)) service = SY_OS_REPORTS;
    return sy_os_has(service) ? 0 : service;
}

static bool is_initial(unsigned which, uint64_t value) {
    const row *it = &table[which];
    uint64_t initial;
    return read_value(it, word_of(it->says.initial), &initial) && value == initial;
}

/* Whether the option can have this value, which was read from `word`, although a service is
 * missing. */
static bool works_without(unsigned which, sy_word word, uint64_t value) {
    bool copies_alone = which == LEAKS && sy_os_has(SY_OS_REPORTS);
    if (copies_alone && !(value & SY_LEAKS_LOST)) return true;
    if (table[which].text != NO_TEXT) return sy_word_is(word, table[which].says.initial);
    return is_initial(which, value);
}

/* Turns what the option `debug` stands for on or off. */
static void set_debug(settings *all, bool on) {
    static const unsigned rows[] = {CHECK, REDZONE, POISON, QUARANTINE, AUDIT, EXPLAIN};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *it = &table[rows[i]];
        bool can = !it->service || sy_os_has(it->service);
        set_value(all, rows[i], word_of(on && can ? it->says.bare : it->says.initial));
    }
}

/* Carries out a part in *all, and marks its row in *said. */
static problem set_part(settings *all, part said_part, uint64_t *said) {
    unsigned which = find_option(said_part.name);
    if (which == OPTIONS) return UNKNOWN;
    const char *bare = table[which].says.bare;
    if (said_part.bare && !bare) return VALUE_NEEDED;
    uint64_t before = all->value[which];
    sy_word word = said_part.bare ? word_of(bare) : said_part.value;
    if (!set_value(all, which, word)) return NO_SUCH_VALUE;
    if (missing_service(which) && !works_without(which, word, all->value[which])) {
        all->value[which] = before;
        return NOT_HERE;
    }
    *said |= UINT64_C(1) << which;
    if (which == DEBUG) set_debug(all, all->value[DEBUG] != SY_VALUE_OFF);
    return NONE;
}

/* Carries out all parts that are correct. Returns the problem with the last of the others, or
 * NONE. */
static problem set_all(settings *all, const char *text, uint64_t *said) {
    problem last = NONE;
    part next;
    for (sy_word rest = word_of(text); next_part(&rest, &next);) {
        problem with = set_part(all, next, said);
        if (with != NONE) last = with;
    }
    return last;
}

/* ---- the environment ---- */

enum {
    ECHO_MAX = 60, /* characters of a wrong name or value that are repeated */
    NEAR = 2,      /* a name at most so many steps away is suggested, */
    NEAR_SHARE = 2 /* if the word is more than so many times as long as the steps */
};

static void add_word(sy_text *text, sy_word word) {
    sy_text_add(text, "\"");
    for (size_t i = 0; i < word.length && i < ECHO_MAX; i++) {
        bool plain = (unsigned char)word.start[i] >= ' ' && word.start[i] != 127;
        sy_text_add(text, (char[]){(char)(plain ? word.start[i] : '?'), 0});
    }
    sy_text_add(text, word.length > ECHO_MAX ? "...\"" : "\"");
}

static void add_nearest(sy_text *text, sy_word name) {
    unsigned nearest = OPTIONS, least = NEAR + 1;
    for (unsigned i = 0; i < OPTIONS; i++) {
        unsigned distance = sy_word_distance(name, table[i].says.name);
        if (distance >= least || (size_t)NEAR_SHARE * distance >= name.length) continue;
        least = distance;
        nearest = i;
    }
    if (nearest == OPTIONS) return;
    sy_text_add(text, ", did you mean ");
    add_word(text, word_of(table[nearest].says.name));
    sy_text_add(text, "?");
}

/*
 * Writes, for example:
 * slabyard: option "chekc" is unknown (SLABYARD), did you mean "check"?
 */
static void tell(problem what, part said) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: option ");
    add_word(&text, said.name);
    if (what == UNKNOWN) {
        sy_text_add(&text, " is unknown (SLABYARD)");
        add_nearest(&text, said.name);
    } else if (what == NOT_HERE) {
        sy_text_add(&text, " cannot be set (SLABYARD), this platform lacks ");
        sy_text_add(&text, sy_service_meaning(missing_service(find_option(said.name))));
    } else {
        sy_text_add(&text, what == VALUE_NEEDED ? " needs a value" : " cannot be ");
        if (what == NO_SUCH_VALUE) add_word(&text, said.value);
        sy_text_add(&text, " (SLABYARD), it takes ");
        sy_text_add(&text, table[find_option(said.name)].says.values);
    }
    sy_text_add(&text, "\n");
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
}

static SY_COLD void tell_problems(const char *text) {
    settings nowhere;
    uint64_t said = 0;
    set_initial(&nowhere);
    part next;
    for (sy_word rest = word_of(text); next_part(&rest, &next);) {
        problem what = set_part(&nowhere, next, &said);
        if (what != NONE) tell(what, next);
    }
}

/* ---- help ---- */

enum { HELP_WIDTH = 80, HELP_INDENT = 6 };

/* Adds a sentence in lines of at most HELP_WIDTH columns. */
static void add_wrapped(sy_text *text, const char *sentence) {
    size_t column = HELP_WIDTH;
    for (sy_word rest = word_of(sentence); rest.length;) {
        sy_word word = sy_word_split(&rest, ' ');
        bool fits = column + 1 + word.length <= HELP_WIDTH;
        sy_text_add(text, fits ? " " : "\n      ");
        column = (fits ? column + 1 : HELP_INDENT) + word.length;
        for (size_t i = 0; i < word.length; i++) sy_text_add(text, (char[]){word.start[i], 0});
    }
    sy_text_add(text, "\n");
}

/*
 * Writes, for example:
 *   redzone=BYTES, 16 to 64K, or off  (default: off; name alone: 64)
 *       This many bytes before and behind ...
 */
static void tell_option(const sy_option *option, unsigned service) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "  ");
    sy_text_add(&text, option->name);
    sy_text_add(&text, "=");
    sy_text_add(&text, option->values);
    sy_text_add(&text, "  (default: ");
    sy_text_add(&text, option->initial);
    if (option->bare) {
        sy_text_add(&text, "; name alone: ");
        sy_text_add(&text, option->bare);
    }
    sy_text_add(&text, ")");
    add_wrapped(&text, option->meaning);
    if (service && !sy_os_has(service)) {
        sy_text_add(&text, "      Not on this platform, which lacks ");
        sy_text_add(&text, sy_service_meaning(service));
        sy_text_add(&text, ".\n");
    }
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
}

static SY_COLD void tell_help(void) {
    static const char title[] = "slabyard: options of SLABYARD, with commas between:\n";
    sy_os_write(sy_os_stderr(), title, sizeof title - 1);
    for (unsigned i = 0; i < OPTIONS; i++) {
        sy_option says = describe(i);
        tell_option(&says, table[i].service);
    }
}

void sy_options_load(void) {
    if (atomic_load_explicit(&loaded, memory_order_acquire)) return;
    const char *text = sy_os_option("SLABYARD"), *defaults = sy_os_default_options();
    bool first = false, fine = true, help = false;
    sy_lock_acquire(&lock);
    if (!atomic_load_explicit(&loaded, memory_order_relaxed)) {
        first = true;
        sy_os_note_stderr();
        set_initial(&current);
        set_all(&current, defaults, &waiting);
        keep_defaults(defaults);
        if (text) fine = set_all(&current, text, &chosen) == NONE;
        waiting |= chosen;
        publish();
        help = is_on(HELP);
        atomic_store_explicit(&loaded, true, memory_order_release);
    }
    sy_lock_release(&lock);
    if (first && !fine) tell_problems(text);
    if (help) tell_help();
}

bool sy_options_ask_for_accesses(void) {
    const char *text = sy_os_option("SLABYARD");
    settings asked;
    uint64_t said = 0;
    if (!text) return false;
    set_initial(&asked);
    set_all(&asked, text, &said);
    if (asked.value[EXPLAIN] != SY_EXPLAIN_AUTO) return asked.value[EXPLAIN] == SY_EXPLAIN_YES;
    return asked.value[GUARD] != SY_VALUE_OFF || asked.value[SAMPLE] != SY_VALUE_OFF;
}

static void tell_change(void) {
    void (*changed)(void) = atomic_load(&on_change);
    if (changed) changed();
}

void sy_options_auto_maintenance(void) {
    sy_options_load();
    sy_lock_acquire(&lock);
    uint64_t bit = UINT64_C(1) << MAINTENANCE;
    bool free_to_choose = !(chosen & bit) && sy_os_has(SY_OS_BACKGROUND);
    if (free_to_choose) {
        current.value[MAINTENANCE] = SY_MAINTENANCE_AUTO;
        waiting |= bit;
    }
    sy_lock_release(&lock);
    if (free_to_choose) tell_change();
}

/* ---- public functions ---- */

int sy_set_options(const char *text) {
    settings draft;
    uint64_t said = 0;
    if (!text) {
        errno = EINVAL;
        return -1;
    }
    sy_options_load();
    sy_lock_acquire(&lock);
    draft = current;
    problem with = set_all(&draft, text, &said);
    if (with == NONE) {
        current = draft;
        chosen |= said;
        waiting |= said;
        publish();
    }
    sy_lock_release(&lock);
    if (with == NONE) {
        tell_change();
        return 0;
    }
    errno = with == NOT_HERE ? ENOTSUP : EINVAL;
    return -1;
}

int sy_get_option(const char *name, char *value, size_t room) {
    unsigned which = name ? find_option(word_of(name)) : OPTIONS;
    if (which == OPTIONS) {
        errno = EINVAL;
        return -1;
    }
    const row *it = &table[which];
    sy_text text = {.length = 0};
    sy_options_load();
    sy_lock_acquire(&lock);
    if (it->text)
        sy_text_add(&text, current.text[it->text]);
    else
        types[it->type].print(&types[it->type], current.value[which], &text);
    sy_lock_release(&lock);
    if (text.length >= room) {
        errno = ERANGE;
        return -1;
    }
    memcpy(value, text.bytes, text.length);
    value[text.length] = 0;
    return (int)text.length;
}

int sy_option_each(int (*visit)(void *arg, const sy_option *option), void *arg) {
    int result = 0;
    sy_options_load();
    SY_CALLBACK(call, .function = "visitor of sy_option_each");
    for (unsigned i = 0; i < OPTIONS && result == 0; i++) {
        sy_option says = describe(i);
        result = visit(arg, &says);
    }
    call.returned = true;
    return result;
}

/* ---- for the library ---- */

bool sy_options_mean(const char *cache) {
    bool meant = false;
    sy_options_load();
    sy_lock_acquire(&lock);
    for (sy_word rest = word_of(current.text[TEXT_ONLY]); rest.length && !meant;) {
        sy_word pattern = sy_word_split(&rest, '+');
        meant = sy_glob(pattern.start, pattern.length, cache);
    }
    sy_lock_release(&lock);
    return meant;
}

/* Copies a text. If it is the word `none`, which stands for no text, the copy is "". */
static void copy_text(unsigned which, const char *none, char *text) {
    sy_options_load();
    sy_lock_acquire(&lock);
    bool set = strcmp(current.text[which], none) != 0;
    memcpy(text, current.text[which], sizeof current.text[which]);
    sy_lock_release(&lock);
    if (!set) text[0] = 0;
}

void sy_options_report_path(char *path) { copy_text(TEXT_REPORT, "stderr", path); }

void sy_options_stats_path(char *path) { copy_text(TEXT_STATS_FILE, "stderr", path); }

void sy_options_profile_path(char *path) { copy_text(TEXT_PROFILE_FILE, "off", path); }

void sy_options_failures(char *text) { copy_text(TEXT_FAIL, "off", text); }

bool sy_options_take(sy_late option, uint64_t *value) {
    uint64_t bit = UINT64_C(1) << late_rows[option];
    sy_lock_acquire(&lock);
    bool said = waiting & bit;
    waiting &= ~bit;
    *value = current.value[late_rows[option]];
    sy_lock_release(&lock);
    if (*value == SY_VALUE_OFF) *value = 0;
    return said;
}

void sy_options_on_change(void (*changed)(void)) { atomic_store(&on_change, changed); }

static int start_options(void) {
    sy_options_load();
    return 0;
}

static void hold_options(void) { sy_lock_hold(&lock); }

static void drop_options(void) { sy_lock_drop(&lock); }

const sy_part sy_options_part = {
    .start = start_options, .hold = hold_options, .drop = drop_options};
