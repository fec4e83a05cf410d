#!/usr/bin/env bash
# Tests tests/programs/run, with a small program for each result that it can have: each kind of
# failure, success, and a test that is left out. Needs a C compiler.
# Usage: tests/malloc/programs_run.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
run=$(cd "$(dirname "$0")/../programs" && pwd)/run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files"

file() { # file NAME BODY [SETTING...]: a program whose test is BODY
    local name=$1 body=$2
    shift 2
    {
        printf '%s\n' commands=bash packages= 'version="echo 1.0"' checks=something seconds=60 processes=bash "$@"
        echo "program() { $body; }"
    } >"$work/files/$name.sh"
}
# expect STATUS WORDS OPTION-OR-NAME...: runs tests/programs/run; it has to end with STATUS and
# print WORDS
expect() {
    local want=$1 words=$2 status=0
    shift 2
    "$run" --library="$library" --folder="$work/files" "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = "$want" ] && grep -F -- "$words" "$work/out" >/dev/null ||
        { echo "run $* ends with $status; expected $want and '$words':" && cat "$work/out" && exit 1; } >&2
}

cat >"$work/double_free.c" <<'C'
#include <stdlib.h>
int main(void) {
    void *volatile object = malloc(40);
    free(object);
    void *volatile again = object;
    free(again);
    return 0;
}
C
cc -O0 -w "$work/double_free.c" -o "$work/double_free"

file passes "both word bash -c 'echo word'"
file fails "use_library; bash -c 'exit 3'"
file fails_inside "use_library; bash -c true; both x eval 'false; echo word'"
file differs 'both word bash -c "echo \${LD_PRELOAD:-none}"'
file silent "both word bash -c true"
file without "bash -c true"
file slow "use_library; bash -c 'sleep 60 & wait'" seconds=1
file reports "use_library; bash -c '$work/double_free || true'"
file leaves "use_library; setsid bash -c 'sleep 100.0417; true' & sleep 1"
file missing "true" commands=no-such-command-here packages=no-such-package-here
file costly "use_library; bash -c true" checked=slow

expect 0 "ok passes (1.0: something)" passes
expect 1 "FAILED fails;" fails
expect 1 "it ended with status" fails_inside
expect 1 "word: stdout differs" differs
expect 1 "word writes nothing" silent
expect 1 "no bash ran with the library's malloc" without
expect 1 "it took more than its time limit" slow
expect 1 "double free" reports
expect 1 "left running" leaves
! pgrep -f 'sleep 100\.0417' >/dev/null || { echo "tests/programs/run leaves a process behind" >&2 && exit 1; }
expect 0 "left out missing: of the packages no-such-package-here one is missing" missing
expect 0 "1 ok, 0 failed, 1 left out" passes missing
expect 1 "failed: fails" passes fails
expect 0 "left out costly with SLABYARD=check: slow" --checked costly
expect 0 "ok costly" costly
expect 2 "there is no program nonsense; these are:" nonsense
expect 2 "there is no option --nonsense" --nonsense
echo "tests/programs/run reports all failures"
