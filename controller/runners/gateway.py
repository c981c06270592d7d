"""RunnerGateway: one stream for each connected runner.

A stream's life: Hello; its modules are registered; Welcome; then beats, reports and runs until either side ends it.

Registration: a module whose digest was never seen before becomes the active deployment, as by `cronring deploy`. A
known digest stays as it is, active or not: a newer version may have replaced it, or somebody killed it. A runner that
merely reconnects must not undo that. Welcome tells it for each module: `active`, or a `problem` if the module was
refused. A refused module doesn't disturb the runner's other modules.

While PostgreSQL is away, nothing can be registered. The stream stays open all the same, and beats are acknowledged with
`database_ok` false. So the runner knows that nobody can declare it lost, and lets its runs go on. A controller that
still has a lease doesn't say so, however long PostgreSQL has been silent: it might declare the runner lost itself.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError

from cronring.controller.core.node.effects import AckBeat
from cronring.controller.core.node.events import (
    Event,
    PlacesGranted,
    ReportsReceived,
    RunnerJoined,
    RunnerLeft,
    RunsDeclined,
)
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.caller import caller
from cronring.controller.ports.store import Store
from cronring.controller.runners.codec import (
    addresses,
    check_hello,
    decode_beat,
    decode_grants,
    decode_hello,
)
from cronring.controller.runners.comings import Comings
from cronring.controller.runners.conduct import Lie
from cronring.controller.runners.registering import Registering
from cronring.controller.runners.standings import Standings
from cronring.controller.runners.streams import CloseReason, RunnerStream, RunnerStreams
from cronring.controller.runners.verb_call_queue import VerbCallQueue
from cronring.protos.executions import MalformedError, decode_reports
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.schema.duration import measured
from cronring.schema.identity import Kind
from cronring.schema.spiffe import parse_uri

HELLO_TIMEOUT_S: Final = 10.0
REGISTRATION_RETRY_S: Final = 0.5
FAREWELL_TRIES: Final = 60
LAST_WRITE_S: Final = 0.5  # when this side ends a stream: how long the message under way may still take

Context = grpc.aio.ServicerContext[wire.RunnerMessage, wire.ControllerMessage]


class Inbox(Protocol):
    """The node's."""

    def put(self, event: Event) -> None: ...
    async def room(self) -> None: ...


class Gateway(runner_pb2_grpc.RunnerGatewayServicer):
    """`welcome` holds what all Welcomes have in common: who this is, and the cluster's durations.

    `peers()` gives (id, address) of every controller that may hold a lease; `lease_valid()` says whether this one does.
    `refused` counts what was not allowed. `comings` is told which runners come and go; `standings` that a new runner is
    there. `verbs` answers calls of verbs.
    """

    def __init__(
        self,
        welcome: wire.Welcome,
        store: Store,
        registering: Registering,
        streams: RunnerStreams,
        inbox: Inbox,
        peers: Callable[[], tuple[tuple[str, str], ...]],
        refused: OnRefusal,
        now_us: Callable[[], int],
        *,
        lease_valid: Callable[[], bool],
        comings: Comings,
        standings: Standings,
        verbs: VerbCallQueue,
    ) -> None:
        self._welcome = welcome
        self._store = store
        self._registering = registering
        self._streams = streams
        self._inbox = inbox
        self._peers = peers
        self._refused = refused
        self._now_us = now_us
        self._lease_valid = lease_valid
        self._comings = comings
        self._standings = standings
        self._verbs = verbs
        self._farewells: set[asyncio.Future[None]] = set()

    async def Connect(  # type: ignore[override]  # the stubs don't know of aio's coroutine form
        self, request_iterator: AsyncIterator[wire.RunnerMessage], context: Context
    ) -> None:
        """INVALID_ARGUMENT for what no runner of ours sends, RESOURCE_EXHAUSTED for one that doesn't read."""
        try:
            hello = await self._hello(request_iterator)
        except MalformedError as error:
            self._refused("hello", 1)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        who = caller()
        if who.kind is Kind.RUNNER and not parse_uri(who.name).fits(hello.runner_id):
            why = f"{who.name} is not the certificate of {hello.runner_id!r}"
            self._refused("forbidden", why=why)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
        stream = RunnerStream(hello.runner_id, self._now_us, self._refused)
        if (replaced := self._streams.add(stream)) is not None:
            replaced.close(grpc.StatusCode.ABORTED, "the same runner opened another stream")
            if replaced.registered:
                self._inbox.put(RunnerLeft(replaced.runner_id))
        closed: CloseReason | None = None
        try:
            closed = await self._serve(hello, stream, request_iterator, context)
        finally:
            closed = stream.closed.result() if stream.closed.done() else closed
            self._comings.went(hello.runner_id, closed, registered=stream.registered, draining=stream.draining)
            stream.break_off()
            self._verbs.left(stream)
            if self._streams.remove(stream) and stream.registered:
                self._inbox.put(RunnerLeft(stream.runner_id))
                if stream.draining:
                    self._farewell(stream.runner_id)
        if closed is not None:
            await context.abort(closed.code, closed.details)

    def _farewell(self, runner_id: str) -> None:
        """In the background: the stream's own task is being cancelled."""
        task = asyncio.ensure_future(self._note_left(runner_id))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _note_left(self, runner_id: str) -> None:
        for _ in range(FAREWELL_TRIES):
            try:
                await self._store.runner_left(runner_id)
            except StoreUnavailable:
                await asyncio.sleep(REGISTRATION_RETRY_S)
                continue
            except StoreError:
                pass  # it will be shown as dead
            return

    async def _hello(self, messages: AsyncIterator[wire.RunnerMessage]) -> wire.Hello:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                first = await anext(messages, None)
        except TimeoutError:
            raise MalformedError(f"no Hello within {measured(HELLO_TIMEOUT_S * 1_000)}") from None
        except DecodeError as error:
            raise MalformedError(str(error)) from None
        if first is None or first.WhichOneof("message") != "hello":
            raise MalformedError("a runner's first message must be Hello")
        check_hello(first.hello)
        return first.hello

    async def _serve(
        self, hello: wire.Hello, stream: RunnerStream, messages: AsyncIterator[wire.RunnerMessage], context: Context
    ) -> CloseReason | None:
        """Serve until the stream ends. Returns why, if this side ended it."""
        reading = asyncio.ensure_future(self._read_all(stream, messages))
        registering = asyncio.ensure_future(self._register(hello, stream, context.peer()))
        writing = asyncio.ensure_future(_write_all(stream, context))
        waiting: set[asyncio.Future[Any]] = {reading, stream.closed, registering, writing}
        try:
            while not (reading.done() or stream.closed.done()):
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for future in done:
                    future.result()  # raises what broke the stream
        finally:
            stream.stop_writing()
            reading.cancel()
            registering.cancel()
            # A cancelled write goes on inside gRPC, which refuses a status while it does. So wait for it first.
            await asyncio.wait({writing}, timeout=LAST_WRITE_S)
            writing.cancel()
            await asyncio.gather(reading, registering, writing, return_exceptions=True)
        return stream.closed.result() if stream.closed.done() else None

    async def _register(self, hello: wire.Hello, stream: RunnerStream, address: str) -> None:
        """Register, welcome, and tell the node; again and again while PostgreSQL is away."""
        came_us = self._now_us()
        while True:
            try:
                modules = await self._registering.modules(hello)
                runner = decode_hello(hello, tuple(module.deployment for module in modules))
                registering_ms = (self._now_us() - came_us) // 1_000  # taken before the statement that renews the lease
                await self._store.register_runner(runner)
                break
            except StoreUnavailable:
                stream.database_away = True
                await asyncio.sleep(REGISTRATION_RETRY_S)
            except StoreError as error:
                stream.close(grpc.StatusCode.INTERNAL, f"the database refused the registration: {error}")
                return
        stream.registered = True
        self._inbox.put(RunnerJoined(runner))
        self._comings.came(hello, address, modules)
        welcome = wire.Welcome(
            modules=modules,
            addresses=addresses(self._peers()),
            registering_ms=registering_ms,
        )
        welcome.MergeFrom(self._welcome)
        stream.welcome(welcome)
        self._standings.look_again()  # the modules were registered a while ago

    async def _read_all(self, stream: RunnerStream, messages: AsyncIterator[wire.RunnerMessage]) -> None:
        try:
            async for message in messages:
                self._take(stream, message)
                if stream.closed.done():
                    return
                await self._inbox.room()  # back-pressure: a node that can't keep up slows its runners down
        except (MalformedError, DecodeError) as error:
            self._refused("runner_message", 1)
            stream.close(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _take(self, stream: RunnerStream, message: wire.RunnerMessage) -> None:
        """Hot for reports. Raises MalformedError."""
        kind = message.WhichOneof("message")
        if kind == "reports":
            reports = decode_reports(message.reports)
            if not reports:
                stream.took(Lie.EMPTY)
                return
            stream.heard(reports)
            self._inbox.put(ReportsReceived(stream.runner_id, reports))
        elif kind == "beat":
            stream.heard()
            stream.took(Lie.BEAT)
            self._beat(stream, message.beat)
        elif kind == "output":
            stream.heard()
            stream.printed(message.output)
        elif kind == "verb_call":
            stream.heard()
            self._verbs.take(stream, message.verb_call)
        elif kind in {"grants", "declined"}:
            self._about_places(stream, message)
        elif kind == "hello":
            raise MalformedError("a second Hello on the same stream")
        else:
            raise MalformedError("a message of no kind that this version knows")

    def _about_places(self, stream: RunnerStream, message: wire.RunnerMessage) -> None:
        stream.heard()
        if message.HasField("declined"):
            stream.took(Lie.BEAT)
            if stream.registered:
                self._inbox.put(RunsDeclined(stream.runner_id, tuple(message.declined.execution_ids)))
        elif stream.registered:
            self._inbox.put(PlacesGranted(stream.runner_id, decode_grants(message.grants)))

    def _beat(self, stream: RunnerStream, beat: wire.Beat) -> None:
        stream.draining = beat.draining
        if stream.registered:
            self._inbox.put(decode_beat(stream.runner_id, beat))
        else:
            # The node doesn't know this runner yet; on a healthy cluster, that lasts milliseconds.
            away = stream.database_away and not self._lease_valid()
            stream.send(AckBeat(stream.runner_id, beat.sequence, renewed=False, database_ok=not away, peers=()))


async def _write_all(stream: RunnerStream, context: Context) -> None:
    """Errors of writing are ignored, as the reader of a broken stream ends it."""
    with contextlib.suppress(grpc.aio.BaseError):
        await stream.write_all(context.write)


async def close_silent_streams(streams: RunnerStreams, now_us: Callable[[], int], silence_ms: int) -> None:
    """For ever: a runner that is stopped, or behind a dead connection, gets no runs."""
    while True:
        await asyncio.sleep(silence_ms / 1_000 / 8)
        streams.close_silent(now_us(), silence_ms * 1_000)
