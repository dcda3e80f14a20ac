"""The loss curves of both runs: as characters, and as a PNG."""
import itertools
import pathlib

WIDTH, HEIGHT = 64, 12


def in_terminal(gloo: list[float], cais: list[float]) -> str:
    """Loss by step; `o` gloo, `x` cais, `*` where both fall on one character."""
    low, high = min(gloo + cais), max(gloo + cais)
    span = (high - low) or 1.0

    def cells(losses: list[float]) -> set[tuple[int, int]]:
        last = max(1, len(losses) - 1)
        return {
            (round((high - loss) / span * (HEIGHT - 1)), round(step / last * (WIDTH - 1)))
            for step, loss in enumerate(losses)
        }

    mine, theirs = cells(cais), cells(gloo)
    rows = []
    for row in range(HEIGHT):
        line = "".join(
            "*" if (row, column) in mine & theirs
            else "x" if (row, column) in mine
            else "o" if (row, column) in theirs
            else " "
            for column in range(WIDTH)
        )
        label = f"{high - span * row / (HEIGHT - 1):6.2f}" if row % 3 == 0 or row == HEIGHT - 1 else ""
        rows.append(f"  {label:>6} |{line.rstrip()}")
    rows.append(f"  {'loss':>6} +{'-' * WIDTH}")
    rows.append(f"{'':10}step 1{f'step {len(cais)}':>{WIDTH - 6}}")
    rows.append(f"{'':10}o gloo   x cais   * both")
    return "\n".join(rows)


def to_file(gloo: dict, cais: dict, path: pathlib.Path) -> None:
    """Two panels: loss by step (the curves cover each other) and by time (cais is ahead)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (by_step, by_time) = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, dpi=120)
    for result, style in (
        (gloo, dict(color="tab:orange", linewidth=5, alpha=0.45)),
        (cais, dict(color="tab:blue", linewidth=1.5)),
    ):
        losses, step = result["losses"], result["step_seconds"]
        clock = list(itertools.accumulate([step] * len(losses)))
        by_step.plot(range(1, len(losses) + 1), losses, label=result["backend"], **style)
        by_time.plot(clock, losses, label=f"{result['backend']}: {step * 1e3:.0f} ms a step", **style)
    by_step.set(xlabel="step", ylabel="loss", title="The same loss at each step")
    by_time.set(xlabel="seconds (steps × median step time)", title="Sooner")
    for axes in (by_step, by_time):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)
