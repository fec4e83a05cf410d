#!/usr/bin/env bash
# Compares the number of instructions that each fast path executes with the golden file in this
# folder. There is one for each processor and compiler. --update writes it.
#
# Usage: tests/golden/check.sh [--update] [COMPILER [BUILD_DIR]]
#        tests/golden/check.sh [--update] --emulator EMULATOR [--variant NAME:FLAG] COMPILER [FLAG...]
# Without COMPILER: gcc and clang, as far as they are installed. The library is
# BUILD_DIR/libslabyard.a, which the same compiler must have built. Without BUILD_DIR, the script
# compiles the library's sources. The first line of a golden file names the compiler's major
# version. With this version, the numbers have to be equal. With another one, they may be smaller.
#
# With an emulator (qemu's user mode), the compiler is one for another processor, and its further flags
# are given. The emulator lists each instruction that it executes. A variant has a golden file of its
# own, and one flag more. tests/install/emulated.sh calls it for 64-bit Arm.
set -euo pipefail

update=
if [ "${1:-}" = --update ]; then
    update=1
    shift
fi
emulator='' variant='' more=
if [ "${1:-}" = --emulator ]; then
    emulator=$2
    shift 2
    if [ "$1" = --variant ]; then
        variant=-${2%%:*} more=${2#*:}
        shift 2
    fi
    more+=" ${*:2}"
    set -- "$1"
fi
compiler=${1:-}
build=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -O2 -fvisibility=hidden -Iinclude -Isrc"
# Some distributions add a landing pad, one more instruction, to each function.
if [ "$(uname -m)" = x86_64 ] && [ -z "$emulator" ]; then flags="$flags -fcf-protection=none"; fi
[ -z "$emulator" ] || flags+=" -static -Wno-psabi $more"

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
    "$1" $flags tests/golden/count.c tests/golden/paths.c tests/golden/floor.c $library -pthread -o "$work/count" ||
        return 1
    if [ -n "$emulator" ]; then count_emulated; else "$work/count"; fi
}

# steps PATH EMPTY ITERATIONS: prints how many instructions the emulator executes between two marks.
steps() {
    "$emulator" -one-insn-per-tb -d exec,nochain -D "$work/trace" "$work/count" "$@" >&2 || return 1
    awk -v mark="0*$mark\$" '
        /^Trace/ && split($0, part, "/") > 1 && part[2] ~ mark { if (++marks == 2) exit }
        /^Trace/ && marks { count++ }
        END { if (marks == 2) print count; else exit 1 }' "$work/trace"
}

# As count.c does it itself where it can trace.
count_emulated() {
    local paths mark kind name few many
    paths=$("$emulator" "$work/count" --list) && mark=$(awk '$1 == "mark" { print $2 }' <<<"$paths") || return 1
    while read -r kind name; do
        case $kind in
        call)
            few=$(steps "$name" 1 0) && many=$(steps "$name" 0 0) || return 1
            echo "$name $((many - few + 1))"
            ;;
        loop)
            few=$(steps "$name" 0 16) && many=$(steps "$name" 0 80) || return 1
            awk -v name="$name" -v steps=$((many - few)) \
                'BEGIN { printf steps % 64 ? "%s %.3f\n" : "%s %d\n", name, steps / 64 }'
            ;;
        esac
    done <<<"$paths"
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
    [ -z "$emulator" ] || golden=tests/golden/$("$1" -dumpmachine | cut -d- -f1)-$family$variant.txt
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
