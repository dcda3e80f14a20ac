"""S1 — ranks on one machine, over shared memory (docs/benchmarks.md).

The MPIs against the C API (cais_perf), with any memory and with memory that CAIS allocated; Gloo
against torch_cais, and what torch_cais adds to a small op. What was measured before is kept, unless
it is measured again (--fresh: not).
"""
from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Callable, Iterable

import contenders
import memory_speed
import torch_overhead
from common import RESULTS, Race, human, load, merge, save
from contenders import Work
from tables import circumstances, microseconds, put, table

OPS = ("all_reduce", "all_gather", "reduce_scatter")
RANKS = (2, 4, 8)
SIZES = {
    "small": dict(low=16, high=8 << 10, factor=8, repeats=200),
    "medium": dict(low=64 << 10, high=512 << 10, factor=8, repeats=50),
    "large": dict(low=4 << 20, high=32 << 20, factor=8, repeats=10),
    "huge": dict(low=64 << 20, high=64 << 20, factor=8, repeats=5),
}
# All sizes in one run: to start PyTorch's ranks takes longer. Gloo needs milliseconds for the smallest.
TORCH_SIZES = dict(low=16, high=32 << 20, factor=8, repeats=10)
ADDED_US_MAX = 3.0
OURS = ("cais", "cais_memory", "torch_cais", "torch_cais_memory")
KIB, MIB = 1 << 10, 1 << 20


def mpi_contenders(work: Work) -> dict[str, Callable]:
    found = {
        "cais": lambda: contenders.cais(work),
        "cais_memory": lambda: contenders.cais(work, memory="cais"),
        "open_mpi": lambda: contenders.open_mpi(work),
        "intel_mpi": lambda: contenders.intel_mpi(work),
    }
    if work.ranks <= (os.cpu_count() or 1):
        found["mpich"] = lambda: contenders.mpich(work)  # spins without yielding
    return found


def torch_contenders(work: Work, dtype: str) -> dict[str, Callable]:
    return {
        "torch_cais": lambda: contenders.torch_backend("cais", work, dtype),
        "torch_cais_memory": lambda: contenders.torch_backend("cais", work, dtype, CAIS_ALLOCATOR="1"),
        "gloo": lambda: contenders.torch_backend("gloo", work, dtype),
    }


def c_races(ops: Iterable[str], ranks: int, sizes: Iterable[str]) -> Iterable[Race]:
    for op in ops:
        for name in sizes:
            # The point holds what tells the races apart; `api` keeps the C API's peers from torch's.
            yield Race("S1", {"op": op, "ranks": ranks, "dtype": "float32", "api": "c"},
                       mpi_contenders(Work(op, ranks, **SIZES[name])), OURS)


def torch_races(ops: Iterable[str], ranks: int) -> Iterable[Race]:
    for op in ops:
        for dtype in ("float32", "bfloat16") if op == "all_reduce" else ("float32",):
            yield Race("S1", {"op": op, "ranks": ranks, "dtype": dtype, "api": "torch"},
                       torch_contenders(Work(op, ranks, **TORCH_SIZES), dtype), OURS)


# The bars of S1. Each yields (what, measured, wanted).


def _ratios(lines: list[dict], who: str, op: str, ranks: int, low: int = 0,
            high: int = 1 << 40) -> list[float]:
    return [line["ratio"] for line in lines
            if line.get("who") == who and line["op"] == op and line["ranks"] == ranks
            and low <= line["bytes"] <= high and line["dtype"] == "float32" and "ratio" in line]


def bars(lines: list[dict]) -> Iterable[tuple[str, float, float]]:
    """Bars on ratios, which should be at least what is wanted."""

    def least(who: str, op: str, ranks: int, *span: int) -> float:
        return min(_ratios(lines, who, op, ranks, *span), default=math.nan)

    for op in OPS:
        for ranks in RANKS:
            ratios = _ratios(lines, "cais", op, ranks)
            mean = statistics.geometric_mean(ratios) if ratios else math.nan
            yield f"1: {op}, N={ranks}, any memory, every size", min(ratios, default=math.nan), 0.95
            yield f"1: {op}, N={ranks}, any memory, geometric mean", mean, 1.3
    for ranks, wanted in ((2, 1.5), (4, 2.0), (8, 1.2)):
        yield (f"2: all_reduce, N={ranks}, any memory, from 4 MB on",
               least("cais", "all_reduce", ranks, 4 * MIB), wanted)
    for ranks, start in ((2, 64 * KIB), (4, 64 * KIB), (8, MIB)):
        yield (f"3: all_reduce, N={ranks}, memory of CAIS, from {human(start)}B on",
               least("cais_memory", "all_reduce", ranks, start), 3.0)
    for ranks in RANKS:
        for who, memory in (("torch_cais", "any memory"), ("torch_cais_memory", "memory of CAIS")):
            yield (f"4: all_reduce, N={ranks}, torch, {memory}, up to 8 KB",
                   least(who, "all_reduce", ranks, 0, 8 * KIB), 12.0)
            yield (f"4: all_reduce, N={ranks}, torch, {memory}, from 4 MB on",
                   least(who, "all_reduce", ranks, 4 * MIB), 5.0)


def bar_lines(lines: list[dict]) -> list[dict]:
    found = [{"table": "S1", "bar": what, "value": round(value, 2), "wanted": f"≥ {wanted}", "holds": value >= wanted}
             for what, value, wanted in bars([line for line in lines if "who" in line]) if not math.isnan(value)]
    added = [line["value"] for line in lines if line.get("what") == torch_overhead.WHAT]
    if added:
        found.append({"table": "S1", "bar": "5: added by torch_cais to a small all_reduce, us", "value": max(added),
                      "wanted": f"≤ {ADDED_US_MAX}", "holds": max(added) <= ADDED_US_MAX})
    return found


# The page


def _times_table(lines: list[dict], op: str, api: str, dtype: str) -> str:
    chosen = [line for line in lines if (line["op"], line["api"], line["dtype"]) == (op, api, dtype)]
    if not chosen:
        return ""
    columns = sorted({(line["ranks"], line["who"]) for line in chosen},
                     key=lambda column: (column[0], column[1] not in OURS, column[1]))
    cells = {(line["bytes"], line["ranks"], line["who"]): line for line in chosen}

    def cell(size: int, column: tuple) -> str:
        line = cells.get((size, *column))
        if line is None:
            return ""
        ratio = f" (**{line['ratio']:.2f}**)" if "ratio" in line else ""
        return microseconds(line["us"]) + ratio

    head = ["bytes"] + [f"N={ranks} {who}" for ranks, who in columns]
    sizes = sorted({line["bytes"] for line in chosen})
    rows = [[human(size)] + [cell(size, column) for column in columns] for size in sizes]
    return f"{op}, {dtype}:\n\n{table(head, rows)}\n"


def _overhead_table(lines: list[dict]) -> str:
    if not lines:
        return ""
    rows = [[human(line["bytes"]), line["cais_us"], line["fake_us"], line["c_api_us"], line["value"],
             f"{line['value_min']}–{line['value_max']}"] for line in lines]
    head = ["bytes", "cais", "a backend that does nothing", "C API", "added by torch_cais", "min–max"]
    return f"A blocking dist.all_reduce, {torch_overhead.RANKS} ranks, microseconds:\n\n{table(head, rows)}\n"


def page(lines: list[dict]) -> str:
    timed = [line for line in lines if "who" in line]
    speeds = ", ".join(f"{line['what']} {line['value']} GB/s" for line in lines
                       if line.get("what") in memory_speed.NAMES)
    text = f"{circumstances(timed[0])} One core's memory: {speeds}.\n\n"
    text += ("Microseconds, median over the rounds; in brackets best peer's time / ours of the same "
             "round, median. `cais`: any memory; `cais_memory`: memory from `cais_alloc` or, in torch, "
             "`CAIS_ALLOCATOR=1`.\n\n")
    for op in OPS:
        text += _times_table(timed, op, "c", "float32")
    for op, dtype in [(op, "float32") for op in OPS] + [("all_reduce", "bfloat16")]:
        text += _times_table(timed, op, "torch", dtype)
    text += _overhead_table([line for line in lines if line.get("what") == torch_overhead.WHAT])
    verdicts = bar_lines(lines)
    held = sum(line["holds"] for line in verdicts)
    text += f"Bars ({held} of {len(verdicts)} hold):\n\n"
    return text + table(["bar", "measured", "wanted", ""],
                        [[line["bar"], line["value"], line["wanted"],
                          "holds" if line["holds"] else "**does not hold**"] for line in verdicts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="N = 2 and 4, C API, small to large, 3 rounds")
    parser.add_argument("--fresh", action="store_true", help="keep nothing that was measured before")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ops", nargs="+", choices=OPS, default=OPS)
    parser.add_argument("--ranks", nargs="+", type=int)
    parser.add_argument("--sizes", nargs="+", choices=SIZES)
    parser.add_argument("--apis", nargs="+", choices=("c", "torch"))
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the results")
    arguments = parser.parse_args()
    lines = [] if arguments.fresh else [line for line in load(RESULTS / "S1.jsonl") if "bar" not in line]
    quick = arguments.quick
    if arguments.page:
        put("S1", page(lines))
        return
    contenders.set_up()
    rounds = arguments.rounds or (3 if quick else 5)
    apis = arguments.apis or (("c",) if quick else ("c", "torch"))
    lines = merge(lines, [{"table": "S1", **line} for line in memory_speed.measure()])
    for ranks in arguments.ranks or (RANKS[:2] if quick else RANKS):
        races = []
        if "c" in apis:
            races += c_races(arguments.ops, ranks, arguments.sizes or (list(SIZES)[:3] if quick else SIZES))
        if "torch" in apis:
            races += torch_races(arguments.ops, ranks)
        for race in races:
            lines = merge(lines, race.run(rounds))
            save("S1", lines)
    if "torch" in apis:
        lines = merge(lines, [{"table": "S1", **line} for line in torch_overhead.measure(rounds)])
    verdicts = bar_lines(lines)
    save("S1", lines + verdicts)
    for line in verdicts:
        verdict = "holds" if line["holds"] else "DOES NOT HOLD"
        print(f"S1 {line['bar']}: {line['value']} (wanted {line['wanted']}) {verdict}")


if __name__ == "__main__":
    main()
