/*
 * race.c: recognises the detector of races under which the process runs, and makes its
 * requests.
 */
#define _GNU_SOURCE

#include "os/race.h"
#include "base/cpu.h"
#include "os/platform.h"

#if SY_PLATFORM_LINUX

#    include <link.h>
#    include <stdbool.h>
#    include <string.h>

/* ThreadSanitizer: weak references to its functions. */
extern __attribute__((weak, visibility("default"))) void __tsan_acquire(void *where);
extern __attribute__((weak, visibility("default"))) void __tsan_release(void *where);

/* Valgrind: requests, by their numbers. Helgrind and DRD share those of HELGRIND, but for the
 * third. */
enum {
    HELGRIND = 'H' << 24 | 'G' << 16,
    DRD = 'D' << 24 | 'R' << 16,
    HAPPENS_BEFORE = HELGRIND + 256 + 33,
    HAPPENS_AFTER,
    UNTRACK = HELGRIND + 256 + 39, /* Helgrind alone */
    COUNT_ACCESSIBLE = HELGRIND + 256 + 46,
    THREAD_NUMBER = DRD + 1, /* DRD alone, as the next */
    SUPPRESS,
};

enum { NONE, BY_THREAD_SANITIZER, BY_HELGRIND, BY_DRD };

uint8_t sy_race_detector = NONE;

static uintptr_t ask(uintptr_t number, const void *first, uintptr_t second, uintptr_t third) {
    const uintptr_t request[6] = {number, (uintptr_t)first, second, third, 0, 0};
    return sy_valgrind_ask(request, 0);
}

static uint8_t find_detector(void) {
    char probe = 0;
    if (__tsan_acquire && __tsan_release) return BY_THREAD_SANITIZER;
    if (ask(COUNT_ACCESSIBLE, &probe, 0, sizeof probe) == sizeof probe) return BY_HELGRIND;
    return ask(THREAD_NUMBER, NULL, 0, 0) ? BY_DRD : NONE;
}

/* Leaves out the variables of the object that contains this function, if it is a library of
 * Slabyard's. Those of a program that is linked with the static library are the program's too. */
static int leave_out_variables(struct dl_phdr_info *object, size_t bytes, void *name) {
    (void)bytes;
    if (!strstr(object->dlpi_name ? object->dlpi_name : "", name)) return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_W)
            sy_race_own((void *)(object->dlpi_addr + part->p_vaddr), part->p_memsz);
    }
    return 0;
}

void sy_race_start(void) {
    sy_race_detector = find_detector();
    if (sy_race_detector > BY_THREAD_SANITIZER) dl_iterate_phdr(leave_out_variables, "libslabyard");
}

void sy_race_tell_before(const void *where) {
    if (sy_race_detector == BY_THREAD_SANITIZER)
        __tsan_release((void *)(uintptr_t)where);
    else
        ask(HAPPENS_BEFORE, where, 0, 0);
}

void sy_race_tell_after(const void *where) {
    if (sy_race_detector == BY_THREAD_SANITIZER)
        __tsan_acquire((void *)(uintptr_t)where);
    else
        ask(HAPPENS_AFTER, where, 0, 0);
}

void sy_race_own(const void *start, size_t bytes) {
    if (sy_race_detector == BY_HELGRIND) ask(UNTRACK, start, bytes, 0);
    if (sy_race_detector == BY_DRD) ask(SUPPRESS, start, bytes, 0);
}

#endif
