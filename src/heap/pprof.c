/*
 * pprof.c: slabyard/profile.h: begins and ends profiles, and writes them in the format of pprof.
 *
 * The format is a message of Protocol Buffers (github.com/google/pprof, proto/profile.proto). A
 * field is a key, which is the field's number and its type, and a value: a number of 7 bits a byte,
 * or a length and so many bytes. Fields may come in any order, so all is written as it is found:
 *
 *     samples, a site each --> frames, which become locations --> locations --> code (mappings)
 *
 * Nothing here allocates from the heap. The notes of the frames and of the code take pages of their
 * own, until the profile is written.
 *
 * Above: nothing. Below: debug/profile.h.
 */
#include <slabyard/profile.h>

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/random.h"
#include "base/text.h"
#include "debug/options.h"
#include "debug/profile.h"
#include "debug/stack.h"
#include "heap/pprof.h"
#include "magazine/client.h"
#include "os/os.h"
#include "os/pages.h"
#include "os/start.h"

static const size_t MEAN_MAX = (size_t)1 << 30;

int sy_profile_start(size_t mean) {
    if (!mean || mean > MEAN_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (!sy_os_has(SY_OS_STACKS)) {
        errno = ENOTSUP;
        return -1;
    }
    if (sy_profile_begin(mean) != 0) return -1;
    sy_clients_profile();
    return 0;
}

int sy_profile_stop(void) {
    if (sy_profile_mean()) {
        sy_profile_end();
        sy_clients_profile();
        return 0;
    }
    errno = ENOENT;
    return -1;
}

/* ---- messages ---- */

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_STRINGS = 6,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_LOCATIONS = 1,
    SAMPLE_VALUES = 2,
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
};

enum {
    NUMBER_BYTES = 11, /* of the longest field that is a number */
    PART_BYTES = (SY_STACK_DEPTH_MAX + 8) * NUMBER_BYTES, /* of the longest message within one */
};

/* A message that is being built. */
typedef struct part {
    size_t length;
    uint8_t bytes[PART_BYTES];
} part;

static void put_number(part *to, uint64_t number) {
    for (; number >= 128; number >>= 7) to->bytes[to->length++] = (uint8_t)(number | 128);
    to->bytes[to->length++] = (uint8_t)number;
}

static void put_field(part *to, unsigned field, uint64_t number) {
    put_number(to, field << 3);
    put_number(to, number);
}

static void put_key_of_bytes(part *to, unsigned field, size_t length) {
    put_number(to, field << 3 | 2);
    put_number(to, length);
}

/* ---- notes and output ---- */

enum { CODE_MAX = 2048 }; /* files of code that are described */

typedef struct notes {
    const char *path; /* of a file that is written; NULL: `fd` */
    int fd, error;
    bool begun;    /* something was written */
    size_t length; /* bytes in `text` that are not written yet */
    char text[4096];
    uint64_t strings; /* how many were written */
    size_t own;       /* 1 + index of this library's code, if the program can do without; else 0 */
    size_t code_count;
    sy_os_code code[CODE_MAX];
    size_t mask;        /* of `frames`, whose number is a power of two */
    uintptr_t frames[]; /* a hash set; 0: free */
} notes;

static int write_to_file(const notes *to) {
    return to->begun ? sy_os_append(to->path, to->text, to->length)
                     : sy_os_replace(to->path, to->text, to->length);
}

static void flush_text(notes *to) {
    if (!to->error && !to->path)
        to->error = sy_os_write(to->fd, to->text, to->length);
    else if (!to->error)
        to->error = write_to_file(to) == 0 ? 0 : errno;
    to->begun = true;
    to->length = 0;
}

static void write_bytes(notes *to, const void *bytes, size_t length) {
    const char *from = bytes;
    while (length) {
        size_t room = sizeof to->text - to->length, some = length < room ? length : room;
        memcpy(to->text + to->length, from, some);
        to->length += some, from += some, length -= some;
        if (to->length == sizeof to->text) flush_text(to);
    }
}

static void write_message(notes *to, unsigned field, const part *message) {
    part key = {.length = 0};
    put_key_of_bytes(&key, field, message->length);
    write_bytes(to, key.bytes, key.length);
    write_bytes(to, message->bytes, message->length);
}

static void write_field(notes *to, unsigned field, uint64_t number) {
    part message = {.length = 0};
    put_field(&message, field, number);
    write_bytes(to, message.bytes, message.length);
}

/* Returns the number of the string. */
static uint64_t write_string(notes *to, const char *text, size_t length) {
    part key = {.length = 0};
    put_key_of_bytes(&key, PROFILE_STRINGS, length);
    write_bytes(to, key.bytes, key.length);
    write_bytes(to, text, length);
    return to->strings++;
}

static uint64_t write_word(notes *to, const char *word) {
    return write_string(to, word, strlen(word));
}

/* ---- the parts of the profile ---- */

static void write_type(notes *to, unsigned field, const char *name, const char *unit) {
    part type = {.length = 0};
    put_field(&type, TYPE_TYPE, write_word(to, name));
    put_field(&type, TYPE_UNIT, write_word(to, unit));
    write_message(to, field, &type);
}

static void write_types(notes *to) {
    write_word(to, ""); /* the first string is the empty one */
    write_type(to, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
    write_type(to, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
    write_type(to, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
    write_type(to, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
    write_type(to, PROFILE_PERIOD_TYPE, "space", "bytes");
    write_field(to, PROFILE_PERIOD, sy_profile_period());
}

/* 1 + index of the code at the address; 0: it is in no file. */
static size_t code_at(const notes *to, uintptr_t address) {
    for (size_t i = 0; i < to->code_count; i++)
        if (address - to->code[i].start < to->code[i].end - to->code[i].start) return i + 1;
    return 0;
}

/* Adds the frame to the set, if there is room: the table may have got stacks meanwhile. */
static bool note_frame(notes *to, uintptr_t frame) {
    size_t at = (size_t)sy_random_mix(frame) & to->mask;
    for (size_t tried = 0; tried < to->mask; tried++, at = (at + 1) & to->mask) {
        if (to->frames[at] == frame) return true;
        if (to->frames[at]) continue;
        to->frames[at] = frame;
        return true;
    }
    return false;
}

/* A stack has return addresses. The address before is within the instruction that called. The
 * library's own frames are left out, except the outermost: the function that the program called. */
static void write_sample(notes *to, const sy_profile_site *site) {
    const void *const *frames;
    size_t depth = sy_stack_frames(site->stack, &frames), first = 0;
    part sample = {.length = 0};
    while (to->own && first + 1 < depth && code_at(to, (uintptr_t)frames[first + 1]) == to->own)
        first++;
    for (size_t i = first; i < depth; i++) {
        uintptr_t frame = (uintptr_t)frames[i] - 1;
        if (note_frame(to, frame)) put_field(&sample, SAMPLE_LOCATIONS, frame);
    }
    put_field(&sample, SAMPLE_VALUES, site->allocated);
    put_field(&sample, SAMPLE_VALUES, site->allocated_bytes);
    put_field(&sample, SAMPLE_VALUES, site->allocated - site->freed);
    put_field(&sample, SAMPLE_VALUES, site->allocated_bytes - site->freed_bytes);
    write_message(to, PROFILE_SAMPLE, &sample);
}

/* The number of a location is its address. */
static void write_locations(notes *to) {
    for (size_t i = 0; i <= to->mask; i++) {
        part location = {.length = 0};
        if (!to->frames[i]) continue;
        put_field(&location, LOCATION_ID, to->frames[i]);
        put_field(&location, LOCATION_MAPPING, code_at(to, to->frames[i]));
        put_field(&location, LOCATION_ADDRESS, to->frames[i]);
        write_message(to, PROFILE_LOCATION, &location);
    }
}

static uint64_t write_build_id(notes *to, const sy_os_code *code) {
    char digits[2 * SY_OS_BUILD_ID_MAX];
    for (size_t i = 0; i < 2 * code->build_id_bytes; i++)
        digits[i] = "0123456789abcdef"[code->build_id[i / 2] >> (i % 2 ? 0 : 4) & 15];
    return write_string(to, digits, 2 * code->build_id_bytes);
}

static void write_code(notes *to) {
    for (size_t i = 0; i < to->code_count; i++) {
        const sy_os_code *code = &to->code[i];
        part mapping = {.length = 0};
        put_field(&mapping, MAPPING_ID, i + 1);
        put_field(&mapping, MAPPING_START, code->start);
        put_field(&mapping, MAPPING_LIMIT, code->end);
        put_field(&mapping, MAPPING_OFFSET, code->in_file);
        put_field(&mapping, MAPPING_FILE, write_word(to, code->file));
        put_field(&mapping, MAPPING_BUILD_ID, write_build_id(to, code));
        write_message(to, PROFILE_MAPPING, &mapping);
    }
}

static void write_left_out(notes *to) {
    static const char before[] = "samples left out for want of room: ";
    char text[sizeof before + 20];
    uint64_t count = sy_profile_left_out();
    size_t length = sizeof text;
    if (!count) return;
    for (; count; count /= 10) text[--length] = (char)('0' + count % 10);
    length -= sizeof before - 1;
    memcpy(text + length, before, sizeof before - 1);
    write_field(to, PROFILE_COMMENT, write_string(to, text + length, sizeof text - length));
}

/* ---- all of it ---- */

static void note_code(void *arg, const sy_os_code *code) {
    notes *to = arg;
    if (to->code_count < CODE_MAX) to->code[to->code_count++] = *code;
}

/* The first code in the loader's list is the program's own. */
static size_t own_code(const notes *to) {
    size_t own = code_at(to, (uintptr_t)&sy_profile_write);
    return own > 1 ? own : 0;
}

/* The bytes of notes with room for the frames of all sites, and for some more. */
static size_t bytes_of_notes(size_t *frames) {
    const void *const *unused;
    sy_profile_site site;
    size_t count = 1024;
    for (uint32_t i = 0; sy_profile_get_site(i, &site); i++)
        count += sy_stack_frames(site.stack, &unused);
    *frames = 1;
    while (*frames < 2 * count) *frames *= 2;
    return sy_round_up(sizeof(notes) + *frames * sizeof(uintptr_t), sy_os_page_size());
}

static void write_profile(notes *to) {
    sy_profile_site site;
    sy_os_each_code(note_code, to);
    to->own = own_code(to);
    write_types(to);
    for (uint32_t i = 0; sy_profile_get_site(i, &site); i++)
        if (site.allocated_bytes) write_sample(to, &site);
    write_locations(to);
    write_code(to);
    write_left_out(to);
    flush_text(to);
}

/* `path`: a file; NULL: `fd`. 0, or -1 with errno. */
static int write_to(const char *path, int fd) {
    if (sy_start() != 0) return -1;
    if (!sy_profile_period()) {
        errno = ENOENT;
        return -1;
    }
    size_t frames, bytes = bytes_of_notes(&frames);
    notes *to = sy_pages_take(bytes, sy_os_page_size(), "slabyard pprof");
    if (!to) return -1;
    to->path = path;
    to->fd = fd;
    to->mask = frames - 1;
    write_profile(to);
    int error = to->error;
    sy_pages_give(to, bytes);
    if (error) errno = error;
    return error ? -1 : 0;
}

int sy_profile_write(int fd) { return write_to(NULL, fd); }

/* ---- at exit ---- */

/* Replaces %p by the number of the process. */
static void expand(const char *path, sy_text *name) {
    for (; *path; path++) {
        if (path[0] == '%' && path[1] == 'p') {
            sy_text_add_number(name, (uint64_t)sy_os_process());
            path++;
        } else {
            sy_text_add(name, (char[]){*path, 0});
        }
    }
    name->bytes[name->length < SY_TEXT_MAX ? name->length : SY_TEXT_MAX - 1] = 0;
}

static __attribute__((noinline)) void tell_no_file(const sy_text *name) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: profile-file: cannot write to ");
    sy_text_add(&text, name->bytes);
    sy_text_add(&text, "\n");
    sy_os_write(sy_os_stderr(), text.bytes, text.length);
}

static void write_at_exit(void) {
    char path[SY_OPTION_TEXT_MAX + 1];
    sy_text name = {.length = 0};
    int saved = errno, cancellation = sy_os_hold_cancellation();
    sy_options_profile_path(path);
    expand(path, &name);
    if (*path && sy_profile_period() && write_to(name.bytes, -1) != 0) tell_no_file(&name);
    sy_os_drop_cancellation(cancellation);
    errno = saved;
}

static int announce_profile(void) {
    char path[SY_OPTION_TEXT_MAX + 1];
    sy_options_profile_path(path);
    return *path ? sy_os_at_exit(write_at_exit) : 0;
}

const sy_part sy_pprof_part = {.finish = announce_profile};
