"""The frames of `cronring top`."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from cronring.cli.top.frame import Counting, Frame, Rates
from cronring.cli.top.picture import picture
from cronring.client import convert
from cronring.client.model import Cluster, Due, Execution, Member, Runner
from cronring.client.statistics import SchedulerStats
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import execution
from tests.unit.cli.fake_times import EPOCH


def figures(seconds: float = 0, executions: int = 0, failures: int = 0) -> SchedulerStats:
    at = EPOCH + timedelta(seconds=seconds)
    outcomes = {"completed": executions - failures, "failed": failures}
    jobs = {"scheduled": 1_000, "running": 12, "paused": 1}
    return SchedulerStats(at, jobs, executions, 12, 0, failures, outcomes, None, None, None, 0, None, None)


def run(number: int, **fields: Any) -> Execution:
    row = convert.execution(execution(number))
    return dataclasses.replace(row, job="a_module_with_a_long_name.and_a_verb_with_one_too", **fields)


def frame(count: int) -> Frame:
    members = tuple(
        Member(f"controller-{n}", f"10.0.0.{n}:7400", "", "alive", 1, 1 / 3, 1, 1, None, 1, "1", EPOCH)
        for n in range(count)
    )
    runners = tuple(Runner(f"runner-{n}", "host", 1, EPOCH, EPOCH, ("m@1",), True) for n in range(count))
    now = EPOCH + timedelta(hours=1)
    cluster = Cluster("controller-0", members, runners, now, 0.0, "x")
    due = tuple(Due(f"m.v{n}", now, now + timedelta(seconds=n)) for n in range(count))
    failed = run(1, outcome="failed", error_type="ValueError", error_message="no such month\nTraceback")
    running = [run(n, outcome=None, ended_at=None) for n in range(count)]
    return Frame(cluster, figures(), running, due, [failed] * count, Rates(10.0, 9.5, 0.25))


def drawn(found: Frame, width: int, height: int, problem: str = "") -> list[str]:
    console = Console(width=width, height=height, record=True, color_system=None)
    with console.capture() as captured:
        console.print(picture(found, width, height, problem))
    return captured.get().rstrip("\n").split("\n")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 50), (200, 24)])
@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_it_fits_its_terminal(width: int, height: int, count: int) -> None:
    lines = drawn(frame(count), width, height, "no controller answered:\n  127.0.0.1:7400")
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width


def test_it_shows_each_part() -> None:
    text = "\n".join(drawn(frame(3), 110, 40))
    for words in (
        "by controller-0", "1000 scheduled", "10.0 started/s, 9.5 ended/s, 0.2 failed/s", "controllers (3)", "33%",
        "runners (3)", "1 mod.", "running (12)", "#2", "m.v1", "1s", "failed lately", "ValueError: no such month",
    ):  # fmt: skip
        assert words in text, words


def test_rates_are_of_the_last_seconds() -> None:
    counting = Counting()
    assert counting.take(figures(0)) is None
    assert counting.take(figures(0)) is None
    assert counting.take(figures(10, 100, 20)) == Rates(10.0, 10.0, 2.0)
    assert counting.take(figures(20, 100, 20)) == Rates(5.0, 5.0, 1.0)
    assert counting.take(figures(30, 100, 20)) == Rates(0.0, 0.0, 0.0)


def test_without_a_terminal_only_one_frame_is_printed(asked: Cronring) -> None:
    done = asked("top")
    assert done.exit_code == 2
    assert "--once" in done.stderr
