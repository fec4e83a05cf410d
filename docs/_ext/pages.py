"""Changes the Markdown documents of the repository for the site.

CHANGELOG.md and other documents outside docs/ are pages of the site, too. For each there is a page
in docs/site/, whose text this extension replaces with the document. The site's first page shows the
beginning of README.md in the same way: `<!-- part: README.md until ## HEADING -->` stands for all
lines before this heading. Links in the documents lead to files of the repository. This extension changes links to documents into links to their pages, and
links to sources and headers into plain code.

A document shows a picture as <picture>, with a file for light and one for dark pages, as GitHub
does. This extension replaces it by two pictures, because readers choose the theme of the site. It
puts each picture into a container of the class sy-picture, which can be scrolled on a narrow screen
(docs/_static/site.css).

A line `<!-- search: WORD, WORDS -->` below the title of a page lists what people type who look for
the page. Each becomes an entry of the index, which the search of the site shows first.
"""
import os
import re

from docutils import nodes
from sphinx.errors import ExtensionError

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(HERE)
PAGES = {
    "ARCHITECTURE.md": "site/architecture", "CHANGELOG.md": "site/changelog",
    "CONTRIBUTING.md": "site/contributing", "SECURITY.md": "site/security", "README.md": "index",
}
RUSTDOC = {
    True: '**<a href="../rustdoc/slabyard/index.html">Open the reference of the crate slabyard</a>**',
    False: "This copy of the site does not contain it. `make site` adds it if cargo is installed.",
}
PICTURE = re.compile(
    r'<picture>\n +<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\n'
    r' +<img alt="([^"]+)" src="([^"]+)"></picture>'
)
WHOLE = re.compile(r"<!-- whole: (\S+) -->\s*")
PART = re.compile(r"<!-- part: (\S+) until (.+?) -->\n")
SEARCHED = re.compile(r"(?m)^<!-- search: (.*) -->$")
LINK = re.compile(r"(!?)\[([^]]+)\]\(([^)#: ]+)(#[^)]*)?\)")


def rewrite(text, stands_in):
    """`text`, a document in the folder `stands_in`, with its links changed for the site."""

    def link(match):
        picture, words, target, anchor = match.groups()
        path = os.path.normpath(os.path.join(stands_in, target))
        inside = os.path.relpath(path, ROOT)
        if picture:
            return match.group()
        if inside in PAGES:
            page = PAGES[inside] + ".md"
        elif path.startswith(HERE + os.sep) and path.endswith(".md"):
            page = os.path.relpath(path, HERE)
        elif os.path.exists(path):
            return f"`{inside}`"
        else:
            return match.group()  # Sphinx reports it
        if words == target or words.removeprefix("docs/") == page or words == inside:
            words = ""  # the page's title
        return f"[{words}](/{page}{anchor or ''})"

    parts = re.split(r"(?ms)(^ *```.*?^ *```$)", text)  # not in code
    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(parts))


def pictures(match):
    """The two pictures of a <picture>, one for each theme."""
    dark, alt, light = match.groups()
    return "\n".join(
        f"```{{image}} {file}\n:alt: {alt}\n:class: only-{theme}\n```"
        for theme, file in (("light", light), ("dark", dark))
    )


def document(app, name):
    """The text of a document of the repository as the text of a page."""
    path = os.path.join(ROOT, name)
    app.env.note_dependency(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return rewrite(PICTURE.sub(pictures, text).replace("{image} docs/", "{image} /"), ROOT)


def index_entries(match):
    """The directive for a line of SEARCHED. `!` marks main entries, which the search shows first."""
    return "```{index} " + ", ".join(f"! {word.strip()}" for word in match.group(1).split(",")) + "\n```"


def read_source(app, docname, source):
    text = source[0].replace("<!-- rustdoc -->", RUSTDOC[app.tags.has("rustdoc")])
    text = PICTURE.sub(pictures, text)
    text = rewrite(text, os.path.join(HERE, os.path.dirname(docname)))
    text = SEARCHED.sub(index_entries, text)
    whole, part = WHOLE.match(text), PART.match(text)
    if whole:
        text = document(app, whole.group(1))
    elif part:
        before, heading, _ = document(app, part.group(1)).partition("\n" + part.group(2) + "\n")
        if not heading:
            raise ExtensionError(f"{docname}: {part.group(1)} has no heading {part.group(2)}")
        text = before + "\n" + text[part.end() :]
    source[0] = text
    if re.search("(?m)^ *<picture>", source[0]):
        raise ExtensionError(f"{docname}: a <picture> that docs/_ext/pages.py does not understand")


def wrap_pictures(app, doctree):
    for image in list(doctree.findall(nodes.image)):
        image.parent.replace(image, nodes.container("", image.deepcopy(), classes=["sy-picture"]))


def setup(app):
    app.connect("source-read", read_source)
    app.connect("doctree-read", wrap_pictures)
    return {"parallel_read_safe": True}
