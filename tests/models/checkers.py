"""What runs the models: GenMC where it is installed, and loom, by way of rust/explore.

A model is a function MODEL(name) in a C file of this folder. A checker runs it in many orders of
its threads, and with the values that the memory orders let a load see:

  genmc  interprets what clang makes of the file, in all orders and with all values that the memory
         models RC11 and IMM allow: the one of C and C++, and one of processors. It takes the order
         of a compare-exchange that fails to be that of one that succeeds.
  loom   runs the file itself, and lets a thread be interrupted a few times in each execution. A
         sequentially consistent operation is an acquiring and releasing one to it.
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
MOST_SECONDS = 300  # that one model may take


@dataclass
class Outcome:
    model: str
    passed: bool
    executions: int
    text: str  # what the checker says


def files():
    return sorted(FOLDER.glob("*.c"))


def models(file, checker):
    kinds = "MODEL(?:_FOR_LOOM)?" if isinstance(checker, Loom) else "MODEL"
    return re.findall(rf"^{kinds}\((\w+)\)", file.read_text(), re.M)


def include_flags(overlay):
    """Folders with headers and sources; what lies in `overlay` stands for the file of that name."""
    folders = ([overlay] if overlay else []) + [FOLDER, ROOT / "src", ROOT / "include"]
    return [f"-I{folder}" for folder in folders]


def read_by(file):
    """The sources and headers of the library that a file with models includes."""
    command = ["clang", "-std=gnu11", "-MM", *include_flags(None), str(file)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    paths = {Path(word).resolve() for word in words if word != "\\" and not word.endswith(":")}
    return {path for path in paths if path.is_relative_to(ROOT) and path.parent != FOLDER}


def run(command):
    """What the command says, and whether it ended well."""
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
        """One by one, of these models in the file."""
        for name in names:
            # A loop that tries again is not to be taken for one that waits: the order of a load
            # before the loop need not be that of one in it. And it names each element of each array
            # that it has debug information of.
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
        """The library that the models are linked with."""
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
        """Compiles the file. What nothing calls in it is left out, and a function that is missing
        is not to be called."""
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
    """All that there are on this machine, the fastest first."""
    there = [Loom()] if Loom.is_there() else []
    if Genmc.is_there():
        there += [Genmc("rc11")] + ([Genmc("imm")] if imm else [])
    return there
