"""Ends of executions: most are one statement, and few need a transaction (docs/decisions/0068, 0118)."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple

import asyncpg

from cronring.controller.core.model import EndRequest, EndResult, MessageFate
from cronring.controller.core.ticks import missed
from cronring.controller.store.messages import delete_messages, held_by_consumers
from cronring.controller.store.placing import Fetch
from cronring.controller.store.plans import add_skips
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import texts_or_null, unless_null
from cronring.schema.execution import Outcome, Report
from cronring.sql.parameters import (
    AddRetries,
    EndAnyRun,
    EndCronJob,
    FollowTicks,
    GetPartition,
    GivePlacesBack,
    LockSeenRunners,
    MoveAnchors,
    PauseFailing,
)

# An empty text is null.
_TEXTS: Final = {name for name in Report._fields if Report._field_defaults.get(name) == ""}


def _columns(parameters: Container[str]) -> tuple[tuple[str, bool], ...]:
    """For each field of a report: the statement's parameter for it (may be a plural), and whether the field is a text.

    "": the statement doesn't take the field.
    """
    return tuple(
        (next((name for name in (field, f"{field}s") if name in parameters), ""), field in _TEXTS)
        for field in Report._fields
    )


_COMPLETED: Final = _columns(EndCronJob.__annotations__)
_REPORTED: Final = _columns(EndAnyRun.__annotations__)
_RESULT: Final = EndResult._fields.index("stale") + 1  # only further statements fill in the fields behind it
_NOTHING_MORE: Final = tuple(EndResult._field_defaults[name] for name in EndResult._fields[_RESULT:])
_SECOND_US: Final = 1_000_000
_DAY_US: Final = 86_400 * _SECOND_US
_DAYS_KNOWN: Final = 4
_ANYWHERE: Final = "cron_executions e"  # how both statements name the table, for which a partition may be put in


class _Ended(NamedTuple):
    """An end that this transaction has made: the position of its request, the request, and PostgreSQL's answer."""

    position: int
    request: EndRequest
    record: asyncpg.Record


class Partitions:
    """The partition that has the executions of a day, as far as known.

    An UPDATE sets up every partition of its plan before its first row: with 34 of them, that is half of its cost.
    Pruning is no way out (docs/decisions/0001). Each name makes another statement, which each connection plans once. So
    only today and yesterday have a name. Retention never drops these two: it would not wait for such an UPDATE.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # by day since 1970; "": none may be named

    async def name(self, fetch: Fetch, ticks: Sequence[int]) -> str:
        """The partition of these ticks; "": not known, or more than one."""
        day = min(ticks) // _DAY_US
        if max(ticks) // _DAY_US > day or max(self._names, default=day) > day + 1:
            return ""
        if day not in self._names:
            found = await fetch(GetPartition(from_at=day * _DAY_US, until_at=(day + 1) * _DAY_US))
            while len(self._names) >= _DAYS_KNOWN:
                del self._names[next(iter(self._names))]
            self._names[day] = found[0][0] if found else ""
        return self._names[day]


class EndBatch:
    """The ends of one controller, at one instant."""

    def __init__(self, controller_id: str, requests: list[EndRequest], partitions: Partitions) -> None:
        self._controller_id = controller_id
        self._partitions = partitions
        self._requests = requests
        self._results: list[Any] = [None] * len(requests)
        # Jobs are locked in this order, or two batches of ends could deadlock.
        job_ids = [request.report.job_id for request in requests]
        self._order = sorted(range(len(requests)), key=job_ids.__getitem__)

    async def make(self, database: Database) -> list[EndResult]:
        """Their results, in order."""
        plain = [position for position in self._order if _is_plain(self._requests[position])]
        await self._complete(database.fetch, plain)
        more = [position for position in self._order if self._results[position] is None]
        if more:
            async with database.transaction("ending executions") as transaction:
                await self._end_whole(transaction, more)
        return self._results

    async def _complete(self, fetch: Fetch, positions: Sequence[int]) -> None:
        """End those that need no further statement. The statement leaves the others as they are."""
        if not positions:
            return
        # Transposed in one go: attribute by attribute costs three times as much.
        requests = [self._requests[position] for position in positions]
        reports, ticks, revisions, next_ticks, next_run_ats, *_ = zip(*requests, strict=True)
        completing = EndCronJob(
            **_reported(_COMPLETED, reports),
            revisions=revisions,
            ticks=ticks,
            next_ticks=next_ticks,
            next_run_ats=next_run_ats,
        )
        ended = {record[0] for record in await self._in_its_partition(fetch, completing, ticks)}
        for position, (report, _, revision, next_tick, next_run_at, *_) in zip(positions, requests, strict=True):
            if report.execution_id in ended:
                self._results[position] = EndResult(
                    report.execution_id, report.job_id, True, next_tick, next_run_at, revision
                )

    async def _in_its_partition(
        self, fetch: Fetch, ending: EndCronJob | EndAnyRun, ticks: Sequence[int]
    ) -> list[asyncpg.Record]:
        """Run the statement on the day's partition, if that is known; else on the whole table."""
        name = await self._partitions.name(fetch, ticks)
        return await fetch(ending.worded({_ANYWHERE: f"{name} e"}) if name else ending)

    async def _end(self, fetch: Fetch, positions: Sequence[int], *, anywhere: bool = False) -> list[asyncpg.Record]:
        """Any end, with its answer. `anywhere`: look in all partitions."""
        if not positions:
            return []
        reports, ticks, revisions, next_ticks, next_run_ats, skips, retries, anchors, *_ = zip(
            *[self._requests[position] for position in positions], strict=True
        )
        ending = EndAnyRun(
            **_reported(_REPORTED, reports),
            revisions=revisions,
            next_ticks=next_ticks,
            next_run_ats=next_run_ats,
            retry_ats=unless_null(retries),
            anchors=unless_null(anchors),
            missed=[missed(ranges) if ranges else 0 for ranges in skips],
        )
        records = await (fetch(ending) if anywhere else self._in_its_partition(fetch, ending, ticks))
        for position, record in zip(positions, records, strict=True):
            self._results[position] = EndResult._make(record[:_RESULT] + _NOTHING_MORE)
        return records

    async def _end_whole(self, transaction: Transaction, positions: list[int]) -> None:
        """End these, and write in the same transaction what follows: skips, anchors, retries, followers, pauses,
        places, messages.
        """
        positions = await self._of_the_unseen(transaction.fetch, positions)
        positions = await self._free_of_consumers(transaction.fetch, positions)
        found = dict(zip(positions, await self._end(transaction.fetch, positions), strict=True))
        elsewhere = [position for position, record in found.items() if record["elsewhere"]]
        others = await self._end(transaction.fetch, elsewhere, anywhere=True)
        found |= dict(zip(elsewhere, others, strict=True))
        ended = [
            _Ended(position, self._requests[position], record) for position, record in found.items() if record["ended"]
        ]
        decided = [each for each in ended if each.record["decides"]]
        skipped = [(each.request.report.job_id, each.request.skipped) for each in decided if each.request.skipped]
        await add_skips(transaction, skipped, by=self._controller_id)
        await self._move_anchors(transaction.fetch, [each for each in decided if each.request.anchor is not None])
        await self._add_retries(transaction.fetch, [each for each in ended if each.record["retried"]])
        # The tick of a manual run is no whole second: such runs have no followers.
        followed = [each for each in ended if each.record["followed"] and not each.record["tick"] % _SECOND_US]
        await self._follow(transaction.fetch, followed)
        await self._pause(transaction.fetch, ended)
        await _give_back(transaction.fetch, ended)
        decided_now = [position for position, record in found.items() if not record["stale"]]
        await delete_messages(transaction.fetch, [self._requests[position] for position in decided_now])

    async def _of_the_unseen(self, fetch: Fetch, positions: list[int]) -> list[int]:
        """Leave out executions declared lost whose runner is back. Runners are locked before all else."""
        unseen = {self._requests[position].unseen for position in positions} - {None}
        if not unseen:
            return positions
        runner_ids, for_ms = zip(*unseen, strict=True)
        seen = {row[0] for row in await fetch(LockSeenRunners(runner_ids=runner_ids, lost_after_ms=max(for_ms)))}
        return self._without(positions, lambda request: request.unseen is not None and request.unseen.runner_id in seen)

    async def _free_of_consumers(self, fetch: Fetch, positions: list[int]) -> list[int]:
        """Leave out executions whose message is to be withdrawn, while a consumer holds or has ended it."""
        busy = await held_by_consumers(fetch, [self._requests[position] for position in positions])
        return self._without(positions, lambda request: request.report.execution_id in busy)

    def _without(self, positions: list[int], is_busy: Callable[[EndRequest], bool]) -> list[int]:
        left = []
        for position in positions:
            request = self._requests[position]
            if is_busy(request):
                report = request.report
                self._results[position] = EndResult(
                    report.execution_id, report.job_id, False, None, None, request.revision, busy=True
                )
            else:
                left.append(position)
        return left

    async def _move_anchors(self, fetch: Fetch, ends: list[_Ended]) -> None:
        if not ends:
            return
        requests = [each.request for each in ends]
        moving = MoveAnchors(
            job_ids=[request.report.job_id for request in requests],
            anchors=[request.anchor for request in requests if request.anchor is not None],
            closes_ats=[request.closes_at for request in requests],
        )
        revisions = {record[0]: record[1] for record in await fetch(moving)}
        for each in ends:
            self._now(each, revision=revisions[each.request.report.job_id], moved=True)

    async def _add_retries(self, fetch: Fetch, ends: list[_Ended]) -> None:
        if not ends:
            return
        adding = AddRetries(
            execution_ids=[each.record["execution_id"] for each in ends], ticks=[each.record["tick"] for each in ends]
        )
        made = {(job_id, tick): retry_id for retry_id, job_id, tick in await fetch(adding)}
        for each in ends:
            self._now(each, retry_id=made[each.record["job_id"], each.record["tick"]])

    async def _follow(self, fetch: Fetch, ends: list[_Ended]) -> None:
        if not ends:
            return
        following = FollowTicks(
            execution_ids=[each.record["execution_id"] for each in ends],
            job_ids=[each.record["job_id"] for each in ends],
            ticks=[each.record["tick"] for each in ends],
        )
        made = dict(map(tuple, await fetch(following)))
        for each in ends:
            self._now(each, followers=made.get(each.record["execution_id"]))

    async def _pause(self, fetch: Fetch, ends: list[_Ended]) -> None:
        troubled = sorted({each.record["job_id"] for each in ends if each.record["troubled"]})
        if not troubled:
            return
        paused = dict(map(tuple, await fetch(PauseFailing(job_ids=troubled))))
        for each in ends:
            if (revision := paused.get(each.record["job_id"])) is not None:
                self._now(each, revision=revision, next_tick=None, next_run_at=None, paused=True)

    def _now(self, end: _Ended, **changed: Any) -> None:
        self._results[end.position] = self._results[end.position]._replace(**changed)


def _is_plain(request: EndRequest) -> bool:
    """Whether two rows are all that it writes, as far as the request tells."""
    report = request.report
    return (
        report.outcome is Outcome.COMPLETED
        and request.holds
        and not (request.skipped or report.error_type or report.error_message or report.stack)
        and request.retry_at is None
        and request.anchor is None
        and request.message is MessageFate.NONE
    )


async def _give_back(fetch: Fetch, ends: list[_Ended]) -> None:
    given = sorted(Counter(place for each in ends for place in each.record["places"] or ()).items())
    if given:
        await fetch(GivePlacesBack(limit_ids=[place for place, _ in given], places=[count for _, count in given]))


def _reported(columns: tuple[tuple[str, bool], ...], reports: Iterable[Report]) -> dict[str, Any]:
    """The parameters of a statement that come from reports, by name."""
    return {
        name: texts_or_null(column) if is_text else column
        for (name, is_text), column in zip(columns, zip(*reports, strict=True), strict=True)
        if name
    }
