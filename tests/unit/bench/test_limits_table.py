"""The table of `make bench-limits`, from samples that are made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.limits_rows import VARIANTS, statement
from bench.limits_table import Sample, figure, of_bare, table
from bench.results import keep


def rows_figure(tables: str, done: list[int]) -> dict[str, Any]:
    samples = [Sample(each, 2.0, {"postgresql": 1.0, "python": 0.1}) for each in done]
    return figure({"tables": tables, "rows": 1_000, "connections": 2}, samples)


def result() -> dict[str, Any]:
    sample = Sample(440_000, 1.0, {"caller": 0.88, "answerer": 0.66})
    return {
        "name": "limits",
        "shape": {"rounds": 3, "seconds": 2.0, "jobs": 10_000},
        "machine": {"date": "2026-11-22", "machine": "2 cores"},
        "settings": {"fsync": "on", "synchronous_commit": "on"},
        "fdatasync_us": {"median": 45, "p99": 130, "count": 300},
        "rows": [rows_figure("ours", [100_000, 20_000, 50_000]), rows_figure("bare", [200_000, 160_000, 25_000])],
        "alone": [
            {"rows": 1, "store_us": 790.0, "ours_us": 600.0, "bare_us": 400.0, "nothing_us": 86.0, "of_ours": 1.32},
            {"rows": 500, "store_us": 50.0, "ours_us": 32.0, "bare_us": 11.0, "nothing_us": 86.0, "of_ours": 1.56},
        ],
        "grpc": [figure({"exchange": "one stream", "items": 100, "in_flight": 0}, [sample])],
        "item_bytes": {"run": 170, "report": 51},
        "load": {"before": 0.4, "after": 2.1},
    }


def test_a_figure_is_the_median_of_its_rounds_and_tells_what_each_side_spent_on_one() -> None:
    ours = rows_figure("ours", [100_000, 20_000, 50_000])
    assert (ours["per_second"], ours["lowest"], ours["highest"]) == (25_000, 10_000, 50_000)
    assert ours["cpu_us"] == {"postgresql": 20.0, "python": 2.0}
    assert ours["cores"] == {"postgresql": 0.5, "python": 0.05}
    assert ours["rounds"][0] == {"done": 100_000, "seconds": 2.0, "cpu_s": {"postgresql": 1.0, "python": 0.1}}


def test_what_is_compared_was_measured_side_by_side() -> None:
    # By the rounds' ratios 0.5, 0.125 and 2; the medians' own would be 0.31.
    found = result()["rows"]
    assert of_bare(*found) == 0.5


def test_the_table_says_what_it_was_measured_on_and_each_figure() -> None:
    lines = table(result()).splitlines()
    assert lines[0] == "### limits: 3 rounds, 2.0 seconds, 10000 jobs"
    assert lines[2] == "date 2026-11-22 | machine 2 cores"
    assert lines[4].startswith("fdatasync of 8 KiB on this disk: 45 µs, the median of 300 (p99 130)")
    assert lines[4].endswith("fsync on, synchronous_commit on.")
    assert lines[5].startswith("Load average 0.4 before, 2.1 after.")
    assert lines[9:11] == [
        "| cronring's tables | 1,000 | 2 | 25,000 | 10,000 to 50,000 | 0.5 | 20.0 | 2.0 | 0.5 | 0.05 |",
        "| bare tables | 1,000 | 2 | 80,000 | 12,500 to 100,000 |  | 6.2 | 0.6 | 0.5 | 0.05 |",
    ]
    assert lines[14:16] == [
        "| 1 | 790.0 | 600.0 | 400.0 | 86.0 | 1.32 |",
        "| 500 | 50.0 | 32.0 | 11.0 |  | 1.56 |",
    ]
    assert lines[-1] == "The messages are made once. A run takes 170 bytes, a report 51."
    assert lines[-3] == "| one stream | 100 | 440,000 | 440,000 to 440,000 | 4,400 | 2.0 | 1.5 | 0.88 | 0.66 |"
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert len(widths) == 3, "a head, a rule and rows of one width for each of the three"


def test_a_result_is_kept_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "results"
    keep(result(), "a table\n", folder)
    assert json.loads((folder / "limits.json").read_text()) == result()
    assert (folder / "limits.md").read_text() == "a table\n"
    assert capsys.readouterr().out.startswith("a table\n")


def test_every_statement_is_there() -> None:
    for name in (
        "claim, ours",
        "end, ours",
        "claim, bare",
        "end, bare",
        "bare tables",
        "jobs",
        "partitions",
        "settings",
    ):
        assert statement(name).strip()
    with pytest.raises(KeyError):
        statement("claim")
    assert len(set(VARIANTS)) == 5
