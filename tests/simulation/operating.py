"""What an operator does to single jobs while everything else goes wrong, through whichever controller answers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cronring.controller.core.model import Activation
from cronring.controller.core.node.events import ActivationsCreated, Event, JobsNotified
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill
from cronring.schema.job import JobSpec
from cronring.virtual.clock import MS, SECOND
from tests.simulation.asking import Asker, created
from tests.simulation.database import Call
from tests.simulation.policies import API_VERBS, SECOND_US, PolicyWorkload

if TYPE_CHECKING:
    from tests.simulation.world import World

JOBS_MAX: Final = 30  # made and not deleted: more than in half a minute, fewer than in two hours


class Operator(Asker):
    """`promised`: activations that it was told of. What it was not told may have been done all the same."""

    def __init__(self, world: "World", workload: PolicyWorkload, until_ns: int) -> None:
        super().__init__(world, world.fork())
        self._workload = workload
        self._until_ns = until_ns
        self._made = 0
        self._pause_ns = self._rng.choice((SECOND // 2, SECOND, 3 * SECOND))
        self.promised: list[int] = []
        tasks: tuple[tuple[int, Callable[[], None]], ...] = (
            (4, self._pause), (4, self._resume), (5, self._trigger), (4, self._backfill), (2, self._cancel),
            (3, self._create), (3, self._update), (1, self._delete),
        )  # fmt: skip
        self._tasks = tuple(task for weight, task in tasks for _ in range(weight))
        world.clock.call_after(2 * SECOND, self._act)

    def _act(self) -> None:
        if self._world.clock.now_ns >= self._until_ns:
            self._resume_most()
            return
        self._rng.choice(self._tasks)()
        self._world.clock.call_after(int(self._rng.random() * 2 * self._pause_ns) + MS, self._act)

    def _resume_most(self) -> None:
        for row in self._rows():
            if row.paused and self._rng.random() < 0.8:
                self._ask(f"resumes {row.key}", _resuming(row.key), created)

    def _activation(self, made: Activation | None) -> Event | None:
        if made is None:
            return None
        self.promised.append(made.activation_id)
        return ActivationsCreated([made])

    # What it does

    def _pause(self) -> None:
        row = self._some()
        if row is not None:
            key = row.key
            self._ask(f"pauses {key}", lambda store: store.pause_job(key, "operator", "for a test"), created)
            if self._rng.random() < 0.7:
                length_ns = int(10 ** self._rng.uniform(-1.5, 1) * SECOND)
                self._world.clock.call_after(length_ns, lambda: self._ask(f"resumes {key}", _resuming(key), created))

    def _resume(self) -> None:
        paused = [row for row in self._rows() if row.paused]
        if paused:
            key = self._rng.choice(paused).key
            self._ask(f"resumes {key}", _resuming(key), created)

    def _trigger(self) -> None:
        row = self._some()
        if row is not None:
            key = row.key
            call: Call = lambda store: store.trigger_job(key, "operator", None)  # noqa: E731
            self._ask(f"triggers {key}", call, self._activation)

    def _backfill(self) -> None:
        row = self._some()
        if row is None:
            return
        key = row.key
        from_at = self._world.database.now_us() - self._rng.randint(1, 40) * SECOND_US
        until_at = from_at + self._rng.randint(0, 25) * SECOND_US
        wanted = Backfill(from_at, until_at, beside=self._rng.random() < 0.3, again=self._rng.random() < 0.3)
        call: Call = lambda store: store.backfill_job(key, "operator", wanted)  # noqa: E731
        self._ask(f"backfills {key} {wanted}", call, self._activation)

    def _cancel(self) -> None:
        waiting = list(self._world.database.store.activations.values())
        if waiting:
            row = self._rng.choice(waiting)
            key, activation_id = row.job.key, row.activation_id
            call: Call = lambda store: store.cancel_activation(key, activation_id)  # noqa: E731
            self._ask(f"cancels {activation_id} {row.trigger} of {key}", call)

    def _create(self) -> None:
        if len(self._rows("api")) >= JOBS_MAX:
            self._delete()
            return
        self._made += 1
        verb = self._rng.choice(API_VERBS)
        timing = self._workload.timing(self._rng)
        spec = JobSpec(timing.schedule, None, verb.timeout_ms or 0, verb.on_disconnect, timing.policy.text)
        job = NewJob("default", "sim", verb.name, f"made{self._made}", spec)
        call: Call = lambda store: store.make_job(job, "operator")  # noqa: E731
        self._ask(
            f"creates {job.verb}:{job.name} {job.spec.schedule} {job.spec.policy}", call, lambda made: created(made.job)
        )

    def _update(self) -> None:
        row = self._some("api")
        if row is not None:
            key, timing = row.key, self._workload.timing(self._rng)
            wanted: dict[str, Any] = {"policy": timing.policy.text}
            if not (self._rng.random() < 0.3 and not timing.policy.text):
                wanted["schedule"] = timing.schedule
            change = JobChange.to(**wanted)
            call: Call = lambda store: store.update_job(key, change, "operator")  # noqa: E731
            self._ask(f"changes {key} to {change}", call, created)

    def _delete(self) -> None:
        row = self._some("api")
        if row is not None:
            key = row.key
            self._ask(f"deletes {key}", lambda store: store.delete_job(key, "operator"), lambda _: JobsNotified())


def _resuming(key: str) -> Call:
    return lambda store: store.resume_job(key, "operator")
