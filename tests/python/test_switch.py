"""torch and libcais_rpc.so in one process: libtorch exports a protobuf of its own, and what speaks
gRPC to a cais-switch brings another."""
import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "dev"
SECONDS_MAX = 60

RANK = """
import ctypes, sys, torch, torch.distributed as dist
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("cais", init_method="file://" + store, rank=rank, world_size=3)
for count in (1, 1000, 1 << 20):
    x = torch.arange(count, dtype=torch.float32) * (rank + 1)
    dist.all_reduce(x)
    assert torch.equal(x, torch.arange(count, dtype=torch.float32) * 6)
import torch_cais
(group,) = torch_cais.stats().values()
assert group["transport"] == "udp", group

maps = open("/proc/self/maps").read()
assert "libcais_rpc.so" in maps and "libgrpc" in maps, "no gRPC was loaded"
scope = ctypes.CDLL(None)
for symbol in ("grpc_init", "cais_rpc_api", "_ZN4grpc7Channel10CreateCallERKNS_8internal9RpcMethodEPNS_13ClientContextEPNS_15CompletionQueueE"):
    assert not hasattr(scope, symbol), symbol + " is seen by everybody"
dist.destroy_process_group()
print("done")
"""


@pytest.fixture
def switch():
    """The address of a cais-switch on the loopback interface."""
    program = subprocess.Popen(
        [BUILD / "bin" / "cais-switch", "--listen", "127.0.0.1", "--management", "0", "--cores", "2"],
        stdout=subprocess.PIPE, text=True)
    yield program.stdout.readline().strip().rpartition("=")[2]
    program.terminate()
    assert program.wait(10) == 0
    program.stdout.close()


def test_torch_reduces_through_a_switch(switch, tmp_path):
    environment = {**os.environ, "CAIS_SWITCH_IP": switch, "CAIS_TRANSPORT": "udp",
                   "CAIS_SOCKET_IFNAME": "lo", "LD_LIBRARY_PATH": str(BUILD / "lib")}
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(tmp_path / "store")],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
             for rank in range(3)]
    ended = [rank.communicate(timeout=SECONDS_MAX) for rank in ranks]
    for rank, (output, errors) in zip(ranks, ended):
        assert rank.returncode == 0 and output.strip() == "done", errors


def test_without_the_library_the_error_says_what_to_do(switch, tmp_path):
    code = ("import torch.distributed as dist\n"
            f"dist.init_process_group('cais', init_method='file://{tmp_path / 'store'}', rank=0, "
            "world_size=2)\n")
    environment = {**os.environ, "CAIS_SWITCH_IP": switch, "CAIS_TRANSPORT": "udp",
                   "CAIS_SOCKET_IFNAME": "lo", "LD_LIBRARY_PATH": ""}
    ranks = [subprocess.Popen([sys.executable, "-c", code.replace("rank=0", f"rank={rank}")],
                              env=environment, stderr=subprocess.PIPE, text=True)
             for rank in range(2)]
    for rank in ranks:
        errors = rank.communicate(timeout=SECONDS_MAX)[1]
        assert rank.returncode != 0
        assert "libcais_rpc.so" in errors and "CAIS_BUILD_RPC=ON" in errors, errors


@pytest.mark.parametrize("library, allowed", [
    ("libcais_rpc.so", lambda symbol: symbol == "cais_rpc_api"),
    ("libcais.so", lambda symbol: symbol.startswith("cais_")),
])
def test_libraries_export_their_interface_alone(library, allowed):
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "lib" / library)],
                             capture_output=True, text=True, check=True).stdout
    exported = [line.split()[-1] for line in symbols.splitlines()]
    assert exported
    assert [symbol for symbol in exported if not allowed(symbol)] == []
