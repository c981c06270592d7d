"""A scripted controller: a real grpc.aio server whose every answer a test decides."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Self

import grpc

from cronring.protos.executions import encode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.protos.runner.v1 import runner_pb2_grpc
from cronring.schema.execution import Run
from tests.support.waiting import TIMEOUT_S
from tests.support.wire_runs import all_reports

Context = grpc.aio.ServicerContext[wire.RunnerMessage, wire.ControllerMessage]


class FakeController(runner_pb2_grpc.RunnerGatewayServicer):
    """Welcomes, acknowledges beats (and reports, if `acks`), and keeps what it hears."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ""
        self.peers: list[str] = []
        self.acks = True
        self.renews = True
        self.welcomes = True
        self.database_ok = True
        self.declined: list[int] = []
        self.problem = ""
        self.active = True
        self.hellos: list[wire.Hello] = []
        self.beats: list[wire.Beat] = []
        self.reports: dict[int, wire.Report] = {}
        self.received = 0  # reports, repeated ones included
        self.changed = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._server: grpc.aio.Server | None = None
        self._contexts: list[Context] = []

    async def __aenter__(self) -> Self:
        await self.start("127.0.0.1:0")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, address: str) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        runner_pb2_grpc.add_RunnerGatewayServicer_to_server(self, self._server)
        port = self._server.add_insecure_port(address)
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
        self._contexts.clear()

    async def Connect(  # type: ignore[override]  # noqa: N802  # the stubs know only the generator form
        self, requests: AsyncIterator[wire.RunnerMessage], context: Context
    ) -> None:
        hello = (await anext(requests)).hello
        self.hellos.append(hello)
        if self.welcomes:
            registered = [
                wire.RegisteredModule(deployment="" if self.problem else "d", active=self.active, problem=self.problem)
                for _ in hello.modules
            ]
            welcome = wire.Welcome(
                controller_id=self.name,
                modules=registered,
                addresses=[self.address, *self.peers],
                runner_beat_ms=1_000,
                runner_fence_ms=8_000,
            )
            await self._write(context, wire.ControllerMessage(welcome=welcome))
        self._contexts.append(context)
        await self._notify()
        try:
            await self._listen(requests, context)
        finally:
            if context in self._contexts:
                self._contexts.remove(context)
            await self._notify()

    async def _listen(self, requests: AsyncIterator[wire.RunnerMessage], context: Context) -> None:
        async for message in requests:
            kind = message.WhichOneof("message")
            if kind == "beat":
                self.beats.append(message.beat)
                ack = wire.BeatAck(
                    sequence=message.beat.sequence,
                    renewed=message.beat.renew and self.renews,
                    database_ok=self.database_ok,
                    addresses=[self.address, *self.peers],
                )
                await self._write(context, wire.ControllerMessage(beat_ack=ack))
            elif kind == "declined":
                self.declined += message.declined.execution_ids
            elif kind == "reports":
                reports = all_reports(message.reports)
                self.received += len(reports)
                for report in reports:
                    self.reports[report.execution_id] = report
                if self.acks:
                    ids = [report.execution_id for report in reports]
                    await self._write(context, wire.ControllerMessage(reports_ack=wire.ReportsAck(execution_ids=ids)))
            await self._notify()

    async def _write(self, context: Context, message: wire.ControllerMessage) -> None:
        async with self._writing:  # gRPC takes one write at a time
            await context.write(message)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, predicate: Callable[[], bool]) -> None:
        """Wait until it holds; it is asked again whenever something was heard."""
        async with asyncio.timeout(TIMEOUT_S), self.changed:
            await self.changed.wait_for(predicate)

    async def connected(self) -> None:
        await self.until(lambda: bool(self._contexts))

    @property
    def streams(self) -> int:
        return len(self._contexts)

    async def send(self, message: wire.ControllerMessage) -> None:
        await self._write(self._contexts[-1], message)

    async def dispatch(self, *runs: Run) -> None:
        message = wire.Dispatch(now_us=time.time_ns() // 1000, runs=encode_runs(runs))
        await self.send(wire.ControllerMessage(dispatch=message))

    async def cancel(self, *execution_ids: int) -> None:
        await self.send(wire.ControllerMessage(cancel=wire.Cancel(execution_ids=execution_ids, reason="asked to")))


def make_run(execution_id: int, verb: str, timeout_s: float = 60.0, finish: bool = False) -> Run:
    now_us = time.time_ns() // 1000
    return Run(
        execution_id=execution_id,
        job_id=1,
        job=f"mod.{verb}",
        deployment="d",
        verb=verb,
        tick_us=now_us,
        run_at_us=now_us,
        claimed_at_us=now_us,
        deadline_us=now_us + int(timeout_s * 1e6),
        attempt=1,
        trigger="schedule",
        finish=finish,
    )
