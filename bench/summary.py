"""What the parts of one run come to: each goal of issue 6 beside what was measured, the rivals and the floor."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bench.results import rows

Results = Mapping[str, Mapping[str, Any]]  # by part


class Goal(NamedTuple):
    """A figure, and what it should be: at least so much, or at most. `beside`: what it is to be seen beside."""

    what: str
    part: str
    figure: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    beside: str = ""


GOALS: Final = (
    Goal("burst of 10,000: executions", "burst", "per_second", "/s", at_least=20_000, beside="floor"),
    Goal("burst of 10,000: first start after the tick", "burst", "first_ms", "ms", at_most=10),
    Goal("burst of 10,000: lateness p50", "burst", "p50_ms", "ms"),
    Goal("burst of 10,000: lateness p99", "burst", "p99_ms", "ms"),
    Goal("steady 25/s: lateness p99", "steady", "25_p99_ms", "ms", at_most=15),
    Goal("steady 100/s: lateness p99", "steady", "100_p99_ms", "ms", at_most=25),
    Goal("steady 500/s: lateness p99", "steady", "500_p99_ms", "ms", at_most=100),
    Goal("steady 1,000/s: lateness p99", "steady", "1000_p99_ms", "ms"),
    Goal("idle, a million jobs: statements of the cluster", "idle", "1000000_jobs_statements_per_s", "/s"),
    Goal("idle, a million jobs: a controller is ready after", "idle", "1000000_jobs_ready_s", "s", at_most=3),
    Goal("herd of 20,000 of 100,000 jobs: executions", "herd", "per_second", "/s"),
    Goal("ring of 256 members: one comes", "membership", "ring_comes_ms_of_256", "ms", at_most=20),
    Goal(
        "2,000 recurring beside rivals: executions", "rivals", "cronring_recurring_per_second", "/s", beside="recurring"
    ),
    Goal("the same, by the best rival", "rivals", "recurring_by_best_ratio", "x", at_least=10),
    Goal("one-shots beside rivals: executions", "rivals", "cronring_queue_per_second", "/s", beside="queue"),
    Goal("the same, by the fastest queue", "rivals", "queue_by_best_ratio", "x", at_least=1),
)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def _wanted(goal: Goal, value: float) -> str:
    if goal.at_least is not None:
        return f"at least {_number(goal.at_least)}: {'met' if value >= goal.at_least else 'missed'}"
    if goal.at_most is not None:
        return f"at most {_number(goal.at_most)}: {'met' if value <= goal.at_most else 'missed'}"
    return ""


def _beside(goal: Goal, results: Results) -> str:
    """The floor of the same run, or the best rival of its own."""
    if goal.beside == "floor" and "limits" in results:
        figures = results["limits"]["figures"]
        bare = f"{_number(figures['rows_per_second'])} bare row changes on our tables"
        return f"{bare}, {_number(figures['bare_rows_per_second'])} on bare ones"
    best = results.get(goal.part, {}).get("figures", {}).get(f"best_rival_{goal.beside}_per_second")
    return "" if best is None else f"best rival {_number(best)}"


def table(results: Results, when: str) -> str:
    """Markdown; figures of parts that weren't measured are left out. `when`: what is said of the run."""
    cells = []
    for goal in GOALS:
        value = results.get(goal.part, {}).get("figures", {}).get(goal.figure)
        if value is not None:
            shown = f"{_number(value)} {goal.unit}".replace(" /s", "/s").replace(" x", "x")
            cells.append([goal.what, shown, _wanted(goal, value), _beside(goal, results)])
    return "\n".join([f"### all of it, {when}", "", *rows(["what", "measured", "goal", "beside"], cells)]) + "\n"
