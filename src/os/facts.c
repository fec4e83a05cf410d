/*
 * facts.c: reads the facts, one thread at a time.
 */
#include "os/facts.h"

#include <errno.h>
#include <string.h>

#include "base/flag.h"
#include "os/os.h"

sy_facts sy_facts_now = {.memory_limit = SIZE_MAX, .memory_stall = UINT64_MAX};
_Atomic uint32_t sy_facts_asked;

static sy_flag started, reading;

#define SET(fact, value) atomic_store_explicit(&sy_facts_now.fact, value, memory_order_relaxed)

/* Files of the system that cannot be read now, perhaps since the program has changed its root
 * directory, leave the facts as they are. The file with the resident memory stands for all. */
static bool read_memory(void) {
    size_t resident = sy_os_resident();
    SET(resident, resident);
    if (!resident && sy_os_has(SY_OS_RESIDENT)) return false;
    SET(memory_limit, sy_os_memory_limit());
    SET(memory_stall, sy_os_memory_stall());
    return true;
}

static void read_calls(void) {
    SET(affinity, sy_os_affinity_count());
    SET(space_is_limited, sy_os_space_is_limited());
}

static void read_all(void) {
    read_calls();
    if (!read_memory()) return;
    SET(cpus, sy_os_cpu_count());
    SET(huge_is_usual, sy_os_huge_is_usual());
    SET(huge_is_possible, sy_os_huge_is_possible());
    SET(files_are_read, true);
}

static void end(void) { atomic_store_explicit(&reading, false, memory_order_release); }

/* The thread may be one of the program, in a call that is no cancellation point. */
static void read_once(void (*read)(void)) {
    if (atomic_exchange_explicit(&reading, true, memory_order_acquire)) return;
    int error = errno, cancellation = sy_os_hold_cancellation();
    read();
    sy_os_drop_cancellation(cancellation);
    errno = error;
    end();
}

static void read_changing(void) { (void)read_memory(); }

static void read_stall(void) { SET(memory_stall, sy_os_memory_stall_again()); }

void sy_facts_read(void) { read_once(read_all); }

void sy_facts_read_memory(void) { read_once(read_changing); }

void sy_facts_read_stall(void) { read_once(read_stall); }

void sy_facts_ask(void) {
    if (!atomic_exchange_explicit(&sy_facts_asked, 1, memory_order_release))
        sy_os_wake(&sy_facts_asked, 1);
}

/* ---- the start ---- */

/* Whether files may be read at the start. The options are looked for in the text here, because they
 * are not known yet. A process with an observer reads files when it has grown. */
static bool reads_files(void) {
    const char *said = sy_os_option("SLABYARD");
    if (said && strstr(said, "system-files=no")) return false;
    if (said && strstr(said, "maintenance=no")) return true;
    return !strstr(sy_os_default_options(), "maintenance=auto");
}

void sy_facts_start(void) {
    if (atomic_exchange_explicit(&started, true, memory_order_relaxed)) return;
    read_once(reads_files() ? read_all : read_calls);
}

/* A sandbox that the program enters later cannot forbid this. */
__attribute__((constructor(103))) static void start_early(void) { sy_facts_start(); }

static int start(void) {
    sy_facts_start();
    return 0;
}

static void recover(void) {
    SET(observed, false);
    end();
}

const sy_part sy_facts_part = {.start = start, .recover = recover};
