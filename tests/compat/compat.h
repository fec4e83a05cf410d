/*
 * compat.h: functions that the programs in this folder share. Each program is written from the
 * document of an earlier system, and built with the header that replaces this system's in compat/.
 * Its tests follow the document first, then the mistakes that an audit of this system found.
 */
#ifndef SLABYARD_TESTS_COMPAT_H
#define SLABYARD_TESTS_COMPAT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slabyard/fault.h>
#include <slabyard/stats.h>

#define EXPECT(condition)                                                       \
    do {                                                                        \
        if (condition) break;                                                   \
        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        abort();                                                                \
    } while (0)

/* ---- answers to bad input ---- */

/*
 * A table ANSWERS(A) has a row A(function, INPUT, holds) for each function and each kind of bad
 * input that the function can get. `holds` calls the function, and is true if it answers as the
 * earlier system did. Where the earlier system continued with corrupted memory, `holds` is true if
 * the mistake is reported. A call without a result is written (call, true).
 */
enum { NOTHING = 1, ZERO = 2, HUGE_SIZE = 4, FOREIGN = 8, STALE = 16, OTHER = 32 };
static const char *const input_names[] = {"NULL", "0", "overflow", "foreign", "stale"};

typedef struct answer {
    const char *function;
    unsigned input;
    const char *text;
    bool (*holds)(void);
} answer;

#define ANSWER_FUNCTION(function, input, holds) \
    static bool function##_##input(void) { return holds; }
#define ANSWER_ROW(function, input, holds) {#function, input, #holds, function##_##input},

#ifdef _WIN32

/* The status of a process that runs one row: the program, started again with the row's number. */
static inline int run_row(const answer *answers, size_t row) {
    const char *wanted = getenv("COMPAT_ROW");
    char number[32];
    if (wanted) _exit(answers[strtoul(wanted, NULL, 10)].holds() ? 0 : 1);
    snprintf(number, sizeof number, "%zu", row);
    EXPECT(setenv("COMPAT_ROW", number, 1) == 0);
    int status = (int)_spawnl(_P_WAIT, _pgmptr, "answers", NULL);
    EXPECT(unsetenv("COMPAT_ROW") == 0);
    return status;
}

#else

/* The status of a process that runs one row. */
static inline int run_row(const answer *answers, size_t row) {
    int status;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) _exit(answers[row].holds() ? 0 : 1);
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

#endif

/* Runs each row in a process of its own, so that a crash does not hide the other rows. Returns the
 * number of rows that do not hold. */
static inline int check_answers(const answer *answers, size_t count) {
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        int status = run_row(answers, i);
        if (status == 0) continue;
        fprintf(stderr, "%s: %s\n", WIFEXITED(status) ? "not so" : "crashes", answers[i].text);
        wrong++;
    }
    return wrong;
}

/* Returns the kinds of bad input that a function with these parameters can get. */
static inline unsigned inputs_of(const char *name, const char *parameters) {
    bool frees = strstr(name, "free") || strstr(name, "Free");
    unsigned inputs = strchr(parameters, '*') ? NOTHING : 0;
    if (strstr(parameters, "size_t ") || strstr(parameters, "uint32_t "))
        inputs |= ZERO | HUGE_SIZE;
    if (frees && (strstr(parameters, "void *") || strstr(parameters, "uintptr_t ")))
        inputs |= FOREIGN | STALE;
    if (strstr(parameters, "SlabHandle handle")) inputs |= ZERO | FOREIGN | STALE;
    return inputs;
}

/* Returns true if the table has a row of the function for each kind in `inputs`, and at least one
 * row of it. */
static inline bool are_answered(const answer *answers, size_t count, const char *name,
                                unsigned inputs) {
    unsigned answered = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(answers[i].function, name) == 0) answered |= answers[i].input;
    for (unsigned i = 0; i < sizeof input_names / sizeof *input_names; i++)
        if (inputs & ~answered & 1u << i)
            fprintf(stderr, "no row for %s and %s\n", name, input_names[i]);
    if (!answered) fprintf(stderr, "no row for %s\n", name);
    return answered && !(inputs & ~answered);
}

/* Returns the end of a list of parameters, behind its closing bracket. `at` is behind the opening
 * one. */
static inline char *after_parameters(char *at) {
    for (unsigned open = 1; open > 0; at++) {
        open += *at == '(';
        open -= *at == ')';
    }
    return at;
}

/* Returns the number of functions of a header that lack a row for some kind of bad input. Functions
 * whose names begin with sy_ are not counted: programs do not call them. */
static inline int check_header(const char *path, const answer *answers, size_t count) {
    static const char start[] = "\nstatic inline ";
    static char text[1 << 16];
    int missing = 0, functions = 0;
    FILE *file = fopen(path, "r");
    EXPECT(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    EXPECT(feof(file) && fclose(file) == 0);
    for (char *at = text; (at = strstr(at, start)) != NULL;) {
        char *bracket = strchr(at + sizeof start - 1, '('), *name = bracket;
        at = after_parameters(bracket + 1);
        while (name[-1] != ' ' && name[-1] != '*') name--;
        *bracket = at[-1] = '\0';
        if (strncmp(name, "sy_", 3) == 0) continue;
        functions++;
        missing += !are_answered(answers, count, name, inputs_of(name, bracket + 1));
    }
    EXPECT(functions > 0);
    return missing;
}

/* ---- patterns: each owner fills its object with its own ---- */

static inline void own(void *object, size_t size, uint64_t owner) {
    memset(object, (int)(owner * 31 % 251), size);
}

static inline bool is_own(const void *object, size_t size, uint64_t owner) {
    const unsigned char *bytes = object;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)(owner * 31 % 251)) return false;
    return true;
}

/* ---- threads ---- */

enum { THREADS_MAX = 8 };

static inline void in_threads(unsigned count, void *(*work)(void *), void *arg) {
    pthread_t threads[THREADS_MAX];
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_create(&threads[i], NULL, work, arg) == 0);
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
}

/* ---- faults ---- */

static sy_fault last_fault;
static unsigned faults;

static inline void note_fault(const sy_fault *fault) {
    last_fault = *fault;
    faults++;
}

/* Returns true if a mistake was reported, or if the program runs without checks, which may miss
 * it. */
static inline bool reported(void) {
    const char *options = getenv("SLABYARD");
    return faults > 0 || !options || !strstr(options, "check");
}

/* ---- stderr ---- */

/* Calls `work`, and copies what it writes to stderr to `text`. */
static inline void overhear(void (*work)(void *), void *arg, char *text, size_t room) {
    FILE *file = tmpfile();
    int before = dup(2);
    EXPECT(file && before >= 0 && dup2(fileno(file), 2) == 2);
    work(arg);
    EXPECT(dup2(before, 2) == 2 && close(before) == 0);
    rewind(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

/* ---- memory ---- */

/* Returns the bytes of chunks and large spans, without units that were returned to the system. */
static inline size_t mapped_now(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    return stats.mapped - stats.units_clean;
}

#endif
