/*
 * explain.c: adds to a tool's report on an address: which object of which cache lies there, and
 * which threads allocated and freed it. Called at the end of the report.
 */
#include "watch/report.h"
#include "watch/watch.h"

static void add_trace(const char *done, const sy_stamp *stamp) {
    sy_trace trace = sy_stamp_trace(stamp);
    sy_report_trace(done, &trace);
}

/* 4 bytes behind | 8 bytes before | 16 bytes into */
static void add_place(const sy_record *record, const char *address, const char *object) {
    size_t size = sy_record_size(record);
    ptrdiff_t offset = address - object;
    bool behind = offset >= 0 && (size_t)offset >= size;
    sy_report_exactly(offset < 0 ? (uint64_t)-offset : (uint64_t)offset - (behind ? size : 0));
    sy_report_text(offset < 0 ? " before" : behind ? " behind" : " into");
    sy_report_text(sy_record_state(record) == SY_OBJECT_LIVE ? " a live object of "
                                                             : " a freed object of ");
    sy_report_exactly(size);
}

static void add_object_headline(const sy_watch *watch, const sy_record *record, const void *address,
                                const void *object) {
    sy_report_loud();
    sy_report_text("slabyard: ");
    sy_report_hex((uintptr_t)address);
    sy_report_text(" is ");
    if (sy_record_state(record) == SY_OBJECT_FRESH)
        sy_report_text("where no object has been");
    else
        add_place(record, address, object);
    sy_report_text(" in cache \"");
    sy_report_text(watch->name);
    sy_report_text("\"");
    sy_report_quiet();
    sy_report_text("\n");
}

void sy_watch_explain(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object) {
    if (!sy_report_begin()) return;
    add_object_headline(watch, record, address, object);
    if (sy_record_state(record) != SY_OBJECT_FRESH) {
        add_trace("allocated", &record->allocated);
        if (sy_record_state(record) != SY_OBJECT_LIVE) add_trace("freed", &record->freed);
    }
    sy_report_end();
}
