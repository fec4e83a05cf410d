#!/usr/bin/env bash
# Tests profiles of the drop-in malloc: by the option `profile` in a program that was not changed
# for it, and begun and ended by a running program; that the file is what pprof reads, and has the
# true figures, files and stacks; and that the library has OpenTelemetry's probes, which are reached
# once for each sample: counted by breakpoints, and by uprobes where the kernel permits them. Needs a
# C compiler, python3, readelf and nm.
# Usage: tests/malloc/profiled.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD
export PYTHONPATH=$here/../support PYTHONDONTWRITEBYTECODE=1

fail() {
    echo "profiled: $*" >&2
    exit 1
}

# The program keeps 20,000 blocks of 1,000 bytes and 100 of 200,000, frees 20,000 of 3,000 at once,
# and writes its profile to the file $1. With a second argument it begins the profile itself, after
# blocks that it must not have.
cat >"$work/program.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEEN __attribute__((noinline, noclone))

static void *volatile kept[20100];

SEEN void keep_small(int i) { kept[i] = malloc(1000); }
SEEN void keep_large(int i) { kept[i] = malloc(200000); }
SEEN void use_for_a_while(void) {
    void *volatile block = malloc(3000);
    free(block);
}

int main(int argc, char **argv) {
    int (*start)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "sy_profile_start");
    int (*stop)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "sy_profile_stop");
    int (*write_to)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "sy_profile_write");
    if (argc > 2) {
        if (write_to(1) != -1 || errno != ENOENT) return 2;
        for (int i = 0; i < 20000; i++) malloc(1000);
        if (start(8192) != 0) return 3;
        for (int i = 0; i < 10000; i++) free(malloc(1000)), free(malloc(3000)); /* it looks again */
        if (start(8192) != 0 || stop() != 0 || start(8192) != 0) return 4;
    }
    for (int i = 0; i < 20000; i++) keep_small(i), use_for_a_while();
    for (int i = 20000; i < 20100; i++) keep_large(i);
    int file = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (write_to(file) != 0) return 5;
    if (write_to(-1) != -1 || errno != EBADF) return 6;
    if (argc > 2 && (stop() != 0 || stop() != -1 || errno != ENOENT || write_to(file) != 0)) return 7;
    return 0;
}
END
cc -O1 -g -w -fno-omit-frame-pointer -o "$work/program" "$work/program.c" -ldl

# Decodes the file and compares the sums by function with the truth, in the window that the random
# samples of so many bytes allow.
cat >"$work/check.py" <<'END'
import sys

from pprof import sums_by_function

sums = sums_by_function(*sys.argv[1:])

def near(name, values, parts):
    for got, true, part in zip(sums[name], values, parts):
        assert abs(got - true) <= part * true, f"{name}: {sums[name]}, not about {values}"

# Some 2,200, 100 and 5,400 samples: the windows are six standard deviations.
near("keep_small", [20000, 20e6, 20000, 20e6], [0.13] * 4)
near("keep_large", [100, 20e6, 100, 20e6], [0.13] * 4)
near("use_for_a_while", [20000, 60e6, 0, 0], [0.09] * 2 + [0] * 2)
assert sums["main"][1] >= max(sums["keep_small"][1], sums["use_for_a_while"][1])
END

SLABYARD=profile=8K LD_PRELOAD=$library "$work/program" "$work/profile" || fail "the program ends with $?"
python3 "$work/check.py" "$work/profile" "$work/program" || fail "the option gives another profile"
LD_PRELOAD=$library "$work/program" "$work/profile" by_itself || fail "the program ends with $?"
size=$(stat -c %s "$work/profile")
head -c $((size / 2)) "$work/profile" >"$work/first" # the profile of the end is the same
cmp -s "$work/first" <(tail -c +$((size / 2 + 1)) "$work/profile") || fail "what a profile has when it ends differs"
python3 "$work/check.py" "$work/first" "$work/program" || fail "the calls give another profile"
if command -v go >/dev/null && go tool pprof -h 2>&1 | grep proto >/dev/null; then
    GOCACHE=$(go env GOCACHE) HOME=$work go tool pprof -sample_index=inuse_space -top "$work/first" >"$work/top" 2>/dev/null ||
        fail "pprof does not read the profile"
    grep -q keep_small "$work/top" || fail "pprof names no function: $(cat "$work/top")"
fi

# The probes. Where they are not made, there are none.
notes=$(readelf -n "$library" 2>/dev/null | grep -A 4 stapsdt || true)
address_of() { echo "0x$(grep -A 1 "Name: $1" <<<"$notes" | sed -n 's/.*Location: 0x\([0-9a-f]*\).*/\1/p')"; }
count_by() { # count_by COUNTER PLACE PLACE: a program of this folder counts how often alloc and free are reached
    local status=0 allocs frees
    cc -O1 -w -o "$work/$1" "$here/$1.c"
    LD_PRELOAD_OF_CHILD=$library SLABYARD=profile=8K,sample=off "$work/$1" "$library" "$2" "$3" \
        "$work/program" "$work/profile" >"$work/hits" || status=$?
    if [ "$status" = 77 ]; then
        echo "profiled: skipped: $1: $(cat "$work/hits")"
        return
    fi
    [ "$status" = 0 ] || fail "$1 ends with $status: $(cat "$work/hits")"
    read -r allocs frees <"$work/hits"
    # 20,000 of 1,000 bytes, 100 of 200,000 and 20,000 of 3,000 that are freed
    [ "$allocs" -gt 7100 ] && [ "$allocs" -lt 8500 ] || fail "$1: the probe alloc is reached $allocs times"
    [ "$frees" -gt 4900 ] && [ "$frees" -lt 5900 ] || fail "$1: the probe free is reached $frees times"
    echo "profiled: $1: $allocs samples, $frees frees"
}
case $(uname -m) in
x86_64 | aarch64)
    for name in alloc free; do
        grep -A 1 "Provider: otel_memory" <<<"$notes" | grep "Name: $name" >/dev/null || fail "there is no probe $name"
    done
    alloc=$(address_of alloc) free=$(address_of free)
    count_by count_probes "$alloc" "$free"
    # The offset of the code in the file, less its address.
    read -r offset address <<<"$(readelf -lW "$library" | awk '/LOAD/ && / E / { print $2, $3 }')"
    count_by count_uprobes $((alloc - address + offset)) $((free - address + offset))
    ;;
*) [ -z "$notes" ] || fail "there are probes" ;;
esac
echo "profiled: ok"
