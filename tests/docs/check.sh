#!/usr/bin/env bash
# Checks the documents:
#   paths      each path in a link or in `code` exists, relative to the repository, the document,
#              src, include or rust
#   headings   the heading that a link names (page.md#heading) exists
#   commands   make TARGET, slabyard SUBCOMMAND --option, cmake/ctest --preset NAME, cargo -p NAME:
#              the target, option, preset or crate exists
#   options    SLABYARD=OPTIONS: the library accepts them; not those with a blank, as in decay=Nms
#   examples   each block ```c example or ```cpp example compiles, and succeeds when run
#   excerpts   each line of a block ```c excerpt FILE is in FILE; a line ... stands for other lines
#   decisions  the index of decisions lists each of them
# Usage: tests/docs/check.sh [--build DIR] [DOCUMENT...]
# Without --build, options are not checked, and the examples are only counted. Without a built tool
# (rust/target/release/slabyard), the commands of slabyard are only counted.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

build=
if [ "${1:-}" = --build ]; then
    build=$(cd "$2" && pwd)
    shift 2
fi
documents=("$@")
if [ $# = 0 ]; then
    shopt -s nullglob
    documents=(README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/*/*.md docs/reference/c/*.md)
    shopt -u nullglob
fi
tool=$root/rust/target/release/slabyard
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

errors=0 paths=0 commands=0 examples=0 excerpts=0 unjudged=0
place= # "document:line" of what is being checked
error() {
    echo "docs: $place: $*" >&2
    errors=$((errors + 1))
}

# exists PATH DOCUMENT: whether a path or pattern exists, relative to one of the folders above.
exists() {
    local path=$1 from name
    for from in "$root" "$(dirname "$2")" "$root/src" "$root/include" "$root/rust"; do
        for name in $(eval "echo $from/$path"); do # braces and patterns; see looks_like_path
            [ -e "$name" ] || continue 2
        done
        return 0
    done
    return 1
}

# Whether a word has only characters of paths, and begins with a folder or ends like a file of the
# project.
looks_like_path() {
    [[ $1 =~ ^[A-Za-z0-9_.*,{}/+-]+$ && $1 != /* && $1 != *..* && $1 != -* ]] || return 1
    case $1 in
    build/* | out/* | rust/target/*) return 1 ;; # made by building
    */*)
        local first=${1%%/*}
        [[ -d $first || -d src/$first || $1 =~ \.(c|h|hpp|rs|md|sh|toml|txt|cmake)$ ]] ;;
    *) [[ $1 =~ ^[A-Z][A-Za-z]+\.(md|txt|json)$ || $1 == Makefile ]] ;;
    esac
}

check_path() { # check_path WORD DOCUMENT
    looks_like_path "$1" || return 0
    paths=$((paths + 1))
    exists "$1" "$2" || error "there is no $1"
}

# has_heading DOCUMENT ANCHOR: whether a heading has this anchor, which GitHub and Sphinx make of its
# words.
has_heading() {
    awk -v WANTED="$2" '
        /^ *```/ { inside = !inside }
        !inside && /^#+ / {
            sub(/^#+ +/, "")
            $0 = tolower($0)
            gsub(/[^a-z0-9_ -]/, "")
            gsub(/ /, "-")
            if ($0 == WANTED) found = 1
        }
        END { exit !found }' "$1"
}

check_link() { # check_link TARGET DOCUMENT
    local path=${1%%#*} file=$2
    case $1 in *://* | mailto:*) return 0 ;; esac
    paths=$((paths + 1))
    [ -z "$path" ] || file=$(dirname "$2")/$path
    if [ ! -e "$file" ]; then
        error "the link to $1 leads nowhere"
    elif [[ $1 == *#* && $file == *.md ]] && ! has_heading "$file" "${1#*#}"; then
        error "the link to $1 names no heading of ${file#./}"
    fi
}

check_slabyard() { # check_slabyard SUBCOMMAND WORDS...
    [[ ${1:-} =~ ^[a-z]+$ ]] || return 0
    local help word subcommand=$1
    if [ ! -x "$tool" ]; then
        unjudged=$((unjudged + 1))
        return 0
    fi
    commands=$((commands + 1))
    if ! help=$("$tool" "$subcommand" --help 2>/dev/null); then
        error "slabyard has no subcommand $subcommand"
        return 0
    fi
    shift
    for word in "$@"; do
        [ "$word" != -- ] || break # the rest is the command line of another program
        [[ $word =~ ^--[a-z] ]] || continue
        [[ $help == *"${word%%=*}"* ]] || error "slabyard $subcommand has no ${word%%=*}"
    done
}

check_preset() { # check_preset WORDS...
    while [ $# -gt 1 ]; do
        if [ "$1" = --preset ]; then
            commands=$((commands + 1))
            grep -q "\"name\": \"$2\"" CMakePresets.json || error "there is no preset $2"
        fi
        shift
    done
}

check_cargo() { # check_cargo WORDS...
    while [ $# -gt 1 ]; do
        if [ "$1" = -p ]; then
            commands=$((commands + 1))
            grep -q "^name = \"$2\"" rust/*/Cargo.toml || error "there is no crate $2"
        fi
        shift
    done
}

check_make() { # check_make WORDS...
    local word
    for word in "$@"; do
        [[ $word =~ ^[a-z][a-z-]*$ ]] || continue
        commands=$((commands + 1))
        grep -q "^$word:" Makefile || error "the Makefile has no target $word"
    done
}

check_command() { # check_command WORDS...
    while [[ ${1:-} =~ ^([A-Z_]+=.*|sudo|env|time)$ ]]; do shift; done
    local program=${1:-}
    shift || return 0
    case $program in
    make) check_make "$@" ;;
    slabyard | */slabyard) check_slabyard "$@" ;;
    cmake | ctest) check_preset "$@" ;;
    cargo) check_cargo "$@" ;;
    esac
}

# check_shell LINE DOCUMENT: each command of a line, and each path among its words.
check_shell() {
    local part word words
    while read -r part; do
        read -r -a words <<<"${part%% #*}"
        [ ${#words[@]} -gt 0 ] || continue
        check_command "${words[@]}"
        for word in "${words[@]}"; do
            check_path "${word#./}" "$2"
        done
    done < <(sed 's/&&\|||\||\|;/\n/g' <<<"$1")
}

# Options are set in a process of its own. Some print something at once, or at exit.
if [ -n "$build" ]; then
    cat >"$work/options.c" <<'END'
#include <slabyard/options.h>
int main(int argc, char **argv) { return argc == 2 && sy_set_options(argv[1]) == 0 ? 0 : 1; }
END
    ${CC:-gcc} -Iinclude "$work/options.c" "$build/libslabyard.a" -pthread -o "$work/options"
    rm "$work/options.c"
fi

check_options() { # check_options TEXT
    local options
    [ -n "$build" ] || return 0
    while read -r options; do
        options=$(sed "s/['\";.]*\$//; s/^['\"]//" <<<"${options#*SLABYARD=}")
        case $options in *...* | *\$* | *=N* | '') continue ;; esac
        commands=$((commands + 1))
        "$work/options" "$options" >/dev/null 2>&1 || error "the library does not accept SLABYARD=$options"
    done < <(grep -oE '(^|[ (])SLABYARD=[^ `|)]+' <<<"$1")
}

check_document() {
    local kind line text
    awk -v OUT="$work" -f tests/docs/extract.awk "$1" >"$work/extracted" || error "$1 cannot be read"
    while IFS=$'\t' read -r kind line text; do
        place=$1:$line
        case $kind in
        link) check_link "$text" "$1" ;;
        code | shell)
            check_options "$text"
            check_shell "$(sed "s/<[a-z_]*>/*/g; s/[<>\"']//g" <<<"$text")" "$1"
            ;;
        esac
    done <"$work/extracted"
}

run_example() { # run_example FILE
    place="example $(basename "$1")"
    examples=$((examples + 1))
    [ -n "$build" ] || return 0
    local compiler
    case $1 in
    *.c) compiler="${CC:-gcc} -std=gnu11" ;;
    *) compiler="${CXX:-g++} -std=c++17" ;;
    esac
    if ! $compiler -Wall -Wextra -Werror -O2 -Iinclude "$1" "$build/libslabyard.a" -pthread \
        -o "$1.out" 2>"$work/log"; then
        error "does not compile: $(cat "$work/log")"
    elif ! timeout 60 "$1.out" >"$work/log" 2>&1; then
        error "fails when run: $(cat "$work/log")"
    fi
}

check_excerpt() { # check_excerpt FILE
    local from line
    IFS=$'\t' read -r from place <"$1"
    excerpts=$((excerpts + 1))
    if [ ! -f "$from" ]; then
        error "there is no $from for an excerpt"
    elif ! line=$(awk -f tests/docs/excerpt.awk "$from" "$1"); then
        error "the excerpt differs from $from at: $line"
    fi
}

for document in "${documents[@]}"; do
    [ -e "$document" ] || continue
    check_document "$document"
done
for example in "$work"/*.c "$work"/*.cpp; do
    [ ! -e "$example" ] || run_example "$example"
done
for excerpt in "$work"/*.excerpt; do
    [ ! -e "$excerpt" ] || check_excerpt "$excerpt"
done
for decision in docs/decisions/[0-9]*.md; do
    place=docs/decisions/index.md
    grep -qF "(${decision##*/})" "$place" || error "it does not list ${decision##*/}"
done

[ "$unjudged" = 0 ] || echo "docs: slabyard is not built, so $unjudged of its commands were not checked"
[ "$errors" = 0 ] || { echo "docs: $errors errors" >&2 && exit 1; }
ran=$([ -n "$build" ] && echo run || echo "not run")
echo "docs: $paths paths, $commands commands, $examples examples ($ran), $excerpts excerpts in ${#documents[@]} documents are correct"
