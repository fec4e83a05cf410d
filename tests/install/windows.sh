#!/usr/bin/env bash
# Builds the library for Windows with 64 bits, and runs tests under wine: fuzz programs, stress tests,
# examples, programs for earlier systems, unit tests, a program that uses the DLL, and programs whose
# malloc the library replaces. Exits with 77 if wine or a compiler cannot be had.
#
# It works in build/windows: zig is the Python package ziglang in a virtual environment there, the
# sources of cmocka are Debian's. Without these sources, unit tests are left out.
# Usage: tests/install/windows.sh [quick|all] [SECONDS_OF_STRESS]
#   quick  some programs in C of each kind, for `make test`: with clang and Debian's mingw-w64 if these
#          are installed. (zig's first link compiles the system's libraries, for three minutes.)
#   all    with zig
set -euo pipefail
cd "$(dirname "$0")/../.."
size=${1:-all} seconds=${2:-1} jobs=${JOBS:-2}
folder=$PWD/build/windows arch=$(dpkg --print-architecture 2>/dev/null || uname -m)
. tests/install/wine.sh

# ---- the compiler, cmocka ----

zig=
if [ "$size" = all ] || ! command -v clang || ! command -v x86_64-w64-mingw32-gcc; then
    zig=$(command -v zig || true)
    if [ -z "$zig" ]; then
        scripts/zig.sh || leave_out "zig cannot be had (PyPI: ziglang)"
        zig=$(echo "$PWD"/build/zig-venv/lib/python3*/site-packages/ziglang/zig)
    fi
    export ZIG_GLOBAL_CACHE_DIR=$folder/zig-cache ZIG_LOCAL_CACHE_DIR=$folder/zig-cache
    compiler=("$zig" cc -target x86_64-windows-gnu) libraries=(-lunwind)
else
    libgcc=$(x86_64-w64-mingw32-gcc -print-libgcc-file-name)
    compiler=(clang --target=x86_64-w64-mingw32 --sysroot=/usr/x86_64-w64-mingw32 -static
        -fuse-ld=/usr/bin/x86_64-w64-mingw32-ld -L"${libgcc%/*}") libraries=()
fi

. tests/install/debian.sh
fetch_cmocka() {
    mkdir -p "$folder/cmocka"
    (cd "$folder" && apt_get source --download-only cmocka) &&
        tar -C "$folder/cmocka" --strip-components=1 -xf "$folder"/cmocka_*.orig.tar.*z
}
if [ "$size" = all ] && [ ! -e "$folder/cmocka/src/cmocka.c" ]; then
    { prepare_apt && fetch_cmocka; } >"$folder/cmocka.log" 2>&1 ||
        echo "windows: the sources of cmocka cannot be had, so there are no unit tests"
fi
cmocka=
[ "$size" = all ] && [ -e "$folder/cmocka/src/cmocka.c" ] && cmocka=$folder/cmocka

# ---- the tests ----

# Configured once: CMake cannot change the compiler of a build. A quick run builds in a folder of its
# own, without unit tests.
tests=$folder/tests-$size
cmake -G Ninja -S . -B "$tests" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/windows.cmake" \
    -DSLABYARD_ZIG="$zig" -DSLABYARD_WINE="$wine" -DSLABYARD_CMOCKA="$cmocka" -DCMAKE_BUILD_TYPE=Release \
    -DSLABYARD_STRESS_SECONDS="$seconds" -DSLABYARD_FUZZ_RUNS=100
if [ "$size" = quick ]; then
    some="fuzz_options stress_guard stress_handle stress_reclaim stress_stack stress_threads example_jobs
        compat_xslab_program compat_magazine-slab_program compat_userland-slab_program compat_zns-slab_program"
    # shellcheck disable=SC2086 # several targets
    cmake --build "$tests" -j "$jobs" --target slabyard_static $some
    ctest --test-dir "$tests" -j "$jobs" --output-on-failure --no-tests=error \
        -R "^(fuzz\.fuzz_options|stress\.stress_(guard|handle|reclaim|stack|threads)|examples\.jobs|compat\..*_program)\$"
else
    cmake --build "$tests" -j "$jobs"
    ctest --test-dir "$tests" -j "$jobs" --output-on-failure --no-tests=error
fi

# ---- programs of users ----

passed=0
program() { # program NAME FLAGS...: builds a program as a user does
    "${compiler[@]}" -O2 -g -Iinclude "${@:2}" -o "$tests/$1.exe"
}
judge() { # judge NAME ARGUMENTS...: the program has to end well
    local output
    output=$(cd "$tests" && timeout 120 "$wine" "./$1.exe" "${@:2}" 2>&1) || {
        echo "windows: $1: $output" >&2
        exit 1
    }
    passed=$((passed + 1))
}

program with_static -DSY_STATIC tests/install/consumer.c "$tests/libslabyard.a" "${libraries[@]}"
judge with_static
if [ "$size" = all ]; then
    program with_dll -DSY_DLL tests/install/consumer.c "$tests/libslabyard.dll.a"
    judge with_dll
    python3 scripts/amalgamate "$tests/amalgamation" >/dev/null
    sed 's|<slabyard/slabyard.h>|"slabyard.h"|' tests/install/consumer.c >"$tests/amalgamation/consumer.c"
    program amalgamated -Wall -Wextra -Werror -std=c11 "$tests"/amalgamation/{consumer,slabyard}.c
    judge amalgamated
    "$zig" c++ -target x86_64-windows-gnu -std=c++17 -O2 -g -Iinclude tests/windows/drop_in.cpp \
        "$tests"/slabyard-{malloc,operators}.o "$tests/libslabyard.a" -o "$tests/drop_in.exe"
    judge drop_in
fi
echo "windows: $passed programs of users ran"
