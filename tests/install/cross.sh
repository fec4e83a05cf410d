#!/usr/bin/env bash
# Compiles all of src/ for systems that this machine cannot run, without a warning: macOS, the BSDs
# and Linux with an old glibc, by zig (the package ziglang of PyPI). Then links a program as far as
# zig has the system's libraries. Prints for each target what was done. Nothing of it is run.
# Usage: tests/install/cross.sh [TARGET...]
# Exits with 77 if there is no zig, and pip cannot install it in build/zig-venv.
set -uo pipefail
cd "$(dirname "$0")/../.."

# Each row: a target of zig, and the flags with which a program for it is linked.
targets="
aarch64-macos           -Wl,-undefined,dynamic_lookup
x86_64-macos            -Wl,-undefined,dynamic_lookup
x86_64-freebsd          -lpthread
aarch64-freebsd         -lpthread
x86_64-openbsd          -lpthread
x86_64-netbsd           -lpthread
aarch64-netbsd          -lpthread
x86_64-linux-gnu.2.17   -lpthread -ldl -lunwind
aarch64-linux-gnu.2.17  -lpthread -ldl -lunwind
"
scripts/zig.sh || { echo "zig cannot be had (PyPI: ziglang)" && exit 77; }
zig="build/zig-venv/bin/python -m ziglang"
export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig-cache ZIG_LOCAL_CACHE_DIR=$PWD/build/zig-cache
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.c" <<'END'
#include <slabyard/slabyard.h>
int main(void) {
    void *object = sy_malloc(100);
    sy_free(object);
    return object == NULL;
}
END
warnings=$(grep -v '^#' cmake/warnings.txt | tr '\n' ' ')

compile() { # compile TARGET SOURCE: an object in $work/TARGET
    local object=$work/$1/${2//\//_}.o
    # shellcheck disable=SC2086 # several flags
    $zig cc -target "$1" -std=gnu11 -O2 -Isrc -Iinclude $warnings -Werror -c "$2" -o "$object" 2>&1
}
export -f compile
export zig work warnings

failed=0
while read -r target flags; do
    [ -n "$target" ] || continue
    [ $# = 0 ] || [[ " $* " == *" $target "* ]] || continue
    mkdir -p "$work/$target"
    find src -name '*.c' ! -name fake.c | sort |
        xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'compile "$@"' _ "$target" {} >"$work/log"
    objects=$(find "$work/$target" -name '*.o' | wc -l)
    wanted=$(find src -name '*.c' ! -name fake.c | wc -l)
    if [ "$objects" != "$wanted" ] || [ -s "$work/log" ]; then
        echo "$target: not compiled: $((wanted - objects)) of $wanted files"
        grep -E "error|warning" "$work/log" | head -n 20
        failed=1
        continue
    fi
    # shellcheck disable=SC2086 # several flags
    if $zig cc -target "$target" -O2 -Iinclude "$work/program.c" "$work/$target"/*.o $flags \
        -o "$work/program" >"$work/log" 2>&1; then
        echo "$target: compiled, linked"
    else
        echo "$target: compiled, not linked: $(grep -m 1 -E "error|undefined" "$work/log")"
    fi
done <<<"$targets"
exit $failed
