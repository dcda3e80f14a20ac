"""Two hosts train while somebody between them sends packets that mean harm, ten thousand a second
each way: no bit changes, and each packet is counted for what it is."""
import json
import os
import pathlib
import re
import sys

import pytest

from test_two_hosts import RELAY, ROOT, SECONDS_MAX, SMALL

sys.path.insert(0, str(ROOT / "bench" / "lab"))
from lab import Lab  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

RATE = 10_000
# What the hosts' switches make of them (docs/protocol.md, P13).
AT_THE_SWITCH = {"malformed", "unknown_session", "wrong_epoch", "wrong_port", "rank_out_of_range",
                 "wrong_tag"}


def train(out: pathlib.Path, log: pathlib.Path, hostile: int) -> tuple[dict, list]:
    command = [sys.executable, str(ROOT / "demo" / "train.py"), "--backend", "cais", *SMALL,
               "--out", str(out)]
    with Lab.impaired(mtu=1500, relay=RELAY, name="cais_harm", hostile=hostile) as lab:
        lab.run_ranks(2, 1, command, SECONDS_MAX, CAIS_DEBUG="INFO", CAIS_DEBUG_SUBSYS="ALL",
                      CAIS_DEBUG_FILE=str(log) + ".%p")
    return json.loads(out.read_text()), lab.impairments


def test_harm_changes_no_bit(tmp_path: pathlib.Path):
    clean, _ = train(tmp_path / "clean.json", tmp_path / "clean.log", hostile=0)
    hurt, directions = train(tmp_path / "hurt.json", tmp_path / "hurt.log", hostile=RATE)

    assert hurt["losses"] == clean["losses"]
    assert hurt["weights"] == clean["weights"]
    for counters in directions:
        kinds = {name: count for name, count in counters.items() if name.startswith("hostile_")}
        assert len(kinds) == 11 and min(kinds.values()) > 0, kinds
    told = "".join(path.read_text() for path in tmp_path.glob("hurt.log.*"))
    dropped = set(re.findall(r"dropped as (\w+) [1-9]", told))
    assert AT_THE_SWITCH <= dropped, f"counted only {sorted(dropped)}"
