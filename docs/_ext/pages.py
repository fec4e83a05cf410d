"""What the site needs beyond Sphinx and its extensions.

Documents outside docs/ (README, CHANGELOG and others) are pages of the site too: a page in docs/site/
includes each of them. Links in Markdown are written for the repository, so they lead to files; here
those to such documents lead to their pages, and those to sources and headers become plain code.
"""
import os
import re

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(HERE)
PAGES = {
    "ARCHITECTURE.md": "site/architecture", "CHANGELOG.md": "site/changelog",
    "CONTRIBUTING.md": "site/contributing", "SECURITY.md": "site/security", "README.md": "index",
}
RUSTDOC = {
    True: '**<a href="../rustdoc/slabyard/index.html">Open the reference of the crate slabyard</a>**',
    False: "It is not a part of this copy of the site. `make site` adds it where cargo is installed.",
}
LINK = re.compile(r"(!?)\[([^]]+)\]\(([^)#: ]+)(#[^)]*)?\)")


def rewrite(text, docname, stands_in):
    """Links of a document that stands in the folder `stands_in`, for the page `docname`."""

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


def read_source(app, docname, source):
    text = source[0]
    whole = re.match(r"<!-- whole: (\S+) -->\s*", text)
    text = source[0] = text.replace("<!-- rustdoc -->", RUSTDOC[app.tags.has("rustdoc")])
    if whole:
        path = os.path.join(ROOT, whole.group(1))
        app.env.note_dependency(path)
        with open(path, encoding="utf-8") as file:
            source[0] = rewrite(file.read(), docname, ROOT)
    else:
        source[0] = rewrite(text, docname, os.path.join(HERE, os.path.dirname(docname)))


def setup(app):
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True}
