#include "compat/together/together.h"

#include <slab_alloc.h>

int with_zns_slab_in_cpp(void) {
    SlabAllocator alloc;
    SlabHandle h;
    PerfCounters counters;
    allocator_init(&alloc);
    bool freed = alloc_obj(&alloc, 512, &h) && free_obj(&alloc, h) && !free_obj(&alloc, h);
    get_perf_counters(&alloc, 3, &counters);
    allocator_destroy(&alloc);
    return !freed || counters.new_slab_count != 1;
}
