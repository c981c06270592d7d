import random

from cronring.controller.core.node.awaiting_runner import AwaitingRunner
from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import LogLine, SkipTicks
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.skipping import Skipping
from cronring.controller.core.node.window import DueWindow, Duty
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.keys import SLOTS
from tests.unit.core.told import MS, S_US, T, job


def _awaiting_runner() -> tuple[NodeContext, DueWindow, Skipping, AwaitingRunner]:
    context = NodeContext("c1", ClusterSettings(), random.Random(1), 0)
    context.clock.sample(0, 0, T)
    window = DueWindow(context)
    window.set_duties([Duty.PRIMARY] * SLOTS, [0] * SLOTS)
    lease = Lease(context, Cancelling(context, ConnectedRunners()))
    lease.valid_until_ns = 3_600_000 * MS
    skipping = Skipping(context, window, lease)
    return context, window, skipping, AwaitingRunner(context, window, lease, skipping)


def test_nothing_is_kept_of_jobs_that_moved_on_or_went_while_they_waited_for_a_runner() -> None:
    context, window, _, awaiting_runner = _awaiting_runner()
    for version in range(20):
        awaiting_runner.wait(window.learn(job(1, due=T, deployment=f"d{version}", revision=version + 1)))
    awaiting_runner.wait(window.learn(job(2, due=T, deployment="d0")))
    assert sorted(awaiting_runner._waiting) == ["d0", "d19"]
    window.forget(2)
    context.now_ns = ClusterSettings().runner_grace_ms * MS + S_US * 1_000
    awaiting_runner.act()
    assert sorted(awaiting_runner._waiting) == []


def test_a_later_tick_has_a_grace_of_its_own_though_that_of_one_before_ended_while_postgres_was_away() -> None:
    """Seed 90249: the job had been rescheduled meanwhile, and its new tick was skipped as soon as it came due."""
    context, window, skipping, awaiting_runner = _awaiting_runner()
    awaiting_runner.wait(window.learn(job(1, due=T)))
    context.store_down_since_ns = 0
    context.now_ns = (ClusterSettings().runner_grace_ms + 1_000) * MS
    awaiting_runner.act()
    awaiting_runner.wait(window.learn(job(1, due=context.now_us, revision=2)))
    context.store_down_since_ns = None
    awaiting_runner.act()
    skipping.act()
    assert context.effects == []
    context.now_ns += (ClusterSettings().runner_grace_ms + 1_000) * MS
    awaiting_runner.act()
    skipping.act()
    assert [type(effect) for effect in context.effects] == [LogLine, SkipTicks]
