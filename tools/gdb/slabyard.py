"""Slabyard in gdb: commands about the memory of the program, and pretty printers.

    slabyard account           where the memory is
    slabyard caches            caches and size classes
    slabyard threads           what waits in the magazines of threads
    slabyard pins              what keeps free memory
    slabyard whatis ADDRESS    what lies at the value of an expression
    slabyard verify            free objects that are in two places, or in the wrong one
    slabyard walk CACHE        the live objects of a cache, or its free slots with --free

The commands work for a program that gdb runs or is attached to, and for a core file. They call the
tool `slabyard`, which reads the memory of the stopped process, or the core file. `set slabyard-tool
PATH` names another tool. So gdb and the tool always give the same answer.

gdb loads this file by itself with libslabyard.so or libslabyard-malloc.so, if it is installed
below a folder of `show auto-load scripts-directory`. Otherwise: `source .../slabyard-gdb.py`.
"""

import re
import subprocess

import gdb
import gdb.printing


class Tool(gdb.Parameter):
    """The tool that the commands of Slabyard call: its path, or its name in a folder of PATH."""

    set_doc = "Set the tool that the commands of Slabyard call."
    show_doc = "Show the tool that the commands of Slabyard call."

    def __init__(self):
        super().__init__("slabyard-tool", gdb.COMMAND_FILES, gdb.PARAM_STRING)
        self.value = "slabyard"

    def get_set_string(self):
        return ""

    def get_show_string(self, value):
        return 'The tool of Slabyard is "%s".' % value


def core_file():
    """The path of the core file that gdb has open, or None."""
    about = gdb.execute("info files", to_string=True)
    found = re.search(r"Local core dump file:\s+[`'‘](.+?)['’], file type", about)
    return found.group(1) if found else None


def process():
    """What the tool calls the program: the number of its process, or the path of its core."""
    inferior = gdb.selected_inferior()
    connection = getattr(inferior, "connection", None)
    kind = connection.type if connection else ""
    if "remote" in kind:
        raise gdb.GdbError(
            "The program runs on another machine or under a server. Write a core there or with"
            " generate-core-file, and open it with the command `core`."
        )
    core = core_file()
    if core and kind in ("core", ""):
        return core
    if inferior.pid == 0:
        raise gdb.GdbError("There is no program yet: run it, attach to it, or open a core.")
    return str(inferior.pid)


def ask(subcommand, arguments):
    """Runs the tool, and shows what it says."""
    tool = gdb.parameter("slabyard-tool")
    try:
        ended = subprocess.run(
            [tool, subcommand, process(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise gdb.GdbError(
            "The tool %s cannot be run: %s. Install it, or name it with"
            " `set slabyard-tool PATH`." % (tool, error.strerror)
        )
    gdb.write(ended.stdout)
    said = ended.stderr.rstrip("\n")
    found_faults = subcommand == "verify" and ended.returncode == 1 and not said
    if ended.returncode != 0 and not found_faults:
        raise gdb.GdbError(said or "The tool %s ended with %d." % (tool, ended.returncode))
    if said:
        gdb.write(said + "\n", gdb.STDERR)


def address_of(expression):
    """The value of an expression as the tool reads addresses."""
    mask = (1 << 64) - 1
    return hex(int(gdb.parse_and_eval(expression)) & mask)


class Slabyard(gdb.Command):
    """Show the memory that Slabyard manages for the program, or for its core file."""

    def __init__(self):
        super().__init__("slabyard", gdb.COMMAND_DATA, gdb.COMPLETE_COMMAND, prefix=True)


class Plain(gdb.Command):
    """A subcommand whose arguments go to the tool as they are."""

    def __init__(self, name, about):
        self.__doc__ = about
        self.name = name
        super().__init__("slabyard " + name, gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        ask(self.name, gdb.string_to_argv(argument))


class WhatIs(gdb.Command):
    """Say what lies at an address: slabyard whatis EXPRESSION.
    The expression is a number or a pointer."""

    def __init__(self):
        super().__init__("slabyard whatis", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise gdb.GdbError("slabyard whatis needs an address.")
        ask("whatis", [address_of(argument)])


class Walk(gdb.Command):
    """List the live objects of a cache: slabyard walk CACHE [--free] [--most N].
    CACHE is the name of the cache, or *EXPRESSION, where the expression is a pointer to it. With
    --free, list the free slots that have memory. Quote a name or an expression with blanks."""

    def __init__(self):
        super().__init__("slabyard walk", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError("slabyard walk needs the name of a cache.")
        ask("walk", [address_of(word[1:]) if word.startswith("*") else word for word in words])


class CachePrinter:
    """Prints a cache by its name and sizes."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            name = self.value["name"].string(errors="replace")
            size, slot = int(self.value["size"]), int(self.value["layout"]["slot"])
        except gdb.error:
            return "cache (the library has no debug information)"
        return "cache %s: objects of %d bytes in slots of %d" % (name, size, slot)


class HandlePrinter:
    """Prints a handle by its two parts."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        handle = int(self.value)
        if handle == 0:
            return "no handle"
        return "%#x (ordinal %d, generation %d)" % (handle, handle & 0xFFFFFFFF, handle >> 32)


class Printers(gdb.printing.PrettyPrinter):
    """Finds the printer by the name of the type, or of its structure."""

    def __init__(self):
        super().__init__("slabyard")

    def __call__(self, value):
        kind = value.type.unqualified()
        if kind.name == "sy_handle":
            return HandlePrinter(value)
        plain = kind.strip_typedefs()
        if plain.code == gdb.TYPE_CODE_STRUCT and plain.tag == "sy_cache":
            return CachePrinter(value)
        return None


def register():
    Tool()
    Slabyard()
    Plain("account", "Show where the memory of the program is.")
    Plain("caches", "Show the caches and size classes of the program; --all shows all.")
    Plain("threads", "Show what waits in the magazines of threads; --all shows all.")
    Plain("pins", "Show which objects and which magazines keep free memory.")
    Plain("verify", "Look for free objects that are in two places, or in the wrong one.")
    WhatIs()
    Walk()
    gdb.printing.register_pretty_printer(None, Printers(), replace=True)


register()
