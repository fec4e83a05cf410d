/*
 * record.c: the recorder. It is preloaded into an unmodified program (LD_PRELOAD) and writes the
 * program's calls of malloc, free and the like to a file (format.h). It changes nothing else.
 *
 * It includes nothing of Slabyard, so it records a program with any allocator. `slabyard record`
 * contains it, writes it to a folder of its own, and names that folder in SLABYARD_RECORD.
 *
 * What always holds:
 *  - Every thread appends to its own buffer without locks. `filled` (length and number of records
 *    in one word) is stored last, so a reader finds everything before it complete.
 *  - A buffer is written to the file and emptied only under the lock `files`. At exit, the buffers
 *    of threads that still run are written up to `filled`, and closed.
 *  - Buffers are in shared memory, a file on a tmpfs. If the process crashes or is killed,
 *    `slabyard record` reads them there. Their memory is allocated before it is used, so no write
 *    to it fails. A forked child does not see its parent's buffers.
 *  - While a thread holds `files`, signals are blocked and it cannot be cancelled. So signal
 *    handlers may fork and exit.
 *  - A limit of the file size ends the recording, not the program.
 *  - No file stays open: each block is opened, appended and closed. So the recorder does not
 *    disturb a program that closes all its descriptors, or expects certain numbers. A block has
 *    about ten thousand operations, so opening and closing cost less than a nanosecond for each.
 *  - Nothing here allocates from the program's heap. The memory is one buffer for each thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>
#endif

#include "format.h"
#include "record.h"
#include "stacks.h"

#define EXPORT __attribute__((visibility("default")))
/* The frame of the function it stands in: the caller's frame pointer, and the return address. */
#define FRAME            ((const uintptr_t *)__builtin_frame_address(0))
#define ALWAYS_INLINE    static inline __attribute__((always_inline))
#define RECORD_BYTES_MAX 64u /* head, logarithm, and six varints of at most 10 bytes */
#define BOOT_BYTES       ((size_t)32 << 10)
#define PATH_BYTES       4096u
#define STEM_BYTES       32u
#define COMMAND_BYTES    1024u

/* The program's own functions: the next ones in the order of the loader. */
static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable_size)(void *);
    int (*execve)(const char *, char *const *, char *const *);
    int (*execvpe)(const char *, char *const *, char *const *);
    int (*execveat)(int, const char *, char *const *, char *const *, int);
    int (*fexecve)(int, char *const *, char *const *);
    void (*exit_now)(int) __attribute__((noreturn));
    void (*abort)(void) __attribute__((noreturn));
    int (*dlclose)(void *);
} real;

enum { STATE_NEW, STATE_STARTING, STATE_OFF, STATE_ON };
static _Atomic int state = STATE_NEW;

static pthread_mutex_t files =
    PTHREAD_MUTEX_INITIALIZER; /* guards everything down to `shared_bytes` */
static struct buffer *buffers;
static bool begun; /* this process has a file, with a process block in it */
static int broken; /* errno of a failed write: nothing more is recorded; 0: none failed */
static uint32_t lost;
static pid_t pid;
static pid_t parent;
static uint32_t origin = ORIGIN_EXEC;
static struct record_process birth; /* clocks and pid, as they were when the process began */
static char directory[PATH_BYTES];
static char path[PATH_BYTES + 2 * STEM_BYTES];
static char shared_path[PATH_BYTES + 2 * STEM_BYTES];
static off_t shared_bytes; /* of the file with the buffers */

static _Atomic uint32_t never_wiped;
static _Atomic uint32_t *alive = &never_wiped; /* see notice_hidden_fork */
static _Atomic bool ended; /* the process's end is recorded: later records are written at once */
static _Atomic uint32_t next_thread;
static pthread_key_t exit_key;
static bool ticks_from_cpu;
static bool takes_stacks;
static uint32_t crc_table[8][256];

/* Initial-exec: a preloaded library's variables are in the first TLS block, so using them never
 * allocates. */
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL struct buffer *mine;
THREAD_LOCAL uint32_t my_thread; /* 1 and up; 0 until the first operation */
THREAD_LOCAL bool busy;          /* inside the recorder or the real allocator */
THREAD_LOCAL bool gone;          /* the thread's destructors have run */

/* ---- allocation until the real functions are known ------------------------------------------- */

static _Alignas(16) unsigned char boot[BOOT_BYTES];
static _Atomic size_t boot_used;

/* dlsym may allocate while it searches for the real malloc. Each block is preceded by its size. */
static void *boot_alloc(size_t size) {
    size_t bytes = (size + 31) & ~(size_t)15;
    if (size > BOOT_BYTES) return NULL;
    size_t at = atomic_fetch_add(&boot_used, bytes);
    if (at + bytes > BOOT_BYTES) return NULL;
    memcpy(boot + at, &size, sizeof size);
    return boot + at + 16;
}

static bool is_boot(const void *object) { return (uintptr_t)object - (uintptr_t)boot < BOOT_BYTES; }

static void *boot_move(const void *object, size_t size) {
    size_t old;
    memcpy(&old, (const unsigned char *)object - 16, sizeof old);
    void *moved = malloc(size);
    if (moved != NULL) memcpy(moved, object, old < size ? old : size);
    return moved;
}

/* ---- clocks and checksums -------------------------------------------------------------------- */

uint64_t record_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The fence prevents that the clock is read before earlier loads from memory. */
static inline uint64_t stamp_now(void) {
#if defined(__x86_64__)
    if (ticks_from_cpu) {
        _mm_lfence();
        return __rdtsc();
    }
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
#endif
    return record_nanoseconds();
}

/* The cycle counter is used only if the CPU says that it runs at the same rate on all cores. */
static void choose_clock(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) != 0) ticks_from_cpu = (d & (1u << 8)) != 0;
#endif
}

static void make_crc_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
        crc_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_table[slice - 1][byte];
            crc_table[slice][byte] = (crc >> 8) ^ crc_table[0][crc & 255];
        }
    }
}

/* Takes eight bytes in a step: 64 KiB take about 30 us. */
static uint32_t crc_more(uint32_t crc, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        __builtin_memcpy(&word, p, 8); /* with -fno-builtin, memcpy would be a call */
        word ^= crc;
        crc = 0;
        for (int slice = 0; slice < 8; slice++)
            crc ^= crc_table[7 - slice][(word >> (8 * slice)) & 255];
    }
    for (; length > 0; p++, length--) crc = (crc >> 8) ^ crc_table[0][(crc ^ *p) & 255];
    return crc;
}

static void seal(struct record_block_header *header, const void *payload) {
    uint32_t crc = crc_more(~0u, header, offsetof(struct record_block_header, crc));
    header->crc = ~crc_more(crc, payload, header->length);
}

/* ---- the file; all under `files` ------------------------------------------------------------- */

static void notice_hidden_fork(void);

void record_lock_files(struct pause *pause) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &pause->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &pause->cancel);
    pause->busy = busy;
    busy = true;
    notice_hidden_fork();
    pthread_mutex_lock(&files);
}

void record_unlock_files(const struct pause *pause) {
    pthread_mutex_unlock(&files);
    busy = pause->busy;
    pthread_setcancelstate(pause->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &pause->signals, NULL);
}

/* Whether a write of `length` bytes stays within the process's limit (ulimit -f). A write beyond it
 * would send SIGXFSZ to the program, and could leave a part of a block. */
static bool is_below_limit(off_t end, size_t length) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    return end >= 0 && (rlim_t)end + length <= limit.rlim_cur;
}

/* Ends the recording: after a gap, the later records would be useless. */
static void give_up(int error) {
    if (broken == 0) broken = error != 0 ? error : EIO;
}

/* Appends all bytes, or gives up. */
static bool append(int fd, const void *bytes, size_t length) {
    const char *p = bytes;
    while (length > 0) {
        ssize_t written = write(fd, p, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            give_up(written < 0 ? errno : ENOSPC);
            return false;
        }
        p += written;
        length -= (size_t)written;
    }
    return true;
}

static bool append_block(int fd, struct record_block_header *header, const void *payload) {
    header->magic = RECORD_BLOCK_MAGIC;
    seal(header, payload);
    return append(fd, header, sizeof *header) && append(fd, payload, header->length);
}

/* Every block but the last leaves room for the block that says how the process ended. */
static bool has_room(int fd, size_t length, bool is_last) {
    if (!is_last) length += sizeof(struct record_block_header) + sizeof(struct record_end);
    if (is_below_limit(lseek(fd, 0, SEEK_END), length)) return true;
    give_up(EFBIG);
    return false;
}

/* The program's name and arguments, separated by NUL bytes. */
static size_t read_command(char *command, size_t room) {
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, command, room);
    close(fd);
    return length > 0 ? (size_t)length : 0;
}

static bool append_process(int fd) {
    struct {
        char magic[16];
        uint32_t version;
        uint32_t crc;
    } top = {.version = RECORD_VERSION};
    memcpy(top.magic, RECORD_MAGIC, sizeof top.magic);
    top.crc = ~crc_more(~0u, &top, offsetof(__typeof__(top), crc));

    unsigned char payload[sizeof birth + COMMAND_BYTES];
    memcpy(payload, &birth, sizeof birth);
    size_t command = read_command((char *)payload + sizeof birth, COMMAND_BYTES);
    struct record_block_header header = {
        .kind = BLOCK_PROCESS,
        .stamp = birth.ticks,
        .length = (uint32_t)(sizeof birth + command),
    };
    return has_room(fd, sizeof top + sizeof header + header.length, false) &&
           append(fd, &top, sizeof top) && append_block(fd, &header, payload);
}

/* After exec another program has the same process number: each program has its own file. */
static int open_first(void) {
    for (unsigned image = 0; image < 1000000; image++) {
        char stem[STEM_BYTES];
        snprintf(stem, sizeof stem, "%d.%u", (int)pid, image);
        snprintf(path, sizeof path, "%s/" RECORD_PART_NAME, directory, stem);
        snprintf(shared_path, sizeof shared_path, "%s/" RECORD_BUFFERS_NAME, directory, stem);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Creates the file at the first operation of the process. */
static void begin_file(void) {
    int fd = open_first();
    begun = true;
    if (fd < 0) {
        give_up(errno);
        return;
    }
    append_process(fd);
    close(fd);
}

/* If the file has reached its limit, its last block is complete and says so. */
bool record_write_block(struct record_block_header *header, const void *payload) {
    bool is_last = header->kind == BLOCK_END;
    if (broken != 0 && !(is_last && broken == EFBIG)) return false;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        give_up(errno);
        return false;
    }
    bool written =
        has_room(fd, sizeof *header + header->length, is_last) && append_block(fd, header, payload);
    close(fd);
    return written;
}

static void write_buffer(struct buffer *buffer) {
    uint64_t filled = atomic_load_explicit(&buffer->shared.filled, memory_order_acquire);
    if (filled == 0 || buffer->shared.closed != 0) return;
    buffer->header.kind = (uint8_t)buffer->shared.kind;
    buffer->header.thread = buffer->shared.thread;
    buffer->header.stamp = buffer->shared.stamp;
    buffer->header.records = (uint32_t)(filled >> 32);
    buffer->header.length = (uint32_t)filled;
    if (record_write_block(&buffer->header, buffer->payload)) return;
    buffer->shared.error = (uint32_t)broken;
    buffer->shared.lost++;
    lost++;
}

void record_empty_buffer(struct buffer *buffer) {
    write_buffer(buffer);
    atomic_store_explicit(&buffer->shared.filled, 0, memory_order_release);
}

static void leave_buffer(struct buffer *buffer) {
    record_empty_buffer(buffer);
    buffer->taken = false;
}

/* ---- a thread's buffer ----------------------------------------------------------------------- */

static void begin_anew(void);

/* The kernel zeroes the page of `alive` in every process that gets a copy of the memory. So the
 * page also shows copies that were made without fork(), by the system call alone. A child of vfork
 * shares its parent's memory: its changes of the heap are recorded as its parent's. */
static bool is_hidden_fork(void) { return atomic_load_explicit(alive, memory_order_relaxed) == 0; }

static void notice_hidden_fork(void) {
    if (!is_hidden_fork()) return;
    pthread_mutex_init(&files, NULL);
    begin_anew();
}

static bool sees_hidden_forks(void) { return alive != &never_wiped; }

/* Maps memory of the file with the buffers, or returns MAP_FAILED. Without the page of `alive`
 * there is no such memory, because an unnoticed copy of this process would write to it too. */
static void *map_shared(void) {
    if (!sees_hidden_forks()) return MAP_FAILED;
    int fd = open(shared_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return MAP_FAILED;
    void *memory = MAP_FAILED;
    if (is_below_limit(shared_bytes, RECORD_BUFFER_BYTES) &&
        posix_fallocate(fd, shared_bytes, (off_t)RECORD_BUFFER_BYTES) == 0) {
        memory =
            mmap(NULL, RECORD_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, shared_bytes);
        shared_bytes += (off_t)RECORD_BUFFER_BYTES;
    }
    close(fd);
    return memory;
}

/* If no memory can be shared, the buffer is private memory, and lost if the process is killed. */
struct buffer *record_map_buffer(void) {
    void *memory = map_shared();
    if (memory == MAP_FAILED) {
        memory = mmap(NULL, RECORD_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (memory == MAP_FAILED) return NULL;
    if (sees_hidden_forks()) madvise(memory, RECORD_BUFFER_BYTES, MADV_DONTFORK);
    struct buffer *buffer = memory;
    buffer->shared.magic = RECORD_BUFFER_MAGIC;
    buffer->shared.payload = (uint32_t)offsetof(struct buffer, payload);
    buffer->shared.kind = takes_stacks ? BLOCK_STACKED : BLOCK_OPERATIONS;
    return buffer;
}

/* A thread whose destructors have run takes a buffer for its remaining frees. Its buffer becomes
 * free again when the thread has ended. */
static bool was_left(const struct buffer *buffer) {
    return buffer->leaver != 0 && syscall(SYS_tgkill, pid, buffer->leaver, 0) != 0 &&
           errno == ESRCH;
}

static struct buffer *find_buffer(void) {
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next) {
        if (buffer->shared.closed != 0) continue;
        if (buffer->taken && was_left(buffer)) leave_buffer(buffer);
        if (!buffer->taken) return buffer;
    }
    struct buffer *buffer = record_map_buffer();
    if (buffer == NULL) return NULL;
    buffer->next = buffers;
    buffers = buffer;
    return buffer;
}

static void choose_buffer(void) {
    if (my_thread == 0) my_thread = atomic_fetch_add(&next_thread, 1) + 1;
    if (!begun) begin_file();
    mine = find_buffer();
    if (mine == NULL) return;
    mine->taken = true;
    mine->leaver = gone ? (pid_t)syscall(SYS_gettid) : 0;
    mine->shared.thread = my_thread - 1;
    mine->shared.error = (uint32_t)broken;
}

static bool take_buffer(void) {
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    choose_buffer();
    record_unlock_files(&pause);
    if (mine != NULL && !gone) pthread_setspecific(exit_key, mine);
    errno = saved;
    return mine != NULL;
}

static void flush_mine(void) {
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    if (mine != NULL)
        record_empty_buffer(mine); /* NULL: a hidden fork; the buffer was the parent's */
    record_unlock_files(&pause);
    errno = saved;
}

static void give_buffer(void) {
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    if (mine != NULL) leave_buffer(mine);
    if (atomic_load(&ended)) stacks_write();
    mine = NULL;
    record_unlock_files(&pause);
    errno = saved;
}

/* The exit key's destructor. Other destructors, and libc itself, may still free after it runs. */
static void thread_exits(void *unused) {
    (void)unused;
    busy = true;
    gone = true;
    if (mine != NULL) give_buffer();
    busy = false;
}

/* ---- one record ------------------------------------------------------------------------------ */

ALWAYS_INLINE unsigned char *put_address(unsigned char *p, uintptr_t from, uintptr_t to,
                                         int shift) {
    int64_t distance = ((int64_t)to - (int64_t)from) >> shift;
    return put_varint(p, zigzag(distance));
}

struct operation {
    enum record_operation kind;
    unsigned align_log2;
    uintptr_t address, second; /* of a realloc: old and new */
    size_t size;
    uint64_t stamp;
    uint64_t took;  /* a realloc's ticks */
    uint32_t stack; /* of an allocation, if stacks are taken */
};

ALWAYS_INLINE unsigned char *put_head(unsigned char *p, const struct operation *op, bool coarse) {
    unsigned align = op->align_log2 < 3 ? 0 : op->align_log2 - 3;
    *p++ = (unsigned char)(op->kind | (coarse ? 8u : 0) | (align < 15 ? align : 15u) << 4);
    return align < 15 ? p : put_varint(p, align);
}

/* The previous record's stamp and address are passed as values: for the compiler, a stored byte
 * might change any field of `mine`. */
ALWAYS_INLINE unsigned char *put_record(unsigned char *p, const struct operation *op,
                                        uint64_t elapsed, uintptr_t previous) {
    bool coarse = ((op->address | op->second | previous) & 15) == 0;
    int shift = coarse ? 4 : 0;
    p = put_head(p, op, coarse);
    p = put_varint(p, elapsed);
    p = put_address(p, previous, op->address, shift);
    if (op->kind == RECORD_REALLOC) {
        p = put_address(p, op->address, op->second, shift);
        p = put_varint(p, op->took);
    }
    if (op->kind == RECORD_FREE) return p;
    p = put_varint(p, op->size);
    return takes_stacks && op->kind != RECORD_TOUCHED ? put_varint(p, op->stack) : p;
}

static void begin_block(struct buffer *buffer, uint64_t stamp) {
    buffer->shared.stamp = stamp;
    buffer->stamp = stamp;
    buffer->address = 0;
}

/* The caller has set `busy`. Inlined, so that an operation's fields stay in registers, and fields
 * that it does not have cost nothing. */
ALWAYS_INLINE void record(struct operation op) {
    if (__builtin_expect(mine == NULL || is_hidden_fork(), 0) && !take_buffer()) return;
    struct buffer *buffer = mine;
    uint64_t filled = atomic_load_explicit(&buffer->shared.filled, memory_order_relaxed);
    if (__builtin_expect((uint32_t)filled + RECORD_BYTES_MAX > PAYLOAD_BYTES, 0)) {
        flush_mine();
        filled = 0;
    }
    if (filled == 0) begin_block(buffer, op.stamp);
    uint64_t elapsed = op.stamp > buffer->stamp ? op.stamp - buffer->stamp : 0;
    uintptr_t previous = buffer->address;
    buffer->stamp += elapsed + op.took;
    buffer->address = op.kind == RECORD_REALLOC ? op.second : op.address;
    unsigned char *start = buffer->payload + (uint32_t)filled;
    uint64_t bytes = (uint64_t)(put_record(start, &op, elapsed, previous) - start);
    filled += bytes + ((uint64_t)1 << 32);
    atomic_store_explicit(&buffer->shared.filled, filled, memory_order_release);
    if (__builtin_expect(atomic_load_explicit(&ended, memory_order_relaxed), 0)) give_buffer();
}

/* The stack of the caller of the function with this frame. The caller has set `busy`. */
ALWAYS_INLINE uint32_t take_stack(const uintptr_t *frame) {
    if (!takes_stacks) return 0;
    if (__builtin_expect(mine == NULL || is_hidden_fork(), 0) && !take_buffer()) return 0;
    return stacks_take(mine, frame);
}

/* `frame`: of the function that the program has called. */
ALWAYS_INLINE void record_allocation(const uintptr_t *frame, enum record_operation kind,
                                     const void *object, size_t size, unsigned align_log2) {
    uint64_t stamp = stamp_now();
    record((struct operation){
        .kind = object != NULL ? kind : RECORD_FAILED,
        .align_log2 = object != NULL ? align_log2 : 0,
        .address = (uintptr_t)object,
        .size = size,
        .stamp = stamp,
        .stack = take_stack(frame),
    });
}

/* ---- how much of large objects the program has touched --------------------------------------- */

enum { WINDOW_PAGES = 1024 };

/* Looks at one window of pages, from `at` to `end` at most. Each page gets a byte whose lowest bit
 * says whether it is in RAM. Returns the number of pages; 0: it cannot be found out. */
static size_t look_at_pages(uintptr_t at, uintptr_t end, unsigned char *in_ram) {
    size_t pages = (end - at) / birth.page_size;
    if (pages > WINDOW_PAGES) pages = WINDOW_PAGES;
    return mincore((void *)at, pages * birth.page_size, in_ram) == 0 ? pages : 0;
}

static bool count_in_ram(const void *object, size_t bytes, size_t *in_ram) {
    unsigned char window[WINDOW_PAGES];
    uintptr_t page = birth.page_size, at = (uintptr_t)object & ~(page - 1);
    uintptr_t end = ((uintptr_t)object + bytes + page - 1) & ~(page - 1);
    *in_ram = 0;
    for (size_t pages; at < end; at += pages * page) {
        pages = look_at_pages(at, end, window);
        if (pages == 0) return false;
        for (size_t i = 0; i < pages; i++) *in_ram += (window[i] & 1) != 0 ? page : 0;
    }
    return true;
}

static __attribute__((noinline)) void record_touched(const void *object, size_t bytes) {
    int saved = errno;
    size_t in_ram;
    bool known = count_in_ram(object, bytes, &in_ram);
    errno = saved;
    if (!known) return;
    record((struct operation){.kind = RECORD_TOUCHED,
                              .address = (uintptr_t)object,
                              .size = in_ram,
                              .stamp = stamp_now()});
}

/* Called before an object is freed. */
ALWAYS_INLINE void note_touched(void *object) {
    if (real.usable_size == NULL) return;
    size_t bytes = real.usable_size(object);
    if (__builtin_expect(bytes >= RECORD_LARGE_BYTES, 0)) record_touched(object, bytes);
}

/* ---- the same for large objects that are live at the end; under `files` ---------------------- */

/* The most pages that are looked at, 64 GiB. It takes about 0.05 s; longer if they are in RAM. */
#define PAGES_MAX ((size_t)1 << 24)

static struct {
    unsigned char bytes[4096];
    size_t filled;
    uint32_t runs;
    uint64_t end;  /* the page after the last run */
    size_t looked; /* pages looked at */
} untouched;

static void write_untouched(void) {
    struct record_block_header header = {
        .kind = BLOCK_UNTOUCHED,
        .records = untouched.runs,
        .stamp = stamp_now(),
        .length = (uint32_t)untouched.filled,
    };
    record_write_block(&header, untouched.bytes);
    untouched.filled = 0;
    untouched.runs = 0;
    untouched.end = 0;
}

static void add_untouched(uint64_t first, uint64_t pages) {
    if (untouched.filled + 20 > sizeof untouched.bytes) write_untouched();
    unsigned char *p = untouched.bytes + untouched.filled;
    p = put_varint(p, first - untouched.end);
    p = put_varint(p, pages);
    untouched.filled = (size_t)(p - untouched.bytes);
    untouched.end = first + pages;
    untouched.runs++;
}

/* Adds the runs of pages that are not in RAM. Another thread may unmap some meanwhile. */
static void look_at_mapping(uintptr_t start, uintptr_t end) {
    static unsigned char window[WINDOW_PAGES]; /* abort may be called on a small signal stack */
    uint64_t page = birth.page_size, run = 0;
    for (size_t pages; start < end && untouched.looked < PAGES_MAX; start += pages * page) {
        pages = look_at_pages(start, end, window);
        if (pages == 0) break;
        untouched.looked += pages;
        for (size_t i = 0; i < pages; i++) {
            if ((window[i] & 1) == 0) {
                run++;
            } else if (run > 0) {
                add_untouched(start / page + i - run, run);
                run = 0;
            }
        }
    }
    if (run > 0) add_untouched(start / page - run, run);
}

/* Finds the start of the next line; false: there is none. */
bool record_next_line(struct lines *lines, char *line, size_t room) {
    for (size_t kept = 0;;) {
        if (lines->at == lines->length) {
            lines->at = 0;
            lines->length = read(lines->fd, lines->text, sizeof lines->text);
            if (lines->length <= 0) return false;
        }
        char next = lines->text[lines->at++];
        if (kept + 1 < room) line[kept++] = next != '\n' ? next : '\0';
        if (next == '\n') return true;
    }
}

/* Reads a line such as "7f0012345000-7f0012366000 rw-p ...". */
static void look_at_line(const char *line) {
    char *rest;
    uintptr_t start = strtoul(line, &rest, 16);
    uintptr_t end = strtoul(rest + 1, &rest, 16);
    bool is_own = strncmp(rest, " rw", 3) == 0 && rest[4] == 'p';
    if (is_own && end - start >= RECORD_LARGE_BYTES) look_at_mapping(start, end);
}

static void note_untouched(void) {
    static struct lines lines;
    char line[64] = "";
    lines.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    lines.length = lines.at = 0;
    if (lines.fd < 0) return;
    while (record_next_line(&lines, line, sizeof line)) look_at_line(line);
    close(lines.fd);
    write_untouched(); /* without a run too: then every page is known to be in RAM */
}

/* ---- birth, fork and end of a process -------------------------------------------------------- */

static void note_birth(void) {
    atomic_store(alive, 1);
    pid = getpid();
    birth = (struct record_process){
        .pid = (uint32_t)pid,
        .parent = (uint32_t)parent,
        .origin = origin,
        .page_size = (uint32_t)sysconf(_SC_PAGESIZE),
        .ticks = stamp_now(),
        .nanoseconds = record_nanoseconds(),
    };
}

static struct pause forking; /* guarded by `files` */

static void before_fork(void) {
    struct pause pause;
    record_lock_files(&pause);
    forking = pause;
}

static void after_fork_in_parent(void) {
    struct pause pause = forking;
    record_unlock_files(&pause);
}

/* The child has the forking thread alone, and no buffers: the parent keeps them. */
static void begin_anew(void) {
    buffers = NULL;
    mine = NULL;
    shared_bytes = 0;
    begun = false;
    broken = 0;
    lost = 0;
    stacks_begin_anew();
    atomic_store(&ended, false);
    atomic_store(&next_thread, 1);
    my_thread = 1;
    parent = pid;
    origin = ORIGIN_FORK;
    note_birth();
}

static void after_fork_in_child(void) {
    begin_anew();
    after_fork_in_parent();
}

/* The peak resident memory of the process in bytes, as the system knows it. */
static uint64_t peak_resident(void) {
    char text[2048];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "\nVmHWM:");
    return line != NULL ? strtoull(line + sizeof "\nVmHWM:" - 1, NULL, 10) * 1024 : 0;
}

static void write_end(enum record_end_reason reason) {
    struct record_end end = {
        .reason = reason,
        .lost = lost,
        .ticks = stamp_now(),
        .nanoseconds = record_nanoseconds(),
        .peak_resident = peak_resident(),
    };
    struct record_block_header header = {
        .kind = BLOCK_END,
        .stamp = end.ticks,
        .length = sizeof end,
    };
    if (begun) record_write_block(&header, &end);
}

/* Buffers of other threads are closed, because these may still be filling them. */
static void write_others(void) {
    for (struct buffer *buffer = buffers; buffer != NULL; buffer = buffer->next) {
        if (buffer == mine) continue;
        write_buffer(buffer);
        buffer->shared.closed = 1;
    }
}

/* Writes all buffers; not in a child of vfork, whose parent goes on with them. The file with the
 * buffers is not needed any more then, unless a block was lost. */
static void write_all(enum record_end_reason reason) {
    if (atomic_load(&state) != STATE_ON || atomic_load(&ended)) return;
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    if (getpid() == pid) {
        if (mine != NULL) record_empty_buffer(mine);
        write_others();
        stacks_write();
        if (begun) note_untouched();
        write_end(reason);
        if (begun && broken == 0) unlink(shared_path);
        if (reason == END_EXIT) atomic_store(&ended, true);
    }
    record_unlock_files(&pause);
    errno = saved;
}

static void finish(void) { write_all(END_EXIT); }

/* The end of the recording comes after all destructors of the program and its libraries. In glibc,
 * a function of on_exit belongs to no library; registered before the loader's own, it runs after
 * it. In musl, the destructors of a preloaded library run after those of all others. */
#ifdef __GLIBC__
static void finish_on_exit(int status, void *unused) {
    (void)status;
    (void)unused;
    finish();
}
static void watch_for_exit(void) { on_exit(finish_on_exit, NULL); }
#else
__attribute__((destructor)) static void finish_on_unload(void) { finish(); }
static void watch_for_exit(void) {}
#endif

static void watch_for_hidden_forks(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) return;
    if (madvise(word, page, MADV_WIPEONFORK) == 0)
        alive = word;
    else
        munmap(word, page);
}

static void find_real(void) {
#define FIND(member, symbol) *(void **)&real.member = dlsym(RTLD_NEXT, symbol)
    FIND(malloc, "malloc");
    FIND(free, "free");
    FIND(calloc, "calloc");
    FIND(realloc, "realloc");
    FIND(posix_memalign, "posix_memalign");
    FIND(aligned_alloc, "aligned_alloc");
    FIND(memalign, "memalign");
    FIND(valloc, "valloc");
    FIND(pvalloc, "pvalloc");
    FIND(usable_size, "malloc_usable_size");
    FIND(execve, "execve");
    FIND(execvpe, "execvpe");
    FIND(execveat, "execveat");
    FIND(fexecve, "fexecve");
    FIND(exit_now, "_exit");
    FIND(abort, "abort");
    FIND(dlclose, "dlclose");
#undef FIND
}

/* Runs at the first call or when the library is loaded, whichever comes first. The process has one
 * thread then. */
static void start(void) {
    int expected = STATE_NEW;
    if (!atomic_compare_exchange_strong(&state, &expected, STATE_STARTING)) return;
    busy = true;
    find_real();
    choose_clock();
    make_crc_table();
    const char *where = secure_getenv("SLABYARD_RECORD");
    bool on = where != NULL && where[0] == '/' && strlen(where) < sizeof directory &&
              pthread_key_create(&exit_key, thread_exits) == 0;
    if (on) {
        strcpy(directory, where);
        takes_stacks = secure_getenv("SLABYARD_RECORD_STACKS") != NULL;
        parent = getppid();
        watch_for_hidden_forks();
        note_birth();
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        watch_for_exit();
        at_quick_exit(finish);
    }
    busy = false;
    atomic_store(&state, on ? STATE_ON : STATE_OFF);
}

__attribute__((constructor)) static void loaded(void) { start(); }

/* Whether this call comes from the program, and is to be recorded. */
static inline bool enter(void) {
    if (__builtin_expect(atomic_load_explicit(&state, memory_order_relaxed) != STATE_ON, 0)) {
        start();
        if (atomic_load(&state) != STATE_ON) return false;
    }
    if (busy) return false;
    busy = true;
    return true;
}

static inline void leave(void) { busy = false; }

/* ---- the allocator's names ------------------------------------------------------------------- */

EXPORT void *malloc(size_t size) {
    bool own = enter();
    if (__builtin_expect(real.malloc == NULL, 0)) return boot_alloc(size);
    void *object = real.malloc(size);
    if (own) {
        record_allocation(FRAME, RECORD_MALLOC, object, size, 0);
        leave();
    }
    return object;
}

EXPORT void free(void *object) {
    if (object == NULL || __builtin_expect(is_boot(object), 0)) return;
    bool own = enter();
    if (own) {
        note_touched(object);
        record((struct operation){
            .kind = RECORD_FREE, .address = (uintptr_t)object, .stamp = stamp_now()});
    }
    real.free(object);
    if (own) leave();
}

/* If the product overflows, the result is a size that no allocation can have. */
static size_t product(size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

EXPORT void *calloc(size_t count, size_t size) {
    bool own = enter();
    if (__builtin_expect(real.calloc == NULL, 0)) return boot_alloc(product(count, size));
    void *object = real.calloc(count, size);
    if (own) {
        record_allocation(FRAME, RECORD_CALLOC, object, product(count, size), 0);
        leave();
    }
    return object;
}

static uint64_t after_since(uint64_t before) {
    uint64_t after = stamp_now();
    return after > before ? after - before : 0;
}

/* The old object is freed when the call begins: see format.h about stamps. */
static void *recorded_realloc(const uintptr_t *frame, void *object, size_t size) {
    note_touched(object);
    uint64_t before = stamp_now();
    void *moved = real.realloc(object, size);
    if (moved == NULL && size == 0) {
        record(
            (struct operation){.kind = RECORD_FREE, .address = (uintptr_t)object, .stamp = before});
    } else if (moved == NULL) {
        record_allocation(frame, RECORD_FAILED, NULL, size, 0);
    } else {
        uint64_t took = after_since(before);
        record((struct operation){.kind = RECORD_REALLOC,
                                  .address = (uintptr_t)object,
                                  .second = (uintptr_t)moved,
                                  .size = size,
                                  .stamp = before,
                                  .took = took,
                                  .stack = take_stack(frame)});
    }
    return moved;
}

EXPORT void *realloc(void *object, size_t size) {
    if (object == NULL) return malloc(size);
    if (__builtin_expect(is_boot(object), 0)) return boot_move(object, size);
    bool own = enter();
    if (!own) return real.realloc(object, size);
    void *moved = recorded_realloc(FRAME, object, size);
    leave();
    return moved;
}

static void *refuse_overflow(const uintptr_t *frame) {
    if (enter()) {
        record_allocation(frame, RECORD_FAILED, NULL, SIZE_MAX, 0);
        leave();
    }
    errno = ENOMEM;
    return NULL;
}

EXPORT void *reallocarray(void *object, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse_overflow(FRAME);
    return realloc(object, bytes);
}

/* The logarithm of the power of two to which the C library rounds it: memalign takes any number. */
static unsigned log2_of(size_t align) {
    return align > 1 ? 64u - (unsigned)__builtin_clzll(align - 1) : 0;
}

ALWAYS_INLINE void *aligned_done(const uintptr_t *frame, bool own, void *object, size_t align,
                                 size_t size) {
    if (own) {
        record_allocation(frame, RECORD_ALIGNED, object, size, log2_of(align));
        leave();
    }
    return object;
}

EXPORT int posix_memalign(void **result, size_t align, size_t size) {
    bool own = enter();
    int error = real.posix_memalign(result, align, size);
    aligned_done(FRAME, own, error == 0 ? *result : NULL, align, size);
    return error;
}

EXPORT void *aligned_alloc(size_t align, size_t size) {
    bool own = enter();
    return aligned_done(FRAME, own, real.aligned_alloc(align, size), align, size);
}

EXPORT void *memalign(size_t align, size_t size) {
    bool own = enter();
    return aligned_done(FRAME, own, real.memalign(align, size), align, size);
}

EXPORT void *valloc(size_t size) {
    bool own = enter();
    return aligned_done(FRAME, own, real.valloc(size), (size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size) {
    bool own = enter();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) & ~(page - 1);
    return aligned_done(FRAME, own, real.pvalloc(size), page, whole < size ? size : whole);
}

/* ---- closing a library: its addresses may be another one's afterwards ------------------------ */

EXPORT int dlclose(void *library) {
    int error = real.dlclose(library);
    stacks_note_closed();
    return error;
}

/* ---- functions that end a process without running destructors -------------------------------- */

EXPORT void _exit(int status) {
    finish();
    real.exit_now(status);
}

EXPORT void _Exit(int status) {
    finish();
    real.exit_now(status);
}

EXPORT void abort(void) {
    finish();
    real.abort();
}

EXPORT int execve(const char *file, char *const *argv, char *const *envp) {
    write_all(END_EXEC);
    return real.execve(file, argv, envp);
}

EXPORT int execv(const char *file, char *const *argv) {
    write_all(END_EXEC);
    return real.execve(file, argv, environ);
}

EXPORT int execvpe(const char *file, char *const *argv, char *const *envp) {
    write_all(END_EXEC);
    return real.execvpe(file, argv, envp);
}

EXPORT int execvp(const char *file, char *const *argv) {
    write_all(END_EXEC);
    return real.execvpe(file, argv, environ);
}

EXPORT int execveat(int dir, const char *file, char *const *argv, char *const *envp, int flags) {
    write_all(END_EXEC);
    return real.execveat(dir, file, argv, envp, flags);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *envp) {
    write_all(END_EXEC);
    return real.fexecve(fd, argv, envp);
}

/* The number of arguments before the NULL; the first one is a named parameter. */
static size_t count_arguments(va_list arguments) {
    size_t count = 1;
    while (va_arg(arguments, char *) != NULL) count++;
    return count;
}

/* Copies a list of arguments to the stack: a child of vfork has no other memory of its own. */
#define GATHER(argv, first, last)                                                            \
    va_list arguments;                                                                       \
    va_start(arguments, first);                                                              \
    size_t count = count_arguments(arguments);                                               \
    va_end(arguments);                                                                       \
    char *argv[count + 1];                                                                   \
    va_start(arguments, first);                                                              \
    argv[0] = (char *)(uintptr_t)(first);                                                    \
    for (size_t index = 1; index <= count; index++) argv[index] = va_arg(arguments, char *); \
    last;                                                                                    \
    va_end(arguments)

EXPORT int execl(const char *file, const char *first, ...) {
    GATHER(argv, first, (void)0);
    return execv(file, argv);
}

EXPORT int execlp(const char *file, const char *first, ...) {
    GATHER(argv, first, (void)0);
    return execvp(file, argv);
}

EXPORT int execle(const char *file, const char *first, ...) {
    GATHER(argv, first, char *const *envp = va_arg(arguments, char *const *));
    return execve(file, argv, envp);
}
