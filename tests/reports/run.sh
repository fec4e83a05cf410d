#!/usr/bin/env bash
# Checks that the stacks in reports are right: frame #0 is the function with the mistake, the last
# frame is main. Compiles culprit.c and culprit.cpp with gcc and clang, as far as they are
# installed, with and without optimization, frame pointers, debug information and shared libraries.
# A mark in the source has the expected frame #0 of each stack.
# Usage: tests/reports/run.sh BUILD_DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
lines=false
if ldconfig -p | grep "libdw\.so\.1" >/dev/null; then lines=true; fi

# Two copies of the library: as it was built, and without debug information, as distributions have
# it.
cp "$build/libslabyard.a" "$scratch/libslabyard.a"
mkdir "$scratch/nameless"
cp "$build/libslabyard.a" "$scratch/nameless/libslabyard.a"
strip -g "$scratch/nameless/libslabyard.a"

# frame SOURCE MARK LINES: prints the expected frame #0, with its line if LINES is true.
frame() {
    local number words
    number=$(grep -n "/\* .*\<$2\>" "$1" | cut -d: -f1)
    words=$(sed -n "${number}s@.*/\* @@; s@ \*/.*@@; ${number:-0}p" "$1")
    while [[ $words =~ ^(allocated|seen|freed|leaked)\  ]]; do words=${words#* }; done
    if $3; then echo "$words at $(basename "$1"):$number"; else echo "$words"; fi
}

# judge SOURCE LINES REPORT MARK HEADLINE: checks the stack below a line that begins with HEADLINE.
judge() {
    local found last wanted
    wanted=$(frame "$1" "$4" "$2")
    awk -v head="$5" 'on && !/^    #/ { exit } on { print } index($0, head) == 1 { on = 1 }' "$3" \
        >"$scratch/stack"
    found=$(sed -n '1s/^    #0 //p' "$scratch/stack")
    last=$(tail -n 1 "$scratch/stack" | sed 's/^    #[0-9]* //')
    $2 || found=${found%%+0x*}
    found=$(echo "$found" | sed "s@ at .*/@ at @")
    if [ "$found" != "$wanted" ] || ! [[ $last =~ ^main([ +.]|$) ]]; then
        echo "reports: $4: \"$found\" to \"$last\" instead of \"$wanted\" to main: $title"
        cat "$scratch/stack"
        bad=1
    fi
}

# check COMPILER SOURCE LIBRARY LINES OPTION...: compiles and runs a program, and checks its
# reports.
check() {
    local compiler=$1 source=$here/$2 library=$3 lines=$4
    shift 4
    [[ $source != *.cpp ]] || set -- -std=c++17 "$@"
    title="$compiler $* $(basename "$source")$([ "$library" = "$scratch" ] || echo ", no lines")"
    (cd "$here" && "$compiler" "$@" -I"$root/include" "$(basename "$source")" \
        "$library/libslabyard.a" -pthread -o "$scratch/program") || { bad=1 && return; }
    SLABYARD=tools=off,audit bash -c '"$0/program" 2>"$0/report"' "$scratch" 2>"$scratch/end" && bad=1
    judge "$source" "$lines" "$scratch/report" allocated "  allocated "
    judge "$source" "$lines" "$scratch/report" seen "  seen by "
    judge "$source" "$lines" "$scratch/report" freed "  freed "
    [[ $source == *.cpp ]] || return 0
    SLABYARD=tools=off,leaks "$scratch/program" 1 2>"$scratch/report" || bad=1
    judge "$source" "$lines" "$scratch/report" leaked "slabyard: 1 object leaked"
}

for pair in gcc:culprit.c clang:culprit.c g++:culprit.cpp clang++:culprit.cpp; do
    compiler=${pair%%:*} source=${pair#*:}
    command -v "$compiler" >/dev/null || continue
    for options in -O0 -O2 "-O2 -fomit-frame-pointer" "-O2 -no-pie"; do
        # shellcheck disable=SC2086 # several options
        check "$compiler" "$source" "$scratch" $lines -g $options
    done
    check "$compiler" "$source" "$scratch/nameless" false -O2
    check "$compiler" "$source" "$scratch/nameless" false -O2 -fomit-frame-pointer
    check "$compiler" "$source" "$scratch/nameless" false -O2 -static
    check "$compiler" "$source" "$scratch/nameless" false -O2 -static-pie
done
exit $bad
