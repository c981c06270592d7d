"""A runner: a real RunnerCore, in a simulated process, with runs that only take time."""

import random
from typing import TYPE_CHECKING, Any

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node.events import ReportsReceived, RunnerBeat, RunsDeclined
from cronring.controller.core.runs import run_of
from cronring.runner.core import effects, events
from cronring.runner.core.machine import RunnerCore
from cronring.runner.core.model import StopReason
from cronring.schema.execution import Outcome, Report, Run
from cronring.virtual.clock import MS, Timer
from tests.simulation.courses import Course
from tests.simulation.process import Process
from tests.simulation.streams import End, Stream

if TYPE_CHECKING:
    from tests.simulation.world import World

CUT_OFF = Course(0, StopReason.DISCONNECTED.outcome, StopReason.DISCONNECTED.error_type)
TIMED_OUT = Course(0, StopReason.TIMED_OUT.outcome, StopReason.TIMED_OUT.error_type)
CRASHED = Course(0, Outcome.FAILED, "ChildCrashed")
CHILDREN_FENCE_NS = 350 * MS  # after the fence: by then children have stopped by themselves what may not go on unseen


class Running:
    """A run in a child. Timers: its own end, and what may come before that."""

    __slots__ = ("course", "left_ns", "run", "started_us", "stops_ns", "timers")

    def __init__(self, run: Run, started_us: int, course: Course) -> None:
        self.course = course
        self.left_ns: int | None = None  # of its course, while its child stands still
        self.run = run
        self.started_us = started_us
        self.stops_ns: int | None = None  # it was asked to stop, and will have by then
        self.timers: list[Timer] = []

    def cancel_timers(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()


class Runner(Process):
    """Performs a runner core's effects."""

    def __init__(
        self, world: "World", runner_id: str, deployments: tuple[str, ...], rng: random.Random, drift_ppm: int
    ) -> None:
        super().__init__(world.clock, runner_id, drift_ppm, events.RunnerWoke())
        self.world = world
        self.rng = rng
        self.info = RunnerInfo(runner_id, "host", 1, "simulated", deployments)
        self.draining = False
        self._wanted: dict[str, None] = {}
        self._links: dict[str, Stream] = {}
        self._runs: dict[int, Running] = {}
        self._timed_out: list[Running] = []  # while this process was stopped
        self.places: int | None = None  # how many children there may be; None: as many as are wanted
        self._queue: dict[int, tuple[Run, Timer]] = {}  # waits for a child, until its deadline
        self.lied_about: dict[int, None] = {}  # of its own executions
        self._children_fence: Timer | None = None
        self._children_fence_ns = 0
        self.fenced_us = 0  # when it was last seen to be, in PostgreSQL's time
        self.core = RunnerCore(world.pace.runner, world.addresses[:1], rng.randrange(10), self.local_ns())
        self.machine = self.core

    def start(self) -> None:
        self.put(events.RunnerWoke())

    def drain(self) -> None:
        """SIGTERM."""
        self.draining = True
        self.put(events.DrainAsked())

    def kill(self) -> None:
        """Its children die with it."""
        super().kill()
        for stream in self._links.values():
            stream.close(self.name)
        for running in self._runs.values():
            running.cancel_timers()
            self.world.journal.ended(running.run, None)
        self._runs.clear()
        for _, deadline in self._queue.values():
            deadline.cancel()
        self._queue.clear()

    def perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.OpenLink() | effects.CloseLink() | effects.SendBeat() | effects.SendReports():
                self._perform_on_link(effect)
            case effects.SendDeclined(address, execution_ids):
                self._send(address, RunsDeclined(self.name, execution_ids))
            case effects.StartRuns(runs):
                for run in runs:
                    self._take_place(run)
            case effects.StopRuns(execution_ids, reason, _, grace_ms):
                for execution_id in execution_ids:
                    self._stop_run(execution_id, reason, grace_ms)
            case effects.Finished(undelivered):
                self.world.log(f"{self.name} is drained, undelivered {undelivered}")
                self.kill()
            case effects.LogLine():
                self.world.log(f"{self.name} {effect.event} {effect.values}")

    # Links

    def _perform_on_link(
        self, effect: effects.OpenLink | effects.CloseLink | effects.SendBeat | effects.SendReports
    ) -> None:
        match effect:
            case effects.OpenLink(address):
                self._wanted[address] = None
                self._dial(address)
            case effects.CloseLink(address):
                self._wanted.pop(address, None)
            case effects.SendBeat(address):
                self._send(address, RunnerBeat(self.name, *effect[1:]))
            case effects.SendReports(address, results):
                self._send(address, ReportsReceived(self.name, list(results)))

    def _dial(self, address: str) -> None:
        if not self.alive or address not in self._wanted or address in self._links:
            return
        network = self.world.network
        controller = self.world.controller_at(address)
        reachable = network.reaches(self.name, address) and network.reaches(address, self.name)
        if reachable and controller is None and not self.stopped:
            self.put(events.LinkDown(address, "nobody listens", refused=True))
        if self.stopped or controller is None or controller.stopped or not reachable:
            self.clock.call_after(int((1 + self.rng.random()) * self.world.pace.redial_ns), lambda: self._dial(address))
            return
        here = End(self.name, lambda message: self._received(address, message), lambda: self._broken(address))
        # These two are called only after `accepted` is bound: everything takes its time.
        there = End(
            address, lambda message: controller.received(accepted, message), lambda: controller.stream_broken(accepted)
        )
        stream = Stream(self.clock, network, self.rng, here, there)
        self._links[address] = stream
        accepted = controller.accept(self.info, stream)
        self.put(events.LinkOpened(address, self.local_ns()))

    def _broken(self, address: str) -> None:
        self._links.pop(address, None)
        self.put(events.LinkDown(address, "broken"))
        self.clock.call_after(int(self.rng.random() * self.world.pace.redial_ns), lambda: self._dial(address))

    def _send(self, address: str, message: Any) -> None:
        stream = self._links.get(address)
        if stream is not None:
            stream.send(self.name, message)

    def _welcomed(
        self,
        address: str,
        controller_id: str,
        peers: tuple[str, ...],
        deployments: tuple[str, ...] | None,
        registering_ms: int,
    ) -> None:
        settings = self.world.settings
        beat_ms, fence_ms = settings.runner_beat_ms, settings.runner_fence_ms
        self.put(events.LinkUp(address, controller_id, peers, beat_ms, fence_ms, deployments, registering_ms))

    def _received(self, address: str, message: tuple[Any, ...]) -> None:
        match message:
            case ("welcome", controller_id, peers, registering_ms):
                self._welcomed(address, controller_id, peers, None, registering_ms)
            case ("beat_ack", sequence, renewed, database_ok, peers):
                self.put(events.BeatAcked(address, sequence, renewed, database_ok, peers))
            case ("dispatch", now_us, executions, epochs):
                runs = list(map(run_of, executions, epochs))
                self.put(events.Dispatched(address, now_us, runs))
            case ("reports_ack", execution_ids):
                self.put(events.ReportsAcked(execution_ids))
            case ("cancel", execution_ids, reason):
                self.put(events.CancelAsked(execution_ids, reason))
            case _:
                raise AssertionError(f"no such message: {message}")

    # Runs

    def _take_place(self, run: Run) -> None:
        if self.places is None or len(self._runs) < self.places:
            self._start_run(run)
            return
        left_ns = max(0, (run.deadline_us - self.world.database.now_us()) * 1_000)
        self._queue[run.execution_id] = run, self.clock.call_after(left_ns, lambda: self._leave_queue(run, TIMED_OUT))

    def _leave_queue(self, run: Run, course: Course) -> None:
        """It never began."""
        waiting = self._queue.pop(run.execution_id, None)
        if waiting is not None:
            waiting[1].cancel()
            at_us = self.world.database.now_us()
            self._report(run, course, max(at_us, run.claimed_at_us), at_us)

    def call_up(self) -> None:
        """There may be room for what waits for a child; nothing begins past the fence (cronring/runner/pool.py)."""
        while self._queue and not self.stopped and (self.places is None or len(self._runs) < self.places):
            self._call(self._queue[next(iter(self._queue))][0])

    def _call(self, run: Run) -> None:
        if self.fenced and not run.finish:
            self._leave_queue(run, CUT_OFF)
        elif run.deadline_us <= self.world.database.now_us():
            self._leave_queue(run, TIMED_OUT)
        else:
            self._queue.pop(run.execution_id)[1].cancel()
            self._start_run(run)

    @property
    def running(self) -> list[Running]:
        return list(self._runs.values())

    def crash(self, running: Running) -> None:
        """Its child is killed. Its process notices when it runs."""
        if running.run.execution_id in self._runs:
            self._end_run(running, CRASHED)

    def freeze(self, running: Running) -> None:
        """Its child stands still."""
        running.left_ns = running.timers[0].at_ns - self.clock.now_ns
        running.timers[0].cancel()

    def thaw(self, running: Running) -> None:
        if running.run.execution_id in self._runs and running.stops_ns is None and running.left_ns is not None:
            running.timers[0] = self.clock.call_after(running.left_ns, lambda: self._end_run(running, running.course))
            running.left_ns = None

    def tell(self, reports: list[Report]) -> None:
        """Whatever somebody has it say, to whoever listens."""
        for address in list(self._links):
            if self.alive and not self.stopped:
                self._send(address, ReportsReceived(self.name, reports))

    def _start_run(self, run: Run) -> None:
        """The verb's code begins now, and takes its time in a child, whatever becomes of the runner meanwhile."""
        self.world.journal.started(run, self.name)
        course = self.world.workload.course(run, self.rng)
        left_ns = max(0, (run.deadline_us - self.world.database.now_us()) * 1_000)
        running = Running(run, self.world.database.now_us(), course)
        running.timers.append(self.clock.call_after(course.duration_ns, lambda: self._end_run(running, course)))
        running.timers.append(self.clock.call_after(left_ns, lambda: self._time_out(running)))
        self._runs[run.execution_id] = running

    @property
    def fenced(self) -> bool:
        """Out of contact for so long that it may be taken for lost."""
        return self.local_ns() >= self.core.fence_ns

    def work(self) -> None:
        """Children see the fence as it was when this process last did anything."""
        if self.fenced:
            self.fenced_us = self.world.database.now_us()
        super().work()
        if self._children_fence_ns != self.core.fence_ns:
            self._children_fence_ns = self.core.fence_ns
            if self._children_fence is not None:
                self._children_fence.cancel()
            at_ns = self.virtual_ns(self.core.fence_ns) + CHILDREN_FENCE_NS
            self._children_fence = self.clock.call_at(at_ns, self._fence_children)

    def _fence_children(self) -> None:
        if self.alive:
            for running in [running for running in self._runs.values() if not running.run.finish]:
                self._end_run(running, CUT_OFF)

    def _time_out(self, running: Running) -> None:
        """The soft timeout is the runner's business: a stopped one gets to it when it goes on."""
        if self.stopped:
            self._timed_out.append(running)
        else:
            self._end_run(running, TIMED_OUT)

    def resume(self) -> None:
        timed_out, self._timed_out = self._timed_out, []
        for running in timed_out:
            if running.run.execution_id in self._runs:
                self._end_run(running, TIMED_OUT)
        super().resume()
        self.call_up()

    def _stop_run(self, execution_id: int, reason: StopReason, grace_ms: int) -> None:
        waiting = self._queue.get(execution_id)
        if waiting is not None:
            self._leave_queue(waiting[0], Course(0, reason.outcome, reason.error_type))
        running = self._runs.get(execution_id)
        if running is None:
            return
        delay_ns = int(self.rng.random() * grace_ms * MS)
        ends_ns = self.clock.now_ns + delay_ns
        if running.stops_ns is None or ends_ns < running.stops_ns:  # who asks again gives it no more time
            running.stops_ns = ends_ns
            running.cancel_timers()
            stopped = Course(0, reason.outcome, reason.error_type)
            running.timers.append(self.clock.call_after(delay_ns, lambda: self._end_run(running, stopped)))

    def _end_run(self, running: Running, course: Course) -> None:
        running.cancel_timers()
        run = running.run
        del self._runs[run.execution_id]
        self.world.journal.ended(run, str(course.outcome))
        self._report(run, course, running.started_us, self.world.database.now_us())
        self.call_up()

    def _report(self, run: Run, course: Course, started_us: int, ended_us: int) -> None:
        result = Report(
            run.execution_id, run.job_id, run.claimed_at_us, course.outcome, started_us, ended_us,
            course.error_type, next_in_ms=course.next_in_ms,
        )  # fmt: skip
        self.put(events.RunsEnded([result]))
