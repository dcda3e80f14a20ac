"""Two hosts train the demo through links that lose, double and reorder packets: the bits of every
loss and weight are those of clean links, and the relay's counters prove that packets were hit."""
import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELAY = ROOT / "build" / "dev" / "bin" / "cais_impair"
sys.path.insert(0, str(ROOT / "bench" / "lab"))
from lab import Lab  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

RATE = 0.02
SMALL = ["--hidden", "128", "--layers", "2", "--heads", "4", "--feed-forward", "256",
         "--sequence", "128", "--steps", "6", "--seed", "3"]
SECONDS_MAX = 180


def train(backend: str, ranks_per_host: int, out: pathlib.Path, rate: float) -> tuple[dict, list]:
    """The result of demo/train.py, and the relay's counters of both directions."""
    command = [sys.executable, str(ROOT / "demo" / "train.py"), "--backend", backend, *SMALL,
               "--out", str(out)]
    with Lab.impaired(mtu=1500, relay=RELAY, name="cais_test", loss=rate, duplicate=rate,
                      reorder=rate, seed=11) as lab:
        lab.run_ranks(2, ranks_per_host, command, SECONDS_MAX)
    return json.loads(out.read_text()), lab.impairments


@pytest.mark.parametrize("ranks_per_host", [1, 2])
def test_impaired_links_change_no_bit(ranks_per_host: int, tmp_path: pathlib.Path):
    clean, _ = train("cais", ranks_per_host, tmp_path / "clean.json", rate=0.0)
    hurt, directions = train("cais", ranks_per_host, tmp_path / "hurt.json", rate=RATE)

    assert hurt["losses"] == clean["losses"]
    assert hurt["weights"] == clean["weights"]
    assert sum(hurt["bytes_by_path"].get(path, 0) for path in ("udp", "mixed")) > 0
    for counters in directions:
        assert counters["lost"] > 0
        assert counters["duplicated"] > 0
        assert counters["reordered"] > 0
