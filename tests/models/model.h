/*
 * model.h: macros and functions for the models in this folder.
 *
 * A model is a small program over the library's own sources: two or three threads, a few operations
 * each, and assertions. A checker runs it in many orders of its threads, and with the values that
 * the memory orders in the sources let a load see. tests/models/run runs all models; checkers.py
 * says what the checkers are. A model is written
 *
 *     MODEL(each_magazine_is_popped_once) {
 *         model_thread other;
 *         model_start(&other, 1, push_one, &magazine);
 *         ...
 *         model_join(&other);
 *         assert(...);
 *     }
 *
 * It begins with all of the sources' variables as they are when a program starts, and waits for the
 * end of each thread that it starts. MODEL_FOR_LOOM is one that GenMC cannot run. MODEL_DEEP is a
 * short one of these, whose threads loom interrupts more often.
 *
 * A model that calls model_use_barriers first, which is for loom only, may call model_barrier: all
 * threads run a full memory barrier, wherever they are.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef MODEL_GENMC

#    include <assert.h>
#    include <genmc.h>
#    include <pthread.h>

#    define MODEL(name)          void name(void)
#    define MODEL_FOR_LOOM(name) static __attribute__((unused)) void name(void)
#    define MODEL_DEEP(name)     MODEL_FOR_LOOM(name)

/* One for handlers of signals, of which there are none. GenMC takes it to be one for threads. */
#    define __atomic_signal_fence(order) ((void)(order))

/* What compilers make of assignments of structures is left to the model. Each word is one access,
 * so these are for structures of whole words. */
void *memcpy(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
    return to;
}

void *memset(void *to, int byte, size_t bytes) {
    assert(byte == 0);
    for (size_t i = 0; i < bytes / 8; i++) ((uint64_t *)to)[i] = 0;
    return to;
}

typedef pthread_t model_id;

static inline model_id model_create(void *(*run)(void *), void *arg) {
    pthread_t id;
    pthread_create(&id, NULL, run, arg);
    return id;
}

static inline void model_wait_for_end(model_id id) { pthread_join(id, NULL); }

/* This thread has read the word, and cannot go on until another one stores to it. GenMC also runs
 * the executions in which the thread reads later, so this execution ends here. */
static inline void model_wait(const void *word) {
    (void)word;
    __VERIFIER_assume(0);
}

/* This thread looks at a word in a loop until another one stores to it. */
static inline void model_yield(void) { __VERIFIER_assume(0); }

#else /* rust/explore */

typedef struct model_entry {
    const char *name;
    void (*run)(void);
    size_t preemptions; /* 0: as often as loom interrupts the threads of other models */
} model_entry;

#    define MODEL_WITH(name, preemptions)                                                 \
        static void name(void);                                                           \
        static const model_entry model_##name                                             \
            __attribute__((section("model_entries"), used)) = {#name, name, preemptions}; \
        static void name(void)

enum { MODEL_DEEP_PREEMPTIONS = 3 };

#    define MODEL(name)          MODEL_WITH(name, 0)
#    define MODEL_FOR_LOOM(name) MODEL_WITH(name, 0)
#    define MODEL_DEEP(name)     MODEL_WITH(name, MODEL_DEEP_PREEMPTIONS)

typedef uintptr_t model_id;

model_id model_create(void *(*run)(void *), void *arg);
void model_wait_for_end(model_id id);
void model_wait(const void *word);
void model_yield(void);
void model_use_barriers(void);
void model_barrier(void);
_Noreturn void model_failed(const char *file, int line);

#    define assert(condition) ((condition) ? (void)0 : model_failed(__FILE__, __LINE__))

#endif

enum { MODEL_THREADS = 5 };

/* Number of the running thread: 0 for the one that MODEL runs in, 1 and up for the others. */
static _Thread_local uint32_t model_number;

typedef struct model_thread {
    void (*run)(void *arg);
    void *arg;
    uint32_t number;
    model_id id;
} model_thread;

static void *model_run(void *arg) {
    model_thread *thread = arg;
    model_number = thread->number;
    thread->run(thread->arg);
    return NULL;
}

static inline void model_start(model_thread *thread, uint32_t number, void (*run)(void *arg),
                               void *arg) {
    thread->run = run;
    thread->arg = arg;
    thread->number = number;
    thread->id = model_create(model_run, thread);
}

static inline void model_join(const model_thread *thread) { model_wait_for_end(thread->id); }

#endif
