"""What `torch_cais` adds to a small blocking dist.all_reduce (S1, bar 5).

In turns, in the same processes: PyTorch's `fake` backend, a c10d::Backend that does nothing, so that
its time is PyTorch's own path; and cais. What is left of cais's time after PyTorch's path and
the C API's (cais_perf) is what the binding costs. Two ranks: with more than cores, the waits
for a core hide it.

    torch_overhead.py [--rounds N] [--iterations N]

starts its ranks itself and prints lines of JSON.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import time

import contenders
from contenders import Work

RANKS = 2
BYTES = (16, 1 << 10)
BACKENDS = ("fake", "cais")
WHAT = "added by torch_cais to an all_reduce, us"


def mean_us(tensor, group, iterations: int) -> float:
    import torch.distributed as dist

    for _ in range(iterations // 10):
        dist.all_reduce(tensor, group=group)
    begun = time.perf_counter()
    for _ in range(iterations):
        dist.all_reduce(tensor, group=group)
    return (time.perf_counter() - begun) / iterations * 1e6


def rank_main(iterations: int) -> None:
    """One rank of one round: {bytes: {backend: us}} of rank 0 on the standard output."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import fake_pg  # noqa: F401  (registers `fake`)

    torch.set_num_threads(1)
    dist.init_process_group("cais")
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    times: dict[int, dict[str, float]] = {}
    for size in BYTES:
        tensor = torch.zeros(size // 4)
        times[size] = {name: mean_us(tensor, groups[name], iterations) for name in BACKENDS}
    if dist.get_rank() == 0:
        print(json.dumps(times), flush=True)
    dist.destroy_process_group()


def one_round(iterations: int) -> dict[int, dict[str, float]]:
    command = contenders.torchrun(RANKS, pathlib.Path(__file__).resolve(), "--iterations", iterations)
    output = contenders.run(command, "torch_overhead")
    times = {int(size): each for size, each in json.loads(output.splitlines()[-1]).items()}
    work = Work("all_reduce", RANKS, low=BYTES[0], high=BYTES[-1], factor=BYTES[-1] // BYTES[0], repeats=iterations)
    for line in contenders.cais(work).lines:
        times[line["bytes"]]["c_api"] = line["us"]
    return times


def measure(rounds: int, iterations: int = 3000) -> list[dict]:
    """A line for each size; `value`: microseconds that the binding adds, the median over the rounds."""
    runs = [one_round(iterations) for _ in range(rounds)]
    lines = []
    for size in BYTES:
        added = [run[size]["cais"] - run[size]["fake"] - run[size]["c_api"] for run in runs]
        parts = {f"{name}_us": round(statistics.median(run[size][name] for run in runs), 2)
                 for name in ("cais", "fake", "c_api")}
        lines.append({"what": WHAT, "bytes": size, "ranks": RANKS,
                      "rounds": rounds, "value": round(statistics.median(added), 2),
                      "value_min": round(min(added), 2), "value_max": round(max(added), 2), **parts})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=3000)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        rank_main(arguments.iterations)
        return
    for line in measure(arguments.rounds, arguments.iterations):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
