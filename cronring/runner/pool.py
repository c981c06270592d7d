"""The children of one module in one mode: who runs what, and who takes over.

Async verbs share a child; a spare one, loaded and idle, takes its place at once when it dies or blocks. A verb that
crashed or blocked a shared child has a lane of its own from then on. Sync verbs get one of up to N children each.
"""

import asyncio
import time
from collections import deque
from typing import Protocol

from cronring.runner.children import Child, monotonic_us
from cronring.runner.held import Held, Usage
from cronring.runner.lines import Asked, Row
from cronring.runner.quota import Unfit, meter_for, refused_memory
from cronring.runner.settle import ended_well, settle
from cronring.runner.spawn import Program
from cronring.runner.tail import clean
from cronring.schema.execution import Outcome, Report
from cronring.schema.log_line import Level

_RECALL_NS = 100_000_000  # see cronring.child.board
_ISOLATED_MAX = 16  # on mere suspicion: each is a process
_BACKOFF_S = 0.2
_BACKOFF_MAX_S = 5.0


class PoolOwner(Protocol):
    """Who is told of results, and of what is worth a line in the log."""

    @property
    def offset_us(self) -> int: ...
    @property
    def fence_ns(self) -> int: ...
    def runs_ended(self, results: list[Report]) -> None: ...
    def child_asked(self, child: Child, asked: Asked) -> None: ...
    def child_printed(self, child: Child, text: str) -> None: ...
    def log(self, level: Level, event: str, **values: str | int) -> None: ...


class ChildLane:
    """Children that serve the same runs, and the runs that wait for one of them."""

    def __init__(self, children_max: int) -> None:
        self.children: list[Child] = []
        self.waiting: deque[Held] = deque()
        self.children_max = children_max
        self.failures = 0
        self.resting = False  # after a start that failed
        self._ranked = False  # something that waits has a priority

    def enqueue(self, batch: list[Held]) -> None:
        """They wait, by priority: without any in the order in which they came."""
        self._ranked = any(held.run.priority for held in batch) or (self._ranked and bool(self.waiting))
        self.waiting.extend(batch)
        if self._ranked:
            self.waiting = deque(sorted(self.waiting, key=_rank_us))


class Pool:
    """`children_max`: how many children there may be. `warm`: how many to start at once.

    `alone`: each of them runs one verb at a time, as children for sync verbs always do.
    """

    def __init__(
        self, program: Program, mode: str, owner: PoolOwner, *, children_max: int, warm: int, alone: bool
    ) -> None:
        self._program = program
        self._mode = mode
        self._alone = alone
        self._owner = owner
        self._warm = warm
        self._shared = ChildLane(children_max)
        self._isolated: dict[str, ChildLane] = {}
        self._lane_of: dict[Child, ChildLane] = {}
        self._suspects: set[str] = set()
        self._spare: Child | None = None
        self._leaving: dict[Child, int] = {}  # blocked children: since when (monotonic ns)
        self._children: set[Child] = set()
        self._limited: dict[Child, Held] = {}  # what runs under limits
        self._told_unmeasured = False
        self._loop = asyncio.get_running_loop()
        self._closing = False
        self.warm = asyncio.Event()  # the first child is ready, or has failed to be

    def open(self) -> None:
        """Start the warm children."""
        for _ in range(self._warm):
            self._add_child(self._shared)
        self._keep_spare()
        if not self._warm:
            self.warm.set()

    async def close(self) -> None:
        """Kill what there is, and wait for it."""
        self._closing = True
        children = list(self._children)
        for child in children:
            child.kill("the runner stops", None)
        for child in children:
            await child.exited.wait()

    def move_fence(self, fence_ns: int) -> None:
        for child in self._children:
            child.move_fence(fence_ns)

    @property
    def busy(self) -> bool:
        """There is something to watch."""
        return bool(self._leaving or self._limited)

    def start(self, batch: list[Held]) -> None:
        """Run these, each as soon as a child has room."""
        if not self._isolated:
            self._shared.enqueue(batch)
            self._pump(self._shared)
            return
        by_lane: dict[int, tuple[ChildLane, list[Held]]] = {}
        for held in batch:
            lane = self._isolated.get(held.run.verb, self._shared)
            by_lane.setdefault(id(lane), (lane, []))[1].append(held)
        for lane, its_own in by_lane.values():
            lane.enqueue(its_own)
            self._pump(lane)

    def _start_again(self, batch: list[Held]) -> None:
        """Run these in another child: they had not begun. One that was asked to stop meanwhile never will."""
        now_us = monotonic_us() + self._owner.offset_us
        stopped = [held.stopped(now_us, now_us, "it had not begun") for held in batch if held.stop is not None]
        self._owner.runs_ended(stopped)
        self.start([held for held in batch if held.stop is None])

    def withdraw(self, held: Held) -> bool:
        """Take back a run that waits for a child; False if it doesn't wait here."""
        for lane in (self._shared, *self._isolated.values()):
            if held in lane.waiting:
                lane.waiting.remove(held)
                return True
        return False

    def watch(self, now_ns: int) -> None:
        """20 times a second while anything runs: kill what is over its limits, or stands still; notice blocked loops,
        and move on what waits behind them.
        """
        for child, held in list(self._limited.items()):
            self._measure(child, held)
        for child in list(self._children):
            if child.held and not child.kill_reason and child.standstill.observe(child.pid, now_ns):
                child.stood_still = True
                child.kill("somebody stopped it (SIGSTOP), and did not let it go on for 3 s", None)
        if not self._alone:
            for child in list(self._shared.children):
                if child.ready and child.held and child.suspicion.observe(child.progress(), child.pid, now_ns):
                    self._set_aside(child, now_ns)
        for child, since_ns in list(self._leaving.items()):
            if now_ns - since_ns >= _RECALL_NS:
                self._move_on(child)

    # Runs with limits

    def _measure(self, child: Child, held: Held) -> None:
        if child.meter is None or held.excess is not None:
            return
        held.excess = child.meter.look()
        if held.excess is not None:
            child.kill(held.excess.message, held)

    def _start_limited(self, child: Child, lane: ChildLane) -> None:
        """The first that waits is to have this child to itself; another one if runs before have worn this one out."""
        held = lane.waiting.popleft()
        if not child.bare_bytes and not self._told_unmeasured:
            self._told_unmeasured = True
            self._owner.log(
                Level.WARNING, "limits_not_enforced", job=held.run.job, remedy="run it on Linux, with /proc"
            )
        meter = meter_for(held.run, child.pid, child.bare_bytes if child.used else 0)
        if not isinstance(meter, Unfit):
            child.meter = meter
            self._limited[child] = held
            child.start([held], self._owner.offset_us)
        elif meter.excess is not None:
            now_us = monotonic_us() + self._owner.offset_us
            self._owner.runs_ended([held.exceeded(meter.excess, now_us, now_us)])
        else:
            lane.waiting.appendleft(held)
            lane.children.remove(child)
            del self._lane_of[child]
            child.kill("a run with a memory_limit or cpu_limit needs a fresh one", None)

    def _settle_usage(self, child: Child, usage: Usage) -> Usage:
        """Of a run with limits: with what its processes used that the child doesn't know of."""
        self._limited.pop(child, None)
        meter, child.meter = child.meter, None
        if meter is None:
            return usage
        meter.look()
        cpu_us, peak_bytes, _ = usage
        return max(cpu_us or 0, meter.cpu_us), max(peak_bytes or 0, meter.peak_bytes) or None, False

    # Lanes

    def _pump(self, lane: ChildLane) -> None:
        if lane.waiting and 0 < self._owner.fence_ns <= time.monotonic_ns():
            self._refuse_waiting(lane)
        waiting = lane.waiting
        for child in tuple(lane.children):
            while waiting and child.ready and (room := child.room):
                if self._alone and waiting[0].run.has_quota:
                    self._start_limited(child, lane)
                else:
                    count = min(room, len(waiting))
                    child.start([waiting.popleft() for _ in range(count)], self._owner.offset_us)
            if not waiting:
                return
        if waiting and not lane.resting:
            starting = sum(not child.ready for child in lane.children)
            wanted = len(waiting) if self._alone else 1
            for _ in range(min(wanted - starting, lane.children_max - len(lane.children))):
                self._add_child(lane)

    def _refuse_waiting(self, lane: ChildLane) -> None:
        """Past the fence nothing begins. The core knows; but after a standstill, children's ends may come before it."""
        late = [held for held in lane.waiting if not held.run.finish]
        lane.waiting = deque(held for held in lane.waiting if held.run.finish)
        now_us = monotonic_us() + self._owner.offset_us
        for held in late:
            if held.stop is None:
                held.fence()
        self._owner.runs_ended([held.stopped(now_us, now_us, "it had not begun") for held in late])

    def _add_child(self, lane: ChildLane) -> None:
        """The spare if there is one, else a new child."""
        child = self._spare
        if child is not None:
            self._spare = None
            self._loop.call_soon(self._keep_spare)
        else:
            child = self._spawn()
        if child is None:
            self._start_failed(lane, "ChildStartFailed", f"{self._program.python} can't be started")
            return
        lane.children.append(child)
        self._lane_of[child] = lane
        if child.ready:
            self._loop.call_soon(self._pump, lane)

    def _spawn(self) -> Child | None:
        if self._closing:
            return None
        try:
            child = Child(self._program, self._mode, self, alone=self._alone)
        except OSError as error:
            self._owner.log(Level.WARNING, "child_not_started", python=self._program.python, error=str(error))
            return None
        child.move_fence(self._owner.fence_ns)
        self._children.add(child)
        return child

    def _keep_spare(self) -> None:
        if not self._alone and self._spare is None and not self._closing:
            self._spare = self._spawn()

    def _start_failed(self, lane: ChildLane, error_type: str, message: str) -> None:
        """Nothing that waits can run: say so, and try again after a while."""
        self.warm.set()
        if self._closing:
            return
        lane.failures += 1
        lane.resting = True
        pause_s = min(_BACKOFF_S * 2 ** (lane.failures - 1), _BACKOFF_MAX_S)
        self._loop.call_later(pause_s, self._try_again, lane)
        self._owner.log(Level.WARNING, "child_start_failed", file=str(self._program.file), error=message[:2000])
        results = []
        while lane.waiting:
            held = lane.waiting.popleft()
            now_us = monotonic_us() + self._owner.offset_us
            text = f"no child process could be started for it ({error_type}):\n{message}"
            results.append(held.result(Outcome.FAILED, now_us, now_us, "ChildStartFailed", text))
        if results:
            self._owner.runs_ended(results)

    def _try_again(self, lane: ChildLane) -> None:
        lane.resting = False
        if not self._closing:
            if not lane.children:
                self._add_child(lane)
            self._pump(lane)

    # Verbs that do harm

    def _isolate(self, culprit: Held | None) -> None:
        """From now on, until the next deployment, this verb runs in a child of its own."""
        if culprit is None or self._alone or culprit.run.verb in self._isolated:
            return
        verb = culprit.run.verb
        self._isolated[verb] = lane = ChildLane(1)
        self._owner.log(Level.WARNING, "verb_isolated", verb=verb, file=str(self._program.file))
        others: deque[Held] = deque()
        for held in self._shared.waiting:
            (lane.waiting if held.run.verb == verb else others).append(held)
        self._shared.waiting = others

    def _suspect(self, held: Held) -> None:
        """A thread or callback brought a child down, and nobody knows whose.

        Who was there twice gets a child of its own: the innocent lose nothing, and the culprit is known from then on.
        """
        verb = held.run.verb
        if verb not in self._suspects:
            self._suspects.add(verb)
        elif len(self._isolated) < _ISOLATED_MAX:
            self._isolate(held)

    def _set_aside(self, child: Child, now_ns: int) -> None:
        """Its loop is blocked: another takes over, and what has not begun is asked back."""
        child.recall_waiting()
        child.dump_stack()
        self._leaving[child] = now_ns
        lane = self._lane_of.pop(child)
        lane.children.remove(child)
        self._isolate(child.current())
        self._add_child(lane)

    def _move_on(self, child: Child) -> None:
        recalled = child.recalled()
        for held in recalled:
            child.give_up(held)
        self._start_again(recalled)
        self._rescue(child)
        culprit = child.current()
        if not child.suspicion.told:
            child.suspicion.told = True
            self._owner.log(
                Level.WARNING,
                "event_loop_blocked",
                job=culprit.run.job if culprit else "unknown",
                execution=culprit.run.execution_id if culprit else 0,
                moved=len(recalled),
                remedy="move blocking work to asyncio.to_thread, or declare the verb with def",
                stack=child.last_words().rpartition("Current thread")[2],
            )
        if not child.held:
            del self._leaving[child]
            child.retire()

    def _rescue(self, child: Child) -> None:
        """Results that are stuck behind a blocked loop: the board tells that these ended well."""
        offset_us = self._owner.offset_us
        now_us = monotonic_us() + offset_us
        results = []
        for held in child.completed():
            child.give_up(held)
            results.append(ended_well(child, held, offset_us, now_us))
        self._owner.runs_ended(results)

    # What children say (ChildListener)

    def child_ready(self, child: Child) -> None:
        self.warm.set()
        lane = self._lane_of.get(child)
        if lane is not None:
            lane.failures = 0
            self._pump(lane)

    def child_failed(self, child: Child, error_type: str, message: str) -> None:
        child.kill_reason = f"{error_type}: {message}"

    def child_done(self, child: Child, rows: list[Row], peak_bytes: int) -> None:
        offset_us = self._owner.offset_us
        shared, fenced = not self._alone, child.fenced
        results = []
        for row in rows:
            held = child.release(row.execution_id)
            if held is not None:
                if fenced and held.stop is None and row.told is not None and row.told.outcome == "stopped":
                    held.fence()
                usage: Usage = (row.cpu_us, peak_bytes or None, shared)
                if child in self._limited:
                    usage = self._settle_usage(child, usage)
                results.append(result_of(held, row, offset_us, usage))
        self._owner.runs_ended(results)
        lane = self._lane_of.get(child)
        if lane is not None and lane.waiting:
            self._pump(lane)

    def child_handed_back(self, child: Child, execution_ids: list[int]) -> None:
        back = [held for held in map(child.release, execution_ids) if held is not None]
        self._start_again(back)

    def child_asked(self, child: Child, asked: Asked) -> None:
        self._owner.child_asked(child, asked)

    def child_printed(self, child: Child, text: str) -> None:
        self._owner.child_printed(child, text)

    def child_exited(self, child: Child, code: int) -> None:
        self._children.discard(child)
        self._leaving.pop(child, None)
        self._limited.pop(child, None)
        lane = self._lane_of.pop(child, None)
        if child is self._spare:
            self._spare = None
            if not child.ready:  # the shared lane's own child will tell why; don't spin
                self._loop.call_later(_BACKOFF_MAX_S, self._keep_spare)
                return
            self._keep_spare()
        if lane is not None:
            lane.children.remove(child)
        if not child.ready:
            if lane is not None:
                message = child.kill_reason or f"exit code {code}\n{child.last_words()}"
                self._start_failed(lane, "ChildStartFailed", message)
            return
        self._bury(child, code, lane)

    def _bury(self, child: Child, code: int, lane: ChildLane | None) -> None:
        settlement = settle(child, code, self._owner.offset_us)
        if settlement.results:
            culprit = settlement.culprit
            self._owner.log(
                Level.WARNING,
                "child_died",
                pid=child.pid,
                code=code,
                culprit=culprit.run.job if culprit else "unknown",
                runs=len(settlement.results),
                why=child.kill_reason,
            )
            self._isolate(culprit)
            for held in settlement.suspects:
                self._suspect(held)
        self._owner.runs_ended(settlement.results)
        if lane is not None and not self._closing and not lane.children:
            self._add_child(lane)
        self.start(settlement.again)
        if lane is not None:
            self._pump(lane)


def _rank_us(held: Held) -> int:
    return held.run.rank_us


def result_of(held: Held, row: Row, offset_us: int, usage: Usage) -> Report:
    started_us, ended_us, told = row.started_us + offset_us, row.ended_us + offset_us, row.told
    if told is None:
        return held.result(Outcome.COMPLETED, started_us, ended_us, usage=usage)
    if told.outcome == "completed":
        result = held.result(Outcome.COMPLETED, started_us, ended_us, next_in_ms=told.next_in_ms, usage=usage)
        return result._replace(metrics=told.metrics)
    if told.outcome == "stopped" and held.stop is not None:
        result = held.stopped(started_us, ended_us, told.message, told.error_type, told.next_in_ms)
    elif held.run.memory_limit and "MemoryError" in (told.error_type, *told.bases):
        result = held.exceeded(refused_memory(held.run, told.message), started_us, ended_us)
    else:
        error_type = told.error_type or "VerbStopped"
        result = held.result(Outcome.FAILED, started_us, ended_us, error_type, told.message, told.next_in_ms)
        result = result._replace(error_bases=tuple(map(clean, told.bases)))
    cpu_us, peak, shared = usage
    return result._replace(
        stack=clean(told.stack), metrics=told.metrics, cpu_us=cpu_us, memory_peak_bytes=peak, memory_shared=shared
    )
