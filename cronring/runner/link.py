"""One stream to one controller: connected as long as anybody wants it, everything in batches."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import grpc

from cronring.protos.admission import ANSWER_BYTES_MAX, RefusedMessage, admitted
from cronring.protos.executions import decode_runs
from cronring.protos.reach import refuses
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.calling import answered_from
from cronring.runner.codec import (
    beat_message,
    call_message,
    declined_message,
    demands_from,
    grants_message,
    report_messages,
)
from cronring.runner.core.effects import SendBeat
from cronring.runner.core.events import (
    BeatAcked,
    CancelAsked,
    DemandsReceived,
    Dispatched,
    Event,
    LinkDown,
    LinkOpened,
    LinkUp,
    ReportsAcked,
)
from cronring.schema.address import is_address
from cronring.schema.duration import measured
from cronring.schema.execution import Report
from cronring.schema.lanes import Grant, LaneKey
from cronring.trust.channels import Tls, channel_to, plaintext

BACKOFF_FIRST_S = 0.05
BACKOFF_MAX_S = 1.0
CONNECT_S = 3.0
MOVE_S = 20.0
# Beats are acknowledged each second, which makes gRPC's own keepalive superfluous: silence means a dead path. But the
# one who renews is silent while PostgreSQL hangs, until its lease is over: 4 s at the longest.
SILENCE_S = 5.0
BEATS_MAX = 16  # that wait to be written; older ones are contact no more
OUTPUT_BYTES_MAX = 256 * 1024  # that wait to be written
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # a new attempt must not inherit the back-off of the last
    ("grpc.enable_retries", 0),
)

_CONNECT = "/cronring.runner.v1.RunnerGateway/Connect"

Stream = grpc.aio.StreamStreamCall[runner_pb2.RunnerMessage, bytes]


class LinkListener(Protocol):
    """Who is told what a controller says."""

    def post(self, event: Event) -> None: ...
    def follow_asked(self, address: str, follow: runner_pb2.Follow) -> None: ...
    def followers_gone(self, address: str) -> None: ...
    def registered(self, controller_id: str, modules: list[runner_pb2.RegisteredModule]) -> None: ...
    def standings_told(self, standings: Iterable[runner_pb2.Standing]) -> None: ...


class Refused(Exception):  # a reason for a link to be down
    """The other end is no controller that talks to us."""


class Link:
    """`hello` is sent first on every connection. `tls()`: what the next one is opened with.

    `jitter` gives numbers from 0 to 1.
    """

    def __init__(
        self,
        address: str,
        hello: runner_pb2.RunnerMessage,
        listener: LinkListener,
        tls: Callable[[], Tls | None] = plaintext,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.address = address
        self._hello = hello
        self._listener = listener
        self._tls = tls
        self._jitter = jitter
        self._beats: deque[SendBeat] = deque(maxlen=BEATS_MAX)
        self._results: dict[int, Report] = {}  # by execution: offered again while it waits, it is one
        self._grants: dict[LaneKey, Grant] = {}
        self._declined: list[int] = []
        self._calls: list[bytes] = []
        self._outputs: list[runner_pb2.Output] = []
        self._output_bytes = 0
        self._wake = asyncio.Event()
        self._backoff_s = BACKOFF_FIRST_S
        self._moving = asyncio.Event()  # to the channel that is ready
        self._ready: grpc.aio.Channel | None = None
        self._welcome = asyncio.Event()  # heard on the present stream
        self._task = asyncio.create_task(self._stay_connected(), name=f"link {address}")

    def send_beat(self, beat: SendBeat) -> None:
        self._beats.append(beat)
        self._wake.set()

    def send_results(self, results: list[Report]) -> None:
        """They go out with whatever else has come together when the stream takes the next message."""
        self._results |= {result.execution_id: result for result in results}
        self._wake.set()

    def send_grants(self, grants: list[Grant]) -> None:
        """The latest of each lane says all."""
        self._grants.update(((grant.deployment, grant.kind), grant) for grant in grants)
        self._wake.set()

    def send_declined(self, execution_ids: Iterable[int]) -> None:
        self._declined += execution_ids
        self._wake.set()

    def send_call(self, request: bytes) -> None:
        """A VerbCall."""
        self._calls.append(request)
        self._wake.set()

    def send_output(self, output: runner_pb2.Output, *, last: bool) -> bool:
        """After beats and results. False: so much is to be written that it wasn't taken; `last` ones always are."""
        if self._output_bytes >= OUTPUT_BYTES_MAX and not last:
            return False
        self._outputs.append(output)
        self._output_bytes += len(output.data)
        self._wake.set()
        return True

    async def move(self) -> None:
        """To a channel that shows what `tls()` is now; the stream ends on the old one once the new one is connected.

        Returns when the controller has welcomed the runner there, or after MOVE_S: then it tries to connect as always.
        """
        channel = channel_to(self.address, *_OPTIONS, answer_bytes=ANSWER_BYTES_MAX, tls=self._tls())
        try:
            async with asyncio.timeout(MOVE_S):
                await channel.channel_ready()
                self._ready = channel
                self._welcome.clear()
                self._moving.set()
                await self._welcome.wait()
        except TimeoutError:
            if self._ready is not channel:
                await channel.close(None)

    async def close(self) -> None:
        """Hang up, for good."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._ready is not None:
            await self._ready.close(None)

    async def _stay_connected(self) -> None:
        while True:
            refused = False
            try:
                reason = await self._connection()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError, Refused, OSError) as error:
                reason, refused = _reason(error), await self._nobody_listens(error)
            self._beats.clear()
            self._grants = {}
            self._declined = []
            self._calls = []  # asked elsewhere
            self._results = {}  # the core offers them again, to whoever is up
            self._outputs, self._output_bytes = [], 0
            self._listener.followers_gone(self.address)
            self._listener.post(LinkDown(self.address, reason, refused))
            if self._ready is not None:
                continue
            await asyncio.sleep(self._backoff_s * (0.5 + self._jitter() / 2))
            self._backoff_s = min(self._backoff_s * 2, BACKOFF_MAX_S)

    async def _nobody_listens(self, error: BaseException) -> bool:
        """A process that has died lets go of its port. gRPC would say so in words only, so the address is asked."""
        lost = isinstance(error, grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.UNAVAILABLE
        return lost and await refuses(self.address)

    async def _connection(self) -> str:
        ready, self._ready = self._ready, None
        self._moving.clear()
        made = ready or channel_to(self.address, *_OPTIONS, answer_bytes=ANSWER_BYTES_MAX, tls=self._tls())
        async with made as channel:
            connect: Any = channel.stream_stream(_CONNECT, runner_pb2.RunnerMessage.SerializeToString, None)
            stream: Stream = connect()
            hello_ns = time.monotonic_ns()  # before it: this process may stand still until it knows that it was sent
            try:
                async with asyncio.timeout(CONNECT_S):
                    await stream.write(self._hello)
                self._listener.post(LinkOpened(self.address, hello_ns))
                writer = asyncio.create_task(self._write(stream))
                moving = asyncio.create_task(self._moving.wait())
                reader = asyncio.create_task(self._read(stream))
                try:
                    await asyncio.wait({reader, moving}, return_when=asyncio.FIRST_COMPLETED)
                    return reader.result() if reader.done() else "its certificate was replaced"
                finally:
                    for task in (reader, writer, moving):
                        task.cancel()
                    await asyncio.gather(reader, writer, moving, return_exceptions=True)
            finally:
                stream.cancel()

    async def _next(self, stream: Stream) -> runner_pb2.ControllerMessage:
        raw = await stream.read()
        if not isinstance(raw, bytes):  # grpc.aio.EOF
            raise Refused(f"the controller ended the stream: {await stream.details() or 'it is leaving'}")
        try:
            return admitted(runner_pb2.ControllerMessage, raw)
        except RefusedMessage as error:
            raise Refused(f"the controller sent what can't be read: {error}") from None

    def _welcomed(self, message: runner_pb2.ControllerMessage) -> None:
        welcome = message.welcome
        self._backoff_s = BACKOFF_FIRST_S
        self._welcome.set()
        self._listener.registered(welcome.controller_id, list(welcome.modules))
        peers = dialled(welcome.addresses)
        beat_ms, fence_ms = welcome.runner_beat_ms, welcome.runner_fence_ms
        deployments = tuple(module.deployment for module in welcome.modules)
        event = LinkUp(self.address, welcome.controller_id, peers, beat_ms, fence_ms, deployments)
        self._listener.post(event._replace(registering_ms=welcome.registering_ms))

    async def _read(self, stream: Stream) -> str:
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    message = await self._next(stream)
            except TimeoutError:
                return f"nothing heard for {measured(SILENCE_S * 1_000)}"
            if message.HasField("welcome"):
                self._welcomed(message)
            elif message.HasField("follow"):
                self._listener.follow_asked(self.address, message.follow)
            elif message.HasField("standings"):
                self._listener.standings_told(message.standings.standings)
            else:
                self._heard(message)

    def _heard(self, message: runner_pb2.ControllerMessage) -> None:
        try:
            event = event_of(self.address, message)
        except ValueError as error:
            raise Refused(f"the controller sent what can't be read: {error}") from None
        if event is not None:
            self._listener.post(event)

    async def _write(self, stream: Stream) -> None:
        """Natural batching: what came up while the last message was being written is the next."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            beats = [self._beats.popleft() for _ in range(len(self._beats))]
            results, self._results = self._results, {}
            grants, self._grants = self._grants, {}
            declined, self._declined = self._declined, []
            calls, self._calls = self._calls, []
            for beat in beats:
                await stream.write(beat_message(beat))
            if grants:
                await stream.write(grants_message(grants.values()))
            if declined:
                await stream.write(declined_message(declined))
            for message in report_messages(results.values()):
                await stream.write(message)
            for call in calls:
                await stream.write(call_message(call))
            if self._outputs:
                output = self._outputs.pop(0)
                self._output_bytes -= len(output.data)
                await stream.write(runner_pb2.RunnerMessage(output=output))
                if self._outputs:  # one at a time: whatever is more urgent goes before the next
                    self._wake.set()


def event_of(address: str, message: runner_pb2.ControllerMessage) -> Event | None:
    """None: something newer than this runner. Raises ValueError."""
    match message.WhichOneof("message"):
        case "dispatch":
            return Dispatched(address, message.dispatch.now_us, decode_runs(message.dispatch.runs))
        case "reports_ack":
            return ReportsAcked(tuple(message.reports_ack.execution_ids))
        case "demands":
            return DemandsReceived(address, demands_from(message.demands))
        case "beat_ack":
            ack = message.beat_ack
            return BeatAcked(address, ack.sequence, ack.renewed, ack.database_ok, dialled(ack.addresses))
        case "verb_answer":
            return answered_from(address, message.verb_answer)
        case "cancel":
            cancel = message.cancel
            return CancelAsked(tuple(cancel.execution_ids), cancel.reason, cancel.grace_ms)
        case _:
            return None


def dialled(addresses: Iterable[str]) -> tuple[str, ...]:
    """Those that may be dialled."""
    return tuple(filter(is_address, addresses))


def _reason(error: BaseException) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return "no runners are served there: with --certs, --controllers are --peer addresses"
        return f"{error.code().name}: {error.details()}"
    return str(error) or type(error).__name__
