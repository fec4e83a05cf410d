#!/usr/bin/env bash
# Runs clippy for the crates of the workspace except the benchmarks, and again for the tool with its
# fuzzers. With --all, runs it for the benchmarks too, with peers and without, and again for slabyard
# and slabyard-nexus-slab-2 with all their features. Clippy needs no C or C++ code, so the other
# allocators and the benchmark's C code are not compiled. For this, cargo options override the build
# scripts of the crates that link such an allocator.
# Usage: scripts/clippy.sh [--all]
set -euo pipefail
cd "$(dirname "$0")/../rust"

target=$(rustc -vV | sed -n 's/^host: //p')
unbuilt=()
for library in mimalloc tcmalloc jemalloc; do
    unbuilt+=(--config "target.$target.$library.rustc-link-lib=[]")
done
lint() { # lint CARGO_OPTIONS...
    cargo clippy --locked --quiet --release --all-targets "$@" -- -D warnings
}
lint --workspace --exclude slabyard-bench --exclude slabyard-seeds --features slabyard-cli/peers "${unbuilt[@]}"
lint -p slabyard-cli --features fuzz
[ "${1:-}" = --all ] || exit 0
lint -p slabyard-bench --no-default-features --features peers "${unbuilt[@]}"
lint -p slabyard-bench --no-default-features -p slabyard-seeds
lint -p slabyard -p slabyard-nexus-slab-2 --features slabyard/full,slabyard-nexus-slab-2/checked,slabyard-nexus-slab-2/rc
