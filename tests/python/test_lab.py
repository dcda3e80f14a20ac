"""The impairing relay really hurts real traffic: counted at the relay and seen by the receiver."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELAY = ROOT / "build" / "dev" / "bin" / "cais_impair"
sys.path.insert(0, str(ROOT / "bench" / "lab"))
from lab import Lab  # noqa: E402

needs_lab = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

PACKETS = 20_000
SENDER = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range({PACKETS}):
    s.sendto(i.to_bytes(4, "big") * 50, ("10.77.0.2", 5000))
    if i % 50 == 0: time.sleep(0.001)
time.sleep(0.5)
for _ in range(20): s.sendto(b"end", ("10.77.0.2", 5000))
"""
RECEIVER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
s.bind(("10.77.0.2", 5000))
print("bound", flush=True)
seen = []
while True:
    data = s.recv(2048)
    if data == b"end": break
    seen.append(int.from_bytes(data[:4], "big"))
late = sum(b < a for a, b in zip(seen, seen[1:]))
print(len(set(seen)), len(seen) - len(set(seen)), late)
"""


def deliver(**rates) -> tuple[list[int], dict[str, int]]:
    """(distinct, doubled, late) packets at the receiver, and the relay's counters of the way."""
    with Lab.impaired(mtu=1500, relay=RELAY, name="cais_test", **rates) as lab:
        receiver = lab.start(2, [sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
        assert receiver.stdout.readline() == "bound\n"
        assert lab.start(1, [sys.executable, "-c", SENDER]).wait(60) == 0
        seen, _ = receiver.communicate(timeout=30)
    return [int(word) for word in seen.split()], lab.impairments[0]


@needs_lab
def test_good_link_delivers_all():
    (distinct, doubled, late), _ = deliver()
    assert (distinct, doubled, late) == (PACKETS, 0, 0)


@needs_lab
def test_bad_link_loses_doubles_and_reorders():
    (distinct, doubled, late), counters = deliver(loss=0.02, duplicate=0.02, reorder=0.02, seed=5)
    assert counters["lost"] == pytest.approx(0.02 * PACKETS, rel=0.3)
    assert PACKETS - distinct == pytest.approx(counters["lost"], abs=20), "the end marks may be hit"
    assert doubled == pytest.approx(counters["duplicated"], abs=20)
    assert late > 0.3 * counters["reordered"] > 0


@needs_lab
def test_labs_leave_nothing_behind():
    with Lab.limited(hosts=2, rate="100mbit", mtu=1500, name="cais_test"):
        pass
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert "cais_test_" not in names


@needs_lab
def test_relay_says_which_interface_is_missing():
    done = subprocess.run([RELAY, "no_such_if", "lo"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert "no_such_if" in done.stderr
