#include "watch/fault.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"

static _Atomic(sy_fault_handler) handler;

sy_fault_handler sy_set_fault_handler(sy_fault_handler new_handler) {
    return atomic_exchange(&handler, new_handler);
}

static const char *description(sy_fault_kind kind) {
    switch (kind) {
    case SY_FAULT_FOREIGN_POINTER: return "free of a pointer that is not an object of Slabyard's";
    case SY_FAULT_MISALIGNED_POINTER: return "free of a pointer that is not the start of an object";
    case SY_FAULT_WRONG_CACHE: return "free to the wrong cache";
    case SY_FAULT_DOUBLE_FREE: return "double free";
    case SY_FAULT_WRONG_SIZE: return "free with the wrong size";
    case SY_FAULT_NOT_ALLOCATED: return "free of a segment that is not allocated";
    case SY_FAULT_SEGMENT_SIZE: return "free of a segment with the wrong size";
    }
    return "misuse";
}

static void add_quoted(sy_text *text, const char *before, const char *name) {
    sy_text_add(text, before);
    sy_text_add(text, "\"");
    sy_text_add(text, name);
    sy_text_add(text, "\"");
}

/* 0x50 (size 16) in arena "ports", allocated with size 8 */
static void add_segment(sy_text *text, const sy_fault *fault) {
    sy_text_add(text, " (size ");
    sy_text_add_number(text, fault->object_size);
    add_quoted(text, ") in arena ", fault->cache);
    if (!fault->found_size) return;
    sy_text_add(text, ", allocated with size ");
    sy_text_add_number(text, fault->found_size);
}

/* 0x7f0012345640 in cache "order" (64 bytes) */
static void add_object(sy_text *text, const sy_fault *fault) {
    add_quoted(text, " in cache ", fault->cache);
    if (fault->object_size) {
        sy_text_add(text, " (");
        sy_text_add_number(text, fault->object_size);
        sy_text_add(text, " bytes)");
    }
    if (fault->found_cache) add_quoted(text, ", belongs to ", fault->found_cache);
}

static void write_report(const sy_fault *fault) {
    bool segment = fault->kind == SY_FAULT_NOT_ALLOCATED || fault->kind == SY_FAULT_SEGMENT_SIZE;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: ");
    sy_text_add(&text, description(fault->kind));
    sy_text_add(&text, ": ");
    sy_text_add_hex(&text, (uintptr_t)fault->address);
    if (segment)
        add_segment(&text, fault);
    else
        add_object(&text, fault);
    sy_text_add(&text, "\n");
    sy_os_write(2, text.bytes, text.length);
}

void sy_fault_raise(const sy_fault *fault) {
    sy_fault_handler current = atomic_load(&handler);
    if (current) {
        current(fault);
        return;
    }
    write_report(fault);
    sy_os_abort();
}
