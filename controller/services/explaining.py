"""Gathers the facts for "why": the tick in question, what ran and waits around it, and what people did."""

from typing import Final, Protocol

from cronring.controller.core.ledger.books import Closed, Span, TickTimeline
from cronring.controller.core.ledger.why_facts import (
    TRANSACTION_US,
    ActionFact,
    Attempt,
    Facts,
    Focus,
    SkipFact,
    WaitingRun,
    WhyJob,
    focus,
    subject_at,
)
from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import Namespaces, within
from cronring.schema.policy import parse_policy

_SECOND: Final = 1_000_000
_SPANS_AROUND: Final = 50  # before an instant, and after it
_ATTEMPTS: Final = 20
_WAITING: Final = 20
_ACTIONS: Final = 20


class Archive(Protocol):
    """The books as of one instant, `now`, around one tick. Every method raises StoreUnavailable or StoreError."""

    @property
    def now(self) -> int: ...
    async def subjects(self, key: str) -> list[WhyJob]:
        """The jobs of a key, removed ones among them, the newest first."""
        ...

    async def spans_around(self, job_id: int, at: int, limit: int) -> list[Span]:
        """In order: the latest spans that began before `at`, and the first ones that began then or later."""
        ...

    async def attempts(self, job_id: int, tick: int, limit: int) -> list[Attempt]:
        """At one tick; the latest first."""
        ...

    async def run_before(self, job_id: int, instant: int) -> Attempt | None:
        """The latest run of a tick before `instant`."""
        ...

    async def run_after(self, job_id: int, instant: int) -> Attempt | None:
        """The first run by schedule of a tick after `instant`."""
        ...

    async def skip_at(self, job_id: int, tick: int) -> SkipFact | None: ...
    async def waiting(self, job_id: int, limit: int) -> list[WaitingRun]: ...
    async def actions_before(self, job_id: int, instant: int, limit: int) -> list[ActionFact]:
        """By operators, up to `instant`; the latest first."""
        ...

    async def closed(self, job_ids: list[int]) -> list[Closed]: ...


async def gather(archive: Archive, key: str, at: int | None, namespaces: Namespaces = None) -> Facts:
    """`at` None: about the latest tick that was due. Raises NotFound if no job ever had the key.

    A followed job outside of `namespaces` is treated as if it did not exist.
    """
    return await _gather(archive, key, at, namespaces, ())


async def _gather(
    archive: Archive, key: str, at: int | None, namespaces: Namespaces, followers: tuple[str, ...]
) -> Facts:
    """`followers`: keys of the jobs that were asked about before. Each follows the next, the last follows `key`."""
    subjects = await archive.subjects(key)
    if not subjects:
        raise NotFound(f"there is no job {key!r}, and never was")
    now = archive.now
    asked_at = now if at is None else at
    subject = subject_at(subjects, asked_at)
    spans = await archive.spans_around(subject.job_id, asked_at, _SPANS_AROUND)
    timeline = TickTimeline(spans)
    found = focus(timeline, at, now)
    if at is not None and found.tick is None:
        found = found._replace(tick=await _made_up_for(archive, subject.job_id, at))
    followed = parse_policy(subject.policy).after
    upstream = await _upstream(archive, followed, at, namespaces, (*followers, key)) if followed else None
    if upstream is not None and (at is None or found.tick is None):
        found = Focus(upstream.tick, upstream.previous_tick, upstream.following_tick)
    followed = followed if upstream is None or found.tick == upstream.tick else ""  # it had a schedule then
    instant = asked_at + 1 if found.tick is None else found.tick
    skip = None if found.tick is None else await archive.skip_at(subject.job_id, found.tick)
    previous_skip = None
    if found.tick is None and found.previous is not None and not followed:
        previous_skip = await archive.skip_at(subject.job_id, found.previous)
    closed = await archive.closed([subject.job_id])
    attempts = [] if found.tick is None else await archive.attempts(subject.job_id, found.tick, _ATTEMPTS)
    return Facts(
        subject=subject,
        now=now,
        at=asked_at if found.tick is None else found.tick,
        tick=found.tick,
        previous_tick=found.previous,
        following_tick=found.following,
        attempts=tuple(reversed(attempts)),
        skip=skip,
        before=await archive.run_before(subject.job_id, instant),
        after=await archive.run_after(subject.job_id, instant),
        waiting=tuple(await archive.waiting(subject.job_id, _WAITING)),
        actions=tuple(await _actions(archive, subject.job_id, instant, _decided_at(skip or previous_skip, upstream))),
        closed=closed[0] if closed else None,
        followed=followed,
        upstream=upstream if followed else None,
        follows_since=_since(spans, followed),
        previous_skip=previous_skip,
        then=timeline.span_at(instant if found.tick is None else found.tick),
        successor=_successor(subjects, subject),
    )


def _successor(subjects: list[WhyJob], subject: WhyJob) -> WhyJob | None:
    """The job that now has the key of a removed one."""
    newest = subjects[0]
    return newest if newest.removed_at is None and newest.job_id != subject.job_id else None


async def _made_up_for(archive: Archive, job_id: int, at: int) -> int | None:
    """A backfilled tick that no schedule in the books had, for example one from before the job existed."""
    tick = at - at % _SECOND
    attempts = await archive.attempts(job_id, tick, _ATTEMPTS)
    return tick if any(run.trigger == "backfill" for run in attempts) else None


def _since(spans: list[Span], followed: str) -> int | None:
    """Since when the job follows `followed`, as far as its spans were read."""
    following = (span.from_at for span in spans if followed and parse_policy(span.policy).after == followed)
    return min(following, default=None)


async def _upstream(
    archive: Archive, key: str, at: int | None, namespaces: Namespaces, followers: tuple[str, ...]
) -> Facts | None:
    """The facts of the followed job. None: there is no such job, or the jobs follow each other in a circle."""
    if key in followers or not within(namespaces, key):
        return None
    try:
        facts = await _gather(archive, key, at, namespaces, followers)
    except NotFound:
        return None
    return facts if facts.subject.removed_at is None else None


async def _actions(archive: Archive, job_id: int, instant: int, decided_at: int | None) -> list[ActionFact]:
    """What people did before the tick, and before the tick was decided, which may have been much later."""
    found = await archive.actions_before(job_id, instant, _ACTIONS)
    if decided_at is None:
        return found
    later = await archive.actions_before(job_id, decided_at, _ACTIONS)
    return [*(action for action in later if action.at > instant), *found]


def _decided_at(skip: SkipFact | None, upstream: Facts | None) -> int | None:
    """When an order skipped the tick, or the followed job succeeded. None: it was decided when it came due."""
    if skip is not None:
        return None if skip.controller_id else skip.decided_at + TRANSACTION_US
    ends = () if upstream is None else (run.ended_at for run in upstream.attempts if run.outcome == "completed")
    return next((end for end in ends if end is not None), None)
