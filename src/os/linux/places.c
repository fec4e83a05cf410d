/*
 * places.c: the part of os.h that says what lies at an address. It reads /proc/self/maps, the
 * loader's list (for data, because zeroed data is in no file; for code, where there is no /proc),
 * and the symbols of the ELF file that is mapped there. Its buffers are small and on the stack,
 * since the caller's stack may have only a few KiB. If a file is malformed, the answer is missing
 * or wrong.
 */
#define _GNU_SOURCE

#include "base/bits.h"
#include "os/linux/thread.h"
#include "os/os.h"

#if SY_PLATFORM_LINUX

#    include <errno.h>
#    include <fcntl.h>
#    include <link.h>
#    include <signal.h>
#    include <string.h>
#    include <sys/auxv.h>
#    include <sys/syscall.h>
#    include <unistd.h>

typedef struct mapping {
    uintptr_t below; /* the end of the mapping below it; 0: there is none */
    uintptr_t start, end;
    uint64_t offset; /* in the file */
    char path[SY_OS_FILE_MAX];
} mapping;

/* ---- the list of mappings ---- */

typedef struct reader {
    int fd;
    size_t at, length;
    char bytes[1024];
} reader;

/* The next byte, 0 at the end. */
static char next_byte(reader *from) {
    if (from->at == from->length) {
        ssize_t got;
        do got = read(from->fd, from->bytes, sizeof from->bytes);
        while (got < 0 && errno == EINTR);
        if (got <= 0) return 0;
        from->at = 0;
        from->length = (size_t)got;
    }
    return from->bytes[from->at++];
}

/* Reads a hexadecimal number, and the byte behind it. */
static uint64_t number(reader *from) {
    uint64_t value = 0;
    for (;;) {
        char c = next_byte(from);
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t)(c - 'a' + 10);
        else
            return value;
    }
}

/* Reads up to the next space or the end of the line. True: it was a space. */
static bool skip_word(reader *from) {
    for (;;) {
        char c = next_byte(from);
        if (c == ' ') return true;
        if (c == '\n' || c == 0) return false;
    }
}

/* Reads the rest of the line, without leading spaces, and cuts it if it is too long. */
static void take_path(reader *from, char *path) {
    size_t length = 0;
    for (char c = next_byte(from); c != '\n' && c != 0; c = next_byte(from)) {
        if (c == ' ' && length == 0) continue;
        if (length + 1 < SY_OS_FILE_MAX) path[length++] = c;
    }
    path[length] = 0;
}

/* 55d0a000-55d0c000 r-xp 00002000 fe:01 1234     /usr/bin/cat */
static bool take_line(reader *from, mapping *into) {
    into->start = (uintptr_t)number(from);
    into->end = (uintptr_t)number(from);
    if (into->end == 0) return false;
    skip_word(from);
    into->offset = number(from);
    into->path[0] = 0;
    bool at_path = skip_word(from); /* over the device, then the inode */
    if (at_path) at_path = skip_word(from);
    if (at_path) take_path(from, into->path);
    return true;
}

static bool find_mapping(uintptr_t address, mapping *into) {
    int saved = errno;
    reader from = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool found = false;
    uintptr_t below = 0;
    while (from.fd >= 0 && !found && take_line(&from, into)) {
        into->below = below;
        below = into->end;
        found = address >= into->start && address < into->end;
    }
    if (from.fd >= 0) close(from.fd);
    errno = saved;
    return found;
}

/* ---- stacks ---- */

/* The first thread's stack grows: its mapping has only the part that was touched so far. The kernel
 * keeps at least so much space below its top free of other mappings. qemu's user mode does not: it
 * maps the whole stack, and other memory right below it. */
static const uintptr_t GROWTH = (uintptr_t)128 << 20;

/* The most bytes of another thread's stack that are asked about. */
static const uintptr_t ASKED_MAX = (uintptr_t)64 << 20;

/* The thread pointer of the first thread; NULL: not known. Another thread may load the library. */
static const char *first_thread;

__attribute__((constructor(103))) static void note_first_thread(void) {
    if (syscall(SYS_gettid) == getpid()) first_thread = sy_linux_thread_pointer();
}

/* The kernel puts some random bytes above the first frame of the first thread's stack. The C
 * library puts the structure of another thread (the thread pointer's target) at the upper end of
 * its stack, in one mapping with it; but a stack of coroutines may lie below that too, with a gap
 * between. 0: `here` is on neither. */
static uintptr_t end_of_stack(uintptr_t here) {
    const char *self = sy_linux_thread_pointer();
    uintptr_t first = getauxval(AT_RANDOM), end = (uintptr_t)self;
    if (here < first && first - here < GROWTH && (!first_thread || self == first_thread))
        return first;
    return here < end && end - here <= ASKED_MAX && self != first_thread ? end : 0;
}

bool sy_os_stack(uintptr_t here, sy_os_bounds *bounds) {
    int saved = errno;
    uintptr_t high = bounds->high ? bounds->high : end_of_stack(here);
    if (here >= high || sy_linux_left(here) != here) return false;
    uintptr_t page = here & -sy_os_page_size(), self = (uintptr_t)sy_linux_thread_pointer();
    uintptr_t known = bounds->high ? bounds->low : high & -sy_os_page_size();
    bool first = high != self;
    bool own = first ? high - here < GROWTH
                     : page >= known ||
                           (known - page <= ASKED_MAX && sy_linux_is_readable(page, known - page));
    errno = saved;
    if (own) *bounds = (sy_os_bounds){first ? high - GROWTH : page, high};
    return own;
}

/* The stack of another thread may be in one mapping with the memory above it. But the thread's own
 * structure (the thread pointer's target) lies at the upper end of the stack and is unmapped no
 * sooner than the stack, so it is the bound. */
static bool find_stack(uintptr_t *low, uintptr_t *high) {
    mapping found;
    uintptr_t here = sy_linux_left((uintptr_t)__builtin_frame_address(0)),
              self = (uintptr_t)sy_linux_thread_pointer();
    if (!find_mapping(here, &found)) return false;
    *low = found.start;
    *high = found.end;
    if (strcmp(found.path, "[stack]") == 0)
        *low = found.below > found.end - GROWTH ? found.below : found.end - GROWTH;
    else if (self > here && self < found.end)
        *high = self;
    else
        return false;
    return true;
}

bool sy_os_on_signal_stack(void) {
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK;
}

/* ---- symbols ---- */

static bool read_at(int fd, uint64_t offset, void *into, size_t bytes) {
    ssize_t got;
    do got = pread(fd, into, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

static bool read_header(int fd, ElfW(Ehdr) * header) {
    return read_at(fd, 0, header, sizeof *header) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_phentsize == sizeof(ElfW(Phdr)) && header->e_ident[EI_CLASS] != ELFCLASSNONE;
}

/* The address that the file itself gives to the byte at `offset` (its virtual address in the ELF
 * file). */
static uint64_t own_address(int fd, const ElfW(Ehdr) * header, uint64_t offset) {
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) part;
        if (!read_at(fd, header->e_phoff + i * sizeof part, &part, sizeof part)) break;
        if (part.p_type == PT_LOAD && offset >= part.p_offset &&
            offset - part.p_offset < part.p_filesz)
            return offset - part.p_offset + part.p_vaddr;
    }
    return offset;
}

static bool read_section(int fd, const ElfW(Ehdr) * header, size_t index, ElfW(Shdr) * section) {
    return index < header->e_shnum && header->e_shentsize == sizeof *section &&
           read_at(fd, header->e_shoff + index * sizeof *section, section, sizeof *section);
}

/* Finds the full symbol table or, if the file was stripped, the table of exported symbols. */
static bool find_table(int fd, const ElfW(Ehdr) * header, ElfW(Shdr) * table) {
    bool found = false;
    for (size_t i = 0; i < header->e_shnum; i++) {
        ElfW(Shdr) section;
        if (!read_section(fd, header, i, &section)) break;
        if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
        *table = section;
        found = true;
        if (section.sh_type == SHT_SYMTAB) break;
    }
    return found;
}

enum { FUNCTIONS = 1 << STT_FUNC, VARIABLES = 1 << STT_OBJECT };

static bool is_around(const ElfW(Sym) * symbol, unsigned kinds, uint64_t address) {
    return kinds & 1u << (symbol->st_info & 0xf) && symbol->st_shndx != SHN_UNDEF &&
           address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

static bool find_symbol(int fd, const ElfW(Shdr) * table, unsigned kinds, uint64_t address,
                        ElfW(Sym) * found) {
    ElfW(Sym) symbols[64];
    const size_t at_once = sizeof symbols / sizeof *symbols;
    size_t count = table->sh_size / sizeof *symbols;
    for (size_t first = 0; first < count; first += at_once) {
        size_t some = count - first < at_once ? count - first : at_once;
        uint64_t offset = table->sh_offset + first * sizeof *symbols;
        if (!read_at(fd, offset, symbols, some * sizeof *symbols)) return false;
        for (size_t i = 0; i < some; i++) {
            if (!is_around(&symbols[i], kinds, address)) continue;
            *found = symbols[i];
            return true;
        }
    }
    return false;
}

/* Reads up to `room` bytes: at the end of the file there may be fewer. */
static void read_name(int fd, uint64_t offset, char *name, size_t room) {
    ssize_t got = pread(fd, name, room - 1, (off_t)offset);
    name[got < 0 ? 0 : got] = 0;
}

/* Finds the function or variable at a virtual address of the ELF file. */
static void name_address(int fd, const ElfW(Ehdr) * header, unsigned kinds, uint64_t address,
                         char *name, uint64_t *behind) {
    ElfW(Shdr) table = {0}, names;
    ElfW(Sym) symbol;
    if (!find_table(fd, header, &table) || !read_section(fd, header, table.sh_link, &names) ||
        !find_symbol(fd, &table, kinds, address, &symbol))
        return;
    *behind = address - symbol.st_value;
    read_name(fd, names.sh_offset + symbol.st_name, name, SY_OS_FUNCTION_MAX);
}

/* `by_offset`: place->in_file is an offset in the file so far, and no address. */
static void ask_file(int fd, bool by_offset, sy_os_place *place) {
    ElfW(Ehdr) header;
    if (!read_header(fd, &header)) return;
    if (by_offset) place->in_file = own_address(fd, &header, place->in_file);
    name_address(fd, &header, FUNCTIONS, place->in_file, place->function, &place->in_function);
}

/* ---- the loader's list ---- */

typedef struct search {
    uintptr_t address;
    uint64_t own; /* the virtual address in the ELF file */
    char *file;
    bool alone; /* without system calls */
} search;

static void copy_path(const char *from, char *to) {
    size_t length = strlen(from);
    if (length >= SY_OS_FILE_MAX) length = SY_OS_FILE_MAX - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

/* In the loader's list the program itself has no name, so its path is read from /proc/self/exe, or
 * is the one by which it was started. */
static void copy_name(const struct dl_phdr_info *object, const search *for_it) {
    const char *started = (const char *)getauxval(AT_EXECFN);
    ssize_t got = -1;
    bool named = object->dlpi_name && object->dlpi_name[0];
    if (!named && !for_it->alone)
        got = readlink("/proc/self/exe", for_it->file, SY_OS_FILE_MAX - 1);
    if (got > 0)
        for_it->file[got] = 0;
    else
        copy_path(named ? object->dlpi_name : started ? started : "", for_it->file);
}

static int look_at_object(struct dl_phdr_info *object, size_t bytes, void *arg) {
    search *for_it = arg;
    (void)bytes;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || for_it->address - start >= part->p_memsz) continue;
        for_it->own = for_it->address - object->dlpi_addr;
        copy_name(object, for_it);
        return 1;
    }
    return 0;
}

static bool locate_loaded(uintptr_t address, sy_os_place *place, bool alone) {
    search for_it = {.address = address, .file = place->file, .alone = alone};
    if (!dl_iterate_phdr(look_at_object, &for_it)) return false;
    place->in_file = for_it.own;
    place->in_function = 0;
    place->function[0] = 0;
    return true;
}

bool sy_os_locate_loaded(uintptr_t address, sy_os_place *place) {
    return locate_loaded(address, place, true);
}

typedef struct code_walk {
    void (*visit)(void *arg, const sy_os_code *code);
    void *arg;
    sy_os_code code;
} code_walk;

/* A note of GNU's: three words, "GNU" with its zero, the content. */
static void find_build_id(const struct dl_phdr_info *object, sy_os_code *code) {
    code->build_id_bytes = 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_NOTE) continue;
        uintptr_t at = object->dlpi_addr + part->p_vaddr, end = at + part->p_memsz;
        while (end - at >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            uintptr_t name = at + sizeof *note, content = name + sy_round_up(note->n_namesz, 4);
            uintptr_t next = content + sy_round_up(note->n_descsz, 4);
            if (next > end || next <= at) break;
            bool is_id = note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                         note->n_descsz <= SY_OS_BUILD_ID_MAX &&
                         memcmp((const void *)name, "GNU", 4) == 0;
            at = next;
            if (!is_id) continue;
            memcpy(code->build_id, (const void *)content, note->n_descsz);
            code->build_id_bytes = note->n_descsz;
        }
    }
}

static int visit_code(struct dl_phdr_info *object, size_t bytes, void *arg) {
    code_walk *walk = arg;
    search for_it = {.file = walk->code.file};
    (void)bytes;
    copy_name(object, &for_it);
    find_build_id(object, &walk->code);
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        walk->code.start = object->dlpi_addr + part->p_vaddr;
        walk->code.end = walk->code.start + part->p_memsz;
        walk->code.in_file = part->p_offset;
        walk->visit(walk->arg, &walk->code);
    }
    return 0;
}

void sy_os_each_code(void (*visit)(void *arg, const sy_os_code *code), void *arg) {
    code_walk walk = {.visit = visit, .arg = arg};
    int saved = errno;
    dl_iterate_phdr(visit_code, &walk);
    errno = saved;
}

/* ---- code ---- */

bool sy_os_tells_mappings(void) {
    int saved = errno, fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    errno = saved;
    return fd >= 0;
}

/* The file of a mapping; false: it has none. */
static bool locate_in(const mapping *found, uintptr_t address, sy_os_place *place) {
    place->in_file = address - found->start + found->offset;
    place->in_function = 0;
    place->function[0] = 0;
    memcpy(place->file, found->path, sizeof place->file);
    return found->path[0] != 0;
}

bool sy_os_locate(uintptr_t address, sy_os_place *place) {
    int saved = errno;
    mapping found;
    bool mapped = find_mapping(address, &found);
    bool located =
        mapped ? locate_in(&found, address, place) : locate_loaded(address, place, false);
    int fd = located && place->file[0] == '/' ? open(place->file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ask_file(fd, mapped, place);
        close(fd);
    }
    errno = saved;
    return located;
}

/* ---- data ---- */

static void name_section(int fd, const ElfW(Ehdr) * header, uint64_t address, char *name) {
    ElfW(Shdr) names, section;
    if (!read_section(fd, header, header->e_shstrndx, &names)) return;
    for (size_t i = 0; i < header->e_shnum && read_section(fd, header, i, &section); i++) {
        bool here = section.sh_flags & SHF_ALLOC && !(section.sh_flags & SHF_TLS);
        if (!here || address - section.sh_addr >= section.sh_size) continue;
        read_name(fd, names.sh_offset + section.sh_name, name, SY_OS_SECTION_MAX);
        return;
    }
}

static void ask_program(uint64_t own, sy_os_data *data) {
    ElfW(Ehdr) header;
    int fd = open(data->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (read_header(fd, &header)) {
        name_section(fd, &header, own, data->section);
        name_address(fd, &header, FUNCTIONS | VARIABLES, own, data->name, &data->behind);
    }
    close(fd);
}

static sy_os_region region_of(const mapping *found) {
    if (found->path[0] == 0) return SY_OS_ANONYMOUS;
    if (found->path[0] == '/') return SY_OS_OF_FILE;
    return strcmp(found->path, "[stack]") == 0 ? SY_OS_FIRST_STACK : SY_OS_NAMED;
}

void sy_os_find(uintptr_t address, sy_os_data *data) {
    int saved = errno;
    mapping found;
    uintptr_t low, high;
    search for_it = {.address = address, .file = data->file};
    *data = (sy_os_data){.region = SY_OS_NOWHERE};
    if (dl_iterate_phdr(look_at_object, &for_it)) {
        data->region = SY_OS_OF_PROGRAM;
        ask_program(for_it.own, data);
    } else if (find_mapping(address, &found)) {
        bool own = find_stack(&low, &high) && address >= low && address < high;
        data->region = own ? SY_OS_OWN_STACK : region_of(&found);
        copy_path(found.path, data->file);
    } else if (!sy_os_tells_mappings()) {
        data->region = SY_OS_UNTOLD;
    }
    errno = saved;
}

#endif
