"""The engine of virtual time: one controller, one runner, the store in memory, and what may become of each.

    engine = Engine(start_us, ClusterSettings(), runs)
    engine.deploy_all([(module, digest)])
    engine.run_until(until_us)

Everything is decided by the node and its policies; the engine only says what time it is, and when a part is away.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cronring.controller.core.node import events
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.store.memory.store import MemoryStore
from cronring.runner.core.model import CallAnswer
from cronring.runner.lines import Asked
from cronring.schema.module import Module
from cronring.virtual.clock import Timer
from cronring.virtual.controller import VirtualController
from cronring.virtual.outages import PARTS, Outage
from cronring.virtual.performing import run_now
from cronring.virtual.process import Process
from cronring.virtual.runner import Runs, VirtualRunner
from cronring.virtual.times import VirtualTime

if TYPE_CHECKING:
    from cronring.virtual.verbs import VirtualVerbs

SECOND_NS: Final = 1_000_000_000
# A cluster needs so long to stand, before anything is deployed to it.
BOOT_US: Final = 5_000_000
# After a part has gone or come, time passes on every clock until leases, fences and verdicts are where they end up.
SETTLING_NS: Final = 60 * SECOND_NS
NOTICE_NS: Final = SECOND_NS  # the same after a NOTIFY: the window is read anew
SWEEP_NS: Final = 5 * SECOND_NS  # the same after a hard deadline, which a renewal of the lease finds
# What a node wants to do this soon is done before PostgreSQL's clock leaps.
SOON_NS: Final = 25_000_000
SPINS_MAX: Final = 10_000
# As good as for ever: every job is known to the node from its creation on.
WINDOW_MS: Final = 200 * 366 * 86_400_000

WriteLineOf = Callable[[str, str, str, Mapping[str, Any]], None]


class Engine:
    """`start_us`: when the cluster stands. `log` takes (who, level, event, values) of what the parts log."""

    def __init__(
        self, start_us: int, settings: ClusterSettings, runs: Runs, log: WriteLineOf = lambda *_: None
    ) -> None:
        self.settings = replace(settings, window_ms=WINDOW_MS, refetch_interval_ms=WINDOW_MS // 2)
        self.time = VirtualTime(start_us - BOOT_US)
        self.store = MemoryStore(lambda: self.time.now_us, self._notified)
        self._verbs: VirtualVerbs | None = None
        runs.attach(self.time, self._answer_verb)
        self.controller: VirtualController | None = None
        self.runner: VirtualRunner | None = None
        self._runs = runs
        self._log = log
        self._started = dict.fromkeys(PARTS, 0)
        self._away = dict.fromkeys(PARTS, 0)  # how many outages of it are under way
        self._deployments: tuple[str, ...] = ()
        self._full_until_ns = 0  # until then (monotonic) there are no leaps
        self._sweep: Timer | None = None
        self._start_controller()
        self.run_until(start_us)

    @property
    def now_us(self) -> int:
        return self.time.now_us

    def log(self, who: str, level: str, event: str, values: Mapping[str, Any]) -> None:
        self._log(who, level, event, values)

    # What is done to the cluster

    def deploy_all(self, modules: list[tuple[Module, str]]) -> None:
        """Make these versions (module, digest) the active ones, with a runner that hosts them."""
        for module, digest in modules:
            deployed = run_now(
                self.store.create_deployment(
                    module, digest, 1, self.settings.timeout_ms, True, self.settings.default_jitter
                )
            )
            self._deployments += (deployed.key,)
            self.tell(events.JobsCreated(deployed.jobs))
        self._start_runner()
        self._settle()

    def tell(self, event: events.Event) -> None:
        """What the API would tell the controller it runs in."""
        if self.controller is not None:
            self.controller.put(event)

    def schedule_outage(self, outage: Outage) -> None:
        """Raises ValueError when it begins before now."""
        if outage.start_us < self.now_us:
            raise ValueError(f"an outage can't begin in the past: {outage}")
        self.time.call_at(outage.start_us, lambda: self._begin_outage(outage.part))
        self.time.call_at(outage.end_us, lambda: self._end_outage(outage.part))

    def is_away(self, part: str) -> bool:
        return self._away[part] > 0

    def _answer_verb(self, asked: Asked) -> CallAnswer:
        if self._verbs is None:
            from cronring.virtual.verbs import VirtualVerbs  # noqa: PLC0415  # the API: few verbs ask, and all tests wait

            self._verbs = VirtualVerbs(self.store, self.settings, self.tell, self._away_part)
        return self._verbs.answer(asked)

    def _away_part(self) -> str:
        """Whom a verb asks in vain; "": nobody."""
        return next((part for part in ("controllers", "database") if self._away[part]), "")

    def _begin_outage(self, part: str) -> None:
        self._away[part] += 1
        if self._away[part] > 1:
            return
        self.log(part, "warning", "outage_began", {})
        if part == "controllers" and self.controller is not None:
            self.controller.end()
            self.controller = None
        elif part == "runners" and self.runner is not None:
            self.runner.end()
            self.runner = None
        self._live_on(SETTLING_NS)

    def _end_outage(self, part: str) -> None:
        self._away[part] -= 1
        if self._away[part]:
            return
        self.log(part, "info", "outage_ended", {})
        if part == "controllers":
            self._start_controller()
        elif part == "runners":
            self._start_runner()
        self._live_on(SETTLING_NS)

    def _start_controller(self) -> None:
        self._started["controllers"] += 1
        self.controller = VirtualController(self, self._started["controllers"])
        self._live_on(BOOT_US * 1_000)

    def _start_runner(self) -> None:
        if not self._deployments or self._away["runners"]:
            return
        self._started["runners"] += 1
        self.runner = VirtualRunner(self, self._started["runners"], self._deployments, self._runs)

    # The store

    def ask(self, call: Callable[[MemoryStore], Coroutine[Any, Any, Any]]) -> Any:
        """A statement's result, or its error."""
        if self._away["database"]:
            return StoreUnavailable("the database is away")
        try:
            return run_now(call(self.store))
        except StoreError as refusal:
            return refusal

    def _notified(self) -> None:
        self.tell(events.JobsNotified())
        self._live_on(NOTICE_NS)

    def watch_deadlines(self) -> None:
        """Executions past their hard deadline are found by a renewal of the lease, so time has to pass then."""
        if self._sweep is None and self.store.unfinished:
            at_us = min(row.hard_deadline for row in self.store.unfinished.values())
            self._sweep = self.time.call_at(max(at_us, self.now_us), self._find_overdue)

    def _find_overdue(self) -> None:
        self._sweep = None
        now_us = self.now_us
        if any(row.hard_deadline <= now_us for row in self.store.unfinished.values()):
            self._live_on(SWEEP_NS)
            self._sweep = self.time.call_after_ns(SWEEP_NS, self._find_overdue)
        else:
            self.watch_deadlines()

    # Time

    def _live_on(self, for_ns: int) -> None:
        """No leaps for so long."""
        self._full_until_ns = max(self._full_until_ns, self.time.now_ns + for_ns)

    def run_until(self, until_us: int) -> bool:
        """Let everything happen that is due up to and at `until_us`. False: runs are in the way (Runs.horizon_us)."""
        while True:
            self._settle()
            horizon_us = self._runs.horizon_us()
            limit_us = until_us if horizon_us is None else min(until_us, max(horizon_us, self.now_us))
            if not self._advance(limit_us):
                return limit_us >= until_us

    def _settle(self) -> None:
        """Let everybody do what is due at this instant."""
        for _ in range(SPINS_MAX):
            if not sum(process.work() for process in self._processes()):  # each, not only the first that had work
                return
        raise AssertionError("the virtual cluster does not come to rest")

    def _processes(self) -> list[Process]:
        return [process for process in (self.controller, self.runner) if process is not None]

    def _advance(self, limit_us: int) -> bool:
        """Go on to what is due next, at most to the limit. False if nothing is due by then."""
        time = self.time
        deadlines = [at_ns for process in self._processes() if (at_ns := process.deadline_ns) is not None]
        soon = bool(deadlines) and min(deadlines) <= time.now_ns + SOON_NS
        called_us = time.next_us()
        if soon or time.now_ns < self._full_until_ns:
            due_us = [time.reached_us(at_ns) for at_ns in deadlines]
            next_us = min(due_us if called_us is None else [*due_us, called_us], default=limit_us + 1)
            time.move_to(min(next_us, limit_us))
            return next_us <= limit_us
        node_us = None if self.controller is None else self.controller.node.next_us()
        next_us = min((at_us for at_us in (called_us, node_us) if at_us is not None), default=limit_us + 1)
        self._leap_to(min(next_us, limit_us))
        return next_us <= limit_us

    def _leap_to(self, at_us: int) -> None:
        """Leases go on with PostgreSQL's clock, as nobody had the time to renew them."""
        by_us = at_us - self.now_us
        if by_us <= 0:
            self.time.move_to(self.now_us)
            return
        if self.controller is not None:
            self.controller.node.leap(by_us)
        for controller in self.store.controllers.values():
            controller.lease_expires_at += by_us
        for runner in self.store.runners.values():
            runner.last_seen_at += by_us
        self.time.leap_to(at_us)
