/*
 * memory.c: the part of os.h for memory on Windows.
 *
 * Reserved address space is a reservation of VirtualAlloc; commit and decommit are the system's
 * own. What differs from other systems:
 *
 * Commit charge. The system promises memory for every committed page, whether it was written or
 * not, and refuses a commit beyond what it has (its memory and its page files). So a commit can
 * fail, and a write to a committed page cannot. What is discarded stays promised; only a decommit
 * and a release give the promise back.
 *
 * Release. The system gives back whole reservations only. So a part that is released is
 * decommitted, and its address space stays reserved until the last part has been released. How many
 * bytes were released is counted in the reservation itself:
 *
 *     | the range that the caller has                                   | count |
 *       start of the reservation                                          a page behind the range
 *
 * The page behind the range is committed at the first release of a part. So reservations are never
 * neighbours, and no range lies in two of them.
 *
 * Discard. Threads read some memory without a lock while another thread discards it: words of
 * handles, the stacks of the depot, magazines, records of slots. They may find the old content or
 * zero, and must not fault. So a page is not decommitted and committed again, between which it is
 * inaccessible (and the commit could be refused). Instead
 *
 *     1. its words are set to zero, each by one store, so that no reader sees a half of one;
 *     2. the system is told that the content is of no interest. Whether the page then keeps its
 *        content or loses it, it reads as zero: the system gives zero pages to processes, or it
 *        would give them the memory of others.
 *
 * A write that follows is kept: the system forgets what it was told when a page is written. Setting
 * a page to zero takes a microsecond, and gives memory for a moment to a page that had none.
 *
 * Guards. A page is inaccessible when it is decommitted, and costs nothing then. There is no limit
 * on the number of such ranges.
 */
#include "os/failing.h"
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    include <errno.h>

size_t sy_os_page_size(void) {
    static _Atomic size_t known;
    size_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        SYSTEM_INFO info;
        GetSystemInfo(&info);
        bytes = info.dwPageSize;
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

/* A free of the program must not change the error of the system's last call, just as errno. */
static int with_error(DWORD last, int result) {
    SetLastError(last);
    return result == 0 ? 0 : sy_os_failed(ENOMEM);
}

/* ---- reservations ---- */

static char *reserve_at(char *start, size_t bytes) {
    return VirtualAlloc(start, bytes, MEM_RESERVE, PAGE_NOACCESS);
}

static bool is_aligned(const char *start, size_t align) {
    return ((uintptr_t)start & (align - 1)) == 0;
}

/* Finds a place by a larger reservation, gives this back and reserves there. Another thread may
 * come between the two. */
static char *reserve_after_trial(size_t bytes, size_t align) {
    char *place = reserve_at(NULL, bytes + align);
    if (!place) return NULL;
    VirtualFree(place, 0, MEM_RELEASE);
    return reserve_at((char *)(((uintptr_t)place + align - 1) & -align), bytes);
}

static char *reserve_aligned(size_t bytes, size_t align) {
    enum { TRIALS = 100 };
    char *start = reserve_at(NULL, bytes);
    if (!start || is_aligned(start, align)) return start;
    VirtualFree(start, 0, MEM_RELEASE);
    for (int left = TRIALS; left > 0; left--)
        if ((start = reserve_after_trial(bytes, align)) != NULL) return start;
    return NULL;
}

void *sy_os_reserve(size_t bytes, size_t align, const char *name) {
    (void)name; /* the system has no names for memory */
    if (sy_os_is_failing("reserve")) return NULL;
    DWORD last = GetLastError();
    bool possible = bytes <= SIZE_MAX / 2 && align <= SIZE_MAX / 4;
    char *start = possible ? reserve_aligned(bytes + sy_os_page_size(), align) : NULL;
    (void)with_error(last, start ? 0 : -1);
    return start;
}

void sy_os_show_names(bool shown) { (void)shown; }

/* The reservation that an address lies in: its start and its end. */
static char *find_reservation(char *at, char **end) {
    MEMORY_BASIC_INFORMATION here;
    if (!VirtualQuery(at, &here, sizeof here)) return NULL;
    char *start = here.AllocationBase;
    do *end = (char *)here.BaseAddress + here.RegionSize;
    while (VirtualQuery(*end, &here, sizeof here) && here.State != MEM_FREE &&
           here.AllocationBase == start);
    return start;
}

/* Counts the bytes as released, and releases the reservation if they were the last ones. The page
 * is committed. */
static void count_released(char *reservation, char *count_page, size_t bytes) {
    size_t whole = (size_t)(count_page - reservation);
    _Atomic size_t *count = (_Atomic size_t *)(void *)count_page;
    if (atomic_fetch_add(count, bytes) + bytes == whole) VirtualFree(reservation, 0, MEM_RELEASE);
}

static int release(char *start, size_t bytes) {
    char *end, *reservation = find_reservation(start, &end);
    if (!reservation) return -1;
    char *count_page = end - sy_os_page_size();
    if (start == reservation && bytes == (size_t)(count_page - start))
        return VirtualFree(start, 0, MEM_RELEASE) ? 0 : -1;
    if (!VirtualAlloc(count_page, sizeof bytes, MEM_COMMIT, PAGE_READWRITE)) return -1;
    if (!VirtualFree(start, bytes, MEM_DECOMMIT)) return -1;
    count_released(reservation, count_page, bytes);
    return 0;
}

int sy_os_release(void *start, size_t bytes) {
    if (sy_os_is_failing("release")) return -1;
    DWORD last = GetLastError();
    return with_error(last, release(start, bytes));
}

/* ---- memory ---- */

static int commit(void *start, size_t bytes) {
    return VirtualAlloc(start, bytes, MEM_COMMIT, PAGE_READWRITE) ? 0 : -1;
}

static int decommit(void *start, size_t bytes) {
    return VirtualFree(start, bytes, MEM_DECOMMIT) ? 0 : -1;
}

int sy_os_commit(void *start, size_t bytes) {
    if (sy_os_is_failing("commit")) return -1;
    DWORD last = GetLastError();
    return with_error(last, commit(start, bytes));
}

int sy_os_decommit(void *start, size_t bytes) {
    if (sy_os_is_failing("decommit")) return -1;
    DWORD last = GetLastError();
    return with_error(last, decommit(start, bytes));
}

/* Writes to each page without changing it, even if other threads write. */
int sy_os_populate(void *start, size_t bytes) {
    if (sy_os_is_failing("populate")) return -1;
    unsigned char *at = start;
    size_t page = sy_os_page_size();
    for (size_t i = 0; i < bytes; i += page) __atomic_fetch_or(&at[i], 0, __ATOMIC_RELAXED);
    return 0;
}

typedef DWORD WINAPI discard_function(void *start, SIZE_T bytes); /* Windows 8.1 */

static _Atomic(discard_function *) discard_now;

__attribute__((constructor(101))) static void find_discard(void) {
    FARPROC found = sy_windows_function("DiscardVirtualMemory");
    atomic_store_explicit(&discard_now, (discard_function *)(void *)found, memory_order_release);
}

/* DiscardVirtualMemory takes the pages at once; MEM_RESET lets the system take them when it needs
 * some. */
static int discard(char *start, size_t bytes) {
    discard_function *now = atomic_load_explicit(&discard_now, memory_order_acquire);
    if (now && now(start, bytes) == ERROR_SUCCESS) return 0;
    return VirtualAlloc(start, bytes, MEM_RESET, PAGE_NOACCESS) ? 0 : -1;
}

int sy_os_discard(void *start, size_t bytes) {
    if (sy_os_is_failing("discard")) return -1;
    DWORD last = GetLastError();
    uint64_t *words = start;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
    return with_error(last, discard(start, bytes));
}

/* As many pages can be locked as the process's least working set has
 * (SetProcessWorkingSetSize). */
int sy_os_lock(void *start, size_t bytes, bool wanted) {
    DWORD last = GetLastError();
    if (!wanted) {
        VirtualUnlock(start, bytes);
        return with_error(last, 0);
    }
    return with_error(last, VirtualLock(start, bytes) ? 0 : -1);
}

int sy_os_guard(void *start, size_t bytes, bool wanted) {
    if (sy_os_is_failing("guard")) return -1;
    DWORD last = GetLastError();
    return with_error(last, wanted ? decommit(start, bytes) : commit(start, bytes));
}

bool sy_os_guards_split(void) { return false; }

#endif
