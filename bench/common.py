"""What all benchmark scripts share: contenders run in turns, ratios per round, lines of JSON.

A contender is a function that measures itself once and returns {bytes: microseconds}. `Race.run`
lets all of them run in turns, round after round, so that what disturbs the machine disturbs all;
the ratio (best peer's time / our time) is taken within each round.
"""
from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "bench"
BASELINES = ROOT / "bench" / "baselines"
BINARIES = ROOT / "build" / "release" / "bin"


class Times(dict[int, float]):
    """Bytes of the tensor → microseconds; `lines` is all that the program said."""

    lines: list[dict]


Contender = Callable[[], Times]


@functools.cache
def machine() -> dict:
    """What a result depends on besides the code."""

    def output(*command: str) -> str:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()

    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    changed = output("git", "status", "--porcelain", "--untracked-files=no")
    return {
        "commit": output("git", "rev-parse", "--short", "HEAD") + ("+" if changed else ""),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "compiler": output("g++", "-dumpfullversion"),
        "python": platform.python_version(),
    }


@dataclasses.dataclass
class Row:
    """One contender at one point of a table, over all rounds."""

    point: dict  # what was run: op, ranks, bytes, …
    name: str
    times_us: list[float]

    @property
    def median_us(self) -> float:
        return statistics.median(self.times_us)


@dataclasses.dataclass
class Race:
    """Contenders on the same work; `ours` are the names that are not peers."""

    table: str
    point: dict
    contenders: dict[str, Contender]
    ours: tuple[str, ...] = ("cais",)

    def run(self, rounds: int) -> list[dict]:
        """The table's lines, one per contender and size; a contender that fails is left out."""
        times: dict[str, dict[int, list[float]]] = {name: {} for name in self.contenders}
        for round_number in range(rounds):
            for name in list(self.contenders):
                try:
                    measured = self.contenders[name]()
                except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                    print(f"{self.table} {self.point} {name}: {error}", file=sys.stderr)
                    if name in self.ours:
                        raise
                    del self.contenders[name], times[name]
                    continue
                for size, microseconds in measured.items():
                    times[name].setdefault(size, []).append(microseconds)
            print(f"{self.table} {self.point}: round {round_number + 1}/{rounds}", file=sys.stderr)
        return [
            line
            for size in sorted({size for each in times.values() for size in each})
            for line in self.lines(size, {name: each[size] for name, each in times.items() if size in each})
        ]

    def lines(self, size: int, times: dict[str, list[float]]) -> Iterable[dict]:
        """One line for each contender at this size, from its times of all rounds."""
        peers = [name for name in times if name not in self.ours]
        for name, each in times.items():
            line = {
                "table": self.table, **self.point, "bytes": size, "who": name,
                "us": round(statistics.median(each), 2), "us_min": round(min(each), 2),
                "us_max": round(max(each), 2), "rounds": len(each),
            }
            if name in self.ours and peers:
                # The best peer is the one that is fastest over all rounds, at this very point.
                best = min(peers, key=lambda peer: statistics.median(times[peer]))
                ratios = [theirs / mine for theirs, mine in zip(times[best], each)]
                line |= {
                    "best_peer": best, "ratio": round(statistics.median(ratios), 3),
                    "ratio_min": round(min(ratios), 3), "ratio_max": round(max(ratios), 3),
                }
            yield line


def save(table: str, lines: list[dict]) -> pathlib.Path:
    """Writes build/bench/TABLE.jsonl: every line with the facts of the machine."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{table}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps({**machine(), **line}) + "\n")
    return path


def load(path: pathlib.Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Facts of a line that are results or circumstances, not the point at which it was measured.
RESULT_FIELDS = {
    "us", "us_min", "us_max", "p99_us", "p999_us", "rounds", "best_peer", "ratio", "ratio_min",
    "ratio_max", "of_link", "step_ms", "step_ms_min", "step_ms_max", "collectives_ms", "share",
    "step_ratio", "value", "value_min", "value_max", "cais_us",
    "fake_us", "c_api_us", "wanted", "holds", "commit", "cpu", "cores", "kernel", "compiler", "python",
}


def point(line: dict) -> tuple:
    """What tells a line from the others of its table: equal in two runs of the same benchmark."""
    return tuple(sorted((key, value) for key, value in line.items() if key not in RESULT_FIELDS))


def merge(old: list[dict], new: list[dict]) -> list[dict]:
    """`new`, and what `old` has at other points."""
    measured = {point(line) for line in new}
    return [line for line in old if point(line) not in measured] + new


def human(size: int) -> str:
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


def json_lines(text: str) -> list[dict]:
    """The JSON objects among the lines of a program's output."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def times_of(lines: list[dict], who: str) -> Times:
    """{bytes: us} of mpi_bench's, torch_bench's or cais_perf's lines; RuntimeError on wrong data."""
    if not lines:
        raise RuntimeError(f"{who} measured nothing")
    wrong = [line["bytes"] for line in lines if line["wrong"]]
    if wrong:
        raise RuntimeError(f"{who} computed wrong data at {wrong} bytes")
    times = Times({line["bytes"]: line["us"] for line in lines})
    times.lines = lines
    return times
