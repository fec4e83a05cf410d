#!/usr/bin/env bash
# Builds the Rust crates for users for Windows, with Debian's mingw-w64 and clang, and runs their tests
# under wine. Exits with 77 if wine, a compiler or Rust's standard library for Windows is missing.
# Usage: tests/install/rust-windows.sh [OPTIONS_OF_CARGO_TEST...]
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/install/wine.sh
work=$PWD/build/windows/rust target=x86_64-pc-windows-gnu
{ command -v clang && command -v x86_64-w64-mingw32-gcc; } >/dev/null || leave_out "clang or gcc-mingw-w64-x86-64-posix is missing"
rustup target add $target >/dev/null 2>&1 || leave_out "rustup cannot get the standard library for Windows"
mkdir -p "$work"

# A DLL that Rust's library uses for random numbers. wine 8 lacks it.
cat >"$work/random.c" <<'END'
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes) {
    return RtlGenRandom(to, (ULONG)bytes);
}
END
x86_64-w64-mingw32-gcc -shared -o "$work/bcryptprimitives.dll" "$work/random.c" -ladvapi32
export WINEPATH=$work

# Programs do not wait for input.
cat >"$work/run" <<END
#!/bin/sh
exec timeout 300 "$wine" "\$@" </dev/null
END
chmod +x "$work/run"

export CC_x86_64_pc_windows_gnu="clang --sysroot=/usr/x86_64-w64-mingw32"
export AR_x86_64_pc_windows_gnu=x86_64-w64-mingw32-gcc-ar
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$work/run
[ $# != 0 ] || set -- --lib --tests
cd rust
cargo test --locked --release --target $target -p slabyard-sys -p slabyard -p slabyard-nexus-slab \
    -p slabyard-nexus-slab-2 --features slabyard/std,slabyard-nexus-slab-2/std,slabyard-nexus-slab-2/rc \
    --no-fail-fast "$@"
