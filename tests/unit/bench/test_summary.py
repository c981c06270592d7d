"""The last table of `make bench`, from results that are made up."""

from typing import Any

from bench.results import compared, ratios
from bench.summary import GOALS, table

RESULTS: dict[str, dict[str, Any]] = {
    "burst": {"figures": {"per_second": 25_000, "first_ms": 27.9}},
    "limits": {"figures": {"rows_per_second": 37_426, "bare_rows_per_second": 103_804}},
    "rivals": {"figures": {"recurring_by_best_ratio": 9.46, "cronring_recurring_per_second": 6_254,
                           "best_rival_recurring_per_second": 1_093.5}},
}  # fmt: skip


def test_each_goal_stands_beside_what_was_measured() -> None:
    text = table(RESULTS, "in 14.2 minutes")
    assert "in 14.2 minutes" in text
    assert "| 25,000/s | at least 20,000: met | 37,426 bare row changes on our tables, 103,804 on bare ones |" in text
    assert "| 27.9 ms | at most 10: missed |" in text
    assert "| 6,254/s |  | best rival 1,094 |" in text
    assert "| 9.46x | at least 10: missed |" in text


def test_what_was_not_measured_is_left_out() -> None:
    assert "steady" not in table(RESULTS, "")


def test_every_goal_is_of_a_figure_of_its_own() -> None:
    assert len({(goal.part, goal.figure) for goal in GOALS}) == len(GOALS)


def test_figures_are_compared_with_those_of_the_run_before() -> None:
    assert ratios({"a": 3.0, "b": 1.0, "c": 0.0}, {"a": 2.0, "c": 1.0}) == {"a": 1.5}
    before: dict[str, Any] = {"shape": {"jobs": 1}, "machine": {"date": "then"}, "figures": {"a": 2.0}}
    assert compared({"shape": {"jobs": 1}, "figures": {"a": 3.0}}, before) == ["", "By the run of then: a 1.5."]
    assert compared({"shape": {"jobs": 2}, "figures": {"a": 3.0}}, before) == []
    assert compared({"shape": {"jobs": 1}, "figures": {"a": 3.0}}, {}) == []
