#!/usr/bin/env bash
# Runs a program that misuses Slabyard. Checks that the program ends with exactly the report in its
# first comment.
# Usage: run.sh SOURCE PROGRAM...
#
# The comment is a report, or several. The headline of a report begins with `slabyard:`. A line that
# is indented more than the comment's text is another line of the report. Any other line continues
# the line before it. These words stand for parts that differ from run to run:
#   ADDRESS     the address that the program printed; ADDRESS+8 and ADDRESS-8: addresses near it
#   PLACE       the place that a foreign pointer points to; REGISTER: the name of a register
#   TIME        the time since an event; THREAD: the number of a thread
#   STACK       the lines of any stack; STACK f g: the lines of a stack whose first functions are f
#               and g, as far as this machine can name them
#
# Two further lines are possible:
#   SLABYARD=OPTIONS     before the reports: the options with which the program is started
#   ends with WHAT       after the reports: abort (the same as without this line), SIGSEGV, or the
#                        exit status of a program that continues
#
# After a report about a guard page, the program ends with SIGSEGV. A sanitizer may then write its
# own report. For an access that Slabyard does not report, only the sanitizer writes a report. The
# program runs in a folder of its own. If it has written the file `report` there, this file has to
# contain the reports, and stderr must be empty.
set -uo pipefail
source=$(realpath "$1")
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "misuse: $*"
    exit 1
}

# expectation SOURCE: the first comment of a source, with each line of a report and each condition
# (SLABYARD=, ends with) in a line of its own.
expectation() {
    awk '
        { last = sub(/ *\*\/.*/, "") }
        { text = substr($0, 4) }
        NR > 1 { printf "%s", text ~ /^( |slabyard: |ends with )/ || options ? "\n" : " " }
        { printf "%s", text }
        { options = text ~ /^SLABYARD=/ }
        last { print ""; exit }' "$1"
}

# addressed TEXT: the text with numbers in place of ADDRESS, ADDRESS+8 and so on.
addressed() {
    local text=$1 sum
    while [[ $text =~ ADDRESS([+-][0-9]+)? ]]; do
        sum=$(printf '0x%x' $((address ${BASH_REMATCH[1]})))
        text=${text/"${BASH_REMATCH[0]}"/$sum}
    done
    echo "$text"
}

# canonical EXPECTED REPORT: the report, with the words above in place of the parts that differ from
# run to run. Of each stack it shows as many functions as are expected. A function that this machine
# cannot name matches any name. If there is one, inlined functions may also be missing.
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
options=${SLABYARD:-tools=off},$(sed -n 's/^SLABYARD=//p' "$scratch/wanted") # Slabyard has to find it
end=$(sed -n 's/^ends with //p' "$scratch/wanted")
! grep -q '^slabyard: .*(guard page)' "$scratch/wanted" || end=${end:-SIGSEGV}

mkdir "$scratch/folder"
SLABYARD=$options bash -c 'cd "$0/folder" && "$@" >"$0/out" 2>"$0/err"' "$scratch" "$@" 2>/dev/null
status=$?
address=$(head -n 1 "$scratch/out")
addressed "$(grep -v '^SLABYARD=\|^ends with ' "$scratch/wanted")" >"$scratch/expected"
# qemu's user mode tells of the signal. It does not say whether an access was a read or a write.
if [ -n "${SLABYARD_TEST_EMULATED:-}" ]; then
    sed -i '/^qemu: uncaught target signal/d' "$scratch/err"
    sed -i -E '/\(guard page\)/ { s/: (read|write) after/: use after/; s/: (read|write) /: access / }' \
        "$scratch/expected"
fi
[ -s "$scratch/wanted" ] && [ -n "$address" ] || fail "$source expects no report, or the program printed no address"

if [ -e "$scratch/folder/report" ]; then
    [ ! -s "$scratch/err" ] || fail "stderr is not empty: $(cat "$scratch/err")"
    mv "$scratch/folder/report" "$scratch/err"
fi
canonical "$scratch/expected" "$scratch/err" >"$scratch/said"
grep -q . "$scratch/expected" || : >"$scratch/expected"
case ${end:-abort} in
abort) [ "$status" = 134 ] ;;
[0-9]*) [ "$status" = "$end" ] ;;
SIGSEGV) # or the exit status of a sanitizer
    awk '/^slabyard: / { on = 1 } on && !/^(slabyard: |  )/ { exit } on' "$scratch/said" \
        >"$scratch/ours"
    mv "$scratch/ours" "$scratch/said"
    [ "$status" = 139 ] || [ "$status" = 134 ] || [ "$status" = 66 ] ;;
*) fail "the comment has an unknown end: $end" ;;
esac || fail "ended with $status, not with ${end:-abort}: $(cat "$scratch/err")"
diff "$scratch/expected" "$scratch/said" || fail "not the report expected"
