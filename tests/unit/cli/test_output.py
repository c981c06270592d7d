"""Tables on a terminal."""

import sys

import pytest

from cronring.cli.output import Column, print_rows

KEY = "billing.close_the_month_of_every_customer"
INSTANT = "2026-11-21 10:06:25Z"


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_words_stay_whole_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table: list[Column[tuple[str, str, str]]] = [
        Column("job", lambda row: row[0]),
        Column("next run", lambda row: row[1]),
        Column("last start", lambda row: row[2]),
    ]
    print_rows(table, [(KEY, INSTANT, INSTANT)] * 2, "none")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2
    assert all(line.count(KEY) == 1 and line.count(INSTANT) == 2 for line in lines[1:])
