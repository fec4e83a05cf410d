/*
 * tools.c: tells Valgrind and AddressSanitizer which objects are live, if the process runs under
 * one of them.
 */
#include "debug/tools.h"

#include <slabyard/base.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "os/lock.h"

/* ---- AddressSanitizer: weak references to its functions ---- */

#define OF_TOOL extern __attribute__((weak, visibility("default")))

OF_TOOL void __asan_poison_memory_region(const volatile void *start, size_t bytes);
OF_TOOL void __asan_unpoison_memory_region(const volatile void *start, size_t bytes);
OF_TOOL void __asan_set_error_report_callback(void (*callback)(const char *report));
OF_TOOL void *__asan_get_report_address(void);
OF_TOOL void __lsan_register_root_region(const void *start, size_t bytes);
OF_TOOL void __lsan_unregister_root_region(const void *start, size_t bytes);

/* ---- Valgrind: requests, by their numbers ---- */

enum {
    DISABLE_ERRORS = 0x1801, /* for this thread; 1: one more reason, -1: one less */
    CREATE_POOL = 0x1303,
    DESTROY_POOL = 0x1304,
    POOL_ALLOC = 0x1305,
    POOL_FREE = 0x1306,
    /* memcheck's own requests: it answers -1, other tools do not answer. */
    MAKE_NOACCESS = 'M' << 24 | 'C' << 16,
    MAKE_UNDEFINED,
    MAKE_DEFINED,
};

static uintptr_t ask_valgrind(uintptr_t number, uintptr_t first, uintptr_t second,
                              uintptr_t third) {
    const uintptr_t request[6] = {number, first, second, third, 0, 0};
    return sy_valgrind_ask(request, 0);
}

static uintptr_t mark(uintptr_t number, const void *start, size_t bytes) {
    return ask_valgrind(number, (uintptr_t)start, bytes, 0);
}

/* ---- which tool is present ---- */

static _Atomic sy_tool told; /* the tool to inform; NONE until the first sy_tool_open */

sy_tool sy_tool_present(void) {
    char probe = 0;
    if (__asan_poison_memory_region && __asan_unpoison_memory_region) return SY_TOOL_ASAN;
    return mark(MAKE_DEFINED, &probe, sizeof probe) ? SY_TOOL_MEMCHECK : SY_TOOL_NONE;
}

static inline bool is(sy_tool tool) {
    return SY_UNLIKELY(atomic_load_explicit(&told, memory_order_relaxed) == tool);
}

void sy_tool_open(const void *owner, size_t zone) {
    sy_tool present = sy_tool_present();
    atomic_store_explicit(&told, present, memory_order_relaxed);
    if (present == SY_TOOL_MEMCHECK) ask_valgrind(CREATE_POOL, (uintptr_t)owner, zone, false);
}

void sy_tool_close(const void *owner) {
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(DESTROY_POOL, (uintptr_t)owner, 0, 0);
}

/* ---- slabs ---- */

/* LeakSanitizer has a lock for its root regions, and a forked child inherits it as it is. No other
 * thread holds that lock while this one is held, so a fork holds this one. */
static sy_lock lock = SY_LOCK_INIT(SY_RANK_TOOLS);

static void hold_roots(void) { sy_lock_hold(&lock); }

static void drop_roots(void) { sy_lock_drop(&lock); }

const sy_part sy_tools_part = {.hold = hold_roots, .drop = drop_roots};

static void register_root(const void *slab, size_t bytes) {
    if (!__lsan_register_root_region) return;
    sy_lock_acquire(&lock);
    __lsan_register_root_region(slab, bytes);
    sy_lock_release(&lock);
}

static void unregister_root(const void *slab, size_t bytes) {
    if (!__lsan_unregister_root_region) return;
    sy_lock_acquire(&lock);
    __lsan_unregister_root_region(slab, bytes);
    sy_lock_release(&lock);
}

void sy_tool_begin(const void *slab, size_t bytes) {
    if (is(SY_TOOL_MEMCHECK)) mark(MAKE_NOACCESS, slab, bytes);
    if (!is(SY_TOOL_ASAN)) return;
    __asan_poison_memory_region(slab, bytes);
    register_root(slab, bytes);
}

void sy_tool_end(const void *slab, size_t bytes) {
    if (is(SY_TOOL_MEMCHECK)) mark(MAKE_DEFINED, slab, bytes);
    if (!is(SY_TOOL_ASAN)) return;
    unregister_root(slab, bytes);
    __asan_unpoison_memory_region(slab, bytes);
}

void sy_tool_lend(const void *part, size_t bytes) {
    if (is(SY_TOOL_MEMCHECK)) mark(MAKE_DEFINED, part, bytes);
    if (is(SY_TOOL_ASAN)) __asan_unpoison_memory_region(part, bytes);
}

void sy_tool_take_back(const void *part, size_t bytes) {
    if (is(SY_TOOL_MEMCHECK)) mark(MAKE_NOACCESS, part, bytes);
    if (is(SY_TOOL_ASAN)) __asan_poison_memory_region(part, bytes);
}

/* ---- objects ---- */

void sy_tool_allocated(const void *owner, const void *object, size_t size) {
    if (is(SY_TOOL_ASAN)) __asan_unpoison_memory_region(object, size);
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_ALLOC, (uintptr_t)owner, (uintptr_t)object, size);
}

void sy_tool_freed(const void *owner, const void *object, size_t size) {
    if (is(SY_TOOL_ASAN)) __asan_poison_memory_region(object, size);
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_FREE, (uintptr_t)owner, (uintptr_t)object, 0);
}

void sy_tool_freed_twice(const void *owner, const void *object) {
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(POOL_FREE, (uintptr_t)owner, (uintptr_t)object, 0);
}

void sy_tool_unwritten(const void *object, size_t size) {
    if (is(SY_TOOL_MEMCHECK)) mark(MAKE_UNDEFINED, object, size);
}

/* ---- the library's own accesses ---- */

void sy_tool_enter(void) {
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(DISABLE_ERRORS, 1, 0, 0);
}

void sy_tool_leave(void) {
    if (is(SY_TOOL_MEMCHECK)) ask_valgrind(DISABLE_ERRORS, (uintptr_t)-1, 0, 0);
}

/* ---- reports ---- */

static void (*_Atomic explainer)(uintptr_t address);

static void at_report(const char *report) {
    (void)report;
    atomic_load (&explainer)((uintptr_t)__asan_get_report_address());
}

void sy_tool_on_report(void (*explain)(uintptr_t address)) {
    if (!is(SY_TOOL_ASAN) || !__asan_set_error_report_callback || !__asan_get_report_address)
        return;
    if (atomic_exchange(&explainer, explain) != explain)
        __asan_set_error_report_callback(at_report);
}
