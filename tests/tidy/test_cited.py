"""Pages that code names are there: whoever has only this repository can read them."""

import re
import subprocess
from pathlib import Path

from tests.tidy.test_tidy import ROOT

PAGE = re.compile(r"(?<![\w/.:-])((?:[\w-]+/)*[A-Z]{3,}\.md|docs/[\w/-]+\.md)\b")
OURS = ("*.py", "*.sql", "*.proto", "*.toml", "Makefile", "Dockerfile", "*.yml")
PLACEHOLDERS = {"NAME.md"}
FIRST = "tests/tidy"  # what is said here of pages that aren't there


def cited() -> dict[str, list[str]]:
    """By page, the files that name it."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *OURS],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    found: dict[str, list[str]] = {}
    for name in tracked:
        file = ROOT / name
        if name.startswith(FIRST) or not file.is_file():
            continue
        for page in set(PAGE.findall(file.read_text(errors="replace"))) - PLACEHOLDERS:
            found.setdefault(page, []).append(name)
    return found


def missing(pages: dict[str, list[str]], root: Path) -> dict[str, list[str]]:
    return {page: names for page, names in pages.items() if not (root / page).is_file()}


def test_every_page_that_code_names_is_there() -> None:
    pages = cited()
    assert {"docs/schedules.md", "docs/glossary.md"} <= pages.keys()
    assert missing(pages, ROOT) == {}


def test_one_that_is_not_is_found() -> None:
    (page,) = PAGE.findall('judged by the invariants (DESIGN.md, "Once"), not https://example.com/README.md')
    assert missing({page: ["a.py"]}, ROOT) == {"DESIGN.md": ["a.py"]}
