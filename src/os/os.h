/*
 * os.h: the operating-system interface: all that Slabyard asks of a system is declared here.
 *
 * Above: every layer may call it. No layer above makes a system call in another way or has an
 * #ifdef. Below: the files of one platform (linux*.c) implement all of it. In tests fake.c stands
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
 *   - Failure is NULL or -1 with errno, and nothing has changed unless said otherwise.
 *   - Success leaves errno as it was. (A free must not disturb it.)
 *   - Nothing here calls malloc, except where said; nothing here takes a lock.
 *   - All of it may be called from any thread. Ranges are the caller's: two threads must not work
 *     on the same range at once.
 *   - start and bytes of a range are multiples of sy_os_page_size(), bytes is not 0, and the whole
 *     range lies in address space that sy_os_reserve gave and sy_os_release did not take. The
 *     range may span reservations that happen to be neighbours. Breaking this is the caller's bug:
 *     unchecked here, fatal in the fake.
 */
#ifndef SLABYARD_OS_H
#define SLABYARD_OS_H

#include <slabyard/base.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory ---- */

/* Address space, not accessible, costing no memory: `bytes` of it, its start a multiple of
 * `align` (a power of two, at least the page size). `name` shows in the system's list of mappings
 * where it has names: printable, under 80 characters, without \ $ ` [ ]; NULL for none.
 * ENOMEM: no address space, a limit on it, or too many mappings. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name);

/* The range becomes readable and writable and reads as zero; memory comes with the first write to
 * each page. What was committed before stays as it is, content included, so committing twice is
 * harmless, even by two threads at once. ENOMEM: the system does not promise that much, or too many
 * mappings; then a front part may have been committed all the same, which is again harmless. */
int sy_os_commit(void *start, size_t bytes);

/* Back a committed range with memory now, content untouched. ENOMEM: there is none; part of the
 * range may have been backed, which discard takes back. Where the system cannot say so (it only
 * overcommits), the failure is not seen here. */
int sy_os_populate(void *start, size_t bytes);

/* The content of a committed range is lost, its memory goes back to the system, and it reads as
 * zero. -1: the content may be lost or not, the memory is still held. */
int sy_os_discard(void *start, size_t bytes);

/* Moves memory and content from one committed range of `bytes` to another. The old content of
 * `to` is lost; `from` stays committed and reads as zero. -1: `from` is as it was, and the content
 * of `to` may be lost. */
int sy_os_move(void *from, void *to, size_t bytes);

/* Whether sy_os_move works at present. It needs Linux 6.17 or newer, no limit on address space or
 * data (RLIMIT_AS, RLIMIT_DATA), and no strict overcommit when it is first asked. */
bool sy_os_can_move(void);

/* Makes a range as sy_os_reserve gave it: one mapping, nothing of it committed. Its memory goes
 * back to the system. -1: the range may be mapped no longer, and must not be used. */
int sy_os_decommit(void *start, size_t bytes);

/* A reservation, or a part of one, goes, in whatever state its pages are. ENOMEM: taking out a
 * middle part would make one mapping too many; the range is as it was. */
int sy_os_release(void *start, size_t bytes);

/* Ask for transparent huge pages in the range, or ask that there be none. Advice: -1 where the
 * system has no such thing, and nothing depends on the answer. */
int sy_os_huge(void *start, size_t bytes, bool wanted);

/* Keep the range out of core dumps, or have it in them again. Advice, as above. */
int sy_os_dump(void *start, size_t bytes, bool wanted);

/* Back a committed range with memory and keep it there, never in swap; or let it go. ENOMEM: more
 * than the process may lock, or there is none; part of it may be locked. */
int sy_os_lock(void *start, size_t bytes, bool wanted);

/*
 * A committed range becomes inaccessible (`wanted`), its content lost and its memory the system's
 * again, or accessible, reading as zero where it was guarded and as before elsewhere. -1, when
 * guards are wanted: some may be there; when they are not: some may still be. ENOMEM: too many
 * mappings (below); EINVAL: memory that is locked. A fork's child has the same guards.
 */
int sy_os_guard(void *start, size_t bytes, bool wanted);

/* Whether each guarded range is a mapping of its own, of which a process may have some ten
 * thousands; else guards cost none (MADV_GUARD_INSTALL, Linux 6.13). */
bool sy_os_guards_split(void);

/* A block of the C library's, of `bytes` at a multiple of `align` (a power of two): what a tool
 * that watches malloc sees. NULL with ENOMEM. Calls malloc. */
void *sy_os_block(size_t bytes, size_t align); /* weak */

/* Frees one. Of any other pointer the C library, or the tool, thinks what it thinks. Calls free. */
void sy_os_block_free(void *block); /* weak */

/* Bytes of a page: a power of two, the same for the life of the process. */
size_t sy_os_page_size(void);

/* ---- processors, limits, time ---- */

/* A small number that differs between threads running at the same moment, and that a thread seldom
 * sees change: the concurrency id of the process, or else the processor. A hint: it may be stale
 * when it is read, and it may reach or pass sy_os_cpu_count(). Never fails; a load or two. */
unsigned sy_os_cpu(void);

/* Processors that this process may use at once: affinity and control-group quota (rounded up)
 * honoured. At least 1. Reads files: ask once. */
unsigned sy_os_cpu_count(void);

/* Processors that this process may run on at once, affinity alone honoured: what sy_os_cpu can tell
 * apart. At least 1. One system call, no file. */
unsigned sy_os_affinity_count(void);

/* Bytes of memory that this process may use: the least of control-group and resource limits,
 * SIZE_MAX if there is none. Reads files: ask seldom. */
size_t sy_os_memory_limit(void);

/* Whether a limit on address space or on data (RLIMIT_AS, RLIMIT_DATA) holds now. */
bool sy_os_space_is_limited(void);

/* Nanoseconds of a clock that never goes back, from an arbitrary start. */
uint64_t sy_os_now(void);

/* 64 bits that outsiders cannot foresee; weaker where the system refuses. Never fails, never
 * waits. */
uint64_t sy_os_random(void);

/* ---- threads and processes ---- */

/* The system's number for the calling thread. A load, but for the first time. */
unsigned sy_os_thread(void);
/* False in a child of vfork, which lives in its parent's memory, and in the calling thread's. A
 * system call. */
bool sy_os_is_own_thread(void);

/* In the child of a fork: the calling thread has another number than in the parent. */
void sy_os_thread_forked(void);

/* Sleep while *word == expected. May return for no reason: the caller looks again. */
void sy_os_wait(_Atomic uint32_t *word, uint32_t expected);

/* The same, for `ns` nanoseconds at most. */
void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns);

/* Wake up to `count` threads that sleep on the word. */
void sy_os_wake(_Atomic uint32_t *word, int count);

/* Run body(arg) on a new thread that is detached, and to which no signal is delivered. EAGAIN
 * or ENOMEM: there is none. May call malloc. */
int sy_os_start_thread(void *(*body)(void *), void *arg);

/* When the calling thread exits, hook(arg) runs on it. There is one hook for the process (another
 * one is EINVAL) and one arg for each thread, the one said last; NULL takes it back. The hook may
 * register its thread again, and is then run once more, a few times at most. It does not run on
 * exit() of the process. ENOMEM or EAGAIN: not registered; may call malloc. */
int sy_os_at_thread_exit(void (*hook)(void *), void *arg);

/* Around fork: prepare in the parent before (last registered, first run), then parent or child
 * after it (first registered, first run). Any may be NULL. ENOMEM: not registered; may call
 * malloc. For ever: there is no way to take it back. */
int sy_os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/*
 * For the hooks of fork: what the C library's fork itself waits for after the hooks, as far as it
 * can be held before: the list of open streams. Another thread may have it and wait for a stream,
 * whose user waits for a lock of ours; so it is taken before these. `hold` in prepare, `drop` in
 * the other two: `in_child` says which. May be nested, by handlers of signals.
 */
void sy_os_hold_streams(void);
void sy_os_drop_streams(bool in_child);

/* ---- bad accesses ---- */

typedef enum sy_os_way { SY_OS_WAY_UNKNOWN, SY_OS_READ, SY_OS_WRITE } sy_os_way;

enum { SY_OS_REGISTERS_MAX = 31 };

/* An access that the system refused. */
typedef struct sy_os_access {
    uintptr_t address;
    bool placed; /* the address is known: it is not where it could be no address at all */
    sy_os_way way;
    uintptr_t code;     /* the instruction */
    unsigned registers; /* so many are known, each by sy_os_register_name */
    uintptr_t values[SY_OS_REGISTERS_MAX];
} sy_os_access;

/*
 * From now on an access that the system refuses (SIGSEGV, SIGBUS) calls explain(access) first, on
 * the thread and in the handler of the signal, and then does what it would have done: what handled
 * the signal before is called, or the access is done again and ends the process, with its core. A
 * signal that a process sent is not explained. A handler that the program installs later comes in
 * the place of this. `explain` is not entered again by an access of its own, and nothing
 * thread-local of the library's is touched before it. Once a process; a second call changes
 * nothing.
 */
void sy_os_on_bad_access(bool (*explain)(const sy_os_access *access));

/* The instruction whose access is being explained on this thread; 0: none is. */
uintptr_t sy_os_interrupted(void);

/* The name of a general register, by its number below `registers`. */
const char *sy_os_register_name(unsigned number);

/* ---- environment, terminal, report files ---- */

/* What the environment says under this name; NULL: nothing, or the process has more rights than its
 * user, who must not have a say then. Valid until the program changes its environment. */
const char *sy_os_option(const char *name);

/* Options that hold before those that the user says; "": none. Weak: a product made of this library
 * that has other defaults, or whose malloc it is, brings this function and the two for blocks. */
const char *sy_os_default_options(void);

/* Whether `fd` leads to a terminal. */
bool sy_os_is_terminal(int fd);

/* Write all of `text` to the end of a file, which is made if there is none (readable by its owner
 * alone). -1: it could not be opened, or not all was written. */
int sy_os_append(const char *path, const char *text, size_t length);

/* ---- where the program is ---- */

/* The bounds of the calling thread's stack: from any address on it up to *high all is readable for
 * as long as the thread lives. What is not in between is on another stack (of signals, of
 * coroutines). False: they are not known. Reads a file: ask once a thread. */
bool sy_os_stack(uintptr_t *low, uintptr_t *high);

enum { SY_OS_FILE_MAX = 256, SY_OS_FUNCTION_MAX = 512 };

typedef struct sy_os_place {
    uint64_t in_file;     /* the address by which tools know it that read the file */
    uint64_t in_function; /* bytes behind the function's beginning */
    char file[SY_OS_FILE_MAX];
    char function[SY_OS_FUNCTION_MAX]; /* "": not in the file's table of symbols */
} sy_os_place;

/* What file the code at `address` is from, and which function, by the file itself. False: it is of
 * no file. Reads files, about as long as their tables of symbols. */
bool sy_os_locate(uintptr_t address, sy_os_place *place);

typedef enum sy_os_region {
    SY_OS_NOWHERE,     /* nothing is mapped there */
    SY_OS_ANONYMOUS,   /* a mapping without a name */
    SY_OS_NAMED,       /* one with a name of the system's: `file`, "[heap]" */
    SY_OS_OWN_STACK,   /* the calling thread's stack */
    SY_OS_FIRST_STACK, /* the first thread's, which is another */
    SY_OS_OF_FILE,     /* a file is mapped: `file` */
    SY_OS_OF_PROGRAM,  /* the same, the program or a library of it: `section`, `name` if known */
} sy_os_region;

enum { SY_OS_SECTION_MAX = 32 };

typedef struct sy_os_data {
    sy_os_region region;
    char file[SY_OS_FILE_MAX];
    char section[SY_OS_SECTION_MAX]; /* "": not known */
    char name[SY_OS_FUNCTION_MAX];   /* of the variable or function; "": not known */
    uint64_t behind;                 /* bytes behind its beginning */
} sy_os_data;

/* Whether the thread is on the stack that it has for signals' handlers. */
bool sy_os_on_signal_stack(void);

/* What the address is of. Reads files; may wait for a lock of the loader's. */
void sy_os_find(uintptr_t address, sy_os_data *data);

/* A library by name, and the address of a name in it, or in the program for NULL. NULL: there is
 * none. The library has its own malloc if the system can do that. Calls malloc; takes locks. */
void *sy_os_load(const char *library);
void *sy_os_symbol(void *library, const char *name);

/* The number of this process. */
int sy_os_process(void);

/* Whether a debugger, or another that traces, is attached to it. Reads a file. */
bool sy_os_is_traced(void);

/*
 * Lets a child process work, and waits for it. It sees this process's memory as it is now, runs
 * nothing but `work` (no hooks of fork, no handlers of signals or of exit), and has no other
 * thread; so a lock that another one holds stays taken there. What it writes to `answer` (`bytes`,
 * reading as zero before) is what the caller finds in his, also when the child died at it, or was
 * ended after `seconds`. The program is told of no child's end. EAGAIN or ENOMEM: no child,
 * `answer` is as it was.
 */
typedef void sy_os_work(const void *question, void *answer);
int sy_os_ask_child(sy_os_work *work, const void *question, void *answer, size_t bytes,
                    unsigned seconds);

/* ---- the process as a whole ---- */

/*
 * Lets a copy of this process work, and waits for it. The copy has this process's memory as it is
 * now and one thread, and runs nothing else: no hooks of fork or exit, no handlers of signals. What
 * it writes to `answer` (`bytes`, reading as zero before) is what the caller finds in his, also if
 * it died at it. `made` is called in both, in the caller as soon as the copy is there or cannot be,
 * in the copy before `work`; so locks that are held over the call and let go there guard no more
 * than the copying. The program is told of no child's end. -1 with ENOMEM or EAGAIN: no copy was to
 * be had.
 */
int sy_os_ask_copy(sy_os_work *work, const void *question, void *answer, size_t bytes,
                   void (*made)(void));

/* Whole pages from `start` to `end`, in a mapping that begins and ends elsewhere. */
typedef struct sy_os_piece {
    uintptr_t start, end, mapping, mapping_end;
} sy_os_piece;

/*
 * Calls `visit` for the private writable memory of this process that holds something, by rising
 * address. All of a piece can be read, as long as no other thread gives memory back: this is for a
 * process that has one. Mappings larger than 512 GiB, such as sanitizers keep their notes in, are
 * left out. 0, or -1 with the system's errno: it does not say.
 */
int sy_os_each_written(void (*visit)(void *arg, const sy_os_piece *piece), void *arg);

/* When the process ends by exit() or from main(), hook() runs: last registered, first run. ENOMEM:
 * not registered; may call malloc. */
int sy_os_at_exit(void (*hook)(void));

/* ---- failures on demand ---- */

/* Names of the calls here that can fail, without their prefix: "reserve" is sy_os_reserve. NULL
 * comes after the last. */
extern SY_HIDDEN const char *const sy_os_calls[];

/* Sets a function that each of these calls asks first: if due(name) is true, the call fails with
 * ENOMEM and does nothing. NULL: there is no such function. `due` runs on the calling thread, with
 * the locks held that the caller holds. */
void sy_os_set_failing(bool (*due)(const char *call));

/* ---- the end ---- */

/* Write all of `text` to file descriptor `fd`. 0, or the number of the first error, at which it
 * gives up; errno untouched. */
int sy_os_write(int fd, const char *text, size_t length);

/* End the process with that status, while it is ending already (sy_os_at_exit): what the program's
 * streams hold is written, hooks that have not run yet never do. */
_Noreturn void sy_os_end(int status);

/* End the process abnormally, with a core where the system makes them. */
_Noreturn void sy_os_abort(void);

#endif
