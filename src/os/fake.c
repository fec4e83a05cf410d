/*
 * fake.c: the fake operating system of fake.h, by which tests let calls of os.h fail. Each function
 * of os.h that it replaces is a __wrap function here, which asks the scripts and then calls the
 * real one.
 *
 * One lock guards the scripts and the account. For calls that change ranges it is held during the
 * real call too, so that no other thread sees the change before it is in the account. No function
 * that is called under the lock calls the fake. The ranges that the library holds are sorted,
 * disjoint intervals; neighbours are merged.
 */
#define _GNU_SOURCE

#include "fake.h"
#include "base/random.h"
#include "facts.h"
#include "os.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct interval {
    uintptr_t start, end;
} interval;

enum { INTERVALS_MAX = 1 << 16, WRITTEN_BYTES = 256 << 10 };

typedef struct interval_set {
    interval at[INTERVALS_MAX];
    size_t count;
    size_t bytes;
} interval_set;

typedef enum rule { SUCCEED, FAIL_NTH, FAIL_FROM, FAIL_RANDOMLY, FAIL_ABOVE } rule;

typedef struct script {
    rule rule;
    uint64_t number; /* n, per thousand, or bytes */
    uint64_t seen;   /* calls since the script was given; for FAIL_RANDOMLY the state */
} script;

typedef void before_call(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static script scripts[SY_FAKE_ANY + 1];
static uint64_t calls[SY_FAKE_ANY + 1];
static uint64_t failures[SY_FAKE_ANY + 1];
static uint64_t bytes_done[SY_FAKE_ANY + 1];
static _Atomic(before_call *) before[SY_FAKE_ANY];

static interval_set reserved;
static interval_set committed;
static _Atomic size_t blocks;

static __thread int thread_cpu = -1;
static unsigned cpu_count;
static size_t memory_limit, resident;
static uint64_t stall;
static _Atomic(void (*)(void)) before_reading;
static bool guards_split, moves_forbidden, move_is_lost, huge_is_usual, locks_all;
static _Atomic bool rows_refused;
static bool clock_stands;
static uint64_t clock_ns, waited_ns;
static const char *option_name, *option_text;
static bool traced;
static enum { TERMINAL_REAL, TERMINAL, NO_TERMINAL } terminal;

static sy_os_work *child_work;

static __thread jmp_buf *catcher;
static char written[WRITTEN_BYTES];
static size_t written_length;

/* No other thread may hold the lock at a fork, because the child would find it held. These hooks
 * are registered before all others, also before the library's (os/start.c). So their prepare hook
 * runs last, when the library's hook has taken its locks. */

static void hold_lock(void) { pthread_mutex_lock(&lock); }

static void drop_lock(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor(101))) static void survive_forks(void) {
    if (pthread_atfork(hold_lock, drop_lock, drop_lock) != 0) abort();
}

/* ---- intervals ---- */

static _Noreturn void broken(const char *what, const void *start, size_t bytes) {
    fprintf(stderr, "fake os: %s: %p, %zu bytes\n", what, start, bytes);
    abort();
}

/* The first interval that ends after `address`. */
static size_t find(const interval_set *set, uintptr_t address) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->at[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool holds(const interval_set *set, uintptr_t start, uintptr_t end) {
    size_t i = find(set, start);
    return i < set->count && set->at[i].start <= start && end <= set->at[i].end;
}

/* Replaces the intervals from `first` up to `last`, which is not replaced, by those in `with`. */
static void splice(interval_set *set, size_t first, size_t last, const interval *with,
                   size_t count) {
    if (set->count - (last - first) + count > INTERVALS_MAX)
        broken("more pieces than the fake can count", NULL, set->count);
    memmove(&set->at[first + count], &set->at[last], (set->count - last) * sizeof(interval));
    for (size_t i = 0; i < count; i++) set->at[first + i] = with[i];
    set->count = set->count - (last - first) + count;
}

static void subtract(interval_set *set, uintptr_t start, uintptr_t end) {
    size_t first = find(set, start), last = first;
    interval left[2];
    size_t count = 0;
    for (; last < set->count && set->at[last].start < end; last++) {
        interval old = set->at[last];
        if (old.start < start) left[count++] = (interval){old.start, start};
        if (old.end > end) left[count++] = (interval){end, old.end};
        set->bytes -= (old.end < end ? old.end : end) - (old.start > start ? old.start : start);
    }
    splice(set, first, last, left, count);
}

static void add(interval_set *set, uintptr_t start, uintptr_t end) {
    subtract(set, start, end);
    set->bytes += end - start;
    size_t first = find(set, start), last = first;
    interval whole = {start, end};
    if (last < set->count && set->at[last].start == end) whole.end = set->at[last++].end;
    if (first > 0 && set->at[first - 1].end == start) whole.start = set->at[--first].start;
    splice(set, first, last, &whole, 1);
}

/* ---- scripts ---- */

static uint64_t next_random(uint64_t *state) {
    *state += SY_RANDOM_STEP;
    return sy_random_mix(*state);
}

static bool says_fail(script *rules, size_t bytes) {
    switch (rules->rule) {
    case SUCCEED: return false;
    case FAIL_NTH: return ++rules->seen == rules->number;
    case FAIL_FROM: return ++rules->seen >= rules->number;
    case FAIL_RANDOMLY: return next_random(&rules->seen) % 1000 < rules->number;
    case FAIL_ABOVE: return bytes > rules->number;
    }
    return false;
}

/* Counts the call, and decides whether it fails. Both its own script and that of SY_FAKE_ANY count
 * it. */
static bool fails(sy_fake_call call, size_t bytes) {
    bool own = says_fail(&scripts[call], bytes);
    bool any = says_fail(&scripts[SY_FAKE_ANY], bytes);
    calls[call]++;
    calls[SY_FAKE_ANY]++;
    if (!own && !any) return false;
    failures[call]++;
    failures[SY_FAKE_ANY]++;
    errno = ENOMEM;
    return true;
}

static void done(sy_fake_call call, size_t bytes) {
    bytes_done[call] += bytes;
    bytes_done[SY_FAKE_ANY] += bytes;
}

/* Runs the function that the test has set for before the call, then takes the lock. */
static void enter(sy_fake_call call) {
    before_call *function = atomic_load(&before[call]);
    if (function) function();
    pthread_mutex_lock(&lock);
}

static void give_script(sy_fake_call call, script rules) {
    pthread_mutex_lock(&lock);
    scripts[call] = rules;
    pthread_mutex_unlock(&lock);
}

void sy_fake_fail_nth(sy_fake_call call, uint64_t n) {
    give_script(call, (script){.rule = FAIL_NTH, .number = n});
}

void sy_fake_fail_from(sy_fake_call call, uint64_t n) {
    give_script(call, (script){.rule = FAIL_FROM, .number = n});
}

void sy_fake_fail_randomly(sy_fake_call call, unsigned per_thousand, uint64_t seed) {
    give_script(call, (script){.rule = FAIL_RANDOMLY, .number = per_thousand, .seen = seed});
}

void sy_fake_fail_above(sy_fake_call call, size_t bytes) {
    give_script(call, (script){.rule = FAIL_ABOVE, .number = bytes});
}

void sy_fake_run_before(sy_fake_call call, before_call *function) {
    atomic_store(&before[call], function);
}

void sy_fake_succeed(sy_fake_call call) { give_script(call, (script){.rule = SUCCEED}); }

void sy_fake_reset(void) {
    pthread_mutex_lock(&lock);
    memset(scripts, 0, sizeof scripts);
    for (unsigned call = 0; call < SY_FAKE_ANY; call++) atomic_store(&before[call], NULL);
    memset(calls, 0, sizeof calls);
    memset(failures, 0, sizeof failures);
    memset(bytes_done, 0, sizeof bytes_done);
    thread_cpu = -1;
    cpu_count = 0;
    memory_limit = resident = 0;
    stall = 0;
    atomic_store(&before_reading, NULL);
    clock_stands = false;
    option_name = NULL;
    traced = false;
    terminal = TERMINAL_REAL;
    child_work = NULL;
    atomic_store(&rows_refused, false);
    guards_split = moves_forbidden = move_is_lost = huge_is_usual = locks_all = false;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

/* ---- account ---- */

static uint64_t read_counter(const uint64_t *counter) {
    pthread_mutex_lock(&lock);
    uint64_t value = *counter;
    pthread_mutex_unlock(&lock);
    return value;
}

static size_t read_size(const size_t *size) {
    pthread_mutex_lock(&lock);
    size_t value = *size;
    pthread_mutex_unlock(&lock);
    return value;
}

uint64_t sy_fake_calls(sy_fake_call call) { return read_counter(&calls[call]); }

uint64_t sy_fake_failures(sy_fake_call call) { return read_counter(&failures[call]); }

uint64_t sy_fake_bytes(sy_fake_call call) { return read_counter(&bytes_done[call]); }

size_t sy_fake_reserved(void) { return read_size(&reserved.bytes); }

size_t sy_fake_pieces(void) { return read_size(&reserved.count); }

size_t sy_fake_committed(void) { return read_size(&committed.bytes); }

size_t sy_fake_blocks(void) { return atomic_load(&blocks); }

bool sy_fake_is_committed(const void *start, size_t bytes) {
    pthread_mutex_lock(&lock);
    bool answer = holds(&committed, (uintptr_t)start, (uintptr_t)start + bytes);
    pthread_mutex_unlock(&lock);
    return answer;
}

/* ---- memory ---- */

void *__real_sy_os_reserve(size_t bytes, size_t align, const char *name);
void *__wrap_sy_os_reserve(size_t bytes, size_t align, const char *name);

void *__wrap_sy_os_reserve(size_t bytes, size_t align, const char *name) {
    size_t page = sy_os_page_size();
    if (bytes == 0 || bytes % page != 0) broken("reserve of something but pages", NULL, bytes);
    if (align < page || (align & (align - 1)) != 0)
        broken("reserve with a wrong align", NULL, align);
    enter(SY_FAKE_RESERVE);
    void *start = fails(SY_FAKE_RESERVE, bytes) ? NULL : __real_sy_os_reserve(bytes, align, name);
    if (start != NULL) {
        done(SY_FAKE_RESERVE, bytes);
        add(&reserved, (uintptr_t)start, (uintptr_t)start + bytes);
    }
    pthread_mutex_unlock(&lock);
    return start;
}

typedef int range_call(void *start, size_t bytes);

/* The caller holds the lock. Aborts unless the range is whole pages, all of them in `inside`. */
static void check_range(const interval_set *inside, const char *what, void *start, size_t bytes) {
    size_t page = sy_os_page_size();
    if (bytes == 0 || bytes % page != 0 || (uintptr_t)start % page != 0) broken(what, start, bytes);
    if (!holds(inside, (uintptr_t)start, (uintptr_t)start + bytes)) broken(what, start, bytes);
}

/* The common part of commit, populate, discard, decommit and release. `changed` enters the change
 * in the account. */
static int on_range(sy_fake_call call, const interval_set *inside, const char *what,
                    range_call *real, void (*changed)(uintptr_t, uintptr_t), void *start,
                    size_t bytes) {
    enter(call);
    check_range(inside, what, start, bytes);
    int result = fails(call, bytes) ? -1 : real(start, bytes);
    if (result == 0) {
        done(call, bytes);
        changed((uintptr_t)start, (uintptr_t)start + bytes);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void became_committed(uintptr_t start, uintptr_t end) { add(&committed, start, end); }

static void became_reserved(uintptr_t start, uintptr_t end) { subtract(&committed, start, end); }

static void became_nothing(uintptr_t start, uintptr_t end) {
    subtract(&reserved, start, end);
    subtract(&committed, start, end);
}

static void stayed(uintptr_t start, uintptr_t end) {
    (void)start;
    (void)end;
}

int __real_sy_os_commit(void *start, size_t bytes);
int __wrap_sy_os_commit(void *start, size_t bytes);

int __wrap_sy_os_commit(void *start, size_t bytes) {
    return on_range(SY_FAKE_COMMIT, &reserved, "commit of what is not reserved",
                    __real_sy_os_commit, became_committed, start, bytes);
}

int __real_sy_os_populate(void *start, size_t bytes);
int __wrap_sy_os_populate(void *start, size_t bytes);

int __wrap_sy_os_populate(void *start, size_t bytes) {
    return on_range(SY_FAKE_POPULATE, &committed, "populate of what is not committed",
                    __real_sy_os_populate, stayed, start, bytes);
}

int __real_sy_os_discard(void *start, size_t bytes);
int __wrap_sy_os_discard(void *start, size_t bytes);

int __wrap_sy_os_discard(void *start, size_t bytes) {
    return on_range(SY_FAKE_DISCARD, &committed, "discard of what is not committed",
                    __real_sy_os_discard, stayed, start, bytes);
}

size_t __real_sy_os_move(void *from, void *to, size_t bytes, bool *lost);
size_t __wrap_sy_os_move(void *from, void *to, size_t bytes, bool *lost);

size_t __wrap_sy_os_move(void *from, void *to, size_t bytes, bool *lost) {
    enter(SY_FAKE_MOVE);
    check_range(&committed, "move from what is not committed", from, bytes);
    check_range(&committed, "move to what is not committed", to, bytes);
    bool fails_here = fails(SY_FAKE_MOVE, bytes) || moves_forbidden;
    size_t moved = 0, page = sy_os_page_size();
    *lost = false;
    if (!fails_here)
        moved = __real_sy_os_move(from, to, move_is_lost ? bytes / 2 & -page : bytes, lost);
    *lost |= move_is_lost && !fails_here;
    moves_forbidden |= *lost;
    move_is_lost &= !*lost;
    if (moved) done(SY_FAKE_MOVE, moved);
    pthread_mutex_unlock(&lock);
    return moved;
}

int __real_sy_os_decommit(void *start, size_t bytes);
int __wrap_sy_os_decommit(void *start, size_t bytes);

int __wrap_sy_os_decommit(void *start, size_t bytes) {
    return on_range(SY_FAKE_DECOMMIT, &reserved, "decommit of what is not reserved",
                    __real_sy_os_decommit, became_reserved, start, bytes);
}

void sy_fake_lose_move(void) {
    pthread_mutex_lock(&lock);
    move_is_lost = true;
    pthread_mutex_unlock(&lock);
}

void sy_fake_forbid_moves(bool forbidden) {
    pthread_mutex_lock(&lock);
    moves_forbidden = forbidden;
    pthread_mutex_unlock(&lock);
}

bool __real_sy_os_can_move(void);
bool __wrap_sy_os_can_move(void);

bool __wrap_sy_os_can_move(void) {
    pthread_mutex_lock(&lock);
    bool forbidden = moves_forbidden;
    pthread_mutex_unlock(&lock);
    return !forbidden && __real_sy_os_can_move();
}

int __real_sy_os_release(void *start, size_t bytes);
int __wrap_sy_os_release(void *start, size_t bytes);

int __wrap_sy_os_release(void *start, size_t bytes) {
    return on_range(SY_FAKE_RELEASE, &reserved, "release of what is not reserved",
                    __real_sy_os_release, became_nothing, start, bytes);
}

int __real_sy_os_lock(void *start, size_t bytes, bool wanted);
int __wrap_sy_os_lock(void *start, size_t bytes, bool wanted);

int __wrap_sy_os_lock(void *start, size_t bytes, bool wanted) {
    enter(SY_FAKE_LOCK);
    check_range(&committed, "a lock of what is not committed", start, bytes);
    bool failing = wanted && fails(SY_FAKE_LOCK, bytes);
    int result = failing ? -1 : __real_sy_os_lock(start, bytes, wanted);
    if (result == 0) done(SY_FAKE_LOCK, bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

void sy_fake_set_locks_all(bool locks) {
    pthread_mutex_lock(&lock);
    locks_all = locks;
    pthread_mutex_unlock(&lock);
}

bool __real_sy_os_locks_all(void);
bool __wrap_sy_os_locks_all(void);

bool __wrap_sy_os_locks_all(void) {
    pthread_mutex_lock(&lock);
    bool locks = locks_all;
    pthread_mutex_unlock(&lock);
    return locks || __real_sy_os_locks_all();
}

int __real_sy_os_huge(void *start, size_t bytes, bool wanted);
int __wrap_sy_os_huge(void *start, size_t bytes, bool wanted);

int __wrap_sy_os_huge(void *start, size_t bytes, bool wanted) {
    enter(SY_FAKE_HUGE);
    if (wanted) check_range(&reserved, "huge pages for what is not reserved", start, bytes);
    int result = fails(SY_FAKE_HUGE, bytes) ? -1 : __real_sy_os_huge(start, bytes, wanted);
    if (result == 0) done(SY_FAKE_HUGE, bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

void sy_fake_set_huge_is_usual(bool usual) {
    pthread_mutex_lock(&lock);
    huge_is_usual = usual;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

bool __wrap_sy_os_huge_is_usual(void);

bool __wrap_sy_os_huge_is_usual(void) {
    pthread_mutex_lock(&lock);
    bool usual = huge_is_usual;
    pthread_mutex_unlock(&lock);
    return usual;
}

int __wrap_sy_os_make_huge(void *start, size_t bytes);

int __wrap_sy_os_make_huge(void *start, size_t bytes) {
    return on_range(SY_FAKE_MAKE_HUGE, &committed, "huge pages for what is not committed",
                    __real_sy_os_populate, stayed, start, bytes);
}

int __real_sy_os_guard(void *start, size_t bytes, bool wanted);
int __wrap_sy_os_guard(void *start, size_t bytes, bool wanted);

int __wrap_sy_os_guard(void *start, size_t bytes, bool wanted) {
    enter(SY_FAKE_GUARD);
    check_range(&committed, "guard of what is not committed", start, bytes);
    int result = fails(SY_FAKE_GUARD, bytes) ? -1 : __real_sy_os_guard(start, bytes, wanted);
    if (result == 0) done(SY_FAKE_GUARD, bytes);
    pthread_mutex_unlock(&lock);
    return result;
}

void sy_fake_set_guards_split(bool split) {
    pthread_mutex_lock(&lock);
    guards_split = split;
    pthread_mutex_unlock(&lock);
}

bool __real_sy_os_guards_split(void);
bool __wrap_sy_os_guards_split(void);

bool __wrap_sy_os_guards_split(void) {
    pthread_mutex_lock(&lock);
    bool split = guards_split;
    pthread_mutex_unlock(&lock);
    return split || __real_sy_os_guards_split();
}

/* ---- processors, limits, time ---- */

void sy_fake_set_cpu(int cpu) { thread_cpu = cpu; }

unsigned __real_sy_os_cpu(void);
unsigned __wrap_sy_os_cpu(void);

unsigned __wrap_sy_os_cpu(void) {
    return thread_cpu < 0 ? __real_sy_os_cpu() : (unsigned)thread_cpu;
}

void sy_fake_set_cpu_count(unsigned count) {
    pthread_mutex_lock(&lock);
    cpu_count = count;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

unsigned __real_sy_os_cpu_count(void);
unsigned __wrap_sy_os_cpu_count(void);

unsigned __wrap_sy_os_cpu_count(void) {
    pthread_mutex_lock(&lock);
    unsigned count = cpu_count;
    pthread_mutex_unlock(&lock);
    return count == 0 ? __real_sy_os_cpu_count() : count;
}

unsigned __real_sy_os_affinity_count(void);
unsigned __wrap_sy_os_affinity_count(void);

unsigned __wrap_sy_os_affinity_count(void) {
    pthread_mutex_lock(&lock);
    unsigned count = cpu_count;
    pthread_mutex_unlock(&lock);
    return count == 0 ? __real_sy_os_affinity_count() : count;
}

void sy_fake_set_memory_limit(size_t bytes) {
    pthread_mutex_lock(&lock);
    memory_limit = bytes;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

size_t __real_sy_os_memory_limit(void);
size_t __wrap_sy_os_memory_limit(void);

size_t __wrap_sy_os_memory_limit(void) {
    size_t bytes = read_size(&memory_limit);
    return bytes == 0 ? __real_sy_os_memory_limit() : bytes;
}

void sy_fake_run_before_reading(void (*function)(void)) { atomic_store(&before_reading, function); }

void sy_fake_set_resident(size_t bytes) {
    pthread_mutex_lock(&lock);
    resident = bytes;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

size_t __real_sy_os_resident(void);
size_t __wrap_sy_os_resident(void);

size_t __wrap_sy_os_resident(void) {
    void (*function)(void) = atomic_load(&before_reading);
    if (function) function();
    pthread_mutex_lock(&lock);
    size_t bytes = resident;
    pthread_mutex_unlock(&lock);
    return bytes == 0 ? __real_sy_os_resident() : bytes == SIZE_MAX ? 0 : bytes;
}

void sy_fake_set_memory_stall(uint64_t ns) {
    pthread_mutex_lock(&lock);
    stall = ns;
    pthread_mutex_unlock(&lock);
    sy_facts_read();
}

uint64_t __real_sy_os_memory_stall(void);
uint64_t __wrap_sy_os_memory_stall(void);

uint64_t __wrap_sy_os_memory_stall(void) {
    uint64_t ns = read_counter(&stall);
    return ns == 0 ? __real_sy_os_memory_stall() : ns;
}

uint64_t __real_sy_os_memory_stall_again(void);
uint64_t __wrap_sy_os_memory_stall_again(void);

uint64_t __wrap_sy_os_memory_stall_again(void) {
    uint64_t ns = read_counter(&stall);
    return ns == 0 ? __real_sy_os_memory_stall_again() : ns;
}

void sy_fake_set_clock(uint64_t ns) {
    pthread_mutex_lock(&lock);
    clock_stands = true;
    clock_ns = ns;
    waited_ns = 0;
    pthread_mutex_unlock(&lock);
}

void sy_fake_advance_clock(uint64_t ns) {
    pthread_mutex_lock(&lock);
    clock_ns += ns;
    pthread_mutex_unlock(&lock);
}

void sy_fake_let_wait(uint64_t ns) {
    pthread_mutex_lock(&lock);
    clock_ns += ns;
    waited_ns += ns;
    pthread_mutex_unlock(&lock);
}

uint64_t __real_sy_os_now(void);
uint64_t __wrap_sy_os_now(void);

uint64_t __wrap_sy_os_now(void) {
    pthread_mutex_lock(&lock);
    bool stands = clock_stands;
    uint64_t ns = clock_ns;
    pthread_mutex_unlock(&lock);
    return stands ? ns : __real_sy_os_now();
}

uint64_t __real_sy_os_thread_time(void);
uint64_t __wrap_sy_os_thread_time(void);

uint64_t __wrap_sy_os_thread_time(void) {
    pthread_mutex_lock(&lock);
    bool stands = clock_stands;
    uint64_t ns = clock_ns - waited_ns;
    pthread_mutex_unlock(&lock);
    return stands ? ns : __real_sy_os_thread_time();
}

/* ---- threads and processes ---- */

static bool decide(sy_fake_call call) {
    enter(call);
    bool failing = fails(call, 0);
    pthread_mutex_unlock(&lock);
    return failing;
}

int __real_sy_os_at_thread_exit(void (*hook)(void *), void *arg);
int __wrap_sy_os_at_thread_exit(void (*hook)(void *), void *arg);

int __wrap_sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    return decide(SY_FAKE_AT_THREAD_EXIT) ? -1 : __real_sy_os_at_thread_exit(hook, arg);
}

int __real_sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int __wrap_sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    return decide(SY_FAKE_AT_FORK) ? -1 : __real_sy_os_at_fork(prepare, parent, child);
}

int __real_sy_os_start_thread(const sy_os_background *thread);
int __wrap_sy_os_start_thread(const sy_os_background *thread);

int __wrap_sy_os_start_thread(const sy_os_background *thread) {
    return decide(SY_FAKE_START_THREAD) ? -1 : __real_sy_os_start_thread(thread);
}

int __real_sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader);
int __wrap_sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader);

int __wrap_sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader) {
    return decide(SY_FAKE_START_READER) ? -1 : __real_sy_os_start_reader(thread, reader);
}

int __real_sy_os_barrier_threads(void);
int __wrap_sy_os_barrier_threads(void);

int __wrap_sy_os_barrier_threads(void) {
    return decide(SY_FAKE_BARRIER_THREADS) ? -1 : __real_sy_os_barrier_threads();
}

void *__real_sy_os_block(size_t bytes, size_t align);
void *__wrap_sy_os_block(size_t bytes, size_t align);

void *__wrap_sy_os_block(size_t bytes, size_t align) {
    if (align == 0 || (align & (align - 1)) != 0) broken("block with a wrong align", NULL, align);
    void *block = decide(SY_FAKE_BLOCK) ? NULL : __real_sy_os_block(bytes, align);
    if (block) atomic_fetch_add(&blocks, 1);
    return block;
}

void __real_sy_os_block_free(void *block);
void __wrap_sy_os_block_free(void *block);

void __wrap_sy_os_block_free(void *block) {
    if (block) atomic_fetch_sub(&blocks, 1);
    __real_sy_os_block_free(block);
}

/* ---- stacks ---- */

void sy_fake_refuse_rows(bool refused) { atomic_store(&rows_refused, refused); }

#if SY_OS_STEPS
bool __real_sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each, void *arg);
bool __wrap_sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each, void *arg);

bool __wrap_sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each, void *arg) {
    return !atomic_load(&rows_refused) && __real_sy_os_unwind_own(frame, high, each, arg);
}
#endif

/* ---- environment, terminal, report files ---- */

void sy_fake_set_option(const char *name, const char *text) {
    pthread_mutex_lock(&lock);
    option_name = name;
    option_text = text;
    pthread_mutex_unlock(&lock);
}

const char *__real_sy_os_option(const char *name);
const char *__wrap_sy_os_option(const char *name);

const char *__wrap_sy_os_option(const char *name) {
    pthread_mutex_lock(&lock);
    bool scripted = option_name != NULL && strcmp(name, option_name) == 0;
    const char *text = option_text;
    pthread_mutex_unlock(&lock);
    return scripted ? text : __real_sy_os_option(name);
}

void sy_fake_set_terminal(bool is_terminal) {
    pthread_mutex_lock(&lock);
    terminal = is_terminal ? TERMINAL : NO_TERMINAL;
    pthread_mutex_unlock(&lock);
}

bool __real_sy_os_is_terminal(int fd);
bool __wrap_sy_os_is_terminal(int fd);

bool __wrap_sy_os_is_terminal(int fd) {
    pthread_mutex_lock(&lock);
    bool real = terminal == TERMINAL_REAL, answer = terminal == TERMINAL;
    pthread_mutex_unlock(&lock);
    return real ? __real_sy_os_is_terminal(fd) : answer;
}

void sy_fake_set_traced(bool is_traced) {
    pthread_mutex_lock(&lock);
    traced = is_traced;
    pthread_mutex_unlock(&lock);
}

bool __real_sy_os_is_traced(void);
bool __wrap_sy_os_is_traced(void);

bool __wrap_sy_os_is_traced(void) {
    pthread_mutex_lock(&lock);
    bool said = traced;
    pthread_mutex_unlock(&lock);
    return said || __real_sy_os_is_traced();
}

int __real_sy_os_append(const char *path, const char *text, size_t length);
int __wrap_sy_os_append(const char *path, const char *text, size_t length);

int __wrap_sy_os_append(const char *path, const char *text, size_t length) {
    return decide(SY_FAKE_APPEND) ? -1 : __real_sy_os_append(path, text, length);
}

int __real_sy_os_replace(const char *path, const char *text, size_t length);
int __wrap_sy_os_replace(const char *path, const char *text, size_t length);

int __wrap_sy_os_replace(const char *path, const char *text, size_t length) {
    return decide(SY_FAKE_APPEND) ? -1 : __real_sy_os_replace(path, text, length);
}

/* ---- where the program is ---- */

bool __real_sy_os_stack(uintptr_t here, sy_os_bounds *bounds);
bool __wrap_sy_os_stack(uintptr_t here, sy_os_bounds *bounds);

bool __wrap_sy_os_stack(uintptr_t here, sy_os_bounds *bounds) {
    return !decide(SY_FAKE_STACK) && __real_sy_os_stack(here, bounds);
}

bool __real_sy_os_locate(uintptr_t address, sy_os_place *place);
bool __wrap_sy_os_locate(uintptr_t address, sy_os_place *place);

bool __wrap_sy_os_locate(uintptr_t address, sy_os_place *place) {
    return !decide(SY_FAKE_LOCATE) && __real_sy_os_locate(address, place);
}

void *__real_sy_os_load(const char *library);
void *__wrap_sy_os_load(const char *library);

void *__wrap_sy_os_load(const char *library) {
    return decide(SY_FAKE_LOAD) ? NULL : __real_sy_os_load(library);
}

void *__real_sy_os_symbol(void *library, const char *name);
void *__wrap_sy_os_symbol(void *library, const char *name);

void *__wrap_sy_os_symbol(void *library, const char *name) {
    return decide(SY_FAKE_LOAD) ? NULL : __real_sy_os_symbol(library, name);
}

void sy_fake_set_child(sy_os_work *work) {
    pthread_mutex_lock(&lock);
    child_work = work;
    pthread_mutex_unlock(&lock);
}

int __real_sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                           unsigned seconds);
int __wrap_sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                           unsigned seconds);

int __wrap_sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                           unsigned seconds) {
    if (decide(SY_FAKE_ASK_CHILD)) return -1;
    return __real_sy_os_ask_child(child_work ? child_work : work, question, answer, bytes, seconds);
}

/* ---- the process as a whole ---- */

int __real_sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                          void (*made)(void));
int __wrap_sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                          void (*made)(void));

/* The lock is held while the copy is made, because the copy would find it held if another thread
 * had it. */
static void (*made_for_caller)(void);

static void made_then_drop_lock(void) {
    void (*made)(void) = made_for_caller;
    drop_lock();
    made();
}

int __wrap_sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                          void (*made)(void)) {
    if (decide(SY_FAKE_ASK_COPY)) {
        made();
        return -1;
    }
    hold_lock();
    made_for_caller = made;
    return __real_sy_os_ask_copy(work, question, answer, bytes, made_then_drop_lock);
}

int __real_sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg);
int __wrap_sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg);

int __wrap_sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg) {
    return decide(SY_FAKE_EACH_WRITTEN) ? -1 : __real_sy_os_each_written(visit, arg);
}

int __real_sy_os_at_exit(void (*hook)(void));
int __wrap_sy_os_at_exit(void (*hook)(void));

int __wrap_sy_os_at_exit(void (*hook)(void)) {
    return decide(SY_FAKE_AT_EXIT) ? -1 : __real_sy_os_at_exit(hook);
}

/* ---- waiting ---- */

static _Atomic unsigned waiting;

void __real_sy_os_wait(_Atomic uint32_t *word, uint32_t expected);
void __wrap_sy_os_wait(_Atomic uint32_t *word, uint32_t expected);

void __wrap_sy_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    atomic_fetch_add(&waiting, 1);
    __real_sy_os_wait(word, expected);
    atomic_fetch_sub(&waiting, 1);
}

void __real_sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);
void __wrap_sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);

void __wrap_sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    atomic_fetch_add(&waiting, 1);
    __real_sy_os_wait_for(word, expected, ns);
    atomic_fetch_sub(&waiting, 1);
}

void sy_fake_await_waiting(unsigned threads) {
    while (atomic_load(&waiting) < threads) sched_yield();
}

/* ---- the end ---- */

const char *sy_fake_written(void) { return written; }

bool sy_fake_catch(void (*body)(void *), void *arg) {
    jmp_buf here;
    written_length = 0;
    written[0] = '\0';
    if (setjmp(here) != 0) {
        catcher = NULL;
        return true;
    }
    catcher = &here;
    body(arg);
    catcher = NULL;
    return false;
}

int __real_sy_os_write(int fd, const char *text, size_t length);
int __wrap_sy_os_write(int fd, const char *text, size_t length);

int __wrap_sy_os_write(int fd, const char *text, size_t length) {
    if (fd != 2 || catcher == NULL) return __real_sy_os_write(fd, text, length);
    size_t room = WRITTEN_BYTES - 1 - written_length;
    size_t kept = length < room ? length : room;
    memcpy(written + written_length, text, kept);
    written_length += kept;
    written[written_length] = '\0';
    return 0;
}

_Noreturn void __real_sy_os_abort(const char *why);
_Noreturn void __wrap_sy_os_abort(const char *why);

_Noreturn void __wrap_sy_os_abort(const char *why) {
    if (catcher == NULL) __real_sy_os_abort(why);
    if (why) __wrap_sy_os_write(2, why, strlen(why));
    longjmp(*catcher, 1);
}
