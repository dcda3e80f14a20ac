"""S2 — several hosts, the links between them limited (docs/benchmarks.md).

Hosts are network namespaces (bench/lab). Setting `a`: no box, every host adds its share of the
lanes. Setting `b`: a cais-switch in the middle whose port is as fast as all hosts' together.
Peers run over TCP: Gloo, Open MPI, MPICH. Needs root.
"""
import argparse
import os
import subprocess
import sys

import contenders
from common import BINARIES, RESULTS, Race, human, load, merge, save
from contenders import Work
from lab.lab import Lab
from tables import circumstances, microseconds, put, table

# Hosts and the rate of each link: slow enough that the link is the limit, not this machine's cores.
LINKS = {4: 500_000_000, 8: 200_000_000}  # bits per second
OPS = ("all_reduce", "all_gather", "reduce_scatter")
OURS = ("cais_a", "cais_b")
SMALL = dict(low=1 << 10, high=64 << 10, factor=8, repeats=20)
LARGE = dict(low=1 << 20, high=4 << 20, factor=4, repeats=5)


def limit_us(work_op: str, hosts: int, size: int) -> float:
    """No algorithm is faster: what a link must carry one way, at the link's full rate."""
    share = 1.0 if work_op == "all_reduce" else (hosts - 1) / hosts
    return share * size * 8 / LINKS[hosts] * 1e6


def start_switch(lab: Lab) -> subprocess.Popen:
    """The box; returns when it can be reached."""
    command = [str(BINARIES / "cais-switch"), "--listen", Lab.BOX_ADDRESS]
    process = lab.start(None, command, stdout=subprocess.PIPE, text=True)
    if not process.stdout.readline():
        raise RuntimeError(f"cais-switch ended at once (exit status {process.wait()})")
    return process


def race(lab: Lab, op: str, hosts: int, mtu: int, sizes: dict, rounds: int) -> list[dict]:
    work = Work(op, hosts, **sizes)
    race = Race(
        table="S2",
        point={"op": op, "ranks": hosts, "mtu": mtu, "link_mbit": LINKS[hosts] // 1_000_000},
        contenders={
            "gloo": lambda: contenders.hosts_torch(lab, "gloo", work),
            "open_mpi": lambda: contenders.hosts_open_mpi(lab, work),
            "mpich": lambda: contenders.hosts_mpich(lab, work),
            "cais_a": lambda: contenders.hosts_cais(lab, work),
            "cais_b": lambda: contenders.hosts_cais(lab, work, CAIS_SWITCH_IP=Lab.BOX_ADDRESS),
        },
        ours=OURS,
    )
    lines = race.run(rounds)
    for line in lines:
        line["of_link"] = round(limit_us(op, hosts, line["bytes"]) / line["us"], 3)
    return lines


def bars(lines: list[dict]) -> list[tuple[str, float, float]]:
    """(what, measured, wanted) for each bar that something was measured for; the worst point."""

    def worst(field: str, **wanted) -> float | None:
        low, high = wanted.pop("span")
        found = [line[field] for line in lines if field in line and low <= line["bytes"] <= high
                 and all(line[key] == value for key, value in wanted.items())]
        return min(found, default=None)

    small, large = (0, 64 << 10), (1 << 20, 1 << 40)
    found = []
    for hosts, bar in ((4, 1.42), (8, 1.62)):
        of = dict(op="all_reduce", ranks=hosts, who="cais_b", span=large)
        found.append((f"(b) all-reduce, {hosts} hosts, from 1 MB: best peer / cais", worst("ratio", **of), bar))
        for mtu, share in ((1500, 0.92), (9000, 0.96)):
            found.append((f"(b) all-reduce, {hosts} hosts, MTU {mtu}, from 1 MB: of the link's rate",
                          worst("of_link", mtu=mtu, **of), share))
    for hosts in LINKS:
        for op in OPS:
            found.append((f"(a) {op}, {hosts} hosts, from 1 MB: best peer / cais",
                          worst("ratio", op=op, ranks=hosts, who="cais_a", span=large), 0.97))
        for who in OURS:
            found.append((f"({who[-1]}) {hosts} hosts, up to 64 KB: best peer / cais",
                          worst("ratio", ranks=hosts, who=who, span=small), 0.85))
    return [bar for bar in found if bar[1] is not None]


def page(lines: list[dict]) -> str:
    text = circumstances(lines[0]) + (
        " Microseconds, median over the rounds; in brackets best peer's time / ours of the same round "
        "(median), and for ours the share of the link's rate.\n\n"
    )
    names = ("gloo", "open_mpi", "mpich", *OURS)
    for hosts, mtu, op in sorted({(line["ranks"], line["mtu"], line["op"]) for line in lines}):
        chosen = [line for line in lines if (line["ranks"], line["mtu"], line["op"]) == (hosts, mtu, op)]
        cells = {(line["bytes"], line["who"]): line for line in chosen}

        def cell(size: int, who: str) -> str:
            line = cells.get((size, who))
            if line is None:
                return ""
            ours = f" (**{line['ratio']:.2f}**, {line['of_link']:.0%})" if "ratio" in line else ""
            return microseconds(line["us"]) + ours

        text += f"{op}, {hosts} hosts at {LINKS[hosts] // 1_000_000} Mbit/s, MTU {mtu}\n\n"
        text += table(["bytes", *names], [[human(size), *(cell(size, who) for who in names)]
                                          for size in sorted({line["bytes"] for line in chosen})]) + "\n"
    return text + "Bars:\n\n" + table(
        ["bar", "worst measured", "wanted", ""],
        [[what, f"{value:.2f}", f"≥ {wanted}", "holds" if value >= wanted else "**does not hold**"]
         for what, value, wanted in bars(lines)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="all-reduce, 4 hosts, MTU 1500, 2 rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ops", nargs="+", choices=OPS)
    parser.add_argument("--hosts", nargs="+", type=int, choices=sorted(LINKS))
    parser.add_argument("--mtu", nargs="+", type=int)
    parser.add_argument("--sizes", choices=("small", "large", "all"), default="all")
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the results")
    arguments = parser.parse_args()
    lines = load(RESULTS / "S2.jsonl")
    if arguments.page:
        put("S2", page(lines))
        return
    if os.geteuid() != 0:
        sys.exit("S2 needs root: it makes network namespaces")
    quick = arguments.quick
    rounds = arguments.rounds or (2 if quick else 5)
    contenders.set_up()
    for hosts in arguments.hosts or ([4] if quick else sorted(LINKS)):
        for mtu in arguments.mtu or ([1500] if quick else [1500, 9000]):
            for op in arguments.ops or (OPS[:1] if quick else OPS):
                with Lab.limited(hosts, f"{LINKS[hosts]}bit", mtu) as lab:
                    start_switch(lab)
                    for name, sizes in (("small", SMALL), ("large", LARGE)):
                        if arguments.sizes in (name, "all"):
                            lines = merge(lines, race(lab, op, hosts, mtu, sizes, rounds))
                            save("S2", lines)
    for what, value, wanted in bars(lines):
        print(f"S2 {what}: {value:.2f} (wanted {wanted}) {'holds' if value >= wanted else 'DOES NOT HOLD'}")


if __name__ == "__main__":
    main()
