/*
 * explain.c: adds to a tool's report on an address: which object of which cache lies there, and
 * which threads allocated and freed it. Called at the end of the report, which has taken a time
 * that is not known. So the lines do not say how long ago it was, but how long the object lived.
 */
#include "cache/watched.h"
#include "chunk/map.h"
#include "debug/watch.h"
#include "report/report.h"

static void add_life(const sy_record *record) {
    uint64_t born = record->allocated.time, died = record->freed.time;
    sy_trace allocated = sy_stamp_trace(&record->allocated, born);
    sy_report_next_trace("allocated", 0, &allocated);
    if (sy_record_state(record) == SY_OBJECT_LIVE) return;
    sy_trace freed = sy_stamp_trace(&record->freed, died);
    sy_report_next_trace("freed", died > born ? died - born : 0, &freed);
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

void sy_report_record(const sy_watch *watch, const sy_record *record, const void *address,
                      const void *object) {
    if (!sy_report_begin()) return;
    add_object_headline(watch, record, address, object);
    if (sy_record_state(record) != SY_OBJECT_FRESH) add_life(record);
    sy_report_end();
}

/* Adds the object at `address` to a tool's report. The address may lie in no slot, or in memory
 * that is not Slabyard's: then nothing is added. */
void sy_report_address(uintptr_t address) {
    const sy_slab *slab = sy_slab_at(address);
    const sy_cache *cache = slab ? sy_slab_owner(slab) : NULL;
    if (!cache || !(cache->flags & SY_TOLD)) return;
    const sy_layout *layout = &cache->layout;
    size_t index = (address - (slab->first - layout->zone)) / layout->slot;
    if (index < layout->slots)
        sy_report_record(cache->watch, &sy_watched_records(cache, slab)[index], (void *)address,
                         (void *)(slab->first + index * layout->slot));
}
