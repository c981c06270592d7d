"""Why a job that follows another one ran for a tick, or not, as every store's books say it."""

from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.core.ledger.why_words import instant
from cronring.controller.core.model import Execution
from cronring.controller.core.orders.orders import Cancel, Restore
from cronring.schema.execution import Outcome
from cronring.schema.module import Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import World, end_of
from tests.conformance.tampering import hands_of
from tests.conformance.test_after import BILLING, CLOSE, MAIL, REPORT, after, deploy, followers, reports, start


async def why(world: World, key: str, at: int | None) -> tuple[str, str]:
    """A word, and sentences."""
    facts = await hands_of(world.scene).ledger.facts(key, at)
    return verdict(facts), " ".join(explain(facts))


async def ran(world: World, seconds_ago: int, outcome: Outcome) -> Execution:
    """A run of the job that is followed, at a tick of its schedule."""
    now = await world.scene.now()
    minute = now - now % 60_000_000
    (job,) = [each for each in (await deploy(world, BILLING)).values() if each.key == CLOSE]
    await hands_of(world.scene).open_books(job.job_id, minute - 3_600_000_000, minute - 3_600_000_000)
    await world.scene.set_next_tick(job.job_id, minute - seconds_ago * 1_000_000)
    execution = await run_at(world, job.job_id)
    if outcome is not Outcome.COMPLETED:
        await world.end(execution, outcome)
    return execution


async def run_at(world: World, job_id: int) -> Execution:
    job = await world.job(job_id)
    (claimed,) = await world.claim("c1", job)
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    return execution


async def test_of_a_tick_that_is_followed(world: World) -> None:
    await deploy(world, reports())
    execution = await ran(world, 60, Outcome.COMPLETED)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "waiting"
    assert f"The tick {text_of(execution)} of billing.close has not succeeded." in text
    (waiting,) = await followers(world, execution)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "waiting"
    assert text.startswith(
        "reports.month runs after billing.close: once for each tick of it that has succeeded. The tick"
    )
    assert "The run after it waits for a runner" in text
    followed = await start(world, waiting)
    assert (await why(world, REPORT, execution.tick))[0] == "running"
    await world.end(followed)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "executed"
    assert f"It ran for the tick {text_of(execution)}. Execution {followed.execution_id} started" in text
    assert "after its run_at, " in text
    assert "The next tick of billing.close is" in text


async def test_of_a_tick_from_before_both_that_was_backfilled(world: World) -> None:
    await deploy(world, reports())
    execution = await ran(world, 60, Outcome.COMPLETED)
    (waiting,) = await followers(world, execution)
    follower = (await start(world, waiting)).job
    long_ago = execution.tick - 86_400_000_000
    hands = hands_of(world.scene)
    await hands.add_run(execution.job.job_id, long_ago, trigger="backfill")
    await hands.add_run(follower.job_id, long_ago, trigger="after")
    word, text = await why(world, REPORT, long_ago)
    assert (word, f"It ran for the tick {instant(long_ago)}. Execution" in text) == ("executed", True)


async def test_a_follower_that_waits_for_a_limits_place_says_so(world: World) -> None:
    await deploy(
        world, reports(Verb("month", schedule="manual", policy=after(CLOSE)), Verb("other", schedule="manual"))
    )
    execution = await ran(world, 60, Outcome.COMPLETED)
    await followers(world, execution)
    await world.limits.set_limit("default", "reports", 1, "ann", "")
    await world.control.trigger_job("reports.other", "ada", None)
    (by_hand,) = [each for each in await world.waiting() if each.trigger == "manual"]
    await start(world, by_hand)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "waiting"
    assert "There is no place for it now: module reports runs 1 of 1." in text


async def test_of_a_tick_that_failed_or_was_skipped(world: World) -> None:
    month = Verb("month", schedule="manual", policy=after(CLOSE))
    await deploy(world, reports(month, Verb("mail", schedule="manual", policy=after(REPORT))))
    execution = await ran(world, 120, Outcome.FAILED)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "not_followed"
    assert f"The tick {text_of(execution)} of billing.close has not succeeded. Execution" in text
    assert "failed" in text
    word, text = await why(world, MAIL, execution.tick)
    assert word == "not_followed"
    assert "mail runs after reports.month" in text
    assert "reports.month runs after billing.close" in text
    skipped = execution.tick + 60_000_000
    await hands_of(world.scene).add_skip(execution.job.job_id, "no_runner", skipped, skipped, 1)
    word, text = await why(world, REPORT, skipped)
    assert word == "not_followed"
    assert "It was skipped (no_runner)" in text


async def test_of_a_job_that_nobody_knows(world: World) -> None:
    await deploy(world, reports())
    word, text = await why(world, REPORT, None)
    assert word == "not_due"
    assert "There is no job billing.close, so nothing leads to a run until it is deployed." in text


async def test_of_a_tick_from_before_it_followed(world: World) -> None:
    execution = await ran(world, 60, Outcome.COMPLETED)
    await world.end(execution)
    await deploy(world, reports(Verb("month", schedule="manual", policy=Policy())))
    await deploy(world, reports(), "b")
    word, text = await why(world, REPORT, execution.tick)
    assert word == "not_due"
    assert "It was not followed then: it is followed since" in text


async def test_of_a_paused_follower_and_of_no_tick(world: World) -> None:
    await deploy(world, reports())
    execution = await ran(world, 60, Outcome.COMPLETED)
    await world.control.pause_job(REPORT, "me", "holiday")
    await world.end(execution)
    word, text = await why(world, REPORT, execution.tick)
    assert word == "paused"
    assert "waits until the job's pause is over" in text
    word, text = await why(world, REPORT, execution.tick + 7_000_000)
    assert word == "not_due"
    assert "No tick of billing.close was due" in text


async def test_of_a_follower_that_was_cancelled_then_and_restored_since(world: World) -> None:
    await deploy(world, reports())
    execution = await ran(world, 60, Outcome.COMPLETED)
    await world.control.order_job(REPORT, Cancel("not this month"), "me")
    await world.end(execution, report=end_of(execution).report._replace(ended_at=await world.scene.now()))
    assert (await why(world, REPORT, execution.tick))[0] == "not_due"
    await world.control.order_job(REPORT, Restore(), "me")
    word, text = await why(world, REPORT, execution.tick)
    assert (word, "It was not followed" in text) == ("not_due", True)


def text_of(execution: Execution) -> str:

    return instant(execution.tick)
