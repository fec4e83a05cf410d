commands="soffice"
packages="libreoffice-writer-nogui libreoffice-calc-nogui"
installed() { command -v soffice && [ -e "$(dirname "$(readlink -f "$(command -v soffice)")")/libsclo.so" ]; }
version="soffice --version"
checks="a document of 150 pages to odt, docx, text and PDF, and a table of 5,000 rows to ods and CSV: output compared"
seconds=400
processes="soffice.bin"

documents() {
    awk 'BEGIN { print "<html><body>"; for (i = 0; i < 400; i++) { print "<h2>Part " i "</h2><p>"
        for (k = 0; k < 60; k++) printf "word%d <b>bold</b> <i>%d</i> ", i * k % 977, k; print "</p>"
        if (i % 10 == 0) { print "<table border=1>"; for (k = 0; k < 12; k++) print "<tr><td>" k "</td><td>" i * k "</td></tr>"; print "</table>" } }
        print "</body></html>" }' >text.html
    awk 'BEGIN { for (i = 1; i <= 5000; i++) printf "%d,%.3f,name %d,=A%d*B%d+SUM(A$1:A%d)\n", i, i * 0.37, i * 7919 % 997, i, i, i % 50 + 1 }' >table.csv
}
convert() { # convert FORMAT FILE [OPTION]
    soffice --headless --norestore "-env:UserInstallation=file://$PWD/profile" ${3:+"$3"} --convert-to "$1" --outdir out "$2" >>log 2>&1
}
# The files contain dates, which differ, so only the contents of the documents are compared.
contents() { unzip -p "out/$1" "$2" | cksum; }
work_on_documents() {
    export HOME=$PWD
    documents
    convert odt:writer8 text.html "--infilter=HTML (StarWriter)"
    convert docx out/text.odt
    convert "txt:Text (encoded):UTF8" out/text.docx
    convert pdf out/text.odt
    convert ods table.csv
    convert "csv:Text - txt - csv (StarCalc):44,34,76" out/table.ods
    contents text.odt content.xml
    contents text.docx word/document.xml
    contents table.ods content.xml
    sums out/text.txt out/table.csv
    grep -avE '/CreationDate|/DocChecksum|/ID|^ *<[0-9A-F]{32}>' out/text.pdf | cksum
    tail -3 out/table.csv
}
program() { both libreoffice work_on_documents; }
