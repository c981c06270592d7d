"""Break the prose of Markdown at 120 characters: `python docs/wrap.py PAGE ...`; without a page, every tracked one.

Paragraphs and items of lists that have a longer line are filled anew. Tables, code blocks, headings, comments and raw
HTML stay as they are. A span of code is never broken, nor is a line begun with what Markdown would take for a list, a
heading or a quotation.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WIDTH: Final = 120
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_ITEM: Final = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)")
_KEPT: Final = re.compile(r"^\s*([|#>]|<[a-z/!])|^\s*$")  # tables, headings, quotations, HTML, empty lines
_WORD: Final = re.compile(r"(?:`[^`]*`|[^\s`])+")
_STARTS: Final = re.compile(r"^([-*+]|\d+[.)]|[#>|].*)$")  # what would begin something else


def pages() -> list[Path]:
    """Markdown that people wrote: not what measurements printed."""
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if not name.startswith("bench/results/")]


def wrapped(text: str) -> str:
    """The whole of a page."""
    return "\n".join(line for block in _blocks(text.splitlines()) for line in block) + "\n"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Each line of prose with its number, from 1: what is neither table, code, heading nor HTML."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not _KEPT.match(line):
            yield number, line


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    texts = {number for number, _ in prose("\n".join(lines))}
    paragraph: list[str] = []
    for number, line in enumerate(lines, 1):
        if paragraph and (number not in texts or _ITEM.match(line)):
            yield _filled(paragraph)
            paragraph = []
        if number in texts:
            paragraph.append(line)
        else:
            yield [line]
    if paragraph:
        yield _filled(paragraph)


def _filled(paragraph: list[str]) -> list[str]:
    if all(len(line) <= WIDTH for line in paragraph):
        return paragraph
    first = paragraph[0]
    item = _ITEM.match(first)
    begin = item[0] if item else first[: len(first) - len(first.lstrip())]
    indent = " " * len(begin)
    words = _WORD.findall("\n".join([first[len(begin) :], *paragraph[1:]]))
    lines, line = [], begin
    for word in (re.sub(r"\s*\n\s*", " ", word) for word in words):
        joint = "" if line in {begin, indent} else " "
        if joint and len(line) + 1 + len(word) > WIDTH and not _STARTS.match(word):
            lines.append(line)
            line, joint = indent, ""
        line += joint + word
    return [*lines, line]


if __name__ == "__main__":
    for page in [Path(name) for name in sys.argv[1:]] or pages():
        page.write_text(wrapped(page.read_text()))
