"""Runs in this very process: a verb's code runs to its end when its run begins, and the run ends when that lasted.

A run lasts as long as its code slept on its event loop, or as long as its duration says. Code that computes takes no
virtual time. What a run uses is not measured: it goes over its limits where the test says so.
"""

from collections.abc import Callable

from cronring.runner.core.model import StopReason
from cronring.runner.held import Held, Stop
from cronring.runner.quota import Excess, cpu_excess, memory_excess
from cronring.schema.duration import measured
from cronring.schema.execution import Outcome, Report, Run
from cronring.virtual.asking import AnswerVerb
from cronring.virtual.calling import Caller, VerbEnded
from cronring.virtual.clock import Timer
from cronring.virtual.loading import VerbsHere
from cronring.virtual.times import VirtualTime

_FOREVER_US = 1 << 60


class _Running:
    __slots__ = ("ended", "run", "started_us", "timer")

    def __init__(self, run: Run, started_us: int, ended: Callable[[list[Report]], None]) -> None:
        self.run = run
        self.started_us = started_us
        self.ended = ended
        self.timer: Timer | None = None


class RunsHere:
    """`durations_us` by verb: how long a run lasts, whatever its code does."""

    def __init__(self) -> None:
        self.durations_us: dict[str, int] = {}
        self.exceeded: dict[str, str] = {}  # by verb: the limit that its runs go over, if they have it
        self._caller = Caller()
        self._verbs: dict[str, VerbsHere] = {}
        self._time: VirtualTime | None = None
        self._answer: AnswerVerb | None = None
        self._running: dict[int, _Running] = {}

    def attach(self, time: VirtualTime, answer: AnswerVerb) -> None:
        self._time, self._answer = time, answer

    def host(self, deployment: str, verbs: VerbsHere) -> None:
        """What is called for the deployment of that key."""
        self._verbs[deployment] = verbs

    def close(self) -> None:
        self._caller.close()

    def begin(self, runs: list[Run], ended: Callable[[list[Report]], None]) -> None:
        for run in runs:
            self._begin(run, ended)

    def _begin(self, run: Run, ended: Callable[[list[Report]], None]) -> None:
        time = self._time
        assert time is not None, "attach() comes first"
        assert self._answer is not None, "attach() comes first"
        verbs, now_us = self._verbs[run.deployment], time.now_us
        limit_us = max(0, run.deadline_us - now_us)
        fixed_us = self.durations_us.get(run.verb)
        end = self._caller.call(verbs.prepare(run, now_us, self._answer), limit_us if fixed_us is None else _FOREVER_US)
        took_us = end.took_us if fixed_us is None else fixed_us
        running = self._running[run.execution_id] = _Running(run, now_us, ended)
        next_in_ms, metrics = verbs.told(run.execution_id)
        result = self._result(run, end, now_us, took_us, next_in_ms)._replace(stack=end.told[2], metrics=metrics)
        if took_us == 0:
            self._end(run.execution_id, result)
        else:
            running.timer = time.call_at(result.ended_at, lambda: self._end(run.execution_id, result))

    def _result(self, run: Run, end: VerbEnded, started_us: int, took_us: int, next_in_ms: int) -> Report:
        held = Held(run)
        held.write(end.output)
        error_type, message, _ = end.told
        deadline_us = max(run.deadline_us, started_us)
        if end.timed_out or started_us + took_us > deadline_us:
            limit = measured((run.deadline_us - run.claimed_at_us) / 1_000)
            held.stop = Stop(StopReason.TIMED_OUT, f"it ran into its timeout of {limit}", 0, 0)
            at_us = started_us + took_us if end.timed_out else deadline_us
            return held.stopped(started_us, at_us, message, "" if end.timed_out else error_type, next_in_ms)
        excess = self._excess(run)
        if excess is not None:
            return held.exceeded(excess, started_us, started_us + took_us)
        outcome = Outcome.COMPLETED if end.error is None else Outcome.FAILED
        return held.result(outcome, started_us, started_us + took_us, error_type, message, next_in_ms)

    def _excess(self, run: Run) -> Excess | None:
        match self.exceeded.get(run.verb):
            case "memory_limit" if run.memory_limit:
                return memory_excess(run, run.memory_limit + 1, 1)
            case "cpu_limit" if run.cpu_limit_us:
                return cpu_excess(run)
            case _:
                return None

    def _end(self, execution_id: int, result: Report) -> None:
        running = self._running.pop(execution_id, None)
        if running is not None:
            running.ended([result])

    def stop(self, execution_ids: tuple[int, ...], reason: StopReason, message: str) -> None:
        """At once: the code has run already."""
        assert self._time is not None, "attach() comes first"
        for execution_id in execution_ids:
            running = self._running.get(execution_id)
            if running is None:
                continue
            if running.timer is not None:
                running.timer.cancel()
            held = Held(running.run)
            held.stop = Stop(reason, message, 0, 0)
            self._end(execution_id, held.stopped(running.started_us, self._time.now_us))

    def kill(self) -> None:
        for running in self._running.values():
            if running.timer is not None:
                running.timer.cancel()
        self._running.clear()

    def horizon_us(self) -> int | None:
        return None
