"""All contenders on one PostgreSQL, in turns: bursts of recurring jobs, and queues of one-shots."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench.processes import cpu_s, family
from bench.rivals.contenders import Contender, Rival, Scene, Spec
from bench.rivals.install import Installed
from bench.rivals.measure import Burst, NotDrainedError, StartLog, figures, until_idle, watch
from bench.rivals.ours import Ours
from bench.rivals.slots import Slot, arrange, length_s, next_cycle
from bench.rivals.table import OURS
from cronring.client.errors import ClientError
from tests.support.databases import TEMPLATE, PostgresServer

OURS_SLOWEST = 300  # executions/s, for the length of our slot
SETTLE_S = 180.0  # for what contenders do when they start, such as ticks that were before
QUEUE_S = 180.0
WARM_UP = 0.1  # of the queue
READY_S = 5.0  # until workers of a queue listen


@dataclass(frozen=True)
class Stage:
    server: PostgresServer
    installed: Installed
    folder: Path
    processes: int
    rounds: int


class Player:
    """A contender with its figures. `left_out`: why it is no longer measured; then its processes are gone."""

    def __init__(self, name: str, contender: Contender, scene: Scene) -> None:
        self.name, self.scene = name, scene
        self.contender = contender
        self.log = StartLog(scene.starts)
        self.processes = 0
        self.rounds: list[Burst | None] = []
        self.left_out = ""

    def act(self, what: Callable[[], Any]) -> Any:
        """Prepare, start or enqueue. None when it couldn't, which leaves it out."""
        if self.left_out:
            return None
        try:
            return what()
        except (AssertionError, ClientError, OSError, TimeoutError, subprocess.TimeoutExpired) as error:
            self.leave_out(str(error))
            return None

    def leave_out(self, reason: str) -> None:
        died = self.contender.died()
        self.left_out = f"{reason}; {died}" if died else reason
        say(f"{self.name} is left out: {self.left_out}")
        self.contender.stop()

    async def settle(self, connection: asyncpg.Connection) -> None:
        """Until nothing is left of what starting brought about, or an earlier burst."""
        if not self.left_out:
            try:
                await until_idle(connection, self.contender.unfinished, time.time() + SETTLE_S)
            except NotDrainedError as error:
                self.leave_out(str(error))
        self.log.new()

    async def burst(
        self, connection: asyncpg.Connection, tick: float, jobs: int, deadline: float, others: Sequence[int]
    ) -> Burst | None:
        """Of `jobs` due at `tick`. Whoever isn't done by the deadline is left out from then on."""
        begun, taken = time.time(), cpu_s(others)
        try:
            starts, drained = await watch(self.log, connection, self.contender.unfinished, jobs, deadline)
        except NotDrainedError as error:
            self.leave_out(f"not done {deadline - tick:.0f} s after its tick: {error}")
            return None
        percent = (cpu_s(others) - taken) / (time.time() - begun) * 100
        return figures(starts, jobs, tick, drained, percent)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cast(stage: Stage, part: str, specs: Sequence[Spec], jobs: int, slots: dict[str, Slot | None]) -> list[Player]:
    """A player for each whose slot is given, with a database and a folder of its own."""
    players = []
    by_name = {spec.name: spec for spec in specs}
    for name, slot in slots.items():
        folder = stage.folder / part / name
        folder.mkdir(parents=True)
        template = TEMPLATE if name == OURS else "template0"
        url = stage.server.url(stage.server.create_database(template))
        fewer = 0 if name == OURS else by_name[name].processes
        scene = Scene(url, folder, jobs, min(fewer or stage.processes, stage.processes), slot)
        contender: Contender = Ours(scene) if name == OURS else Rival(by_name[name], stage.installed, scene)
        players.append(Player(name, contender, scene))
    return players


def lacking(specs: Sequence[Spec], installed: Installed) -> dict[str, str]:
    """Whom this machine can't run, and why."""
    reasons = {spec.name: installed.node_lacks if spec.node else installed.python_lacks for spec in specs}
    return {name: reason for name, reason in reasons.items() if reason}


@contextlib.contextmanager
def playing(players: Sequence[Player]) -> Iterator[None]:
    """Prepare all, then start all; at the end all are gone."""
    try:
        for player in players:
            say(f"preparing {player.name} …")
            player.act(player.contender.prepare)
        for player in players:
            player.act(player.contender.start)
        yield
    finally:
        for player in players:
            player.contender.stop()


Turn = Callable[[Player, asyncpg.Connection, int, Sequence[int]], Any]


async def rounds(players: Sequence[Player], count: int, before: Callable[[], Any], turn: Turn) -> None:
    """`turn` for each player in each round. The first round warms up, and isn't kept."""
    connections = [await asyncpg.connect(player.scene.database_url) for player in players]
    try:
        for player, connection in zip(players, connections, strict=True):
            await player.settle(connection)
        for number in range(count + 1):
            before()
            for player, connection in zip(players, connections, strict=True):
                if player.left_out:
                    continue
                others = [pid for other in players if other is not player for pid in other.contender.pids]
                burst = await turn(player, connection, number, others)
                player.processes = len(family(player.contender.pids)) or player.processes
                if number:
                    player.rounds.append(burst)
                if burst is not None:
                    say(f"round {number}: {player.name} {burst.per_second}/s")
    finally:
        for connection in connections:
            await connection.close()


def outcome(
    name: str, shape: dict[str, Any], specs: Sequence[Spec], players: Sequence[Player], lacks: dict[str, str]
) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "name": name,
        "shape": shape,
        "rounds": {player.name: [burst and asdict(burst) for burst in player.rounds] for player in players},
        "processes": {player.name: player.processes for player in players},
        "left_out": lacks | {player.name: player.left_out for player in players if player.left_out},
        "notes": {spec.name: spec.note for spec in specs if spec.note},
    }


def recurring(stage: Stage, specs: Sequence[Spec], jobs: int) -> dict[str, Any]:
    """Bursts: N jobs due in the same second."""
    lacks = lacking(specs, stage.installed)
    there = [spec for spec in specs if spec.name not in lacks]
    there.sort(key=lambda spec: not spec.minutes_only)  # a cycle begins with a minute
    wishes = [(length_s(jobs, spec.slowest), spec.minutes_only) for spec in there]
    places = arrange([*wishes, (length_s(jobs, OURS_SLOWEST), False)])
    players = cast(
        stage, "recurring", there, jobs, dict(zip([*(spec.name for spec in there), OURS], places, strict=True))
    )
    cycle_s = places[0].cycle_s
    start = 0

    def before() -> None:
        nonlocal start
        start = next_cycle(time.time() + 1, cycle_s)

    async def turn(player: Player, connection: asyncpg.Connection, _: int, others: Sequence[int]) -> Burst | None:
        slot = player.scene.slot
        assert slot is not None
        tick = slot.tick(start)
        await asyncio.sleep(max(0.0, tick - 0.5 - time.time()))
        player.log.new()
        await asyncio.sleep(max(0.0, tick - time.time() - 0.05))
        return await player.burst(connection, tick, jobs, tick + slot.length_s - 1, others)

    say(f"recurring: {stage.rounds + 1} rounds of {cycle_s // 60} minutes")
    with playing(players):
        asyncio.run(rounds(players, stage.rounds, before, turn))
    shape = {"jobs": jobs, "processes at most": stage.processes}
    return outcome("recurring", shape, there, players, lacks)


def queue(stage: Stage, specs: Sequence[Spec], jobs: int) -> dict[str, Any]:
    """One-shots, from the instant since which they are all due."""
    lacks = lacking(specs, stage.installed)
    there = [spec for spec in specs if spec.name not in lacks]
    players = cast(stage, "queue", there, jobs, dict.fromkeys([*(spec.name for spec in there), OURS]))

    async def turn(player: Player, connection: asyncpg.Connection, number: int, others: Sequence[int]) -> Burst | None:
        count = jobs if number else max(1, int(jobs * WARM_UP))
        tick = player.act(lambda: player.contender.enqueue(count))
        if tick is None:
            return None
        return await player.burst(connection, tick, count, tick + QUEUE_S, others)

    with playing(players):
        time.sleep(READY_S)
        asyncio.run(rounds(players, stage.rounds, lambda: None, turn))
    shape = {"one-shots": jobs, "processes at most": stage.processes}
    return outcome("queue", shape, there, players, lacks)
