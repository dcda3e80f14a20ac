"""What the machine's memory allows one core: no collective can be faster than its copies and adds."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy

SIZES = {"in cache": 256 << 10, "at 32 MB": 32 << 20}
NAMES = [f"{work} {place}" for place in SIZES for work in ("copy", "add")]


def _gigabytes_per_second(work: Callable[[], object], size: int, repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return size / statistics.median(times) / 1e9


def measure() -> list[dict]:
    """Lines with `value` in GB/s of results: copy, and out = a + b, of float32."""
    lines = []
    for place, size in SIZES.items():
        a, b = (numpy.random.default_rng(seed).random(size // 4, numpy.float32) for seed in (1, 2))
        out = numpy.empty_like(a)
        repeats = 200 if size < 1 << 20 else 20
        for name, work in (("copy", lambda: numpy.copyto(out, a)), ("add", lambda: numpy.add(a, b, out=out))):
            speed = _gigabytes_per_second(work, size, repeats)
            lines.append({"what": f"{name} {place}", "bytes": size, "value": round(speed, 1)})
    return lines
