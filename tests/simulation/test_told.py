"""What a simulated runner is told of a run, and tells of its end, is all that there is to tell."""

import random

import pytest

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.node.events import ReportsReceived
from cronring.runner.core import effects, events
from cronring.schema.execution import Outcome, Report, Run, ScheduleKind
from cronring.schema.policy_model import Policy
from tests.simulation.runners import Runner
from tests.simulation.world import World

POLICY = Policy(timezone="Europe/Berlin", memory_limit="64MiB", cpu_limit="2s", priority=5).text
JOB = Job(3, "m.v", 5, "m@1", "v", "every 5m", 0, 1, 60_000, "finish", True, None, None, POLICY, '{"a":1}')
EXECUTION = Execution(7, JOB, 10, 11, 12, 2, "schedule", "m@1", "r", 4, 8, 9, '{"a":1}')
REPORT = Report(7, 3, 12, Outcome.FAILED, 13, 14, "E", "m", "o", 5, ("B",), "s", 6, 8, True, '{"n":1}')
ADDRESS = "host-0:7000"


def make_runner() -> Runner:
    return Runner(World(1), "r", ("m@1",), random.Random(1), 0)


def test_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, told = make_runner(), list[events.Event]()
    monkeypatch.setattr(runner, "put", told.append)
    runner._received(ADDRESS, ("dispatch", 1, [EXECUTION], [6]))
    deadline_us, kind = 60_000_012, ScheduleKind.INTERVAL
    run = Run(
        7, 3, "m.v", "m@1", "v", 10, 11, 12, deadline_us, 2, "schedule", True, 4, 8, 9, '{"a":1}', "Europe/Berlin",
        kind, 64 << 20, 2_000_000, 5, 6,
    )  # fmt: skip
    assert told == [events.Dispatched(ADDRESS, 1, [run])]


def test_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, told = make_runner(), list[object]()
    monkeypatch.setattr(runner, "_send", lambda _, message: told.append(message))
    runner.perform(effects.SendReports(ADDRESS, [REPORT]))
    assert told == [ReportsReceived("r", [REPORT])]
