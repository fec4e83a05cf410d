#!/usr/bin/env bash
# Runs the tests of the Rust crate, and of the one with the interface of nexus-slab 2, under Miri,
# which finds undefined behaviour in their unsafe code. Miri runs no C: rust/slabyard/src/raw has a
# model of the core for it. Without a nightly Rust with Miri it does nothing but say so.
# Usage: scripts/miri.sh [quick] [TEST_FILTER]
set -euo pipefail
cd "$(dirname "$0")/../rust"

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: there is no nightly Rust with Miri here, so nothing was run"
    echo "  rustup toolchain install nightly --component miri --component rust-src"
    exit 0
fi

tests=(--lib --tests)
if [ "${1:-}" = quick ]; then
    shift
    tests=(--lib)
    for test in arena examples hostile local local_handle_map local_threads pool_model rc recycle \
        seed serde statics; do
        tests+=(--test "$test")
    done
fi
cargo +nightly miri test --locked -p slabyard --all-features "${tests[@]}" -- "$@"
cargo +nightly miri test --locked -p slabyard-nexus-slab-2 --all-features --tests -- "$@"
