"""`make bench`: runs the benchmark tables and compares them with bench/baselines.

A table is a script bench/sN_NAME.py that takes --quick and writes build/bench/SN.jsonl
(bench/common.py). What is compared is the ratio to the best peer of the same run, so that a
baseline from one machine says something on another.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

from common import BASELINES, RESULTS, ROOT, human, load, point

SCRIPTS = {path.name.split("_")[0].upper(): path for path in sorted(ROOT.glob("bench/s[0-9]*_*.py"))}
WORSE_THAN_BASELINE = 0.8  # a ratio below this share of the baseline's is reported as worse


def title(line: dict) -> str:
    facts = {key: value for key, value in point(line) if key not in ("table", "who", "bytes")}
    size = human(line["bytes"]) if "bytes" in line else ""
    return " ".join(f"{key}={value}" for key, value in facts.items()) + f" {size}"


def compare(table: str) -> int:
    """Prints our lines beside the baseline's; returns how many are worse."""
    baseline = {point(line): line for line in load(BASELINES / f"{table}.jsonl")}
    worse = 0
    for line in load(RESULTS / f"{table}.jsonl"):
        if "ratio" not in line:
            continue
        before = baseline.get(point(line), {}).get("ratio")
        mark = ""
        if before is not None and line["ratio"] < WORSE_THAN_BASELINE * before:
            mark, worse = "  WORSE", worse + 1
        was = f"{before:8.2f}" if before is not None else "       -"
        peer = f"best peer / {line['who']}"
        print(f"{table}  {title(line):<64} {peer:<22} {line['ratio']:8.2f}  was {was}{mark}")
    return worse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few sizes and rounds: minutes")
    parser.add_argument("--tables", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--save-baseline", action="store_true", help="keep the results as baseline")
    arguments = parser.parse_args()
    for command in (["cmake", "--preset", "release", "--log-level=WARNING"],
                    ["cmake", "--build", "--preset", "release"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    failed, worse = [], 0
    for table in arguments.tables:
        script: pathlib.Path = SCRIPTS[table]
        print(f"{table}: {script.relative_to(ROOT)}", flush=True)
        command = [sys.executable, str(script)] + (["--quick"] if arguments.quick else [])
        if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
            failed.append(table)
            continue
        worse += compare(table)
        if arguments.save_baseline:
            shutil.copy(RESULTS / f"{table}.jsonl", BASELINES)
    print(f"results: {RESULTS.relative_to(ROOT)}/*.jsonl; {worse} worse than the baseline")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if worse:
        sys.exit(1)


if __name__ == "__main__":
    main()
