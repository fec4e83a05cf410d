#!/usr/bin/env bash
# Installs zig, whose C compiler builds for other systems, and wasmtime, which runs WebAssembly, from
# the Python packages ziglang and wasmtime into the virtual environment build/zig-venv. If they are
# there, does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.17.1 wasmtime=50.0.1
tools=build/zig-venv
mkdir -p build
exec 9>build/zig-venv.lock # several tests may want it at once
flock 9
[ "$(cat $tools/version 2>/dev/null)" = "$version $wasmtime" ] && exit 0
{ python3 -m venv --clear $tools && $tools/bin/pip install --quiet --disable-pip-version-check "ziglang==$version" "wasmtime==$wasmtime"; } \
    >build/zig-venv.log 2>&1 || { tail -n 3 build/zig-venv.log >&2 && exit 1; }
echo "$version $wasmtime" >$tools/version
