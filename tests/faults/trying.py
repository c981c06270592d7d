"""The rows of one file as tests: one test file for each, so that workers share them (a file's tests run in one)."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.faults.row import Row, all_rows
from tests.faults.trial import Trial, play, teller
from tests.support.pressure import Pressure

# Of the time of a trial. Alone on two cores, a trial's own processes wait for each other through a third of it.
BUSY: Final = 0.5


def rows_of(topic: str) -> list[Row]:
    return [row for row in all_rows().values() if row.act.__module__ == f"tests.faults.rows_{topic}"]


def short(topic: str) -> Callable[..., None]:
    """A test of every row of rows_TOPIC.py, for as long as in `make test-long`.

    What is never to happen (twice, early, beside, lost) fails it at once. What is only too late, or too slow to come
    about, is tried once more, as all of the suite shares the cores. What is late again, while others used the cores, is
    told and not judged. In `make soak` everything is judged, at once.
    """

    @pytest.mark.parametrize("row", [each for each in rows_of(topic) if not each.soak_only], ids=_name)
    def test_short(row: Row, tmp_path: Path) -> None:
        trial = _tried(row, row.short_s, tmp_path / "first")
        if _is_late(trial):
            pressure = Pressure()
            trial = _tried(row, row.short_s, tmp_path / "again")
            if _is_late(trial) and pressure.share() > BUSY:
                pytest.skip(f"late, on a machine that was short of cores for {pressure.share():.0%} of it: {trial}")
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


def _is_late(trial: Trial | None) -> bool:
    """And nothing worse."""
    return trial is None or (trial.safe and not trial.holds)


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
