"""An operator in a process of its own: python -m tests.support.chaos_operator --controllers ... --journal FILE.

Gives orders of all kinds over gRPC and by the command line, until its standard input ends. Each goes through
controllers in an order of its own, often at the very instant of ticks. Then it resumes and restores most of what it
stopped. It notes each order before it gives it, and what it was told, as lines of JSON, for
tests/support/chaos_orders.py.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cronring.client import AsyncClient
from cronring.client.errors import Conflict, Invalid, NotFound, OutcomeUnknown, Refused, Unavailable, Unreachable

PAUSE_S: Final = 0.4  # between orders, on average
BY_COMMAND: Final = 0.25  # of all orders
AIMED: Final = 0.4  # orders that come at the instant of ticks
CALL_S: Final = 4.0
COMMAND_S: Final = 40.0
STEADY: Final = ("mixed.each_second", "mixed.longer_than_its_period")  # neither cancelled nor paused for long
# What a controller answers whose PostgreSQL is away, or that goes away in the middle.
PASSING: Final = {"DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED", "ABORTED"}

Order = dict[str, Any]


class Operator:
    def __init__(self, addresses: list[str], journal: Path, seed: int) -> None:
        self._addresses = addresses
        self._journal = journal.open("a")
        self._random = random.Random(seed)
        self._given = 0
        self._keys: list[str] = []
        self._kinds: tuple[tuple[int, Callable[[], Awaitable[None]]], ...] = (
            (4, self.pause), (3, self.resume), (5, self.skip_next), (2, self.cancel), (4, self.restore),
            (4, self.trigger), (5, self.cancel_execution), (5, self.retry), (1, self.rollback), (1, self.many),
        )  # fmt: skip

    async def work(self, stop: asyncio.Event) -> None:
        kinds = [kind for weight, kind in self._kinds for _ in range(weight)]
        while not stop.is_set():
            pause_s = self._random.random() * 2 * PAUSE_S
            if self._random.random() < AIMED:
                at = time.time() + pause_s
                pause_s += 1 - at % 1 + self._random.uniform(-0.01, 0.01)
            await asyncio.sleep(pause_s)
            if not self._keys:
                self._keys = [each.key for each in await self._look(lambda client: client.jobs.list()) or []]
            else:
                await self._random.choice(kinds)()

    async def leave(self) -> None:
        """What is cancelled or paused for ever goes on, but for some."""
        for job in await self._look(lambda client: client.jobs.list()) or []:
            if job.status == "cancelled" and self._random.random() < 0.8:
                await self._give({"order": "restore", "job": job.key}, lambda client, j=job: client.jobs.restore(j.key))
            elif job.status == "paused" and self._random.random() < 0.8:
                await self._give({"order": "resume", "job": job.key}, lambda client, j=job: client.jobs.resume(j.key))

    # Asking

    def _shuffled(self) -> list[str]:
        return self._random.sample(self._addresses, len(self._addresses))

    async def _look(self, call: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
        async with AsyncClient(self._shuffled(), timeout_s=CALL_S) as client:
            try:
                return await call(client)
            except (Unreachable, Unavailable, Refused) as error:
                _let_pass(error)
                return None

    async def _give(
        self, order: Order, call: Callable[..., Awaitable[Any]], command: tuple[str, ...] = (),
        told: Callable[[Any], Order] = lambda _: {},
    ) -> None:  # fmt: skip
        """Over gRPC, or by `command` now and then. `told`: what is kept of the answer (gRPC's alone)."""
        self._given += 1
        by_command = bool(command) and self._random.random() < BY_COMMAND
        order |= {"number": self._given, "by": "command" if by_command else "grpc"}
        self._note(order | {"event": "gives"})
        if by_command:
            answer = await self._command(command)
        else:
            answer = await self._call(call, told, order.get("until"))
        self._note({"number": self._given, "event": "is told"} | answer)

    async def _call(
        self, call: Callable[[AsyncClient], Awaitable[Any]], told: Callable[[Any], Order], until: float | None
    ) -> Order:
        async with AsyncClient(self._shuffled(), timeout_s=CALL_S) as client:
            try:
                answer = await call(client)
            except (Conflict, NotFound) as error:
                return {"answer": "refused", "why": str(error)}
            except Invalid as error:
                # Asked of one controller after the other until the pause's end had passed; the first may have done it.
                if until is None or until > time.time():
                    raise
                return {"answer": "unknown", "why": str(error)}
            except (Unreachable, Unavailable, OutcomeUnknown, Refused) as error:
                _let_pass(error)
                return {"answer": "unknown", "why": str(error).splitlines()[0]}
            return {"answer": "done"} | told(answer)

    async def _command(self, command: tuple[str, ...]) -> Order:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cronring.cli.main", *command, "--controllers", ",".join(self._shuffled()),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            _, error = await asyncio.wait_for(process.communicate(), COMMAND_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            return {"answer": "broken", "why": f"{command}: no end within {COMMAND_S} s"}
        why = error.decode(errors="replace")
        match process.returncode:
            case 0:
                return {"answer": "done"}
            case 3:
                return {"answer": "unknown", "why": why[:200]}
            case 1 if "Traceback" not in why:
                return {"answer": "refused", "why": why[:300]}
            case code:
                return {"answer": "broken", "why": f"{command}: exit code {code}: {why[-2_000:]}"}

    def _note(self, line: Order) -> None:
        self._journal.write(json.dumps(line | {"at": time.time()}) + "\n")
        self._journal.flush()

    def _key(self) -> str:
        return self._random.choice(self._keys)

    # Orders

    async def pause(self) -> None:
        key, until = self._key(), None
        if key in STEADY or self._random.random() < 0.7:
            until = float(int(time.time()) + self._random.choice((2, 3, 5, 9)))
        order = {"order": "pause", "job": key, "until": until}
        command: tuple[str, ...] = ("jobs", "pause", key, "--note", "chaos")
        end = None if until is None else datetime.fromtimestamp(until, UTC)
        if end is not None:
            command += ("--until", end.isoformat())
        await self._give(order, lambda client: client.jobs.pause(key, "chaos", until=end), command)

    async def resume(self) -> None:
        key = self._key()
        await self._give(
            {"order": "resume", "job": key}, lambda client: client.jobs.resume(key), ("jobs", "resume", key)
        )  # fmt: skip

    async def skip_next(self) -> None:
        """Naming the tick, or whichever is next."""
        key, tick = self._key(), None
        if self._random.random() < 0.5:
            job = await self._look(lambda client: client.jobs.get(key))
            tick = None if job is None else job.next_tick
        await self._give(
            {"order": "skip_next", "job": key}, lambda client: client.jobs.skip_next(key, tick, "chaos"),
            ("jobs", "skip-next", key),
            lambda answer: {"tick": answer.tick and answer.tick.timestamp(), "skipped": answer.skipped},
        )  # fmt: skip

    async def cancel(self) -> None:
        key = self._key()
        if key not in STEADY:
            order = {"order": "cancel", "job": key}
            await self._give(order, lambda client: client.jobs.cancel(key, "chaos"), ("jobs", "cancel", key))

    async def restore(self) -> None:
        jobs = await self._look(lambda client: client.jobs.list(status="cancelled"))
        if jobs:
            key = self._random.choice(jobs).key
            order = {"order": "restore", "job": key}
            await self._give(order, lambda client: client.jobs.restore(key), ("jobs", "restore", key))

    async def trigger(self) -> None:
        key = self._key()
        await self._give(
            {"order": "trigger", "job": key}, lambda client: client.jobs.trigger(key), ("jobs", "trigger", key),
            lambda answer: {"activation": answer.id},
        )  # fmt: skip

    async def cancel_execution(self) -> None:
        found = await self._look(lambda client: client.executions.list(limit=30))
        running = [each.id for each in found or [] if each.outcome is None]
        if running:
            chosen = self._random.choice(running)
            order = {"order": "cancel_execution", "execution": chosen}
            command = ("executions", "cancel", str(chosen), "--note", "chaos")
            await self._give(
                order, lambda client: client.executions.cancel(chosen, "chaos"), command,
                lambda answer: {"outcome": answer.outcome},
            )  # fmt: skip

    async def retry(self) -> None:
        found = await self._look(lambda client: client.executions.list(limit=100))
        failed = [each.id for each in found or [] if each.outcome not in {None, "completed"}]
        if failed:
            chosen = self._random.choice(failed)
            order = {"order": "retry", "execution": chosen}
            await self._give(
                order, lambda client: client.executions.retry(chosen), ("executions", "retry", str(chosen)),
                lambda answer: {"activation": answer.id},
            )  # fmt: skip

    async def rollback(self) -> None:
        versions = await self._look(lambda client: client.deployments.list())
        keys = [each.key for each in versions or [] if each.key.startswith("versions@")]
        if len(keys) > 1:
            key = self._random.choice(keys)
            command = ("rollback", "versions", "--to", key, "--yes", "--note", "chaos")
            await self._give(
                {"order": "rollback", "deployment": key}, lambda client: client.deployments.activate(key, "chaos"),
                command,
            )  # fmt: skip
            self._keys = []

    async def many(self) -> None:
        """All jobs of the smaller module: skipped, paused for a while, or resumed."""
        action = self._random.choice(("pause", "resume"))
        end = datetime.fromtimestamp(int(time.time()) + 3, UTC) if action == "pause" else None
        command: tuple[str, ...] = ("jobs", action, "--module", "versions", "--yes")
        if end is not None:
            command += ("--until", end.isoformat())

        async def control(client: AsyncClient) -> int:
            progress = client.jobs.control(action, module="versions", note="chaos", until=end)
            return len([each async for each in progress])

        await self._give({"order": "many", "action": action, "until": end and end.timestamp()}, control, command)


def _let_pass(error: Exception) -> None:
    """Raises what a controller never ought to answer."""
    if isinstance(error, Refused) and error.code not in PASSING:
        raise error


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controllers", required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    stop = asyncio.Event()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    operator = Operator(arguments.controllers.split(","), arguments.journal, arguments.seed)

    async def wait_for_the_end() -> None:
        await reader.read()
        stop.set()

    waiting = asyncio.create_task(wait_for_the_end())
    await operator.work(stop)
    await waiting
    await operator.leave()


if __name__ == "__main__":
    asyncio.run(_main())
