#!/usr/bin/env bash
# Compiles the library and the drop-in malloc for the C library musl, and runs the tests that need no
# other library: fuzz programs, stress tests, reports of misuse, examples, and programs under the
# drop-in malloc. Needs musl-gcc; without it, the exit status is 77.
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
own="$own -fno-builtin -DSLABYARD_VERSION=\"test\""
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
echo "musl: $passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
