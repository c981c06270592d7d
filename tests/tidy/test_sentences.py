"""Sentences beside code are as short as those of pages: docstrings, comments, SQL and the protocols' files."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.tidy.test_docs import LINE_MAX, SENTENCE_MAX
from tests.tidy.test_tidy import ROOT, sources, tracked

# Lines that are indented stand for themselves, as in Markdown: examples, tables. So does what click leaves as it is.
_VERBATIM: Final = re.compile(r"^ {4}.*$|^\x08\n(?:.+\n?)*", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")
_SENTENCE: Final = re.compile(r"(?<=[.!?:])[)\"']?\*{0,2}\s")
_MARKS: Final = {".py": "#", ".sql": "--", ".proto": "//"}
_COMMENT: Final = {suffix: re.compile(rf"^(\s*){mark}(?: (.*))?$") for suffix, mark in _MARKS.items()}
GENERATED: Final = {ROOT / "sql" / "schema.sql"}


class Block(NamedTuple):
    """What is read in one go: a docstring, or comments below each other."""

    line: int
    text: str


def docstrings(source: str) -> Iterator[Block]:
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:  # not ast.walk: expressions are most of a tree, and hold none
        node = waiting.pop()
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, name, ())
            waiting += inner if isinstance(inner, list) else ()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield Block(node.body[0].lineno, text)


def comments(suffix: str, source: str) -> Iterator[Block]:
    """Lines that hold nothing else, those that follow each other together. Beside code there is no room for much."""
    texts: list[str] = []
    start = column = 0
    for number, line in enumerate(source.splitlines(), 1):
        found = _COMMENT[suffix].match(line)
        if not found or (number, found.end(1)) != (start + len(texts), column):
            yield Block(start, "\n".join(texts))
            texts, start = [], number
        if found:
            column = found.end(1)
            text = found[2] or ""
            texts.append("" if text.startswith("name: ") else text)  # a statement's name is no sentence
    yield Block(start, "\n".join(texts))


def blocks(path: Path) -> Iterator[Block]:
    source = path.read_text()
    if path.suffix == ".py":
        yield from docstrings(source)
    yield from comments(path.suffix, source)


def long_sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(_VERBATIM.sub("\n", text)):
        for sentence in _SENTENCE.split(re.sub(r"`[^`]*`", "code", paragraph)):
            words = sentence.split()
            if len(words) > SENTENCE_MAX:
                yield " ".join(words)


def read() -> list[Path]:
    """All that people write and read; what is generated is as long as what it was made from."""
    others = [path for path in tracked() if path.suffix in (".sql", ".proto") and path not in GENERATED]
    return sources() + others


@pytest.mark.parametrize("suffix", [".py", ".sql", ".proto"])
def test_sentences_are_short(suffix: str) -> None:
    long = [
        f"{path.relative_to(ROOT)}:{block.line}: {sentence}"
        for path in read()
        if path.suffix == suffix
        for block in blocks(path)
        for sentence in long_sentences(block.text)
    ]
    assert not long, "\n".join(long)


def test_lines_fit() -> None:
    """Those of Python are ruff's to hold."""
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in read()
        if path.suffix != ".py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_MAX
    ]
    assert not long, long


def test_what_is_looked_at(tmp_path: Path) -> None:
    words = "word " * SENTENCE_MAX
    python = tmp_path / "some.py"
    python.write_text(
        f'"""{words}long.\n\nShort: {words}\n\n    an example {words}\n"""\n'
        f"# {words}and\n# its end\nx = 1\n# {words}\n    # of another block\n"
    )
    found = [sentence.split()[-1] for block in blocks(python) for sentence in long_sentences(block.text)]
    assert found == ["long.", "end"]
    sql = tmp_path / "some.sql"
    sql.write_text(f"-- name: Get\n-- {words}\n-- {words}twice.\nSELECT 1;\n")
    assert [long.split()[-1] for block in blocks(sql) for long in long_sentences(block.text)] == ["twice."]
