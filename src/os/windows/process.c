/*
 * process.c: the part of os.h for the process on Windows: its environment, its files, and its end.
 *
 * Messages to the user go to the handle that was the process's error handle at the start, by the
 * system's calls. The C library's stream and its descriptor 2 may be closed, locked or another file
 * by then: a program may close number 2, and the next file that it opens gets this number, and
 * becomes the error handle.
 */
#include "os/failing.h"
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    include <errno.h>
#    include <io.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>

/* ---- environment ---- */

const char *sy_os_option(const char *name) {
    int saved = errno;
    const char *text = getenv(name);
    errno = saved;
    return text;
}

const char *sy_os_default_options(void) { return ""; }

int sy_os_process(void) { return (int)GetCurrentProcessId(); }

bool sy_os_is_traced(void) { return IsDebuggerPresent(); }

/* ---- stderr ---- */

enum { NOT_NOTED, NOTING, NOTED, WAS_CLOSED };

enum { ERROR_NUMBER = 2 };

static _Atomic int noted;
static HANDLE at_start, second; /* valid if NOTED; the second one is ours */

static bool is_handle(HANDLE handle) { return handle != NULL && handle != INVALID_HANDLE_VALUE; }

void sy_os_note_stderr(void) {
    int none = NOT_NOTED;
    if (!atomic_compare_exchange_strong(&noted, &none, NOTING)) return;
    DWORD last = GetLastError();
    HANDLE self = GetCurrentProcess();
    at_start = GetStdHandle(STD_ERROR_HANDLE);
    bool open = is_handle(at_start) &&
                DuplicateHandle(self, at_start, self, &second, 0, FALSE, DUPLICATE_SAME_ACCESS);
    atomic_store_explicit(&noted, open ? NOTED : WAS_CLOSED, memory_order_release);
    SetLastError(last);
}

/* A console or a pipe that the program has put in place of its error handle is meant for messages;
 * any other file may have become the error handle by chance. */
static HANDLE find_stderr(void) {
    HANDLE now = GetStdHandle(STD_ERROR_HANDLE);
    switch (atomic_load_explicit(&noted, memory_order_acquire)) {
    case NOTED: break;
    case WAS_CLOSED: return NULL;
    default: return now;
    }
    if (now == at_start || !is_handle(now)) return second;
    DWORD type = GetFileType(now);
    return type == FILE_TYPE_CHAR || type == FILE_TYPE_PIPE ? now : second;
}

int sy_os_stderr(void) { return is_handle(find_stderr()) ? ERROR_NUMBER : -1; }

void sy_os_keep_stderr(void) {} /* the second handle is there from the start */

/* ---- files ---- */

static HANDLE handle_of(int fd) {
    return fd == ERROR_NUMBER ? find_stderr() : (HANDLE)_get_osfhandle(fd);
}

bool sy_os_is_terminal(int fd) {
    DWORD mode, last = GetLastError();
    int saved = errno;
    bool answer = GetConsoleMode(handle_of(fd), &mode);
    errno = saved;
    SetLastError(last);
    return answer;
}

/* 0, or the number of the error. */
static int write_to(HANDLE file, const char *text, size_t length) {
    const size_t most = (size_t)1 << 20;
    if (!is_handle(file)) return EBADF;
    while (length > 0) {
        DWORD written = 0;
        if (!WriteFile(file, text, (DWORD)(length < most ? length : most), &written, NULL))
            return GetLastError() == ERROR_DISK_FULL ? ENOSPC : EIO;
        if (written == 0) return ENOSPC;
        text += written;
        length -= written;
    }
    return 0;
}

int sy_os_write(int fd, const char *text, size_t length) {
    int saved = errno;
    DWORD last = GetLastError();
    int error = write_to(handle_of(fd), text, length);
    SetLastError(last);
    errno = saved;
    return error;
}

/* The folder determines who may read the new file. */
static int write_file(const char *path, DWORD access, DWORD how, const char *text, size_t length) {
    HANDLE file = CreateFileA(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, how,
                              FILE_ATTRIBUTE_NORMAL, NULL);
    if (!is_handle(file))
        return sy_os_failed(GetLastError() == ERROR_ACCESS_DENIED ? EACCES : ENOENT);
    int error = write_to(file, text, length);
    CloseHandle(file);
    return error == 0 ? 0 : sy_os_failed(error);
}

int sy_os_append(const char *path, const char *text, size_t length) {
    return write_file(path, FILE_APPEND_DATA, OPEN_ALWAYS, text, length);
}

int sy_os_replace(const char *path, const char *text, size_t length) {
    return write_file(path, GENERIC_WRITE, CREATE_ALWAYS, text, length);
}

/* ---- the end ---- */

int sy_os_at_exit(void (*hook)(void)) { return atexit(hook) == 0 ? 0 : sy_os_failed(ENOMEM); }

_Noreturn void sy_os_end(int status) {
    fflush(NULL);
    _exit(status);
}

_Noreturn void sy_os_abort(const char *why) {
    if (why) (void)sy_os_write(sy_os_stderr(), why, strlen(why));
    abort();
}

#endif
