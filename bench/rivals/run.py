"""All contenders on one PostgreSQL, in turns: bursts of recurring jobs, and queues of one-shots."""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench.processes import family
from bench.rivals.contenders import PG_CRON, Contender, Rival, Scene, Spec
from bench.rivals.install import Installed
from bench.rivals.measure import Burst, Meter, NotDrainedError, Start, StartLog, figures, until_idle, watch
from bench.rivals.ours import Ours
from bench.rivals.pg_cron import PgCron
from bench.rivals.slots import MARGIN_S, Slot, arrange, length_s, next_cycle
from bench.rivals.table import OURS
from cronring.client.errors import ClientError
from tests.support.databases import TEMPLATE, PostgresServer

OURS_SLOWEST = 300  # executions/s, for the length of our slot
SETTLE_S = 180.0  # for what contenders do when they start, such as ticks that were before
QUEUE_S = 180.0
WARM_UP = 0.1  # of the queue
SHORT_MARGIN_S = 3
READY_S = 5.0  # until workers of a queue listen


@dataclass(frozen=True)
class Form:
    """How much is measured. `short`: slow rivals have fewer jobs, and turns spare less, so that a cycle is a minute."""

    jobs: int = 2000
    one_shots: int = 20_000
    processes: int = 6
    rounds: int = 3
    short: bool = False

    @property
    def margin_s(self) -> int:
        return SHORT_MARGIN_S if self.short else MARGIN_S


@dataclass(frozen=True)
class Stage:
    """`with_cron`: a server of pg_cron's own, where that takes part."""

    server: PostgresServer
    installed: Installed
    folder: Path
    form: Form
    with_cron: PostgresServer | None = None


class Player:
    """A contender with its figures. `left_out`: why it is no longer measured; then its processes are gone."""

    def __init__(self, name: str, contender: Contender, scene: Scene, server: PostgresServer) -> None:
        self.name, self.scene, self.server = name, scene, server
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
        """Of `jobs` due at `tick`. Whoever isn't done by the deadline is left out from then on.

        One-shots are due when they can be seen. Whoever adds them may still be told so while the first ones run: then
        these tell, and not the answer.
        """
        meter = Meter(self.contender.pids, self.server.pid, others)
        try:
            starts, drained = await self._watched(connection, tick, jobs, deadline)
        except NotDrainedError as error:
            self.leave_out(f"not done {deadline - tick:.0f} s after its tick: {error}")
            return None
        due = tick if self.scene.slot is not None else min(tick, *(instant for instant, _ in starts))
        return figures(starts, jobs, due, drained, meter.by(len(starts)))

    async def _watched(
        self, connection: asyncpg.Connection, tick: float, jobs: int, deadline: float
    ) -> tuple[list[Start], float]:
        if isinstance(self.contender, PgCron):
            return await self.contender.watch(connection, tick, jobs, deadline)
        return await watch(self.log, connection, self.contender.unfinished, jobs, deadline)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cast(stage: Stage, part: str, specs: Sequence[Spec], jobs: int, slots: dict[str, Slot | None]) -> list[Player]:
    """A player for each rival, and ours at the end, with a database and a folder of its own."""
    form, players = stage.form, []
    for spec in [*specs, None]:
        name = OURS if spec is None else spec.name
        folder = stage.folder / part / name
        folder.mkdir(parents=True)
        if name == PG_CRON:
            assert stage.with_cron is not None
            server, url = stage.with_cron, stage.with_cron.url()
        else:
            template = TEMPLATE if spec is None else "template0"
            server, url = stage.server, stage.server.url(stage.server.create_database(template))
        processes = min((spec and spec.processes) or form.processes, form.processes)
        share = spec.share(jobs, short=form.short) if spec else jobs
        scene = Scene(url, folder, share, processes, slots[name])
        players.append(Player(name, contender(spec, stage.installed, scene), scene, server))
    return players


def contender(spec: Spec | None, installed: Installed, scene: Scene) -> Contender:
    if spec is None:
        return Ours(scene)
    return PgCron(scene) if spec.name == PG_CRON else Rival(spec, installed, scene)


def lacking(specs: Sequence[Spec], installed: Installed, *, short: bool = False) -> dict[str, str]:
    """Whom this machine can't run, and why."""

    def lacks(spec: Spec) -> str:
        if short and spec.long_only:
            return spec.long_only
        if spec.name == PG_CRON:
            return installed.cron_lacks
        return installed.node_lacks if spec.node else installed.python_lacks

    reasons = {spec.name: lacks(spec) for spec in specs}
    return {name: reason for name, reason in reasons.items() if reason}


@contextlib.contextmanager
def playing(players: Sequence[Player]) -> Iterator[None]:
    """Prepare all, side by side, then start all; at the end all are gone."""
    try:
        say(f"preparing {', '.join(player.name for player in players)} …")
        with ThreadPoolExecutor(len(players)) as threads:
            list(threads.map(lambda player: player.act(player.contender.prepare), players))
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


def places(specs: Sequence[Spec], form: Form) -> dict[str, Slot]:
    """Everybody's slot; ours is the last."""
    requests = [
        (length_s(spec.share(form.jobs, short=form.short), spec.slowest, form.margin_s), spec.minutes_only)
        for spec in specs
    ]
    slots = arrange([*requests, (length_s(form.jobs, OURS_SLOWEST, form.margin_s), False)])
    return dict(zip([*(spec.name for spec in specs), OURS], slots, strict=True))


def recurring(stage: Stage, specs: Sequence[Spec]) -> dict[str, Any]:
    """Bursts: N jobs due in the same second."""
    form, lacks = stage.form, lacking(specs, stage.installed, short=stage.form.short)
    there = [spec for spec in specs if spec.name not in lacks]
    there.sort(key=lambda spec: not spec.minutes_only)  # a cycle begins with a minute
    slots = places(there, form)
    players = cast(stage, "recurring", there, form.jobs, dict(slots))
    cycle_s = slots[OURS].cycle_s
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
        return await player.burst(connection, tick, player.scene.jobs, tick + slot.length_s - 1, others)

    say(f"recurring: {form.rounds + 1} rounds of {cycle_s // 60} minutes")
    with playing(players):
        asyncio.run(rounds(players, form.rounds, before, turn))
    shape = {"jobs": form.jobs, "processes at most": form.processes}
    return outcome("recurring", shape, there, players, lacks)


def queue(stage: Stage, specs: Sequence[Spec]) -> dict[str, Any]:
    """One-shots, from the instant since which they are all due."""
    form, lacks = stage.form, lacking(specs, stage.installed, short=stage.form.short)
    there = [spec for spec in specs if spec.name not in lacks]
    players = cast(stage, "queue", there, form.one_shots, dict.fromkeys([*(spec.name for spec in there), OURS]))

    async def turn(player: Player, connection: asyncpg.Connection, number: int, others: Sequence[int]) -> Burst | None:
        count = player.scene.jobs if number else max(1, int(player.scene.jobs * WARM_UP))
        tick = player.act(lambda: player.contender.enqueue(count))
        if tick is None:
            return None
        return await player.burst(connection, tick, count, tick + QUEUE_S, others)

    with playing(players):
        time.sleep(READY_S)
        asyncio.run(rounds(players, form.rounds, lambda: None, turn))
    shape = {"one-shots": form.one_shots, "processes at most": form.processes}
    return outcome("queue", shape, there, players, lacks)
