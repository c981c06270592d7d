"""The runner's rules, in virtual time."""

import pytest

from cronring.runner.core.effects import (
    CloseLink,
    Finished,
    LogLine,
    OpenLink,
    SendBeat,
    SendDeclined,
    SendReports,
    StartRuns,
    StopRuns,
)
from cronring.runner.core.events import (
    BeatAcked,
    CancelAsked,
    Dispatched,
    DrainAsked,
    LinkDown,
    LinkOpened,
    LinkUp,
    ReportsAcked,
    RunnerWoke,
    RunsEnded,
)
from cronring.runner.core.machine import LINKS_MAX, RunnerCore
from cronring.runner.core.model import StopReason
from cronring.runner.core.settings import SECOND_NS, RunnerSettings
from cronring.schema.execution import Outcome
from tests.unit.runner.world import NOW_US, World, make_result, make_run


def test_one_controller_at_a_time_is_asked_to_renew() -> None:
    world = World("a", "b", "c")
    world.up("a", "b", "c")
    world.effects.clear()
    world.pass_s(20)
    beats = world.of(SendBeat)
    assert {beat.address for beat in beats} == {"a", "b", "c"}
    assert {beat.address for beat in beats if beat.renew} == {"a"}


@pytest.mark.parametrize("fault", ["silent", "blind"])
def test_a_renewer_that_does_not_renew_is_replaced_in_time(fault: str) -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("b", make_run(1))
    getattr(world, fault).add("a")
    world.pass_s(30)
    assert world.of(StopRuns) == []
    assert world.of(SendBeat)[-1].renew or world.of(SendBeat)[-2].renew


def test_without_contact_for_8_s_runs_are_stopped_but_not_those_that_may_finish() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1), make_run(2, finish=True))
    world.silent.add("a")
    world.pass_s(7.99)
    assert world.of(StopRuns) == []
    world.pass_s(0.02)
    [stop] = world.of(StopRuns)
    assert (stop.execution_ids, stop.reason, stop.grace_ms) == ((1,), StopReason.DISCONNECTED, 300)
    world.pass_s(60)
    assert len(world.of(StopRuns)) == 1


def test_the_clusters_durations_replace_the_defaults() -> None:
    """A fence that is longer than what the controllers wait for would let two runs of a job overlap."""
    world = World("a")
    world.step(LinkOpened("a", world.now_ns))
    world.step(LinkUp("a", "a", (), 400, 3_000))
    world.dispatch("a", make_run(1))
    world.pass_s(2)
    assert len(world.of(SendBeat)) >= 4
    world.silent.add("a")
    world.pass_s(2.4)
    assert world.of(StopRuns) == []
    world.pass_s(0.7)
    assert [stop.execution_ids for stop in world.of(StopRuns)] == [(1,)]


def test_durations_that_contradict_each_other_are_refused_aloud() -> None:
    world = World("a")
    world.step(LinkOpened("a", world.now_ns))
    effects = world.step(LinkUp("a", "a", (), 1_000, 1_000))
    assert "settings_refused" in [effect.event for effect in effects if isinstance(effect, LogLine)]


def test_contact_counts_from_the_sending_of_the_beat() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.silent.add("a")
    world.pass_s(1)
    beat = world.of(SendBeat)[-1]
    sent_ns = world.now_ns
    world.pass_s(5)
    world.step(BeatAcked("a", beat.sequence, True, True, ()))
    world.pass_s((sent_ns + 8 * SECOND_NS - world.now_ns) / SECOND_NS - 0.01)
    assert world.of(StopRuns) == []
    world.pass_s(0.02)
    assert len(world.of(StopRuns)) == 1


def test_an_answer_without_a_renewal_is_no_contact() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.silent.add("a")
    for _ in range(9):
        world.pass_s(1)
        world.step(BeatAcked("a", world.of(SendBeat)[-1].sequence, False, True, ()))
    assert len(world.of(StopRuns)) == 1


def test_all_controllers_without_a_database_is_contact_but_one_silent_one_spoils_it() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.dispatch("a", make_run(1))
    world.blind |= {"a", "b"}
    world.pass_s(60)
    assert world.of(StopRuns) == []
    world.silent.add("b")
    world.pass_s(10)
    assert len(world.of(StopRuns)) == 1


def test_a_fenced_runner_begins_nothing_until_contact_is_back() -> None:
    world = World("a")
    world.up("a")
    world.blind.add("a")
    world.step(LinkDown("a", "gone"))
    world.pass_s(9)
    world.step(LinkOpened("a", world.now_ns))
    world.silent.add("a")
    world.step(LinkUp("a", "a", ("b",), 1_000, 8_000))  # b might reach the database
    world.pass_s(9)
    world.dispatch("a", make_run(1))
    assert (world.of(StartRuns), world.of(SendReports), world.of(SendDeclined)) == ([], [], [])
    world.silent.clear()
    world.blind.clear()
    world.pass_s(2)
    assert world.of(SendDeclined) == [SendDeclined("a", (1,))]
    world.dispatch("a", make_run(2))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [2]


def out_of_contact() -> World:
    world = World("a", "b")
    for address in ("a", "b"):
        world.step(LinkOpened(address, world.now_ns))
        world.step(LinkUp(address, address, (), 1_000, 8_000))
    world.silent |= {"a", "b"}
    world.pass_s(9)
    return world


def test_what_comes_without_contact_is_given_back_once_there_is_contact_again() -> None:
    """Nothing of it has begun. It ended as `cancelled`, though nobody had cancelled it, and the tick was gone."""
    world = out_of_contact()
    world.dispatch("a", make_run(1), make_run(2))
    world.dispatch("b", make_run(3))
    world.dispatch("a", make_run(2))  # once more
    assert (world.of(StartRuns), world.of(SendReports), world.of(SendDeclined)) == ([], [], [])
    world.silent.clear()
    world.pass_s(2)
    assert world.of(SendDeclined) == [SendDeclined("a", (1, 2)), SendDeclined("b", (3,))]
    world.dispatch("b", make_run(1))  # its controller has looked up what became of it
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1]
    world.pass_s(2)
    assert len(world.of(SendDeclined)) == 2


def test_whose_stream_broke_looks_up_by_itself_what_this_runner_has_not_begun() -> None:
    world = out_of_contact()
    world.dispatch("a", make_run(1))
    world.dispatch("b", make_run(2))
    world.step(LinkDown("a", "gone"))
    world.silent.clear()
    world.pass_s(2)
    assert world.of(SendDeclined) == [SendDeclined("b", (2,))]


def test_who_leaves_refuses_what_comes_without_contact() -> None:
    world = out_of_contact()
    world.step(DrainAsked())
    world.dispatch("a", make_run(1))
    [report] = world.of(SendReports)
    assert report.results[0].error_type == "Disconnected"


def test_a_run_that_gets_here_past_its_deadline_never_begins() -> None:
    """The runner stood still, and its hard timeout may have passed meanwhile: then its successor has started."""
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))  # as of its claim, which tells this runner what time it is
    world.now_ns += 7 * SECOND_NS
    late = make_run(2)._replace(deadline_us=NOW_US + 7_000_000)
    timely = make_run(3)._replace(deadline_us=NOW_US + 7_000_001)
    world.step(Dispatched("a", NOW_US, [late, timely]))
    world.step(CancelAsked((2,), "hard timeout"))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1, 3]
    assert world.of(StopRuns) == []
    [report] = world.of(SendReports)
    [result] = report.results
    assert (result.execution_id, result.outcome, result.error_type) == (2, Outcome.TIMED_OUT, "TimedOut")
    assert result.started_at == NOW_US + 7_000_000


def test_runs_begin_though_postgresqls_clock_was_set_back() -> None:
    """What was dispatched after beats that are acknowledged can't have been on its way for long: the clock was set."""
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.pass_s(3)
    set_back_us = NOW_US - 600_000_000
    run = make_run(2)._replace(claimed_at_us=set_back_us, deadline_us=set_back_us + 4_000_000)
    world.step(Dispatched("a", set_back_us, [run]))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1, 2]
    late = make_run(3)._replace(deadline_us=set_back_us + 2_000_000)
    world.silent.add("a")  # it stands still from now on
    world.pass_s(3)
    world.step(Dispatched("a", set_back_us, [late]))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1, 2]


def test_controllers_are_learnt_and_forgotten_but_never_those_given() -> None:
    world = World("a")
    world.up("a")
    world.step(BeatAcked("a", 1, False, True, ("a", "b")))
    assert [link.address for link in world.of(OpenLink)] == ["a", "b"]
    world.step(BeatAcked("a", 1, False, True, ("a",)))
    world.pass_s(59)
    assert world.of(CloseLink) == []
    world.pass_s(3)
    assert [link.address for link in world.of(CloseLink)] == ["b"]
    world.step(LinkDown("b", "closed"))  # news of a forgotten one
    world.step(LinkDown("a", "gone"))
    world.pass_s(600)
    assert len(world.of(CloseLink)) == 1


def test_cancelling_touches_only_what_is_held() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.step(CancelAsked((1, 2), "by hand"))
    [stop] = world.of(StopRuns)
    assert (stop.execution_ids, stop.reason, stop.message) == ((1,), StopReason.CANCELLED, "by hand")


def test_a_drain_ends_when_all_is_delivered() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.step(DrainAsked())
    assert world.of(SendBeat)[-1].draining
    world.pass_s(29)
    assert not world.of(StopRuns)
    assert not world.of(Finished)
    world.pass_s(2)
    assert world.of(StopRuns)[0].reason is StopReason.DRAINED
    world.step(RunsEnded([make_result(1)]))
    assert world.of(Finished) == []
    world.step(ReportsAcked((1,)))
    assert world.of(Finished) == [Finished(0)]


def test_a_drain_waits_until_controllers_know_and_never_for_ever() -> None:
    world = World("a")
    world.up("a")
    world.silent.add("a")
    world.step(DrainAsked())
    world.pass_s(4)
    assert world.of(Finished) == []
    world.pass_s(2)
    assert world.of(Finished) == [Finished(0)]


def test_a_runner_that_comes_back_takes_what_waited_for_it_at_once() -> None:
    """Its registration renewed its lease. It refused these runs until its first beat was answered, a second later."""
    world = World("a")
    world.up("a")
    world.step(LinkDown("a", "gone"))
    world.pass_s(20)
    world.silent.add("a")
    world.step(LinkOpened("a", world.now_ns))
    world.dispatch("a", make_run(1))  # by a controller that has not registered it
    assert world.of(StartRuns) == []
    world.step(LinkUp("a", "a", (), 1_000, 8_000))
    world.dispatch("a", make_run(2))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [2]


def test_a_welcome_is_contact_from_the_sending_of_hello() -> None:
    """The runner stood still as soon as it had sent it: its lease was renewed then, not when it went on."""
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.step(LinkDown("a", "gone"))
    hello_ns = world.now_ns
    world.now_ns += 6 * SECOND_NS
    world.silent.add("a")
    world.step(LinkOpened("a", hello_ns))
    world.step(LinkUp("a", "a", (), 1_000, 8_000))
    world.pass_s(1.9)
    assert world.of(StopRuns) == []
    world.pass_s(0.2)
    assert [stop.execution_ids for stop in world.of(StopRuns)] == [(1,)]


def test_however_long_its_modules_took_to_register_a_runner_takes_what_waited_for_it() -> None:
    """A herd's new runner was welcomed 23 s after Hello, refused what came at once, and that ended as `cancelled`."""
    world = World("a")
    world.silent.add("a")
    hello_ns = world.now_ns
    world.step(LinkOpened("a", hello_ns))
    world.pass_s(24)
    world.step(LinkUp("a", "a", (), 1_000, 8_000, None, 23_000))
    world.dispatch("a", make_run(1))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1]
    world.pass_s(6.9)  # its lease was renewed 23 s after Hello at the earliest, so less what clocks may differ by
    assert world.of(StopRuns) == []
    world.pass_s(0.1)
    assert [stop.execution_ids for stop in world.of(StopRuns)] == [(1,)]


def test_a_registration_that_took_longer_than_it_can_have_is_contact_as_of_now() -> None:
    world = World("a")
    world.silent.add("a")
    world.step(LinkOpened("a", world.now_ns))
    world.pass_s(1)
    world.step(LinkUp("a", "a", (), 1_000, 8_000, None, 1_000_000))
    world.dispatch("a", make_run(1))
    world.pass_s(8.1)
    assert [stop.execution_ids for stop in world.of(StopRuns)] == [(1,)]


def test_a_cancelled_run_has_the_grace_that_its_controller_names() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1), make_run(2))
    world.step(CancelAsked((1,), "cancelled by ann", 500))
    world.step(CancelAsked((2,), ""))
    stops = [(stop.execution_ids, stop.message, stop.grace_ms) for stop in world.of(StopRuns)]
    assert stops == [((1,), "cancelled by ann", 500), ((2,), "cancelled", 2_000)]


def test_a_run_that_comes_after_its_cancellation_never_begins() -> None:
    """Another controller than its own was asked, or the run waited for this runner to come back."""
    world = World("a", "b")
    world.up("a", "b")
    world.step(CancelAsked((1,), "cancelled by ann: wrong month", 500))
    world.dispatch("b", make_run(1), make_run(2))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [2]
    [report] = world.of(SendReports)
    [result] = report.results
    assert (result.execution_id, result.outcome, result.error_type) == (1, Outcome.CANCELLED, "Cancelled")
    assert result.error_message.startswith("cancelled by ann: wrong month\nnot started")


def test_what_has_ended_is_not_remembered_as_cancelled() -> None:
    world = World("a")
    world.up("a")
    world.dispatch("a", make_run(1))
    world.step(RunsEnded([make_result(1)]))
    world.step(CancelAsked((1,), "late"))
    world.step(ReportsAcked((1,)))
    world.step(CancelAsked((1,), "later"))
    assert world.of(StopRuns) == []
    world.dispatch("a", make_run(1))
    assert [result.outcome for sent in world.of(SendReports) for result in sent.results] == [Outcome.COMPLETED]


def test_only_so_many_cancellations_are_remembered() -> None:
    world = World("a")
    world.up("a")
    world.step(CancelAsked(tuple(range(1, 10_002)), "all of them"))
    world.dispatch("a", make_run(1), make_run(2))
    assert [run.execution_id for start in world.of(StartRuns) for run in start.runs] == [1]


def test_controllers_that_are_made_up_are_bounded() -> None:
    core = RunnerCore(RunnerSettings(), ("a:1",), 0, 0)
    opened = [effect for effect in core.step(RunnerWoke(), 0) if isinstance(effect, OpenLink)]
    peers = tuple(f"h{number}:1" for number in range(LINKS_MAX + 50))
    effects = core.step(LinkOpened("a:1", 0), 0) + core.step(LinkUp("a:1", "c-1", peers, 1_000, 8_000), 0)
    opened += [effect for effect in effects if isinstance(effect, OpenLink)]
    assert len(opened) == LINKS_MAX
    assert [each.event for each in effects if isinstance(each, LogLine)].count("too_many_controllers") == 1


def test_a_controller_that_was_lost_is_named_for_a_while_to_whoever_renews() -> None:
    """What it has claimed for this runner may never have come here; somebody else is to take it over."""
    world = World("a", "b")
    world.up("a", "b")
    world.step(LinkDown("a", "cut"))
    world.pass_s(1.5)
    assert not [beat for beat in world.of(SendBeat) if beat.out_of_reach], "it may be back at once"
    world.pass_s(3)
    assert {(beat.address, beat.out_of_reach) for beat in world.of(SendBeat)} >= {("b", ("a",))}
    world.pass_s(20)
    world.effects.clear()
    world.pass_s(5)
    named = [beat for beat in world.of(SendBeat) if beat.out_of_reach]
    assert len(named) == 1, "by now it claims nothing for this runner, but may have adopted something"
    assert len(world.of(SendBeat)) >= 5


def test_a_controller_that_is_gone_is_named_at_once() -> None:
    """Killed between a claim and its dispatch: the run would wait for seconds, until others declare it dead."""
    world = World("a", "b")
    world.up("a", "b")
    world.step(LinkDown("a", "reset"))
    world.pass_s(0.05)
    world.effects.clear()
    world.step(LinkDown("a", "nobody listens", refused=True))
    assert [(beat.address, beat.out_of_reach) for beat in world.of(SendBeat)] == [("b", ("a",))]
    world.step(LinkDown("a", "nobody listens", refused=True))
    assert len(world.of(SendBeat)) == 1, "not at each attempt"
    world.pass_s(0.3)
    assert len(world.of(SendBeat)) == 2, "PostgreSQL may have been committing what it was asked for"
    world.step(LinkDown("c", "nobody listens", refused=True))
    world.pass_s(25)
    named = [beat for beat in world.of(SendBeat) if beat.out_of_reach]
    assert 20 <= len(named) <= 24
    world.step(LinkOpened("a", world.now_ns))
    world.effects.clear()
    world.pass_s(10)
    assert not [beat for beat in world.of(SendBeat) if beat.out_of_reach]


def test_a_controller_that_is_back_is_not_named() -> None:
    world = World("a", "b")
    world.up("a", "b")
    world.step(LinkDown("a", "cut"))
    world.step(LinkOpened("a", world.now_ns))
    world.pass_s(5)
    assert not [beat for beat in world.of(SendBeat) if beat.out_of_reach]
