"""Lines of JSON as tables in docs/benchmarks.md."""
from __future__ import annotations

import re
from collections.abc import Iterable

from common import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


def table(head: list[str], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def microseconds(us: float) -> str:
    if us < 10:
        return f"{us:.2f}"
    return f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def circumstances(line: dict) -> str:
    return f"Commit {line['commit']}, {line['cores']} cores of {line['cpu']}, Linux {line['kernel']}."


def put(marker: str, text: str) -> None:
    """Replaces what stands in the page between <!-- MARKER --> and the next heading of level 2."""
    page = PAGE.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {marker} -->\n).*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if not place.search(page):
        raise ValueError(f"{PAGE} has no <!-- {marker} -->")
    PAGE.write_text(place.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n", page).rstrip() + "\n", encoding="utf-8")
