# Writes each comment of a header that has an example as a program, to OUT/<header>-<line>.<language>.
#
# An example is a paragraph that begins with four columns of indentation or more and has a line that
# ends a statement. Then all of its lines have to be indented so. What follows a semicolon after two
# blanks or more is a remark. A line `...` stands for code of the reader's. A paragraph with `{ ... }`
# is the shape of something, not an example. The examples of one comment are one function body.

function finish_paragraph(   i) {
    if (statement && !shape && line[1] ~ INDENTED) {
        if (!opened) open_program()
        for (i = 1; i <= lines; i++) {
            printf "#line %d \"%s\"\n", number[i], FILENAME >> file
            if (line[i] !~ INDENTED) print "#error \"a line of an example is not indented\"" >> file
            else print line[i] >> file
        }
    }
    lines = statement = shape = 0
}

function open_program(   name, cpp) {
    cpp = FILENAME ~ /\.hpp$/
    name = FILENAME
    gsub(/[^A-Za-z0-9]/, "-", name)
    file = OUT "/" name "-" FNR (cpp ? ".cpp" : ".c")
    printf "#include \"program.%s\"\nvoid example(void);\nvoid example(void) {\n",
        cpp ? "hpp" : "h" > file
    opened = 1
}

function finish_comment() {
    finish_paragraph()
    if (opened) {
        print "}" >> file
        close(file)
    }
    inside = opened = 0
}

BEGIN { INDENTED = "^(     |$)" }

/\/\*/ { inside = 1 }

inside {
    text = $0
    sub(/^ *\/?\*+/, "", text)
    if (text ~ /\*\/|^\/?$/) finish_paragraph() # its last line, or an empty one
    else {
        if (text ~ /\{ \.\.\. \}/) shape = 1
        if (text ~ INDENTED && text ~ /;(  |$)/) statement = 1
        if (text ~ /^ *\.\.\.$/) text = ""
        sub(/;   *.*/, ";", text)
        line[++lines] = text
        number[lines] = FNR
    }
}

/\*\// { finish_comment() }
