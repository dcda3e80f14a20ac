"""S5 — what one core of the software switch adds (docs/benchmarks.md), gigabits of contributions a second.

(a) in memory: bench_switch calls the switch with packets as GRO hands them over.
(b) over UDP and veths: ranks on lab hosts all-reduce through a cais-switch with one worker; what
    they sent is divided by the CPU time that the switch process took. (The ranks share this
    machine's cores with the switch: wall-clock time would measure them, too.) Needs root.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

from common import BINARIES, RESULTS, json_lines, load, merge, save
from lab.lab import Lab
from tables import circumstances, put, table

RANKS = (2, 4, 8)
WARM_UP, REPEATS, TENSOR_BYTES = 3, 20, 4 << 20
SECONDS_MAX = 120
IN_MEMORY_BARS = {("float32", 8192, 4): 100, ("float32", 1024, 4): 40, ("bfloat16", 8192, 4): 50}
UDP_BAR = 22


def in_memory(seconds: float) -> list[dict]:
    done = subprocess.run([BINARIES / "bench_switch", str(seconds)], capture_output=True, text=True,
                          check=True, timeout=SECONDS_MAX)
    return [
        {"table": "S5", "setting": "a", "dtype": line["dtype"], "ranks": line["ranks"],
         "fragment_bytes": line["fragment_bytes"], "value": line["gigabits_per_s"]}
        for line in json_lines(done.stdout)
    ]


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_udp(ranks: int, mtu: int) -> list[dict]:
    with Lab.limited(ranks, "0", mtu) as lab:
        switch = lab.start(None, [str(BINARIES / "cais-switch"), "--listen", Lab.BOX_ADDRESS,
                                  "--cores", "1"], stdout=subprocess.PIPE, text=True)
        if not switch.stdout.readline():
            raise RuntimeError(f"cais-switch ended at once (exit status {switch.wait()})")
        perf = [str(BINARIES / "cais_perf"), "all_reduce", "--jsonl", "-c", "0", "-b",
                str(TENSOR_BYTES), "-e", str(TENSOR_BYTES), "-w", str(WARM_UP), "-n", str(REPEATS)]
        rank = "--rank $RANK --world $WORLD_SIZE --rendezvous $MASTER_ADDR:$MASTER_PORT"
        before = cpu_seconds(switch.pid)
        lab.run_ranks(ranks, 1, ["sh", "-c", f'exec "$0" "$@" {rank}', *perf], SECONDS_MAX,
                      stdout=subprocess.DEVNULL, CAIS_SWITCH_IP=Lab.BOX_ADDRESS)
        spent = cpu_seconds(switch.pid) - before
    sent_bits = 8 * TENSOR_BYTES * ranks * (WARM_UP + REPEATS)
    return [{"table": "S5", "setting": "b", "dtype": "float32", "ranks": ranks, "mtu": mtu,
             "value": sent_bits / spent / 1e9}]


def rounds_of(measure: Callable[[], list[dict]], rounds: int) -> list[dict]:
    """Each line once, with the median of its values, their least and greatest."""
    runs = [measure() for _ in range(rounds)]
    lines = []
    for same in zip(*runs):
        values = [line["value"] for line in same]
        lines.append({**same[0], "value": round(statistics.median(values), 1), "rounds": rounds,
                      "value_min": round(min(values), 1), "value_max": round(max(values), 1)})
    return lines


def bar_of(line: dict) -> int | None:
    if line["setting"] == "b":
        return UDP_BAR if line["mtu"] == 9000 else None
    return IN_MEMORY_BARS.get((line["dtype"], line["fragment_bytes"], line["ranks"]))


def page(lines: list[dict]) -> str:
    rows = []
    for line in lines:
        bar = bar_of(line)
        verdict = "" if bar is None else "holds" if line["value"] >= bar else "**does not hold**"
        size = f"{line['fragment_bytes']} B" if line["setting"] == "a" else f"MTU {line['mtu']}"
        rows.append([f"({line['setting']})", line["dtype"], line["ranks"], size, line["value"],
                     "" if bar is None else f"≥ {bar}", verdict])
    return f"{circumstances(lines[0])}\n\n" + table(
        ["", "dtype", "ranks", "packets", "Gb/s of contributions a core", "bar", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 ranks over UDP, one round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the results")
    arguments = parser.parse_args()
    lines = load(RESULTS / "S5.jsonl")
    if arguments.page:
        put("S5", page(lines))
        return
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    lines = merge(lines, rounds_of(lambda: in_memory(0.1), rounds))
    save("S5", lines)
    if os.geteuid() != 0:
        sys.exit("S5 (b) needs root: it makes network namespaces")
    for ranks in RANKS[1:2] if arguments.quick else RANKS:
        for mtu in (1500, 9000):
            lines = merge(lines, rounds_of(lambda: over_udp(ranks, mtu), rounds))
            save("S5", lines)


if __name__ == "__main__":
    main()
