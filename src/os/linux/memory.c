/*
 * memory.c: the part of os.h for memory.
 *
 * Reserved address space is a private anonymous mapping without access; commit is mprotect, discard
 * is madvise. The kernel counts a private mapping for its overcommit policy (vm.overcommit_memory)
 * and for RLIMIT_DATA when the mapping becomes writable, not before. So a reservation costs
 * nothing, and a commit can be refused, as a malloc of as many bytes can. (With MAP_NORESERVE it
 * could not be.) The kernel merges neighbouring mappings with the same name and access, so a
 * reservation whose front part is committed takes two mappings.
 */
#define _GNU_SOURCE

#include "base/bits.h"
#include "os/facts.h"
#include "os/failing.h"
#include "os/linux/thread.h"
#include "os/os.h"
#include "os/posix/pages.h"
#include "os/touch.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <sys/mman.h>
#    include <sys/prctl.h>
#    include <sys/syscall.h>
#    include <unistd.h>

/* Names of the kernel that older headers lack, or that are not among the C library's headers. */
#    define COMPARE_PRIVATE        132 /* FUTEX_CMP_REQUEUE_PRIVATE */
#    define MOVE_AND_KEEP          4   /* 5.7; MREMAP_DONTUNMAP */
#    define ADVICE_POPULATE_READ   22  /* 5.14 */
#    define ADVICE_POPULATE_WRITE  23  /* 5.14 */
#    define ADVICE_DONTNEED_LOCKED 24  /* 5.18 */
#    define ADVICE_COLLAPSE        25  /* 6.1 */
#    define ADVICE_GUARD           102 /* 6.13 */
#    define ADVICE_UNGUARD         103
#    define ADVICE_OF_NO_KERNEL    9999
#    define NAME_MAPPING           0x53564d41 /* 5.17; PR_SET_VMA */
#    define NAME_ANONYMOUS         0          /* PR_SET_VMA_ANON_NAME */

/* Where the system's setting is `always`, the kernel would back the first write to any whole 2 MiB
 * of a mapping with a huge page, and fill holes later. All mappings here have the same advice, so
 * neighbours still become one. */
static void keep_small(void *start, size_t bytes) {
    int saved = errno;
    madvise(start, bytes, MADV_NOHUGEPAGE);
    errno = saved;
}

static _Atomic bool shows_names;

void sy_os_show_names(bool shown) {
    atomic_store_explicit(&shows_names, shown, memory_order_relaxed);
}

/* A sandbox may end a process that calls prctl. So there are no names unless the user wants
 * them. */
static void name_mapping(void *start, size_t bytes, const char *name) {
    int saved = errno;
    if (name != NULL && atomic_load_explicit(&shows_names, memory_order_relaxed))
        prctl(NAME_MAPPING, NAME_ANONYMOUS, start, bytes, name);
    errno = saved;
}

/* ---- near the most mappings that a process may have ---- */

static bool move(void *from, void *to, size_t bytes) {
    return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MOVE_AND_KEEP, to) == to;
}

/* Whether the process has all its mappings but five, or more. The kernel looks at this first of all
 * when it is to move memory, so nothing is tried but a move between pages that no process has. */
static bool has_too_many_mappings(void) {
    size_t page = sy_os_page_size();
    int saved = errno;
    bool many = !move(NULL, (void *)page, page) && errno == ENOMEM;
    errno = saved;
    return many;
}

/* After mlockall(MCL_FUTURE) each mapping is locked, counts as locked memory with all its bytes,
 * and gets all its memory when it becomes writable. That cannot be asked; but only locked memory
 * cannot be discarded. */
static _Atomic bool locks_all;

bool sy_os_locks_all(void) { return atomic_load_explicit(&locks_all, memory_order_relaxed); }

static void unlock_reservation(void *start, size_t bytes) {
    bool locked = madvise(start, bytes, MADV_DONTNEED) != 0 && errno == EINVAL;
    if (locked) munlock(start, bytes);
    if (locked != sy_os_locks_all())
        atomic_store_explicit(&locks_all, locked, memory_order_relaxed);
}

/* A mapping with nothing behind it for some GiB. It can be lengthened there, whatever the number of
 * mappings. It is readable and writable, so to commit a part of it splits nothing. */
static const size_t SPARE_BELOW = SY_ADDRESS_SPACE(32768, 256) << 20; /* the first reservation */

static _Atomic(char *) spare_end; /* NULL: it was not made yet */

/* Makes it, below memory that was just reserved: the kernel gives addresses downwards. */
static void make_spare(const char *first) {
    const size_t page = sy_os_page_size();
    char *none = NULL, *place = (char *)(uintptr_t)first - SPARE_BELOW;
    char *start = mmap(place, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return;
    unlock_reservation(start, page); /* else what it is lengthened by would be locked */
    keep_small(start, page);
    if (!atomic_compare_exchange_strong(&spare_end, &none, start + page)) munmap(start, page);
}

/* If another thread does this at once, one of them finds that the end is not there any more. If the
 * page before the end was released, the mapping is not used again. */
static void *lengthen_spare(size_t bytes, size_t align) {
    const size_t page = sy_os_page_size();
    char *end = atomic_load(&spare_end), *seen = NULL;
    while (end && end != seen) {
        size_t gap = (size_t)(-(uintptr_t)end & (align - 1));
        if (bytes > SIZE_MAX / 2 - gap) return NULL;
        if (mremap(end - page, page, page + gap + bytes, 0) == end - page) {
            atomic_store(&spare_end, end + gap + bytes);
            return end + gap;
        }
        seen = end;
        if (errno == EFAULT) atomic_compare_exchange_strong(&spare_end, &end, NULL);
        end = atomic_load(&spare_end);
    }
    return NULL;
}

/* Called before a range is released: if it is the end of the mapping, the mapping is shorter. */
static void shorten_spare(char *start, size_t bytes) {
    char *end = start + bytes;
    atomic_compare_exchange_strong(&spare_end, &end, start);
}

/* ---- reservations ---- */

/* Where so much cannot be locked, even for a moment, one page is. Then it is unlocked, and
 * lengthened. */
static void *map_unlocked(size_t bytes) {
    const size_t page = sy_os_page_size();
    void *first = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (first == MAP_FAILED) return NULL;
    unlock_reservation(first, page);
    void *start = mremap(first, page, bytes, MREMAP_MAYMOVE);
    if (start != MAP_FAILED) return start;
    munmap(first, page);
    return NULL;
}

static void *map_nothing(void *hint, size_t bytes) {
    void *start = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return errno == EAGAIN ? map_unlocked(bytes) : NULL;
    unlock_reservation(start, bytes);
    return start;
}

/* Maps exactly `bytes`. If their start is not aligned, maps them again a little lower: the kernel
 * gives addresses downwards, so the space below is usually free. */
static void *reserve_exactly(size_t bytes, size_t align) {
    char *start = map_nothing(NULL, bytes);
    size_t over = (uintptr_t)start & (align - 1);
    if (over == 0) return start;
    if (munmap(start, bytes) != 0) return NULL;
    start = map_nothing(start - over, bytes);
    if (!((uintptr_t)start & (align - 1))) return start;
    munmap(start, bytes);
    return NULL;
}

static void *reserve_more_and_cut(size_t bytes, size_t align) {
    size_t slack = align - sy_os_page_size();
    if (bytes > SIZE_MAX - slack) return NULL;
    void *base = map_nothing(NULL, bytes + slack);
    return base ? sy_posix_cut(base, bytes + slack, bytes, align) : NULL;
}

/* A mapping of exactly this size is tried first: near a limit there may be no address space for a
 * larger one, and mappings that touch become one.
 *
 * Address space without memory is in no core of the kernel's. gcore writes it as zeros.
 * MADV_DONTDUMP would keep it out of these, too, but a mapping passes this on to its parts: each
 * commit would need MADV_DODUMP as a second call, and if the system refused that, for want of
 * mappings, cores would lack live objects. Between the two calls, what is committed could not join
 * the mapping beside it. */
void *sy_os_reserve(size_t bytes, size_t align, const char *name) {
    if (sy_os_is_failing("reserve")) return NULL;
    int saved = errno;
    if (has_too_many_mappings()) {
        void *part = lengthen_spare(bytes, align);
        if (part) return part;
    }
    void *start = reserve_exactly(bytes, align);
    if (!start) start = reserve_more_and_cut(bytes, align);
    if (start) errno = saved;
    if (start == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    keep_small(start, bytes);
    name_mapping(start, bytes, name);
    if (!atomic_load_explicit(&spare_end, memory_order_relaxed)) make_spare(start);
    return start;
}

int sy_os_commit(void *start, size_t bytes) {
    if (sy_os_is_failing("commit")) return -1;
    return mprotect(start, bytes, PROT_READ | PROT_WRITE);
}

/* Whether madvise answers 0 to an advice that no kernel has. qemu's user mode does, and ignores the
 * advice. It also ignores MADV_DONTNEED for memory that mremap has moved. So if this is true, an
 * answer of 0 to a recent advice proves nothing, and memory is not moved. */
static bool accepts_any_advice(void) {
    enum { UNKNOWN, ACCEPTS, REFUSES };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state == UNKNOWN) {
        int saved = errno;
        size_t page = sy_os_page_size();
        void *own = (void *)((uintptr_t)&known & -page); /* to which nothing is done */
        state = madvise(own, page, ADVICE_OF_NO_KERNEL) == 0 ? ACCEPTS : REFUSES;
        atomic_store_explicit(&known, state, memory_order_relaxed);
        errno = saved;
    }
    return state == ACCEPTS;
}

/* Calls madvise again after EAGAIN and EINTR, at most 100 times: the kernel returns EAGAIN while
 * pages move or memory is short for a moment. */
static int advise(void *start, size_t bytes, int advice) {
    int result;
    int left = 100;
    if (advice >= ADVICE_POPULATE_READ && accepts_any_advice()) return sy_os_failed(EINVAL);
    do result = madvise(start, bytes, advice);
    while (result != 0 && (errno == EAGAIN || errno == EINTR) && --left > 0);
    return result;
}

bool sy_linux_is_readable(uintptr_t start, size_t bytes) {
    return advise((void *)start, bytes, ADVICE_POPULATE_READ) == 0;
}

int sy_os_populate(void *start, size_t bytes) {
    if (sy_os_is_failing("populate")) return -1;
    int saved = errno;
    if (advise(start, bytes, ADVICE_POPULATE_WRITE) == 0) {
        errno = saved;
        return 0;
    }
    if (errno != EINVAL) return sy_os_failed(ENOMEM);
    sy_os_touch(start, bytes);
    errno = saved;
    return 0;
}

/* Whether the kernel can move two mappings at once (Linux 6.17). An older kernel has other rules
 * for what it refuses, and when. So this is tried with mappings that nothing else uses. */
static bool kernel_moves_mappings(void) {
    size_t page = sy_os_page_size();
    char *from = sy_os_reserve(4 * page, page, NULL), *to = from ? from + 2 * page : NULL;
    if (!from) return false;
    bool can = mprotect(from, page, PROT_READ | PROT_WRITE) == 0 && move(from, to, 2 * page);
    sy_os_release(from, (can ? 4 : 2) * page);
    return can;
}

enum { MOVES_UNKNOWN, MOVES, MOVES_NOT };

static _Atomic int moves;

bool sy_os_can_move(void) {
    int state = atomic_load_explicit(&moves, memory_order_relaxed);
    if (state == MOVES_UNKNOWN) {
        int saved = errno, found;
        found = !accepts_any_advice() && kernel_moves_mappings() ? MOVES : MOVES_NOT;
        if (atomic_compare_exchange_strong(&moves, &state, found)) state = found;
        errno = saved;
    }
    return state == MOVES && !sy_os_locks_all();
}

/* Whether a range that is mapped lies in one mapping. To lengthen it across nearly all of the
 * address space fails, and for a range of several mappings with an error of its own. */
static bool is_one_mapping(char *start, size_t bytes) {
    const size_t most = (SIZE_MAX >> (sizeof(size_t) == 8 ? 17 : 1)) - ((size_t)1 << 20);
    if (mremap(start, bytes, most, 0) == MAP_FAILED) return errno != EFAULT;
    munmap(start + bytes, most - bytes);
    return true;
}

/* Maps a range again from which a refused move may have taken the mapping. False: it could not be
 * mapped, or another thread has mapped something there. */
static bool map_again(void *start, size_t bytes) {
    const int here = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void *mapped = mmap(start, bytes, PROT_READ | PROT_WRITE, here, -1, 0);
    if (mapped == start) keep_small(start, bytes);
    if (mapped != start && mapped != MAP_FAILED) munmap(mapped, bytes);
    return mapped == start;
}

/* Whether a refused move has taken the mapping of the target, so that it cannot be used. A kernel
 * that has too many mappings has refused before it changed anything. */
static bool has_lost(void *target, size_t bytes) {
    return errno == ENOMEM && !map_again(target, bytes) && !has_too_many_mappings();
}

/* The length of the mapping from `start` on, at most `most`. Mappings mostly end at multiples of
 * 256 KiB, between which this searches; a program may have split some of them elsewhere. */
static size_t length_of_mapping(char *start, size_t most) {
    const size_t step = 256 << 10, page = sy_os_page_size();
    if (is_one_mapping(start, most)) return most;
    size_t least = page, longer = most;
    for (size_t next = step; next < longer; next *= 2) {
        if (is_one_mapping(start, next))
            least = next;
        else
            longer = next;
    }
    const size_t unit = longer > step ? step : page;
    while (longer - least > unit) {
        size_t middle = sy_round_up(least + (longer - least) / 2, unit);
        if (middle < longer && is_one_mapping(start, middle))
            least = middle;
        else
            longer = middle < longer ? middle : longer - unit;
    }
    return least;
}

/*
 * The kernel moves several mappings one after the other, and may refuse at any of them. One mapping
 * it refuses before it changes anything if there are too many mappings. If a limit forbids more
 * memory, it refuses after it has unmapped the target, although there would not be more. So each
 * move is of one mapping.
 */
size_t sy_os_move(void *from, void *to, size_t bytes, bool *lost) {
    int saved = errno;
    size_t moved = 0;
    bool can = !sy_os_is_failing("move") && sy_os_can_move();
    *lost = false;
    while (can && moved < bytes) {
        char *source = (char *)from + moved, *target = (char *)to + moved;
        size_t piece = length_of_mapping(source, bytes - moved);
        can = move(source, target, piece);
        if (can)
            moved += piece;
        else
            *lost = has_lost(target, piece);
    }
    if (*lost) atomic_store_explicit(&moves, MOVES_NOT, memory_order_relaxed);
    errno = saved;
    return moved;
}

/* The comparison is the kernel's, which can say that the address is not mapped. */
bool sy_os_is_written(const void *address) {
    int saved = errno;
    bool differs =
        syscall(SYS_futex, address, COMPARE_PRIVATE, 0, 0, address, 0) != 0 && errno == EAGAIN;
    errno = saved;
    return differs;
}

int sy_os_decommit(void *start, size_t bytes) {
    const int again = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (sy_os_is_failing("decommit") || mmap(start, bytes, PROT_NONE, again, -1, 0) != start)
        return -1;
    keep_small(start, bytes);
    return 0;
}

/* Whether an answer of 0 to MADV_DONTNEED is true. Some emulators and filters of system calls give
 * it and do nothing. This is tried once, with a page of its own. */
static bool discards_truly(void) {
    enum { UNKNOWN, TRUE, FALSE };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state != UNKNOWN) return state == TRUE;
    const size_t page = sy_os_page_size();
    const int own = MAP_PRIVATE | MAP_ANONYMOUS;
    void *probe = mmap(NULL, page, PROT_READ | PROT_WRITE, own, -1, 0);
    if (probe == MAP_FAILED) return true; /* it is tried another time */
    *(volatile char *)probe = 1;
    bool lies = madvise(probe, page, MADV_DONTNEED) == 0 && *(volatile char *)probe != 0;
    munmap(probe, page);
    atomic_store_explicit(&known, lies ? FALSE : TRUE, memory_order_relaxed);
    return !lies;
}

int sy_os_discard(void *start, size_t bytes) {
    if (sy_os_is_failing("discard")) return -1;
    int saved = errno;
    if (!discards_truly()) return sy_os_failed(ENOSYS);
    if (advise(start, bytes, MADV_DONTNEED) != 0 &&
        (errno != EINVAL || advise(start, bytes, ADVICE_DONTNEED_LOCKED) != 0))
        return -1;
    errno = saved;
    return 0;
}

int sy_os_release(void *start, size_t bytes) {
    if (sy_os_is_failing("release")) return -1;
    shorten_spare(start, bytes);
    return munmap(start, bytes);
}

int sy_os_huge(void *start, size_t bytes, bool wanted) {
    if (sy_os_is_failing("huge")) return -1;
    return madvise(start, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* The kernel clears a huge page at the first write to it, which takes longer than this; a small one
 * takes a few microseconds. */
static const uint64_t CLEARS_HUGE_NS = 20000;

/* While the range has the advice, its first write gets a huge page. If the kernel has page tables
 * for the range already, this write gets a small page, and MADV_COLLAPSE makes a huge one of it
 * (Linux 6.1; it works even where the administrator has forbidden huge pages). If the time of the
 * write misleads, the huge page is made once more, or some pages get their memory later. Afterwards
 * the range becomes one mapping with its neighbours again. */
int sy_os_make_huge(void *start, size_t bytes) {
    if (sy_os_is_failing("huge")) return -1;
    int saved = errno;
    if (accepts_any_advice() ||
        !atomic_load_explicit(&sy_facts_now.huge_is_possible, memory_order_relaxed))
        return sy_os_failed(EINVAL);
    if (madvise(start, bytes, MADV_HUGEPAGE) != 0) return -1;
    uint64_t before = sy_os_thread_time();
    sy_os_touch(start, sy_os_page_size());
    bool done = sy_os_thread_time() - before >= CLEARS_HUGE_NS ||
                madvise(start, bytes, ADVICE_COLLAPSE) == 0;
    keep_small(start, bytes);
    if (!done) return -1;
    errno = saved;
    return 0;
}

int sy_os_dump(void *start, size_t bytes, bool wanted) {
    return madvise(start, bytes, wanted ? MADV_DODUMP : MADV_DONTDUMP);
}

int sy_os_lock(void *start, size_t bytes, bool wanted) {
    int saved = errno;
    if ((wanted ? mlock(start, bytes) : munlock(start, bytes)) != 0) return sy_os_failed(ENOMEM);
    errno = saved;
    return 0;
}

static bool probe_guards(void) {
    size_t page = sy_os_page_size();
    void *probe = sy_os_reserve(page, page, NULL);
    if (!probe) return false;
    bool has = sy_os_commit(probe, page) == 0 && advise(probe, page, ADVICE_GUARD) == 0;
    sy_os_release(probe, page);
    return has;
}

/* Whether the kernel marks guards in the page tables, where they split no mapping. This is tried
 * once, with a page of its own. */
static bool has_guards(void) {
    enum { UNKNOWN, HAS, LACKS };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state != UNKNOWN) return state == HAS;
    int found = probe_guards() ? HAS : LACKS;
    return (atomic_compare_exchange_strong(&known, &state, found) ? found : state) == HAS;
}

/* A range that was guarded in one of the two ways must be opened in the same way; therefore
 * has_guards() never changes its answer. */
static int guard(void *start, size_t bytes, bool wanted) {
    if (has_guards()) return advise(start, bytes, wanted ? ADVICE_GUARD : ADVICE_UNGUARD);
    if (!wanted) return sy_os_commit(start, bytes);
    if (mprotect(start, bytes, PROT_NONE) != 0) return -1;
    return sy_os_discard(start, bytes);
}

int sy_os_guard(void *start, size_t bytes, bool wanted) {
    int saved = errno;
    if (sy_os_is_failing("guard") || guard(start, bytes, wanted) != 0) return -1;
    errno = saved;
    return 0;
}

bool sy_os_guards_split(void) {
    int saved = errno;
    bool split = !has_guards();
    errno = saved;
    return split;
}

#endif
