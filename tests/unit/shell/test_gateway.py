"""The gateway as a runner sees it, over real streams; the store is the in-memory one of the conformance suite."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

import grpc
import pytest

from cronring.controller.api.door import Door
from cronring.controller.api.judging import Insecure
from cronring.controller.api.policy import LARGEST
from cronring.controller.core.model import Execution
from cronring.controller.core.node.effects import AckBeat, AckReports, CancelRuns, Dispatch, ReportRefusal, SendDemands
from cronring.controller.core.node.events import (
    JobsCreated,
    PlacesGranted,
    ReportsReceived,
    RunnerBeat,
    RunnerJoined,
    RunnerLeft,
    RunsDeclined,
)
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreUnavailable
from cronring.controller.runners import streams as streams_module
from cronring.controller.runners.comings import Comings
from cronring.controller.runners.conduct import ALLOWED, Lie
from cronring.controller.runners.gateway import Gateway
from cronring.controller.runners.registering import Registering
from cronring.controller.runners.standings import Standings
from cronring.controller.runners.streams import RunnerStreams
from cronring.controller.services.deploying import Deployer
from cronring.controller.store.memory.store import MemoryStore
from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.executions import decode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.runner.codec import demands_from
from cronring.schema.execution import Outcome
from cronring.schema.lanes import Grant, LaneDemand, LaneKind
from tests.support.callers import counting
from tests.support.fake_runner import FakeRunner, hello
from tests.support.no_verbs import no_verbs
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.unit.shell.gateway_parts import Inbox, Log

UNKNOWN: Final = cast("wire.Outcome.ValueType", 99)
OTHER_DIGEST = "b" * 64
NO_PROBLEMS: Any = None  # they are those of other services


class AwayStore(MemoryStore):
    """PostgreSQL can be away, or slow."""

    away = False
    leased = False  # this controller holds a lease
    slow: asyncio.Event | None = None  # nothing is registered before it is set

    async def register_deployment(self, *arguments, **named):  # passed on as it is
        if self.slow is not None:
            await self.slow.wait()
        if self.away:
            raise StoreUnavailable("connection refused")
        return await super().register_deployment(*arguments, **named)


@dataclass
class World:
    store: AwayStore
    inbox: Inbox
    streams: RunnerStreams
    refused: list[str]
    channel: grpc.aio.Channel
    log: Log
    runners: list[FakeRunner] = field(default_factory=list)

    async def connect(self, hello: wire.Hello | None = None, listens: bool = True) -> FakeRunner:
        runner = FakeRunner(self.channel)
        self.runners.append(runner)
        if listens:
            runner.listen()
        if hello is not None:
            await runner.say(hello=hello)
        return runner


NO_GRANTS: Any = None  # who is known by no certificate is asked for none
WELCOME = wire.Welcome(controller_id="c-1", runner_beat_ms=500, runner_fence_ms=4_000)


def now_us() -> int:
    return time.monotonic_ns() // 1_000


@pytest.fixture
async def world() -> AsyncIterator[World]:
    store, inbox, streams = AwayStore(lambda: time.time_ns() // 1_000), Inbox(), RunnerStreams()
    refused, log, standings = list[str](), Log(), Standings(store, streams)
    store.on_notify = standings.look_again
    gateway = Gateway(
        WELCOME,
        store,
        Registering(Deployer(store, ClusterSettings(), inbox.put, lambda _: None), NO_GRANTS, counting(refused)),
        streams,
        inbox,
        lambda: (("c-1", "127.0.0.1:1"), ("c-2", "127.0.0.1:2")),
        counting(refused),
        now_us,
        lease_valid=lambda: store.leased,
        comings=Comings(log),
        standings=standings,
        verbs=no_verbs(),
    )
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", LARGEST)])
    door: Any = Door(server, counting([]), NO_PROBLEMS, Insecure())
    runner_pb2_grpc.add_RunnerGatewayServicer_to_server(gateway, door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    world = World(store, inbox, streams, refused, channel, log)
    telling = asyncio.create_task(standings.tell_changes())
    yield world
    telling.cancel()
    for runner in world.runners:
        await runner.close()
    await channel.close(None)
    await server.stop(None)


def execution(world: World, execution_id: int) -> Execution:
    job = next(iter(world.store.jobs.values())).job()
    return Execution(execution_id, job, 1_000_000, 1_000_000, 1_000_500, 1, "schedule", "d-1", "r-1")


async def test_a_hello_deploys_registers_and_is_welcomed(world: World) -> None:
    runner = await world.connect(hello())
    welcome = (await runner.hear()).welcome
    assert welcome.controller_id == "c-1"
    assert (welcome.runner_beat_ms, welcome.runner_fence_ms) == (500, 4_000)
    assert welcome.addresses == ["127.0.0.1:1", "127.0.0.1:2"]
    (module,) = welcome.modules
    assert module.active
    assert not module.problem
    (created,), (joined,) = world.inbox.of(JobsCreated), world.inbox.of(RunnerJoined)
    assert isinstance(created, JobsCreated)
    assert [job.key for job in created.jobs] == ["billing.close_month"]
    assert isinstance(joined, RunnerJoined)
    assert joined.runner.deployments == (module.deployment,)


async def test_a_new_version_takes_over_and_an_old_runner_does_not_take_back(world: World) -> None:
    await (await world.connect(hello("r-1"))).hear()
    new = await world.connect(hello("r-2", OTHER_DIGEST, "0 6 1 * *"))
    assert (await new.hear()).welcome.modules[0].active
    old_again = await world.connect(hello("r-3"))
    (module,) = (await old_again.hear()).welcome.modules
    assert not module.active
    assert module.deployment, "it still may run what was claimed for it"


async def test_a_killed_deployment_stays_killed_when_its_runner_reconnects(world: World) -> None:
    (module,) = (await (await world.connect(hello())).hear()).welcome.modules
    await world.store.kill_deployment(module.deployment)
    (again,) = (await (await world.connect(hello(runner_id="r-2"))).hear()).welcome.modules
    assert not again.active


async def test_a_wrong_module_is_refused_in_words_and_the_others_live(world: World) -> None:
    both = hello()
    both.modules.add(digest=OTHER_DIGEST, schema=schema_pb2.Module(name="bad", verbs=[schema_pb2.Verb(name="1")]))
    both.modules.add(digest="short", schema=schema_pb2.Module(name="worse"))
    runner = await world.connect(both)
    good, bad, worse = (await runner.hear()).welcome.modules
    assert good.deployment
    assert good.active
    assert "schema.verbs[0].name" in bad.problem
    assert not bad.deployment
    assert "digest" in worse.problem
    assert world.refused == ["module", "module"]


async def test_five_thousand_verbs_fit_in_a_hello(world: World) -> None:
    large = hello()
    for number in range(5_000):
        large.modules[0].schema.verbs.add(name=f"verb_{number}", doc="What it does. " * 50, schedule="0 6 1 * *")
    runner = await world.connect(large)
    assert (await runner.hear()).welcome.modules[0].active
    assert len(world.store.jobs) == 5_001
    (created,) = world.inbox.of(JobsCreated)
    assert isinstance(created, JobsCreated)
    assert [job.verb for job in created.jobs] == ["close_month"], "the only one that is due soon"


async def test_beats_and_reports_become_events(world: World) -> None:
    runner = await world.connect(hello())
    await runner.hear()
    await runner.say(beat=wire.Beat(sequence=3, renew=True, draining=True, running=2, out_of_reach=["c-9"]))
    report = wire.Report(
        execution_id=5, job_id=1, claimed_at_us=10, outcome=wire.OUTCOME_FAILED, started_at_us=4, ended_at_us=2,
        error_type="ValueError", error_message="a\x00b", output="x" * 70_000,
    )  # fmt: skip
    await runner.say(reports=wire.Reports(reports=[report]))
    await wait_until(lambda: bool(world.inbox.of(ReportsReceived)), "no report came")
    assert world.inbox.of(RunnerBeat) == [RunnerBeat("r-1", 3, True, True, 2, ("c-9",))]
    (received,) = world.inbox.of(ReportsReceived)
    assert isinstance(received, ReportsReceived)
    (decoded,) = received.reports
    assert decoded.outcome is Outcome.FAILED
    assert (decoded.claimed_at, decoded.started_at, decoded.ended_at) == (10, 10, 10)
    assert decoded.error_message == "a\N{REPLACEMENT CHARACTER}b"
    assert len(decoded.output) == 65_536


async def test_effects_reach_the_runner_merged(world: World) -> None:
    introduced = hello()
    runner = await world.connect(introduced)
    await runner.hear()
    for number in range(1_500):
        world.streams.send(Dispatch("r-1", 5_000_000, [execution(world, number)], [0]))
    world.streams.send(AckReports("r-1", (1, 2)))
    world.streams.send(AckReports("r-1", (3,)))
    world.streams.send(CancelRuns("r-1", (9,), "too late"))
    peers = (("c-1", "127.0.0.1:1"),)
    world.streams.send(AckBeat("r-1", 4, True, True, peers))
    beat, ack, first, second, cancel = [await runner.hear() for _ in range(5)]
    assert (beat.beat_ack.sequence, beat.beat_ack.renewed, beat.beat_ack.database_ok) == (4, True, True)
    assert list(ack.reports_ack.execution_ids) == [1, 2, 3]
    assert [*first.dispatch.runs.execution_id, *second.dispatch.runs.execution_id] == list(range(1_500))
    assert 5_000_000 <= first.dispatch.now_us <= second.dispatch.now_us < 10_000_000
    run = decode_runs(first.dispatch.runs)[0]
    assert (run.job, run.deadline_us, run.finish) == ("billing.close_month", 301_000_500, False)
    assert (list(cancel.cancel.execution_ids), cancel.cancel.reason) == ([9], "too late")
    world.streams.send(AckBeat("r-1", 5, True, True, peers))
    assert not (await runner.hear()).beat_ack.addresses, "as before"


async def test_places_are_granted_demanded_and_taken(world: World) -> None:
    runner = await world.connect(hello())
    welcome = await runner.hear()
    assert welcome.HasField("welcome")
    (joined,) = world.inbox.of(RunnerJoined)
    assert isinstance(joined, RunnerJoined)
    assert joined.runner.sync_verbs is not None
    ((deployment, _),) = joined.runner.sync_verbs
    grants = [
        wire.Grant(deployment=deployment, lane=wire.LANE_ASYNC, epoch=3, granted=7, short=True, keep=2),
        wire.Grant(deployment=deployment, lane=wire.LANE_UNSPECIFIED, epoch=3, granted=7),  # of a newer version
    ]
    await runner.say(grants=wire.Grants(grants=grants))
    await wait_until(lambda: bool(world.inbox.of(PlacesGranted)), "no grants came")
    granted = PlacesGranted("r-1", [Grant(deployment, LaneKind.ASYNC, 3, 7, True, 2)])
    assert world.inbox.of(PlacesGranted) == [granted]
    await runner.say(declined=wire.Declined(execution_ids=[5, 7]))
    await wait_until(lambda: world.inbox.of(RunsDeclined) == [RunsDeclined("r-1", (5, 7))], "nothing is declined")
    demand = LaneDemand(deployment, LaneKind.ASYNC, 3, 7, 1, 5, 2, 9, 4_000, False)
    world.streams.send(SendDemands("r-1", [demand._replace(wanted=9)]))
    world.streams.send(SendDemands("r-1", [demand]))
    world.streams.send(Dispatch("r-1", 5_000_000, [execution(world, 1), execution(world, 2)], [3, 0]))
    dispatch, demands = await runner.hear(), await runner.hear()
    assert demands_from(demands.demands) == [demand]
    assert [run.place_epoch for run in decode_runs(dispatch.dispatch.runs)] == [3, 0]
    assert list(dispatch.dispatch.runs.place_epoch) == [3, 0]


async def test_the_end_of_a_stream_is_told(world: World) -> None:
    runner = await world.connect(hello())
    await runner.hear()
    runner.stream.cancel()
    await wait_until(lambda: world.inbox.of(RunnerLeft) == [RunnerLeft("r-1")], "the node was not told")
    assert len(world.streams) == 0


async def test_a_second_stream_of_one_runner_replaces_the_first(world: World) -> None:
    first = await world.connect(hello())
    await first.hear()
    second = await world.connect(hello())
    await second.hear()
    assert (await first.ended())[0] is grpc.StatusCode.ABORTED
    kinds = [type(event) for event in world.inbox.events if isinstance(event, RunnerJoined | RunnerLeft)]
    assert kinds == [RunnerJoined, RunnerLeft, RunnerJoined]
    world.streams.send(AckReports("r-1", (1,)))
    assert list((await second.hear()).reports_ack.execution_ids) == [1]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (wire.RunnerMessage(beat=wire.Beat(sequence=1)), "must be Hello"),
        (wire.RunnerMessage(), "must be Hello"),
        (wire.RunnerMessage(hello=wire.Hello()), "runner_id"),
        (wire.RunnerMessage(hello=wire.Hello(runner_id="a\nb")), "printable"),
        (wire.RunnerMessage(hello=wire.Hello(runner_id="a" * 201)), "at most 200"),
        (wire.RunnerMessage(hello=wire.Hello(runner_id="a", pid=2**32 - 1)), "pid"),
    ],
)
async def test_what_is_no_hello_is_refused(world: World, message: wire.RunnerMessage, says: str) -> None:
    runner = await world.connect()
    await runner.stream.write(message)
    code, details = await runner.ended()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert says in details
    assert world.refused == ["hello"]
    assert not world.inbox.events


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (wire.RunnerMessage(hello=wire.Hello(runner_id="r-1")), "second Hello"),
        (wire.RunnerMessage(), "no kind"),
        (wire.RunnerMessage(beat=wire.Beat(out_of_reach=["c"] * 101)), "none"),
        (wire.RunnerMessage(beat=wire.Beat(out_of_reach=[""])), "none"),
        (wire.RunnerMessage(beat=wire.Beat(out_of_reach=["c" * 201])), "at most 200"),
        (wire.RunnerMessage(reports=wire.Reports(reports=[wire.Report(execution_id=3)])), "outcome 0"),
        (wire.RunnerMessage(reports=wire.Reports(reports=[wire.Report(outcome=UNKNOWN)])), "outcome 99"),
        (
            wire.RunnerMessage(
                reports=wire.Reports(reports=[wire.Report(outcome=wire.OUTCOME_COMPLETED, ended_at_us=2**62)])
            ),
            "1970 to 2199",
        ),
    ],
)
async def test_a_runner_that_lies_is_cut_off_and_nobody_else(
    world: World, message: wire.RunnerMessage, says: str
) -> None:
    honest = await world.connect(hello(runner_id="honest"))
    await honest.hear()
    liar = await world.connect(hello())
    await liar.hear()
    await liar.stream.write(message)
    code, details = await liar.ended()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert says in details
    assert world.refused == ["runner_message"]
    world.streams.send(AckReports("honest", (1,)))
    while not (heard := await honest.hear()).HasField("reports_ack"):
        assert heard.HasField("standings")  # told when its module was looked at, whenever that is


async def test_a_runner_that_never_reads_is_cut_off_when_its_queue_is_full(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "QUEUE_ITEMS_MAX", 100)
    runner = await world.connect(hello(), listens=False)
    assert isinstance(await runner.stream.read(), wire.ControllerMessage)
    cancel = CancelRuns("r-1", tuple(range(100_000)), "x" * 100_000)
    for _ in range(1_000):  # far more than the sockets between take
        world.streams.send(cancel)
        if len(world.streams) == 0:
            break
        await asyncio.sleep(0)
    await wait_until(lambda: world.inbox.of(RunnerLeft) == [RunnerLeft("r-1")], "the stream grows on")
    with contextlib.suppress(grpc.aio.AioRpcError):  # looked at below
        while isinstance(await runner.stream.read(), wire.ControllerMessage):
            pass
    code, details = await runner.ended()
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "doesn't read" in details


async def test_a_flood_of_reports_is_cut_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "UNACKED_REPORTS_MAX", 10)
    runner = await world.connect(hello())
    await runner.hear()
    reports = [wire.Report(execution_id=number, outcome=wire.OUTCOME_COMPLETED) for number in range(8)]
    await runner.say(reports=wire.Reports(reports=reports))
    await runner.say(reports=wire.Reports(reports=reports))  # the same again counts once
    await wait_until(lambda: len(world.inbox.of(ReportsReceived)) == 2, "reports didn't come")
    world.streams.send(AckReports("r-1", (0, 1)))
    await runner.hear()
    more = [wire.Report(execution_id=100 + number, outcome=wire.OUTCOME_COMPLETED) for number in range(4)]
    await runner.say(reports=wire.Reports(reports=more))
    await wait_until(lambda: len(world.inbox.of(ReportsReceived)) == 3, "reports didn't come")
    assert len(world.streams) == 1, "10 without an acknowledgement are allowed"
    await runner.say(reports=wire.Reports(reports=[wire.Report(execution_id=200, outcome=wire.OUTCOME_COMPLETED)]))
    assert (await runner.ended())[0] is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("message", "count", "what", "says"),
    [
        (wire.RunnerMessage(beat=wire.Beat(sequence=1)), 500, "beat_flood", "beats faster"),
        (wire.RunnerMessage(reports=wire.Reports()), 150, "empty_message", "nothing in them"),
        (
            wire.RunnerMessage(output=wire.Output(follow_id=7, state=wire.Output.STATE_RUNNING)),
            2_200,
            "output_unasked",
            "nobody asked",
        ),
    ],
)
async def test_a_flood_is_counted_and_cut_off_with_its_reason(
    world: World, message: wire.RunnerMessage, count: int, what: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALLOWED, Lie(what), ALLOWED[Lie(what)]._replace(per_s=0.0))  # however slow this machine is
    honest = await world.connect(hello("honest", OTHER_DIGEST))
    await honest.hear()
    runner = await world.connect(hello())
    await runner.hear()
    closed = world.streams._streams["r-1"].closed
    # Its own end makes an INTERNAL of it when the stream ends while it writes.
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        for _ in range(count):
            await runner.stream.write(message)
    code, details = await asyncio.wait_for(closed, TIMEOUT_S)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert says in details
    await wait_until(lambda: world.inbox.of(RunnerLeft) == [RunnerLeft("r-1")], "the stream stays")
    assert what in world.refused
    world.streams.send(AckReports("honest", (1,)))
    while not (heard := await honest.hear()).HasField("reports_ack"):
        assert heard.HasField("standings"), "it is told of its module once that was looked at"


async def test_a_runner_that_ends_what_is_not_its_own_is_cut_off(world: World) -> None:
    runner = await world.connect(hello())
    await runner.hear()
    world.streams.send(AckReports("r-1", tuple(range(60)), ReportRefusal.DECIDED))
    world.streams.send(AckReports("r-1", tuple(range(60)), ReportRefusal.FOREIGN))
    assert len((await runner.hear()).reports_ack.execution_ids) == 120
    world.streams.send(AckReports("r-1", tuple(range(41)), ReportRefusal.FOREIGN))
    code, details = await runner.ended()
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "not its own" in details
    assert (world.refused.count("report_foreign"), world.refused.count("report_decided")) == (101, 60)


async def test_a_runner_that_takes_nothing_is_cut_off(world: World) -> None:
    """Far below what its queue may hold: a message that nobody takes says enough."""
    runner = await world.connect(hello(), listens=False)
    assert isinstance(await runner.stream.read(), wire.ControllerMessage)
    for _ in range(20):
        world.streams.send(CancelRuns("r-1", tuple(range(100_000)), "x" * 100_000))
    await asyncio.sleep(0)
    await wait_until(lambda: bool(world.streams.stalled_at(now_us() + 15_500_000)), "nothing is under way")
    world.streams.close_silent(now_us() + 15_500_000, 60_000_000)
    await wait_until(lambda: world.inbox.of(RunnerLeft) == [RunnerLeft("r-1")], "the stream stays")


@pytest.mark.parametrize("first", [True, False])
async def test_bytes_that_are_no_message_are_refused_in_words(world: World, first: bool) -> None:
    """It was UNKNOWN, with a traceback in the log."""
    connect: Any = world.channel.stream_stream("/cronring.runner.v1.RunnerGateway/Connect", None, None)
    call = connect()
    if not first:
        await call.write(wire.RunnerMessage(hello=hello()).SerializeToString())
        assert isinstance(await call.read(), bytes)
    await call.write(b"\xff\xff\xff")
    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert world.refused == ["hello" if first else "runner_message"]


async def test_a_silent_runner_is_cut_off(world: World) -> None:
    await (runner := await world.connect(hello())).hear()
    assert world.streams.close_silent(now_us(), 5_000_000) == 0
    assert world.streams.close_silent(now_us() + 5_000_001, 5_000_000) == 1
    assert (await runner.ended())[0] is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_beat_before_registration_does_not_say_that_the_database_is_away(world: World) -> None:
    """A runner takes that for contact once all controllers say so: it must be true."""
    world.store.slow = asyncio.Event()
    runner = await world.connect(hello())
    await runner.say(beat=wire.Beat(sequence=1, renew=True))
    ack = (await runner.hear()).beat_ack
    assert (ack.sequence, ack.renewed, ack.database_ok) == (1, False, True)
    await asyncio.sleep(0.05)  # so long the registration takes, by the clock that is told of below
    world.store.slow.set()
    welcome = (await runner.hear()).welcome
    assert welcome.modules[0].active
    assert welcome.registering_ms >= 50, "a runner counts its contact from when its lease was renewed"


async def test_who_has_a_lease_says_to_nobody_that_no_one_can_declare_it_lost(world: World) -> None:
    """PostgreSQL has been away for less than the lease: when it is back, this controller may declare runs lost."""
    world.store.away = True
    runner = await world.connect(hello())
    for sequence, leased in enumerate((False, True, False), 1):
        world.store.leased = leased
        await runner.say(beat=wire.Beat(sequence=sequence, renew=True))
        ack = (await runner.hear()).beat_ack
        assert (ack.sequence, ack.renewed, ack.database_ok) == (sequence, False, leased)


async def test_while_the_database_is_away_beats_are_answered_and_the_welcome_follows(world: World) -> None:
    world.store.away = True
    runner = await world.connect(hello())
    await runner.say(beat=wire.Beat(sequence=1, renew=True))
    ack = (await runner.hear()).beat_ack
    assert (ack.sequence, ack.renewed, ack.database_ok) == (1, False, False)
    assert not world.inbox.events
    world.store.away = False
    assert (await runner.hear()).welcome.modules[0].active
    assert len(world.inbox.of(RunnerJoined)) == 1
