/*
 * page_size.h: tests that depend on the page size are skipped where it is another.
 */
#ifndef SLABYARD_TESTS_PAGE_SIZE_H
#define SLABYARD_TESTS_PAGE_SIZE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "os/os.h"
#include "support/emulated.h"

/* For a test whose objects leave whole pages of 4 KiB free, but not larger ones. */
static inline void needs_small_pages(void) {
    if (sy_os_page_size() > 4096) skip();
}

/* For a test of what is read from /proc/self/pagemap. tests/pages/pages.c does not change that, and
 * an emulator leaves the words in the order of the machine's bytes. */
static inline void needs_pages_of_the_kernel(void) {
    const bool swapped = is_emulated() && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (sy_os_page_size() != getauxval(AT_PAGESZ) || swapped) skip();
}

#endif
