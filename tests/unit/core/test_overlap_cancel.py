"""Overlap `cancel_running`: what the next tick cuts, and what goes on as its job has changed since the claim."""

from typing import Any, Final

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.core.node import effects, events
from tests.unit.core.told import S_US, T, Told, job

CUTS: Final = '{"overlap":"cancel_running"}'


def test_a_run_is_cut_when_the_next_tick_is_due() -> None:
    told = Told()
    (execution,) = told.running(job(policy=CUTS))
    told.wait_renewing(9_500)
    assert not told.take(effects.CancelRuns)
    told.wait_renewing(700)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
    cut = told.one(effects.CancelRuns)
    assert (cut.runner_id, cut.execution_ids) == ("r1", (101,))


def _asked_at_its_time(told: Told, **changes: Any) -> None:
    """It runs from T + 10 s, and T + 20 s has come. `changes`: of its job since the claim."""
    (execution,) = told.running(job(policy=CUTS))
    told.wait_renewing(10_200)
    changed = execution._replace(job=execution.job._replace(revision=2, executing=True, **changes))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [changed]))


@pytest.mark.parametrize(
    "changes",
    [
        {"next_tick": None, "next_run_at": None},  # paused, removed or cancelled
        {"next_tick": T + 40 * S_US, "next_run_at": T + 45 * S_US},  # another schedule, a pause until T + 45 s, a skip
        {"policy": '{"overlap":"skip"}'},
        {"policy": '{"overlap":"cancel_running","window":"20:00-21:00"}'},
    ],
)
def test_a_run_goes_on_if_by_its_jobs_row_nothing_is_due(changes: dict[str, Any]) -> None:
    told = Told()
    _asked_at_its_time(told, **changes)
    told.wait_renewing(8_000)
    assert not told.take(effects.CancelRuns)


def test_it_is_cut_once_the_tick_that_it_makes_way_for_is_due() -> None:
    """A pause until T + 45 s, or one that somebody ends then; and PostgreSQL, which is away in between."""
    for changes in {"next_tick": T + 40 * S_US, "next_run_at": T + 45 * S_US}, {"next_tick": None, "next_run_at": None}:
        told = Told()
        _asked_at_its_time(told, **changes)
        told.wait_renewing(24_000 if changes["next_tick"] else 9_000)
        assert not told.take(effects.FetchHeld)
        told.wait_renewing(1_500)
        told.fail(told.one(effects.FetchHeld), connection_lost=False)
        told.wait_renewing(1_000)
        fetch = told.one(effects.FetchHeld)
        tick = told.database_us - 2 * S_US
        due = job(policy=CUTS, revision=3, executing=True)._replace(next_tick=tick - tick % S_US, next_run_at=tick)
        execution = Execution(101, due, T + 10 * S_US, T + 10 * S_US, T + 10 * S_US, 1, "schedule", "d", "r1")
        told.tell(events.ExecutionsFetched(fetch.request_id, [execution._replace(job=due._replace(schedule="1s"))]))
        assert told.one(effects.CancelRuns).execution_ids == (101,)


def test_nobody_cuts_what_another_has_taken_over() -> None:
    told = Told()
    told.running(job(policy=CUTS))
    told.wait_renewing(10_200)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, []))
    told.wait_renewing(3_000)
    assert not told.take(effects.CancelRuns)


def test_what_another_had_taken_over_is_cut_once_it_has_been_given_back() -> None:
    told = Told()
    (execution,) = told.running(job(policy=CUTS))
    told.wait_renewing(10_200)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, []))
    told.wait_renewing(1_000)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
    assert told.one(effects.CancelRuns).execution_ids == (101,)


def test_a_drill_keeps_no_run_from_being_cut() -> None:
    """Who is in a drill still holds it; the other one will claim the next tick."""
    told = Told()
    (execution,) = told.running(job(policy=CUTS))
    told.tell(events.DrillRequested(30_000, True, "me"))
    told.wait_renewing(10_200)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
    assert told.one(effects.CancelRuns).execution_ids == (101,)
