"""After a drill: what the books say of the ticks that came due meanwhile."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cronring.cli.drill.doing import DrillSpan
from cronring.cli.drill.plan import JOBS_MAX, DrillPlan
from cronring.client import AsyncClient
from cronring.client.model import Audit, Execution
from cronring.schema.execution import OF_A_TICK

LATE_AFTER_MS: Final = 1_000.0
ON_TIME_MS: Final = 100.0  # a backup looks for what was left lying, and so claims nothing so early
DECIDED_MAX_S: Final = 15.0  # a tick that finds no runner is skipped after 10
ENDED_MAX_S: Final = 5.0  # when an execution's code began is known once its runner has reported
POLL_S: Final = 0.3
BEFORE_MAX: Final = 5_000
ID_SLACK: Final = 1_000  # ids are drawn before they are committed, by several at once
SPREAD_S: Final = 120.0  # by so much jitter may put off what ran before the drill


@dataclass(frozen=True, slots=True)
class Lateness:
    """Of how many ticks, in ms from run_at to the start of the verb. None: of none."""

    ticks: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True, slots=True)
class Late:
    """A tick that began too late. `claimed_ms`: how late its claim came; what is more took its runner."""

    job: str
    tick: datetime | None
    lateness_ms: float
    claimed_ms: float


@dataclass(frozen=True, slots=True)
class Findings:
    """`before`: for as long before it. `taken_over`: by others; `by`: how many by whom. `of_job`: of these, the job's.

    `on_time`: claimed by others at run_at already, as primaries do. `itself`: claimed by the one of the drill, once
    it claimed again. `running`: had not reported their start yet, so that their claim counts. `undecided`: jobs with a
    tick that nobody has claimed or skipped in 15 s.
    `lost`, `duplicates`, `skipped` and `ticks`: of all jobs, by the audit. `ring_changed`: other members own slots now.
    """

    begun: datetime
    ended: datetime
    lasted_ms: float
    cut: str
    before: Lateness
    taken_over: Lateness
    of_job: Lateness
    itself: Lateness
    by: Mapping[str, int]
    on_time: int
    late: tuple[Late, ...]
    running: int
    undecided: tuple[str, ...]
    ticks: int
    skipped: Mapping[str, int]
    lost: int
    duplicates: int
    clean: bool
    ring_changed: bool

    @property
    def shown(self) -> bool:
        """Others took over what their primary had left lying; or the ring changed, so that they were the primary."""
        return self.taken_over.ticks > 0 and (self.ring_changed or self.on_time < self.taken_over.ticks)

    @property
    def held(self) -> bool:
        return self.clean and not self.late and not self.undecided and self.shown


class DrillBooks:
    """Remembers what was there before; `read` waits until what came due is decided."""

    def __init__(self, plan: DrillPlan, before: Sequence[Execution]) -> None:
        self._plan = plan
        self._before = before
        self._after_id = max(0, max((each.id for each in before), default=0) - ID_SLACK)

    @classmethod
    async def open(cls, client: AsyncClient, plan: DrillPlan, now: datetime) -> "DrillBooks":
        since = now - timedelta(seconds=plan.wanted.for_s + SPREAD_S)
        return cls(plan, await client.executions.list(since=since, limit=BEFORE_MAX))

    async def read(self, client: AsyncClient, span: DrillSpan) -> Findings:
        runs, undecided = await self._decided(client, span)
        audit = await client.ledger.audit(span.begun, span.ended, thorough=True)
        digest = (await client.cluster.ring()).digest
        return self._found(span, runs, undecided, audit, ring_changed=digest != self._plan.ring.digest)

    async def _decided(self, client: AsyncClient, span: DrillSpan) -> tuple[list[Execution], list[str]]:
        """Runs of what came due, and jobs of which nobody has decided a tick."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            undecided = await self._undecided(client, span)
            runs = self._due(await client.executions.list(after_id=self._after_id, limit=None), span.begun, span.ended)
            waited_s = loop.time() - began
            unknown = any(each.lateness_ms is None for each in runs) and waited_s < ENDED_MAX_S
            if not (undecided or unknown) or waited_s > DECIDED_MAX_S:
                return runs, undecided
            await asyncio.sleep(POLL_S)

    @staticmethod
    async def _undecided(client: AsyncClient, span: DrillSpan) -> list[str]:
        jobs = await client.jobs.list(status="scheduled", limit=JOBS_MAX)
        return [job.key for job in jobs if job.next_execution and span.begun <= job.next_execution <= span.ended]

    def _due(self, runs: Iterable[Execution], begun: datetime, ended: datetime) -> list[Execution]:
        """First attempts at ticks of the controller's jobs, to be run within that time."""
        from cronring.schema.keys import slot_of

        ring, primary = self._plan.ring, self._plan.primary.id
        mine = ring.members.index(primary) if primary in ring.members else -2
        return [
            run
            for run in runs
            if run.run_at is not None
            and begun <= run.run_at <= ended
            and run.attempt == 1
            and run.trigger in OF_A_TICK
            and ring.primary[slot_of(run.job)] == mine
        ]

    def _found(
        self, span: DrillSpan, runs: list[Execution], undecided: list[str], audit: Audit, *, ring_changed: bool
    ) -> Findings:
        plan = self._plan
        others = [run for run in runs if run.controller != plan.primary.id]
        itself = [run for run in runs if run.controller == plan.primary.id]
        late = [
            Late(run.job, run.tick, lateness_ms(run), claimed_ms(run))
            for run in runs
            if lateness_ms(run) > LATE_AFTER_MS
        ]
        return Findings(
            begun=span.begun,
            ended=span.ended,
            lasted_ms=span.lasted_s * 1_000,
            cut=span.cut,
            before=spread(self._due(self._before, span.begun - timedelta(seconds=span.lasted_s), span.begun)),
            taken_over=spread(others),
            of_job=spread([run for run in others if run.job == plan.job.key]),
            itself=spread(itself),
            by=dict(Counter(run.controller for run in others).most_common()),
            on_time=sum(claimed_ms(run) < ON_TIME_MS for run in others),
            late=tuple(sorted(late, key=lambda each: -each.lateness_ms)),
            running=sum(run.lateness_ms is None for run in runs),
            undecided=tuple(undecided),
            ticks=audit.ticks,
            skipped=audit.skipped,
            lost=audit.unaccounted,
            duplicates=audit.duplicates,
            clean=audit.clean,
            ring_changed=ring_changed,
        )


def lateness_ms(run: Execution) -> float:
    """To its start; to its claim, while that is all that is known."""
    return claimed_ms(run) if run.lateness_ms is None else run.lateness_ms


def claimed_ms(run: Execution) -> float:
    """From its run_at to its claim."""
    assert run.claimed_at is not None, "an execution is claimed"
    assert run.run_at is not None, "and had an instant to run at"
    return (run.claimed_at - run.run_at).total_seconds() * 1_000


def spread(runs: Sequence[Execution]) -> Lateness:
    ordered = sorted(lateness_ms(run) for run in runs)
    return Lateness(len(ordered), _quantile(ordered, 0.5), _quantile(ordered, 0.99), _quantile(ordered, 1.0))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest that so large a share does not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else None
