"""The composition root of a controller: everything is made, joined, started and stopped here, and nothing else happens.

exit_code = run(ProcessConfig(...), ClusterSettings())
"""

import asyncio
import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Final

import uvloop

from cronring.controller.api.calls import Calls
from cronring.controller.api.http import HttpServer
from cronring.controller.api.listeners import Listeners
from cronring.controller.api.login import LoginParts
from cronring.controller.api.login_attempts import Attempts
from cronring.controller.api.server import AddressInUseError, check_free, in_use
from cronring.controller.api.services import Api, ApiParts, Registration
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.api.token_box import TokenBox
from cronring.controller.config import WILDCARD_HOSTS, Address, MetricsAuth, ProcessConfig
from cronring.controller.core.doctor.finding import Finding
from cronring.controller.core.node.events import PeerRefused
from cronring.controller.core.node.node import Node
from cronring.controller.core.rates import Rate
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import SchemaVersionError, StoreError
from cronring.controller.identity.login import Logins
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.members import enrolling, judge_of, services_of_members
from cronring.controller.peers.client import PeerClient
from cronring.controller.peers.joining import greet_until_joined
from cronring.controller.peers.reach import unreachable
from cronring.controller.ports.audit_chain import NotedRefusal
from cronring.controller.ports.maintenance import DAY_MS, Maintained, Retention
from cronring.controller.ports.store import ControllerInfo, Notifications, Topic
from cronring.controller.runners.comings import Comings
from cronring.controller.runners.gateway import Gateway, close_silent_streams
from cronring.controller.runners.registering import Registering
from cronring.controller.runners.standings import Standings
from cronring.controller.runners.streams import RunnerStreams
from cronring.controller.runners.verb_call_queue import VerbCallQueue
from cronring.controller.runtime.chance import controller_id, seeded_chance
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.driver import Driver
from cronring.controller.runtime.files import raise_open_files
from cronring.controller.runtime.folding import Folding
from cronring.controller.runtime.gauges import node_counters, node_gauges
from cronring.controller.runtime.host_clock import HostClock
from cronring.controller.runtime.lag import watch_loop_lag
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.log_format import set_up_logging
from cronring.controller.runtime.maintenance import look_after_history
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.performer import Performer
from cronring.controller.runtime.queue_figures import QueueFigures
from cronring.controller.runtime.readiness import Readiness
from cronring.controller.runtime.refusals import RefusalLog
from cronring.controller.runtime.sealing import Sealing
from cronring.controller.runtime.secret_keys import SecretKeys
from cronring.controller.runtime.service import Background, Stopping, until_available, within
from cronring.controller.runtime.trust import Trust
from cronring.controller.runtime.webhooks import Deliverer, HttpPosting, Interest, WebhookFigures, read_books
from cronring.controller.runtime.zones import compare_zone_data
from cronring.controller.services.deploying import Deployer
from cronring.controller.services.hearing import heard
from cronring.controller.store.doctor import examine
from cronring.controller.store.folding import fold_figures
from cronring.controller.store.keys import page_key
from cronring.controller.store.listen import PostgresNotifications
from cronring.controller.store.maintenance import maintain
from cronring.controller.store.notices import PostgresNotifier
from cronring.controller.store.pool import Database
from cronring.controller.store.secrets import PostgresEncryptedRows
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.stores import postgres_stores
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.controller.store.webhooks import PostgresOutbox
from cronring.controller.web import Web, intervals_of, issuers_of, key_ages
from cronring.memory import spare_memory
from cronring.protos.runner.v1 import runner_pb2
from cronring.schema.zone import zone_data_version

# How long a thread beside the loop, which judges or plans a large module, may keep it waiting; CPython's own is 5 ms.
# docs/decisions/0061: a herd takes the interpreter back some hundred times
SWITCH_INTERVAL_S: Final = 0.0005
EXIT_OK: Final = 0
EXIT_FAILED: Final = 1  # the log says why
LEAVE_STEP_TIMEOUT_S: Final = 1.5
SILENT_BEATS: Final = 5  # a runner that missed so many gets no more runs until it connects anew


@dataclass(frozen=True, slots=True)
class _Base:
    """What exists before there is a database."""

    config: ProcessConfig
    settings: ClusterSettings
    controller_id: str
    clock: SystemClock
    metrics: Metrics
    log: Log
    readiness: Readiness
    stopping: Stopping
    trust: Trust
    jwts: JwtVerifier | None
    logins: Logins | None
    refusals: RefusalLog
    secret_keys: SecretKeys


def run(config: ProcessConfig, settings: ClusterSettings) -> int:
    """Run one controller until it has left: its process's exit code. Signals are this function's while it runs.

    Raises ConfigError for certificates, keys, or an identity file, that can't be used.
    """
    trust, secret_keys = Trust(config), SecretKeys(config)
    jwts, logins = issuers_of(config)
    set_up_logging(config.log_level, config.log_format)
    spare_memory()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_main(config, settings, trust, jwts, logins, secret_keys))


async def _main(
    config: ProcessConfig,
    settings: ClusterSettings,
    trust: Trust,
    jwts: JwtVerifier | None,
    logins: Logins | None,
    secret_keys: SecretKeys,
) -> int:
    own_id, clock, metrics = controller_id(trust.name or socket.gethostname()), SystemClock(), Metrics()
    own_log = Log(clock, metrics, controller=own_id)
    stopping = Stopping(config.drain_timeout_s, own_log)
    refusals = RefusalLog(metrics.refused, time.monotonic)
    base = _Base(
        config, settings, own_id, clock, metrics, own_log, Readiness(), stopping, trust, jwts, logins, refusals,
        secret_keys,
    )  # fmt: skip
    stopping.watch_signals()
    try:
        return await _with_http(base)
    except AddressInUseError as error:
        own_log.error("address_in_use", reason=str(error))
        return EXIT_FAILED
    except SchemaVersionError as error:
        own_log.error("schema_version", reason=str(error))
        return EXIT_FAILED
    except StoreError as error:
        own_log.error("database_refused", reason=str(error))
        return EXIT_FAILED
    except Exception as error:  # the boundary: whatever it is, the process says so and ends
        own_log.exception("controller_failed", error)
        return EXIT_FAILED
    finally:
        stopping.close()


async def _with_http(base: _Base) -> int:
    """HTTP comes first and goes last, so that /healthz and /readyz answer while everything else comes and goes."""
    address = Address.parse("http_address", base.config.http_address)
    web = Web(base.config.cors_origins, intervals_of(base.config))
    http = HttpServer(
        base.readiness.why_not, base.metrics.text, base.refusals, web.door, *web.routes, cors=web.cors,
        metrics_ask=base.config.metrics_auth is MetricsAuth.TOKEN,
    )  # fmt: skip
    try:
        port = await http.start(address.host, address.port, None if base.config.plain_http else base.trust.web)
    except OSError as error:
        raise in_use("--http", str(address), error) from error
    try:
        check_free("--grpc", Address.parse("--grpc", base.config.grpc_address))
        if base.trust.own is not None:
            check_free("--peer", Address.parse("--peer", base.config.peer_address))
        opened = await base.stopping.unless_asked(until_available(partial(_open_database, base), base.log))
        if opened is None:
            return EXIT_OK
        database, box = opened
        try:
            return await _with_database(base, database, box, Address(address.host, port), web)
        finally:
            web.close()
            await within(LEAVE_STEP_TIMEOUT_S, database.close(), base.log, "database_not_closed")
    finally:
        await http.stop()


async def _open_database(base: _Base) -> tuple[Database, TokenBox]:
    """Raises SchemaVersionError, StoreError, StoreUnavailable."""
    application = f"cronring {base.controller_id}"
    database = await Database.open(
        base.config.database_url, application, schema=base.config.schema, controller_id=base.controller_id
    )
    try:
        return database, TokenBox(await page_key(database))
    except BaseException:  # the next try opens another pool; or there is none
        await database.close()
        raise


async def _with_database(base: _Base, database: Database, box: TokenBox, http_address: Address, web: Web) -> int:
    calls = Calls(base.log, base.refusals, base.readiness.database_away_since)
    config, trust = base.config, base.trust
    throttle = Throttle(Allowances(Rate(config.call_rate, config.call_burst), config.streams), base.clock.now_ns)
    base.metrics.add_gauges(throttle.gauges)
    judge = judge_of(config, trust.own, base.jwts, PostgresTokens(database), throttle, base.clock)
    if trust.own is None:
        web.open_to_all()
    else:
        store, issuers = PostgresWebSessions(database), () if base.logins is None else base.logins.issuers
        parts = LoginParts(
            tokens=judge, known=PostgresTokens(database), sessions=store,
            issuers={each.name: each for each in issuers}, box=box, public_url=config.public_url,
            attempts=Attempts(base.clock.now_ns), now_us=base.clock.wall_us, log=base.log, refused=base.refusals,
        )  # fmt: skip
        web.open(parts, throttle, base.clock.now_ns, local=config.plain_http)
    servers = Listeners(
        calls, base.readiness.is_ready, base.refusals, judge, trust.shown, trust.own, raise_open_files(), web.rest
    )  # fmt: skip
    grpc_port, peer_port = servers.bind(config)
    advertised = Address.parse("address", config.advertise_address or config.grpc_address).bound(grpc_port)
    inner = Address.parse("address", config.advertise_peer_address or config.peer_address)
    peer = inner.bound(peer_port) if trust.own else ""
    http_host = advertised.host if http_address.host in WILDCARD_HOSTS else http_address.host
    info = ControllerInfo(
        controller_id=base.controller_id, grpc_address=str(advertised), peer_address=str(peer),
        http_address=str(Address(http_host, http_address.port)), pid=os.getpid(), version=version("cronring"),
        zone_data=zone_data_version(),
    )  # fmt: skip
    base.log.info(
        "started", grpc=info.grpc_address, peer=info.gossip_address, http=info.http_address, pid=info.pid,
        version=info.version, zone_data=info.zone_data,
    )  # fmt: skip
    if base.jwts is not None:
        base.metrics.add_gauges(partial(key_ages, base.jwts))
    try:
        await _Controller(base, database, box, servers, info).live(web.serve)
    finally:
        for each in (base.jwts, base.logins):
            if each is not None:
                await each.close()
    base.log.info("left")
    return EXIT_OK


class _Controller:
    """One controller with all its parts. `live` is its life."""

    def __init__(
        self, base: _Base, database: Database, box: TokenBox, servers: Listeners, info: ControllerInfo
    ) -> None:
        self._base = base
        self._store = PostgresStore(database)
        self._stores = postgres_stores(database, base.settings)
        self._database = database
        base.metrics.count_skipped(lambda: database.skipped)
        self._servers = servers
        self._info = info
        self._node = Node(info.controller_id, info.gossip_address, base.settings, seeded_chance(), base.clock.now_ns())
        self._streams = RunnerStreams()
        self._standings = Standings(self._store, self._streams)
        self._peers = PeerClient(lambda address: self._driver.put(PeerRefused(address)), base.trust.tls)
        self._performer = Performer(
            self._store, info, base.settings, self._streams, self._peers, base.log, base.metrics, base.clock
        )
        self._driver = Driver(self._node, base.clock, self._performer.perform)
        self._performer.connect(self._driver.put, self._driver.fail)
        console_url = base.config.console_url(info.http_address)
        self._notifier = PostgresNotifier(
            database, info.controller_id, base.settings.hard_timeout_grace_ms, console_url
        )
        self._outbox = PostgresOutbox(database, info.controller_id)
        self._posting = HttpPosting(base.log)
        self._notified = WebhookFigures()
        self._folding = Folding()
        self._queue_figures = QueueFigures()
        self._boxing = Sealing(base.clock)
        self._host_clock = HostClock(base.clock, self._node.database_now)
        self._interest = Interest()
        self._background = Background(self._driver.fail)
        self._deployer = Deployer(self._store, base.settings, self._driver.put, base.log.write)
        self._enrolling = enrolling(
            base.trust.own, lambda: base.trust.authority, base.config.cluster, lambda: self._node.peers,
            self._stores.tokens, base.refusals,
        )  # fmt: skip
        self._api = Api(
            ApiParts(
                info=info,
                settings=base.settings,
                clock=base.clock,
                node=self._node,
                put=self._driver.put,
                fail=self._driver.fail,
                box=box,
                stores=self._stores,
                deployer=self._deployer,
                outputs=self._streams,
                posting=self._posting,
                vault=base.secret_keys.vault,
                around=self,
                console_url=console_url,
                trace_url=base.config.trace_url,
                examine=self._examine,
            )
        )

    async def live(self, serve: Callable[[ApiParts], None]) -> None:
        """Until the node has left. Raises what broke, if something did; then nobody is told good-bye."""
        base = self._base
        serve(self._api.parts)
        of_people = [*self._api.registrations(), *self._enrolling.outside]
        self._servers.add(of_people, self._of_runners_and_peers(), self._stores.request_keys)
        self._add_figures()
        await self._servers.start()
        base.readiness.connect(self._node, self._performer)
        base.stopping.connect(self._driver.put)
        self._start_background()
        try:
            await self._driver.run()
            await self._say_goodbye()
        finally:
            await self._stop()

    def _of_runners_and_peers(self) -> list[Registration]:
        base = self._base
        gateway = Gateway(
            runner_pb2.Welcome(
                controller_id=base.controller_id,
                runner_beat_ms=base.settings.runner_beat_ms,
                runner_fence_ms=base.settings.runner_fence_ms,
            ),
            self._store,
            Registering(self._deployer, self._stores.tokens, base.refusals),
            self._streams,
            self._driver,
            lambda: self._node.peers,
            base.refusals,
            self._now_us,
            lease_valid=lambda: self._node.lease_valid,
            comings=Comings(base.log),
            standings=self._standings,
            verbs=VerbCallQueue(self._api.verb_calls(base.refusals, base.log), base.clock.now_ns),
        )
        return [*services_of_members(gateway, self._driver.put, base.refusals), *self._enrolling.inside]

    def _start_background(self) -> None:
        base, start = self._base, self._background.start
        silence_ms = SILENT_BEATS * base.settings.runner_beat_ms
        start("health", self._servers.follow_health())
        start("certificates", base.trust.follow(base.log))
        start("secrets", base.secret_keys.follow(PostgresEncryptedRows(self._database), base.log))
        start("loop lag", watch_loop_lag(base.clock, base.metrics, base.log))
        notifications = PostgresNotifications(base.config.database_url, base.controller_id, schema=base.config.schema)
        start("notifications", self._hear(notifications))
        start("peers", self._peers.sweep())
        start("joining", greet_until_joined(base.config.join, self._is_alone, self._driver.put))
        start("host clock", self._host_clock.watch(base.log))
        start("zone data", compare_zone_data(self._store, self._info, base.log))
        start("history", look_after_history(self._maintain, base.log))
        start("figures", self._folding.go_on(partial(fold_figures, self._database), base.log))
        start("queues", self._queue_figures.go_on(self._stores.queues.figures))
        start("audit log", self._boxing.go_on(self._stores.audit_log.seal, base.log))
        start("refusals", base.refusals.go_on(self._note_refusals, base.log))
        wake = asyncio.Event()
        start("webhooks", read_books(self._notifier.read, self._interest, wake, self._notified, base.log))
        deliverer = Deliverer(
            self._outbox, base.secret_keys.vault, self._posting, self._interest, wake, self._notified, base.log
        )
        start("deliveries", deliverer.deliver())
        start("standings", self._standings.tell_changes())
        start("silent runners", close_silent_streams(self._streams, self._now_us, silence_ms))

    async def _maintain(self) -> Maintained:
        settings = self._base.settings
        kept_ms, audit_log_ms = settings.history_days * DAY_MS, settings.audit_log_days * DAY_MS
        retention = Retention(kept_ms, settings.history_runs, audit_log_ms)
        return await maintain(self._base.config.database_url, retention, schema=self._base.config.schema)

    async def _note_refusals(self, refusals: Sequence[NotedRefusal]) -> None:
        await self._stores.audit_log.note_refusals(refusals, self._base.controller_id)

    async def _hear(self, notifications: Notifications) -> None:
        async for notified in notifications.listen():
            for event in heard(notified):
                self._driver.put(event)
            topics = {each.topic for each in notified}
            if Topic.JOBS in topics:
                self._standings.look_again()
            if Topic.WEBHOOKS in topics:
                self._interest.hear()

    async def _say_goodbye(self) -> None:
        """Let the others know at once what they would find out by themselves."""
        log = self._base.log
        await self._peers.flush(LEAVE_STEP_TIMEOUT_S)
        removing = self._store.remove_controller(self._base.controller_id)
        await within(LEAVE_STEP_TIMEOUT_S, removing, log, "row_not_removed")
        await within(LEAVE_STEP_TIMEOUT_S, self._notifier.leave(), log, "notifier_not_left")

    async def _stop(self) -> None:
        await self._background.stop()
        self._streams.close_all("this controller is leaving")
        await self._api.close()
        await self._servers.stop(grace_s=0.5)
        refusals = self._base.refusals.leave(self._note_refusals, self._base.log)
        await within(LEAVE_STEP_TIMEOUT_S, refusals, self._base.log, "refusals_not_written")
        await self._performer.close()
        await self._posting.close()
        await self._peers.close()

    def _is_alone(self) -> bool:
        return sum(member.gossips for member in self._node.members()) == 1

    def _now_us(self) -> int:
        return self._base.clock.now_ns() // 1_000

    def _add_figures(self) -> None:
        self._base.metrics.built(
            version=self._info.version, python=platform.python_version(), tzdata=self._info.zone_data,
            postgres=self._database.server_version,
        )  # fmt: skip
        self._base.metrics.add_counters(node_counters(self._node))
        self._base.metrics.add_counters(self._notified.counters)
        self._base.metrics.add_counters(self._folding.counters)
        self._base.metrics.add_counters(self._boxing.counters)
        self._base.metrics.add_counters(self._base.refusals.counters)
        self._base.metrics.registry.register(self._queue_figures)
        self._base.metrics.add_gauges(self._folding.gauges)
        self._base.metrics.add_gauges(self._boxing.gauges)
        self._base.metrics.add_gauges(self._host_clock.gauges)
        self._base.metrics.add_gauges(self._base.refusals.gauges)
        self._base.metrics.add_gauges(self._notified.gauges)
        self._base.metrics.add_gauges(node_gauges(self._node, self._base.controller_id))
        self._base.metrics.add_gauges(lambda: {name: float(value) for name, value in self._process_gauges().items()})
        self._base.metrics.add_gauges(lambda: self._base.trust.gauges(self._base.clock))
        self._base.metrics.add_gauges(self._base.secret_keys.gauges)

    def _process_gauges(self) -> dict[str, int]:
        return {
            "runner_streams": len(self._streams),
            "runner_queue_items": self._streams.queued,
            "inbox_events": self._driver.inbox_length,
            "statements_in_flight": self._performer.statements_in_flight,
            "peer_channels": self._peers.channels,
            "execution_followers": self._streams.followers,
            **self._api.watchers(),
        }

    # What the doctor asks (cronring.controller.api.doctor.ProcessFacts).

    def not_ready(self) -> str | None:
        return self._base.readiness.why_not()

    def database_ok(self) -> bool:
        return self._performer.database_ok

    def queues(self) -> dict[str, int]:
        stats = self._node.stats()
        return self._process_gauges() | {
            name: getattr(stats, name)
            for name in ("held", "ends_pending", "awaiting_runner", "activations", "window_jobs")
        }

    def runners(self) -> tuple[str, ...]:
        return self._streams.runner_ids

    def certificate_left_ms(self) -> int | None:
        return self._base.trust.left_ms(self._base.clock)

    def certificate_problem(self) -> str:
        return self._base.trust.problem()

    def issuer_problem(self) -> str:
        jwts = self._base.jwts
        return "" if jwts is None else "; ".join(f"{name}: {why}" for name, why in sorted(jwts.troubles().items()))

    def secrets_key(self) -> str:
        return self._base.secret_keys.key_id()

    def secrets_problem(self) -> str:
        return self._base.secret_keys.problem()

    async def unreachable(self, addresses: Iterable[str]) -> dict[str, str]:
        return await unreachable(addresses, self._base.trust.tls())

    async def _examine(self) -> list[Finding]:
        config = self._base.config
        return (await examine(config.database_url, self._base.settings, schema=config.schema)).findings
