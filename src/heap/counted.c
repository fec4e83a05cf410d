/*
 * counted.c: slabyard/count.h: counts of what a thread allocates, for tests. The table of the
 * profile has a record for each object that is counted (debug/profile.h), and each allocation of
 * the thread takes the slow path meanwhile (magazine/profiled.h).
 *
 * Above: nothing. Below: debug/profile.h, magazine/client.h.
 */
#include <slabyard/count.h>

#include <errno.h>

#include "base/sized.h"
#include "debug/profile.h"
#include "debug/watch.h"
#include "magazine/client.h"
#include "magazine/sleepers.h"
#include "magazine/thread.h"
#include "os/start.h"

static int refuse(int error) {
    errno = error;
    return -1;
}

/* Objects of all size classes have to be plain ones. The drop-in malloc has its own way to look at
 * their allocations. A slow path that this thread is in may have its slots in hand. */
int sy_count_begin(void) {
    if (sy_start() != 0) return -1;
    if (sy_watch_changes_any() || sy_threads_may_be_reached()) return refuse(ENOTSUP);
    sy_thread *thread = sy_thread_self(); /* when it ends, so does the count */
    if (!thread) return refuse(ENOMEM);
    if (sy_thread_is_inside(thread)) return refuse(EBUSY);
    if (sy_profile_begin_count() != 0) return -1;
    sy_clients_profile();
    return 0;
}

static void fill_counted(const void *counts_, void *counted_) {
    const sy_profile_counts *counts = counts_;
    sy_counted *counted = counted_;
    *counted = (sy_counted){
        .allocations = counts->allocations,
        .bytes = counts->bytes,
        .frees = counts->frees,
        .live = counts->allocations - counts->frees,
        .live_bytes = counts->live_bytes,
        .peak_bytes = counts->peak_bytes,
    };
}

int sy_count_end_sized(sy_counted *counted, size_t size) {
    static const sy_sized sized = SY_SIZED(sy_counted, peak_bytes, fill_counted);
    sy_profile_counts counts = {.allocations = 0};
    if (!sy_profile_counter) return refuse(ENOENT);
    if (sy_sized_fill(&sized, &counts, counted, size) != 0) return -1;
    sy_profile_end_count(&counts);
    sy_clients_profile();
    sy_sized_fill(&sized, &counts, counted, size);
    return counts.lost ? refuse(ENOMEM) : 0;
}
