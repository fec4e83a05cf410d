/*
 * facts.h: what the library knows about the system and about this process as the system sees it:
 * limits, resident memory, settings, processors.
 *
 * The system tells most of these facts in files. A thread that reads a file takes a descriptor of
 * the program, may be cancelled, and is killed in a sandbox that forbids to open files. So no
 * allocation and no free asks the system for a fact. The facts are read
 *
 *     at the start      by a constructor, or by the start of the library if that comes earlier
 *                       (sy_facts_start)
 *     from then on      by the observer, a thread with a descriptor table of its own
 *                       (reclaim/observer.c)
 *     before a sandbox  by the function that announces it (sy_enter_sandbox)
 *
 * and all other code loads them from sy_facts_now. Between two readings, chunk/pressure.c
 * calculates how much memory is resident.
 *
 * Above: every layer may load the facts; only reclaim/ has them read. Below: os.h.
 */
#ifndef SY_OS_FACTS_H
#define SY_OS_FACTS_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/start.h"

typedef struct sy_facts {
    _Atomic bool in_sandbox; /* the program has said so (sy_enter_sandbox): no files any more */
    /* Known from the start on: */
    _Atomic uint32_t affinity;     /* sy_os_affinity_count */
    _Atomic bool space_is_limited; /* sy_os_space_is_limited */
    _Atomic bool observed;         /* an observer reads the resident memory again and again */
    /* From files. Before they are read: no limit, nothing known, no huge pages. */
    _Atomic bool files_are_read;   /* at least once */
    _Atomic uint32_t cpus;         /* sy_os_cpu_count; 0: unknown */
    _Atomic size_t memory_limit;   /* bytes; SIZE_MAX: none */
    _Atomic size_t resident;       /* bytes of anonymous memory in RAM; 0: unknown */
    _Atomic uint64_t memory_stall; /* sy_os_memory_stall; UINT64_MAX: unknown */
    _Atomic bool huge_is_usual;    /* the system gives huge pages to all programs, */
    _Atomic bool huge_is_possible; /* or to those that ask for them */
} sy_facts;

extern SY_HIDDEN sy_facts sy_facts_now;

/* Whether the program has said that it forbids itself system calls: reports do without files. */
static inline bool sy_is_in_sandbox(void) {
    return atomic_load_explicit(&sy_facts_now.in_sandbox, memory_order_relaxed);
}

/* Reads the facts that need no file. If the process has no observer by default (os.h:
 * sy_os_default_options), reads all. Only the first call reads. */
void sy_facts_start(void);

/* Reads all facts; sy_facts_read_memory only those that change often: memory limit, resident
 * memory, memory stall; sy_facts_read_stall only the last one, from the same file as before. If
 * files cannot be read, what they said before holds on. If another thread is reading, returns at
 * once. Not to be called inside an allocation or a free. errno is kept. */
void sy_facts_read(void);
void sy_facts_read_memory(void);
void sy_facts_read_stall(void);

/* The observer sleeps on this word while it is 0; otherwise a reading is wanted now. */
extern SY_HIDDEN _Atomic uint32_t sy_facts_asked;

/* Asks the observer for a reading: a futex call at most. */
void sy_facts_ask(void);

/* In the child of a fork no other thread is reading. */
extern SY_HIDDEN const sy_part sy_facts_part;

#endif
