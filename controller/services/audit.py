"""The audit of the whole cluster: job by job in pages, counting where the books agree, walking where they don't."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from cronring.controller.core.ledger.audit import Audit, RunCounts, Scope, add_closed, add_twins, begins_after, counted
from cronring.controller.core.ledger.audit_walk import AuditRun, SkipRange, Walk
from cronring.controller.core.ledger.books import Closed, JobStanding, Span, TickTimeline
from cronring.controller.errors import NotFound
from cronring.controller.ports.ledger import (
    AuditReport,
    AuditRequest,
    Books,
    CountedSkips,
    ZoneData,
)
from cronring.schema.instant import format_instant
from cronring.schema.zone import zone_data_version

PAGE_JOBS: Final = 100
CHUNK_ROWS: Final = 5_000
SPANS_AT_ONCE: Final = 10_000
_FED_AT_ONCE: Final = 200  # rows: a few milliseconds, for which no thread is worth its while
_BEFORE_ALL: Final = -1  # no tick is before 1970
_GONE: Final = 0  # the closed books of jobs that are gone altogether


Item = TypeVar("Item")


class _Page(NamedTuple):
    """The jobs of a page, as read before their runs."""

    jobs: Sequence[JobStanding]
    timelines: dict[int, TickTimeline]
    closed: dict[int, Closed]


async def audit(books: Books, request: AuditRequest) -> AuditReport:
    """Audit all of `request`, from one snapshot. Long computations run in a thread, so that claims don't wait."""
    until = books.now if request.until is None else min(request.until, books.now)
    scope = Scope(request.since, until, books.now, request.late_after)
    total, after_id, unread = Audit(), 0, list[str]()
    while jobs := await books.standings(after_id, request.key, PAGE_JOBS, request.namespaces):
        after_id = jobs[-1].job_id
        page = await _page(books, scope, jobs)
        unread += [job.key for job in jobs if page.timelines[job.job_id].unread]
        page = page._replace(jobs=[job for job in jobs if not page.timelines[job.job_id].unread])
        for found in await _audit_page(books, scope, page, thorough=request.thorough):
            total.add(found)
    if not request.key and request.namespaces is None:  # jobs that are gone altogether have no key or namespace left
        for closed in await books.closed([_GONE]):
            add_closed(total, scope, closed)
    since = _BEFORE_ALL if scope.since is None else scope.since - 1
    # Two jobs of one key may have run the same tick, if the clock was set back in between. A walk along one job can't
    # see that.
    twins = await books.twins(since, until, CHUNK_ROWS)
    add_twins(total, (twin for twin in twins if request.concerns(twin.key)))
    if request.key and not total.jobs and not unread:
        raise NotFound(f"there is no job {request.key!r}, and never was")
    remarks = [_other_rules(await books.zone_data()) if total.in_zones else "", _left_out(unread)]
    return AuditReport(books.now, until, total, "; ".join(filter(None, remarks)))


async def _page(books: Books, scope: Scope, jobs: Sequence[JobStanding]) -> _Page:
    job_ids = [job.job_id for job in jobs]
    closed = {each.job_id: each for each in await books.closed(job_ids)}
    spans: dict[int, list[Span]] = {job_id: [] for job_id in job_ids}
    after = (0, 0)
    while found := await books.spans(job_ids, scope.since or _BEFORE_ALL, after, SPANS_AT_ONCE):
        after = found[-1][:2]
        for job_id, _, span in found:
            spans[job_id].append(span)
    return _Page(jobs, {job_id: TickTimeline(of_job) for job_id, of_job in spans.items()}, closed)


def _other_rules(zone_data: Sequence[ZoneData]) -> str:
    """A remark beside findings of jobs in zones: the controller that wrote a tick may have had other zone rules."""
    own = zone_data_version()
    if all(each.version == own for each in zone_data):
        return ""
    used = ", ".join(f"{each.version} (since {format_instant(each.first_used_at)})" for each in zone_data)
    return (
        f"this audit goes by tzdata {own}, and controllers have decided ticks by {used}; where these have other rules "
        "for a zone, its jobs' ticks were at other instants, and the books are right"
    )


def _left_out(unread: Sequence[str]) -> str:
    if not unread:
        return ""
    return (
        f"{len(unread)} jobs were left out, as a newer release wrote their schedules, the first of them {unread[0]}; "
        "ask a controller of that release"
    )


async def _audit_page(books: Books, scope: Scope, page: _Page, *, thorough: bool) -> list[Audit]:
    to_walk: Sequence[JobStanding] = page.jobs
    found: list[Audit] = []
    if not thorough:
        afters = [begins_after(scope, page.timelines[job.job_id], page.closed.get(job.job_id)) for job in page.jobs]
        job_ids = [job.job_id for job in page.jobs]
        runs = await books.count_runs(job_ids, afters, scope.until, scope.late_after)
        skips = await books.count_skips(job_ids, afters, scope.until)
        found, to_walk = await asyncio.to_thread(_count, scope, page, runs, skips)
    for job in to_walk:
        timeline = page.timelines[job.job_id]
        walk = Walk(scope, job, timeline, page.closed.get(job.job_id))
        walked = await _walk(books, scope, job.job_id, walk)
        walked.in_zones = int(bool(timeline.zones) and not walked.clean)
        found.append(walked)
    return found


def _count(
    scope: Scope, page: _Page, runs: dict[int, RunCounts], skips: list[CountedSkips]
) -> tuple[list[Audit], list[JobStanding]]:
    """The audits of jobs whose counts agree, and the jobs that must be walked."""
    skipped: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for part in skips:
        ticks = part.ticks
        if part.first_tick is not None and part.last_tick is not None:
            timeline = page.timelines[part.job_id]
            after = begins_after(scope, timeline, page.closed.get(part.job_id))
            ticks = timeline.count(max(part.first_tick - 1, after), min(part.last_tick, scope.until))
        skipped[part.job_id][part.reason] += ticks
    agreeing, to_walk = [], []
    for job in page.jobs:
        found = counted(
            scope, job, page.timelines[job.job_id], runs.get(job.job_id, RunCounts()), skipped[job.job_id],
            page.closed.get(job.job_id),
        )  # fmt: skip
        if found is None:
            to_walk.append(job)
        else:
            agreeing.append(found)
    return agreeing, to_walk


class _Reader(Generic[Item]):
    """Rows in their order, a portion at a time: `rows` are those not fed yet. None left: there are no more."""

    def __init__(self, fetch: Callable[[tuple[int, int], int], Awaitable[list[Item]]],
                 position: Callable[[Item], tuple[int, int]], after: tuple[int, int]) -> None:  # fmt: skip
        self._fetch = fetch
        self._position = position
        self._after = after
        self._more = True
        self.rows: list[Item] = []

    async def fill(self) -> None:
        """Read on, if all rows have been fed and there may be more."""
        if self.rows or not self._more:
            return
        self.rows = await self._fetch(self._after, CHUNK_ROWS)
        self._more = len(self.rows) == CHUNK_ROWS
        if self.rows:
            self._after = self._position(self.rows[-1])

    @property
    def is_last(self) -> bool:
        """Nothing comes after `rows`."""
        return not self._more


async def _walk(books: Books, scope: Scope, job_id: int, walk: Walk) -> Audit:
    """Feed a walk with runs and ranges in order; at most a portion of each is in memory."""
    runs = _Reader(
        lambda after, limit: books.runs(job_id, after, scope.until, limit),
        lambda run: (run.tick, run.attempt), (walk.start, 2**30),
    )  # fmt: skip
    ranges = _Reader(
        lambda after, limit: books.skips(job_id, after, scope.until, limit),
        lambda part: (part.first_tick, part.skip_id), (walk.start, 2**62),
    )  # fmt: skip
    reaching = await books.skip_reaching(job_id, walk.start) if walk.cuts else None
    if reaching is not None:
        walk.skip(reaching)
    while True:
        await runs.fill()
        await ranges.fill()
        if not runs.rows and not ranges.rows:
            return walk.finish()
        if len(runs.rows) + len(ranges.rows) <= _FED_AT_ONCE:
            _feed(walk, runs, ranges)
        else:
            await asyncio.to_thread(_feed, walk, runs, ranges)


def _feed(walk: Walk, runs: _Reader[AuditRun], ranges: _Reader[SkipRange]) -> None:
    """Feed both in order, until one portion is used up and its next row isn't known."""
    run, part = 0, 0
    while (run < len(runs.rows) or runs.is_last) and (part < len(ranges.rows) or ranges.is_last):
        if run == len(runs.rows) and part == len(ranges.rows):
            break
        # At the same tick, the range comes before the run: only then the walk sees that the run lies in the range.
        if part < len(ranges.rows) and (run == len(runs.rows) or ranges.rows[part].first_tick <= runs.rows[run].tick):
            walk.skip(ranges.rows[part])
            part += 1
        else:
            walk.run(runs.rows[run])
            run += 1
    del runs.rows[:run]
    del ranges.rows[:part]
