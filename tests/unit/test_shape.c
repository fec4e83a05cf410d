/*
 * test_shape.c: what tools that read the process find (base/shape.h): the note that leads to the
 * description, and the names in it.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/shape.h"
#include "cache/cache.h"
#include "magazine/thread.h"
#include "support/child.h"

#if defined(__linux__) && defined(__ELF__)
#    include <link.h>

/* The address to which a note of the library leads; NULL: it is another note. */
static const void *place_of(const ElfW(Nhdr) * note) {
    const char *name = (const char *)(note + 1);
    if (note->n_namesz != sizeof "Slabyard" || strcmp(name, "Slabyard") != 0) return NULL;
    const char *content = name + (sizeof "Slabyard" + 3) / 4 * 4;
    int32_t distance;
    if (note->n_type != 1 || note->n_descsz != sizeof distance) return NULL;
    memcpy(&distance, content, sizeof distance);
    return content + distance;
}

static int look_for_note(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *at = (const char *)(uintptr_t)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + (header->p_type == PT_NOTE ? header->p_memsz : 0);
        while (at < end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            const void *place = place_of(note);
            if (place) *(const void **)found = place;
            at += sizeof *note + (note->n_namesz + 3) / 4 * 4 + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 0;
}

static void a_note_leads_to_the_description(void **state) {
    const void *found = NULL;
    (void)state;
    dl_iterate_phdr(look_for_note, &found);
    assert_ptr_equal(found, &sy_shape_1);
}

#else

static void a_note_leads_to_the_description(void **state) {
    (void)state;
    skip();
}

#endif

/* Looks a name up; there is one row with it. NULL: there is none. */
static const sy_shape_row *row_named(const char *name) {
    const sy_shape_row *found = NULL;
    for (uint32_t i = 0; i < sy_shape_1.part_count; i++) {
        const sy_shape_part *part = sy_shape_1.parts[i];
        for (uint32_t k = 0; k < part->row_count; k++) {
            if (strcmp(part->rows[k].name, name) != 0) continue;
            assert_null(found);
            found = &part->rows[k];
        }
    }
    return found;
}

static void each_name_is_whole_and_stands_once(void **state) {
    (void)state;
    size_t rows = 0, variables = 0;
    for (uint32_t i = 0; i < sy_shape_1.part_count; i++) {
        const sy_shape_part *part = sy_shape_1.parts[i];
        uint32_t found = 0;
        for (uint32_t k = 0; k < part->row_count; k++, rows++) {
            found += part->rows[k].bytes == SY_SHAPE_IS_VARIABLE;
            const char *name = part->rows[k].name;
            assert_non_null(memchr(name, 0, sizeof part->rows[k].name));
            assert_ptr_equal(row_named(name), &part->rows[k]);
        }
        assert_int_equal(found, part->address_count);
        for (uint32_t k = 0; k < part->address_count; k++, variables++)
            assert_non_null(part->addresses[k]);
    }
    assert_true(rows > 75 && variables > 15);
}

static void fields_have_their_places(void **state) {
    (void)state;
    const sy_shape_row *name = row_named("sy_cache.name");
    assert_non_null(name);
    assert_int_equal(name->value, offsetof(sy_cache, name));
    assert_int_equal(name->bytes, SY_CACHE_NAME_MAX + 1);
    assert_int_equal(row_named("sy_thread")->bytes, sizeof(sy_thread));
    assert_int_equal(row_named("SY_UNIT_SHIFT")->value, SY_UNIT_SHIFT);
    assert_null(row_named("sy_cache.nothing"));
}

static void has_own_number(void *cache) {
    void *object = sy_cache_alloc(cache);
    must(object && sy_thread_known()->number == sy_os_thread());
    sy_cache_free(cache, object);
}

/* `slabyard threads` names the thread whose magazines hold memory. */
static void a_thread_has_the_system_s_number(void **state) {
    (void)state;
    sy_cache *cache = sy_cache_create(&(sy_cache_config){.name = "order", .size = 64});
    assert_non_null(cache);
    has_own_number(cache);
    assert_int_equal(in_child(has_own_number, cache), 0);
    assert_int_equal(sy_cache_destroy(cache), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_leads_to_the_description),
        cmocka_unit_test(each_name_is_whole_and_stands_once),
        cmocka_unit_test(fields_have_their_places),
        cmocka_unit_test(a_thread_has_the_system_s_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
