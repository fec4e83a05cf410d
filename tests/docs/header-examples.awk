# Turns each comment of a header that has an example into a program, OUT/<header>-<line>.<language>.
#
# An example is a paragraph that is indented by four columns or more and has a line that ends a
# statement. If one of its lines is indented less, the program has an #error. Text after a semicolon
# and two or more blanks is a remark. A line `...` stands for the reader's code. A paragraph with `{
# ... }` is not an example. A paragraph that begins with `static` becomes a function of the program.
# The other paragraphs of a comment become the body of one function.
#
# Usage: awk -v OUT=FOLDER -f header-examples.awk HEADER

function finish_paragraph(   i, code) {
    if (statement && !shape && line[1] ~ INDENTED) {
        for (i = 1; i <= lines; i++) {
            code = code "#line " number[i] " \"" FILENAME "\"\n"
            code = code (line[i] ~ INDENTED ? line[i] : "#error \"a line of an example is not indented\"") "\n"
        }
        if (line[1] ~ /^ *static /) outside = outside code
        else body = body code
    }
    lines = statement = shape = 0
}

function write_program(   name, cpp, file) {
    cpp = FILENAME ~ /\.hpp$/
    name = FILENAME
    gsub(/[^A-Za-z0-9]/, "-", name)
    file = OUT "/" name "-" FNR (cpp ? ".cpp" : ".c")
    printf "#include \"program.%s\"\n%svoid example(void);\nvoid example(void) {\n%s}\n",
        cpp ? "hpp" : "h", outside, body > file
    close(file)
}

function finish_comment() {
    finish_paragraph()
    if (outside body != "") write_program()
    inside = 0
    outside = body = ""
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
