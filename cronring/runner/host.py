"""All the runs in this runner's children: started, stopped at their deadlines, watched, and ended."""

import asyncio
import time
from collections.abc import Callable

from cronring.runner.children import Child, monotonic_us
from cronring.runner.core.deadlines import Deadlines
from cronring.runner.core.machine import STOP_GRACE_MS
from cronring.runner.core.model import CallAnswer, CallId, StopReason
from cronring.runner.held import Held, Stop
from cronring.runner.lines import Asked
from cronring.runner.pool import Pool
from cronring.runner.spawn import Program
from cronring.schema.duration import measured
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.log_line import Level
from cronring.schema.module import Module

TICK_S = 0.05
_INTERRUPT_NS = 200_000_000  # how long an async verb has to notice its cancellation before it is taken for blocking
_UNBLOCK_NS = 1_200_000_000  # how long a blocking one has in all
_LOG_BYTES_PER_SECOND = 16 * 1024
_LOGGED_MAX = 1_000

WriteLine = Callable[[Level, str, dict[str, str | int]], None]


class ModuleHost:
    """One module: its async children and its sync children."""

    def __init__(self, module: Module, program: Program, host: "Host", sync_children: int) -> None:
        self.module = module
        self._sync = {verb.name for verb in module.verbs if not verb.is_async}
        has_async = len(self._sync) < len(module.verbs)
        quota = any(verb.is_async and (verb.policy.memory_limit or verb.policy.cpu_limit) for verb in module.verbs)
        self._async_pool = Pool(program, "async", host, children_max=1_000, warm=1 if has_async else 0, alone=False)
        # Of async verbs, runs with limits: jobs have them that are made through the API, too.
        self._alone_pool = Pool(program, "async", host, children_max=sync_children, warm=1 if quota else 0, alone=True)
        warm = min(len(self._sync), sync_children)
        self._sync_pool = Pool(program, "sync", host, children_max=sync_children, warm=warm, alone=True)
        self.pools = [
            *([self._async_pool, self._alone_pool] if has_async else []),
            *([self._sync_pool] if self._sync else []),
        ]

    def start(self, batch: list[Held]) -> None:
        if self._sync:
            sync = [held for held in batch if held.run.verb in self._sync]
            if sync:
                self._sync_pool.start(sync)
                batch = [held for held in batch if held.run.verb not in self._sync]
        alone = [held for held in batch if held.run.memory_limit or held.run.cpu_limit_us]  # hot: not by `limited`
        if alone:
            self._alone_pool.start(alone)
            batch = [held for held in batch if not held.run.has_quota]
        if batch:
            self._async_pool.start(batch)


class Host:
    """`ended` is called with the results of runs, in batches; `log` with what is worth a line in the log.

    `asked` is called with what a verb of a run asks for: `answer` tells it what became of that.
    """

    def __init__(
        self,
        sync_children: int,
        ended: Callable[[list[Report]], None],
        log: WriteLine,
        asked: Callable[[Run, Asked], None],
    ) -> None:
        self._sync_children = sync_children
        self._ended = ended
        self._log = log
        self._asked = asked
        self._modules: list[ModuleHost] = []
        self._by_deployment: dict[str, ModuleHost] = {}
        self.held: dict[int, Held] = {}
        self.on_end: Callable[[Held], None] | None = None  # told of each run that is over, before its result is
        self._deadlines = Deadlines()
        self._stopping: dict[int, Held] = {}
        self._ticking = False
        self._loop = asyncio.get_running_loop()
        self._logged: dict[int, tuple[int, int]] = {}  # pid -> (second, bytes logged in it)
        self.offset_us = 0
        self.fence_ns = 0

    async def open(self, modules: list[tuple[Module, Program]]) -> list[ModuleHost]:
        """Start the children of all modules, and wait until each has one that is ready (or has failed)."""
        for module, program in modules:
            hosted = ModuleHost(module, program, self, self._sync_children)
            self._modules.append(hosted)
            for pool in hosted.pools:
                pool.open()
        for hosted in self._modules:
            for pool in hosted.pools:
                await pool.warm.wait()
        return self._modules

    async def close(self) -> None:
        """Kill all children and wait for their end."""
        for hosted in self._modules:
            for pool in hosted.pools:
                await pool.close()

    def move_fence(self, fence_ns: int) -> None:
        """There is contact until then (monotonic): children stop by themselves what may not run on without."""
        if fence_ns != self.fence_ns:
            self.fence_ns = fence_ns
            for hosted in self._modules:
                for pool in hosted.pools:
                    pool.move_fence(fence_ns)

    def name_deployment(self, deployment: str, hosted: ModuleHost) -> None:
        """A controller has registered that module under this key."""
        self._by_deployment[deployment] = hosted

    def start(self, runs: list[Run], offset_us: int) -> None:
        """Start runs; those of one module go to its children in one batch."""
        self.offset_us = offset_us
        batches: dict[str, list[Held]] = {}
        for run in runs:
            held = self.held[run.execution_id] = Held(run)
            self._deadlines.add(run.execution_id, (run.deadline_us - offset_us) * 1000)
            batches.setdefault(run.deployment, []).append(held)
        self._tick_soon()
        for deployment, batch in batches.items():
            hosted = self._by_deployment.get(deployment)
            if hosted is not None:
                hosted.start(batch)
            else:
                self._refuse(batch, f"this runner hosts no deployment {deployment!r}")

    def _refuse(self, batch: list[Held], message: str) -> None:
        now_us = monotonic_us() + self.offset_us
        self.runs_ended([h.result(Outcome.FAILED, now_us, now_us, "UnknownDeployment", message) for h in batch])

    def stop(self, execution_ids: tuple[int, ...], reason: StopReason, message: str, grace_ms: int) -> None:
        """Ask runs to stop; kill the child of one that has not after `grace_ms`."""
        for execution_id in execution_ids:
            held = self.held.get(execution_id)
            if held is not None:
                self._stop(held, reason, message, grace_ms)

    def _stop(self, held: Held, reason: StopReason, message: str, grace_ms: int) -> None:
        if held.child is not None and held.child.has_ended(held):
            return
        now_ns = time.monotonic_ns()
        grace_ns = grace_ms * 1_000_000
        if held.stop is not None:  # already on its way: only a shorter grace matters
            left_ns = min(held.stop.since_ns + held.stop.grace_ns, now_ns + grace_ns) - held.stop.since_ns
            held.stop.grace_ns = left_ns
            return
        held.stop = Stop(reason, message, grace_ns, now_ns)
        if held.child is None:
            for hosted in self._modules:
                for pool in hosted.pools:
                    pool.withdraw(held)
            now_us = now_ns // 1000 + self.offset_us
            self.runs_ended([held.stopped(now_us, now_us, "it was still waiting for a free child process")])
            return
        self._stopping[held.run.execution_id] = held
        if held.child.mode == "async":
            held.child.ask_to_stop(held)
        else:
            held.child.interrupt(held)

    # PoolOwner

    def runs_ended(self, results: list[Report]) -> None:
        for result in results:
            execution_id = result.execution_id
            held = self.held.pop(execution_id)
            if self.on_end is not None:
                self.on_end(held)
            self._deadlines.discard(execution_id)
            if self._stopping:
                self._stopping.pop(execution_id, None)
        if results:
            self._ended(results)

    def child_asked(self, child: Child, asked: Asked) -> None:
        """A task or thread that outlived its run asks in vain, and nobody waits for an answer."""
        held = self.held.get(asked.execution_id)
        if held is not None and held.child is child:
            self._asked(held.run, asked)

    def answer(self, call: CallId, answer: CallAnswer) -> None:
        """Nobody hears it if the run is over."""
        held = self.held.get(call.execution_id)
        if held is not None and held.child is not None:
            held.child.answer(call, answer)

    def child_printed(self, child: Child, text: str) -> None:
        """Output of no execution goes to the runner's log, at most 16 KiB a second from one child."""
        second = int(time.monotonic())
        seen, logged = self._logged.get(child.pid, (second, 0))
        logged = logged if seen == second else 0
        room = _LOG_BYTES_PER_SECOND - logged
        if len(self._logged) >= _LOGGED_MAX:  # of children that are gone
            self._logged = {pid: told for pid, told in self._logged.items() if told[0] == second}
        self._logged[child.pid] = (second, logged + len(text))
        if room > 0:
            self.log(Level.INFO, "child_printed", pid=child.pid, text=text[:room].rstrip("\n"))
            if len(text) > room:
                self.log(Level.WARNING, "child_output_dropped", pid=child.pid)

    def log(self, level: Level, event: str, **values: str | int) -> None:
        self._log(level, event, values)

    # The tick: only while something runs

    def _tick_soon(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        now_ns = time.monotonic_ns()
        for execution_id in self._deadlines.due(now_ns):
            held = self.held[execution_id]
            limit = measured((held.run.deadline_us - held.run.claimed_at_us) / 1_000)
            self._stop(held, StopReason.TIMED_OUT, f"it ran into its timeout of {limit}", STOP_GRACE_MS)
        for held in list(self._stopping.values()):
            self._press(held, now_ns)
        watched = False
        for hosted in self._modules:
            for pool in hosted.pools:
                pool.watch(now_ns)
                watched = watched or pool.busy
        if self.held or watched:
            self._tick_soon()

    def _press(self, held: Held, now_ns: int) -> None:
        """A run has been asked to stop and has not ended yet."""
        stop, child = held.stop, held.child
        assert stop is not None
        if child is None:  # handed back by a blocked child: it must not begin elsewhere
            return
        age_ns = now_ns - stop.since_ns
        job = f"{held.run.job} (execution {held.run.execution_id})"
        if age_ns >= stop.grace_ns:
            child.kill(f"{job} did not stop within {measured(stop.grace_ns / 1e6)} of being asked to", held)
        elif child.mode == "sync":
            child.interrupt(held)
        elif age_ns >= _INTERRUPT_NS and child.is_current(held):
            if age_ns >= _UNBLOCK_NS and child.progress()[1] == stop.steps:
                child.kill(f"{job} blocked the event loop past its end", held)
            else:
                stop.steps = child.progress()[1]
                child.interrupt(held)
