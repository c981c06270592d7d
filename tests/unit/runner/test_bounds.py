"""What waits in a runner while nobody reads, or nobody listens, has a bound."""

import asyncio

from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.core.effects import SendBeat, SendGrants
from cronring.runner.core.events import Dispatched, LinkOpened, LinkUp, ReportsAcked, RunnerWoke, RunsEnded
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.machine import OFFERS_MAX, RunnerCore
from cronring.runner.core.settings import RunnerSettings
from cronring.runner.link import BEATS_MAX, Link
from cronring.schema.execution import Outcome, Report, Run

S = 1_000_000_000


def _result(execution_id: int) -> Report:
    return Report(execution_id, 1, 0, Outcome.COMPLETED, 0, 1_000)


def test_what_is_offered_again_to_one_who_does_not_read_waits_once() -> None:
    async def offered() -> tuple[int, int]:
        link = Link("127.0.0.1:1", runner_pb2.RunnerMessage(), None)  # type: ignore[arg-type]  # it is never told
        for sequence in range(100):
            link.send_results([_result(number) for number in range(50)])
            link.send_beat(SendBeat("127.0.0.1:1", sequence, False, False, 0))
        found = len(link._results), len(link._beats)
        await link.close()
        return found

    assert asyncio.run(offered()) == (50, BEATS_MAX)


def test_results_that_nobody_takes_stop_the_granting_of_places() -> None:
    """Claims go on and ends don't: PostgreSQL refuses them, say. Nothing is lost, and nothing is begun any more."""
    core = RunnerCore(RunnerSettings(), ("a",), 0, S, (ModuleLanes(frozenset(), 1, 4_000, 1),))
    core.step(RunnerWoke(), S)
    core.step(LinkOpened("a", S), S)
    effects = core.step(LinkUp("a", "c1", ("a",), 1_000, 8_000, ("d",)), S)
    now_ns, begun, granted = S, 0, 0
    for _ in range(100):
        now_ns += 10_000_000
        for effect in effects:
            if isinstance(effect, SendGrants):
                granted = max([granted, *(grant.granted for grant in effect.grants if grant.kind == 2)])
        runs = [
            Run(number, 1, "m.v", "d", "v", 0, 0, 0, 10**15, 1, "schedule", False, place_epoch=2)
            for number in range(begun, granted)
        ]
        begun = granted
        effects = core.step(Dispatched("a", 0, runs), now_ns) if runs else []
        effects += core.step(RunsEnded([_result(run.execution_id) for run in runs]), now_ns)
    assert OFFERS_MAX <= begun <= OFFERS_MAX + 4_000
    effects = core.step(ReportsAcked(tuple(range(5_000))), now_ns)
    assert any(isinstance(effect, SendGrants) for effect in effects)
