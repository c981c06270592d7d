"""One `cronring dev`, from the database to the last line."""

import asyncio
import contextlib
import shutil
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from cronring.cli.dev.cluster import LocalCluster, StartPlan
from cronring.cli.dev.database import EmbeddedDatabase, data_folder
from cronring.cli.dev.feed import DevFeed
from cronring.cli.dev.happenings import Happening, StartProgress
from cronring.cli.dev.state import DevState
from cronring.cli.dev.summary import Summary, not_booked, settled
from cronring.cli.dev.trust import make_certificates, make_identities
from cronring.cli.failures import EXIT_FAILED, Failure
from cronring.cli.printing import say
from cronring.client import AsyncClient, ClientError
from cronring.client.model import Audit
from cronring.schema.duration import measured
from cronring.trust.files import write_file

READY_TIMEOUT_S: Final = 120.0  # a machine whose cores are all at work may take more than one minute
READY_POLL_S: Final = 0.1
DRAW_S: Final = 0.2
CALL_TIMEOUT_S: Final = 1.0
# How long the runs of the last ticks may go on by themselves, and how long they then have to be cancelled and booked.
SETTLE_S: Final = 6.0
SETTLE_CANCELLED_S: Final = 14.0
# Ctrl-C may take five seconds. The database gets what the others leave, which is at least the last of these.
STOP_S: Final = 4.5
STOP_RUNNER_S: Final = 1.5
STOP_CONTROLLERS_S: Final = 1.5
STOP_DATABASE_S: Final = 1.5


class DevView(Protocol):
    """Who shows it: display.py or plain.py."""

    def tell(self, happening: Happening) -> None: ...
    def draw(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What the user asked for. `for_s` None: until Ctrl-C. `data` None: a temporary folder."""

    plan: StartPlan
    for_s: float | None
    data: str | None
    database_url: str | None
    schema: str


class Development:
    """`run` gives the exit code."""

    def __init__(self, options: DevOptions, state: DevState, view: DevView) -> None:
        self._options = options
        self._state = state
        self._view = view
        self._stop = asyncio.Event()
        self._keep_folder = False  # a temporary folder stays when its logs may explain a failure
        self._ending = time.monotonic()  # when everything began to stop
        self.summary: Summary | None = None  # to be printed, once everything has stopped

    def _tell(self, happening: Happening) -> None:
        self._state.happenings.append((self._state.now(), happening))
        try:
            self._view.tell(happening)
        except BrokenPipeError:  # whoever read it has had enough
            self._stop.set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        async with self._database() as (url, folder):
            await self._migrate(url)
            plan, schema = self._options.plan, self._options.schema
            trust = make_certificates(folder, plan.controllers)
            await make_identities(url, schema, trust, plan.namespace)
            url_file = folder / "database-url"
            write_file(url_file, url.encode(), 0o600)
            environment = {"CRONRING_DATABASE_URL": f"@{url_file}", "CRONRING_SCHEMA": schema}
            cluster = LocalCluster(plan, self._state, folder, environment, trust, self._tell)
            token = trust.token_file.read_text().strip()
            client = AsyncClient(
                cluster.grpc_addresses, timeout_s=CALL_TIMEOUT_S, ca=trust.ca, token=token, insecure=False
            )
            try:
                return await self._watch(cluster, client)
            finally:
                # Shielded: whatever cancels this, nothing may stay behind.
                await asyncio.shield(self._end(cluster, client))
                url_file.unlink(missing_ok=True)

    async def _watch(self, cluster: LocalCluster, client: AsyncClient) -> int:
        feed = DevFeed(client, self._state, self._tell)
        cluster.on_controller_death = feed.controller_died
        if not await self._start(cluster, feed, client):
            return 0
        feeding = asyncio.create_task(feed.run())
        try:
            ended = await self._show(cluster, feeding)
            if not ended:
                return 0
            books = await self._settle(cluster, client, feed)
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeding
            self._view.close()
        return self._conclude(books)

    @contextlib.asynccontextmanager
    async def _database(self) -> AsyncIterator[tuple[str, Path]]:
        folder, temporary = data_folder(self._options.data)
        try:
            if self._options.database_url is not None:
                yield self._options.database_url, folder
            else:
                async with self._embedded(folder, temporary) as url:
                    yield url, folder
        finally:
            if temporary and self._keep_folder:
                say(f"the logs are kept in {folder}", err=True)
            elif temporary:
                shutil.rmtree(folder, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def _embedded(self, folder: Path, temporary: bool) -> AsyncIterator[str]:
        began = time.monotonic()
        database = await EmbeddedDatabase.start(folder, remove=temporary)
        self._tell(
            StartProgress(f"PostgreSQL is up ({measured((time.monotonic() - began) * 1_000)}), its data in {folder}")
        )
        try:
            yield database.url
        finally:
            left_s = STOP_S - (time.monotonic() - self._ending)
            await asyncio.shield(database.stop(self._keep_folder, max(STOP_DATABASE_S, left_s)))

    async def _migrate(self, url: str) -> None:
        from cronring.controller.store.migrate import migrate

        applied = await migrate(url, schema=self._options.schema)
        self._tell(StartProgress(f"{applied} migrations applied" if applied else "the tables are up to date"))

    async def _start(self, cluster: LocalCluster, feed: DevFeed, client: AsyncClient) -> bool:
        """Everything up and known to each other. False when the user stopped it meanwhile."""
        await cluster.start_controllers()
        wanted = set(cluster.grpc_addresses)
        if not await self._until(cluster, lambda: self._members_alive(client, wanted)):
            return False
        await cluster.open_to_others()
        self._tell(StartProgress(f"{len(wanted)} controllers form one ring"))
        await feed.begin()
        await cluster.start_runner()
        if not await self._until(cluster, lambda: self._runner_alive(client)):
            return False
        cluster.hosted = True
        await feed.ask_jobs()
        self._tell(StartProgress(f"a runner hosts {len(self._state.jobs)} jobs"))
        return True

    async def _members_alive(self, client: AsyncClient, wanted: set[str]) -> bool:
        view = await client.cluster.get()
        self._state.learn(view)
        return wanted <= {each.grpc_address for each in view.members if each.status == "alive" and each.primary_slots}

    async def _runner_alive(self, client: AsyncClient) -> bool:
        view = await client.cluster.get()
        self._state.learn(view)
        pids = {child.pid for child in self._state.runners}
        return any(runner.alive and runner.deployments and runner.pid in pids for runner in view.runners)

    async def _until(self, cluster: LocalCluster, ready: Callable[[], Awaitable[bool]]) -> bool:
        """Ask until ready. Raises Failure when a process dies, or after two minutes; False when the user stops it."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._stop.is_set():
            with contextlib.suppress(ClientError):
                if await ready():
                    return True
            if cluster.failed.is_set() or any(not child.alive for child in self._state.controllers):
                self._keep_folder = True
                raise Failure(f"a process died while starting:\n{cluster.dead_log()}")
            if time.monotonic() > deadline:
                self._keep_folder = True
                raise Failure(
                    f"not ready after {measured(READY_TIMEOUT_S * 1_000)}; the logs say more:\n{cluster.log_names()}"
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), READY_POLL_S)
        return False

    async def _show(self, cluster: LocalCluster, feeding: asyncio.Task[None]) -> bool:
        """Draw until the time is over (True) or the user stops it (False). Raises Failure when all is dead."""
        for_s = self._options.for_s
        deadline = time.monotonic() + for_s if for_s is not None else float("inf")
        while time.monotonic() < deadline:
            self._view.draw()
            if feeding.done():
                feeding.result()  # raises what broke it
            if cluster.failed.is_set():
                self._keep_folder = True
                raise Failure(f"there is nothing left to watch:\n{cluster.dead_log()}")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), min(DRAW_S, max(0.0, deadline - time.monotonic())))
                return False
        return True

    async def _settle(self, cluster: LocalCluster, client: AsyncClient, feed: DevFeed) -> Audit:
        """The books of all ticks up to now, once they are settled; what runs too long for that is cancelled."""
        until = self._state.now()
        books = await self._poll_books(client, feed, until, SETTLE_S)
        if books is None or not settled(books):
            await cluster.stop_runners(STOP_RUNNER_S)
            books = await self._poll_books(client, feed, until, SETTLE_CANCELLED_S) or books
        if books is None:
            raise Failure("no controller answers, so the ticks could not be counted")
        with contextlib.suppress(ClientError):
            await feed.ask_executions()  # the last ones, which ended since it asked by itself
        return books

    async def _poll_books(self, client: AsyncClient, feed: DevFeed, until: datetime, timeout_s: float) -> Audit | None:
        """The last answer within `timeout_s`, earlier if it is settled, or the user has had enough."""
        books: Audit | None = None
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with contextlib.suppress(ClientError):
                books = await client.ledger.audit(feed.since, until, timeout_s=timeout_s)
                if settled(books):
                    break
            self._view.draw()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), DRAW_S)
                break
        return books

    def _conclude(self, books: Audit) -> int:
        self.summary = Summary(books, self._state.worst_lateness_ms)
        if books.clean and not not_booked(books):
            return 0
        self._keep_folder = True
        return EXIT_FAILED

    async def _end(self, cluster: LocalCluster, client: AsyncClient) -> None:
        self._ending = time.monotonic()
        self._tell(StartProgress("stopping"))
        await client.close()
        await cluster.stop_runners(STOP_RUNNER_S)
        await cluster.stop_controllers(STOP_CONTROLLERS_S)
