# Is an excerpt in a document what the file says? Usage: awk -f excerpt.awk FILE EXCERPT
# The excerpt's lines stand in the file in this order and without a gap, except where the excerpt has a
# line `...`. All lines of a part may be indented less than in the file. Prints the first line of the part that is not there, and fails. The first line of EXCERPT is
# a heading of extract.awk.

function find_part(   at, blanks, indented) {
    if (part == "") return
    indented = "\n" part
    for (blanks = 0; blanks <= 24 && !(at = index(text, indented)); blanks += 4) {
        gsub(/\n/, "&    ", indented)   # an empty line stays empty, and the last line break is the end
        gsub(/\n +\n/, "\n\n", indented)
        gsub(/\n +\n/, "\n\n", indented) # of two empty lines in a row the second
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
