"""Every row of docs/reliability.md, in its short form; in `make soak` as long as its figures were measured."""

from pathlib import Path

import pytest

from tests.faults import table
from tests.faults.row import ROWS, all_rows
from tests.faults.trial import play, teller

SHORT = [row.name for row in all_rows().values() if not row.soak_only]


def try_row(name: str, seconds: float, folder: Path) -> None:
    row = ROWS[name]
    missing = row.needs()
    if missing:
        pytest.skip(missing)
    trial = play(row, seconds, teller(), folder)
    print(trial)
    assert trial.holds, str(trial)


@pytest.mark.parametrize("name", SHORT)
def test_short(name: str, tmp_path: Path) -> None:
    try_row(name, ROWS[name].short_s, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("name", list(ROWS))
def test_long(name: str, tmp_path: Path) -> None:
    try_row(name, ROWS[name].long_s, tmp_path)


def test_the_table_is_what_the_rows_printed() -> None:
    """Each row stands in it, has been run, and held."""
    text = table.DOCUMENT.read_text()
    assert table.table() in text, "python -m tests.faults --table"
    for row in ROWS.values():
        figures = table.figures(row)
        assert figures is not None, f"make fault ROW={row.name} ARGS='--long --keep'"
        assert figures["holds"], row.name
