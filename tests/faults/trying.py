"""The rows of one file as tests: one test file for each, so that workers share them (a file's tests run in one)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.faults.row import Row, all_rows
from tests.faults.trial import Trial, play, teller

WAITING_MAX: Final = 2.5  # processes to a core that run or want to, as the mean of a minute


def waiting_for_cores() -> float:
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def rows_of(topic: str) -> list[Row]:
    return [row for row in all_rows().values() if row.act.__module__ == f"tests.faults.rows_{topic}"]


def short(topic: str) -> Callable[..., None]:
    """A test of every row of rows_TOPIC.py, for as long as in `make test-long`.

    What is never to happen (twice, early, beside, lost) fails it at once. What is only too late, or too slow to come
    about, is tried once more, as all of the suite shares the cores. In `make soak` it is not.
    """

    @pytest.mark.parametrize("row", [each for each in rows_of(topic) if not each.soak_only], ids=_name)
    def test_short(row: Row, tmp_path: Path) -> None:
        trial = _tried(row, row.short_s, tmp_path / "first")
        if trial is None or (trial.safe and not trial.holds):
            trial = _tried(row, row.short_s, tmp_path / "again")
            if trial is not None and trial.safe and not trial.holds and waiting_for_cores() > WAITING_MAX:
                pytest.skip(f"late, with {waiting_for_cores():.1f} processes to a core: {trial}")
        _assert_holds(trial)

    return test_short


def long(topic: str) -> Callable[..., None]:
    """The same for as long as their figures in docs/reliability.md were measured."""

    @pytest.mark.soak
    @pytest.mark.timeout(7_200)
    @pytest.mark.parametrize("row", rows_of(topic), ids=_name)
    def test_long(row: Row, tmp_path: Path) -> None:
        _assert_holds(_tried(row, row.long_s, tmp_path))

    return test_long


def _name(row: Row) -> str:
    return row.name


def _tried(row: Row, seconds: float, folder: Path) -> Trial | None:
    """None: what it waited for did not come about in time."""
    missing = row.needs()
    if missing:
        pytest.skip(missing)
    try:
        trial = play(row, seconds, teller(), folder)
    except AssertionError as error:
        print(error)
        return None
    print(trial)
    return trial


def _assert_holds(trial: Trial | None) -> None:
    assert trial is not None, "what it waited for did not come about in time"
    assert trial.holds, str(trial)
