/*
 * stacks.c: see stacks.h. unwind.c finds the frames of a stack; this file has the table of stacks,
 * and the modules that the addresses belong to.
 *
 * The table is a tree. A node is an address and the node of its caller, so a stack is the node of
 * its innermost function, and all stacks of a program share the nodes of main. Nodes are numbered
 * in the order in which they are made, and written to the file then: each once (format.h).
 *
 *     hash of a stack -> cache -> number                 no lock; most allocations end here
 *                          | not there
 *                        tree: (caller's node, address) -> node, from the outermost frame on;
 *                              under `files`
 *
 * The cache has only hashes, of 64 bits: two stacks of a program of a million stacks have the same
 * one with a probability of 1 : 30 million. Its entries are read and written as unwind.c's rows.
 *
 * Modules are read from /proc/self/maps. The loader is not asked: it may be waiting for a lock of
 * this thread. All of it costs some 100 us, so it is done only if an address belongs to no known
 * module, and not more often than takes a twentieth of the time. When the program closes a library,
 * all modules are looked at again. If one is gone, the table begins anew, for the same address is
 * another function now; numbers go on.
 */
#define _GNU_SOURCE
#include "stacks.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind.h"

/* ---- the modules; changed under `files` ------------------------------------------------------ */

enum { MODULES_MAX = 2048, BUILD_ID_MAX = 64 };

static struct module modules[MODULES_MAX];
static _Atomic size_t module_count;
static bool is_present[MODULES_MAX]; /* in the present look */
static bool is_said[MODULES_MAX];    /* it is in the file */
static _Atomic bool must_look;       /* a library was closed */

/* Looks at /proc/self/maps that may still be taken, and what gives new ones. */
enum { LOOKS_MAX = 256, LOOK_SHARE = 20 };
static struct { uint64_t left, cost, last; } looks = {.left = LOOKS_MAX, .cost = 100000};

static const struct module *find_module(uintptr_t code) {
    size_t count = atomic_load_explicit(&module_count, memory_order_acquire);
    for (size_t i = count; i > 0; i--) {
        const struct module *one = &modules[i - 1];
        if (code >= one->start && code < one->end &&
            !atomic_load_explicit(&one->unmapped, memory_order_relaxed))
            return one;
    }
    return NULL;
}

static uint64_t hash_more(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_of_text(const char *text) {
    uint64_t hash = 0;
    for (; *text != '\0'; text++) hash = hash_more(hash, (unsigned char)*text);
    return hash;
}

/* A line of /proc/self/maps, and lines of the same file behind it. */
struct mapping {
    uintptr_t start, end, offset;
    bool can_read, can_write, can_run;
    char path[4097];
};

/* The ELF file whose first page lies at `start`. */
static const ElfW(Ehdr) * elf_at(const struct mapping *mapping) {
    const ElfW(Ehdr) *head = (const void *)mapping->start;
    bool is_file = mapping->path[0] == '/' || mapping->path[0] == '[';
    if (!is_file || !mapping->can_read || mapping->offset != 0 ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    return head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) <= 4096 ? head : NULL;
}

static size_t copy_build_id(const unsigned char *note, const unsigned char *end,
                            unsigned char *build_id) {
    while (note + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) head;
        memcpy(&head, note, sizeof head);
        const unsigned char *name = note + sizeof head,
                            *content = name + (head.n_namesz + 3) / 4 * 4;
        if (content + head.n_descsz > end) return 0;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            size_t length = head.n_descsz < BUILD_ID_MAX ? head.n_descsz : BUILD_ID_MAX;
            memcpy(build_id, content, length);
            return length;
        }
        note = content + (head.n_descsz + 3) / 4 * 4;
    }
    return 0;
}

/* Fills in what the program headers say. Returns the length of the build id. */
static size_t read_headers(const struct mapping *mapping, struct module *into,
                           unsigned char *build_id) {
    const ElfW(Ehdr) *head = elf_at(mapping);
    size_t length = 0;
    bool is_known = false;
    if (head == NULL) return 0;
    const ElfW(Phdr) *rows = (const void *)(mapping->start + head->e_phoff);
    for (size_t i = 0; i < head->e_phnum; i++) {
        const ElfW(Phdr) *row = &rows[i];
        uintptr_t at = into->bias + row->p_vaddr;
        if (row->p_type == PT_LOAD && !is_known) {
            into->bias = mapping->start - (row->p_vaddr - row->p_offset);
            is_known = true;
        } else if (row->p_type == PT_GNU_EH_FRAME && is_known && row->p_memsz >= 12) {
            into->table = at;
        }
    }
    for (size_t i = 0; i < head->e_phnum && length == 0; i++) {
        const unsigned char *note = (const void *)(into->bias + rows[i].p_vaddr);
        if (rows[i].p_type == PT_NOTE && is_known)
            length = copy_build_id(note, note + rows[i].p_filesz, build_id);
    }
    return length;
}

/* ---- modules in the file ---- */

static uint32_t node_count; /* of the file */

static unsigned char *put_bytes(unsigned char *p, const void *bytes, size_t length) {
    p = put_varint(p, length);
    memcpy(p, bytes, length);
    return p + length;
}

/* A block for each module: there are few. */
static void write_module(size_t at, const struct mapping *mapping, const unsigned char *build_id,
                         size_t length) {
    static unsigned char payload[sizeof mapping->path + BUILD_ID_MAX + 64];
    const struct module *module = &modules[at];
    unsigned char *p = put_varint(payload, module->start);
    p = put_varint(p, module->end - module->start);
    p = put_varint(p, module->bias);
    p = put_bytes(p, build_id, length);
    p = put_bytes(p, mapping->path, strlen(mapping->path));
    struct record_block_header header = {
        .kind = BLOCK_MODULE,
        .records = 1,
        .stamp = node_count + 1,
        .length = (uint32_t)(p - payload),
    };
    is_said[at] = true;
    record_write_block(&header, payload);
}

static size_t place_of(const struct mapping *mapping, uint64_t name) {
    size_t count = atomic_load(&module_count);
    for (size_t i = 0; i < count; i++) {
        const struct module *one = &modules[i];
        if (one->start == mapping->start && one->end == mapping->end && one->name == name &&
            !one->unmapped)
            return i;
    }
    return count;
}

static void note_module(const struct mapping *mapping) {
    unsigned char build_id[BUILD_ID_MAX];
    uint64_t name = hash_of_text(mapping->path);
    size_t at = place_of(mapping, name);
    if (at == MODULES_MAX) return;
    if (at == atomic_load(&module_count)) {
        modules[at] = (struct module){.start = mapping->start, .end = mapping->end, .name = name};
        size_t length = read_headers(mapping, &modules[at], build_id);
        atomic_store_explicit(&module_count, at + 1, memory_order_release);
        unwind_forget();
        write_module(at, mapping, build_id, length);
    } else if (!is_said[at]) { /* a forked child knows it from its parent */
        struct module copy = {.start = 0};
        write_module(at, mapping, build_id, read_headers(mapping, &copy, build_id));
    }
    is_present[at] = true;
}

/* ---- a look at /proc/self/maps ---- */

/* Reads a line such as "7f0012345000-7f0012366000 r-xp 00001000 fe:01 4711    /lib/libc.so". */
static void read_mapping(const char *line, struct mapping *into) {
    char *rest;
    into->start = strtoul(line, &rest, 16);
    into->end = strtoul(rest + 1, &rest, 16);
    into->can_read = rest[1] == 'r';
    into->can_write = rest[2] == 'w';
    into->can_run = rest[3] == 'x';
    into->offset = strtoul(rest + 5, &rest, 16);
    rest = strchr(rest + 1, ' ');                     /* behind the device */
    rest = rest != NULL ? strchr(rest + 1, ' ') : ""; /* behind the inode */
    while (rest != NULL && *rest == ' ') rest++;
    strncpy(into->path, rest != NULL ? rest : "", sizeof into->path - 1);
}

/* Whether the mapping is another part of the file that `of` is the beginning of. */
static bool continues(const struct mapping *of, const struct mapping *mapping) {
    return of->path[0] == '/' && mapping->offset != 0 && strcmp(of->path, mapping->path) == 0;
}

/* Reads all mappings. Finds the one with the address `stack`, which can be written. */
static void look_at_maps(uintptr_t stack, sy_row_bounds *found) {
    static struct lines lines;
    static struct mapping mapping, file; /* `file` grows while its parts follow */
    static char line[sizeof mapping.path + 128];
    lines.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    lines.length = lines.at = 0;
    file.can_run = false;
    if (lines.fd < 0) return;
    while (record_next_line(&lines, line, sizeof line)) {
        read_mapping(line, &mapping);
        if (stack >= mapping.start && stack < mapping.end && mapping.can_write)
            *found = (sy_row_bounds){mapping.start, mapping.end};
        if (continues(&file, &mapping)) {
            file.end = mapping.end;
            file.can_run |= mapping.can_run;
            continue;
        }
        if (file.can_run) note_module(&file);
        file = mapping;
    }
    if (file.can_run) note_module(&file);
    close(lines.fd);
}

static void begin_table_anew(void);

static void forget_unmapped(void) {
    bool any = false;
    size_t count = atomic_load(&module_count);
    for (size_t i = 0; i < count; i++) {
        if (is_present[i] || modules[i].unmapped) continue;
        modules[i].unmapped = true;
        any |= modules[i].name != 0; /* code of no file has no names to mix up */
    }
    if (!any) return;
    unwind_forget();
    begin_table_anew();
}

static bool may_look(uint64_t now) {
    uint64_t earned = (now - looks.last) / (LOOK_SHARE * looks.cost);
    looks.left = looks.left + earned < LOOKS_MAX ? looks.left + earned : LOOKS_MAX;
    if (earned > 0) looks.last = now;
    if (looks.left == 0) return false;
    looks.left--;
    return true;
}

/* With stack 0 for modules alone. */
static void look(uintptr_t stack, sy_row_bounds *found) {
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    uint64_t now = record_nanoseconds();
    if (may_look(now)) {
        memset(is_present, 0, sizeof is_present);
        atomic_store(&must_look, false);
        look_at_maps(stack, found);
        forget_unmapped();
        looks.cost = record_nanoseconds() - now + 1000;
    }
    record_unlock_files(&pause);
    errno = saved;
}

const struct module *stacks_module(uintptr_t code) {
    const struct module *known = find_module(code);
    if (known != NULL) return known;
    sy_row_bounds none;
    look(0, &none);
    return find_module(code);
}

void stacks_note_closed(void) { atomic_store(&must_look, true); }

/* ---- the tree; under `files` ----------------------------------------------------------------- */

struct node {
    uintptr_t code;
    uint32_t caller;
    uint32_t next; /* in the chain of its hash; 0: none */
};

/* A block of 65,536 nodes is a MiB; 4 million nodes are more than the largest programs have. */
enum { BLOCK_LOG2 = 16, BLOCKS_MAX = 64, FIRST_HEADS = 1 << 12 };

static struct node *blocks[BLOCKS_MAX];
static uint32_t table_begin; /* the number before the first node of the present table */
static uint32_t *heads;      /* chains of nodes by hash */
static size_t head_count;
static struct buffer *fresh; /* nodes that are not in the file yet */

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* Nodes have their place from the table's beginning on, so that a new table uses the blocks of the
 * last one. */
static struct node *node_at(uint32_t number) {
    uint32_t place = number - table_begin;
    return &blocks[place >> BLOCK_LOG2][place & ((1u << BLOCK_LOG2) - 1)];
}

static uint32_t *head_of(uint32_t caller, uintptr_t code) {
    return &heads[hash_more(code, caller) & (head_count - 1)];
}

/* Doubles the number of chains when they have a node each. */
static bool grow_heads(void) {
    if (heads != NULL && node_count - table_begin < head_count) return true;
    size_t count = heads != NULL ? 2 * head_count : FIRST_HEADS;
    uint32_t *larger = map(count * sizeof *larger);
    if (larger == NULL) return heads != NULL;
    if (heads != NULL) munmap(heads, head_count * sizeof *heads);
    heads = larger;
    head_count = count;
    for (uint32_t number = table_begin + 1; number <= node_count; number++) {
        struct node *node = node_at(number);
        uint32_t *head = head_of(node->caller, node->code);
        node->next = *head;
        *head = number;
    }
    return true;
}

static bool has_node_room(void) {
    uint32_t place = node_count + 1 - table_begin;
    if (place >> BLOCK_LOG2 >= BLOCKS_MAX) return false;
    struct node **block = &blocks[place >> BLOCK_LOG2];
    if (*block == NULL) *block = map(sizeof(struct node) << BLOCK_LOG2);
    return *block != NULL;
}

void stacks_write(void) {
    if (fresh != NULL) record_empty_buffer(fresh);
}

/* Appends node `number` to those that are not in the file yet. */
static bool note_node(uint32_t number, uint32_t caller, uintptr_t code) {
    enum { NODE_BYTES_MAX = 20 };
    if (fresh == NULL) fresh = record_map_buffer();
    if (fresh == NULL) return false;
    fresh->shared.kind = BLOCK_STACKS;
    uint64_t filled = atomic_load(&fresh->shared.filled);
    if ((uint32_t)filled + NODE_BYTES_MAX > PAYLOAD_BYTES) {
        record_empty_buffer(fresh);
        filled = 0;
    }
    if (filled == 0) {
        fresh->shared.stamp = number;
        fresh->address = 0;
    }
    unsigned char *start = fresh->payload + (uint32_t)filled;
    unsigned char *p = put_varint(start, caller != 0 ? number - caller : 0);
    p = put_varint(p, zigzag((int64_t)(code - fresh->address)));
    fresh->address = code;
    atomic_store_explicit(&fresh->shared.filled,
                          filled + (uint64_t)(p - start) + ((uint64_t)1 << 32),
                          memory_order_release);
    return true;
}

/* Finds or makes a node. Returns 0 if there is no memory. */
static uint32_t node_of(uint32_t caller, uintptr_t code) {
    if (heads != NULL) {
        for (uint32_t at = *head_of(caller, code); at != 0; at = node_at(at)->next) {
            const struct node *node = node_at(at);
            if (node->code == code && node->caller == caller) return at;
        }
    }
    uint32_t number = node_count + 1;
    if (!grow_heads() || !has_node_room() || !note_node(number, caller, code)) return 0;
    uint32_t *head = head_of(caller, code);
    *node_at(number) = (struct node){.code = code, .caller = caller, .next = *head};
    *head = number;
    node_count = number;
    return number;
}

/* The outermost node of a stack that is cut has the address 0. */
static uint32_t keep(const uintptr_t *codes, size_t depth, bool is_cut) {
    uint32_t node = is_cut ? node_of(0, 0) : 0;
    if (is_cut && node == 0) return 0;
    while (depth > 0) {
        node = node_of(node, codes[--depth]);
        if (node == 0) return 0;
    }
    return node;
}

/* ---- the cache of stacks --------------------------------------------------------------------- */

enum { CACHED_LOG2 = 16 };

static struct { _Atomic uint64_t number, check; } cached[1 << CACHED_LOG2];

static _Atomic uint64_t table_number; /* part of each hash */

static void begin_table_anew(void) {
    atomic_fetch_add(&table_number, 1);
    table_begin = node_count;
    if (heads != NULL) memset(heads, 0, head_count * sizeof *heads);
}

void stacks_begin_anew(void) {
    fresh = NULL;
    node_count = 0;
    begin_table_anew();
    memset(is_said, 0, sizeof is_said);
    atomic_store(&must_look, true);
}

static uint32_t keep_under_lock(const uintptr_t *codes, size_t depth, bool is_cut) {
    int saved = errno;
    struct pause pause;
    record_lock_files(&pause);
    uint32_t number = keep(codes, depth, is_cut);
    record_unlock_files(&pause);
    errno = saved;
    return number;
}

static uint32_t number_of(const uintptr_t *codes, size_t depth, bool is_cut, uint64_t hash) {
    size_t at = hash >> (64 - CACHED_LOG2);
    uint64_t number = atomic_load_explicit(&cached[at].number, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&cached[at].check, memory_order_relaxed);
    if (__builtin_expect((number ^ check) == hash && number != 0, 1)) return (uint32_t)number;
    number = keep_under_lock(codes, depth, is_cut);
    atomic_store_explicit(&cached[at].number, number, memory_order_relaxed);
    atomic_store_explicit(&cached[at].check, number ^ hash, memory_order_relaxed);
    return (uint32_t)number;
}

/* ---- taking a stack -------------------------------------------------------------------------- */

/* The stacks that a thread is on at times: its own, and those of signals or of coroutines. */
enum { BOUNDS = 4 };
static __thread __attribute__((tls_model("initial-exec"))) struct {
    sy_row_bounds of[BOUNDS];
    unsigned next;
} known;

/* The bounds of the stack with this address. If they cannot be found out, it is the rest of the
 * page, which the caller uses. */
static sy_row_bounds bounds_of(uintptr_t stack) {
    for (unsigned i = 0; i < BOUNDS; i++) {
        if (stack >= known.of[i].low && stack < known.of[i].high) return known.of[i];
    }
    sy_row_bounds found = {0, 0};
    look(stack, &found);
    if (found.high == 0) return (sy_row_bounds){stack, (stack | 4095) + 1};
    known.of[known.next++ % BOUNDS] = found;
    return found;
}

uint32_t stacks_take(struct buffer *buffer, const uintptr_t *frame) {
    if (__builtin_expect(atomic_load_explicit(&must_look, memory_order_relaxed), 0)) {
        sy_row_bounds none;
        look(0, &none);
    }
    sy_row_bounds stack = bounds_of((uintptr_t)frame);
    stack.low = (uintptr_t)frame;
    sy_row_frame at = {.code = frame[1], .stack = (uintptr_t)(frame + 2), .pointer = frame[0]};
    uint64_t hash = atomic_load_explicit(&table_number, memory_order_relaxed);
    enum step step = STEP_OUT;
    size_t depth = 0;
    while (step == STEP_OUT && depth < STACK_DEPTH_MAX) {
        buffer->codes[depth++] = at.code;
        hash = hash_more(hash, at.code);
        step = unwind_step(&at, &stack);
    }
    bool is_cut = step != STEP_END;
    return number_of(buffer->codes, depth, is_cut, hash_more(hash, is_cut));
}
