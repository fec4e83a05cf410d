#!/usr/bin/env bash
# Checks the man pages: mandoc finds no error; the page of each function has all sections, and a
# prototype that agrees with the header; the page of each command has the options that `slabyard
# COMMAND
# --help` lists. Without mandoc or the tool, these checks are left out.
# Usage: tests/docs/manual.sh FOLDER [TOOL]     FOLDER has man1, man3 and man7
set -euo pipefail
manual=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tool=${2:-$PWD/rust/target/release/slabyard}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C MANWIDTH=200

fail() {
    echo "manual: $*" >&2
    exit 1
}

# Ignores warnings about text that Sphinx writes before each heading, and about the missing date.
if command -v mandoc >/dev/null; then
    said=$(cd "$manual" && mandoc -T lint -W warning man1/*.1 man3/*.3 man7/*.7 2>&1 |
        grep -vE 'skipping paragraph macro: sp after SH|cannot parse date|missing date|missing manual title|so is fragile' || true)
    [ -z "$said" ] || fail "$said"
fi

pages=0
for page in "$manual"/man3/sy_*.3; do
    ! grep -q '^\.so ' "$page" || continue
    name=$(basename "$page" .3)
    for section in NAME SYNOPSIS DESCRIPTION EXAMPLES "SEE ALSO"; do
        grep -q "^\.SH $section" "$page" || fail "$name has no section $section"
    done
    # A prototype that differs from the header's is an error of the compiler.
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | sed 's/\\//g; /^\.\|^$/d' >>"$work/all.c"
    grep -q "\b$name(" "$work/all.c" || fail "$name has no prototype"
    example=$(sed -n '/^\.SH EXAMPLES/,/^\.SH SEE ALSO/p' "$page")
    [[ $example == *"$name("* ]] || fail "the example of $name does not call it"
    pages=$((pages + 1))
done
[ "$pages" -ge 100 ] || fail "only $pages functions have a page"
{ echo '#define SY_NO_INLINE' && grep -v sy_pool_word "$work/all.c"; } >"$work/checked.c"
${CC:-cc} -std=c11 -Iinclude -Wall -Werror -fsyntax-only "$work/checked.c" || fail "a prototype differs from the header's"

commands=0
if [ -x "$tool" ]; then
    for command in run compare replay record info faults; do
        shown=$(sed 's/\\//g' "$manual/man1/slabyard-$command.1")
        [ "$command" != compare ] || shown+=$(sed 's/\\//g' "$manual/man1/slabyard-replay.1")
        for option in $("$tool" $command --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
            [ "$option" = --help ] || [[ $shown == *"$option"* ]] || fail "slabyard-$command(1) lacks $option"
        done
        commands=$((commands + 1))
    done
fi
echo "manual: the pages of $pages functions and $commands commands are correct"
