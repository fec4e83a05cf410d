#!/usr/bin/env bash
# Lints every crate of the workspace. Clippy reads Rust only, so the peers' C and C++ are not compiled
# for it: where a peer's crate names the library that it links, cargo is told that it is there.
# Usage: scripts/clippy.sh
set -euo pipefail
cd "$(dirname "$0")/../rust"

target=$(rustc -vV | sed -n 's/^host: //p')
unbuilt=()
for library in mimalloc tcmalloc jemalloc; do
    unbuilt+=(--config "target.$target.$library.rustc-link-lib=[]")
done
cargo clippy --locked --quiet --release --workspace --all-targets "${unbuilt[@]}" -- -D warnings
cargo clippy --locked --quiet --release -p slabyard -p slabyard-nexus-slab-2 --all-targets \
    --all-features -- -D warnings
