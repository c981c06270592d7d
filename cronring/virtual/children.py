"""Runs in real child processes, in virtual time: through the runner's own host, pools and children.

A run lasts as long in virtual time as it really does. So while one is under way virtual time goes no faster than real
time, and one offset between the two holds for all of them. A verb with a duration of its own lasts that long instead:
its code runs at once, and virtual time may go on up to its end. There it waits for the code, but only for some real
seconds: then the code is stopped, and the run ends as completed all the same.
"""

import asyncio
from collections.abc import Callable, Mapping

from cronring.runner.children import monotonic_us
from cronring.runner.core.machine import STOP_GRACE_MS
from cronring.runner.core.model import CallId, StopReason
from cronring.runner.held import Held, Stop
from cronring.runner.host import Host, WriteLine
from cronring.runner.lines import Asked
from cronring.runner.modules import LoadedModule
from cronring.schema.duration import measured
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.log_line import Level
from cronring.virtual.asking import AnswerVerb
from cronring.virtual.clock import Timer
from cronring.virtual.times import VirtualTime

PATIENCE_S = 5.0  # real seconds for the code of a run that has a duration
_AWAY = "the virtual runner is away"
_STOPPED = "the code of a run with a duration took too long"


class _Running:
    """`began_us`: by the real monotonic clock. `end_us`: where a run with a duration ends; None for others.

    `given_up`: its code is stopped before its end.
    """

    __slots__ = ("began_us", "end_us", "ended", "given_up", "run", "started_us", "timer")

    def __init__(self, run: Run, started_us: int, ended: Callable[[list[Report]], None]) -> None:
        self.run = run
        self.started_us = started_us
        self.began_us = monotonic_us()
        self.ended = ended
        self.end_us: int | None = None
        self.given_up = False
        self.timer: Timer | None = None


class RunsInChildren:
    """`durations_us` by verb. `arrived` is set whenever a result has come, for whoever drives the engine."""

    def __init__(self, sync_children: int, durations_us: Mapping[str, int], log: WriteLine) -> None:
        self.arrived = asyncio.Event()
        self._durations_us = durations_us
        self._host = Host(sync_children, self._come, log, self._verb_asked)
        self._log = log
        self._time: VirtualTime | None = None
        self._answer: AnswerVerb | None = None
        self._offset_us = 0  # PostgreSQL's virtual time minus the real monotonic one, while `_free` isn't empty
        self._running: dict[int, _Running] = {}
        self._free: dict[int, None] = {}  # runs under way that last as long as they do
        self._awaited: dict[int, int] = {}  # runs with a duration whose code is under way: their ends

    async def open(self, modules: list[tuple[str, LoadedModule]]) -> None:
        """Start children for these deployments, by their keys."""
        hosted = await self._host.open([(loaded.module, loaded.program) for _, loaded in modules])
        for (deployment, _), host in zip(modules, hosted, strict=True):
            self._host.name_deployment(deployment, host)

    async def close(self) -> None:
        """Kill all children."""
        await self._host.close()

    @property
    def busy(self) -> bool:
        """Code is under way."""
        return bool(self._free or self._awaited)

    @property
    def longest(self) -> tuple[str, float]:
        """Of the runs whose code is under way: the verb of the first, and real seconds since; ("", 0) for none."""
        first = min((each for ids in (self._free, self._awaited) for each in ids), default=None)
        if first is None:
            return "", 0.0
        running = self._running[first]
        return running.run.verb, (monotonic_us() - running.began_us) / 1e6

    @property
    def last_end_us(self) -> int | None:
        """When the last of the runs ends whose code is done, durations aside; None: all such have ended."""
        timers = [running.timer for running in self._running.values() if running.end_us is None]
        return max((timer.at_ns // 1_000 for timer in timers if timer is not None), default=None)

    def attach(self, time: VirtualTime, answer: AnswerVerb) -> None:
        self._time, self._answer = time, answer

    def begin(self, runs: list[Run], ended: Callable[[list[Report]], None]) -> None:
        now_us = self._now_us()
        if not self._free:
            self._offset_us = now_us - monotonic_us()
        for run in runs:
            running = self._running[run.execution_id] = _Running(run, now_us, ended)
            duration_us = self._durations_us.get(run.verb)
            if duration_us is None:
                self._free[run.execution_id] = None
            else:
                self._awaited[run.execution_id] = running.end_us = min(now_us + duration_us, run.deadline_us)
                asyncio.get_running_loop().call_later(PATIENCE_S, self._give_up, running)
        self._host.start(runs, self._offset_us)

    def stop(self, execution_ids: tuple[int, ...], reason: StopReason, message: str) -> None:
        """Code under way is stopped as on any runner. What has a duration ends now, whatever its code does."""
        for execution_id in execution_ids:
            running = self._running.get(execution_id)
            if running is None:
                continue
            if running.end_us is not None:
                held = Held(running.run)
                held.stop = Stop(reason, message, 0, 0)
                self._end(running, held.stopped(running.started_us, self._now_us()))
            self._host.stop((execution_id,), reason, message, STOP_GRACE_MS)

    def kill(self) -> None:
        """The runner is away: its runs are stopped, and nobody hears of their ends."""
        for execution_id, running in list(self._running.items()):
            self._drop(running)
            self._host.stop((execution_id,), StopReason.CANCELLED, _AWAY, STOP_GRACE_MS)

    def horizon_us(self) -> int | None:
        limits = list(self._awaited.values())
        if self._free:
            limits.append(monotonic_us() + self._offset_us)
        return min(limits, default=None)

    def _give_up(self, running: _Running) -> None:
        execution_id = running.run.execution_id
        if self._running.get(execution_id) is running and execution_id in self._awaited:
            running.given_up = True
            self._log(Level.WARNING, "code_stopped", {"job": running.run.job, "after_ms": int(PATIENCE_S * 1_000)})
            self._host.stop((execution_id,), StopReason.CANCELLED, _STOPPED, STOP_GRACE_MS)

    # What the host says

    def _verb_asked(self, _: Run, asked: Asked) -> None:
        assert self._answer is not None, "attach() comes first"
        self._host.answer(CallId(asked.execution_id, asked.number), self._answer(asked))

    def _come(self, results: list[Report]) -> None:
        for result in results:
            running = self._running.get(result.execution_id)
            self._free.pop(result.execution_id, None)
            self._awaited.pop(result.execution_id, None)
            if running is not None:
                self._schedule_end(running, result)
        self.arrived.set()

    def _schedule_end(self, running: _Running, result: Report) -> None:
        assert self._time is not None, "attach() comes first"
        if running.end_us is not None:
            if running.given_up:
                result = result._replace(outcome=Outcome.COMPLETED, error_type="", error_message="")
            result = _lasting(running.run, result, running.started_us, running.end_us)
        running.timer = self._time.call_at(result.ended_at, lambda: self._end(running, result))

    def _end(self, running: _Running, result: Report) -> None:
        self._drop(running)
        running.ended([result])

    def _drop(self, running: _Running) -> None:
        execution_id = running.run.execution_id
        del self._running[execution_id]
        self._free.pop(execution_id, None)
        self._awaited.pop(execution_id, None)
        if running.timer is not None:
            running.timer.cancel()

    def _now_us(self) -> int:
        assert self._time is not None, "attach() comes first"
        return self._time.now_us


def _lasting(run: Run, result: Report, started_us: int, end_us: int) -> Report:
    """What became of a run that lasts until `end_us`, and not as long as its code took."""
    result = result._replace(started_at=started_us, ended_at=max(end_us, started_us))
    if end_us < run.deadline_us or result.outcome is Outcome.TIMED_OUT:
        return result
    limit = measured((run.deadline_us - run.claimed_at_us) / 1_000)
    return result._replace(
        outcome=Outcome.TIMED_OUT,
        error_type=StopReason.TIMED_OUT.error_type,
        error_message=f"it ran into its timeout of {limit}",
    )
