#!/usr/bin/env bash
# Is what a program's first comment says of this mode in the report of the tool, in that order?
# Usage: run.sh SOURCE asan|memcheck|asan-malloc|memcheck-malloc PROGRAM
set -uo pipefail
source=$1 mode=$2 program=$3
# The comment's lines, joined: one line for each mode.
expected=$(sed -e '/\*\/$/q' "$source" | sed -e 's|^/\*||; s|^ \*/$||; s|^ \*||' | paste -sd ' ' |
    sed -E 's/  +/ /g; s/ *$//; s/ ((asan|memcheck)(-malloc)?: )/\n\1/g' | sed -n "s|^$mode: ||p")
[ -n "$expected" ] || { echo "tools: $source says nothing of $mode" && exit 1; }

export SLABYARD=tools=auto
[ "${mode%-malloc}" = "$mode" ] || export SLABYARD=tools=malloc
command=("$program")
case $mode in
asan*) export ASAN_OPTIONS=detect_leaks=1:exitcode=99:abort_on_error=0 ;;
memcheck*)
    # Looking for leaks takes seconds: it goes through the library's tables.
    leaks=no
    case $source in */leak.c | */clean.c) leaks=full ;; esac
    command=(valgrind -q --error-exitcode=99 --leak-check=$leaks "$program")
    ;;
esac
report=$("${command[@]}" 2>&1)
status=$?

wrong() {
    echo "tools: $*"
    echo "$report"
    exit 1
}

if [ "$expected" = nothing ]; then
    [ "$status" = 0 ] && [ -z "$report" ] || wrong "ended with $status, and there is a report"
    exit 0
fi
[ "$status" != 0 ] || wrong "ended well"
rest=$report
while IFS= read -r text; do
    [[ "$rest" == *"$text"* ]] || wrong "'$text' is not in the report, or not in its place"
    rest=${rest#*"$text"}
done <<<"${expected//; /$'\n'}"
