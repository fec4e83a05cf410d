/*
 * os.h: the operating-system interface: all that Slabyard asks of a system is declared here.
 *
 * Above: every layer may call it. No layer above makes a system call in another way or has an
 * #ifdef. Below: the files of one platform implement all of it (platform.h). In tests fake.c stands
 * between the two, and can cause each failure named here.
 *
 * An address goes through these states, always in whole pages:
 *
 *                 reserve              commit              first write, populate
 *      (nothing) --------> reserved --------> committed --------------------> backed
 *                             ^                  ^                              |
 *          release from any   |                  +---------- discard -----------+
 *          of them: nothing   +-- (never again: what is committed stays so)
 *
 * What always holds:
 *   - A failed call returns NULL or -1 and sets errno. It has changed nothing, unless its comment
 *     says otherwise.
 *   - A call that succeeds leaves errno as it was. (A free must not change errno.)
 *   - No function calls malloc or takes a lock, unless its comment says so.
 *   - Any thread may call any function. The caller ensures that two threads do not work on the same
 *     range at once.
 *   - start and bytes of a range are multiples of sy_os_page_size(), bytes is not 0, and the whole
 *     range lies in address space that sy_os_reserve gave and sy_os_release did not take. The
 *     range may span reservations that happen to be neighbours. A call that breaks this rule is a
 *     bug of the caller: the platform does not check it, and the fake aborts.
 */
#ifndef SLABYARD_OS_H
#define SLABYARD_OS_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "os/platform.h"

/* Whether this platform has a service. If not, the functions for it fail or do nothing. */
static inline bool sy_os_has(unsigned service) { return (SY_OS_SERVICES & service) != 0; }

/* ---- memory ---- */

/* Reserves `bytes` of address space, which is inaccessible and costs no memory. Its start is a
 * multiple of `align` (a power of two, at least the page size). After sy_os_show_names(true),
 * `name` appears in the system's list of mappings, if that has names; it is printable, under 80
 * characters, without \ $ ` [ ]. NULL: no name. ENOMEM: no address space, a limit on it, or too
 * many mappings. The range gets no huge pages unless one of the functions below asks for them,
 * whatever the system's setting. Near the most mappings that a process may have, the range
 * lengthens one that there is, and is accessible. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name);

/* Whether later reservations get names: false at first. */
void sy_os_show_names(bool shown);

/* The range becomes readable and writable and reads as zero. The first write to a page gets its
 * memory. Pages that are committed already keep their content, so it is harmless to commit a range
 * twice, even by two threads at once. ENOMEM: the system does not promise that much, or there are
 * too many mappings. The front part of the range may be committed all the same, which is harmless
 * too. */
int sy_os_commit(void *start, size_t bytes);

/* Backs a committed range with memory now, and leaves its content as it is. ENOMEM: there is not
 * enough memory; part of the range may be backed, which sy_os_discard undoes. A system that
 * overcommits may report success without having the memory. */
int sy_os_populate(void *start, size_t bytes);

/* Returns the memory of a committed range to the system. The content is lost, and the range reads
 * as zero. -1: the memory is still held, and the content may be lost; so it is where the system
 * ignores the request. Memory that sy_os_lock has locked is discarded only
 * with SY_OS_LOCKED_RETURNS; else the system would unlock it. */
int sy_os_discard(void *start, size_t bytes);

/*
 * Moves the memory and content of one committed range to another, from the front on. Returns how
 * many bytes have moved; these stay committed in `from` and read as zero. Fewer than `bytes`: the
 * system refused the rest, for example because there are too many mappings. The rest of `from` is
 * unchanged. The old content of `to` is lost, also where nothing moved. errno is unchanged.
 *
 * *lost: behind what has moved, a part of `to` is no longer mapped, and other memory of the process
 * may lie there already. So nothing but what has moved may be used, and `to` must not be released.
 * This takes a limit that was set below what the process has (RLIMIT_AS, RLIMIT_DATA), or strict
 * overcommit with no memory left. From then on nothing moves in this process.
 */
size_t sy_os_move(void *from, void *to, size_t bytes, bool *lost);

/* Whether sy_os_move works at present. It needs Linux 6.17 or newer, and !sy_os_locks_all(). */
bool sy_os_can_move(void);

/* Brings a range back to the state in which sy_os_reserve returned it: one mapping, with no page
 * committed. Its memory goes back to the system. -1: the range may no longer be mapped, and must
 * not be used. */
int sy_os_decommit(void *start, size_t bytes);

/* Returns a reservation, or a part of one, to the system; its pages may be in any state. ENOMEM: a
 * middle part cannot be taken out, because that would make one mapping too many; the range is
 * unchanged. */
int sy_os_release(void *start, size_t bytes);

/* Asks for transparent huge pages in the range, or asks that there be none. The range may also be
 * variables of the library if there are to be none. This is advice: -1 means that the system does
 * not support it, and nothing depends on the result. */
int sy_os_huge(void *start, size_t bytes, bool wanted);

/* Backs a committed range with one huge page now, and leaves its content as it is. The range is as
 * long as a huge page and begins at a multiple of this (2 MiB, if pages have 4 KiB). If a part of
 * it is discarded later, this part gets small pages again. -1: the system has no huge page at
 * present, or no such pages, or forbids them; the range has got memory for its first page only. */
int sy_os_make_huge(void *start, size_t bytes);

/* Whether the 32 bits at an address, a multiple of 4, are other than zero. False: they are zero, or
 * cannot be read; any address may be passed. */
bool sy_os_is_written(const void *address);

/* Includes the range in core dumps (`wanted`), or leaves it out. Advice, as above. */
int sy_os_dump(void *start, size_t bytes, bool wanted);

/* Locks a committed range: backs it with memory, which is never swapped out (`wanted`); or unlocks
 * it. ENOMEM: more than the process may lock, or not enough memory; part of the range may be
 * locked. */
int sy_os_lock(void *start, size_t bytes, bool wanted);

/* Whether the program has asked that all future memory be locked (mlockall with MCL_FUTURE), as far
 * as the last reservation showed. Reservations are never locked: the caller locks what it commits
 * for the program. */
bool sy_os_locks_all(void);

/*
 * If `wanted`, a committed range becomes inaccessible: its content is lost, and its memory goes
 * back to the system. Else the range becomes accessible: guarded pages read as zero, others keep
 * their content. -1: some of the pages may be guarded, whatever was wanted. ENOMEM: too many
 * mappings (see sy_os_guards_split). EINVAL: the memory is locked. The child of a fork has the same
 * guards.
 */
int sy_os_guard(void *start, size_t bytes, bool wanted);

/* True: each guarded range is a separate mapping, and a process may have some ten thousand
 * mappings. False: guards need no mappings (MADV_GUARD_INSTALL, Linux 6.13). */
bool sy_os_guards_split(void);

/* Allocates a block of the C library, of `bytes` at a multiple of `align` (a power of two). Tools
 * that watch malloc see it. NULL with ENOMEM. Calls malloc. */
void *sy_os_block(size_t bytes, size_t align); /* replaceable */

/* Frees such a block. Any other pointer is handled by the C library, or the tool, as in a call of
 * free. Calls free. */
void sy_os_block_free(void *block); /* replaceable */

/* The page size in bytes: a power of two, which never changes in a process. */
size_t sy_os_page_size(void);

/* ---- processors, time ---- */

/* A small number that differs between threads that run at the same moment, and that seldom changes
 * for a thread: its concurrency id in the process, or else its processor. It is a hint: it may be
 * out of date at once, and may be as large as sy_os_cpu_count() or larger. Never fails; costs a
 * load or two. */
unsigned sy_os_cpu(void);

/* Nanoseconds of a clock that never goes back, from an arbitrary start. */
uint64_t sy_os_now(void);

/* Nanoseconds of processor time that the calling thread has used so far. A system call. */
uint64_t sy_os_thread_time(void);

/* 64 random bits that cannot be predicted from outside the process. If the system refuses to give
 * any, they are weaker. Never fails, never waits. */
uint64_t sy_os_random(void);

/* ---- facts: read by facts.c, one thread at a time, never inside an allocation or a free ---- */

/* The number of processors that this process may use at once, by its affinity and its control
 * group's quota (rounded up). At least 1. Reads files. */
unsigned sy_os_cpu_count(void);

/* An estimate of how many processors this process uses, by affinity alone: as many as the calling
 * thread may run on, or the process's first thread if those are more. At least 1. Two system calls.
 * Background threads run on the processors of the first call. */
unsigned sy_os_affinity_count(void);

/* The bytes of memory that this process may use: the least of its control-group and resource
 * limits, SIZE_MAX if it has none. Reads files. */
size_t sy_os_memory_limit(void);

/* The bytes of the process's anonymous memory that are in RAM now; 0: unknown. Reads a file. */
size_t sy_os_resident(void);

/* Nanoseconds during which tasks have waited for memory so far: tasks of the process's control
 * group, or if that is unknown, all tasks of the system (pressure stall information). UINT64_MAX:
 * unknown. Reads files. */
uint64_t sy_os_memory_stall(void);
/* The time of these waits, by the file in which the last call of sy_os_memory_stall has found it:
 * reads one. */
uint64_t sy_os_memory_stall_again(void);

/* Whether the process has a limit on address space or on data now (RLIMIT_AS, RLIMIT_DATA). Two
 * system calls. */
bool sy_os_space_is_limited(void);

/* Whether the system gives huge pages to all programs; whether it gives any, to programs that ask
 * for them. Read a file. */
bool sy_os_huge_is_usual(void);
bool sy_os_huge_is_possible(void);

/* ---- background threads ---- */

/*
 * A background thread does what a program does not notice. It blocks all signals. It is scheduled
 * as an ordinary thread, on the processors that the process could use at its start, whatever the
 * thread has that starts it.
 */
typedef struct sy_os_background {
    void (*body)(void);
    const char *name; /* for tools: at most 15 characters */
    size_t stack;     /* bytes, if the system accepts so few; 0: as the program's threads */
    bool hidden;      /* the C library is not to know of the thread, if the platform can hide it */
} sy_os_background;

/*
 * A hidden thread leaves the C library in its mode for a process with one thread, in which locks
 * are cheaper. It must call no function of the program, and none of the C library that takes a
 * lock. One thread of each kind (started by sy_os_start_thread, readers) is hidden at a time:
 * the start waits for the end of the one before.
 */

/* Whether the calling thread is hidden. */
bool sy_os_is_hidden(void);

/* Whether threads may be hidden: false. Weak: a product defines this function if it ends the
 * threads before a function of the C library changes all threads of the process (setuid). */
bool sy_os_may_hide_threads(void);

/* In the child of a fork: its background threads are gone. */
void sy_os_forget_background(void);

/* Starts a detached background thread. EAGAIN or ENOMEM: no thread was made. If it is not hidden,
 * may call malloc. The struct has to stay. */
int sy_os_start_thread(const sy_os_background *thread);

/* Starts a background thread that has a descriptor table of its own, empty at first. So it can read
 * files, and no other thread sees its descriptors. EPERM: the system cannot do that. One thread at
 * a time may start one. sy_os_end_reader waits for its end. */
int sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader);
void sy_os_end_reader(uintptr_t reader);

/*
 * Makes each other thread of the process run a full memory barrier, at a point of its execution
 * between the begin and the end of this call; so the caller does itself. A thread that does not run
 * need not wake up for it. ENOSYS: the system has no such call, or refuses it (then it is not asked
 * again), or a detector of races would not understand it. One system call; three the first time.
 */
int sy_os_barrier_threads(void);

/* Whether the program's threads have all ended: the process has no first thread any more, and only
 * `background` other threads. Two system calls. False if the system does not tell. */
bool sy_os_is_left_alone(unsigned background);

/* Whether the system tells that. */
bool sy_os_lists_threads(void);

/* Waits until the system has forgotten a thread of this process that is about to end; a second at
 * most. */
void sy_os_await_end(unsigned thread);

/* The calling background thread takes signals from now on, as the thread did that started it: it is
 * the last thread of the process and is about to end. */
void sy_os_take_signals(void);

/* ---- threads and processes ---- */

/* The system's number for the calling thread. A call of the C library. */
unsigned sy_os_thread(void);
/* False in a child of vfork: it runs in its parent's memory, with the thread-local variables of the
 * thread that called vfork. A system call. */
bool sy_os_is_own_thread(void);

/* Sleeps while *word == expected. May return without a reason: the caller tests the word again. */
void sy_os_wait(_Atomic uint32_t *word, uint32_t expected);

/* Sleeps as sy_os_wait does, for `ns` nanoseconds at most. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);

/* Wakes at most `count` threads that sleep on the word. */
void sy_os_wake(_Atomic uint32_t *word, int count);

/* When the calling thread exits, hook(arg) runs on it. The process has one hook; a different one
 * fails with EINVAL. Each thread has one arg, that of its last call; with NULL the hook does not
 * run. If the hook registers its thread again, it runs once more, a few times at most. It does not
 * run at exit() of the process. ENOMEM or EAGAIN: not registered. May call malloc. */
int sy_os_at_thread_exit(void (*hook)(void *), void *arg);

/* Registers hooks of fork. Before a fork `prepare` runs in the parent (last registered, first run);
 * after it `parent` or `child` runs (first registered, first run). Any may be NULL. ENOMEM: not
 * registered. May call malloc. Hooks cannot be unregistered. */
int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* Keeps the shared object that contains this library loaded after dlclose: each thread that has
 * used the library runs its code when the thread ends. Does nothing in an executable. May call
 * malloc, and takes the loader's lock: it is called at the start of the process or in dlopen. */
void sy_os_stay_loaded(void);

/*
 * For the hooks of fork: take and release the C library's lock of its list of open streams, if it
 * can be taken from outside. The C library's fork waits for this lock after the prepare hooks.
 * Another thread may hold it while it waits for a stream, and the thread that uses this stream may
 * wait for a lock of Slabyard. So this lock is taken before those of Slabyard. The prepare hook
 * calls `hold`, the other two call `drop`; `in_child` is true in the child's hook. Calls may be
 * nested, by handlers of signals.
 */
void sy_os_hold_streams(void);
void sy_os_drop_streams(bool in_child);

/* ---- bad accesses ---- */

typedef enum sy_os_way { SY_OS_WAY_UNKNOWN, SY_OS_READ, SY_OS_WRITE } sy_os_way;

enum { SY_OS_REGISTERS_MAX = 31 };

/* A memory access that the system refused. */
typedef struct sy_os_access {
    uintptr_t address;
    bool placed; /* `address` is known; the system does not report an impossible (non-canonical)
                  * address */
    sy_os_way way;
    uintptr_t code;     /* the instruction */
    unsigned registers; /* the number of `values`; sy_os_register_name names each */
    uintptr_t values[SY_OS_REGISTERS_MAX];
} sy_os_access;

/*
 * From now on, when the system refuses an access (SIGSEGV, SIGBUS), explain(access) is called
 * first, on the thread, in the handler of the signal. Then the signal has the effect that it would
 * have had: the handler installed before is called, or the access is repeated and ends the process,
 * with a core. A signal that a process sent is not explained. A handler that the program installs
 * later replaces this one. A bad access within `explain` does not call it again. The library's
 * thread-local variables are not touched before `explain` is called. Only the first call in a
 * process has an effect.
 */
void sy_os_on_bad_access(bool (*explain)(const sy_os_access *access));

/*
 * Installs a handler that explains nothing until sy_os_on_bad_access is called. It is for the start
 * of the process. A runtime that installs a handler only if there is none then finds this one: the
 * Rust runtime may allocate, and so cause the call of sy_os_on_bad_access, between its look and its
 * installation. If the program has replaced this handler when sy_os_on_bad_access is called, the
 * program's is one that was installed before. The library makes the two calls one after the other.
 */
void sy_os_expect_bad_access(void);

/* The address of the instruction whose access is being explained on this thread; 0: none is. */
uintptr_t sy_os_interrupted(void);

/* The name of a general register, by its number below `registers`. */
const char *sy_os_register_name(unsigned number);

/* ---- environment, terminal, report files ---- */

/* The value of an environment variable. NULL: it is not set, or the process has more rights than
 * its user (AT_SECURE), so that the user must not influence it. Valid until the program changes its
 * environment. */
const char *sy_os_option(const char *name);

/* Options that are set before those of the user; "": none. Weak: a product built from this library
 * that has other defaults defines this function itself. A product that is the program's malloc also
 * defines the two functions for blocks. */
const char *sy_os_default_options(void);

/* Notes which file stderr is, at the start. Later calls do nothing. */
void sy_os_note_stderr(void);

/* The file descriptor for messages to the user. It is the first of these that holds: 2, if it still
 * refers to the file that was stderr at the start, or refers to a pipe or terminal; the descriptor
 * of sy_os_keep_stderr; 2, if it refers to a log: a file to which a message is only appended. -1:
 * there is none, or stderr was closed at the start; nothing may be written. May be called in a
 * handler of a signal. errno is unchanged. */
int sy_os_stderr(void);

/* Keeps a second descriptor of stderr, with a high number and closed by exec, for what is written
 * when the program may have closed stderr. If there is no room for it, does nothing. */
void sy_os_keep_stderr(void);

/* Whether `fd` refers to a terminal. */
bool sy_os_is_terminal(int fd);

/* Appends all of `text` to a file. If there is no such file, it is made, readable by its owner
 * alone. -1: the file could not be opened, or not all of the text was written. */
int sy_os_append(const char *path, const char *text, size_t length);

/* The same, in place of what the file had. */
int sy_os_replace(const char *path, const char *text, size_t length);

/* ---- a signal that is noted ---- */

/* The signals that can be noted; in the order of the words of the option `stats-on`. */
enum { SY_OS_NO_SIGNAL, SY_OS_USR1, SY_OS_USR2, SY_OS_HUP, SY_OS_URG };

/* From now on a handler of this signal sets *byte to 1, and does nothing else. The signal noted
 * before is the program's again. -1 with EBUSY: the signal has a handler already or is ignored;
 * ENOSYS: the platform has no signals. */
int sy_os_note_signal(unsigned which, _Atomic uint8_t *byte);

/* Whether the signal is noted still: the program may have set a handler of its own since. */
bool sy_os_notes_signal(void);

/* ---- where the program is ---- */

/* A part of the calling thread's stack. From any address in it up to `high`, all bytes are readable
 * while the thread lives. high 0: nothing is known yet. */
typedef struct sy_os_bounds {
    uintptr_t low, high;
} sy_os_bounds;

/* Extends the bounds so that they include `here`, an address on the stack on which the thread runs
 * now. False: this is another stack than the thread's own (of signals, of coroutines), or the
 * system does not tell; the bounds are unchanged. A system call, which reads no file. */
bool sy_os_stack(uintptr_t here, sy_os_bounds *bounds);

/*
 * Runs body(arg), on a stack of the library's own if the platform has one (on Linux, x86-64 and
 * aarch64). It has 256 KiB, so the caller's stack needs no room but for this call itself. The body
 * has to return, and only one thread at a time may be in such a call. Within the body, this
 * function just calls the other body, and handlers of signals do not find the thread's alternate
 * stack if the thread has come from it.
 */
void sy_os_on_own_stack(void (*body)(void *arg), void *arg);

/* Whether a frame pointer points to two words: the caller's frame pointer and the return address.
 * On Windows it points into the middle of a frame. */
static inline bool sy_os_has_frames(void) { return sy_cpu_has_frames() && !SY_PLATFORM_WINDOWS; }

#if SY_PLATFORM_LINUX && defined(__x86_64__) && defined(__LP64__)
#    define SY_OS_UNWINDS_REBUILT 1
#else
#    define SY_OS_UNWINDS_REBUILT 0
#endif

/*
 * Calls each(arg, code, stack) for frames of the calling thread's stack, from the innermost one
 * outwards, while it returns true. The first frames may be those of the functions that look.
 * `code` lies behind the instruction that the frame stands for: a return address, or where a signal
 * interrupted a function, that instruction's address plus one. `stack` is the stack pointer there.
 * It uses the tables that compilers make; may take locks of the C library and of the loader. Calls
 * nothing while tables cannot be used.
 */
typedef bool sy_os_each_frame(void *arg, uintptr_t code, uintptr_t stack);
void sy_os_unwind(sy_os_each_frame *each, void *arg);

#if SY_PLATFORM_LINUX && defined(__x86_64__) && defined(__LP64__)
#    define SY_OS_STEPS 1
#else
#    define SY_OS_STEPS 0
#endif

/*
 * As sy_os_unwind, without the compiler's unwinder, and without a lock: for the functions behind
 * the one whose frame pointer is `frame`, on the thread's own stack, which can be read up to
 * `high`. Returns false if it cannot go on, maybe after some frames. Then sy_os_unwind may work.
 */
#if SY_OS_STEPS
bool sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each, void *arg);
#else
static inline bool sy_os_unwind_own(uintptr_t frame, uintptr_t high, sy_os_each_frame *each,
                                    void *arg) {
    (void)frame, (void)high, (void)each, (void)arg;
    return false;
}
#endif

/* The innermost frame of a stack that was put together in memory of its own: the address at which
 * its code goes on, and the registers there. Functions that look at it, and handlers of signals,
 * use the memory below `stack`. The words above, in which frames and return addresses are read, end
 * with zeros. */
typedef struct sy_os_rebuilt {
    uintptr_t code;
    uintptr_t stack; /* the stack pointer, a multiple of 16 */
    uintptr_t frame; /* the frame pointer */
} sy_os_rebuilt;

/* Whether sy_os_unwind_rebuilt works here. Reads no tables. */
bool sy_os_unwinds_rebuilt(void);

/* Whether the code is the library's own. Only the drop-in malloc's shared library knows. */
bool sy_os_is_own_code(uintptr_t code);

/* Whether unwinding tables describe the instruction that ends at `code`. May take locks, as
 * sy_os_unwind. */
bool sy_os_has_table(uintptr_t code);

/* As sy_os_unwind, but for a stack that was put together. The first frames are again those of the
 * functions that look. Addresses of code in that stack have tables, and others lead to memory that
 * can be read: the code may be unloaded since. */
void sy_os_unwind_rebuilt(const sy_os_rebuilt *from, sy_os_each_frame *each, void *arg);

/* Whether unwinding tables can be used. In a program that is linked statically, a constructor of
 * the compiler's registers them, and a destructor removes them, under a lock of the unwinder. Who
 * asks for them earlier ends the process; who asks meanwhile may wait for itself. */
bool sy_os_has_tables(void);

/* Called in the child of a fork: in a program that is linked statically, another thread of the
 * parent may have held that lock, so tables cannot be used any more. */
void sy_os_lose_tables(void);

/* Whether this process has, or had, more than one thread. */
bool sy_os_has_had_threads(void);

enum { SY_OS_FILE_MAX = 256, SY_OS_FUNCTION_MAX = 512 };

typedef struct sy_os_place {
    uint64_t in_file;     /* the address in the file, as tools that read the file print it */
    uint64_t in_function; /* bytes from the start of the function */
    char file[SY_OS_FILE_MAX];
    char function[SY_OS_FUNCTION_MAX]; /* "": not in the file's symbol table */
} sy_os_place;

/* Finds the file and the function that the code at `address` is from; the function is from the
 * file's symbol table. False: the address is in no file. Reads files; takes about as long as
 * reading their symbol tables. Without /proc it finds the files that the loader knows. */
bool sy_os_locate(uintptr_t address, sy_os_place *place);

/* Finds the file by the loader's list alone: without a function, and without a system call. */
bool sy_os_locate_loaded(uintptr_t address, sy_os_place *place);

enum { SY_OS_BUILD_ID_MAX = 32 };

/* A part of a file that is loaded as code. */
typedef struct sy_os_code {
    uintptr_t start, end;
    uint64_t in_file; /* offset of `start` in the file */
    char file[SY_OS_FILE_MAX];
    uint8_t build_id[SY_OS_BUILD_ID_MAX];
    size_t build_id_bytes; /* 0: the file has none */
} sy_os_code;

/* Calls `visit` for all code of the program and its libraries, with a lock of the loader held: it
 * may call no other function of the system. Nothing is visited if the system has no such list. */
void sy_os_each_code(void (*visit)(void *arg, const sy_os_code *code), void *arg);

/* Whether the system tells what is mapped: there is /proc, and its files can be opened. */
bool sy_os_tells_mappings(void);

typedef enum sy_os_region {
    SY_OS_NOWHERE,     /* nothing is mapped there */
    SY_OS_UNTOLD,      /* in no file of the program; the system does not tell more (no /proc) */
    SY_OS_ANONYMOUS,   /* a mapping without a name */
    SY_OS_NAMED,       /* a mapping that the system names, such as "[heap]": `file` */
    SY_OS_OWN_STACK,   /* the calling thread's stack */
    SY_OS_FIRST_STACK, /* the first thread's stack; the calling thread is another */
    SY_OS_OF_FILE,     /* a file is mapped: `file` */
    SY_OS_OF_PROGRAM,  /* a file of the program or of its libraries: also `section` and `name` if
                        * known */
} sy_os_region;

enum { SY_OS_SECTION_MAX = 32 };

typedef struct sy_os_data {
    sy_os_region region;
    char file[SY_OS_FILE_MAX];
    char section[SY_OS_SECTION_MAX]; /* "": not known */
    char name[SY_OS_FUNCTION_MAX];   /* the variable or function; "": not known */
    uint64_t behind;                 /* bytes from its start */
} sy_os_data;

/* Whether the calling thread runs on its alternate stack for signal handlers. */
bool sy_os_on_signal_stack(void);

/* Finds out what lies at an address. Reads files; may wait for a lock of the loader. */
void sy_os_find(uintptr_t address, sy_os_data *data);

/* sy_os_load loads a library by name; sy_os_symbol finds the address of a name in it, or in the
 * program if `library` is NULL. NULL: not found. The library gets its own malloc if the system
 * supports that. Both call malloc and take locks. */
void *sy_os_load(const char *library);
void *sy_os_symbol(void *library, const char *name);

/* The number of this process. */
int sy_os_process(void);

/* Whether a debugger or another tracer is attached to this process. Reads a file. */
bool sy_os_is_traced(void);

/*
 * Runs `work` in a child process, and waits for its end. The child has a copy of this process's
 * memory as it is now. It runs only `work`: no hooks of fork, no handlers of signals or of exit. It
 * has one thread, so a lock that another thread of the parent holds stays held there. What the
 * child writes to its `answer` (`bytes`, all zero at first) is copied to the caller's `answer`,
 * even if the child crashes, or is ended after `seconds`. The program gets no signal when the child
 * ends. EAGAIN or ENOMEM: there was no child, and `answer` is unchanged.
 */
typedef void sy_os_work(const void *question, void *answer);
int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds);

/* ---- the process as a whole ---- */

/*
 * Runs `work` in a copy of this process, and waits for its end. The copy has this process's memory
 * as it is now, and one thread. It runs only `made` and `work`: no hooks of fork or exit, no
 * handlers of signals. What the copy writes to its `answer` (`bytes`, all zero at first) is copied
 * to the caller's `answer`, even if the copy crashes. `made` is called in both processes: in the
 * caller as soon as the copy exists or could not be made, in the copy before `work`. So a caller
 * that takes locks before this call and releases them in `made` holds them only while the copy is
 * made. The program gets no signal when the copy ends. -1 with ENOMEM or EAGAIN: there was no copy.
 */
int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void));

/* Whole pages from `start` to `end`, and the bounds of the mapping that they are in. */
typedef struct sy_os_piece {
    uintptr_t start, end, mapping, mapping_end;
} sy_os_piece;

/*
 * Calls `visit` for each run of pages of private writable memory that have content, by rising
 * address. All of a piece can be read while no other thread returns memory to the system: this is
 * for a process with one thread. Mappings larger than 512 GiB, such as the shadow memory of
 * sanitizers, are left out. 0, or -1 with the system's errno if the system does not provide the
 * list.
 */
int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg);

/* When the process ends by exit() or by a return from main(), hook() runs: last registered, first
 * run. ENOMEM: not registered. May call malloc. What the hook writes to sy_os_stderr also arrives
 * if the program closes stderr before (sy_os_keep_stderr). */
int sy_os_at_exit(void (*hook)(void));

/* ---- failures on demand ---- */

/* Names of the calls here that can fail, without their prefix: "reserve" is sy_os_reserve. NULL
 * comes after the last. */
extern SY_HIDDEN const char *const sy_os_calls[];

/* Sets a function that each of these calls asks first: if due(name) is true, the call fails with
 * ENOMEM and does nothing. NULL: there is no such function. `due` runs on the calling thread, with
 * the locks held that the caller holds. */
void sy_os_set_failing(bool (*due)(const char *call));

/* Between these two, the calling thread is not cancelled: for calls here that are cancellation
 * points. sy_os_drop_cancellation gets what sy_os_hold_cancellation returned. */
int sy_os_hold_cancellation(void);
void sy_os_drop_cancellation(int before);

/* ---- the end ---- */

/* Writes all of `text` to file descriptor `fd`. 0, or the number of the first error, at which it
 * stops. errno is unchanged. */
int sy_os_write(int fd, const char *text, size_t length);

/* To be called while the process ends already (in a hook of sy_os_at_exit): ends it with that
 * status. Buffered output of the program's streams is written; hooks that have not run yet do not
 * run. */
_Noreturn void sy_os_end(int status);

/* Writes `why`, a whole line, to stderr, and ends the process abnormally, with a core if the system
 * makes cores. NULL: a report has said why. Nothing else in the library ends the process so. */
_Noreturn void sy_os_abort(const char *why);

#endif
