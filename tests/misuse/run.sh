#!/usr/bin/env bash
# Does a program that misuses Slabyard end, having said exactly what its first comment expects?
# Usage: run.sh SOURCE PROGRAM...
#
# The comment is the report, or several of them. A line that is indented more than the text is a
# line of it, and so is the headline, which begins with `slabyard:`; any other goes on with the one
# before. In them stand
#   ADDRESS     for the address that the program printed, ADDRESS+8 and ADDRESS-8 for others
#   PLACE       for what a foreign pointer points to, REGISTER for the name of one
#   TIME        for how long ago something was, THREAD for the number of a thread
#   STACK       for the lines of a stack; STACK f g for one whose first functions are f and g, as far
#               as this machine can name them
#
# Before the reports there can be
#   SLABYARD=OPTIONS     what the program is started with
# and behind them
#   ends with WHAT       abort, unless something else is said: SIGSEGV, or an exit status, when it
#                        goes on
#
# A guard page's report ends with SIGSEGV; others may have their say behind it, and of an access that
# nobody reports it is they alone who have one. The program runs in a folder of its own: what it
# has appended to the file `report` there is taken for the reports, and there is to be nothing on
# stderr.
set -uo pipefail
source=$(realpath "$1")
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "misuse: $*"
    exit 1
}

# What the first comment of a source says, each report's line and each wish in a line of its own.
expectation() {
    awk '
        { last = sub(/ *\*\/.*/, "") }
        { text = substr($0, 4) }
        NR > 1 { printf "%s", text ~ /^( |slabyard: |ends with )/ || options ? "\n" : " " }
        { printf "%s", text }
        { options = text ~ /^SLABYARD=/ }
        last { print ""; exit }' "$1"
}

# addressed TEXT: with each ADDRESS, and what is counted from it, in digits.
addressed() {
    local text=$1 sum
    while [[ $text =~ ADDRESS([+-][0-9]+)? ]]; do
        sum=$(printf '0x%x' $((address ${BASH_REMATCH[1]})))
        text=${text/"${BASH_REMATCH[0]}"/$sum}
    done
    echo "$text"
}

# canonical EXPECTED REPORT: the report, with the words above for what differs from run to run. Of
# each stack as many functions are told as are expected; one that this machine has no name for may
# be any, and then some may be missing, which were inlined.
canonical() {
    sed -E 's/^(  (allocated|freed)) [0-9.]+ [a-z]+ ago by thread [0-9]+/\1 TIME ago by thread THREAD/
        s/^(  seen by thread) [0-9]+/\1 THREAD/
        s/^(  points to:) .*/\1 PLACE/
        s/ in register [a-z0-9]+$/ in register REGISTER/
        s/(, allocated) [0-9.]+ [a-z]+( to [0-9.]+ [a-z]+)? ago/\1 TIME ago/' "$2" |
        awk -v expected="$1" '
            function tell() {
                if (!frames) return
                wanted = stacks < many ? stack[++stacks] : ""
                count = split(wanted, name, " ") - 1
                line = "    STACK"
                for (i = 1; i <= count; i++) {
                    known = i <= frames ? !unnamed[i] : !nameless
                    line = line " " (known ? i <= frames ? found[i] : "nothing" : name[i + 1])
                }
                print line
                frames = nameless = 0
            }
            BEGIN {
                while ((getline line < expected) > 0) if (line ~ /^    STACK/) stack[++many] = line
            }
            /^    #[0-9]+ / {
                found[++frames] = $2
                unnamed[frames] = $0 !~ / at .*:[0-9]+$/
                nameless += unnamed[frames]
                next
            }
            { tell(); print }
            END { tell() }'
}

expectation "$source" >"$scratch/wanted"
options=${SLABYARD:-tools=off},$(sed -n 's/^SLABYARD=//p' "$scratch/wanted") # it is Slabyard that is to see it
end=$(sed -n 's/^ends with //p' "$scratch/wanted")
! grep -q '^slabyard: .*(guard page)' "$scratch/wanted" || end=${end:-SIGSEGV}

mkdir "$scratch/folder"
SLABYARD=$options bash -c 'cd "$0/folder" && "$@" >"$0/out" 2>"$0/err"' "$scratch" "$@" 2>/dev/null
status=$?
address=$(head -n 1 "$scratch/out")
addressed "$(grep -v '^SLABYARD=\|^ends with ' "$scratch/wanted")" >"$scratch/expected"
[ -s "$scratch/wanted" ] && [ -n "$address" ] || fail "no expectation in $source, or no address told"

if [ -e "$scratch/folder/report" ]; then
    [ ! -s "$scratch/err" ] || fail "stderr is not silent: $(cat "$scratch/err")"
    mv "$scratch/folder/report" "$scratch/err"
fi
canonical "$scratch/expected" "$scratch/err" >"$scratch/said"
grep -q . "$scratch/expected" || : >"$scratch/expected"
case ${end:-abort} in
abort) [ "$status" = 134 ] ;;
[0-9]*) [ "$status" = "$end" ] ;;
SIGSEGV) # or by who has his say behind the report, a sanitizer
    awk '/^slabyard: / { on = 1 } on && !/^(slabyard: |  )/ { exit } on' "$scratch/said" \
        >"$scratch/ours"
    mv "$scratch/ours" "$scratch/said"
    [ "$status" = 139 ] || [ "$status" = 134 ] || [ "$status" = 66 ] ;;
*) fail "no such end: $end" ;;
esac || fail "ended with $status, not with ${end:-abort}: $(cat "$scratch/err")"
diff "$scratch/expected" "$scratch/said" || fail "not the report expected"
