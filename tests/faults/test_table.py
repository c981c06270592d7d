"""docs/reliability.md has a line for every row, of figures that its command printed."""

from pathlib import Path

import pytest

from tests.faults import table
from tests.faults.row import Row, all_rows

FOLDER = Path(__file__).parent


def test_the_table_is_what_the_rows_printed() -> None:
    assert table.table() in table.DOCUMENT.read_text(), "python -m tests.faults --table"


@pytest.mark.parametrize("row", all_rows().values(), ids=lambda row: row.name)
def test_every_row_was_run_and_held(row: Row) -> None:
    figures = table.figures(row)
    assert figures is not None, f"make fault ROW={row.name} ARGS='--long --keep'"
    assert figures["holds"]


def test_every_file_of_rows_is_tried() -> None:
    topics = {path.stem.removeprefix("rows_") for path in FOLDER.glob("rows_*.py")}
    assert topics == {topic for topic in topics if (FOLDER / f"test_{topic}.py").exists()}
