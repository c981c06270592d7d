"""Markdown that a newcomer can read: links lead somewhere, lines are short, and sentences; code names decisions."""

import re
import runpy
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.tidy.test_tidy import ROOT

_WRAP: Final[dict[str, Any]] = runpy.run_path(str(ROOT / "docs" / "wrap.py"))
LINE_MAX: Final = 120
SENTENCE_MAX: Final = 25
ARCHITECTURE_MAX: Final = 2_000
DECISIONS: Final = ROOT / "docs" / "decisions"
PAGES: Final = [str(page.relative_to(ROOT)) for page in _WRAP["pages"]()]
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"docs/decisions/(\d{4})")


def without_code(page: str) -> str:
    return _CODE.sub("", (ROOT / page).read_text())


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ (.+)$", _CODE.sub(lambda code: code[0].strip("`"), page.read_text()), re.MULTILINE):
        text = _LINK.sub(lambda link: link[0][1:].partition("]")[0], heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def broken(page: str) -> Iterator[str]:
    for target in _LINK.findall(without_code(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert not list(broken(page))


def test_anchors_are_those_of_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# What is `not`, and why?\n## Twice\n## Twice\n")
    assert anchors(page) == {"what-is-not-and-why", "twice", "twice-1"}


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_prose_fit(page: str) -> None:
    long = [
        number for number, line in _WRAP["prose"]((ROOT / page).read_text())
        if len(line) > LINE_MAX and " " in _CODE.sub("code", line).strip()
    ]  # fmt: skip
    assert not long, f"python docs/wrap.py {page}: lines {long}"


def test_wrapping_changes_lines_only() -> None:
    text = (
        f"# A heading\n\n- one `span of code` {'word ' * 40}\n  and on\n\n| a | table |\n\n```\n{'code ' * 40}\n```\n"
    )
    wrapped = _WRAP["wrapped"](text)
    assert wrapped.split() == text.split()
    assert _WRAP["wrapped"](wrapped) == wrapped
    assert [len(line) for _, line in _WRAP["prose"](wrapped)] <= [LINE_MAX] * 3
    assert "`span of code`" in wrapped


def sentences(page: str) -> Iterator[str]:
    """Of prose alone: a paragraph, or an item of a list, ends a sentence as well."""
    lines = [line for _, line in _numbered(page)]
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", "\n".join(lines)):
        text = re.sub(r"`[^`]*`", "code", _LINK.sub("link", paragraph))
        yield from re.split(r"(?<=[.!?:])\)?\*{0,2}\s", text)


def _numbered(page: str) -> list[tuple[int, str]]:
    text = (ROOT / page).read_text()
    kept = dict(_WRAP["prose"](text))
    return [(number, kept.get(number, "")) for number in range(1, len(text.splitlines()) + 1)]


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page: str) -> None:
    long = [sentence for sentence in sentences(page) if len(sentence.split()) > SENTENCE_MAX]
    assert not long, long


def test_architecture_is_read_in_a_sitting() -> None:
    assert "ARCHITECTURE.md" in PAGES
    words = len((ROOT / "ARCHITECTURE.md").read_text().split())
    assert words <= ARCHITECTURE_MAX, f"{words} words: what explains a module belongs into its docstring, or a decision"


def test_each_picture_is_shown_and_is_there() -> None:
    pictures = ROOT / "docs" / "pictures"
    shown = {
        (ROOT / page).parent.joinpath(path).resolve()
        for page in PAGES
        for path in re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", (ROOT / page).read_text())
    }
    assert shown == set(pictures.glob("*.png"))


def test_every_decision_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text()
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    numbers = [record.name[:4] for record in records]
    assert len(set(numbers)) == len(numbers)  # those that work at once have ranges of their own, so some are missing
    for record in records:
        heading = re.fullmatch(r"# (\d+)\. (.+)", record.read_text().splitlines()[0])
        assert heading, record
        number, title = heading.groups()
        assert int(number) == int(record.name[:4])
        assert f"| [{record.name[:4]}]({record.name}) | {title} |" in index


def test_code_and_decisions_name_each_other() -> None:
    """Each record is named beside the code that it explains, and code names none that isn't there."""
    names = subprocess.run(
        ["git", "grep", "-hoE", _NAMED.pattern.replace(r"\d", "[0-9]"), "--", ":!*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    named = set(_NAMED.findall(names))
    assert named == {record.name[:4] for record in DECISIONS.glob("[0-9]*.md")}
