"""What grpc.aio does between two processes on loopback: runs go out, as many reports come back, nothing is done.

The messages are those of protos/runner/v1, made once and serialised each time; whoever gets one has it parsed and
looks at nothing. Both processes run uvloop, as controllers and runners do. `python -m bench.limits_grpc` is the one
that answers: it prints its port, and ends when its standard input does.
"""

import asyncio
import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import psutil
import uvloop

from bench.limits_table import Sample
from cronring.controller.core.model import Execution, Job
from cronring.controller.core.runs import run_of
from cronring.protos.executions import encode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.codec import report_messages
from cronring.schema.execution import Outcome, Report

SERVICE: Final = "cronring.bench.Limits"
TICK_US: Final = 1_795_219_200_000_000
UNANSWERED_MAX: Final = 512  # messages on the stream: a write only says that gRPC has taken it
ROOT: Final = Path(__file__).resolve().parents[1]


class Exchange(NamedTuple):
    name: str
    items: int  # in a message
    in_flight: int  # calls at once; 0: messages of one stream


EXCHANGES: Final = (
    Exchange("unary calls, 16 in flight", 1, 16),
    Exchange("one stream", 1, 0),
    Exchange("one stream", 10, 0),
    Exchange("one stream", 100, 0),
)


def dispatch(items: int) -> wire.ControllerMessage:
    """A Dispatch as a controller encodes it."""
    runs = []
    for number in range(items):
        verb = f"send_reminders_{number}"
        job = Job(
            1_000_000 + number, f"default.billing.{verb}", 17, "default.billing.0123456789ab", verb, "*/15 * * * *",
            TICK_US, 1, 300_000, "stop", True, TICK_US, TICK_US,
        )  # fmt: skip
        claimed_at = TICK_US + 4_321
        execution = Execution(
            9_000_000 + number, job, TICK_US, TICK_US, claimed_at, 1, "schedule", job.deployment, "r1",
            previous_tick=TICK_US - 900_000_000, previous_success=TICK_US - 900_000_000,
        )  # fmt: skip
        runs.append(run_of(execution, 1))
    return wire.ControllerMessage(dispatch=wire.Dispatch(now_us=TICK_US + 5_000, runs=encode_runs(runs)))


@functools.cache
def reports(items: int) -> wire.RunnerMessage:
    """The Reports that a runner answers that with."""
    at_us = TICK_US + 6_000
    (message,) = report_messages(
        Report(9_000_000 + number, 1_000_000 + number, TICK_US + 4_321, Outcome.COMPLETED, at_us, at_us + 40,
               cpu_us=40, memory_peak_bytes=30_000_000, memory_shared=True)
        for number in range(items)
    )  # fmt: skip
    return message


def item_bytes() -> dict[str, int]:
    """What one item takes in a large message."""
    return {"run": dispatch(100).ByteSize() // 100, "report": reports(100).ByteSize() // 100}


async def _answer_call(message: wire.ControllerMessage, _context: Any) -> wire.RunnerMessage:
    return reports(len(message.dispatch.runs.execution_id))


async def _answer_stream(messages: AsyncIterator[wire.ControllerMessage], context: Any) -> None:
    async for message in messages:
        await context.write(reports(len(message.dispatch.runs.execution_id)))


async def answer() -> None:
    """Print the port, and answer until standard input ends: whoever started this has ended, too, then."""
    coded: dict[str, Any] = {
        "request_deserializer": wire.ControllerMessage.FromString,
        "response_serializer": wire.RunnerMessage.SerializeToString,
    }
    handlers = {
        "Call": grpc.unary_unary_rpc_method_handler(_answer_call, **coded),
        "Talk": grpc.stream_stream_rpc_method_handler(_answer_stream, **coded),
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)
    await server.stop(None)


@contextlib.contextmanager
def answering() -> Iterator["Answering"]:
    """The other process, for as long as the block lasts."""
    command = [sys.executable, "-m", "bench.limits_grpc"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        yield Answering(f"127.0.0.1:{int(process.stdout.readline())}", psutil.Process(process.pid))


class Answering(NamedTuple):
    address: str
    process: psutil.Process

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    async def measure(self, exchange: Exchange, seconds: float) -> Sample:
        """Items that went out and whose answer came back."""
        coded: dict[str, Any] = {
            "request_serializer": wire.ControllerMessage.SerializeToString,
            "response_deserializer": wire.RunnerMessage.FromString,
        }
        message = dispatch(exchange.items)
        async with grpc.aio.insecure_channel(self.address) as channel:
            call: Any = channel.unary_unary(f"/{SERVICE}/Call", **coded)
            talk: Any = channel.stream_stream(f"/{SERVICE}/Talk", **coded)
            assert await call(message) == reports(exchange.items)  # connected, and every path is warm
            answered, spent, began = self.cpu_s(), time.process_time(), time.perf_counter()
            if exchange.in_flight:
                callers = (_call(call, message, began + seconds) for _ in range(exchange.in_flight))
                messages = sum(await asyncio.gather(*callers))
            else:
                messages = await _talk(talk(), message, began + seconds)
            elapsed, spent = time.perf_counter() - began, time.process_time() - spent
            return Sample(messages * exchange.items, elapsed, {"caller": spent, "answerer": self.cpu_s() - answered})


async def _call(call: Any, message: wire.ControllerMessage, until: float) -> int:
    done = 0
    while time.perf_counter() < until:
        await call(message)
        done += 1
    return done


async def _talk(stream: Any, message: wire.ControllerMessage, until: float) -> int:
    room = asyncio.Semaphore(UNANSWERED_MAX)

    async def write() -> None:
        while time.perf_counter() < until:
            await room.acquire()
            await stream.write(message)
        await stream.done_writing()

    writing = asyncio.ensure_future(write())
    done = 0
    async for _ in stream:
        done += 1
        room.release()
    await writing
    return done


if __name__ == "__main__":
    uvloop.run(answer())
