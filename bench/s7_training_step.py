"""S7 — a tensor-parallel training step, and the share of it spent in collectives.

Two models: the demo's transformer, and one layer with the shapes of Llama-2-7B. The step runs
through gloo, through cais, and on PyTorch's `fake` backend whose collectives do nothing: what a
step takes longer than that is spent in collectives (demo/meter.py says why it is measured so).
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import contenders
from common import RESULTS, ROOT, load, merge, save
from tables import circumstances, put, table

sys.path.insert(0, str(ROOT / "demo"))
from meter import collective_share  # noqa: E402

MODELS = {
    "demo": [],
    "llama-2-7b layer": ["--hidden", "4096", "--layers", "1", "--heads", "32", "--feed-forward",
                         "11008", "--sequence", "256", "--batch", "1", "--learning-rate", "1e-4"],
}
STEPS = {4: 10, 8: 3}  # by TP: more ranks than cores make a step of the large layer take a minute
BACKENDS = ("fake", "gloo", "cais")
SECONDS_MAX = 600


def step_seconds(backend: str, tp: int, model: str, steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        command = contenders.torchrun(tp, ROOT / "demo" / "train.py", "--backend", backend,
                                      "--steps", steps, "--out", out, *MODELS[model])
        env = {"CAIS_ALLOCATOR": os.environ.get("CAIS_ALLOCATOR", "1")} if backend == "cais" else {}
        contenders.run(command, f"{backend}, {model}, tp {tp}", env, SECONDS_MAX)
        return json.loads(out.read_text())["step_seconds"]


def measure(model: str, tp: int, steps: int, rounds: int) -> list[dict]:
    seconds: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
    for number in range(rounds):
        for backend in BACKENDS:
            seconds[backend].append(step_seconds(backend, tp, model, steps))
        print(f"S7 {model} tp {tp}: round {number + 1}/{rounds}", file=sys.stderr)
    # The step without collectives is one quantity; its median over the rounds is the best guess.
    without = statistics.median(seconds["fake"])
    lines = []
    for backend in BACKENDS:
        step = statistics.median(seconds[backend])
        lines.append({
            "table": "S7", "model": model, "tp": tp, "who": backend, "rounds": rounds,
            "step_ms": round(step * 1e3, 1),
            "step_ms_min": round(min(seconds[backend]) * 1e3, 1),
            "step_ms_max": round(max(seconds[backend]) * 1e3, 1),
            "collectives_ms": round(max(0.0, step - without) * 1e3, 1),
            "share": round(collective_share(step, without), 3),
        })
    gloo, cais = lines[1], lines[2]
    cais["step_ratio"] = round(gloo["step_ms"] / cais["step_ms"], 3)
    # Below 1 % of the step the difference of two measured times is noise: claim no more than that.
    spent = max(cais["collectives_ms"], 0.01 * cais["step_ms"])
    cais["ratio"] = round(gloo["collectives_ms"] / spent, 2)
    return lines


def page(lines: list[dict]) -> str:
    names = {"gloo": "gloo", "cais": "cais", "fake": "no collectives"}
    rows = []
    for line in lines:
        rows.append([
            line["model"], line["tp"], names[line["who"]], f"{line['step_ms']:.0f}",
            f"{line['step_ms_min']:.0f}–{line['step_ms_max']:.0f}", f"{line['collectives_ms']:.0f}",
            f"{line['share']:.0%}", f"{line['ratio']:.1f}" if "ratio" in line else "",
        ])
    head = ["model", "TP", "backend", "step, ms", "min–max", "in collectives, ms", "share",
            "gloo's time in collectives / cais's (bar: 5)"]
    return f"{circumstances(lines[0])}\n\n" + table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the demo's model, tp 4, one round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--tp", nargs="+", type=int)
    parser.add_argument("--steps", type=int, help="of a run: 10, at TP 8 3")
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the results")
    arguments = parser.parse_args()
    lines = load(RESULTS / "S7.jsonl")
    if arguments.page:
        put("S7", page(lines))
        return
    quick = arguments.quick
    for model in arguments.models or (["demo"] if quick else list(MODELS)):
        for tp in arguments.tp or ([4] if quick else STEPS):
            steps = arguments.steps or STEPS.get(tp, 10)
            measured = measure(model, tp, steps, arguments.rounds or (1 if quick else 5))
            lines = merge(lines, measured)
            save("S7", lines)


if __name__ == "__main__":
    main()
