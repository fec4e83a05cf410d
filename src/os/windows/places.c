/*
 * places.c: the part of os.h that says what lies at an address on Windows: the loader tells the
 * file, and the file's header and its COFF symbol table the rest. Compilers for Windows can also
 * put names into a file of their own (PDB), which is not read: then places have no functions. The
 * buffers are small and on the stack. If a file is malformed, the answer is missing or wrong.
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

static HANDLE open_module(HMODULE module, char *path) {
    WCHAR wide[SY_OS_FILE_MAX];
    path[0] = 0;
    DWORD length = GetModuleFileNameW(module, wide, SY_OS_FILE_MAX);
    if (length == 0 || length == SY_OS_FILE_MAX) return NULL;
    WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, SY_OS_FILE_MAX, NULL, NULL);
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    return file == INVALID_HANDLE_VALUE ? NULL : file;
}

/* Reads up to `bytes`; returns how many there were. */
static size_t read_at(HANDLE file, uint64_t offset, void *into, size_t bytes) {
    OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
    DWORD got = 0;
    return ReadFile(file, into, (DWORD)bytes, &got, &at) ? got : 0;
}

typedef struct image {
    HANDLE file;
    IMAGE_NT_HEADERS header; /* as in the file: in memory the loader changes its base */
    uint64_t sections;       /* where their headers are in the file */
} image;

static bool read_header(image *of) {
    IMAGE_DOS_HEADER first;
    if (read_at(of->file, 0, &first, sizeof first) != sizeof first ||
        first.e_magic != IMAGE_DOS_SIGNATURE)
        return false;
    uint64_t at = (uint64_t)first.e_lfanew;
    of->sections = at + offsetof(IMAGE_NT_HEADERS, OptionalHeader);
    if (read_at(of->file, at, &of->header, sizeof of->header) != sizeof of->header ||
        of->header.Signature != IMAGE_NT_SIGNATURE)
        return false;
    of->sections += of->header.FileHeader.SizeOfOptionalHeader;
    return true;
}

static bool read_section(const image *of, unsigned number, IMAGE_SECTION_HEADER *section) {
    return read_at(of->file, of->sections + (uint64_t)number * sizeof *section, section,
                   sizeof *section) == sizeof *section;
}

/* ---- symbols ---- */

/* The section that a distance from the image's start is in; its number from 1 on, 0: none. */
static unsigned find_section(const image *of, uint32_t distance, IMAGE_SECTION_HEADER *section) {
    for (unsigned i = 0; i < of->header.FileHeader.NumberOfSections; i++)
        if (read_section(of, i, section) &&
            distance - section->VirtualAddress < section->Misc.VirtualSize)
            return i + 1;
    return 0;
}

static uint64_t strings_of(const image *of) {
    const IMAGE_FILE_HEADER *header = &of->header.FileHeader;
    return header->PointerToSymbolTable + (uint64_t)header->NumberOfSymbols * IMAGE_SIZEOF_SYMBOL;
}

/* A short name is in the symbol, and without an end if it has all 8 bytes; a long one among the
 * strings behind the symbols. */
static void read_symbol_name(const image *of, const IMAGE_SYMBOL *symbol, char *name) {
    size_t length = sizeof symbol->N.ShortName;
    if (symbol->N.Name.Short != 0)
        memcpy(name, symbol->N.ShortName, length);
    else
        length =
            read_at(of->file, strings_of(of) + symbol->N.Name.Long, name, SY_OS_FUNCTION_MAX - 1);
    name[length] = 0;
}

/* Of sections and of files there are symbols too. */
static bool names_place(const IMAGE_SYMBOL *symbol, unsigned section, uint32_t offset,
                        bool functions) {
    bool named = symbol->StorageClass == IMAGE_SYM_CLASS_EXTERNAL ||
                 (symbol->StorageClass == IMAGE_SYM_CLASS_STATIC && !symbol->NumberOfAuxSymbols);
    return named && symbol->SectionNumber == (SHORT)section && symbol->Value <= offset &&
           (!functions || ISFCN(symbol->Type));
}

/* Finds the last symbol of the section at or below `offset`. Symbols are read some at a time. */
static bool find_symbol(const image *of, unsigned section, uint32_t offset, bool functions,
                        IMAGE_SYMBOL *found) {
    enum { AT_ONCE = 64 };
    unsigned char some[AT_ONCE * IMAGE_SIZEOF_SYMBOL];
    const IMAGE_FILE_HEADER *header = &of->header.FileHeader;
    uint32_t skip = 0; /* further records of a symbol */
    bool any = false;
    for (uint64_t first = 0; header->PointerToSymbolTable && first < header->NumberOfSymbols;
         first += AT_ONCE) {
        size_t got = read_at(of->file, header->PointerToSymbolTable + first * IMAGE_SIZEOF_SYMBOL,
                             some, sizeof some) /
                     IMAGE_SIZEOF_SYMBOL;
        for (size_t i = 0; i < got && first + i < header->NumberOfSymbols; i++) {
            IMAGE_SYMBOL here;
            memcpy(&here, some + i * IMAGE_SIZEOF_SYMBOL, sizeof here);
            if (skip > 0) {
                skip--;
                continue;
            }
            skip = here.NumberOfAuxSymbols;
            if (!names_place(&here, section, offset, functions)) continue;
            if (any && here.Value < found->Value) continue;
            *found = here;
            any = true;
        }
        if (got < AT_ONCE) break;
    }
    return any;
}

static void name_address(const image *of, uint32_t distance, bool functions, char *section_name,
                         char *name, uint64_t *behind) {
    IMAGE_SECTION_HEADER section;
    IMAGE_SYMBOL symbol;
    unsigned number = find_section(of, distance, &section);
    if (!number) return;
    if (section_name) {
        memcpy(section_name, section.Name, sizeof section.Name);
        section_name[sizeof section.Name] = 0;
    }
    uint32_t offset = distance - section.VirtualAddress;
    if (!find_symbol(of, number, offset, functions, &symbol)) return;
    *behind = offset - symbol.Value;
    read_symbol_name(of, &symbol, name);
}

/* ---- code ---- */

static bool locate(uintptr_t address, sy_os_place *place, bool alone) {
    HMODULE module = module_of(address);
    if (!module) return false;
    image here = {.file = open_module(module, place->file)};
    uint32_t distance = (uint32_t)(address - (uintptr_t)module);
    place->in_file = distance;
    place->in_function = 0;
    place->function[0] = 0;
    if (here.file && !alone && read_header(&here)) {
        place->in_file = here.header.OptionalHeader.ImageBase + distance;
        name_address(&here, distance, true, NULL, place->function, &place->in_function);
    }
    if (here.file) CloseHandle(here.file);
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
    image here = {.file = open_module(module, data->file)};
    if (!here.file) return;
    if (read_header(&here))
        name_address(&here, (uint32_t)(address - (uintptr_t)module), false, data->section,
                     data->name, &data->behind);
    CloseHandle(here.file);
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
