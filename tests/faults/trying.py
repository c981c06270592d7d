"""The rows of one file as tests: one test file for each, so that workers share them (a file's tests run in one)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.row import Row, all_rows
from tests.faults.trial import play, teller


def rows_of(topic: str) -> list[Row]:
    return [row for row in all_rows().values() if row.act.__module__ == f"tests.faults.rows_{topic}"]


def short(topic: str) -> Callable[..., None]:
    """A test of every row of rows_TOPIC.py, for as long as in `make test`."""

    @pytest.mark.timeout(300)
    @pytest.mark.parametrize("row", [each for each in rows_of(topic) if not each.soak_only], ids=_name)
    def test_short(row: Row, tmp_path: Path) -> None:
        _try(row, row.short_s, tmp_path)

    return test_short


def long(topic: str) -> Callable[..., None]:
    """The same for as long as their figures in docs/reliability.md were measured."""

    @pytest.mark.soak
    @pytest.mark.timeout(7_200)
    @pytest.mark.parametrize("row", rows_of(topic), ids=_name)
    def test_long(row: Row, tmp_path: Path) -> None:
        _try(row, row.long_s, tmp_path)

    return test_long


def _name(row: Row) -> str:
    return row.name


def _try(row: Row, seconds: float, folder: Path) -> None:
    missing = row.needs()
    if missing:
        pytest.skip(missing)
    trial = play(row, seconds, teller(), folder)
    print(trial)
    assert trial.holds, str(trial)
