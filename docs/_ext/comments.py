"""Parses comments of the public headers and turns them into reStructuredText.

The comments are plain text, which is also read in the header. They have this form:

    What it does, in paragraphs.

    Returns the object, or NULL with errno.

    Errors:
        EINVAL    a reason
        ENOMEM    a reason

    Threads: any thread.

    A sentence about the example, which may be left out:

        struct order *order = sy_cache_alloc(orders);

Indented paragraphs are code or drawings. Code at the end of a comment is its example. Slabyard's
names, names in backquotes, and names of headers and documents become links or literals.
"""
import re

NAME = r"\bsy_[a-z0-9_]+(?:\.[a-z_]+)?(?:\(\))?|\bSY_[A-Z0-9_]+\b(?!\.\.\.)"
WORD = re.compile(
    rf"(?P<code>`[^`]+`)|(?P<name>{NAME})|(?P<document>\bdocs/[a-z-]+\.md)|"
    r"(?P<header>(?:slabyard/)?\b[a-z]+\.h\b)|(?P<special>[*|\\]|_\b)"
)


class Text:
    """The parts of a comment: description, return value, errors, threads, example."""

    def __init__(self, lines):
        self.description, self.returns, self.errors, self.threads = [], [], [], []
        found = paragraphs(lines)
        end = example_at(found)
        self.example = joined(found[end:])
        for paragraph in found[:end]:
            first = paragraph[0]
            if first.strip() == "Errors:":
                self.errors += rows(paragraph[1:])
            elif first.startswith("Returns "):
                self.returns.append(paragraph)
            elif first.startswith("Threads: "):
                self.threads.append([first[len("Threads: ") :]] + paragraph[1:])
            else:
                self.description.append(paragraph)

    @property
    def summary(self):
        """The first sentence."""
        words = " ".join(line.strip() for line in self.description[0]) if self.description else ""
        return re.split(r"(?<=[a-z0-9)`])\.\s|[:;] |, (?:as|until|even if) ", words)[0].rstrip(".")


def paragraphs(lines):
    found = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line.rstrip())
        elif found[-1]:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def is_code(paragraph):
    statement = any(re.search(r";(  |$)", line) for line in paragraph)
    return statement and all(line.startswith("    ") for line in paragraph)


def example_at(found):
    """The index of the paragraph where the example begins: the code at the end of the comment, and
    the paragraph before it if that ends with a colon. A comment that has only code has no example.
    """
    at = len(found)
    while at > 0 and is_code(found[at - 1]):
        at -= 1
    if at == 0:
        return len(found)
    return at - 1 if 1 < at < len(found) and found[at - 1][-1].endswith(":") else at


def joined(found):
    """The paragraphs of an example. Its code becomes one paragraph, which may have blank lines."""
    code = [paragraph for paragraph in found if is_code(paragraph)]
    lines = [line for paragraph in code for line in paragraph + [""]][:-1]
    return found[: len(found) - len(code)] + ([lines] if lines else [])


def rows(lines):
    """[name, text] of each line "    NAME    text". Lines with more indentation continue the text.
    """
    found = []
    for line in lines:
        match = re.match(r" {4}([A-Z]+) +(.*)", line)
        if match:
            found.append([match.group(1), match.group(2)])
        else:
            found[-1][1] += " " + line.strip()
    return found


class Renderer:
    """Turns plain text into reStructuredText. `names`: {public name: role, for example c:func}."""

    def __init__(self, names, headers=(), documents=(), links=True):
        self.names, self.headers, self.documents, self.links = names, headers, documents, links

    def inline(self, text):
        return WORD.sub(self.word, text)

    def word(self, match):
        text = match.group()
        if match.lastgroup == "code":
            inside = text[1:-1]
            return self.link(inside) if inside in self.names else f"``{inside}``"
        if match.lastgroup == "name":
            return self.link(text)
        if match.lastgroup == "document" and self.links:
            page = text[len("docs/") : -len(".md")]
            return f":doc:`/{page}`" if page in self.documents else text
        if match.lastgroup == "header":
            name = text.split("/")[-1][:-2]
            if self.links and name in self.headers:
                return f":doc:`slabyard/{name}.h </reference/c/{name}>`"
            return f"``{text}``"
        if match.lastgroup == "special":
            return "\\" + text
        return text

    def link(self, text):
        name = text.removesuffix("()")
        if name in self.names and self.links:
            return f":{self.names[name]}:`{name}`"
        return f"``{text}``"

    def paragraph(self, lines):
        if re.match(r"-{3,} .* -{3,}$", lines[0]):
            title = lines[0].strip("- ")
            return [title[0].upper() + title[1:], "-" * len(title), ""]
        if all(line.startswith("    ") or not line for line in lines):
            code = any(re.search(r";(  |$)", line) for line in lines)
            cpp = any(re.search(r"\w::\w|\bauto ", line) for line in lines)
            language = ("cpp" if cpp else "c") if code else "text"
            remark = (r";(   *)(?!/\*)(\S.*)$", r";\1/* \2 */") if code else ("$", "")
            lines = ["   " + re.sub(*remark, line[4:]) for line in lines]
            return [f".. code-block:: {language}", ""] + lines + [""]
        out, item = [], re.compile(r" {2,3}- +")
        for line in lines:
            if item.match(line):
                out += ["", "- " + self.inline(item.sub("", line))]
            elif out and line.startswith("    "):
                out.append("  " + self.inline(line.strip()))
            else:
                out.append(self.inline(line.strip()))
        return out + [""]

    def field(self, label, body):
        return [f":{label}:"] + ["   " + line if line else "" for line in body]

    def body(self, parts):
        return [line for part in parts for line in self.paragraph(part)]

    def errors(self, errors):
        out = []
        for name, text in errors:
            out += [f"``{name}``", "   " + self.inline(text), ""]
        return out

    def rst(self, lines):
        """The lines of a comment as lines of reStructuredText, the labelled parts as fields."""
        text = Text(lines)
        out = self.body(text.description)
        if text.returns:
            out += self.field("Returns", self.returned(text))
        if text.errors:
            out += self.field("Errors", self.errors(text.errors))
        if text.threads:
            out += self.field("Threads", self.body(text.threads))
        if text.example:
            out += self.field("Example", self.body(text.example))
        return out

    def returned(self, text):
        body = self.body(text.returns)
        first = body[0].removeprefix("Returns ")
        return [first[0].upper() + first[1:]] + body[1:]
