/*
 * absent.c: the functions of os.h for services that a platform does not have (platform.h). They do
 * nothing, and say so by their results.
 */
#include "os/os.h"

#include "os/failing.h"
#include "os/race.h"

#if !(SY_OS_SERVICES & SY_OS_MOVES)

bool sy_os_can_move(void) { return false; }

size_t sy_os_move(void *from, void *to, size_t bytes, bool *lost) {
    (void)from, (void)to, (void)bytes;
    (void)sy_os_is_failing("move");
    *lost = false;
    return 0;
}

#endif
#if !(SY_OS_SERVICES & SY_OS_HUGE_PAGES)

bool sy_os_huge_is_usual(void) { return false; }

bool sy_os_huge_is_possible(void) { return false; }

int sy_os_huge(void *start, size_t bytes, bool wanted) {
    (void)start, (void)bytes, (void)wanted;
    return sy_os_is_failing("huge") ? -1 : sy_os_failed(ENOSYS);
}

int sy_os_make_huge(void *start, size_t bytes) { return sy_os_huge(start, bytes, true); }

/* It is asked whether huge pages would be of use. */
bool sy_os_is_written(const void *address) {
    (void)address;
    return false;
}

#endif
#if !(SY_OS_SERVICES & SY_OS_LOCKS)

int sy_os_lock(void *start, size_t bytes, bool wanted) {
    (void)start, (void)bytes;
    return wanted ? sy_os_failed(ENOSYS) : 0;
}

#endif
#if !SY_PLATFORM_LINUX

void sy_os_each_code(void (*visit)(void *arg, const sy_os_code *code), void *arg) {
    (void)visit, (void)arg;
}

bool sy_os_locks_all(void) { return false; }

bool sy_os_is_hidden(void) { return false; }

int sy_os_dump(void *start, size_t bytes, bool wanted) {
    (void)start, (void)bytes, (void)wanted;
    return sy_os_failed(ENOSYS);
}

void sy_os_hold_streams(void) {}

void sy_os_drop_streams(bool in_child) { (void)in_child; }

#endif
#if !(SY_OS_SERVICES & SY_OS_GUARDS)

bool sy_os_guards_split(void) { return true; }

int sy_os_guard(void *start, size_t bytes, bool wanted) {
    (void)start, (void)bytes, (void)wanted;
    return sy_os_is_failing("guard") ? -1 : sy_os_failed(ENOSYS);
}

#endif
#if !(SY_OS_SERVICES & SY_OS_ACCESSES)

void sy_os_on_bad_access(bool (*explain)(const sy_os_access *access)) { (void)explain; }

void sy_os_expect_bad_access(void) {}

uintptr_t sy_os_interrupted(void) { return 0; }

const char *sy_os_register_name(unsigned number) {
    (void)number;
    return "";
}

#endif
#if !(SY_OS_SERVICES & SY_OS_BACKGROUND)

int sy_os_start_thread(const sy_os_background *thread) {
    (void)thread;
    return sy_os_is_failing("start_thread") ? -1 : sy_os_failed(ENOSYS);
}

void sy_os_forget_background(void) {}

void sy_os_take_signals(void) {}

#endif
#if !(SY_OS_SERVICES & SY_OS_OBSERVER)

int sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader) {
    (void)thread, (void)reader;
    return sy_os_is_failing("start_reader") ? -1 : sy_os_failed(ENOSYS);
}

void sy_os_end_reader(uintptr_t reader) { (void)reader; }

bool sy_os_is_left_alone(unsigned background) {
    (void)background;
    return false;
}

bool sy_os_lists_threads(void) { return false; }

void sy_os_await_end(unsigned thread) { (void)thread; }

#endif
#if !(SY_OS_SERVICES & SY_OS_BARRIERS)

int sy_os_barrier_threads(void) { return sy_os_failed(ENOSYS); }

#endif
#if !(SY_OS_SERVICES & SY_OS_FORKS)

int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    (void)prepare, (void)parent, (void)child;
    /* The hooks are never due: a child uses the library only if its parent had one thread. */
    return sy_os_is_failing("at_fork") ? -1 : 0;
}

#endif
#if !(SY_OS_SERVICES & SY_OS_SIGNALS)

int sy_os_note_signal(unsigned which, _Atomic uint8_t *byte) {
    (void)byte;
    return which == SY_OS_NO_SIGNAL ? 0 : sy_os_failed(ENOSYS);
}

bool sy_os_notes_signal(void) { return false; }

#endif
#if !(SY_OS_SERVICES & SY_OS_COPIES)

int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds) {
    (void)work, (void)question, (void)answer, (void)bytes, (void)seconds;
    return sy_os_failed(EAGAIN);
}

int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void)) {
    (void)work, (void)question, (void)answer, (void)bytes;
    made();
    return sy_os_failed(EAGAIN);
}

int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg) {
    (void)visit, (void)arg;
    return sy_os_failed(ENOSYS);
}

#endif
#if !(SY_OS_SERVICES & SY_OS_LIMITS)

size_t sy_os_memory_limit(void) { return SIZE_MAX; }

bool sy_os_space_is_limited(void) { return false; }

#endif
#if !(SY_OS_SERVICES & SY_OS_RESIDENT)

size_t sy_os_resident(void) { return 0; }

#endif
#if !SY_PLATFORM_LINUX

uint64_t sy_os_memory_stall(void) { return UINT64_MAX; }

uint64_t sy_os_memory_stall_again(void) { return UINT64_MAX; }

#endif
#if !(SY_OS_SERVICES & SY_OS_STACKS)

bool sy_os_stack(uintptr_t here, sy_os_bounds *bounds) {
    (void)here, (void)bounds;
    return false;
}

void sy_os_unwind(sy_os_each_frame *each, void *arg) { (void)each, (void)arg; }

bool sy_os_has_tables(void) { return false; }

void sy_os_lose_tables(void) {}

#endif
#if !SY_OS_UNWINDS_REBUILT

bool sy_os_unwinds_rebuilt(void) { return false; }

bool sy_os_is_own_code(uintptr_t code) {
    (void)code;
    return false;
}

bool sy_os_has_table(uintptr_t code) {
    (void)code;
    return false;
}

void sy_os_unwind_rebuilt(const sy_os_rebuilt *from, sy_os_each_frame *each, void *arg) {
    (void)from, (void)each, (void)arg;
}

#endif
#if !(SY_OS_SERVICES & SY_OS_PLACES)

bool sy_os_locate(uintptr_t address, sy_os_place *place) {
    (void)address, (void)place;
    return false;
}

bool sy_os_locate_loaded(uintptr_t address, sy_os_place *place) {
    (void)address, (void)place;
    return false;
}

bool sy_os_tells_mappings(void) { return false; }

void sy_os_find(uintptr_t address, sy_os_data *data) {
    (void)address;
    *data = (sy_os_data){.region = SY_OS_UNTOLD};
}

#endif
#if !(SY_OS_SERVICES & SY_OS_DETECTORS)

uint8_t sy_race_detector;

void sy_race_start(void) {}

void sy_race_tell_before(const void *where) { (void)where; }

void sy_race_tell_after(const void *where) { (void)where; }

void sy_race_own(const void *start, size_t bytes) { (void)start, (void)bytes; }

#endif
