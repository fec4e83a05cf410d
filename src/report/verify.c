/*
 * verify.c: sy_verify, which checks the invariants of all structures of the library and reports
 * violations. It checks one structure after the other, each under its own lock, so that other
 * threads can go on.
 *
 * Below: all layers up to cache/.
 */
#include <slabyard/checks.h>

#include <errno.h>
#include <string.h>

#include "cache/mixed.h"
#include "cache/watched.h"
#include "chunk/chunk.h"
#include "debug/guard.h"
#include "debug/profile.h"
#include "debug/watch.h"
#include "magazine/store.h"
#include "pool/checked.h"
#include "report/report.h"
#include "vmem/arena.h"

enum { LINES = 16, NAME_LENGTH = 31 };

_Static_assert((int)SY_CACHE_NAME_MAX <= (int)NAME_LENGTH, "a cache's name fits");
_Static_assert((int)SY_VMEM_NAME_MAX <= (int)NAME_LENGTH, "an arena's name fits");

/* A line of the report, which is written when no lock is held. */
typedef struct sy_line {
    const char *kind;
    char name[NAME_LENGTH + 1];
    size_t wrong;
} sy_line;

typedef struct sy_verdict {
    size_t wrong; /* violations, and damage that was reported already */
    size_t lines; /* number of structures with violations; `line` has the first LINES */
    sy_line line[LINES];
} sy_verdict;

static void note(sy_verdict *verdict, const char *kind, const char *name, size_t wrong) {
    verdict->wrong += wrong;
    if (!wrong || verdict->lines++ >= LINES) return;
    sy_line *line = &verdict->line[verdict->lines - 1];
    *line = (sy_line){.kind = kind, .wrong = wrong};
    for (size_t i = 0; i < NAME_LENGTH && name[i]; i++) line->name[i] = name[i];
}

static void verify_caches(sy_verdict *verdict) {
    sy_client *client;
    for (unsigned number = 0; (client = sy_client_pin_next(number)) != NULL;) {
        number = client->number;
        sy_cache *cache = sy_cache_of_client(client);
        if (cache) {
            note(verdict, "cache", cache->name, sy_cache_verify(cache));
            verdict->wrong += sy_watched_verify(cache);
        }
        sy_client_unpin(client);
    }
}

/* ---- other structures, and the report ---- */

static void verify_memory(sy_memory *memory, void *verdict) {
    note(verdict, "memory", memory->name, sy_chunk_verify(memory));
}

static void verify_arena(sy_vmem *arena, void *verdict) {
    note(verdict, "arena", arena->name, sy_vmem_verify(arena));
}

static void tell(const sy_line *line) {
    sy_report_text("slabyard: ");
    sy_report_number(line->wrong);
    sy_report_text(line->wrong == 1 ? " violation in " : " violations in ");
    sy_report_text(line->kind);
    sy_report_text(" \"");
    sy_report_text(line->name);
    sy_report_text("\"\n");
}

size_t sy_verify(void) {
    int error = errno;
    sy_verdict verdict;
    verdict.wrong = verdict.lines = 0;
    verify_caches(&verdict);
    note(&verdict, "heap", "mixed units", sy_mixed_verify());
    verdict.wrong += sy_checked_pools_verify();
    sy_memory_each(verify_memory, &verdict);
    sy_vmem_each_arena(verify_arena, &verdict);
    note(&verdict, "store", "magazines", sy_store_verify());
    note(&verdict, "guards", "objects", sy_guard_verify());
    note(&verdict, "profile", "samples", sy_profile_verify());
    if (verdict.lines && sy_report_begin()) {
        for (size_t i = 0; i < verdict.lines && i < LINES; i++) tell(&verdict.line[i]);
        sy_report_end();
    }
    errno = error;
    return verdict.wrong;
}
