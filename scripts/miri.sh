#!/usr/bin/env bash
# Runs the tests of the crates slabyard and slabyard-nexus-slab-2 under Miri, which finds undefined
# behaviour in their unsafe code. Miri runs no C, so a model of the C library in
# rust/slabyard/src/raw replaces it. Needs a nightly Rust with Miri; without it, the script prints
# this and succeeds.
# Usage: scripts/miri.sh [quick] [TEST_FILTER]
set -euo pipefail
cd "$(dirname "$0")/../rust"

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: no nightly Rust with Miri is installed, so nothing was run"
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
cargo +nightly miri test --locked -p slabyard --features full "${tests[@]}" -- "$@"
cargo +nightly miri test --locked -p slabyard-nexus-slab-2 --all-features --tests -- "$@"
