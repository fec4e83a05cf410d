/* Stacks are taken from the first allocation to the last: before main and while the process ends,
 * where a statically linked program has no unwinding tables; and in constructors. */
#include "hosts/hosts.h"

static void *volatile kept;

__attribute__((constructor(101))) static void allocate_first(void) { kept = malloc(100); }

__attribute__((constructor)) static void allocate_early(void) {
    free(kept);
    kept = malloc(100);
}

__attribute__((destructor)) static void free_late(void) { free(kept); }

__attribute__((destructor(101))) static void free_last(void) { free(malloc(200)); }

int main(int count, char **arguments) {
    if (count == 2) return 0;
    with_options("audit,sample=1", arguments);
    hungry(1);
    for (int i = 0; i < 8; i++) {
        char command[4096];
        static const char *const options[] = {"audit", "sample=1", "sample=1/3",
                                              "audit,unwind=tables"};
        CHECK(setenv("SLABYARD", options[i % 4], 1) == 0);
        int length = snprintf(command, sizeof command, "'%s' again", arguments[0]);
        CHECK(length > 0 && length < (int)sizeof command);
        CHECK(system(command) == 0);
    }
    return 0;
}
