/*
 * places.c: the part of os.h that says what lies at an address on Windows. The loader tells the
 * file, the file's header where it would lie by preference, and the system's library for debuggers
 * (dbghelp.dll, loaded when a report first needs it) the function. This library reads the symbols
 * in the file, and the PDB file beside it that compilers for Windows make. It uses the process's
 * heap. One thread at a time writes a report, so one thread at a time is in it.
 */
#include "os/os.h"
#include "os/windows/system.h"

#if SY_PLATFORM_WINDOWS

#    include <string.h>

/* ---- the file ---- */

/* The start in memory of the program's or library's file that an address is in; NULL: none. */
static HMODULE module_of(uintptr_t address) {
    HMODULE module = NULL;
    const DWORD how =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    return GetModuleHandleExA(how, (LPCSTR)address, &module) ? module : NULL;
}

static const IMAGE_NT_HEADERS *header_of(HMODULE module) {
    const IMAGE_DOS_HEADER *first = (const IMAGE_DOS_HEADER *)(const void *)module;
    return (const IMAGE_NT_HEADERS *)(const void *)((const char *)first + first->e_lfanew);
}

static bool path_of(HMODULE module, WCHAR *wide, char *path) {
    path[0] = 0;
    DWORD length = GetModuleFileNameW(module, wide, SY_OS_FILE_MAX);
    if (length == 0 || length == SY_OS_FILE_MAX) return false;
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, SY_OS_FILE_MAX, NULL, NULL) > 0;
}

/* Where the file would lie by preference, which tools count from. In memory the loader has put the
 * real place there. 0: the file cannot be read. */
static uint64_t preferred_base(HMODULE module, const WCHAR *path) {
    IMAGE_NT_HEADERS header;
    const IMAGE_DOS_HEADER *first = (const IMAGE_DOS_HEADER *)(const void *)module;
    OVERLAPPED at = {.Offset = (DWORD)first->e_lfanew};
    DWORD got = 0;
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return 0;
    bool read = ReadFile(file, &header, sizeof header, &got, &at) && got == sizeof header;
    CloseHandle(file);
    return read ? header.OptionalHeader.ImageBase : 0;
}

/* ---- symbols ---- */

typedef BOOL WINAPI begin_session(HANDLE session, PCSTR path, BOOL all);
typedef DWORD64 WINAPI load_symbols(HANDLE session, HANDLE file, PCSTR path, PCSTR name,
                                    DWORD64 base, DWORD bytes, MODLOAD_DATA *data, DWORD how);
typedef BOOL WINAPI find_name(HANDLE session, DWORD64 address, DWORD64 *behind, SYMBOL_INFO *into);

static int
    session; /* its address stands for a process, so that the program's sessions are others */

static load_symbols *load_of_debuggers;
static find_name *find_of_debuggers;

static bool begin_symbols(void) {
    static bool sought, begun;
    if (sought) return begun;
    sought = true;
    void *debuggers = sy_os_load("dbghelp.dll");
    if (!debuggers) return false;
    begin_session *begin = (begin_session *)sy_os_symbol(debuggers, "SymInitialize");
    load_of_debuggers = (load_symbols *)sy_os_symbol(debuggers, "SymLoadModuleEx");
    find_of_debuggers = (find_name *)sy_os_symbol(debuggers, "SymFromAddr");
    begun = begin && load_of_debuggers && find_of_debuggers && begin(&session, NULL, FALSE);
    return begun;
}

static void name_address(HMODULE module, const char *path, uintptr_t address, char *name,
                         uint64_t *behind) {
    union {
        SYMBOL_INFO symbol;
        char room[sizeof(SYMBOL_INFO) + SY_OS_FUNCTION_MAX];
    } found = {.symbol = {.SizeOfStruct = sizeof(SYMBOL_INFO), .MaxNameLen = SY_OS_FUNCTION_MAX}};
    DWORD64 distance = 0;
    if (!begin_symbols()) return;
    load_of_debuggers(&session, NULL, path, NULL, (DWORD64)(uintptr_t)module,
                      header_of(module)->OptionalHeader.SizeOfImage, NULL, 0);
    if (!find_of_debuggers(&session, address, &distance, &found.symbol)) return;
    size_t length = strnlen(found.symbol.Name, SY_OS_FUNCTION_MAX - 1);
    memcpy(name, found.symbol.Name, length);
    name[length] = 0;
    *behind = distance;
}

/* ---- code ---- */

static bool locate(uintptr_t address, sy_os_place *place, bool alone) {
    WCHAR wide[SY_OS_FILE_MAX];
    HMODULE module = module_of(address);
    if (!module) return false;
    bool has_path = path_of(module, wide, place->file);
    place->in_file = address - (uintptr_t)module;
    place->in_function = 0;
    place->function[0] = 0;
    if (!has_path || alone) return true;
    place->in_file += preferred_base(module, wide);
    name_address(module, place->file, address, place->function, &place->in_function);
    return true;
}

bool sy_os_locate(uintptr_t address, sy_os_place *place) {
    DWORD last = GetLastError();
    bool located = locate(address, place, false);
    SetLastError(last);
    return located;
}

bool sy_os_locate_loaded(uintptr_t address, sy_os_place *place) {
    DWORD last = GetLastError();
    bool located = locate(address, place, true);
    SetLastError(last);
    return located;
}

/* ---- data ---- */

bool sy_os_tells_mappings(void) { return true; }

static bool is_on_own_stack(uintptr_t address) {
    ULONG_PTR low, high;
    GetCurrentThreadStackLimits(&low, &high);
    return address >= low && address < high;
}

static void ask_program(HMODULE module, uintptr_t address, sy_os_data *data) {
    WCHAR wide[SY_OS_FILE_MAX];
    const IMAGE_NT_HEADERS *header = header_of(module);
    const IMAGE_SECTION_HEADER *section = IMAGE_FIRST_SECTION(header);
    for (unsigned i = 0; i < header->FileHeader.NumberOfSections; i++) {
        uintptr_t start = (uintptr_t)module + section[i].VirtualAddress;
        if (address - start >= section[i].Misc.VirtualSize) continue;
        memcpy(data->section, section[i].Name, sizeof section[i].Name);
    }
    if (path_of(module, wide, data->file))
        name_address(module, data->file, address, data->name, &data->behind);
}

static sy_os_region region_of(const MEMORY_BASIC_INFORMATION *about) {
    if (about->State == MEM_FREE) return SY_OS_NOWHERE;
    return about->Type == MEM_PRIVATE ? SY_OS_ANONYMOUS : SY_OS_OF_FILE;
}

void sy_os_find(uintptr_t address, sy_os_data *data) {
    DWORD last = GetLastError();
    MEMORY_BASIC_INFORMATION about;
    HMODULE module = module_of(address);
    *data = (sy_os_data){.region = SY_OS_NOWHERE};
    if (module) {
        data->region = SY_OS_OF_PROGRAM;
        ask_program(module, address, data);
    } else if (is_on_own_stack(address)) {
        data->region = SY_OS_OWN_STACK;
    } else if (VirtualQuery((const void *)address, &about, sizeof about)) {
        data->region = region_of(&about);
    }
    SetLastError(last);
}

/* ---- libraries ---- */

void *sy_os_load(const char *library) { return (void *)LoadLibraryA(library); }

void *sy_os_symbol(void *library, const char *name) {
    FARPROC found = GetProcAddress(library ? (HMODULE)library : GetModuleHandleA(NULL), name);
    return (void *)(uintptr_t)found;
}

#endif
