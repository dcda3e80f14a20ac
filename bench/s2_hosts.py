"""S2 — several hosts, the links between them limited (docs/benchmarks.md).

Hosts are network namespaces (bench/lab). Setting `a`: no box, every host adds its share of the
lanes. Setting `b`: a cais-switch in the middle whose port is as fast as all hosts' together.
Peers run over TCP: Gloo, Open MPI, MPICH. Needs root.
"""
import argparse
import os
import subprocess
import sys
import time

import contenders
from common import BINARIES, Race, save
from contenders import Work
from lab.lab import Lab

# Hosts and the rate of each link: slow enough that the link is the limit, not this machine's cores.
LINKS = {4: 500_000_000, 8: 200_000_000}  # bits per second
OPS = ("all_reduce", "all_gather", "reduce_scatter")
SMALL = dict(low=1 << 10, high=64 << 10, factor=8, repeats=20)
LARGE = dict(low=1 << 20, high=4 << 20, factor=4, repeats=5)


def limit_us(work_op: str, hosts: int, size: int) -> float:
    """No algorithm is faster: what a link must carry one way, at the link's full rate."""
    share = 1.0 if work_op == "all_reduce" else (hosts - 1) / hosts
    return share * size * 8 / LINKS[hosts] * 1e6


def start_switch(lab: Lab) -> subprocess.Popen:
    """The box; returns when it can be reached."""
    process = lab.start(None, [str(BINARIES / "cais-switch"), "--listen", Lab.BOX_ADDRESS])
    time.sleep(0.5)
    if process.poll() is not None:
        raise RuntimeError(f"cais-switch ended at once (exit status {process.returncode})")
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
        ours=("cais_a", "cais_b"),
    )
    lines = race.run(rounds)
    for line in lines:
        line["of_link"] = round(limit_us(op, hosts, line["bytes"]) / line["us"], 3)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="all-reduce, 4 hosts, MTU 1500, 2 rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--ops", nargs="+", choices=OPS)
    parser.add_argument("--hosts", nargs="+", type=int, choices=sorted(LINKS))
    parser.add_argument("--mtu", nargs="+", type=int)
    parser.add_argument("--sizes", choices=("small", "large", "all"), default="all")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("S2 needs root: it makes network namespaces")
    quick = arguments.quick
    rounds = arguments.rounds or (2 if quick else 5)
    contenders.set_up()
    lines = []
    for hosts in arguments.hosts or ([4] if quick else sorted(LINKS)):
        for mtu in arguments.mtu or ([1500] if quick else [1500, 9000]):
            for op in arguments.ops or (OPS[:1] if quick else OPS):
                with Lab.limited(hosts, f"{LINKS[hosts]}bit", mtu) as lab:
                    start_switch(lab)
                    for name, sizes in (("small", SMALL), ("large", LARGE)):
                        if arguments.sizes in (name, "all"):
                            lines += race(lab, op, hosts, mtu, sizes, rounds)
                            save("S2", lines)


if __name__ == "__main__":
    main()
