"""Documents the public headers: feeds Hawkmoth, which reads them with libclang.

Hawkmoth was chosen over Breathe and Doxygen: it takes prototypes and types from a compiler, needs no
intermediate format and no configuration, is a tenth of the size to install, and does not change the
text of a comment, so comments can be plain text. It reads only comments that begin with /** and
stand before a declaration. In Slabyard's headers, fields and constants have plain comments beside
or before them. This extension adds these comments, and the fields without a comment.
"""
import glob
import os
import re
import subprocess
from functools import lru_cache

import hawkmoth.docstring as docstring
import hawkmoth.parser as parser
from clang.cindex import CursorKind, TokenKind
from comments import Renderer
from sphinx import addnodes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "include")
MEMBERS = (CursorKind.FIELD_DECL, CursorKind.ENUM_CONSTANT_DECL)
OWNERS = (CursorKind.STRUCT_DECL, CursorKind.ENUM_DECL, CursorKind.UNION_DECL)
ROLES = {
    docstring.FunctionDocstring: "c:func",
    docstring.StructDocstring: "c:struct",
    docstring.EnumDocstring: "c:enum",
    docstring.EnumeratorDocstring: "c:enumerator",
    docstring.MacroDocstring: "c:macro",
    docstring.TypedefDocstring: "c:type",
    docstring.TypedefFunctionDocstring: "c:type",
}


class Comment:
    """A comment with another text, with the attributes that Hawkmoth uses."""

    def __init__(self, text, token):
        self.spelling, self.extent = f"/**\n{text}\n*/", token.extent


def words_of(token):
    """The lines of a comment without its stars and without the indentation of the code."""
    lines = token.spelling.strip("/").strip("*").strip().split("\n")
    return "\n".join(re.sub(r"^ *(\* ?)?", "", line) for line in lines)


def members_of(cursor):
    for child in cursor.get_children():
        if child.kind in MEMBERS:
            yield child
        elif child.kind in OWNERS:
            yield from members_of(child)


def member_comments(tu, found):
    """Comments of fields and constants: {hash of the cursor: comment}."""
    tokens = [t for t in tu.get_tokens(extent=tu.cursor.extent)]
    comments = [t for t in tokens if t.kind == TokenKind.COMMENT]
    code_lines = {t.extent.end.line for t in tokens if t.kind != TokenKind.COMMENT}
    beside = {c.extent.start.line: c for c in comments if c.extent.start.line in code_lines}
    above = {c.extent.end.line: c for c in comments if c.extent.start.line not in code_lines}
    result = {}
    for owner in tu.cursor.get_children():
        comment = found.get(owner.hash)
        if owner.kind == CursorKind.TYPEDEF_DECL or owner.kind not in OWNERS or not comment:
            continue
        if re.search("not\\s*\\*?\\s*for callers", comment.spelling):
            continue
        before = 0
        for member in members_of(owner):
            if member.spelling == "reserved":
                continue
            start, end = member.extent.start.line, member.extent.end.line
            first = above.get(start - 1) if start != before else None
            own = [c for c in (first, beside.get(end)) if c]
            before = start
            text = "\n\n".join(words_of(c) for c in own)
            token = own[0] if own else next(member.get_tokens())
            result[member.hash] = Comment(text or " ", token)
    return result


def with_members(extract):
    def comments(tu):
        top, found = extract(tu)
        if not tu.spelling.endswith(".hpp"):
            found.update(member_comments(tu, found))
        # The first comment of a header is about the header, not about its include guard.
        for cursor in tu.cursor.get_children():
            if cursor.kind == CursorKind.MACRO_DEFINITION and re.match(
                r"SLABYARD_\w+_HP?P?$", cursor.spelling
            ):
                about = found.pop(cursor.hash, None)
                if about:
                    top.append(about)
        return top, found

    return comments


parser._comment_extract = with_members(parser._comment_extract)


TEMPLATE_CONSTRUCTOR = re.compile(r"(constexpr )?(template)<class U, U > void (\w+)\(")


def with_plain_names(header_lines):
    """Changes forms that Sphinx cannot parse: constructors `pool<T>(...)`, defaults `= Tag`,
    constructors that are templates, which Hawkmoth gives a type and a default without a name."""

    def lines(self):
        found = header_lines(self)
        if self.get_name() and self.get_name().endswith(">"):
            plain = re.sub("<.*", "", self.get_name())
            found = [line.replace(self.get_name() + "(", plain + "(") for line in found]
        found = [TEMPLATE_CONSTRUCTOR.sub(r"\2<class U> \1\3(", line) for line in found]
        return [line.replace("class T, = Tag>", "class T, class Tag = T>") for line in found]

    return lines


for kind in (docstring.FunctionDocstring, docstring.ClassDocstring):
    kind._get_header_lines = with_plain_names(kind._get_header_lines)


def clang_args(domain):
    own = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True)
    args = [f"-I{INCLUDE}", "-isystem", own.stdout.strip(), "-DSY_NO_INLINE"]
    return args + (["-std=c11"] if domain == "c" else ["-std=c++17", "-isystem", "/usr/include/c++"])


@lru_cache(maxsize=None)
def parse(name):
    """The documented declarations of a C header, as Hawkmoth's tree."""
    path = os.path.join(INCLUDE, "slabyard", name)
    root, errors = parser.parse(path, domain="c", clang_args=clang_args("c"))
    bad = [error.get_message() for error in errors if error.level >= parser.ErrorLevel.WARNING]
    if bad:
        raise RuntimeError("\n".join(bad))
    return root


def header_names():
    """The headers that declare something for callers."""
    names = [os.path.basename(path) for path in glob.glob(os.path.join(INCLUDE, "slabyard", "*.h"))]
    return sorted(name for name in names if name not in ("base.h", "slabyard.h"))


@lru_cache(maxsize=None)
def public_names():
    """{public name: the role of links to it}."""
    found = {}
    for header in header_names():
        for declaration in parse(header):
            role = ROLES.get(type(declaration))
            if not role:
                continue
            found[declaration.get_name()] = role
            for member in declaration:
                if isinstance(member, docstring.EnumeratorDocstring):
                    found[member.get_name()] = "c:enumerator"
                else:
                    found[f"{declaration.get_name()}.{member.get_name()}"] = "c:member"
    return found


def lines_of(declaration):
    """The lines of a declaration's comment, without stars."""
    lines = declaration._get_comment_lines()
    docstring.DocstringProcessor().remove_comment_markers(lines)
    return without_stars(lines)


def without_stars(lines):
    """Hawkmoth leaves the star of the last line of a comment whose end is on that line."""
    return lines[:-1] + [re.sub(r"^ *\* ", "", line) for line in lines[-1:]] if len(lines) > 1 else lines


def setup(app):
    documents = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(app.srcdir, "*.md"))}
    headers = {name[:-2] for name in header_names()}
    renderer = Renderer(public_names(), headers, documents)

    def process(_app, lines, _transform, _options):
        text = "\n".join(without_stars(lines))
        opening = re.match(r"(?:slabyard/)?[a-z]+\.hp?p?: ", text)
        if opening:  # the page has the name as its title
            rest = text[opening.end() :]
            rest = re.sub(r"^[\w ]+\.\n\n", "", rest)  # the title of the page, again
            text = rest[0].upper() + rest[1:]
        lines[:] = renderer.rst(text.split("\n"))

    def drop_placeholder(_app, doctree):
        """Removes the name that Sphinx shows of an enum without a name: [anonymous]."""
        for name in list(doctree.findall(addnodes.desc_name)):
            if name.astext() == "[anonymous]":
                name.parent.remove(name)

    app.connect("hawkmoth-process-docstring", process)
    app.connect("doctree-read", drop_placeholder)
    return {"parallel_read_safe": True}
