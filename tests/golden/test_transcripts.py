"""Stories told to a node, and what it does, held against what was reviewed.

Lines that begin with `>` are commands (tests/golden/stage.py), `#` explains, and the rest is the node's. After a wanted
change of behaviour, `UPDATE_TRANSCRIPTS=1 pytest tests/golden` writes them anew: read the difference before committing.
"""

import os
from pathlib import Path

import pytest

from tests.golden.stage import Stage

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def retell(text: str) -> str:
    stage = Stage()
    told: list[str] = []
    for line in text.splitlines():
        if line.startswith(("#", ">")) or not line.strip():
            told.append(line)
        if line.startswith(">"):
            stage.play(line.removeprefix(">").strip())
            told += [f"    {each}" for each in stage.lines]
            stage.lines.clear()
    return "\n".join(told) + "\n"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text()
    told = retell(text)
    if os.environ.get("UPDATE_TRANSCRIPTS"):
        path.write_text(told)
    else:
        assert told == text


def test_there_are_stories() -> None:
    assert len(STORIES) >= 8
