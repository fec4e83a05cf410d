#!/usr/bin/env bash
# Runs the examples for other languages (examples/languages) with an installed library: Zig's allocator,
# Go's cache, Python's look at its own memory. A language whose compiler is missing is left out; if all
# are, the exit status is 77.
# Usage: tests/install/languages.sh PREFIX
set -euo pipefail
prefix=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
examples=$root/examples/languages
libraries=$(dirname "$(find "$prefix" -name libslabyard-malloc.so)")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0

judge() { # judge FILE WORDS COMMAND...: the command succeeds, and prints these words
    local file=$1 words=$2
    shift 2
    "$@" >"$work/log" 2>&1 || { echo "languages: $file fails:" && tail -n 20 "$work/log" && exit 1; }
    grep -F "$words" "$work/log" >/dev/null || { echo "languages: $file prints no '$words':" && tail "$work/log" && exit 1; }
    echo "ok $file"
    ran=$((ran + 1))
}

if "$root/scripts/zig.sh" 2>/dev/null; then
    zig=$(echo "$root"/build/zig-venv/lib/python3*/site-packages/ziglang/zig)
    export ZIG_GLOBAL_CACHE_DIR=$root/build/zig-cache ZIG_LOCAL_CACHE_DIR=$root/build/zig-cache
    cd "$work"
    judge allocator.zig "came from Slabyard" "$zig" run "$examples/allocator.zig" -lc -L"$libraries" -lslabyard
else
    echo "left out: Zig (PyPI: ziglang)"
fi
if command -v go >/dev/null; then
    CGO_CFLAGS=$(pkg-config --cflags slabyard) CGO_LDFLAGS=$(pkg-config --libs slabyard) GOCACHE=$work/go GOFLAGS=-mod=mod
    export CGO_CFLAGS CGO_LDFLAGS GOCACHE GOFLAGS
    judge cache.go "outside of Go's heap" go run "$examples/cache.go"
else
    echo "left out: Go (Debian: golang-go)"
fi
if command -v python3 >/dev/null; then
    judge account.py "more objects of 4,096 bytes" env LD_PRELOAD="$libraries/libslabyard-malloc.so" python3 "$examples/account.py"
else
    echo "left out: Python"
fi
[ $ran != 0 ] || exit 77
