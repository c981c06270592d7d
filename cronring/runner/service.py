"""The runner's loop: events go through the core one at a time, and its effects are performed."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

import structlog

from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.calling import UnfitCallError, unfit_answer, verb_call
from cronring.runner.core.effects import (
    AnswerVerb,
    CloseLink,
    Effect,
    Finished,
    Level,
    LogLine,
    OpenLink,
    SendBeat,
    SendCall,
    SendDeclined,
    SendGrants,
    SendReports,
    StartRuns,
    StopRuns,
)
from cronring.runner.core.events import DrainAsked, Event, RunnerWoke, RunsEnded, VerbAsked
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.machine import RunnerCore
from cronring.runner.core.model import CallId
from cronring.runner.core.settings import RunnerSettings
from cronring.runner.following import Following
from cronring.runner.host import Host, ModuleHost
from cronring.runner.lines import Asked
from cronring.runner.link import Link
from cronring.runner.spawn import Program
from cronring.runner.trust import RunnerTrust, keep
from cronring.schema.execution import Report, Run
from cronring.schema.module import Module

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("cronring.runner")

_LEVELS = {Level.DEBUG: "debug", Level.INFO: "info", Level.WARNING: "warning"}


class RunnerService:
    """One runner: core, children, links. `lanes` of its modules, if `hello` says that it grants places."""

    def __init__(
        self,
        settings: RunnerSettings,
        trust: RunnerTrust,
        hello: runner_pb2.RunnerMessage,
        sync_children: int,
        rotation: int,
        lanes: tuple[ModuleLanes, ...] = (),
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._hello = hello
        self._trust = trust
        self._host = Host(sync_children, self._runs_ended, self._log, self._verb_asked)
        self._following = Following(self._host.held, self._send_output, self._watch_ends)
        self._modules: list[ModuleHost] = []
        self._links: dict[str, Link] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._inbox: deque[Event] = deque()
        self._stepping = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
        self._core_of: Callable[[], RunnerCore] = lambda: RunnerCore(
            settings, trust.controllers, rotation, time.monotonic_ns(), lanes
        )
        self._core: RunnerCore | None = None
        self._undelivered: asyncio.Future[int] = self._loop.create_future()
        self._refused: dict[str, str] = {}  # module -> why
        self._active: dict[str, bool] = {}  # each deployment, as was told last

    async def run(self, modules: list[tuple[Module, Program]]) -> int:
        """Host the modules until a drain is over. Returns how many results could not be delivered."""
        try:
            self._modules = await self._host.open(modules)
            self._core = self._core_of()
            self.post(RunnerWoke())
            keeping = asyncio.create_task(keep(self._trust, lambda: tuple(self._links), self._move_links, log))
            keeping.add_done_callback(self._kept)
            try:
                return await self._undelivered
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._following.close()
            for link in self._links.values():
                await link.close()
            await asyncio.gather(*self._closing)
            self._core = None
            await self._host.close()

    def drain(self) -> None:
        """Take no more runs; finish, deliver, end `run`."""
        if self._core is None:
            if not self._undelivered.done():
                self._undelivered.set_result(0)
        else:
            self.post(DrainAsked())

    def _kept(self, task: asyncio.Task[None]) -> None:
        """Nobody would renew certificates any more: better to end, and be started anew."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._undelivered.done():
            self._undelivered.set_exception(error)

    async def _move_links(self) -> None:
        """To what is shown now, one after the other: the runner is never without contact."""
        for link in list(self._links.values()):
            await link.move()

    # Events in, effects out

    def post(self, event: Event) -> None:
        """Put an event through the core. Events that arise meanwhile come after it."""
        self._inbox.append(event)
        if self._stepping or self._core is None:
            return
        self._stepping = True
        try:
            while self._inbox:
                effects = self._core.step(self._inbox.popleft(), time.monotonic_ns())
                self._host.move_fence(self._core.fence_ns)  # before anything starts under it
                for effect in effects:
                    self._perform(effect)
        finally:
            self._stepping = False
        self._set_timer(self._core.next_deadline())

    def _set_timer(self, deadline_ns: int) -> None:
        if deadline_ns == self._timer_ns and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = deadline_ns
        delay_s = max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9)
        self._timer = self._loop.call_later(delay_s, self._woke)

    def _woke(self) -> None:
        self._timer = None
        self.post(RunnerWoke())

    def _perform(self, effect: Effect) -> None:  # noqa: C901, PLR0912  # one branch for each kind of effect
        match effect:
            case SendReports(address, results):
                self._links[address].send_results(results)
            case StartRuns(runs, offset_us):
                self._host.start(runs, offset_us)
            case SendGrants(address, grants):
                self._links[address].send_grants(grants)
            case SendDeclined(address, execution_ids):
                self._links[address].send_declined(execution_ids)
            case SendCall(address, _, request):
                self._links[address].send_call(request)
            case AnswerVerb(call, answer):
                self._host.answer(call, answer)
            case SendBeat():
                self._links[effect.address].send_beat(effect)
            case StopRuns(execution_ids, reason, message, grace_ms):
                self._host.stop(execution_ids, reason, message, grace_ms)
            case OpenLink(address):
                self._links[address] = Link(address, self._hello, self, self._trust.tls)
            case CloseLink(address):
                task = asyncio.create_task(self._links.pop(address).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
            case Finished(undelivered):
                if not self._undelivered.done():
                    self._undelivered.set_result(undelivered)
            case LogLine(level, event, values):
                self._log(level, event, values)
            case _:
                assert_never(effect)

    def _runs_ended(self, results: list[Report]) -> None:
        self.post(RunsEnded(results))

    def _verb_asked(self, _: Run, asked: Asked) -> None:
        call = CallId(asked.execution_id, asked.number)
        try:
            request = verb_call(asked).SerializeToString()
        except UnfitCallError as error:
            self._host.answer(call, unfit_answer(error))
        else:
            self.post(VerbAsked(call, request, asked.patience_ms))

    def _log(self, level: Level, event: str, values: Mapping[str, str | int | float | bool]) -> None:
        getattr(log, _LEVELS[level])(event, **values)

    # Followers

    def follow_asked(self, address: str, follow: runner_pb2.Follow) -> None:
        self._following.asked(address, follow)

    def followers_gone(self, address: str) -> None:
        self._following.disconnected(address)

    def _send_output(self, address: str, output: runner_pb2.Output, last: bool) -> bool:
        link = self._links.get(address)
        return link is not None and link.send_output(output, last=last)

    def _watch_ends(self, wanted: bool) -> None:
        self._host.on_end = self._following.ended if wanted else None

    # Registration

    def registered(self, controller_id: str, modules: list[runner_pb2.RegisteredModule]) -> None:
        """What a controller made of this runner's modules, in the order of Hello."""
        for hosted, registered in zip(self._modules, modules, strict=False):
            name = hosted.module.name
            if registered.problem or not registered.deployment:
                self._tell_of_refusal(name, registered.problem, controller_id)
                continue
            self._refused.pop(name, None)
            self._host.name_deployment(registered.deployment, hosted)
            if registered.active:
                log.info("module_registered", module=name, deployment=registered.deployment, controller=controller_id)
                self._tell_of_jobs(name, registered)
            self._stands(registered.deployment, active=registered.active)

    def standings_told(self, standings: Iterable[runner_pb2.Standing]) -> None:
        """By a controller: other versions have become the active ones, or these have again."""
        for standing in standings:
            if standing.deployment in self._active:
                self._stands(standing.deployment, active=standing.active)

    def _stands(self, deployment: str, *, active: bool) -> None:
        """A line for each change, though every controller tells of it, and at each connection again."""
        before, self._active[deployment] = self._active.get(deployment, True), active
        if active and not before:
            log.info("deployment_active", deployment=deployment)
        elif before and not active:
            log.warning(
                "deployment_inactive",
                deployment=deployment,
                remedy="another version of its module is active, or none, so nothing of this one is started. Stop this "
                "runner; or `cronring deploy FILE` makes this version the active one",
            )

    def _tell_of_refusal(self, module: str, problem: str, controller_id: str) -> None:
        """At each connection of three controllers, the same refusal would be told over and over."""
        if self._refused.get(module) != problem:
            self._refused[module] = problem
            log.error(
                "module_refused",
                module=module,
                problem=problem,
                controller=controller_id,
                remedy="mend the file (`cronring check FILE` shows where) or the grant, and start the runner again",
            )

    def _tell_of_jobs(self, module: str, registered: runner_pb2.RegisteredModule) -> None:
        """Of this start, where it was what made its version the active one."""
        jobs = {
            "added": registered.jobs_added, "removed": registered.jobs_removed,
            "orphaned": registered.jobs_orphaned, "back": registered.jobs_back,
        }  # fmt: skip
        if not any(jobs.values()):
            return
        first = ", ".join(registered.first_gone)
        log.info("module_deployed", module=module, deployment=registered.deployment, **jobs, first_gone=first)
        if registered.jobs_orphaned:
            orphaned = registered.jobs_orphaned
            log.warning("jobs_orphaned", module=module, deployment=registered.deployment, jobs=orphaned, first=first)
