/*
 * compat.h: what the programs here share. Each is written to the document of an earlier system, and
 * built with its header in compat/; first what the document shows, then what an audit of that
 * system found to be otherwise.
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

/* ---- answers to NULL and 0 ---- */

/*
 * A table ANSWERS(A) has a row A(name, holds) for each call; `holds` is true if the answer is that
 * of the earlier system. A call that answers nothing is written (call, true).
 */
typedef struct answer {
    const char *text;
    bool (*holds)(void);
} answer;

#define ANSWER_FUNCTION(name, holds) \
    static bool name(void) { return holds; }
#define ANSWER_ROW(name, holds) {#holds, name},

/* Each row in a process of its own: one that crashes does not hide the others. */
static inline int check_answers(const answer *answers, size_t count) {
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        int status;
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) _exit(answers[i].holds() ? 0 : 1);
        EXPECT(waitpid(child, &status, 0) == child);
        if (status == 0) continue;
        fprintf(stderr, "%s: %s\n", WIFEXITED(status) ? "not so" : "crashes", answers[i].text);
        wrong++;
    }
    return wrong;
}

/* ---- patterns: what an owner writes over the whole of its object ---- */

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

/* ---- what is written to stderr ---- */

/* Calls `work` and puts what it writes there into `text`. */
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

/* Bytes in chunks and large spans. */
static inline size_t mapped_now(void) {
    sy_stats stats;
    sy_get_stats(&stats);
    return stats.mapped - stats.units_clean;
}

#endif
