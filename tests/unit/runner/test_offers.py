"""Whom a runner tells how a run ended, until somebody has committed it."""

from cronring.runner.core.effects import (
    SendReports,
    StartRuns,
)
from cronring.runner.core.events import (
    LinkDown,
    ReportsAcked,
    RunsEnded,
)
from tests.unit.runner.world import World, make_result, make_run


def test_a_run_starts_once_and_its_result_goes_to_whoever_dispatched_it_last() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1), make_run(2), make_run(1))
    world.dispatch("b", make_run(1))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1, 2]
    world.step(RunsEnded([make_result(1), make_result(2)]))
    assert [(r.address, [x.execution_id for x in r.results]) for r in world.of(SendReports)] == [("b", [1]), ("a", [2])]


def test_a_result_is_kept_until_it_is_acknowledged_then_remembered() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.step(RunsEnded([make_result(1)]))
    world.effects.clear()
    world.dispatch("b", make_run(1))  # b adopted it, and asks again
    assert [report.address for report in world.of(SendReports)] == ["b"]
    world.step(ReportsAcked((1,)))
    world.effects.clear()
    world.dispatch("a", make_run(1))  # decided from a stale answer
    world.pass_s(30)
    assert not world.of(SendReports)
    assert not world.of(StartRuns)


def test_an_unacknowledged_result_is_offered_to_another_after_10_s() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.step(RunsEnded([make_result(1)]))
    world.pass_s(9)
    assert [report.address for report in world.of(SendReports)] == ["a"]
    world.pass_s(3)
    assert [report.address for report in world.of(SendReports)] == ["a", "b"]


def test_results_wait_while_nobody_is_there() -> None:
    world = World("a", "b")
    world.up("a")
    world.dispatch("a", make_run(1, finish=True))
    world.step(LinkDown("a", "gone"))
    world.step(RunsEnded([make_result(1)]))
    world.pass_s(60)
    assert world.of(SendReports) == []
    world.up("b")
    assert [report.address for report in world.of(SendReports)] == ["b"]


def test_a_result_goes_to_another_controller_when_the_one_that_has_it_cannot_commit_it() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.blind.add("a")  # cut off from PostgreSQL, whose packets are dropped without a word
    world.step(RunsEnded([make_result(1)]))
    assert [report.address for report in world.of(SendReports)] == ["a"]
    world.pass_s(3)
    assert [report.address for report in world.of(SendReports)] == ["a", "b"]


def offered(world: World) -> list[tuple[str, list[int]]]:
    return [(report.address, [each.execution_id for each in report.results]) for report in world.of(SendReports)]


def test_results_go_to_another_controller_when_the_one_that_has_them_stands_still() -> None:
    """It is taken for gone after 5 s of silence; its runs' jobs would wait for their next ticks so long."""
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1), make_run(2))
    world.pass_s(0.5)
    world.silent.add("a")
    world.step(RunsEnded([make_result(1)]))
    assert offered(world) == [("a", [1])]
    world.pass_s(3)
    assert offered(world) == [("a", [1]), ("b", [1])]
    world.step(RunsEnded([make_result(2)]))
    assert offered(world)[2:] == [("b", [2])], "at once: it is known by now"
    world.step(ReportsAcked((1, 2)))
    world.silent.clear()
    world.pass_s(30)
    assert len(offered(world)) == 3


def test_results_stay_where_they_are_when_every_controller_is_silent() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.silent |= {"a", "b"}
    world.step(RunsEnded([make_result(1)]))
    world.pass_s(5)
    assert offered(world) == [("a", [1])]


def test_results_leave_a_controller_that_has_lost_its_database() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1), make_run(2))
    world.step(RunsEnded([make_result(1)]))
    world.effects.clear()
    world.blind.add("a")
    world.pass_s(1.5)
    world.step(RunsEnded([make_result(2)]))
    assert [(r.address, [x.execution_id for x in r.results]) for r in world.of(SendReports)] == [("b", [1]), ("b", [2])]


def test_results_stay_where_they_are_while_nobody_has_a_database() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.blind |= {"a", "b"}
    world.pass_s(3)
    world.step(RunsEnded([make_result(1)]))
    assert [report.address for report in world.of(SendReports)] == ["a"]
