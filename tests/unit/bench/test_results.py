"""What is kept of a measurement, and what is not: a shortened trial takes away no figure that pages quote."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.results import keep


def result(**others: Any) -> dict[str, Any]:
    return {
        "name": "idle",
        "shape": {"jobs at most": 1_000_000},
        "machine": {"date": "then"},
        "sizes": [{"jobs": 1_000_000}],
        "figures": {"1000_jobs_ready_s": 0.8, "1000000_jobs_ready_s": 0.8},
    } | others


OTHER_SHAPES = {
    "asked for less": (result(shape={"jobs at most": 1_000}), "shape"),
    "a figure less": (result(figures={"1000_jobs_ready_s": 0.8}), "figures 1000000_jobs_ready_s"),
    "a figure more": (result(figures=result()["figures"] | {"10_jobs_ready_s": 0.8}), "figures 10_jobs_ready_s"),
    "a key less": ({name: value for name, value in result().items() if name != "sizes"}, "keys sizes"),
    "no figures at all": (result(figures={}), "figures 1000000_jobs_ready_s, 1000_jobs_ready_s"),
}


@pytest.mark.parametrize(("other", "words"), OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_a_result_of_another_shape_overwrites_none(
    other: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keep(result(), "the kept table\n", tmp_path)
    assert not keep(other, "the trial's table\n", tmp_path)
    assert json.loads((tmp_path / "idle.json").read_text()) == result()
    assert (tmp_path / "idle.md").read_text() == "the kept table\n"
    shown = capsys.readouterr()
    assert "the trial's table" in shown.out, "what was measured is shown all the same"
    assert f"Not kept: idle.json, which was kept before, differs in {words}" in shown.err


def test_a_result_of_the_same_shape_takes_the_place_of_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = result(machine={"date": "now"}, figures={"1000_jobs_ready_s": 0.4, "1000000_jobs_ready_s": 1.6})
    assert keep(result(), "before\n", tmp_path)
    assert keep(later, "after\n", tmp_path)
    assert json.loads((tmp_path / "idle.json").read_text()) == later
    assert "By the run of then: 1000_jobs_ready_s 0.5, 1000000_jobs_ready_s 2.0." in (tmp_path / "idle.md").read_text()
    assert not capsys.readouterr().err


def test_once_the_kept_result_is_removed_another_shape_is_kept(tmp_path: Path) -> None:
    assert keep(result(), "before\n", tmp_path)
    (tmp_path / "idle.json").unlink()
    other = result(shape={"jobs at most": 1_000})
    assert keep(other, "after\n", tmp_path)
    assert json.loads((tmp_path / "idle.json").read_text()) == other
