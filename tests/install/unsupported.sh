#!/usr/bin/env bash
# Checks that a target which the library does not support gets one sentence, before any other error:
# from each source and from the headers, from the amalgamation, from CMake, and from the Rust crate.
# Usage: tests/install/unsupported.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "unsupported: $*"
    exit 1
}

# first_error COMMAND...: prints the first error of a compiler.
first_error() { LC_ALL=C "$@" 2>&1 | grep -m 1 -E 'error:' || true; }

# A system that nobody knows: gcc without the names of this one.
elsewhere="gcc -std=gnu11 -fsyntax-only -U__linux__ -U__linux -Ulinux -Iinclude -Isrc"
said=0
for source in $(find src -name '*.c' ! -name fake.c); do
    # shellcheck disable=SC2086 # several options
    error=$(first_error $elsewhere "$source")
    [ -z "$error" ] && continue # it includes nothing of os/
    [[ $error == *'#error "unknown system: '* ]] || fail "$source: $error"
    said=$((said + 1))
done
[ $said -gt 50 ] || fail "only $said sources name the system"
scripts/amalgamate "$work/amalgamation" >/dev/null
# shellcheck disable=SC2086
error=$(first_error $elsewhere -I"$work/amalgamation" "$work/amalgamation/slabyard.c")
[[ $error == *'#error "unknown system: '* ]] || fail "the amalgamation: $error"

for header in include/slabyard/*.h; do
    error=$(first_error gcc -fsyntax-only -U__GNUC__ -Iinclude "$header")
    [[ $error == *'#error "Slabyard needs gcc or clang'* ]] || fail "$header: $error"
done

# CMake asks before it compiles.
if error=$(cmake -S . -B "$work/cmake" -DCMAKE_SYSTEM_NAME=Generic -DSLABYARD_TESTS=OFF 2>&1); then
    fail "CMake takes any system"
fi
[[ $error == *"Slabyard does not know the system Generic"* ]] || fail "CMake: $error"

# Cargo runs the build script before it compiles anything for the target.
if command -v cargo >/dev/null; then
    for target in "x86_64-unknown-hermit:does not know the system \"hermit\"" \
        "i686-unknown-linux-gnu:need pointers of 64 bits"; do
        if error=$(cd rust && CARGO_TARGET_DIR=$work/rust cargo check -q --locked -p slabyard-sys \
            --target "${target%%:*}" 2>&1); then
            fail "the Rust crate takes ${target%%:*}"
        fi
        [[ $error == *"${target#*:}"* ]] || fail "the Rust crate: $error"
        [ "$(wc -l <<<"$error")" -lt 10 ] || fail "the Rust crate says much: $error"
    done
fi
echo "unsupported: $said sources, the headers, CMake and the crate say it in one sentence"
