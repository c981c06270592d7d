"""`Did you mean` costs little, whatever is asked and however much is known."""

import subprocess
from difflib import get_close_matches
from pathlib import Path

import pytest

from cronring.schema.nearest import READ_MAX, WORD_MAX, nearest

WORDS = ("timezone", "retries", "retry_on", "overlap", "on_missed", "window", "late_after", "schedule", "labels.team")
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "word", ["timezon", "retires", "overlop", "on_mised", "windows", "schedul", "label.team", "latter"]
)
def test_it_says_what_difflib_says(word: str) -> None:
    assert [nearest(word, WORDS)] == get_close_matches(word, WORDS, 1)


def test_what_is_not_alike_is_not_named() -> None:
    assert nearest("xyz", WORDS) is None
    assert nearest("", WORDS) is None
    assert nearest("retrys", WORDS, cutoff=0.99) is None


def test_a_long_word_and_many_candidates_are_not_all_looked_at() -> None:
    read = 0

    def candidates() -> object:
        nonlocal read
        while True:
            read += 1
            yield "a" * 50

    assert nearest("a" * (WORD_MAX + 1), candidates()) is None  # type: ignore[arg-type]  # they never end
    assert read == 0
    assert nearest("a" * 50, candidates()) == "a" * 50  # type: ignore[arg-type]  # they never end
    assert read < READ_MAX // 50


def test_nothing_else_compares_words() -> None:
    """Authors' own code is stdlib only, and is asked by nobody but its author."""
    found = subprocess.run(
        ["git", "grep", "-lE", "^(import|from) difflib", "--", "schema", "controller", "cronring"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert found == ["cronring/declare.py", "schema/nearest.py"]
