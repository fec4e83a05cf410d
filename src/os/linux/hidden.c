/*
 * hidden.c: background threads of which the C library does not know. It is made by the system
 * call clone instead of pthread_create.
 *
 * From the first pthread_create on, glibc takes locks with atomic instructions (mutexes, streams,
 * C++'s shared_ptr), which a program with one thread would pay for. A hidden thread leaves glibc in
 * its mode for one thread. In this mode glibc's locks do not exclude the hidden thread. So a hidden
 * thread calls no function of the C library that takes a lock (streams, malloc, the loader), and no
 * function of the program. What it calls may use errno and other thread-local variables of this
 * library and of the C library, and the thread's structure in glibc (struct pthread).
 *
 * All of that is in the thread's room, a mapping that is made once and used by one thread at a
 * time. The thread pointer is at a page boundary:
 *
 *     x86-64      | guard page | stack | thread-local variables | structure, 8 KiB |
 *     aarch64     | guard page | stack | structure | 16 bytes, thread-local variables |
 *                                                  ^ thread pointer; on x86-64 before the structure
 *
 * The variables of this library and of the C library lie as far from the thread pointer as in all
 * threads: they are in the static TLS block. Their first values are those of the segment PT_TLS.
 * The variables of other objects are zero. Nothing there reads them. In the structure these words
 * are set: the pointers to itself, the values for stack and pointer guards, the mark that there are
 * several threads, and the thread's number. The kernel writes the number before the thread runs, as
 * it does for glibc's own threads, and clears it when the thread has ended and its room is unused.
 *
 * glibc changes user and group only in threads that it knows. So the drop-in malloc ends hidden
 * threads before such a change (shim/shared/users.c), and other products do not hide threads.
 */
#define _GNU_SOURCE

#include "os/linux/thread.h"
#include "os/os.h"
#include "os/race.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <link.h>
#    include <pthread.h>
#    include <sched.h>
#    include <signal.h>
#    include <string.h>
#    include <sys/mman.h>
#    include <sys/syscall.h>
#    include <unistd.h>

SY_TLS bool sy_linux_is_hidden;

SY_REPLACEABLE bool sy_os_may_hide_threads(void) { return false; }

bool sy_os_is_hidden(void) { return sy_linux_is_hidden; }

/* An instrumented library would call its sanitizer, whose thread-local variables are not set. */
#    if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#        define SANITIZED 1
#    elif defined(__has_feature)
#        if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
            __has_feature(memory_sanitizer)
#            define SANITIZED 1
#        endif
#    endif

#    if defined(__GLIBC__) && !defined(SY_DLOPEN) && !defined(SANITIZED) && \
        (defined(__x86_64__) || defined(__aarch64__))

/* The thread's number in struct pthread: behind a header of 24 words (on x86-64 704 bytes) and the
 * two links of a list, in all versions of glibc so far. It is tested with the starting thread. */
#        if defined(__x86_64__)
enum { NUMBER_AT = 720, STRUCTURE_BYTES = 8192, TCB_BYTES = 0 };
#        else
enum { NUMBER_AT = 208, STRUCTURE_BYTES = 0, TCB_BYTES = 16 };
#        endif
enum { LONGEST = 64 << 20 }; /* static TLS blocks that are longer are not imitated */

/* A sanitizer in the program replaces functions of the C library that this library calls. */
extern __attribute__((weak, visibility("default"))) size_t __sanitizer_get_heap_size(void);

/* From glibc 2.35 on: where a thread's restartable-sequence area is, from the thread pointer. */
extern __attribute__((weak, visibility("default"))) const ptrdiff_t __rseq_offset;

/* The first values of thread-local variables. */
typedef struct values {
    ptrdiff_t at; /* from the thread pointer */
    const void *first;
    size_t bytes;
} values;

/* Found at the start, before the process can have loaded other objects. */
static struct {
    values of[2];
    unsigned objects;
    ptrdiff_t structure; /* from the thread pointer, as the next two */
    ptrdiff_t low, high; /* the room's part that is not the stack */
    bool known;
} layout;

static void extend(ptrdiff_t from, size_t bytes) {
    if (from < layout.low) layout.low = from;
    if (from + (ptrdiff_t)bytes > layout.high) layout.high = from + (ptrdiff_t)bytes;
}

static bool contains(const char *start, size_t bytes, const void *address) {
    return (uintptr_t)address - (uintptr_t)start < bytes;
}

/* Notes the objects that own sy_linux_is_hidden and errno: this library and the C library, or one
 * program that contains either. */
static int note_object(struct dl_phdr_info *object, size_t bytes, void *unused) {
    (void)unused;
    const char *variables = bytes >= sizeof *object ? object->dlpi_tls_data : NULL;
    for (size_t i = 0; variables && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        bool ours = contains(variables, part->p_memsz, &sy_linux_is_hidden);
        bool librarys = contains(variables, part->p_memsz, &errno);
        if (part->p_type != PT_TLS || !(ours || librarys)) continue;
        ptrdiff_t at = variables - sy_linux_thread_pointer();
        const void *first = (const void *)(object->dlpi_addr + part->p_vaddr);
        layout.of[layout.objects++] = (values){at, first, part->p_filesz};
        extend(at, part->p_memsz);
        if (ours && librarys) layout.objects = 2;
    }
    return layout.objects == 2;
}

static void round_to_pages(void) {
    ptrdiff_t page = (ptrdiff_t)sy_os_page_size();
    layout.low = -((-layout.low + page - 1) / page * page);
    layout.high = (layout.high + page - 1) / page * page;
}

__attribute__((constructor(103))) static void note_layout(void) {
    enum { RSEQ_BYTES = 64 };
    if (!sy_os_may_hide_threads() || __sanitizer_get_heap_size) return;
    layout.structure = (const char *)pthread_self() - sy_linux_thread_pointer();
    extend(layout.structure, STRUCTURE_BYTES);
    extend(0, TCB_BYTES);
    if (&__rseq_offset) extend(__rseq_offset, RSEQ_BYTES);
    const char *number = sy_linux_thread_pointer() + layout.structure + NUMBER_AT;
    if (*(const int *)(const void *)number != (int)syscall(SYS_gettid)) return;
    layout.known = dl_iterate_phdr(note_object, NULL) != 0;
    if (layout.low < -LONGEST || layout.high > LONGEST) layout.known = false;
    round_to_pages();
}

bool sy_linux_can_hide(void) { return layout.known && !sy_race_detector; }

/* ---- the room ---- */

static char *thread_pointer_of(const sy_linux_room *room) {
    return room->start + room->bytes - layout.high;
}

/* The kernel writes it. */
static _Atomic uint32_t *number_of(const sy_linux_room *room) {
    return (_Atomic uint32_t *)(void *)(thread_pointer_of(room) + layout.structure + NUMBER_AT);
}

/* The kernel wakes waiters of all processes that share the memory: so no private futex. */
void sy_linux_await_hidden(const sy_linux_room *room) {
    if (!room->start) return;
    int saved = errno;
    for (uint32_t number; (number = atomic_load(number_of(room))) != 0;)
        syscall(SYS_futex, number_of(room), 0 /* FUTEX_WAIT */, number, NULL, NULL, 0);
    errno = saved;
}

void sy_linux_forget_hidden(const sy_linux_room *room) {
    if (room->start) atomic_store(number_of(room), 0);
}

/* The stack and the rest, without the guard page. */
static char *usable(const sy_linux_room *room) { return room->start + sy_os_page_size(); }

static size_t usable_bytes(const sy_linux_room *room) { return room->bytes - sy_os_page_size(); }

static int map_room(sy_linux_room *room, size_t stack) {
    if (room->start) return 0;
    size_t page = sy_os_page_size(), bytes = page + (stack + page - 1) / page * page;
    bytes += (size_t)(layout.high - layout.low);
    const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    char *start = mmap(NULL, bytes, PROT_NONE, own, -1, 0);
    if (start == MAP_FAILED) return -1;
    room->bytes = bytes;
    if (mprotect(start + page, bytes - page, PROT_READ | PROT_WRITE) != 0) {
        munmap(start, bytes);
        errno = ENOMEM;
        return -1;
    }
    room->start = start;
    return 0;
}

void sy_linux_clear_room(const sy_linux_room *room) {
    int saved = errno;
    if (room->start && madvise(usable(room), usable_bytes(room), MADV_DONTNEED) != 0)
        memset(usable(room), 0, usable_bytes(room)); /* locked memory */
    errno = saved;
}

/* Writes what a new thread finds, into a room that is zero. */
static void furnish(const sy_linux_room *room) {
    char *pointer = thread_pointer_of(room);
    void **structure = (void **)(void *)(pointer + layout.structure);
    for (unsigned i = 0; i < 2; i++)
        if (layout.of[i].bytes)
            memcpy(pointer + layout.of[i].at, layout.of[i].first, layout.of[i].bytes);
#        if defined(__x86_64__)
    enum { ITSELF = 0, AGAIN = 2, SEVERAL = 3, STACK_GUARD = 5, POINTER_GUARD = 6 };
    void **own = (void **)(uintptr_t)sy_linux_thread_pointer();
    structure[ITSELF] = structure[AGAIN] = structure;
    structure[STACK_GUARD] = own[STACK_GUARD];
    structure[POINTER_GUARD] = own[POINTER_GUARD];
#        else
    enum { SEVERAL = 0 };
#        endif
    *(int *)(void *)&structure[SEVERAL] = 1;
    if (&__rseq_offset) ((int32_t *)(void *)(pointer + __rseq_offset))[1] = -1; /* no processor */
}

/* ---- the thread ---- */

typedef void body_function(void *arg);

/* The system call clone. The new thread calls body(arg) on the stack that ends at `top`, with the
 * thread pointer. Returns the new thread's number, or an error below 0. */
long SY_HIDDEN sy_linux_clone(unsigned long flags, void *top, _Atomic uint32_t *number,
                              void *pointer, body_function *body, void *arg);

#        if defined(__x86_64__)

__asm__(".pushsection .text\n"
        ".hidden sy_linux_clone\n"
        ".globl sy_linux_clone\n"
        ".type sy_linux_clone, @function\n"
        "sy_linux_clone:\n"
        ".cfi_startproc\n"
        "    subq $16, %rsi\n"
        "    movq %r8, (%rsi)\n"
        "    movq %r9, 8(%rsi)\n"
        "    movq %rdx, %r10\n"
        "    movq %rcx, %r8\n"
        "    movl $56, %eax\n" /* clone */
        "    syscall\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    ret\n"
        ".cfi_undefined %rip\n"
        "1:  xorl %ebp, %ebp\n"
        "    popq %rax\n"
        "    popq %rdi\n"
        "    call *%rax\n"
        "    ud2\n"
        ".cfi_endproc\n"
        ".size sy_linux_clone, . - sy_linux_clone\n"
        ".popsection");

#        else

__asm__(".pushsection .text\n"
        ".hidden sy_linux_clone\n"
        ".globl sy_linux_clone\n"
        ".type sy_linux_clone, @function\n"
        "sy_linux_clone:\n"
        ".cfi_startproc\n"
        "    stp x4, x5, [x1, #-16]!\n"
        "    mov x4, x2\n"
        "    mov x8, #220\n" /* clone */
        "    svc #0\n"
        "    cbz x0, 1f\n"
        "    ret\n"
        ".cfi_undefined x30\n"
        "1:  mov x29, #0\n"
        "    mov x30, #0\n"
        "    ldp x1, x0, [sp], #16\n"
        "    blr x1\n"
        "    brk #1\n"
        ".cfi_endproc\n"
        ".size sy_linux_clone, . - sy_linux_clone\n"
        ".popsection");

#        endif

/* The thread ends by the system call: its stack is not glibc's to free. */
static _Noreturn void live(void *room) {
    sy_linux_is_hidden = true;
    (void)((sy_linux_room *)room)->body(((sy_linux_room *)room)->arg);
    sy_linux_end_hidden();
    for (;;) syscall(SYS_exit, 0L);
}

/* The flags with which glibc makes a thread: sandboxes permit these. */
int sy_linux_start_hidden(sy_linux_room *room, size_t stack, void *(*body)(void *), void *arg) {
    const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                CLONE_CHILD_CLEARTID;
    const uint64_t all = UINT64_MAX;
    uint64_t before;
    sy_linux_await_hidden(room);
    if (map_room(room, stack) != 0) return -1;
    sy_linux_clear_room(room);
    furnish(room);
    room->body = body;
    room->arg = arg;
    char *pointer = thread_pointer_of(room);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    long made = sy_linux_clone(flags, pointer + layout.low, number_of(room), pointer, live, room);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof all);
    if (made > 0) return 0;
    errno = (int)-made;
    return -1;
}

#    else

bool sy_linux_can_hide(void) { return false; }

int sy_linux_start_hidden(sy_linux_room *room, size_t stack, void *(*body)(void *), void *arg) {
    (void)room;
    (void)stack;
    (void)body;
    (void)arg;
    errno = ENOSYS;
    return -1;
}

void sy_linux_await_hidden(const sy_linux_room *room) { (void)room; }
void sy_linux_forget_hidden(const sy_linux_room *room) { (void)room; }
void sy_linux_clear_room(const sy_linux_room *room) { (void)room; }

#    endif

#endif
