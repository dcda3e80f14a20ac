"""`make demo`: trains the same transformer through gloo and through cais, and shows both.

Four runs of demo/train.py under torchrun, all from the same seed: gloo; cais; a short one on a
backend that does nothing, which tells what the step costs without collectives (demo/meter.py); and
the first steps through cais once more, which must give the same bits.
"""
import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import picture
import train
from meter import WARM_UP_STEPS, collective_share

FOLDER = pathlib.Path(__file__).resolve().parent
STEPS_WITHOUT_COLLECTIVES = 12
STEPS_REPEATED = 20


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The results of the four runs, as demo/train.py wrote them."""

    gloo: dict
    cais: dict
    without: dict
    repeated: dict

    def same_bits(self) -> bool:
        again = self.repeated["losses"]
        return again == self.cais["losses"][: len(again)]

    def share(self, result: dict) -> float:
        return collective_share(result["step_seconds"], self.without["step_seconds"])


def run(backend: str, arguments: argparse.Namespace, steps: int, out: pathlib.Path) -> dict:
    """One training run under torchrun; its result. The progress bar goes to the terminal."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(arguments.ranks), str(FOLDER / "train.py")]
    command += ["--backend", backend, "--steps", str(steps), "--out", str(out)]
    for name in ("tp", "batch", "seed", "learning_rate", "hidden", "layers", "heads",
                 "feed_forward", "sequence"):
        command += ["--" + name.replace("_", "-"), str(getattr(arguments, name))]
    if arguments.files:
        command += ["--files", *arguments.files]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if backend == "cais":
        # Large tensors come from memory that the other ranks can read: nothing is copied.
        environment.setdefault("CAIS_ALLOCATOR", "1")
    out.unlink(missing_ok=True)
    status = subprocess.run(command, env=environment).returncode
    if status != 0 or not out.exists():
        sys.exit(f"demo: the run through {backend} failed (exit status {status}); see above")
    return json.loads(out.read_text())


def bytes_by_path(result: dict) -> str:
    """What one rank's step moved, in MB, by the path that it took."""
    if result["backend"] != "cais":
        return f"{result['backend']} {result['collective_bytes_per_step'] / 1e6:.1f}"
    steps = len(result["losses"])
    paths = result["bytes_by_path"]
    return ", ".join(f"{name} {count / steps / 1e6:.1f}" for name, count in paths.items() if count)


def table(runs: Comparison) -> list[tuple[str, str, str, str]]:
    """Rows of (what, gloo, cais, remark)."""
    gloo, cais = runs.gloo, runs.cais
    share = {name: runs.share(result) for name, result in (("gloo", gloo), ("cais", cais))}
    spent = [share[each["backend"]] * each["step_seconds"] for each in (gloo, cais)]
    difference = abs(gloo["losses"][-1] - cais["losses"][-1])
    faster = gloo["step_seconds"] / cais["step_seconds"]
    # Below a hundredth of the step, the difference of two measured times is noise.
    less = (
        f"{spent[0] / spent[1]:.1f} x less"
        if share["cais"] > 0.01
        else f"{spent[0] * 1e3:.0f} ms to within noise of none"
    )
    return [
        ("step time", f"{gloo['step_seconds'] * 1e3:.0f} ms", f"{cais['step_seconds'] * 1e3:.0f} ms",
         f"{faster:.2f} x faster"),
        ("tokens/s", f"{gloo['tokens_per_second']:.0f}", f"{cais['tokens_per_second']:.0f}", ""),
        ("share in collectives", f"{share['gloo']:.0%}", f"{share['cais']:.0%}", less),
        ("MB a step, by path", bytes_by_path(gloo), bytes_by_path(cais), ""),
        ("final loss", f"{gloo['losses'][-1]:.4f}", f"{cais['losses'][-1]:.4f}",
         f"{difference:.1e} apart"),
        ("two runs, same bits", "", "yes" if runs.same_bits() else "NO",
         f"{len(runs.repeated['losses'])} losses compared"),
    ]


def show(rows: list[tuple[str, str, str, str]]) -> None:
    rows = [("", "gloo", "cais", ""), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    line = "  " + "-" * (sum(widths) + 8 + max(len(row[3]) for row in rows))
    print(line)
    for what, gloo, cais, remark in rows:
        print(f"  {what:<{widths[0]}}  {gloo:>{widths[1]}}  {cais:>{widths[2]}}  {remark}".rstrip())
        if not what:
            print(line)
    print(line)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make demo", usage="make demo ARGS=\"[flags]\"   (--help lists them)", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='example: make demo ARGS="--steps 100 --files README.md docs"',
    )
    train.add_flags(parser)
    parser.add_argument("--ranks", type=train.positive_int, default=4, help="processes (default 4)")
    parser.add_argument("--out", default="demo-out", help="folder for results and the picture")
    arguments = parser.parse_args()
    arguments.tp = arguments.tp or arguments.ranks
    try:
        train.check(arguments, arguments.ranks)
    except ValueError as error:
        parser.error(str(error))
    if arguments.steps <= WARM_UP_STEPS:
        parser.error(f"--steps {arguments.steps}: the first {WARM_UP_STEPS} are warm-up; ask for more")
    if importlib.util.find_spec("torch_cais") is None:
        parser.error("torch_cais is not installed in this Python; run `make install`")
    return arguments


def main() -> None:
    arguments = parse()
    out = pathlib.Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"demo: --out {out}: {error.strerror}")
    shape = train.shape_of(arguments)
    print(
        f"A Llama-style transformer ({shape.layers} layers, hidden {shape.hidden}, {shape.heads} "
        f"heads, {shape.sequence} bytes of context)\nlearns text, cut over {arguments.tp} of "
        f"{arguments.ranks} processes on {os.cpu_count()} cores (column, row and sequence "
        "parallel).\n", flush=True,
    )
    short = min(STEPS_REPEATED, arguments.steps)
    runs = Comparison(
        gloo=run("gloo", arguments, arguments.steps, out / "gloo.json"),
        cais=run("cais", arguments, arguments.steps, out / "cais.json"),
        without=run("fake", arguments, STEPS_WITHOUT_COLLECTIVES, out / "without.json"),
        repeated=run("cais", arguments, short, out / "cais-again.json"),
    )
    print()
    print(picture.in_terminal(runs.gloo["losses"], runs.cais["losses"]))
    show(table(runs))
    picture.to_file(runs.gloo, runs.cais, out / "loss.png")
    print(f"  picture: {out / 'loss.png'}   results: {out}/*.json")
    if not runs.same_bits():
        sys.exit("demo: two runs through cais differ; that must never happen, please report it")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ndemo: stopped")
