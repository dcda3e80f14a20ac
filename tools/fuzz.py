"""Runs the fuzz targets (preset fuzz), each for a time, and tells what each did.

    tools/fuzz.py [--seconds 3] [--jobs 2] [TARGET ...]

A target begins with its corpus, fuzz/corpus/TARGET, and keeps what it finds for the next run in
build/fuzz/found/TARGET. An input that breaks a property or a sanitizer's rule is left beside it as
crash-*; run `build/fuzz/bin/fuzz_TARGET FILE` to see it again, mend the code, and put the input
into the corpus. The canary must be broken by its fuzzer: one that is not fails.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
CANARY = "canary"
CANARY_SECONDS_MIN = 20  # it ends when it is found, in two
INPUT_SECONDS_MAX = 10
MEGABYTES_MAX = 2048


@dataclasses.dataclass
class Outcome:
    target: str
    executions: int
    broken: str  # why the target is no good; empty when it is
    output: str


def targets() -> list[str]:
    return sorted(path.name.removeprefix("fuzz_") for path in (BUILD / "bin").glob("fuzz_*"))


def run(target: str, seconds: int) -> Outcome:
    found = BUILD / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    corpus = ROOT / "fuzz" / "corpus" / target
    if target == CANARY:
        seconds = max(seconds, CANARY_SECONDS_MIN)
    command = [
        str(BUILD / "bin" / f"fuzz_{target}"), str(found), *([str(corpus)] if corpus.exists() else []),
        f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={MEGABYTES_MAX}", f"-artifact_prefix={found}/", "-print_final_stats=1",
    ]
    environment = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              env=environment, stdin=subprocess.DEVNULL, timeout=seconds + 120)
    except subprocess.TimeoutExpired as late:
        return Outcome(target, 0, "did not end", str(late.stderr))
    counted = re.search(r"number_of_executed_units:\s*(\d+)", done.stderr)
    return Outcome(target, int(counted[1]) if counted else 0, _verdict(target, done), done.stderr)


def _verdict(target: str, done: subprocess.CompletedProcess) -> str:
    if target != CANARY:
        return "" if done.returncode == 0 else f"exit status {done.returncode}"
    if "stack-buffer-overflow" in done.stderr and "canary.cpp" in done.stderr:
        for crash in (BUILD / "found" / CANARY).iterdir():
            crash.unlink()  # so that it is found anew each time
        return ""
    return "its bug was not found"


def run_all(names: list[str], seconds: int, jobs: int) -> list[Outcome]:
    """One line for each target as it ends, and the end of the output of those that broke."""
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(lambda name: run(name, seconds), names):
            verdict = f"FAILED: {outcome.broken}" if outcome.broken else "good"
            print(f"fuzz {outcome.target:16} {outcome.executions:10,} executions  {verdict}", flush=True)
            if outcome.broken:
                print("\n".join(outcome.output.splitlines()[-40:]), flush=True)
            outcomes.append(outcome)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3, help="for each target (3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("targets", nargs="*", help="all, when none is named")
    arguments = parser.parse_args()
    names = arguments.targets or targets()
    unknown = set(names) - set(targets())
    if unknown or not names:
        print(f"fuzz: no target {', '.join(sorted(unknown)) or 'is built'}; there are: "
              f"{', '.join(targets()) or 'none'}. `make build PRESET=fuzz` builds them.")
        return 2
    outcomes = run_all(names, arguments.seconds, arguments.jobs)
    return 1 if any(outcome.broken for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
