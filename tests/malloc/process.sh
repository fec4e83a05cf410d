#!/usr/bin/env bash
# Tests the drop-in malloc in programs that do not know Slabyard: it returns memory while the
# program is idle, starts a thread only in large programs, obeys SLABYARD, and reports misuse.
# PROGRAM is any program that ends without an error, for example malloc_life. Needs python3 and a C
# compiler.
# Usage: tests/malloc/process.sh LIBRARY PROGRAM
set -euo pipefail

library=$(realpath "$1")
program=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "process: $*" >&2
    exit 1
}
under() { env LD_PRELOAD="$library" "$@"; }

# In a program that frees 200 MiB and then sleeps, resident memory falls. The maintenance thread
# exists after large allocations, not before. A child of fork has one too, and returns its memory.
cat >"$work/idle.py" <<'END'
import ctypes, os, sys, time
patience = float(sys.argv[1])
def resident():
    with open("/proc/self/status") as f:
        return int(f.read().split("VmRSS:")[1].split()[0]) // 1024
def threads():
    return len(os.listdir("/proc/self/task"))
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def fill(mebibytes):
    blocks = [libc.malloc(2000) for _ in range(mebibytes * 524)]
    for block in blocks: ctypes.memset(block, 1, 2000)
    return blocks
before = resident()
small_threads = threads()
blocks = fill(200)
peak = resident()
for block in blocks: libc.free(block)
del blocks
end = time.monotonic() + patience
while resident() > before + (peak - before) // 5 and time.monotonic() < end:
    time.sleep(0.2)
print("small threads", small_threads, "threads", threads(), "peak", peak - before, "after", resident() - before)
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    blocks = fill(100)
    print("child threads", threads())
    sys.stdout.flush()
    for block in blocks: libc.free(block)
    before = resident()
    end = time.monotonic() + patience
    while resident() > before - 80 and time.monotonic() < end: time.sleep(0.2)
    print("child gave", before - resident() >= 80)
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
END
said=$(PYTHONMALLOC=malloc under python3 "$work/idle.py" 30)
read -r _ _ small _ threads _ peak _ after <<<"$(head -1 <<<"$said")"
[ "$small" = 1 ] || fail "a small program has $small threads"
[ "$threads" = 3 ] || fail "a large program has $threads threads"
[ "$peak" -ge 180 ] && [ "$after" -le $((peak / 5)) ] || fail "$after MiB of $peak MiB are still resident"
grep -qx "child threads 3" <<<"$said" || fail "in a child there are not 3 threads: $said"
grep -qx "child gave True" <<<"$said" || fail "a child returns no memory: $said"
said=$(PYTHONMALLOC=malloc SLABYARD=maintenance=no,decay=off under python3 "$work/idle.py" 1)
read -r _ _ small _ threads _ peak _ after <<<"$(head -1 <<<"$said")"
[ "$small" = 1 ] && [ "$threads" = 1 ] || fail "with maintenance=no there are $threads threads"
[ "$after" -ge $((peak / 2)) ] || fail "with decay=off only $after of $peak MiB are still resident"
grep -qx "child gave False" <<<"$said" || fail "with decay=off a child returns memory: $said"
echo "ok returns memory while idle"

# The library reads SLABYARD in any program. An unknown option is reported, and the program
# continues.
said=$(SLABYARD=stats under "$program" 2>&1) || fail "$said"
grep -q 'heap-' <<<"$said" || fail "no statistics: $said"
said=$(SLABYARD=nonsense=5 under "$program" 2>&1) || fail "an unknown option ends the program: $said"
grep -q 'nonsense' <<<"$said" || fail "an unknown option is not reported: $said"
echo "ok options"

# Misuse is reported and aborts the program.
cat >"$work/bug.c" <<'END'
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments) {
    char *volatile block = malloc(100);
    switch (count > 1 ? arguments[1][0] : 0) {
    case 'd': free(block); free(block); break;
    case 'i': free(block + 16); for (int i = 0; i < 5000; i++) free(malloc(100)); break;
    case 'f': free(&block); break;
    case 'l': block = malloc(1 << 20); free(block); free(block); break;
    case 'o': memset(block, 1, 130); free(block); break;
    case 'u': free(block); block[5] = 1; for (int i = 0; i < 5000; i++) free(malloc(100)); break;
    default: free(block);
    }
    return 0;
}
END
${CC:-cc} -fno-builtin -w "$work/bug.c" -o "$work/bug"
expect() { # expect BUG OPTIONS WORDS: the program aborts, and the report has the words
    local status=0 said
    said=$(SLABYARD=$2 under "$work/bug" "$1" 2>&1) || status=$?
    [ "$status" = 134 ] || fail "bug $1 with options '$2' ends with $status: $said"
    grep -q "$3" <<<"$said" || fail "bug $1 with options '$2' is reported as: $said"
}
expect d "" "double free"
expect f "" "not an object of Slabyard"
expect l "" "double free"
expect i check "not the start of an object"
expect o redzone "overflow\|red zone"
expect u poison,quarantine=1 "after free"
# With tools=malloc, blocks come from the next malloc in the process, or, in a static program, are
# mappings of their own.
cat >"$work/passed.c" <<'END'
#include <malloc.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 1000; i++) {
        char *volatile block = malloc(100 + (size_t)i), *volatile large = calloc(1, 1 << 20);
        if (malloc_usable_size(block) != 100 + (size_t)i || large[1000]) return 1;
        block = realloc(block, 3000);
        if (!block) return 2;
        free(block);
        free(large);
    }
    return 0;
}
END
${CC:-cc} -fno-builtin -w "$work/passed.c" -o "$work/passed"
SLABYARD=tools=malloc under "$work/passed" || fail "blocks from the next malloc are wrong: $?"
${CC:-cc} -fno-builtin -w -static "$work/passed.c" "$(dirname "$library")/slabyard-malloc.o" -o "$work/passed-static"
SLABYARD=tools=malloc "$work/passed-static" || fail "blocks on pages of their own are wrong: $?"
echo "ok passed on"

# If AddressSanitizer's library is preloaded first, AddressSanitizer's malloc is used.
sanitizer=$(${CC:-cc} -print-file-name=libasan.so)
if [ -e "$sanitizer" ]; then
    ${CC:-cc} -g -fno-builtin -w -fsanitize=address "$work/bug.c" -o "$work/sanitized"
    said=$(LD_PRELOAD="$sanitizer $library" "$work/sanitized" u 2>&1 || true)
    grep -q "AddressSanitizer: heap-use-after-free" <<<"$said" || fail "AddressSanitizer does not report the bug: $said"
    echo "ok sanitizer"
fi
under "$work/bug" n || fail "a program without a bug fails"
echo "ok bugs"
