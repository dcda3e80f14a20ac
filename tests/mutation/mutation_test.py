"""Breaks the protocol on purpose, in one place at a time, and holds simulator and model checker to it:
whatever they do not find fails this test. First of all, unbroken code must pass the same way.

    mutation_test.py BUILD_DIR [NAME ...]

A mutant is the one source file that it changes, compiled in BUILD_DIR/mutants and linked before the
library that holds the right one. The repository is not touched.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from mutants import MUTANTS, Mutant

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS_MIN = 25
SECONDS_MAX = 100  # of one program; a mutant may go round and round
# Small groups whose switches and controllers come and go.
CONTROL = [
    "controlled=1", "controller_crashes=20", "switch_crashes=20", "switch_cut_offs=20",
    "rank_crashes=0", "safety_ms=1000", "control_doubled=500000", "control_loss=100000", "sessions=1",
    "lives=1", "ranks=3", "ops=60", "elements=40", "think_us=30000", "mismatch=0", "depth=2",
]
# Cheap ones first: most mutants are found at once.
CHECKS = [
    ("cais-sim", ["run", "--seeds", "20"]),
    ("cais-check", ["--states", "1000", "--fair-every", "4"]),
    ("cais-check", ["--states", "30000", "--world", "control-*"]),
    ("cais-sim", ["found", str(ROOT / "tests/sim/found.txt")]),
    ("cais-sim", ["run", "--first", "21", "--seeds", "150"]),
    ("cais-sim", ["run", "--seeds", "2000", *(word for knob in CONTROL for word in ("--set", knob))]),
]
PROGRAMS = sorted({program for program, _ in CHECKS})


class Builder:
    """Compiles and links as the build does, but for the optimisation and the debug information."""

    def __init__(self, build: pathlib.Path):
        self.build = build
        self.folder = build / "mutants"
        self.folder.mkdir(exist_ok=True)
        entries = json.loads((build / "compile_commands.json").read_text())
        self.compile = {pathlib.Path(e["file"]): shlex.split(e["command"]) for e in entries}
        self.link = {program: self.link_command(program) for program in PROGRAMS}

    def link_command(self, program: str) -> list[str]:
        out = subprocess.run(
            ["ninja", "-t", "commands", "-s", f"bin/{program}"],
            cwd=self.build, check=True, capture_output=True, text=True,
        ).stdout
        words = shlex.split(out.strip().removeprefix(": && ").removesuffix(" && :"))
        return [word for word in words if word != "-g"]

    def object_of(self, name: str, file: str, source: str) -> pathlib.Path:
        path = self.folder / f"{name}.cpp"
        path.write_text(source)
        command = list(self.compile[ROOT / file])
        command[command.index("-o") + 1] = str(path.with_suffix(".o"))
        command[command.index("-c") + 1] = str(path)
        command = [word for word in command if word not in ("-g", "-O2", "-O3")]
        # What is taken out may leave a parameter unused; that is no news.
        run(command + ["-O1", "-Wno-error"], self.build)
        return path.with_suffix(".o")

    def program(self, program: str, name: str, objects: list[pathlib.Path]) -> pathlib.Path:
        path = self.folder / f"{name}.{program}"
        command = list(self.link[program])
        command[command.index("-o") + 1] = str(path)
        first = next(i for i, word in enumerate(command) if word.endswith(".o"))
        command[first:first] = [str(o) for o in objects]
        run(command + ["-s"], self.build)
        return path


def run(command: list[str], folder: pathlib.Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")


def finding(path: pathlib.Path, arguments: list[str]) -> str:
    """The line that says what is wrong; empty: nothing."""
    try:
        done = subprocess.run(
            [str(path)] + arguments, capture_output=True, text=True, errors="replace",
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return f"goes on for more than {SECONDS_MAX} s"
    if done.returncode == 0:
        return ""
    for line in (done.stdout + done.stderr).splitlines():
        if "FAILED:" in line or "check failed" in line:
            return line
    return f"exit status {done.returncode}"


def mutate(builder: Builder, mutant: Mutant) -> list[pathlib.Path]:
    source = (ROOT / mutant.file).read_text()
    if source.count(mutant.text) != 1:
        raise RuntimeError(
            f"mutant {mutant.name}: its text occurs {source.count(mutant.text)} times in {mutant.file}, "
            "and must occur once; the code has moved on, so should tests/mutation/mutants.py"
        )
    return [builder.object_of(mutant.name, mutant.file, source.replace(mutant.text, mutant.instead))]


def try_out(builder: Builder, name: str, objects: list[pathlib.Path]) -> str:
    linked: dict[str, pathlib.Path] = {}
    try:
        for program, arguments in CHECKS:
            if program not in linked:
                linked[program] = builder.program(program, name, objects)
            found = finding(linked[program], arguments)
            if found:
                return f"{program}: {found}"
    finally:
        for path in linked.values():
            path.unlink()
    return ""


def verdict(builder: Builder, mutant: Mutant) -> tuple[bool, str]:
    begun = time.monotonic()
    try:
        found = try_out(builder, mutant.name, mutate(builder, mutant))
    except RuntimeError as error:
        return False, f"BROKEN   {mutant.name}: {error}"
    seconds = time.monotonic() - begun
    if not found:
        return False, f"SURVIVED {mutant.name} ({mutant.clause}), {seconds:.0f} s: nothing found it"
    return True, f"killed   {mutant.name} ({mutant.clause}), {seconds:.0f} s, {found[:150]}"


def main() -> int:
    builder = Builder(pathlib.Path(sys.argv[1]).resolve())
    chosen = [m for m in MUTANTS if not sys.argv[2:] or m.name in sys.argv[2:]]
    if not sys.argv[2:] and len({m.name for m in MUTANTS}) < MUTANTS_MIN:
        print(f"there are {len(MUTANTS)} mutants, and should be {MUTANTS_MIN}")
        return 1
    unbroken = try_out(builder, "unbroken", [])
    if unbroken:
        print(f"nothing is broken, and yet: {unbroken}")
        return 1
    killed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for dead, line in pool.map(lambda mutant: verdict(builder, mutant), chosen):
            print(line, flush=True)
            killed += dead
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
