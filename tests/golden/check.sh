#!/usr/bin/env bash
# Compares the number of instructions that each fast path executes with the golden file in this
# folder. There is one for each processor and compiler. --update writes it.
#
# Usage: tests/golden/check.sh [--update] [COMPILER [BUILD_DIR]]
# Without COMPILER: gcc and clang, as far as they are installed. The library is
# BUILD_DIR/libslabyard.a, which the same compiler must have built. Without BUILD_DIR, the script
# compiles the library's sources. The first line of a golden file names the compiler's major
# version. With this version, the numbers have to be equal. With another one, they may be smaller.
set -euo pipefail

update=
if [ "${1:-}" = --update ]; then
    update=1
    shift
fi
compiler=${1:-}
build=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -O2 -fvisibility=hidden -Iinclude -Isrc"
# Some distributions add a landing pad, one more instruction, to each function.
if [ "$(uname -m)" = x86_64 ]; then flags="$flags -fcf-protection=none"; fi

# family_of COMPILER: prints gcc or clang.
family_of() { if "$1" --version | grep -i clang >/dev/null; then echo clang; else echo gcc; fi; }

major_of() { "$1" -dumpversion | cut -d. -f1; }

# count COMPILER: prints the rows of a golden file.
count() {
    local library=${build:+$build/libslabyard.a}
    if [ -z "$library" ]; then
        library=$(find src -name '*.c' ! -name fake.c)
    fi
    # $library may be many files, $flags are many words.
    # shellcheck disable=SC2086
    "$1" $flags tests/golden/count.c tests/golden/paths.c tests/golden/floor.c $library -pthread -o "$work/count" &&
        "$work/count"
}

# compare GOLDEN MEASURED EXACT: prints a line for each row that differs; if EXACT is empty, smaller
# numbers are not differences.
compare() {
    awk -v exact="$3" '
        /^#/ { next }
        NR == FNR { golden[$1] = $2; next }
        { seen[$1] = 1 }
        !($1 in golden) { print "  " $1 ": " $2 ", not in the golden file"; next }
        $2 > golden[$1] || (exact && $2 < golden[$1]) {
            printf "  %s: %s instructions, golden is %s (%+g)\n", $1, $2, golden[$1], $2 - golden[$1]
        }
        END { for (name in golden) if (!(name in seen)) print "  " name ": no such path" }
    ' "$1" "$2"
}

check() {
    local family golden version difference exact=1
    family=$(family_of "$1")
    golden=tests/golden/$(uname -m)-$family.txt
    version="$family $(major_of "$1")"
    count "$1" >"$work/rows" || { echo "golden: cannot count with $1" >&2 && return 1; }
    if [ -n "$update" ]; then
        { echo "# $version -O2: instructions of the hit path, its return included; pair: of one turn" &&
            cat "$work/rows"; } >"$golden"
        echo "golden: wrote $golden"
        return 0
    fi
    if [ ! -e "$golden" ]; then
        echo "golden: there is no $golden to compare $version with; check.sh --update writes it"
        return 0
    fi
    grep -q "^# $version " "$golden" || exact=
    difference=$(compare "$golden" "$work/rows" "$exact")
    if [ -n "$difference" ]; then
        echo "golden: $version differs from $golden:" >&2
        echo "$difference" >&2
        echo "  if this is intended: tests/golden/check.sh --update" >&2
        return 1
    fi
    echo "golden: $(wc -l <"$work/rows") paths of $version agree with $golden"
}

compilers=${compiler:-$(command -v gcc clang || true)}
[ -n "$compilers" ] || { echo "golden: no compiler is installed" >&2 && exit 1; }

status=0
for compiler in $compilers; do
    check "$compiler" || status=1
done
exit $status
