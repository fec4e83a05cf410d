#!/usr/bin/env bash
# Compiles the library and the drop-in malloc for the C library musl, and runs the tests that need no
# other library: fuzz programs, stress tests, reports of misuse, examples, and programs under the
# drop-in malloc, among them Lua, bzip2 and zstd. Needs musl-gcc; without it, the exit status is 77.
# Usage: tests/install/musl.sh [SECONDS_OF_STRESS]
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v musl-gcc >/dev/null || { echo "musl: musl-gcc is missing (Debian: musl-tools)" && exit 77; }
seconds=${1:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# musl-gcc uses a gcc that was built for glibc, so it needs two linker options. --eh-frame-hdr adds
# the table of frames that the unwinder searches. And if the program does not contain pthread_once,
# the unwinder assumes that there are no threads.
flags="-std=gnu11 -O2 -g -fexceptions -fno-omit-frame-pointer -Iinclude -Isrc -Itests -I."
link="-Wl,--eh-frame-hdr -Wl,-u,pthread_once"
own="-fPIC -fvisibility=hidden $(tr '\n' ' ' <cmake/warnings.txt) -Werror"

objects() { # objects FOLDER SOURCE...: compiles the sources into the folder
    local folder=$work/$1
    shift
    mkdir -p "$folder"
    # shellcheck disable=SC2016 # the shell that xargs starts expands these
    printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I FILE sh -c \
        'musl-gcc '"$flags $own"' -c FILE -o "$0/$(echo FILE | tr / -).o"' "$folder"
}

mapfile -t sources < <(find src -name '*.c' ! -name fake.c)
objects library "${sources[@]}"
objects unwinder tests/install/musl_unwinder.c
objects fake src/os/fake.c
own="$own -fno-builtin -DSLABYARD_VERSION='\"test\"'"
objects shim shim/*.c
# shellcheck disable=SC2086 # several flags
musl-gcc $link -shared -Wl,-z,nodelete "$work"/{library,unwinder,shim}/*.o -o "$work/libslabyard-malloc.so"
ar rcs "$work/libslabyard.a" "$work"/library/*.o
wraps=$(grep -o '__wrap_sy_os_[a-z_]*' src/os/fake.c | sort -u | sed 's/__wrap_/-Wl,--wrap=/')

passed=0 failed=0

# judge NAME COMMAND...: runs one test and counts the result.
judge() {
    local name=$1
    shift
    if timeout 300 "$@" >"$work/log" 2>&1 </dev/null; then
        passed=$((passed + 1))
    else
        echo "musl: $name: $(tail -n 8 "$work/log")"
        failed=$((failed + 1))
    fi
}

# program NAME SOURCE...: links a program with the library, and with the fake OS if it includes that.
program() {
    local name=$1 fake=()
    shift
    ! grep -q 'os/fake\.h' "$1" || fake=("$work"/fake/*.o $wraps)
    # shellcheck disable=SC2086 # several flags
    musl-gcc $flags $link "$@" "${fake[@]}" "$work"/unwinder/*.o "$work/libslabyard.a" -o "$work/$name"
}

export SLABYARD=tools=off
for source in tests/fuzz/fuzz_*.c; do
    [[ $source != *_narrow.c ]] || continue
    program fuzz "$source" tests/fuzz/driver.c
    judge "$source" "$work/fuzz" 100
done
for source in tests/stress/stress_*.c; do
    # Left out: in musl, fork waits for musl's locks while Slabyard's are held (docs/platforms.md).
    [[ $source != *_soak.c && $source != *_fork_signal.c && $source != *_fork_stream.c ]] || continue
    program stress "$source"
    judge "$source" "$work/stress" "$seconds"
done
for source in tests/misuse/*.c; do
    program misuse "$source"
    judge "$source" tests/misuse/run.sh "$source" "$work/misuse"
done
for source in examples/*.c; do
    # Left out: the server, which needs clients; examples that call malloc_trim, which only glibc
    # has.
    [[ $source != */kv_server.c ]] && ! grep -q malloc_trim "$source" || continue
    program example "$source"
    judge "$source" "$work/example"
done
# malloc_life starts the program `true`. The preloaded library needs one that uses musl, too.
mkdir "$work/bin"
echo 'int main(void) { return 0; }' >"$work/true.c"
musl-gcc "$work/true.c" -o "$work/bin/true"
for source in tests/malloc/malloc_*.c; do
    # shellcheck disable=SC2086 # several flags
    musl-gcc $flags -fno-builtin "$source" -o "$work/dynamic"
    # shellcheck disable=SC2086
    musl-gcc $flags $link -fno-builtin -DLINKED_STATICALLY -static "$source" \
        "$work"/{library,unwinder,shim}/*.o -o "$work/static"
    for options in tools=off tools=off,check,redzone tools=off,sample=all,guard-slots=65536 tools=malloc; do
        judge "$source preloaded, $options" env "PATH=$work/bin" SLABYARD=$options \
            LD_PRELOAD="$work/libslabyard-malloc.so" "$work/dynamic"
        judge "$source linked, $options" env "PATH=$work/bin" SLABYARD=$options "$work/static"
    done
done

# ---- real programs, from the sources of Debian's packages ----

folder=$PWD/build/musl
arch=$(dpkg --print-architecture 2>/dev/null || true)
. tests/install/debian.sh
. tests/programs/scripts.sh # in_lua

fetch_sources() {
    local file name
    [ ! -e "$folder/complete" ] || return 0
    rm -rf "$folder" && prepare_apt || return 1
    mkdir "$folder/archives"
    (cd "$folder/archives" && apt_get source --download-only --tar-only lua5.4 bzip2 libzstd) || return 1
    for file in "$folder"/archives/*.orig.tar.*; do
        name=${file##*/} name=${name%%_*}
        mkdir -p "$folder/$name"
        tar -C "$folder/$name" --strip-components=1 -xf "$file" || return 1
    done
    touch "$folder/complete"
}

compile_programs() {
    local lua=()
    mapfile -t lua < <(ls "$folder"/lua5.4/src/*.c | grep -v /luac.c)
    local zstd="$folder/libzstd" bzip2="$folder/bzip2"
    musl-gcc -O1 -w -DLUA_USE_POSIX "${lua[@]}" -lm -o "$work/lua" &&
        musl-gcc -O1 -w "$bzip2"/{blocksort,huffman,crctable,randtable,compress,decompress,bzlib,bzip2}.c -o "$work/bzip2" &&
        musl-gcc -O1 -w -pthread -DZSTD_MULTITHREAD -DZSTD_DISABLE_ASM -I"$zstd/lib" -I"$zstd/lib/common" \
            "$zstd"/lib/{common,compress,decompress,dictBuilder}/*.c "$zstd"/programs/*.c -o "$work/zstd"
}

# same NAME COMMAND...: runs the program without the library, then with it and several options. Each
# time it has to write the same bytes.
same() {
    local name=$1 options
    shift
    "$@" >"$work/expected" 2>&1 </dev/null
    [ -s "$work/expected" ] || { echo "musl: $name writes nothing" && exit 1; }
    for options in tools=off tools=off,check,redzone,poison tools=off,sample=1/20; do
        judge "$name, $options" env SLABYARD=$options LD_PRELOAD="$work/libslabyard-malloc.so" "$@"
        cmp -s "$work/expected" "$work/log" && continue
        echo "musl: $name, $options: other output than without the library"
        failed=$((failed + 1))
    done
}

if fetch_sources >"$work/log" 2>&1; then
    compile_programs
    help=$(env LD_PRELOAD="$work/libslabyard-malloc.so" SLABYARD=help "$work/lua" -v 2>&1)
    [[ $help == *"options of SLABYARD"* ]] || { echo "musl: Lua does not load the library: $help" && exit 1; }
    find src -name "*.c" -exec cat {} + >"$work/text"
    "$work/zstd" -q -9 "$work/text" -o "$work/text.zst"
    "$work/bzip2" -k "$work/text"
    same lua "$work/lua" -e "$in_lua"
    same zstd "$work/zstd" -q -12 -T3 -B1M -c "$work/text"
    same "zstd -d" "$work/zstd" -q -d -c "$work/text.zst"
    same bzip2 "$work/bzip2" -c "$work/text"
    same "bzip2 -d" "$work/bzip2" -d -c "$work/text.bz2"
else
    echo "musl: real programs are left out, because the sources of Lua, bzip2 and zstd cannot be had"
fi
echo "musl: $passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
