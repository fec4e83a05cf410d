/*
 * json.c: see json.h.
 */
#include "report/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"

/* The fields of sy_account, in order. No pointers: the table is in no page of a process's own. */
static const char fields[][24] = {
    "live_bytes",
    "large_bytes",
    "guarded_bytes",
    "rounding_bytes",
    "quarantine_bytes",
    "thread_magazines_bytes",
    "depot_magazines_bytes",
    "free_in_slabs_bytes",
    "holes_bytes",
    "tails_bytes",
    "free_units_bytes",
    "kept_spans_bytes",
    "headers_bytes",
    "records_bytes",
    "magazines_bytes",
    "handles_bytes",
    "arenas_bytes",
    "traces_bytes",
    "guard_records_bytes",
    "address_space_bytes",
    "resident_bytes",
    "other_bytes",
};

_Static_assert(sizeof fields / sizeof *fields == sizeof(sy_account) / sizeof(size_t),
               "a name for each field");

static const char kinds[][8] = {
    [SY_CACHE_OF_PROGRAM] = "cache", [SY_CACHE_OF_SIZES] = "malloc", [SY_CACHE_OF_HEAP] = "heap"};

static void add_field(sy_text *text, const char *before, const char *name, uint64_t number) {
    sy_text_add(text, before);
    sy_text_add(text, "\"");
    sy_text_add(text, name);
    sy_text_add(text, "\":");
    sy_text_add_number(text, number);
}

static void add_out(sy_output *to, const sy_text *text) {
    sy_output_add(to, text->bytes, text->length);
}

/* Names may contain any bytes: quotes are escaped, bytes that are not ASCII replaced. */
static void add_name(sy_text *text, const char *name) {
    sy_text_add(text, "\"");
    for (; *name; name++) {
        if (*name == '"' || *name == '\\') sy_text_add(text, "\\");
        bool plain = *name >= ' ' && *name < 127;
        sy_text_add(text, (char[]){(char)(plain ? *name : '?'), 0});
    }
    sy_text_add(text, "\"");
}

void sy_json_begin(sy_output *to, const sy_account *account) {
    sy_text text = {.length = 0};
    add_field(&text, "{", "pid", (uint64_t)sy_os_process());
    add_field(&text, ",", "monotonic_ns", sy_os_now());
    add_out(to, &text);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        sy_text row = {.length = 0};
        size_t bytes;
        memcpy(&bytes, (const char *)account + i * sizeof bytes, sizeof bytes);
        add_field(&row, ",", fields[i], bytes);
        add_out(to, &row);
    }
    sy_output_add(to, ",\"caches\":[", strlen(",\"caches\":["));
}

void sy_json_cache(sy_output *to, const sy_cache_account *cache, bool first) {
    const sy_cache_stats *stats = &cache->stats;
    sy_text text = {.length = 0}, rest = {.length = 0};
    sy_text_add(&text, first ? "{\"name\":" : ",{\"name\":");
    add_name(&text, stats->name);
    sy_text_add(&text, ",\"kind\":\"");
    sy_text_add(&text, kinds[cache->kind]);
    sy_text_add(&text, "\"");
    add_field(&text, ",", "object_bytes", stats->object_size);
    add_field(&text, ",", "live_objects", stats->in_use);
    add_out(to, &text);
    add_field(&rest, ",", "waiting_objects", stats->in_depot + stats->in_loaded);
    add_field(&rest, ",", "held_bytes", stats->mapped);
    add_field(&rest, ",", "limits_hit", stats->limits_hit);
    sy_text_add(&rest, "}");
    add_out(to, &rest);
}

void sy_json_end(sy_output *to) { sy_output_add(to, "]}\n", 3); }
