#!/usr/bin/env python3
"""Checks the table in docs/malloc.md of the mistakes that the drop-in malloc notices.

PROGRAM is mistakes.cpp, compiled. It makes each of its mistakes three times: with the drop-in
malloc as it is, with each object guarded (`sample` guards one object in 50,000 by default), and
with checks.

Usage: tests/malloc/mistakes.py PROGRAM LIBRARY
           compares the results with the table, and fails if they differ
       tests/malloc/mistakes.py PROGRAM LIBRARY NAME=LIBRARY...
           prints a table with columns for other preloaded libraries, too; an empty LIBRARY is glibc
"""
import os
import pathlib
import re
import signal
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/malloc.md"
HEAD = "| mistake |"
LONG, SHORT = 20000, 100  # rounds of the program after the mistake
OWN = [  # the name of a column, the options, and the rounds
    ("by default", "sample=off", LONG),
    ("if the object is sampled", "sample=all", SHORT),
    ("with checks", "sample=off,check,redzone,poison,quarantine,explain", SHORT),
]


def noticed(program, number, library, options, rounds):
    """What happened, as a word of the table; empty if the program ended normally."""
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "SLABYARD")}
    if library:
        env["LD_PRELOAD"] = library
    if options:
        env["SLABYARD"] = "tools=off," + options
    ran = subprocess.run([program, number, str(rounds)], env=env, capture_output=True, timeout=60)
    if b"cannot be preloaded" in ran.stderr:
        sys.exit(ran.stderr.decode())
    said = ran.stdout.split()
    if ran.returncode == 0:
        return "message" if ran.stderr.strip() else ""
    if -ran.returncode not in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP):
        sys.exit(f"mistake {number}: status {ran.returncode}, {ran.stderr.decode()}")
    word = "reported" if ran.stderr.strip() else "crash"
    return word + (" later" if b"made" in said else "")


def measure(program, mistakes, columns):
    return {
        words: [noticed(program, number, *how) for _, *how in columns]
        for number, words in mistakes
    }


def written(names):
    """The columns of these names in the document's table."""
    lines = iter(DOCUMENT.read_text().splitlines())
    head = next((line for line in lines if line.startswith(HEAD)), "")
    titles = cells(head)
    if any(name not in titles for name in names):
        sys.exit(f"docs/malloc.md has no table of mistakes with the columns {', '.join(names)}")
    next(lines)
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        row = dict(zip(titles, cells(line)))
        rows[row["mistake"]] = [row[name] for name in names]
    return rows


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main():
    program, library = sys.argv[1:3]
    listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    mistakes = [line.split(" ", 1) for line in listed.splitlines()]
    own = [(name, os.path.realpath(library), options, rounds) for name, options, rounds in OWN]
    others = [other.split("=", 1) for other in sys.argv[3:]]
    if others:
        columns = [(name, path, "", LONG) for name, path in others] + own
        print("| mistake | " + " | ".join(name for name, *_ in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for words, found in measure(program, mistakes, columns).items():
            print(f"| {words} | " + " | ".join(found) + " |")
        return
    found, expected = measure(program, mistakes, own), written([name for name, *_ in OWN])
    wrong = [
        f"{words}: {dict(zip((name for name, *_ in OWN), found.get(words, [])))}, "
        f"the document has {expected.get(words)}"
        for words in sorted(found.keys() | expected.keys())
        if found.get(words) != expected.get(words)
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
