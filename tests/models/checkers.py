"""The programs that check the models: GenMC, and loom, which rust/explore runs.

A model is a function MODEL(name) in a C file of this folder. A checker runs it in many orders of
its threads, and with the values that the memory orders let a load see:

  genmc  interprets clang's output for the file, in all orders and with all values that the memory
         models RC11 (of C and C++) and IMM (of processors) allow. For a compare-exchange that
         fails, it uses the memory order of one that succeeds.
  loom   runs the compiled file, and interrupts a thread a few times in each execution. It treats a
         sequentially consistent operation as an acquiring and releasing one.
"""

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
MOST_SECONDS = 300  # time limit of one model


@dataclass
class Outcome:
    model: str
    passed: bool
    executions: int
    text: str  # the checker's output


def files():
    return sorted(FOLDER.glob("*.c"))


def models(file, checker):
    kinds = "MODEL(?:_FOR_LOOM|_DEEP)?" if isinstance(checker, Loom) else "MODEL"
    return re.findall(rf"^{kinds}\((\w+)\)", file.read_text(), re.M)


def include_flags(overlay):
    """Folders with headers and sources. A file in `overlay` replaces the one of the same name."""
    folders = ([overlay] if overlay else []) + [FOLDER, ROOT / "src", ROOT / "include"]
    return [f"-I{folder}" for folder in folders]


def read_by(file):
    """The sources and headers of the library that a file with models includes."""
    command = ["clang", "-std=gnu11", "-MM", *include_flags(None), str(file)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    paths = {Path(word).resolve() for word in words if word != "\\" and not word.endswith(":")}
    return {path for path in paths if path.is_relative_to(ROOT) and path.parent != FOLDER}


def run(command):
    """(the output of the command, whether it succeeded)."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    return done.stdout + done.stderr, done.returncode == 0


class Genmc:
    def __init__(self, memory_model):
        self.name = f"genmc {memory_model}"
        self.memory_model = memory_model

    @staticmethod
    def is_there():
        return shutil.which("genmc") is not None

    def outcomes(self, file, names, overlay=None):
        """Checks these models of the file, and yields the outcomes."""
        for name in names:
            # GenMC must not treat a loop that tries again as one that waits, because a load before
            # the loop may have another memory order than one in it. And with debug information it
            # would name each element of each array.
            text, passed = run(
                [
                    "genmc",
                    f"--{self.memory_model}",
                    "--disable-estimation",
                    "--disable-spin-assume",
                    "--disable-loop-jump-threading",
                    f"--program-entry-function={name}",
                    "--",
                    "-DMODEL_GENMC",
                    "-std=gnu11",
                    "-g0",
                    *include_flags(overlay),
                    str(file),
                ]
            )
            seen = re.search(r"complete executions explored: (\d+)", text)
            passed = passed and seen is not None and "No errors were detected" in text
            if not passed and "Verification unsuccessful" not in text:
                raise RuntimeError(f"genmc could not run {name}:\n{text}")
            yield Outcome(name, passed, int(seen[1]) if seen else 0, text)


class Loom:
    name = "loom"

    def __init__(self):
        self.library = self.build()

    @staticmethod
    def is_there():
        return all(shutil.which(tool) for tool in ("cargo", "clang", "objcopy"))

    @staticmethod
    def build():
        """The library with which the models are linked."""
        command = [
            "cargo",
            "build",
            "--locked",
            "--release",
            "-p",
            "slabyard-explore",
            "--message-format=json",
            "-q",
        ]
        done = subprocess.run(
            command, cwd=ROOT / "rust", check=True, capture_output=True, text=True
        )
        made = [json.loads(line).get("filenames", []) for line in done.stdout.splitlines()]
        return next(name for names in made for name in names if "slabyard_explore" in name)

    def program(self, file, overlay, scratch):
        """Compiles the file and links it without the functions that are not called. It links even
        if functions are undefined; the program crashes if it calls one.
        """
        compiled, program = f"{scratch}/{file.stem}.o", f"{scratch}/{file.stem}"
        commands = [
            [
                "clang",
                "-std=gnu11",
                "-O1",
                "-g",
                "-fsanitize=thread",
                "-femulated-tls",
                "-ffunction-sections",
                "-fdata-sections",
                *include_flags(overlay),
                "-c",
                str(file),
                "-o",
                compiled,
            ],
            [
                "objcopy",
                "--redefine-sym",
                "memset=model_memset",
                "--redefine-sym",
                "memcpy=model_memcpy",
                compiled,
            ],
            [
                "clang",
                "-no-pie",
                "-Wl,--gc-sections,--unresolved-symbols=ignore-all",
                compiled,
                self.library,
                "-lpthread",
                "-ldl",
                "-lm",
                "-o",
                program,
            ],
        ]
        for command in commands:
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL if overlay else None)
        return program

    def outcomes(self, file, names, overlay=None):
        with tempfile.TemporaryDirectory() as scratch:
            program = self.program(file, overlay, scratch)
            for name in names:
                text, passed = run([program, name])
                seen = re.search(rf"^{name} (\d+)$", text, re.M)
                yield Outcome(name, passed and bool(seen), int(seen[1]) if seen else 0, text)


def checkers(imm=True):
    """The checkers that are installed, the fastest first."""
    there = [Loom()] if Loom.is_there() else []
    if Genmc.is_there():
        there += [Genmc("rc11")] + ([Genmc("imm")] if imm else [])
    return there
