#!/usr/bin/env bash
# Compiles the two files of scripts/amalgamate for WebAssembly (wasm32-wasi, one thread) with zig, and
# runs programs with wasmtime: one that checks the content of random objects, and examples. Exits with
# 77 if zig and wasmtime cannot be had.
# Usage: tests/install/wasm.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
leave_out() {
    echo "wasm: $*"
    exit 77
}
"$root/scripts/zig.sh" || leave_out "zig and wasmtime cannot be had (PyPI: ziglang, wasmtime)"
zig=$(echo "$root"/build/zig-venv/lib/python3*/site-packages/ziglang/zig)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ZIG_GLOBAL_CACHE_DIR=$root/build/zig-cache ZIG_LOCAL_CACHE_DIR=$root/build/zig-cache

cat >"$work/run.py" <<'END_OF_PROGRAM'
import sys
import wasmtime

engine = wasmtime.Engine()
store, linker, wasi = wasmtime.Store(engine), wasmtime.Linker(engine), wasmtime.WasiConfig()
wasi.inherit_stdout()
wasi.inherit_stderr()
wasi.argv = ["program"]
store.set_wasi(wasi)
linker.define_wasi()
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, sys.argv[1]))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)
END_OF_PROGRAM

fail() {
    echo "wasm: $*" >&2
    exit 1
}

"$root/scripts/amalgamate" "$work"
for program in "$here/wasm.c" "$root"/examples/{timers,order_book,graph}.c; do
    sed 's|<slabyard/[a-z]*\.h>|"slabyard.h"|' "$program" >"$work/$(basename "$program")"
done
cd "$work"
compile() { "$zig" cc -target wasm32-wasi -std=c11 -O2 -Wall -Wextra -Werror "$@"; }
compile -c slabyard.c -o slabyard.o || fail "slabyard.c does not compile without warnings"
for program in wasm timers order_book graph; do
    compile $program.c slabyard.o -o $program.wasm || fail "$program does not build"
    "$root/build/zig-venv/bin/python" run.py $program.wasm >log 2>&1 || fail "$program fails: $(tail -n 5 log)"
    echo "ok $program"
done
