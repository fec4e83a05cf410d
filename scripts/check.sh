#!/usr/bin/env bash
# `make check`: runs all checks that do not run the library. Needs the library in build/library
# (make build). All checks run, even if one fails; then the exit status is 1. A check that lacks its
# tools says so, exits with 77 and does not count as failed.
# Usage: scripts/check.sh
set -uo pipefail
cd "$(dirname "$0")/.."

worst=0
check() {
    "$@" || [ $? = 77 ] || worst=1
}
check scripts/check-scripts
check scripts/check-layers
check scripts/mutate --check
check scripts/check-format
check scripts/check-headers
check scripts/check-bugs
check scripts/check-abi build/library/libslabyard.so
check scripts/check-prose
check tests/docs/check.sh
site() { # builds the site, whose pages and links are checked too
    if [ -x build/site-venv/bin/sphinx-build ]; then scripts/site html build/site-test; else return 77; fi
}
check site
(cd rust && cargo fmt --all --check) && echo "rustfmt: fine" || worst=1
scripts/clippy.sh --all && echo "clippy: fine" || worst=1
exit $worst
