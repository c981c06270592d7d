"""Children whose runner stands still: nobody tells them to stop, and what may not run on unseen ends all the same."""

import time

from cronring.schema.execution import Outcome
from tests.integration.runner.conftest import OpenStage

MODULE = """
import asyncio, time
from cronring import cron

@cron("* * * * *")
async def sleeper():
    await asyncio.sleep(60)

@cron("* * * * *")
async def brief():
    await asyncio.sleep(1)

@cron("* * * * *")
def sync_sleeper(): time.sleep(60)

@cron("* * * * *")
async def stubborn():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
"""


async def test_a_child_stops_by_itself_what_may_not_run_on_without_contact(open_stage: OpenStage) -> None:
    stage = await open_stage(MODULE)
    ids = stage.start("sleeper", "sync_sleeper")
    [finishing] = stage.start("brief", finish=True)
    stage.host.move_fence(time.monotonic_ns())
    results = await stage.ended(*ids)
    assert [result.outcome for result in results] == [Outcome.CANCELLED] * 2
    assert [result.error_type for result in results] == ["Disconnected"] * 2
    [finished] = await stage.ended(finishing)
    assert finished.outcome is Outcome.COMPLETED, "in the same child as one that had to stop"
    assert not any(event == "verb_isolated" for event, _ in stage.lines), "nobody's fault"


async def test_what_ignores_its_cancellation_is_killed(open_stage: OpenStage) -> None:
    stage = await open_stage(MODULE)
    [stubborn] = stage.start("stubborn")
    stage.host.move_fence(time.monotonic_ns())
    [result] = await stage.ended(stubborn)
    assert (result.outcome, result.error_type) == (Outcome.CANCELLED, "Disconnected")


async def test_children_run_again_when_there_is_contact_again(open_stage: OpenStage) -> None:
    stage = await open_stage(MODULE)
    [stopped] = stage.start("sleeper")
    stage.host.move_fence(time.monotonic_ns())
    await stage.ended(stopped)
    stage.host.move_fence(time.monotonic_ns() + 60_000_000_000)
    assert (await stage.run("brief")).outcome is Outcome.COMPLETED


async def test_what_waits_for_a_child_does_not_begin_in_the_place_of_one_that_had_to_stop(
    open_stage: OpenStage,
) -> None:
    """A runner that goes on after it stood still hears of its children's ends before its core looks at the clock."""
    stage = await open_stage(MODULE, sync_children=1)
    first, second = stage.start("sync_sleeper", "sync_sleeper")
    stage.host.move_fence(time.monotonic_ns())
    results = await stage.ended(first, second)
    assert [result.error_type for result in results] == ["Disconnected"] * 2
    assert "it had not begun" in results[1].error_message
    assert results[1].started_at == results[1].ended_at
