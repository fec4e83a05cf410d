#!/usr/bin/env bash
# Runs a program under AddressSanitizer, ThreadSanitizer or Valgrind. Checks that the tool's report contains the
# texts that the program's first comment lists for this mode, in this order (tools.h).
# Usage: tests/tools/run.sh SOURCE asan|memcheck|asan-malloc|memcheck-malloc|tsan|helgrind|drd PROGRAM
set -uo pipefail
source=$1 mode=$2 program=$3
# The lines of the comment, joined to one line for each mode.
expected=$(sed -e '/\*\/$/q' "$source" | sed -e 's|^/\*||; s|^ \*/$||; s|^ \*||' | paste -sd ' ' |
    sed -E 's/  +/ /g; s/ *$//; s/ ((asan|memcheck|tsan|helgrind|drd)(-malloc)?: )/\n\1/g' | sed -n "s|^$mode: ||p")
[ -n "$expected" ] || { echo "tools: the first comment of $source has no line for $mode" && exit 1; }

export SLABYARD=tools=auto
[ "${mode%-malloc}" = "$mode" ] || export SLABYARD=tools=malloc
command=("$program")
case $mode in
asan*) export ASAN_OPTIONS=detect_leaks=1:exitcode=99:abort_on_error=0 ;;
tsan)
    # It does not start where the system puts mappings at any address.
    command=(setarch -R "$program")
    ;;
helgrind | drd) command=(valgrind -q --tool="$mode" --error-exitcode=99 "$program") ;;
memcheck*)
    # The search for leaks takes seconds, because it reads the library's tables. Only two programs
    # need it.
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
    [ "$status" = 0 ] && [ -z "$report" ] || wrong "the status is $status; expected 0, and no report"
    exit 0
fi
[ "$status" != 0 ] || wrong "the program ended with status 0"
rest=$report
while IFS= read -r text; do
    [[ "$rest" == *"$text"* ]] || wrong "'$text' is not in the report, or not in this order"
    rest=${rest#*"$text"}
done <<<"${expected//; /$'\n'}"
