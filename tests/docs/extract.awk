# Turns a Markdown document into lines "KIND<TAB>LINE NUMBER<TAB>TEXT":
#   link   the target of a [text](target), or the file of a <picture>
#   code   the inside of `backticks`
#   shell  a line of a ```sh (or bash, console) block, without its prompt
# and writes each block whose fence says `example` (```c example, ```cpp example), a whole program,
# to OUT/<document>-<line>.<language>. A block whose fence says `excerpt FILE` (```c excerpt FILE) goes to
# OUT/<document>-<line>.excerpt, with a first line "FILE<TAB>DOCUMENT:LINE".

function emit(kind, text) {
    if (text != "") printf "%s\t%d\t%s\n", kind, FNR, text
}

function fence(info) {
    split(info, word, " ")
    language = word[1]
    file = ""
    name = FILENAME
    gsub(/[^A-Za-z0-9]/, "-", name)
    if (word[2] == "excerpt") {
        file = OUT "/" name "-" FNR ".excerpt"
        printf "%s\t%s:%d\n", word[3], FILENAME, FNR > file
    } else if (info ~ / example( |$)/) {
        file = OUT "/" name "-" FNR "." (language == "c++" ? "cpp" : language)
        printf "" > file
    }
}

/^ *```/ {
    if (inside) {
        if (file != "") close(file)
        inside = 0
    } else {
        inside = 1
        sub(/^ *```/, "")
        fence($0)
    }
    next
}

inside {
    if (file != "") print >> file
    if (language ~ /^(sh|bash|shell|console)$/) {
        sub(/^ *\$ /, "")
        if ($0 !~ /^ *#/) emit("shell", $0)
    }
    next
}

{
    rest = $0
    while (match(rest, /\]\([^) ]+\)/)) {
        emit("link", substr(rest, RSTART + 2, RLENGTH - 3))
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /(src|srcset)="[^"]+"/)) {
        target = substr(rest, RSTART, RLENGTH - 1)
        sub(/.*"/, "", target)
        emit("link", target)
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = $0
    while (match(rest, /`[^`]+`/)) {
        emit("code", substr(rest, RSTART + 1, RLENGTH - 2))
        rest = substr(rest, RSTART + RLENGTH)
    }
}
