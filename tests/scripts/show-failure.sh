#!/usr/bin/env bash
# Tests scripts/show-failure: it shows the assertions that failed, among many lines about tests that
# passed, and the end of a log in which no test ran.
# Usage: tests/scripts/show-failure.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "show-failure: $*" >&2
    exit 1
}

{
    echo ' 1/3 Test  #1: unit.test_first ...........***Failed    0.01 sec'
    printf '[ RUN      ] one\n[       OK ] one\n[ RUN      ] two\n'
    printf '[  ERROR   ] --- 1 != 2\n[   LINE   ] --- tests/unit/test_first.c:7: error: Failure!\n'
    echo '      Start  2: unit.test_second'
    echo ' 2/3 Test  #2: unit.test_second ..........   Passed    0.01 sec'
    echo ' 3/3 Test  #3: hosts.third ...............***Skipped   0.01 sec'
    echo 'a line of the third'
    for i in {1..300}; do echo "      Start $i: more"; done
    echo '50% tests passed, 1 tests failed out of 2'
} >"$work/ctest"
said=$(scripts/show-failure "$work/ctest")
[[ $said == *"1 != 2"* && $said == *"test_first.c:7"* ]] || fail "not the assertion: $said"
[[ $said != *"one"* && $said != *third* && $said != *more* ]] || fail "other lines: $said"

{
    printf 'running 2 tests\ntest first ... ok\ntest second ... FAILED\n\nfailures:\n\n'
    printf -- '---- second stdout ----\nassertion `left == right` failed\n\nfailures:\n    second\n'
    for i in {1..300}; do echo "a warning"; done
} >"$work/cargo"
said=$(scripts/show-failure "$work/cargo")
[[ $said == *"left == right"* && $said != *warning* ]] || fail "of cargo: $said"

for i in {1..300}; do echo "line $i"; done >"$work/compiler"
said=$(scripts/show-failure "$work/compiler")
[[ $said == "line 181"*"line 300" ]] || fail "not the end of a compiler's log: $said"
echo "show-failure: the assertions that failed are shown"
