/*
 * tell.c: what a library without reports tells: a line for each thing that was found.
 */
#include "debug/tell.h"

#include "base/text.h"
#include "debug/callback.h"
#include "os/os.h"

static void write_line(const char *line, size_t bytes) {
    int before = sy_os_hold_cancellation();
    sy_os_write(sy_os_stderr(), line, bytes);
    sy_os_drop_cancellation(before);
}

/* slabyard: misuse of kind 4 (slabyard/fault.h): 0x7f2 in "order" */
static bool write_fault(const sy_fault *fault) {
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: misuse of kind ");
    sy_text_add_number(&text, fault->kind);
    sy_text_add(&text, " (slabyard/fault.h): 0x");
    sy_text_add_in_base(&text, (uintptr_t)fault->address, 16);
    sy_text_add(&text, " in \"");
    sy_text_add(&text, fault->cache);
    sy_text_add(&text, "\"\n");
    write_line(text.bytes, text.length);
    return true;
}

/* slabyard: callback left: the destructor of "order" was left by longjmp, before this call */
static bool write_callback(const sy_callee *callee, const char *how, const char *next) {
    (void)next;
    sy_text text = {.length = 0};
    sy_text_add(&text, "slabyard: callback left: the ");
    sy_text_add(&text, callee->function);
    if (callee->of) {
        sy_text_add(&text, " of \"");
        sy_text_add(&text, callee->name);
        sy_text_add(&text, "\"");
    }
    sy_text_add(&text, how);
    sy_text_add(&text, "\n");
    write_line(text.bytes, text.length);
    return true;
}

static void tell_no_leaks(struct sy_cache *cache) { (void)cache; }

static void tell_no_survivors(uint32_t scope) { (void)scope; }

static void tell_no_account(void) {}

static void tell_no_address(uintptr_t address) { (void)address; }

const sy_teller sy_tell_lines = {
    .fault = write_fault,
    .callback = write_callback,
    .line = write_line,
    .leaks = tell_no_leaks,
    .survivors = tell_no_survivors,
    .account = tell_no_account,
    .address = tell_no_address,
};
