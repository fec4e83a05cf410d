/*
 * parts.c: the list of all parts of the library, for the start and for forks (os/start.h); and what
 * tells the user something (debug/tell.h): reports, or single lines with SY_NO_REPORTS. Also what
 * tools that read the process find of the library (base/shape.h).
 */
#include "base/shape.h"
#include "cache/cache.h"
#include "cache/limit.h"
#include "cache/mixed.h"
#include "cache/mover.h"
#include "cache/passed.h"
#include "chunk/memory.h"
#include "debug/fail.h"
#include "debug/guard.h"
#include "debug/options.h"
#include "debug/profile.h"
#include "debug/stack.h"
#include "debug/tags.h"
#include "debug/tools.h"
#include "heap/pprof.h"
#include "magazine/client.h"
#include "os/background.h"
#include "os/facts.h"
#include "os/start.h"
#include "pool/checked.h"
#include "reclaim/reclaim.h"
#include "reclaim/slack.h"
#include "report/account.h"
#include "report/leaks.h"
#include "report/report.h"
#include "report/teller.h"
#include "vmem/arena.h"

/* In the order of their locks' ranks. A part without a lock comes before all parts that it uses. */
const sy_part *const sy_parts[] = {
    &sy_stack_part,       /* a fork waits here before it takes a lock */
    &sy_maintenance_part, /* carries out options for its layer and those below */
    &sy_reclaim_part,     &sy_mover_part,
#ifndef SY_NO_REPORTS
    &sy_leaks_part,       &sy_account_part, &sy_report_part,
#endif
    &sy_slack_part,       &sy_limits_part,  &sy_epochs_part, /* SY_RANK_EPOCHS */
    &sy_threads_part,                                        /* SY_RANK_THREADS */
    &sy_caches_part,                                         /* SY_RANK_CACHE */
    &sy_mixed_part,                                          /* SY_RANK_MIXED */
    &sy_arenas_part,                                         /* SY_RANK_ARENAS, SY_RANK_ARENA */
    &sy_memory_part,                                         /* SY_RANK_MEMORIES to SY_RANK_SIDE */
    &sy_passed_part,                                         /* SY_RANK_PASSED */
    &sy_store_part,                                          /* SY_RANK_STORE */
    &sy_pools_part,                                          /* SY_RANK_POOLS */
    &sy_guard_part,                                          /* SY_RANK_GUARD */
    &sy_profile_part,                                        /* SY_RANK_PROFILE */
    &sy_fail_part,                                           /* SY_RANK_FAILURES */
    &sy_options_part,                                        /* SY_RANK_OPTIONS */
    &sy_tags_part,                                           /* SY_RANK_TAGS */
    &sy_tools_part,                                          /* SY_RANK_TOOLS */
    &sy_background_part,  &sy_facts_part,   &sy_pprof_part,
};

const size_t sy_part_count = sizeof sy_parts / sizeof *sy_parts;

#ifdef SY_NO_REPORTS
const sy_teller *const sy_tell = &sy_tell_lines;
#else
const sy_teller *const sy_tell = &sy_reports;
#endif

static const sy_shape_part *const shape_parts[] = {
    &sy_stack_shape,  &sy_guard_shape,     &sy_thread_shape,      &sy_roster_shape,
    &sy_store_shape,  &sy_depot_shape,     &sy_vmem_shape,        &sy_map_shape,
    &sy_memory_shape, &sy_headers_shape,   &sy_side_shape,        &sy_cache_shape,
    &sy_mixed_shape,  &sy_directory_shape, &sy_maintenance_shape, &sy_profile_shape,
};

__attribute__((used)) const sy_shape sy_shape_1 = {
    .magic = "slabyard shapes",
    .version = SY_SHAPE_VERSION,
    .part_count = sizeof shape_parts / sizeof *shape_parts,
    .parts = shape_parts,
};

/* A note of the ELF file: it is in memory, strip keeps it, and the program header leads to it. It
 * has the distance from itself to sy_shape_1. Notes: "ELF-64 Object File Format", PT_NOTE. */
#if defined(__ELF__)
__asm__(".pushsection .note.slabyard, \"a\", %note\n"
        ".balign 4\n"
        ".4byte 9, 4, 1\n" /* bytes of the name, bytes of the content, type: shapes */
        ".asciz \"Slabyard\"\n"
        ".balign 4\n"
        ".4byte sy_shape_1 - .\n"
        ".popsection\n");
#endif
