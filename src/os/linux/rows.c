/*
 * rows.c: see rows.h.
 *
 * Compilers describe in .eh_frame, for each address of a function, where the frame of its caller
 * begins (the "canonical frame address", CFA), and where the caller's registers were saved. Of
 * these, a walk needs the return address and the frame pointer alone. So what the table says of an
 * address fits into one word, the row:
 *
 *     bits 0-2   enum sy_row_kind: what the CFA counts from
 *     bits 3-4   enum saved: where the caller's frame pointer is
 *     bits 5-34  distance of the CFA, and
 *     bits 35-62 distance of the saved frame pointer, in units of 8 bytes, signed
 *
 * The return address lies below the CFA.
 */
#include "os/linux/rows.h"

#if SY_ROWS

#    include <stdlib.h>
#    include <string.h>

enum saved {
    SAVED_NOWHERE,    /* the function did not change it */
    SAVED_IN_FRAME,   /* at CFA + distance */
    SAVED_AT_POINTER, /* at the function's own frame pointer + distance */
};

enum { REGISTER_POINTER = 6, REGISTER_STACK = 7, REGISTER_RETURN = 16 };

/* The encodings of addresses in .eh_frame_hdr and .eh_frame that occur in practice. */
enum {
    ENCODED_ABSOLUTE = 0x00,
    ENCODED_U4 = 0x03,
    ENCODED_S4 = 0x0b,
    ENCODED_S8 = 0x0c,
    ENCODED_RELATIVE = 0x10,
    ENCODED_TABLE = 0x3b, /* four bytes, from the beginning of .eh_frame_hdr */
    ENCODED_NOT = 0xff,
};

typedef struct cfi_rule {
    enum sy_row_kind cfa;
    enum saved saved;
    bool is_first;
    int64_t cfa_distance, saved_distance;
} cfi_rule;

/* A list of instructions, which make the rule of the address `code` from that of `at`. */
typedef struct reader {
    const unsigned char *p, *end;
} reader;

static uint64_t read_uleb(reader *in) {
    uint64_t value = 0;
    for (unsigned shift = 0; in->p < in->end; shift += 7) {
        unsigned char byte = *in->p++;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

static int64_t read_sleb(reader *in) {
    uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte = 0;
    do {
        if (in->p >= in->end) return 0;
        byte = *in->p++;
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte >= 128);
    if ((byte & 64) != 0 && shift < 64) value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

static uint64_t read_bytes(reader *in, unsigned bytes) {
    uint64_t value = 0;
    if ((size_t)(in->end - in->p) < bytes) {
        in->p = in->end;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)in->p[i] << (8 * i);
    in->p += bytes;
    return value;
}

static int32_t read_s4(const unsigned char *p) {
    int32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

/* What all functions of a compilation unit have in common, and one function. */
typedef struct entry {
    reader common, own;
    int64_t data_step;
    uint64_t code_step;
    unsigned encoding; /* of the function's addresses */
    bool is_signal;
    uintptr_t start, end;
} entry;

static unsigned encoded_bytes(unsigned encoding) {
    switch (encoding & 15) {
    case ENCODED_U4:
    case ENCODED_S4: return 4;
    case ENCODED_ABSOLUTE:
    case 4:
    case ENCODED_S8: return 8;
    default: return 0;
    }
}

/* The length at the beginning of an entry; a reader of the rest. */
static reader entry_at(const unsigned char *p) {
    uint32_t length;
    memcpy(&length, p, sizeof length);
    if (length >= 0xfffffff0u) length = 0; /* entries of over 4 GiB */
    return (reader){p + 4, p + 4 + length};
}

/* Reads a string such as "zPLR" and the fields whose order it gives. */
static bool read_augmentation(reader *in, const char *letters, entry *into) {
    if (letters[0] == 0) return true;
    if (letters[0] != 'z') return false;
    uint64_t length = read_uleb(in);
    if (length > (uint64_t)(in->end - in->p)) return false;
    const unsigned char *rest = in->p + length;
    for (const char *letter = letters + 1; *letter != 0; letter++) {
        unsigned encoding = *letter == 'S' ? 0 : (unsigned)read_bytes(in, 1);
        if (*letter == 'S')
            into->is_signal = true;
        else if (*letter == 'R')
            into->encoding = encoding;
        else if (*letter == 'P')
            read_bytes(in, encoded_bytes(encoding));
        else if (*letter != 'L')
            return false;
    }
    in->p = rest;
    return true;
}

static bool read_common(const unsigned char *p, entry *into) {
    reader in = entry_at(p);
    if (read_bytes(&in, 4) != 0) return false;
    unsigned version = (unsigned)read_bytes(&in, 1);
    const char *letters = (const char *)in.p;
    const unsigned char *end = memchr(in.p, 0, (size_t)(in.end - in.p));
    if ((version != 1 && version != 3) || !end) return false;
    in.p = end + 1;
    into->code_step = read_uleb(&in);
    into->data_step = read_sleb(&in);
    if ((version == 1 ? read_bytes(&in, 1) : read_uleb(&in)) != REGISTER_RETURN) return false;
    into->encoding = ENCODED_ABSOLUTE;
    if (!read_augmentation(&in, letters, into)) return false;
    into->common = in;
    return true;
}

static bool read_function(const unsigned char *p, uintptr_t start, entry *into) {
    reader in = entry_at(p);
    const unsigned char *place = in.p;
    uint32_t back = (uint32_t)read_bytes(&in, 4);
    if (back == 0 || !read_common(place - back, into)) return false;
    unsigned bytes = encoded_bytes(into->encoding);
    if (bytes == 0) return false;
    read_bytes(&in, bytes);
    into->start = start;
    into->end = start + read_bytes(&in, bytes);
    uint64_t length = read_uleb(&in); /* of what exceptions need */
    if (length > (uint64_t)(in.end - in.p)) return false;
    in.p += length;
    into->own = in;
    return true;
}

/* Searches the sorted table of .eh_frame_hdr for the function with this address. */
static bool find_function(const sy_row_table *table, uintptr_t code, entry *into) {
    const unsigned char *head = (const unsigned char *)table->head;
    if (!head || head[0] != 1 || head[2] != ENCODED_U4 || head[3] != ENCODED_TABLE ||
        encoded_bytes(head[1]) != 4)
        return false;
    const unsigned char *rows = head + 12;
    size_t low = 0, high = (uint32_t)read_s4(head + 8);
    if (high > (table->end - table->head) / 8) return false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        uintptr_t start = table->head + (uintptr_t)(intptr_t)read_s4(rows + 8 * middle);
        if (start <= code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return false;
    uintptr_t start = table->head + (uintptr_t)(intptr_t)read_s4(rows + 8 * (low - 1));
    uintptr_t at = table->head + (uintptr_t)(intptr_t)read_s4(rows + 8 * (low - 1) + 4);
    if (at < table->start || at >= table->end) return false;
    return read_function((const unsigned char *)at, start, into) && code < into->end;
}

/* An expression for the CFA: "the word at frame pointer + distance". Others (of the linker's jump
 * tables, which call nothing) are not understood. */
static void cfa_expression(reader *in, cfi_rule *rule) {
    uint64_t length = read_uleb(in);
    if (length > (uint64_t)(in->end - in->p)) length = (uint64_t)(in->end - in->p);
    reader ops = {in->p, in->p + length};
    in->p += length;
    enum { OP_BREG = 0x70, OP_DEREF = 0x06 };
    bool is_pointer = read_bytes(&ops, 1) == OP_BREG + REGISTER_POINTER;
    rule->cfa_distance = read_sleb(&ops);
    bool is_word = read_bytes(&ops, 1) == OP_DEREF && ops.p == ops.end;
    rule->cfa = is_pointer && is_word ? SY_ROW_AT_POINTER : SY_ROW_CUT;
}

/* An expression for where a register was saved: "at frame pointer + distance". */
static void saved_expression(reader *in, cfi_rule *rule) {
    uint64_t which = read_uleb(in), length = read_uleb(in);
    if (length > (uint64_t)(in->end - in->p)) length = (uint64_t)(in->end - in->p);
    reader ops = {in->p, in->p + length};
    in->p += length;
    enum { OP_BREG = 0x70 };
    if (which == REGISTER_RETURN) rule->cfa = SY_ROW_CUT;
    if (which != REGISTER_POINTER) return;
    if (read_bytes(&ops, 1) != OP_BREG + REGISTER_POINTER) rule->cfa = SY_ROW_CUT;
    rule->saved = SAVED_AT_POINTER;
    rule->saved_distance = read_sleb(&ops);
}

static void define_cfa(cfi_rule *rule, uint64_t which, int64_t distance) {
    rule->cfa = which == REGISTER_STACK     ? SY_ROW_FROM_STACK
                : which == REGISTER_POINTER ? SY_ROW_FROM_POINTER
                                            : SY_ROW_CUT;
    rule->cfa_distance = distance;
}

static void save_register(cfi_rule *rule, uint64_t which, int64_t distance) {
    if (which == REGISTER_RETURN && distance != -(int64_t)sizeof(void *)) rule->cfa = SY_ROW_CUT;
    if (which != REGISTER_POINTER) return;
    rule->saved = SAVED_IN_FRAME;
    rule->saved_distance = distance;
}

static void restore_register(cfi_rule *rule, uint64_t which, const cfi_rule *initial) {
    if (which != REGISTER_POINTER) return;
    rule->saved = initial->saved;
    rule->saved_distance = initial->saved_distance;
}

enum { REMEMBERED_MAX = 8 };

/* The state while instructions are followed. */
typedef struct cfi_walk {
    cfi_rule rule, initial, remembered[REMEMBERED_MAX];
    unsigned depth;
    uint64_t at; /* the address that the rule is for */
} cfi_walk;

/* The instructions of the DWARF standard, section 6.4.2, and of GNU. */
enum {
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET = 0x05,
    CFA_RESTORE = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RECALL = 0x0b,
    CFA_DEF = 0x0c,
    CFA_DEF_REGISTER = 0x0d,
    CFA_DEF_OFFSET = 0x0e,
    CFA_DEF_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_SIGNED = 0x11,
    CFA_DEF_SIGNED = 0x12,
    CFA_DEF_OFFSET_SIGNED = 0x13,
    CFA_GNU_ARGS_SIZE = 0x2e,
};

/* Remembers the rule, or takes the one that was remembered. */
static bool stack_rule(cfi_walk *walk, bool remember) {
    if (remember ? walk->depth == REMEMBERED_MAX : walk->depth == 0) return false;
    if (remember)
        walk->remembered[walk->depth++] = walk->rule;
    else
        walk->rule = walk->remembered[--walk->depth];
    return true;
}

/* An instruction of registers and their places. Returns false if it is not understood. */
static bool follow_register(cfi_walk *walk, reader *in, unsigned op, int64_t step) {
    cfi_rule *rule = &walk->rule;
    uint64_t which;
    switch (op) {
    case CFA_OFFSET:
        which = read_uleb(in);
        save_register(rule, which, (int64_t)read_uleb(in) * step);
        return true;
    case CFA_OFFSET_SIGNED:
        which = read_uleb(in);
        save_register(rule, which, read_sleb(in) * step);
        return true;
    case CFA_RESTORE: restore_register(rule, read_uleb(in), &walk->initial); return true;
    case CFA_UNDEFINED: rule->is_first |= read_uleb(in) == REGISTER_RETURN; return true;
    case CFA_SAME_VALUE:
        if (read_uleb(in) == REGISTER_POINTER) rule->saved = SAVED_NOWHERE;
        return true;
    case CFA_REGISTER:
        which = read_uleb(in);
        read_uleb(in);
        return which != REGISTER_POINTER && which != REGISTER_RETURN;
    case CFA_EXPRESSION: saved_expression(in, rule); return true;
    default: return false;
    }
}

/* An instruction other than the three short ones. */
static bool follow_long(cfi_walk *walk, reader *in, unsigned op, const entry *of) {
    cfi_rule *rule = &walk->rule;
    uint64_t which;
    switch (op) {
    case 0: return true;
    case CFA_ADVANCE1: walk->at += read_bytes(in, 1) * of->code_step; return true;
    case CFA_ADVANCE2: walk->at += read_bytes(in, 2) * of->code_step; return true;
    case CFA_ADVANCE4: walk->at += read_bytes(in, 4) * of->code_step; return true;
    case CFA_REMEMBER: return stack_rule(walk, true);
    case CFA_RECALL: return stack_rule(walk, false);
    case CFA_DEF:
        which = read_uleb(in);
        define_cfa(rule, which, (int64_t)read_uleb(in));
        return true;
    case CFA_DEF_SIGNED:
        which = read_uleb(in);
        define_cfa(rule, which, read_sleb(in) * of->data_step);
        return true;
    case CFA_DEF_REGISTER: define_cfa(rule, read_uleb(in), rule->cfa_distance); return true;
    case CFA_DEF_OFFSET: rule->cfa_distance = (int64_t)read_uleb(in); return true;
    case CFA_DEF_OFFSET_SIGNED: rule->cfa_distance = read_sleb(in) * of->data_step; return true;
    case CFA_DEF_EXPRESSION: cfa_expression(in, rule); return true;
    case CFA_GNU_ARGS_SIZE: read_uleb(in); return true;
    default: return follow_register(walk, in, op, of->data_step);
    }
}

/* Follows instructions up to the address `code`. */
static bool follow(cfi_walk *walk, reader in, const entry *of, uint64_t code) {
    enum { SHORT_ADVANCE = 1, SHORT_OFFSET = 2, SHORT_RESTORE = 3 };
    while (in.p < in.end) {
        unsigned byte = *in.p++, low = byte & 63;
        bool done = true;
        switch (byte >> 6) {
        case SHORT_ADVANCE: walk->at += low * of->code_step; break;
        case SHORT_OFFSET:
            save_register(&walk->rule, low, (int64_t)read_uleb(&in) * of->data_step);
            break;
        case SHORT_RESTORE: restore_register(&walk->rule, low, &walk->initial); break;
        default: done = follow_long(walk, &in, low, of);
        }
        if (!done) return false;
        if (walk->at > code) return true;
    }
    return true;
}

static bool follow_all(cfi_walk *walk, const entry *of, uint64_t code) {
    walk->at = of->start;
    if (!follow(walk, of->common, of, code)) return false;
    walk->initial = walk->rule;
    return follow(walk, of->own, of, code);
}

/* Rules whose distances do not fit are not understood either. */
static uint64_t row_of(const cfi_rule *rule) {
    enum { CFA_BITS = 30, SAVED_BITS = 28, CFA_SHIFT = 5, SAVED_SHIFT = 35 };
    int64_t cfa = rule->cfa_distance / 8, saved = rule->saved_distance / 8;
    bool fits = rule->cfa_distance % 8 == 0 && rule->saved_distance % 8 == 0 &&
                llabs(cfa) < 1 << (CFA_BITS - 1) && llabs(saved) < 1 << (SAVED_BITS - 1);
    if (rule->is_first) return SY_ROW_END;
    if (!fits || rule->cfa == SY_ROW_CUT) return SY_ROW_CUT;
    return (uint64_t)rule->cfa | (uint64_t)rule->saved << 3 |
           ((uint64_t)cfa & ((UINT64_C(1) << CFA_BITS) - 1)) << CFA_SHIFT |
           ((uint64_t)saved & ((UINT64_C(1) << SAVED_BITS) - 1)) << SAVED_SHIFT;
}

uint64_t sy_row_find(const sy_row_table *table, uintptr_t code) {
    entry of = {.start = 0};
    cfi_walk state = {.rule = {.cfa = SY_ROW_CUT}};
    if (!find_function(table, code, &of)) return SY_ROW_NONE;
    if (of.is_signal || !follow_all(&state, &of, code)) return SY_ROW_CUT;
    return row_of(&state.rule);
}

uint64_t sy_row_from_stack(int64_t distance, int64_t pointer) {
    cfi_rule rule = {.cfa = SY_ROW_FROM_STACK, .cfa_distance = distance + 8};
    if (pointer >= 0) {
        rule.saved = SAVED_IN_FRAME;
        rule.saved_distance = pointer - rule.cfa_distance;
    }
    return row_of(&rule);
}

/* ---- a step ---- */

/* Sanitizers do not check this function: it reads what they guard, too. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static bool read_word(
    const sy_row_bounds *stack, uintptr_t at, uintptr_t *word) {
    if (at < stack->low || at > stack->high - sizeof *word || at % sizeof *word != 0) return false;
    *word = *(const uintptr_t *)at;
    return true;
}

static int64_t cfa_distance(uint64_t row) { return ((int64_t)(row << 29) >> 34) * 8; }

static int64_t saved_distance(uint64_t row) { return ((int64_t)(row << 1) >> 36) * 8; }

static bool find_cfa(const sy_row_frame *frame, uint64_t row, const sy_row_bounds *stack,
                     uintptr_t *cfa) {
    uintptr_t distance = (uintptr_t)cfa_distance(row);
    switch (row & 7) {
    case SY_ROW_FROM_STACK: *cfa = frame->stack + distance; return true;
    case SY_ROW_FROM_POINTER: *cfa = frame->pointer + distance; return true;
    case SY_ROW_AT_POINTER: return read_word(stack, frame->pointer + distance, cfa);
    default: return false;
    }
}

static bool find_pointer(sy_row_frame *frame, uint64_t row, uintptr_t cfa,
                         const sy_row_bounds *stack) {
    uintptr_t distance = (uintptr_t)saved_distance(row);
    switch (row >> 3 & 3) {
    case SAVED_NOWHERE: return true;
    case SAVED_IN_FRAME: return read_word(stack, cfa + distance, &frame->pointer);
    default: return read_word(stack, frame->pointer + distance, &frame->pointer);
    }
}

bool sy_row_step(uint64_t row, const sy_row_bounds *stack, sy_row_frame *frame) {
    uintptr_t cfa;
    if (!find_cfa(frame, row, stack, &cfa) || cfa <= frame->stack ||
        !find_pointer(frame, row, cfa, stack) || !read_word(stack, cfa - sizeof cfa, &frame->code))
        return false;
    frame->stack = cfa;
    return true;
}

#endif
