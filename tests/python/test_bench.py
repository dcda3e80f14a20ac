"""The benchmark of torch collectives: it checks what it times, and says what it was given wrong."""
import json
import subprocess
import sys

import pytest


def bench(*arguments):
    return subprocess.run([sys.executable, "-P", "-m", "torch_cais.bench", *arguments],
                          capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter", "barrier"])
def test_measures_and_checks(op, tmp_path):
    file = tmp_path / "results.json"
    done = bench(op, "--ranks", "3", "-e", "4K", "-f", "16", "-n", "2", "-d", "bfloat16", "-o", "avg",
                 "-J", str(file))
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert len(rows) == (1 if op == "barrier" else 3)
    assert all(row["ranks"] == 3 and row["wrong"] == 0 and row["p50_us"] > 0 for row in rows)


def test_wrong_data_is_a_failure(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import torch_cais.bench as bench\n"
        "real = bench.Work.call\n"
        "def call(self):\n"
        "    real(self)\n"
        "    self.out[0] += 1\n"
        "bench.Work.call = call\n"
        "def start(rank, chosen, port):\n"
        "    bench.Work.call = call\n"
        "    bench._start_rank(rank, chosen, port)\n"
        "if __name__ == '__main__':\n"
        "    import torch\n"
        "    bench.torch.multiprocessing.spawn = (\n"
        "        lambda f, a, nprocs, real=torch.multiprocessing.spawn: real(start, a, nprocs))\n"
        "    bench.main()\n")
    done = subprocess.run([sys.executable, "-P", str(broken), "all_reduce", "-e", "8", "-n", "1"],
                          capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and "wrong data" in done.stderr


def test_a_wrong_flag_is_told():
    done = bench("all_reduce", "-b", "3X")
    assert done.returncode == 2 and "'3X' is no size" in done.stderr
