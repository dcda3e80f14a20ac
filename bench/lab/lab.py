"""The network lab (lab.sh) as a context: hosts are there inside `with`, and gone after it.

    with Lab.limited(hosts=4, rate="500mbit", mtu=1500) as lab:
        process = lab.start(1, ["python3", "train.py"])
    with Lab.impaired(mtu=1500, relay="build/dev/bin/cais_impair", loss=0.02) as lab:
        ...
    lab.impairments   # what the relay did, per direction
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time
import typing
from collections.abc import Iterator

SCRIPT = pathlib.Path(__file__).with_name("lab.sh")
END_SECONDS = 10


class Lab:
    """Hosts 1, 2, … at 10.77.0.1, …, the box at 10.77.0.254. `name` keeps labs apart."""

    def __init__(self, name: str):
        self._environment = dict(os.environ, LAB=name)
        self._started: list[subprocess.Popen] = []
        self.impairments: list[dict[str, int]] = []

    @staticmethod
    def address(host: int) -> str:
        return f"10.77.0.{host}"

    BOX_ADDRESS = "10.77.0.254"

    @classmethod
    @contextlib.contextmanager
    def limited(cls, hosts: int, rate: str, mtu: int, name: str = "cais_lab") -> Iterator[Lab]:
        lab = cls(name)
        with lab._up("up", str(hosts), rate, str(mtu)):
            yield lab

    @classmethod
    @contextlib.contextmanager
    def impaired(
        cls, mtu: int, relay: str | os.PathLike, loss: float = 0.0, duplicate: float = 0.0,
        reorder: float = 0.0, seed: int = 1, name: str = "cais_lab", hostile: int = 0,
        hostile_port: int = 0,
    ) -> Iterator[Lab]:
        """Two hosts with the relay between them; the rates hit both directions. `hostile`: frames per
        second that mean harm, in each; `hostile_port`: all to that port."""
        lab = cls(name)
        with lab._up("pair", str(mtu)):
            command = [str(relay), "mid_a", "mid_b", "--loss", str(loss), "--duplicate",
                       str(duplicate), "--reorder", str(reorder), "--seed", str(seed),
                       "--hostile", str(hostile), "--hostile-port", str(hostile_port)]
            process = lab.start(None, command, stdout=subprocess.PIPE, text=True)
            if process.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{relay} did not start: exit status {process.wait()}")
            try:
                yield lab
            finally:
                process.send_signal(signal.SIGTERM)
                report, _ = process.communicate(timeout=END_SECONDS)
                lab.impairments = [
                    {name: int(count) for name, count in re.findall(r"([a-z_]+) (\d+)", counters)}
                    for counters in (line.split(": ")[1] for line in report.splitlines())
                ]

    def start(self, host: int | None, command: list[str], **options) -> subprocess.Popen:
        """Starts a command on a host (None: in the middle); it is ended with the lab at the latest.

        Options are those of Popen; `env` is added to this process's environment.
        """
        where = ["middle"] if host is None else ["host", str(host)]
        environment = {**self._environment, **options.pop("env", {})}
        process = subprocess.Popen(
            [str(SCRIPT), *where, *command], env=environment, stdin=subprocess.DEVNULL, **options
        )
        self._started.append(process)
        return process

    def run_ranks(
        self, hosts: int, ranks_per_host: int, command: list[str], seconds_max: float,
        stdout: typing.IO | None = None, **env: str,
    ) -> None:
        """Runs `command` as the ranks of one torch.distributed job; RuntimeError when one fails."""
        processes = []
        for rank in range(hosts * ranks_per_host):
            host, local = divmod(rank, ranks_per_host)
            settings = {
                "RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": hosts * ranks_per_host,
                "LOCAL_WORLD_SIZE": ranks_per_host, "MASTER_ADDR": self.address(1),
                "MASTER_PORT": 29511, "GLOO_SOCKET_IFNAME": "e0", "CAIS_SOCKET_IFNAME": "e0",
                "OMP_NUM_THREADS": 1, **env,
            }
            text = {name: str(value) for name, value in settings.items()}
            processes.append(self.start(host + 1, command, env=text, stdout=stdout))
        end = time.monotonic() + seconds_max
        for rank, process in enumerate(processes):
            try:
                status = process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"rank {rank} was not done after {seconds_max} s") from None
            if status != 0:
                raise RuntimeError(f"rank {rank} failed (exit status {status})")

    @contextlib.contextmanager
    def _up(self, *arguments: str) -> Iterator[None]:
        self._script("down")
        try:
            self._script(*arguments)
            yield
        finally:
            for process in self._started:
                if process.poll() is None:
                    process.terminate()
                    try:
                        process.wait(END_SECONDS)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
            self._script("down")

    def _script(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(SCRIPT), *arguments], env=self._environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"lab.sh {arguments[0]} failed")
