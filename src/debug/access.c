/*
 * access.c: see access.h. If an address can never be valid, the system reports the access without
 * the address. But the registers are as they were at the instruction. One of them holds the value
 * that was read from a pattern, perhaps with the offset of a member added.
 */
#include "debug/access.h"

#include <stdatomic.h>

#include "debug/fault.h"
#include "debug/options.h"
#include "os/facts.h"

/* An access may lie this far from the pointer that was read: no member has a larger offset. */
static const uintptr_t MEMBER_MAX = (uintptr_t)1 << 20;

/* Upper bits of an address, which the processor may ignore and the system may not report. */
enum { TAG_BITS = UINTPTR_MAX > UINT32_MAX ? 8 : 0 };

static _Atomic(sy_explainer *) guards;
static _Atomic bool patterns;

/* ---- patterns ---- */

static bool is_near(uintptr_t value, uintptr_t pattern) {
    return value - pattern + MEMBER_MAX <= 2 * MEMBER_MAX;
}

/* Whether the access may have gone through a pointer near `pattern`. If the address is known, it
 * must be near `pattern`. If it is not, the registers decide. */
static bool can_be_of(const sy_os_access *access, uintptr_t pattern) {
    const uintptr_t untagged = UINTPTR_MAX >> TAG_BITS;
    uintptr_t distance = (access->address - pattern + MEMBER_MAX) & untagged;
    return !access->placed || distance <= 2 * MEMBER_MAX;
}

static bool explain_by(const sy_os_access *access, uintptr_t pattern, sy_fault_kind kind) {
    if (!can_be_of(access, pattern)) return false;
    for (unsigned i = 0; i < access->registers; i++) {
        if (!is_near(access->values[i], pattern)) continue;
        sy_fault_tell(&(sy_fault){
            .kind = kind,
            .cache = "",
            .address = (void *)access->values[i],
            .held_in = sy_os_register_name(i),
            .access = (sy_access)access->way,
        });
        return true;
    }
    return false;
}

bool sy_access_explain_pattern(const sy_os_access *access) {
    return explain_by(access, (uintptr_t)SY_PATTERN_FREE, SY_FAULT_FREED_POINTER) ||
           explain_by(access, (uintptr_t)SY_PATTERN_NEW, SY_FAULT_UNWRITTEN_POINTER);
}

/* ---- the handler ---- */

static bool explain_access(const sy_os_access *access) {
    sy_explainer *of_guards = atomic_load_explicit(&guards, memory_order_acquire);
    if (of_guards && of_guards(access)) return true;
    return atomic_load_explicit(&patterns, memory_order_relaxed) &&
           sy_access_explain_pattern(access);
}

static sy_explain option(void) {
    return (sy_explain)atomic_load_explicit(&sy_options_now.explain, memory_order_relaxed);
}

/* In a sandbox no handler of a signal can be installed any more. */
static bool may_explain(void) { return option() != SY_EXPLAIN_NO && !sy_is_in_sandbox(); }

void sy_access_expect_guards(sy_explainer *of_guards) {
    if (!may_explain()) return;
    atomic_store_explicit(&guards, of_guards, memory_order_release);
    sy_os_on_bad_access(explain_access);
}

void sy_access_expect_patterns(void) {
    if (!may_explain()) return;
    atomic_store_explicit(&patterns, true, memory_order_relaxed);
    if (option() == SY_EXPLAIN_YES) sy_os_on_bad_access(explain_access);
}

/* If the first allocation of the process calls the functions above, it may be one of a runtime that
 * is about to install its own handler (os.h: sy_os_expect_bad_access). */
__attribute__((constructor(103))) static void expect_from_start(void) {
    if (sy_options_ask_for_accesses()) sy_os_expect_bad_access();
}
