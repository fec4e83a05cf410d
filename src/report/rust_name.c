/*
 * rust_name.c: see rust_name.h. It reads the mangled name once and writes the demangled name as it
 * goes. A back reference sends the reader to an earlier place, so a short name could stand for an
 * endless text. Therefore depth, steps and room are limited, and reading ends when one of them runs
 * out.
 */
#include "report/rust_name.h"

#include <stdint.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,   /* nested paths and types, each with some hundred bytes of stack */
    STEPS_MAX = 4096, /* paths, types and constants read */
    HASH_DIGITS = 16, /* behind an h, in the last part of a legacy name */
};

typedef struct reader {
    const char *begin, *at, *end; /* of the mangled name, without its prefix */
    char *to;
    size_t length;
    unsigned depth, steps;
    unsigned silent; /* above 0: read without writing */
    bool failed;
} reader;

typedef struct piece {
    const char *start;
    size_t length;
} piece;

/* ---- reading and writing ---- */

static void put_bytes(reader *in, const char *text, size_t bytes) {
    if (in->silent || in->failed) return;
    for (size_t i = 0; i < bytes && in->length < SY_RUST_NAME_MAX - 1; i++)
        in->to[in->length++] = text[i];
}

static void put(reader *in, const char *text) { put_bytes(in, text, strlen(text)); }

static void put_number(reader *in, uint64_t value) {
    char digits[21], *first = digits + sizeof digits - 1;
    *first = 0;
    do *--first = (char)('0' + value % 10);
    while (value /= 10);
    put(in, first);
}

static void fail_name(reader *in) {
    in->failed = true;
    in->at = in->end;
}

static char peek(const reader *in) {
    if (in->at == in->end) return 0;
    return *in->at;
}

static char next_char(reader *in) {
    if (in->at == in->end) {
        fail_name(in);
        return 0;
    }
    return *in->at++;
}

static bool take_char(reader *in, char wanted) {
    if (peek(in) != wanted) return false;
    in->at++;
    return true;
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

static uint64_t read_decimal(reader *in) {
    uint64_t value = 0;
    if (!is_digit(peek(in))) fail_name(in);
    if (take_char(in, '0')) return 0; /* the next digits belong to something else */
    while (is_digit(peek(in)) && value < UINT32_MAX)
        value = value * 10 + (uint64_t)(next_char(in) - '0');
    return value;
}

/* Reads digits (0 to 9, a to z, A to Z) and the _ that ends them. _ alone is 0. */
static uint64_t read_base_62(reader *in) {
    uint64_t value = 0;
    if (take_char(in, '_')) return 0;
    while (!in->failed && !take_char(in, '_')) {
        char digit = next_char(in);
        if (is_digit(digit))
            value = value * 62 + (uint64_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'z')
            value = value * 62 + (uint64_t)(digit - 'a') + 10;
        else if (digit >= 'A' && digit <= 'Z')
            value = value * 62 + (uint64_t)(digit - 'A') + 36;
        else
            fail_name(in);
    }
    return value + 1;
}

/* Reads the number that distinguishes things of the same name: s and a number; 0: there is none. */
static uint64_t read_disambiguator(reader *in) {
    return take_char(in, 's') ? read_base_62(in) + 1 : 0;
}

static piece read_bytes(reader *in, uint64_t length) {
    piece bytes = {in->at, (size_t)length};
    if (length > (uint64_t)(in->end - in->at)) {
        fail_name(in);
        return (piece){in->end, 0};
    }
    in->at += length;
    return bytes;
}

/* ---- v0 ---- */

static void read_path(reader *in, bool in_value);
static void read_type(reader *in);
static void read_constant(reader *in);

/* Counts a path, type or constant that begins. If true, call leave_nested() at its end. */
static bool enter_nested(reader *in) {
    if (in->failed || in->depth == DEPTH_MAX || ++in->steps > STEPS_MAX) fail_name(in);
    if (in->failed) return false;
    in->depth++;
    return true;
}

static void leave_nested(reader *in) { in->depth--; }

/* Reads an identifier: u if it is not ASCII, its length, its bytes. */
static piece read_name(reader *in) {
    take_char(in, 'u');
    uint64_t length = read_decimal(in);
    take_char(in, '_');
    return read_bytes(in, length);
}

/* Continues at the place that a back reference (B) names, and comes back. */
static void follow(reader *in, void (*read)(reader *in)) {
    const char *from = in->at - 1;
    uint64_t where = read_base_62(in);
    const char *back = in->at;
    if (in->failed || where >= (uint64_t)(from - in->begin)) {
        fail_name(in);
        return;
    }
    if (in->silent) return;
    in->at = in->begin + where;
    read(in);
    if (!in->failed) in->at = back;
}

static void read_value_path(reader *in) { read_path(in, true); }

static void read_type_path(reader *in) { read_path(in, false); }

/* Skips the place of an implementation, which would make the name long and tell little. */
static void skip_place(reader *in) {
    in->silent++;
    read_disambiguator(in);
    read_path(in, false);
    in->silent--;
}

/* Lifetimes are mangled without names. */
static void skip_lifetime(reader *in) {
    if (take_char(in, 'L')) read_base_62(in);
}

static void skip_binder(reader *in) {
    if (take_char(in, 'G')) read_base_62(in);
}

/* Reads items up to the E. Returns how many there were. */
static unsigned read_each_until_end(reader *in, void (*read)(reader *in), const char *between) {
    unsigned count = 0;
    for (; !in->failed && !take_char(in, 'E'); count++) {
        if (count) put(in, between);
        read(in);
    }
    return count;
}

static void read_argument(reader *in) {
    if (peek(in) == 'L') {
        put(in, "'_");
        skip_lifetime(in);
    } else if (take_char(in, 'K')) {
        read_constant(in);
    } else {
        read_type(in);
    }
}

/* Reads a name within another: a function, a type, a closure. */
static void read_nested(reader *in, bool in_value) {
    char kind = next_char(in);
    read_path(in, in_value);
    uint64_t which = read_disambiguator(in);
    piece name = read_name(in);
    bool special = kind >= 'A' && kind <= 'Z';
    if (!special && !name.length) return;
    put(in, special ? "::{" : "::");
    if (special) put(in, kind == 'C' ? "closure" : kind == 'S' ? "shim" : "part");
    if (special && name.length) put(in, ":");
    put_bytes(in, name.start, name.length);
    if (!special) return;
    put(in, "#");
    put_number(in, which);
    put(in, "}");
}

/* Writes <Type> or <Type as Trait>. */
static void read_implementation(reader *in, bool of_trait, bool has_place) {
    if (has_place) skip_place(in);
    put(in, "<");
    read_type(in);
    if (of_trait) {
        put(in, " as ");
        read_path(in, false);
    }
    put(in, ">");
}

static void read_path_of(reader *in, char kind, bool in_value) {
    switch (kind) {
    case 'C': {
        read_disambiguator(in);
        piece name = read_name(in);
        put_bytes(in, name.start, name.length);
        return;
    }
    case 'N': read_nested(in, in_value); return;
    case 'M': read_implementation(in, false, true); return;
    case 'X': read_implementation(in, true, true); return;
    case 'Y': read_implementation(in, true, false); return;
    case 'I':
        read_path(in, in_value);
        put(in, in_value ? "::<" : "<");
        read_each_until_end(in, read_argument, ", ");
        put(in, ">");
        return;
    case 'B': follow(in, in_value ? read_value_path : read_type_path); return;
    default: fail_name(in);
    }
}

static void read_path(reader *in, bool in_value) {
    if (!enter_nested(in)) return;
    read_path_of(in, next_char(in), in_value);
    leave_nested(in);
}

static const char *basic_type(char letter) {
    static const char names[26][6] = {"i8",   "bool",  "char",  "f64", "str", "f32", "",
                                      "u8",   "isize", "usize", "",    "i32", "u32", "i128",
                                      "u128", "_",     "",      "",    "i16", "u16", "()",
                                      "...",  "",      "i64",   "u64", "!"};
    const char *name = letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : "";
    return *name ? name : NULL;
}

static void read_function_type(reader *in) {
    skip_binder(in);
    if (take_char(in, 'U')) put(in, "unsafe ");
    if (take_char(in, 'K')) {
        put(in, "extern ");
        if (!take_char(in, 'C')) read_name(in);
    }
    put(in, "fn(");
    read_each_until_end(in, read_type, ", ");
    put(in, ")");
    if (take_char(in, 'u')) return; /* returns () */
    put(in, " -> ");
    read_type(in);
}

/* Reads a trait. Leaves out its associated types (p, name, type), to keep the line short. */
static void read_bound(reader *in) {
    read_path(in, false);
    in->silent++;
    while (take_char(in, 'p')) {
        read_name(in);
        read_type(in);
    }
    in->silent--;
}

static void read_dynamic_type(reader *in) {
    put(in, "dyn ");
    skip_binder(in);
    read_each_until_end(in, read_bound, " + ");
    skip_lifetime(in);
}

static void read_reference(reader *in, const char *words) {
    put(in, words);
    skip_lifetime(in);
    read_type(in);
}

static void read_sequence(reader *in, bool has_length) {
    put(in, "[");
    read_type(in);
    if (has_length) {
        put(in, "; ");
        read_constant(in);
    }
    put(in, "]");
}

static void read_tuple(reader *in) {
    put(in, "(");
    bool single = read_each_until_end(in, read_type, ", ") == 1;
    put(in, single ? ",)" : ")");
}

static void read_type_of(reader *in, char kind) {
    switch (kind) {
    case 'A': read_sequence(in, true); return;
    case 'S': read_sequence(in, false); return;
    case 'R': read_reference(in, "&"); return;
    case 'Q': read_reference(in, "&mut "); return;
    case 'P': read_reference(in, "*const "); return;
    case 'O': read_reference(in, "*mut "); return;
    case 'F': read_function_type(in); return;
    case 'D': read_dynamic_type(in); return;
    case 'B': follow(in, read_type); return;
    case 'T': read_tuple(in); return;
    default: in->at--; read_path(in, false);
    }
}

static void read_type(reader *in) {
    if (!enter_nested(in)) return;
    char kind = next_char(in);
    const char *basic = basic_type(kind);
    if (basic)
        put(in, basic);
    else if (!in->failed)
        read_type_of(in, kind);
    leave_nested(in);
}

/* Reads the hex digits of a constant and the _ that ends them. Returns the digits, without leading
 * zeros. *value: their value, if it has 64 bits at most. */
static piece read_hex(reader *in, uint64_t *value) {
    piece digits = {in->at, 0};
    *value = 0;
    while (!in->failed && !take_char(in, '_')) {
        char digit = next_char(in);
        bool letter = digit >= 'a' && digit <= 'f';
        if (!letter && !is_digit(digit)) fail_name(in);
        *value = *value << 4 | (uint64_t)(letter ? digit - 'a' + 10 : digit - '0');
        if (digits.length || *value)
            digits.length++;
        else
            digits.start++;
    }
    return digits;
}

/* Writes a number: in decimal if it has 64 bits at most, otherwise in hex. */
static void put_hex(reader *in, piece digits, uint64_t value) {
    if (digits.length <= 2 * sizeof value) {
        put_number(in, value);
    } else {
        put(in, "0x");
        put_bytes(in, digits.start, digits.length);
    }
}

/* Writes numbers, booleans and _. Any other constant (text, structs) ends the reading. */
static void read_constant_of(reader *in, char kind) {
    if (kind == 'p') {
        put(in, "_");
    } else if (kind == 'B') {
        follow(in, read_constant);
    } else if (basic_type(kind)) {
        if (take_char(in, 'n')) put(in, "-");
        uint64_t value;
        piece digits = read_hex(in, &value);
        if (kind == 'b')
            put(in, value ? "true" : "false");
        else
            put_hex(in, digits, value);
    } else {
        fail_name(in);
    }
}

static void read_constant(reader *in) {
    if (!enter_nested(in)) return;
    read_constant_of(in, next_char(in));
    leave_nested(in);
}

/* ---- legacy ---- */

/* The character that a word between two $ stands for. */
static const char *escaped(piece word) {
    static const char words[][2][4] = {
        {"SP", "@"},  {"BP", "*"},  {"RF", "&"},  {"LT", "<"},   {"GT", ">"},  {"LP", "("},
        {"RP", ")"},  {"C", ","},   {"u20", " "}, {"u22", "\""}, {"u27", "'"}, {"u2b", "+"},
        {"u3b", ";"}, {"u3d", "="}, {"u5b", "["}, {"u5d", "]"},  {"u7b", "{"}, {"u7d", "}"},
        {"u7e", "~"}, {"u21", "!"}, {"u23", "#"}, {"u2e", "."}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == word.length && !memcmp(words[i][0], word.start, word.length))
            return words[i][1];
    return NULL;
}

/* Writes the part's first character, which may be escaped. Returns the length of its source. */
static size_t put_character(reader *in, piece part) {
    if (part.length > 1 && part.start[0] == '.' && part.start[1] == '.') {
        put(in, "::");
        return 2;
    }
    const char *stop = NULL;
    if (*part.start == '$') stop = memchr(part.start + 1, '$', part.length - 1);
    const char *word = NULL;
    if (stop) word = escaped((piece){part.start + 1, (size_t)(stop - part.start) - 1});
    if (!word) {
        put_bytes(in, part.start, 1);
        return 1;
    }
    put(in, word);
    return (size_t)(stop + 1 - part.start);
}

static void put_part(reader *in, piece part) {
    bool underscored = part.length > 1 && part.start[0] == '_' && part.start[1] == '$';
    if (underscored) part = (piece){part.start + 1, part.length - 1};
    while (part.length) {
        size_t done = put_character(in, part);
        part = (piece){part.start + done, part.length - done};
    }
}

static bool is_hash(piece part) {
    if (part.length != HASH_DIGITS + 1 || *part.start != 'h') return false;
    for (size_t i = 1; i < part.length; i++)
        if (!is_digit(part.start[i]) && (part.start[i] < 'a' || part.start[i] > 'f')) return false;
    return true;
}

/* Legacy names of C++ look the same, except for the hash at the end. */
static bool read_legacy(reader *in) {
    while (is_digit(peek(in))) {
        piece part = read_bytes(in, read_decimal(in));
        if (in->failed) return false;
        if (peek(in) == 'E') return is_hash(part);
        if (in->length) put(in, "::");
        put_part(in, part);
    }
    return false;
}

/* ---- both ---- */

bool sy_rust_name(const char *mangled, char name[SY_RUST_NAME_MAX]) {
    bool legacy = strncmp(mangled, "_ZN", 3) == 0;
    if (!legacy && strncmp(mangled, "_R", 2) != 0) return false;
    const char *begin = mangled + (legacy ? 3 : 2);
    reader in = {.begin = begin, .at = begin, .end = begin + strlen(begin), .to = name};
    if (legacy && !read_legacy(&in)) return false;
    if (!legacy) read_path(&in, true);
    name[in.length] = 0;
    return !in.failed && in.length > 0;
}
