"""S6 — latency of small messages: percentiles of all-reduce and barrier (docs/benchmarks.md).

Shared memory beside the MPIs; UDP over the loopback beside Open MPI over TCP. The times of an
iteration are those of its slowest rank.
"""
from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable

import contenders
from common import RESULTS, Race, Times, human, load, save
from contenders import Work
from tables import circumstances, microseconds, put, table

RANKS = (2, 4, 8)
PERCENTILES = {"p50": "us", "p99": "p99_us", "p99.9": "p999_us"}
OURS = ("cais",)
REPEATS = {"shm": 3000, "udp": 500}


def works(transport: str, ranks: int) -> Iterable[Work]:
    yield Work("all_reduce", ranks, low=8, high=16 << 10, factor=4, repeats=REPEATS[transport])
    yield Work("barrier", ranks, low=8, high=8, repeats=REPEATS[transport])


def contenders_for(transport: str, work: Work) -> dict[str, Callable[[], Times]]:
    if transport == "udp":
        return {"cais": lambda: contenders.cais(work, CAIS_TRANSPORT="udp"),
                "open_mpi": lambda: contenders.open_mpi(work, "--mca", "pml", "ob1", "--mca", "btl",
                                                        "tcp,self", "--mca", "btl_tcp_if_include", "lo")}
    found = {"cais": lambda: contenders.cais(work),
             "open_mpi": lambda: contenders.open_mpi(work),
             "intel_mpi": lambda: contenders.intel_mpi(work)}
    if work.ranks <= (os.cpu_count() or 1):
        found["mpich"] = lambda: contenders.mpich(work)  # spins without yielding
    return found


def race(transport: str, work: Work, rounds: int) -> list[dict]:
    """In turns, as Race runs them; one run gives all percentiles."""
    runners = contenders_for(transport, work)
    times: dict[tuple[int, str], dict[str, list[float]]] = {}
    for _ in range(rounds):
        for who, runner in runners.items():
            for line in runner().lines:
                for percentile, field in PERCENTILES.items():
                    place = times.setdefault((line["bytes"], percentile), {})
                    place.setdefault(who, []).append(line[field])
    found = []
    for (size, percentile), each in times.items():
        point = {"op": work.op, "ranks": work.ranks, "transport": transport, "percentile": percentile}
        found += Race("S6", point, {}, OURS).lines(size, each)
    return found


def page(lines: list[dict]) -> str:
    text = circumstances(lines[0]) + (" Microseconds p50 / p99 / p99.9, medians over the rounds; in "
                                      "brackets best peer's p50 / ours. More ranks than cores: the "
                                      "high percentiles are the scheduler's time slices.\n\n")
    for transport in ("shm", "udp"):
        chosen = [line for line in lines if line["transport"] == transport]
        columns = sorted({(line["ranks"], line["who"]) for line in chosen},
                         key=lambda column: (column[0], column[1] not in OURS, column[1]))
        cells: dict[tuple, dict[str, dict]] = {}
        for line in chosen:
            place = (line["op"], line["bytes"], line["ranks"], line["who"])
            cells.setdefault(place, {})[line["percentile"]] = line

        def cell(op: str, size: int, column: tuple) -> str:
            found = cells.get((op, size, *column))
            if found is None:
                return ""
            ratio = f" (**{found['p50']['ratio']:.2f}**)" if "ratio" in found["p50"] else ""
            return " / ".join(microseconds(found[name]["us"]) for name in PERCENTILES) + ratio

        rows = [[f"{op} {human(size)}" if op != "barrier" else op] + [cell(op, size, column) for column in columns]
                for op, size in sorted({(line["op"], line["bytes"]) for line in chosen})]
        if rows:
            text += f"{transport}:\n\n"
            text += table([""] + [f"N={ranks} {who}" for ranks, who in columns], rows) + "\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="N = 2 and 4, 2 rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ranks", nargs="+", type=int)
    parser.add_argument("--transports", nargs="+", choices=("shm", "udp"), default=("shm", "udp"))
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the results")
    arguments = parser.parse_args()
    lines = load(RESULTS / "S6.jsonl")
    if arguments.page:
        put("S6", page(lines))
        return
    contenders.set_up()
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    for ranks in arguments.ranks or (RANKS[:2] if arguments.quick else RANKS):
        for transport in arguments.transports:
            # What was measured before is kept, unless it is measured again.
            lines = [line for line in lines if (line["ranks"], line["transport"]) != (ranks, transport)]
            for work in works(transport, ranks):
                lines += race(transport, work, rounds)
            save("S6", lines)


if __name__ == "__main__":
    main()
