"""What a training run loses while somebody between two hosts sends 10,000 packets a second each way
that mean harm (tests/lab/hostility.hpp): at most 10 %.

Beside it the same run with as many of the same packets to a port where nobody listens: making them costs
time too, on a machine that the hosts share with whoever sends them.

    hostile_packets.py [--rounds N] [--rate N]
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from common import ROOT
from lab.lab import Lab

RELAY = ROOT / "build" / "dev" / "bin" / "cais_impair"
NOBODY_LISTENS = 9  # discard
STEPS = 12
SECONDS_MAX = 300


def step_seconds(hostile: int, port: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        command = [sys.executable, str(ROOT / "demo" / "train.py"), "--backend", "cais", "--steps",
                   str(STEPS), "--out", str(out)]
        with Lab.impaired(mtu=1500, relay=RELAY, name="cais_harm", hostile=hostile,
                          hostile_port=port) as lab:
            lab.run_ranks(2, 1, command, SECONDS_MAX)
        return json.loads(out.read_text())["step_seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=10_000, help="packets a second, each way")
    arguments = parser.parse_args()
    ways = {"none": (0, 0), "to nobody": (arguments.rate, NOBODY_LISTENS),
            "to CAIS": (arguments.rate, 0)}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(arguments.rounds):
        for way, (rate, port) in ways.items():
            seconds[way].append(step_seconds(rate, port))
    for way, times in seconds.items():
        line = {"hostile": way, "rate": ways[way][0], "rounds": len(times),
                "step_ms": round(statistics.median(times) * 1e3, 1),
                "step_ms_min": round(min(times) * 1e3, 1), "step_ms_max": round(max(times) * 1e3, 1)}
        print(json.dumps(line))
    ratio = statistics.median(a / b for a, b in zip(seconds["to CAIS"], seconds["to nobody"]))
    print(json.dumps({"slowdown": round(ratio - 1, 3), "bar": 0.1}))


if __name__ == "__main__":
    main()
