#!/usr/bin/env bash
# Lints the crates of the workspace; with --all the benchmark too, and the crates for users once more
# with all their features. Clippy reads Rust only, so neither the peers' C and C++ nor the
# benchmark's kernels are compiled for it: where a peer's crate names the library that it links, cargo
# is told that it is there.
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
lint --workspace --exclude slabyard-bench "${unbuilt[@]}"
[ "${1:-}" = --all ] || exit 0
lint -p slabyard-bench --no-default-features "${unbuilt[@]}"
lint -p slabyard -p slabyard-nexus-slab-2 --all-features
