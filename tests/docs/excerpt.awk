# Checks that the lines of an excerpt in a document are in a file, in the same order. Between two
# lines, the file has other lines only where the excerpt has a line `...`. The parts between such
# lines may be indented less than in the file. If a part is not in the file, prints its first line
# and fails. The first line of EXCERPT is ignored (tests/docs/extract.awk writes it).
# Usage: awk -f excerpt.awk FILE EXCERPT

function find_part(   at, blanks, indented) {
    if (part == "") return
    indented = "\n" part
    for (blanks = 0; blanks <= 24 && !(at = index(text, indented)); blanks += 4) {
        gsub(/\n/, "&    ", indented)   # but not after the last line break, nor in empty lines
        gsub(/\n +\n/, "\n\n", indented)
        gsub(/\n +\n/, "\n\n", indented) # the second of two empty lines in a row
        sub(/\n +$/, "\n", indented)
    }
    if (!at) {
        print substr(part, 1, index(part, "\n") - 1)
        failed = 1
        exit 1
    }
    text = substr(text, at + length(indented) - 1)
    part = ""
}

BEGIN { text = "\n" }
NR == FNR { text = text $0 "\n"; next }
FNR == 1 { next }
/^ *\.\.\.$/ { find_part(); next }
{ part = part $0 "\n" }
END { if (!failed) find_part() }
