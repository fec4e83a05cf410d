# Is an excerpt in a document what the file says? Usage: awk -f excerpt.awk FILE EXCERPT
# The excerpt's lines stand in the file in this order and without a gap, except where the excerpt has a
# line `...`. Prints the first line of the part that is not there, and fails. The first line of EXCERPT is
# a heading of extract.awk.

function find_part(   at) {
    if (part == "") return
    at = index(text, "\n" part)
    if (!at) {
        print substr(part, 1, index(part, "\n") - 1)
        failed = 1
        exit 1
    }
    text = substr(text, at + length(part))
    part = ""
}

BEGIN { text = "\n" }
NR == FNR { text = text $0 "\n"; next }
FNR == 1 { next }
/^ *\.\.\.$/ { find_part(); next }
{ part = part $0 "\n" }
END { if (!failed) find_part() }
