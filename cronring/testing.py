"""Your modules on a virtual clock, for your own tests: a year of ticks in less than a second.

    def test_invoices_once_a_month(cronring_cluster):
        cluster = cronring_cluster("billing.py", start="2026-01-01")
        cluster.run_until("2027-01-01")
        assert [each.outcome for each in cluster.executions("close_month")] == ["completed"] * 12

The fixture `cronring_cluster` comes with the package. Outside of pytest, use `VirtualCluster` in a `with`. The
controller's own core runs, with all policies; only time, the database and the network are not real. docs/testing.md
says more.
"""

import json
from collections.abc import Callable, Coroutine
from datetime import datetime
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Protocol

from cronring.controller.core.node.events import ActivationsCreated
from cronring.controller.core.orders.redeploy import deployment_key
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.store.memory.rows import StoredJob
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.instant import from_us
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.nearest import nearest
from cronring.virtual.engine import Engine
from cronring.virtual.inprocess import RunsHere
from cronring.virtual.instants import Instant, Length, instant_us, length_us
from cronring.virtual.loading import ModuleError, load_here
from cronring.virtual.outages import Outage, check_part
from cronring.virtual.records import Execution, Skip, execution_of, skip_of

__all__ = ["ClusterFactory", "Execution", "ModuleError", "Skip", "VirtualCluster"]

AuthorModule = str | Path | ModuleType
_BY = "test"
_LIMITS = ("memory_limit", "cpu_limit")


class ClusterFactory(Protocol):
    """What the fixture `cronring_cluster` is: it makes clusters, and closes them after the test."""

    def __call__(
        self, *modules: AuthorModule, start: Instant, namespace: str = ..., default_jitter: str = ...
    ) -> "VirtualCluster": ...


class VirtualCluster:
    """A cluster with these modules, deployed at `start`: the first ticks are those after that instant.

    `modules`: paths, or modules that you have imported. `start` and all other instants are texts
    (`"2026-03-29T01:00"`, UTC unless they name an offset) or aware datetimes. `default_jitter`: the jitter of jobs that
    set none. It is off by default, so that runs begin on their ticks.

    Raises ModuleError for modules that `cronring check` would refuse, and ValueError for an instant that can't be read.

        with VirtualCluster("billing.py", start="2026-03-28") as cluster:
            cluster.run_for("2d")
            print(cluster.executions())
    """

    def __init__(
        self,
        *modules: AuthorModule,
        start: Instant,
        namespace: str = DEFAULT_NAMESPACE,
        default_jitter: str = "off",
    ) -> None:
        loaded = [load_here(module, namespace) for module in modules]
        self._runs = RunsHere()
        self._engine = Engine(instant_us(start), ClusterSettings(default_jitter=default_jitter), self._runs)
        for each in loaded:
            self._runs.host(deployment_key(each.module, each.digest), each.verbs)
        self._engine.deploy_all([(each.module, each.digest) for each in loaded])

    def __enter__(self) -> "VirtualCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel tasks that async verbs have left behind, and let their event loop go."""
        self._runs.close()

    # Time

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return from_us(self._engine.now_us)

    def run_until(self, until: Instant) -> None:
        """Let everything happen that is due up to and at this instant. Raises ValueError if it is in the past."""
        until_us = instant_us(until)
        if until_us < self._engine.now_us:
            raise ValueError(f"{from_us(until_us)} is in the past: it is {self.now}")
        self._engine.run_until(until_us)

    def run_for(self, length: Length) -> None:
        """As `run_until`, for a length of time from now: `"2d"`, `"90m"`, a timedelta."""
        self._engine.run_until(self._engine.now_us + length_us(length))

    # What happened

    def executions(self, job: str | None = None, *, outcome: str | None = None) -> list[Execution]:
        """Executions of one job (`"close_month"` or its whole key), or of all, in the order in which they began.

        [late] = cluster.executions("close_month", outcome="timed_out")
        """
        row = None if job is None else self._job(job)
        found = [each for each in self._store.executions.values() if row is None or each.job is row]
        return [execution_of(each) for each in found if outcome is None or each.outcome == outcome]

    def skips(self, job: str | None = None, *, reason: str | None = None) -> list[Skip]:
        """Ticks that did not run, with the reasons, in the order in which they were skipped."""
        row = None if job is None else self._job(job)
        found = [each for each in self._store.skips if row is None or each.job_id == row.job_id]
        skips = [skip_of(each, self._store.jobs[each.job_id]) for each in found]
        return [each for each in skips if reason is None or each.reason == reason]

    def next_run(self, job: str) -> datetime | None:
        """When the job runs next; None if it has no next run, runs now, or is paused."""
        slot = self._job(job).upcoming
        return None if slot is None else from_us(slot.run_at)

    def is_paused(self, job: str) -> bool:
        """Whether the job is paused, by `pause` or because of `pause_after_failures`."""
        return self._job(job).paused

    # What operators do

    def trigger(self, job: str, payload: object = None) -> None:
        """Run the job now, beside its schedule. `payload` is any JSON value; None: the job's own.

        A run that takes no virtual time has ended when this returns. Raises controller.errors.CronringError where the
        API would refuse.
        """
        key = self._job(job).key
        text = None if payload is None else json.dumps(payload)
        activation = self._do(lambda store: store.trigger_job(key, _BY, text))
        self._engine.tell(ActivationsCreated([activation]))
        self._engine.run_until(self._engine.now_us)

    def pause(self, job: str, note: str = "") -> None:
        """Its ticks are skipped as `paused` until `resume`."""
        key = self._job(job).key
        self._do(lambda store: store.pause_job(key, _BY, note))

    def resume(self, job: str) -> None:
        key = self._job(job).key
        self._do(lambda store: store.resume_job(key, _BY))

    # What goes wrong, and how long things last

    def outage(self, part: str, length: Length, *, start: Instant | None = None) -> None:
        """Take away `part` (`"database"`, `"controllers"` or `"runners"`) for `length`, from now on or from `start`.

        cluster.outage("database", "2h", start="2026-03-29T01:00")
        """
        start_us = self._engine.now_us if start is None else instant_us(start)
        self._engine.schedule_outage(Outage(check_part(part), start_us, length_us(length)))

    def duration(self, verb: str, length: Length) -> None:
        """From now on runs of this verb last `length` of virtual time. Its code still runs to its end at the beginning.

        Raises LookupError if no module has such a verb.
        """
        self._check_verb(verb)
        self._runs.durations_us[verb] = length_us(length)

    def exceed(self, verb: str, limit: str | None) -> None:
        """From now on runs of this verb go over this limit of their job, `"memory_limit"` or `"cpu_limit"`.

        Runs of jobs that have this limit end as `out_of_memory` or `out_of_cpu`. `limit` None: no more of that. Nothing
        is measured here. Raises LookupError if no module has such a verb, ValueError for another limit.
        """
        self._check_verb(verb)
        if limit is None:
            self._runs.exceeded.pop(verb, None)
        elif limit in _LIMITS:
            self._runs.exceeded[verb] = limit
        else:
            raise ValueError(f"there is no limit {limit!r}; there are {', '.join(_LIMITS)}")

    def _check_verb(self, verb: str) -> None:
        known = sorted({verb.name for row in self._store.deployments for verb in row.schema.verbs})
        if verb not in known:
            raise LookupError(_unknown("verb", verb, known))

    # Inside

    @property
    def _store(self) -> MemoryStore:
        return self._engine.store

    def _do(self, call: Callable[[MemoryStore], Coroutine[Any, Any, Any]]) -> Any:
        result = self._engine.ask(call)
        if isinstance(result, Exception):
            raise result
        return result

    def _job(self, job: str) -> StoredJob:
        """By its key, or its verb's name. Raises LookupError."""
        rows = [row for row in self._store.jobs.values() if not row.removed]
        found = [row for row in rows if row.key == job] or [row for row in rows if row.verb == job]
        if not found:
            raise LookupError(_unknown("job", job, sorted(row.key for row in rows)))
        if len(found) > 1:
            raise LookupError(f"{job!r} is ambiguous: write one of {', '.join(sorted(row.key for row in found))}")
        return found[0]


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = nearest(name, [*known, *(each.rpartition(".")[2] for each in known)])
    return f"there is no {what} {name!r}; " + (f"did you mean {close!r}?" if close else f"there are {known}")
