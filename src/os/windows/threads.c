/*
 * threads.c: the part of os.h for threads on Windows: how they wait, background threads, and what
 * happens at their ends.
 *
 * The end of a thread is seen by a TLS callback: the loader calls the functions whose addresses are
 * in the sections .CRT$XL of the program and its libraries. These sections are sorted by name. The
 * C library destroys the thread-local objects of C++ in .CRT$XLD. So ours, in .CRT$XLY, comes after
 * them, and what these objects free is in the magazines when the hook takes them. The callback is
 * told the end of the process by another reason than the end of a thread. (The callback of FlsAlloc
 * is not, and at the end of the process the other threads may have been ended with locks held.)
 *
 * Where thread-local variables are emulated they have been destroyed before: SY_NATIVE_TLS says
 * that a gcc does not do so.
 */
#include "os/failing.h"
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    if !defined(__clang__) && !defined(SY_NATIVE_TLS)
#        error "gcc emulates thread-local variables on Windows: use clang (docs/platforms.md)"
#    endif

#    include <errno.h>

static const uint64_t NS_PER_MS = 1000000;

unsigned sy_os_thread(void) { return GetCurrentThreadId(); }

bool sy_os_is_own_thread(void) { return true; }

bool sy_os_has_had_threads(void) { return true; } /* the system starts some itself */

/* ---- waiting ---- */

/* Functions of Windows 8. Compilers have their import library under different names, so they are
 * found by name, at the start: a search takes the loader's lock. */
typedef BOOL WINAPI wait_function(volatile void *word, void *expected, SIZE_T bytes, DWORD ms);
typedef void WINAPI wake_function(void *word);

static _Atomic(wait_function *) wait_on;
static _Atomic(wake_function *) wake_one, wake_all;

FARPROC sy_windows_function(const char *name) {
    return GetProcAddress(GetModuleHandleA("kernelbase.dll"), name);
}

static void *find(const char *name) {
    FARPROC found = sy_windows_function(name);
    if (!found) sy_os_abort("slabyard: the system is older than Windows 8\n");
    return (void *)found;
}

__attribute__((constructor(101))) static void find_waiting(void) {
    DWORD last = GetLastError();
    atomic_store_explicit(&wake_one, (wake_function *)find("WakeByAddressSingle"),
                          memory_order_relaxed);
    atomic_store_explicit(&wake_all, (wake_function *)find("WakeByAddressAll"),
                          memory_order_relaxed);
    atomic_store_explicit(&wait_on, (wait_function *)find("WaitOnAddress"), memory_order_release);
    SetLastError(last);
}

/* A constructor of the program may be the first that waits. */
static void wait_ms(_Atomic uint32_t *word, uint32_t expected, DWORD ms) {
    DWORD last = GetLastError();
    wait_function *wait = atomic_load_explicit(&wait_on, memory_order_acquire);
    if (!wait) {
        find_waiting();
        wait = atomic_load_explicit(&wait_on, memory_order_acquire);
    }
    wait(word, &expected, sizeof expected, ms);
    SetLastError(last);
}

void sy_os_wait(_Atomic uint32_t *word, uint32_t expected) { wait_ms(word, expected, INFINITE); }

void sy_os_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t ns) {
    uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    wait_ms(word, expected, ms < INFINITE ? (DWORD)ms : INFINITE - 1);
}

/* Where nothing was found yet, no thread waits. */
void sy_os_wake(_Atomic uint32_t *word, int count) {
    _Atomic(wake_function *) *way = count == 1 ? &wake_one : &wake_all;
    if (!atomic_load_explicit(&wait_on, memory_order_acquire)) return;
    atomic_load_explicit(way, memory_order_relaxed)((void *)word);
}

/* ---- the end of a thread ---- */

typedef void exit_hook(void *);

static _Atomic(exit_hook *) thread_exit_hook;
static SY_TLS void *thread_exit_arg;

static void NTAPI on_thread_event(void *module, DWORD reason, void *reserved) {
    enum { ROUNDS = 4 };
    (void)module, (void)reserved;
    if (reason != DLL_THREAD_DETACH) return;
    exit_hook *hook = atomic_load_explicit(&thread_exit_hook, memory_order_acquire);
    for (int left = ROUNDS; left > 0 && hook && thread_exit_arg; left--) {
        void *arg = thread_exit_arg;
        thread_exit_arg = NULL;
        hook(arg);
    }
}

__attribute__((section(".CRT$XLY"), used)) static const PIMAGE_TLS_CALLBACK thread_events =
    on_thread_event;

int sy_os_at_thread_exit(void (*hook)(void *), void *arg) {
    if (sy_os_is_failing("at_thread_exit")) return -1;
    exit_hook *known = NULL;
    if (!atomic_compare_exchange_strong(&thread_exit_hook, &known, hook) && known != hook)
        return sy_os_failed(EINVAL);
    thread_exit_arg = arg;
    return 0;
}

/* The library has to stay until the last of its threads has ended. In an executable this changes
 * nothing. */
void sy_os_stay_loaded(void) {
    HMODULE own;
    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       (LPCSTR)(void *)sy_os_stay_loaded, &own);
}

int sy_os_hold_cancellation(void) { return 0; }

void sy_os_drop_cancellation(int before) { (void)before; }

/* ---- background threads ---- */

typedef HRESULT WINAPI name_function(HANDLE thread, const WCHAR *name); /* Windows 10 */

static void name_own_thread(const char *name) {
    enum { LONGEST = 16 };
    WCHAR wide[LONGEST] = {0};
    for (int i = 0; i < LONGEST - 1 && name[i]; i++) wide[i] = (unsigned char)name[i];
    FARPROC found = sy_windows_function("SetThreadDescription");
    if (found) ((name_function *)(void *)found)(GetCurrentThread(), wide);
}

static DWORD WINAPI run_background(void *plan) {
    const sy_os_background *thread = plan;
    name_own_thread(thread->name);
    thread->body();
    return 0;
}

/* The size is of address space; the thread's memory grows as it needs some. NULL with errno. */
static HANDLE start(const sy_os_background *thread) {
    HANDLE started = CreateThread(NULL, thread->stack, run_background, (void *)thread,
                                  STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!started) errno = EAGAIN;
    return started;
}

int sy_os_start_thread(const sy_os_background *thread) {
    if (sy_os_is_failing("start_thread")) return -1;
    HANDLE started = start(thread);
    return started && CloseHandle(started) ? 0 : -1;
}

/* Facts are read by calls here, not from files: a reader opens nothing that others could see. */
int sy_os_start_reader(const sy_os_background *thread, uintptr_t *reader) {
    if (sy_os_is_failing("start_reader")) return -1;
    HANDLE started = start(thread);
    *reader = (uintptr_t)started;
    return started ? 0 : -1;
}

void sy_os_end_reader(uintptr_t reader) {
    WaitForSingleObject((HANDLE)reader, INFINITE);
    CloseHandle((HANDLE)reader);
}

void sy_os_forget_background(void) {}

void sy_os_take_signals(void) {}

/* The system ends a process when its first thread returns from main. */
bool sy_os_is_left_alone(unsigned background) {
    (void)background;
    return false;
}

bool sy_os_lists_threads(void) { return false; }

void sy_os_await_end(unsigned thread) {
    enum { PATIENCE_MS = 1000 };
    HANDLE ending = OpenThread(SYNCHRONIZE, FALSE, thread);
    if (!ending) return;
    WaitForSingleObject(ending, PATIENCE_MS);
    CloseHandle(ending);
}

#endif
