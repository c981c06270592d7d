"""The operator's year: pauses, runs by hand, backfills, jobs through the API, and new versions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.node.events import ActivationsCreated, Event, JobsCreated
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import Conflict, NotFound, StoreUnavailable
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill
from cronring.schema.job import JobSpec
from cronring.virtual.clock import SECOND
from tests.simulation.database import Call
from tests.simulation.year_workload import DAY_US

if TYPE_CHECKING:
    from tests.simulation.year_world import YearWorld

HOUR_US: Final = 3_600_000_000
AGAIN_NS: Final = 600 * SECOND


class Operator:
    """Each task at its instants. What PostgreSQL's absence keeps it from, it tries again later."""

    def __init__(self, world: "YearWorld", until_us: int) -> None:
        self._world = world
        self._rng = world.fork()
        self._until_us = until_us
        self._made = 0
        tasks: tuple[tuple[int, Callable[[], None]], ...] = (
            (12, self._pause), (30, self._trigger), (14, self._backfill), (10, self._deploy), (5, self._create),
            (8, self._update), (2, self._delete),
        )  # fmt: skip
        for most, task in tasks:
            for _ in range(self._rng.randint(world.often(most) // 3, world.often(most))):
                world.at(self._instant(), task)
        for at_us in range(world.start_us + DAY_US, until_us, 4 * DAY_US):
            world.at(at_us + self._rng.randint(0, DAY_US), self._resume_failing)

    def resume_all(self) -> None:
        for row in self._world.database.store.jobs.values():
            if row.paused and not row.removed:
                self._resume(row.key)

    def _instant(self) -> int:
        """Now and then at the very second of a tick, or just beside."""
        at_us = self._rng.randint(self._world.start_us + HOUR_US, self._until_us)
        kind = self._rng.random()
        if kind < 0.3:
            at_us = at_us // HOUR_US * HOUR_US
        elif kind < 0.5:
            at_us = at_us // HOUR_US * HOUR_US + self._rng.randint(-1_000_000, 1_000_000)
        return at_us

    def _some_key(self) -> str | None:
        keys = [row.key for row in self._world.database.store.jobs.values() if not row.removed]
        return self._rng.choice(keys) if keys else None

    def _ask(self, what: str, call: Call, tell: Callable[[Any], Event | None] = lambda _: None) -> None:
        """By the controller that is asked, which hears of it from itself; the others by NOTIFY."""
        self._world.log(f"OPERATOR {what}")

        def answered(result: Any) -> None:
            if isinstance(result, StoreUnavailable):
                self._world.clock.call_after(AGAIN_NS, lambda: self._ask(what, call, tell))
                return
            assert not isinstance(result, Exception) or isinstance(result, Conflict | NotFound | NeverRuns), repr(
                result
            )
            controller = self._world.some_controller()
            event = None if isinstance(result, Exception) else tell(result)
            if event is not None and controller is not None:
                controller.put(event)

        self._world.database.ask("operator", call, answered)

    def _pause(self) -> None:
        key = self._some_key()
        if key is not None:
            self._ask(f"pauses {key}", lambda store: store.pause_job(key, "operator", ""))
            length_us = int(HOUR_US / 12 * 2_000 ** self._rng.random())
            self._world.at(self._world.database.now_us() + length_us, lambda: self._resume(key))

    def _resume(self, key: str) -> None:
        self._ask(f"resumes {key}", lambda store: store.resume_job(key, "operator"))

    def _resume_failing(self) -> None:
        for row in self._world.database.store.jobs.values():
            if row.paused and row.paused_by == "cronring" and not row.removed:
                self._resume(row.key)

    def _trigger(self) -> None:
        key = self._some_key()
        if key is not None:
            self._ask(f"triggers {key}", lambda store: store.trigger_job(key, "operator", None), _activation)

    def _backfill(self) -> None:
        key, now_us = self._some_key(), self._world.database.now_us()
        row = next(
            (row for row in self._world.database.store.jobs.values() if row.key == key and not row.removed), None
        )
        if key is None or row is None:
            return
        from_at = now_us - self._rng.randint(1, 20) * DAY_US
        longest = DAY_US if row.spec.schedule.startswith("*/") else 10 * DAY_US
        wanted = Backfill(
            from_at, from_at + self._rng.randint(0, longest), self._rng.random() < 0.3, self._rng.random() < 0.3
        )
        self._ask(f"backfills {key} {wanted}", lambda store: store.backfill_job(key, "operator", wanted), _activation)

    def _deploy(self) -> None:
        self._world.roll_out()

    def _create(self) -> None:
        self._made += 1
        now_us = self._world.database.now_us()
        timing = self._world.year.timing(now_us, self._rng)
        spec = JobSpec(timing.schedule, None, 3_600_000, "stop", timing.policy.text)
        job = NewJob("default", "year", "api", f"made{self._made}", spec)
        self._ask(
            f"creates {job.name} {job.spec.schedule} {job.spec.policy}", lambda store: store.make_job(job, "x"),
            lambda made: _job(made.job),
        )  # fmt: skip

    def _made_key(self) -> str | None:
        rows = self._world.database.store.jobs.values()
        keys = [row.key for row in rows if row.source == "api" and not row.removed]
        return self._rng.choice(keys) if keys else None

    def _update(self) -> None:
        key = self._made_key()
        if key is not None:
            timing = self._world.year.timing(self._world.database.now_us(), self._rng)
            change = JobChange.to(schedule=timing.schedule, policy=timing.policy.text)
            self._ask(f"changes {key} to {timing}", lambda store: store.update_job(key, change, "operator"), _job)

    def _delete(self) -> None:
        key = self._made_key()
        if key is not None:
            self._ask(f"deletes {key}", lambda store: store.delete_job(key, "operator"))


def _activation(made: Activation | None) -> Event | None:
    return None if made is None else ActivationsCreated([made])


def _job(job: Job) -> Event:
    return JobsCreated([job])
