#!/usr/bin/env bash
# Does a program that misuses Slabyard abort, having said exactly what its first comment expects?
# Usage: run.sh SOURCE PROGRAM...
set -uo pipefail
source=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

bash -c '"$@" >"$0/out" 2>"$0/err"' "$scratch" "$@" 2>/dev/null
status=$?
address=$(cat "$scratch/out")
# The lines of the comment that the source begins with, joined.
expected=$(sed -e '/\*\/$/q' "$source" | sed -e 's|^/\* ||; s|^ \* ||; s| *\*/$||' | paste -sd ' ' | sed 's| *$||')
expected=${expected//ADDRESS/$address}

if [ -z "$expected" ] || [ -z "$address" ]; then
    echo "misuse: no expectation in $source, or no address told"
    exit 1
fi
if [ "$status" -ne 134 ]; then
    echo "misuse: ended with $status, not by SIGABRT (134)"
    cat "$scratch/err"
    exit 1
fi
printf '%s\n' "$expected" | diff - "$scratch/err" || { echo "misuse: not the report expected"; exit 1; }
