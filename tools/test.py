"""Runs every test of the repository and ends with one line: `N passed, N failed`.

Parts, in order: the C++ tests (preset dev), the Python tests, the fuzz targets for some seconds each,
and with --sanitizers the C++ tests under AddressSanitizer + UndefinedBehaviorSanitizer and under
ThreadSanitizer. A part that cannot be built or started counts as one failure. With --soak-minutes
the C++ and Python tests repeat in random order, and the fuzz targets run for longer, until the time
is up or one fails; before them come the model checker on 10^7 states and 24 simulated hours of fresh
seeds.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import fuzz

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "test-reports"
# What does not run under the sanitizers: tests of the sources and of what was built from them.
NOT_SANITIZED = "^(architecture|mutation)"
SOAK_STATES_PER_WORLD = "150000"  # 10^7 states in all
SOAK_STATES_PER_CONTROL_WORLD = "1500000"
SOAK_HOURS = "24"  # simulated
SOAK_MINUTES_MAX = 360  # one of these, on a busy machine
COMMAND_MINUTES_MAX = 60  # the build for a sanitizer from nothing, on two cores
FUZZ_SECONDS = 3  # for each target
FUZZ_SECONDS_SOAK = 60


@dataclasses.dataclass
class Part:
    """How one part of the tests ended."""

    name: str
    passed: int = 0
    skipped: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0


def run(command: list[str], minutes: float = COMMAND_MINUTES_MAX, **options) -> int:
    """Runs to the end, output to the terminal; 124 when it took longer than a command may."""
    try:
        return subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=60 * minutes, **options
        ).returncode
    except subprocess.TimeoutExpired:
        return 124


def read_report(part: Part, report: pathlib.Path, status: int) -> None:
    """Counts the cases of a JUnit file; a missing one, or a bad status without a culprit, fails."""
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                part.failures.append(name)
            elif case.get("status") == "fail":
                part.failures.append(name)
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                part.skipped += 1
            else:
                part.passed += 1
    else:
        part.failures.append(f"{part.name}: no test ran (exit status {status})")
    if status != 0 and not part.failures:
        part.failures.append(f"{part.name}: exit status {status} although no test failed")
    if status == 0 and part.passed == 0:
        part.failures.append(f"{part.name}: no test found")


def build(part: Part, preset: str, jobs: int) -> bool:
    configure = ["cmake", "--preset", preset, "--log-level=WARNING"]
    for command in (configure, ["cmake", "--build", "--preset", preset, "-j", str(jobs)]):
        status = run(command, stdout=subprocess.DEVNULL if command is configure else None)
        if status != 0:
            part.failures.append(
                f"{part.name}: `{' '.join(command)}` failed (exit status {status})")
            return False
    return True


def run_ctest(name: str, preset: str, jobs: int, options: list[str]) -> Part:
    part = Part(name)
    if not build(part, preset, jobs):
        return part
    report = REPORTS / f"{preset}.xml"
    report.unlink(missing_ok=True)
    status = run(
        ["ctest", "--preset", preset, "-j", str(jobs), "--progress", "--output-junit", str(report)]
        + options
    )
    read_report(part, report, status)
    return part


def run_pytest(options: list[str]) -> Part:
    part = Part("python")
    report = REPORTS / "python.xml"
    report.unlink(missing_ok=True)
    status = run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        + ["tests/python"] + options
    )
    read_report(part, report, status)
    return part


def run_fuzz(jobs: int, seconds: int) -> Part:
    part = Part("fuzz")
    if build(part, "fuzz", jobs):
        for outcome in fuzz.run_all(fuzz.targets(), seconds, jobs):
            if outcome.broken:
                part.failures.append(f"fuzz {outcome.target}: {outcome.broken}")
            else:
                part.passed += 1
    return part


def timed(function, *arguments) -> Part:
    begun = time.monotonic()
    part = function(*arguments)
    part.seconds = time.monotonic() - begun
    return part


def once(jobs: int, sanitizers: bool) -> list[Part]:
    parts = [
        timed(run_ctest, "c++", "dev", jobs, []),
        timed(run_pytest, []),
        timed(run_fuzz, jobs, FUZZ_SECONDS),
    ]
    if sanitizers:
        for preset in ("asan-ubsan", "tsan"):
            all_but = ["-E", NOT_SANITIZED]
            parts.append(timed(run_ctest, f"c++ {preset}", preset, jobs, all_but))
    return parts


def run_deep(name: str, program: str, options: list[str]) -> Part:
    """One long run of a program that ends with status 0 when it has found nothing."""
    part = Part(name)
    print(f"soak: {program} {' '.join(options)}", flush=True)
    status = run([str(ROOT / "build" / "dev" / "bin" / program)] + options, SOAK_MINUTES_MAX)
    if status == 0:
        part.passed = 1
    else:
        part.failures.append(f"{name}: {program} {' '.join(options)}: exit status {status}")
    return part


def deep(jobs: int) -> list[Part]:
    """What is too long for every day: the small worlds, and a day of the simulated network."""
    part = Part("build")
    for command in (["cmake", "--preset", "dev", "--log-level=WARNING"],
                    ["cmake", "--build", "--preset", "dev", "-j", str(jobs)]):
        if not part.failures and run(command) != 0:
            part.failures.append(f"`{' '.join(command)}` failed")
    if part.failures:
        return [part]
    first = str(random.SystemRandom().randrange(1 << 40))
    runs = [
        ("small worlds", "cais-check", ["--states", SOAK_STATES_PER_WORLD]),
        ("controllers", "cais-check",
         ["--states", SOAK_STATES_PER_CONTROL_WORLD, "--world", "control-*", "--fair-every", "16"]),
        ("simulator", "cais-sim",
         ["run", "--all-probes", "--first", first, "--seeds", "1", "--hours", SOAK_HOURS]),
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda one: timed(run_deep, *one), runs))


def soak(jobs: int, minutes: float) -> list[Part]:
    """Round after round in random order, each with its own seed, until time or the first failure."""
    parts = deep(jobs)
    end = time.monotonic() + 60 * minutes
    first_round = len(parts)
    while time.monotonic() < end and not any(part.failures for part in parts):
        seed = str(random.SystemRandom().randrange(1 << 31))
        os.environ["CAIS_TEST_SEED"] = seed
        os.environ["RC_PARAMS"] = f"seed={seed}"
        number = (len(parts) - first_round) // 3 + 1
        print(f"soak: round {number}, CAIS_TEST_SEED={seed}", flush=True)
        parts.append(timed(run_ctest, "c++", "dev", jobs, ["--schedule-random"]))
        parts.append(timed(run_pytest, []))
        parts.append(timed(run_fuzz, jobs, FUZZ_SECONDS_SOAK))
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sanitizers", action="store_true", help="also under the sanitizers")
    parser.add_argument("--soak-minutes", type=float, default=0.0)
    arguments = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    if arguments.soak_minutes > 0:
        parts = soak(arguments.jobs, arguments.soak_minutes)
    else:
        parts = once(arguments.jobs, arguments.sanitizers)

    print()
    for part in parts:
        print(
            f"{part.name:16} {part.passed:5} passed {len(part.failures):4} failed "
            f"{part.skipped:4} skipped {part.seconds:6.0f} s"
        )
    for part in parts:
        for failure in part.failures:
            print(f"FAILED {failure}")
    failed = sum(len(part.failures) for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
