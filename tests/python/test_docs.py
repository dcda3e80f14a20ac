"""The pages keep their word: tests that docs/requirements.md names exist, and links lead somewhere."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_requirements_name_tests_that_exist():
    page = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z0-9_/]+\.(?:cpp|py|pkt))(?:::([A-Za-z0-9_.]+))?`", page)
    assert len(named) > 20
    for file, test in named:
        path = ROOT / "tests" / file if (ROOT / "tests" / file).exists() else ROOT / file
        assert path.exists(), f"docs/requirements.md names {file}, which does not exist"
        if test:
            suite, _, case = test.rpartition(".")
            pattern = rf"\({suite}, {case}\)" if path.suffix == ".cpp" else rf"def {case}\("
            source = path.read_text(encoding="utf-8")
            assert re.search(pattern, source), f"{file} has no test {test}"


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
