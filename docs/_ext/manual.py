"""Writes the man pages, in reStructuredText and Markdown, for Sphinx's builder `man`.

`scripts/site man` runs this extension. The pages are written into Sphinx's source folder, which is
a folder below build/ then:

    slabyard_HEADER.3   a header: its first comment, its types, its functions
    FUNCTION.3          a function, from the comment in the header
    slabyard.1, slabyard-COMMAND.1   the tool, from docs/tool.md
    slabyard.7          the options, from docs/options.md

The example of a function is the example in its comment, or else a whole program in docs/ or examples/
that is about the function: it calls more functions of the function's header than of other headers,
where caches and the heap, which most programs need, do not count. Of these programs, the one with the
fewest functions of other headers is taken; then one of docs/tour.md, which shows each interface; then
the shortest. The tests compile the examples of
comments, and compile and run the programs. A function without an example is a warning.
"""
import glob
import os
import re

import hawkmoth.docstring as docstring
from comments import Renderer, Text
from headers import INCLUDE, ROOT, header_names, lines_of, parse, public_names
from sphinx.util import logging

LONGEST_EXAMPLE = 90  # lines
TOUR = os.path.join("docs", "tour.md")
NEEDED_BY_MOST = ("cache.h", "heap.h")
FUNCTION = docstring.FunctionDocstring


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def programs():
    """[(number of lines, path, text)] of the short programs that the tests run, the shortest first."""
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            for text in re.findall(r"(?ms)^```c example\n(.*?)^```$", file.read()):
                found.append((text.count("\n"), os.path.relpath(path, ROOT), text))
    for path in sorted(glob.glob(os.path.join(ROOT, "examples", "*.c"))):
        text = read("examples", os.path.basename(path))
        found.append((text.count("\n"), os.path.relpath(path, ROOT), text))
    return sorted(program for program in found if program[0] <= LONGEST_EXAMPLE)


def prototype(function):
    """A C prototype in lines of at most 76 columns."""
    result = function._ttype.replace("static inline ", "")
    arguments = [f"{t}{'' if not t or t.endswith('*') else ' '}{n}" for t, n in function._args]
    head = f"{result}{'' if result.endswith('*') else ' '}{function.get_name()}("
    lines, line = [], head
    for i, argument in enumerate(arguments):
        word = argument + (", " if i + 1 < len(arguments) else ");")
        if len(line) + len(word) > 76 and line.strip():
            lines.append(line.rstrip())
            line = " " * len(head)
        line += word
    return lines + [line.rstrip() if arguments else head + "void);"]


def heading(title, mark="="):
    return [title, mark * len(title), ""]


def block(lines):
    return [".. code-block:: c", ""] + ["   " + line if line else "" for line in lines] + [""]


def references(renderer, text, names):
    """The functions that `text` mentions, without `names`."""
    mentioned = re.findall(r"\bsy_[a-z0-9_]+", text)
    return [n for n in dict.fromkeys(mentioned) if renderer.names.get(n) == "c:func" and n not in names]


def see_also(names):
    return heading("See also", "-") + [", ".join(f":manpage:`{name}`" for name in names), ""]


class Manual:
    def __init__(self, folder):
        self.folder, self.pages, self.programs = folder, [], programs()
        self.renderer = Renderer(public_names(), links=False)
        self.header_of = {
            d.get_name(): h for h in header_names() for d in parse(h) if isinstance(d, FUNCTION)
        }

    def write(self, page, section, summary, lines, suffix="rst"):
        with open(os.path.join(self.folder, f"{page}.{suffix}"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        summary = summary[0].lower() + summary[1:]
        self.pages.append((page, page, summary, "", section))

    def function(self, header, about, function):
        name, comment = function.get_name(), lines_of(function)
        text, renderer = Text(comment), self.renderer
        out = [":orphan:", ""] + heading(name) + heading("Synopsis", "-")
        out += block([f"#include <slabyard/{header}>", ""] + prototype(function))
        out += heading("Description", "-") + renderer.body(text.description)
        if text.returns:
            out += heading("Return value", "-") + renderer.returned(text)
        if text.errors:
            out += heading("Errors", "-") + renderer.errors(text.errors)
        threads = text.threads or about.threads
        if threads:
            body = renderer.body(threads)
            out += heading("Threads", "-") + [body[0][0].upper() + body[0][1:]] + body[1:]
        out += heading("Examples", "-") + self.example(name, text)
        others = references(renderer, "\n".join(comment), [name])
        others = [f"{other}(3)" for other in others] + [f"slabyard_{header[:-2]}(3)", "slabyard(7)"]
        self.write(name, 3, text.summary, out + see_also(others))

    def example(self, name, text):
        if text.example:
            return self.renderer.body(text.example)
        found = [(self.strangers(name, program), where != TOUR, lines, where, program)
                 for lines, where, program in self.programs if re.search(rf"\b{name}\(", program)]
        found = sorted(one for one in found if one[0] is not None)
        if not found:
            logging.getLogger(__name__).warning("%s has no example: add one to its comment", name)
            return []
        *_, where, program = found[0]
        return [f"From ``{where}``; the tests run this program.", ""] + block(program.rstrip("\n").split("\n"))

    def strangers(self, name, program):
        """How many functions of other headers the program calls; None if it is not about `name`."""
        called = [self.header_of[call] for call in set(re.findall(r"\bsy_\w+(?=\()", program))
                  if call in self.header_of]
        own = called.count(self.header_of[name])
        others = sum(header not in (self.header_of[name], *NEEDED_BY_MOST) for header in called)
        return others if own > others else None

    def source_of(self, header, declaration):
        """A type as it is written in the header, with its comments."""
        lines = read("include", "slabyard", header).split("\n")
        at = declaration.get_line() - 1
        while "*/" not in lines[at]:  # the comment before it
            at += 1
        taken = []
        for line in lines[at + 1 :]:
            taken.append(line)
            if (line.startswith(("}", "enum {", "typedef", "struct")) and line.endswith(";")) or (
                line.startswith("#define")
            ):
                break
            if len(taken) > 1 and line.endswith(";") and "{" not in "".join(taken):
                break
        return taken

    def header(self, header):
        declarations = list(parse(header))
        opening = declarations[0]
        words = "\n".join(lines_of(opening))
        words = re.sub(r"^(?:slabyard/)?[a-z]+\.h: ", "", words)
        words = words[0].upper() + words[1:]
        about, page, renderer = Text(words.split("\n")), f"slabyard_{header[:-2]}", self.renderer
        out = [":orphan:", ""] + heading(page) + heading("Synopsis", "-")
        out += block([f"#include <slabyard/{header}>"])
        out += heading("Description", "-") + renderer.body(about.description)
        if about.threads:
            body = renderer.body(about.threads)
            out += heading("Threads", "-") + [body[0][0].upper() + body[0][1:]] + body[1:]
        functions = [d for d in declarations if isinstance(d, FUNCTION)]
        types = [d for d in declarations if not isinstance(d, (FUNCTION, docstring.TextDocstring))]
        if types:
            out += heading("Types and constants", "-")
        for declaration in types:
            out += renderer.rst(lines_of(declaration)) + [""]
            out += block(self.source_of(header, declaration))
        out += heading("Functions", "-")
        for function in functions:
            out += [f":manpage:`{function.get_name()}(3)`"]
            out += ["   " + renderer.inline(Text(lines_of(function)).summary), ""]
            self.function(header, about, function)
        others = [f"slabyard_{h[:-2]}(3)" for h in header_names() if h != header]
        summary = re.split(r"[.:] ", about.summary)[0]
        self.write(page, 3, summary, out + see_also(others + ["slabyard(7)"]))

    def options(self):
        text = plain_links(read("docs", "options.md"))
        def row(match):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", match.group())[1:-1]]
            name, values, bare, initial, meaning = (cell.replace("\\|", "|") for cell in cells)
            alone = f"; alone: {bare}" if bare else ""
            return f"{name} ({values}; default: {initial}{alone})\n: {meaning}\n"

        text = re.sub(r"(?m)^\| option \|.*\n\|[-|]+\n", "", text)
        text = re.sub(r"(?m)^\| `[a-z-]+` \|.*$", row, text)
        text = text.replace("# Options: set", "# slabyard\n\nSet", 1)
        self.write("slabyard", 7, "options that are set without recompiling", [text], "md")
        os.rename(self.path("slabyard.md"), self.path("slabyard-options.md"))
        self.pages[-1] = ("slabyard-options",) + self.pages[-1][1:]

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self):
        """A page for the tool and for each `## slabyard COMMAND: what it does`."""
        general, *commands = re.split(r"(?m)^## slabyard (?=[a-z]+: )", plain_links(read("docs", "tool.md")))
        last = commands[-1]
        end = re.search(r"(?m)^## ", last)
        commands[-1], after = last[: end.start()], last[end.start() :]
        names = [command.split(":")[0] for command in commands]
        listed = "\n".join(f"{{manpage}}`slabyard-{name}(1)`\n: {command.split(': ', 1)[1].splitlines()[0]}\n"
                           for name, command in zip(names, commands))
        general = re.sub(r"^# .*", "# slabyard\n\n## Description", general)
        pages = ", ".join(f"{{manpage}}`slabyard-{name}(1)`" for name in names)
        text = f"{general}\n## Commands\n\n{listed}\n{after}\n## See also\n\n{pages}, {{manpage}}`slabyard(7)`\n"
        self.write("slabyard", 1, "record, replay and compare the allocations of a program", [text], "md")
        for name, command in zip(names, commands):
            title, body = command.split("\n", 1)
            text = f"# slabyard-{name}\n{body}\n## See also\n\n{{manpage}}`slabyard(1)`\n"
            text = text.replace("\n### ", "\n## ")
            self.write(f"slabyard-{name}", 1, title.split(": ", 1)[1], [text], "md")

    def everything(self):
        for header in header_names():
            self.header(header)
        self.options()
        self.tool()
        contents = ["Manual", "======", "", ".. toctree::", "   :hidden:", ""]
        contents += [f"   {page[0]}" for page in self.pages if page[4] != 3]
        with open(self.path("index.rst"), "w", encoding="utf-8") as file:
            file.write("\n".join(contents) + "\n")
        return self.pages


def plain_links(text):
    text = re.sub(r"(?m)^\(.*\)=\n", "", text)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def write_links(app, failure):
    """Adds a page for each type and constant, so that `man sy_cache_config` shows its header."""
    if failure or app.builder.name != "man":
        return
    for header in header_names():
        for declaration in parse(header):
            name = declaration.get_name()
            if isinstance(declaration, (FUNCTION, docstring.TextDocstring)) or not name:
                continue
            if re.fullmatch(r"\w+", name):
                path = os.path.join(app.outdir, "man3", name + ".3")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f".so man3/slabyard_{header[:-2]}.3\n")


def setup(app):
    manual = Manual(app.srcdir)
    app.config.man_pages = manual.everything()
    app.connect("build-finished", write_links)
    return {"parallel_read_safe": True}
