"""What happened to a cluster, as a list for people: what members did, which jobs failed, and what people did."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from cronring.controller.core.ledger.lives import CONTROLLER, LeaseGap, Life, gaps
from cronring.controller.core.ledger.why_words import length
from cronring.schema.execution import FAILURES

# Controllers lose their leases, and get them back, within some seconds of each other when PostgreSQL goes or returns.
_AROUND_US: Final = 10_000_000
_CALL_US: Final = 60_000_000  # the transactions of a call in bulk are one entry for each minute that it lasts
_DONE: Final = {
    "activate": "made active", "backfill": "asked for a backfill of", "bring_back": "brought back",
    "cancel": "cancelled",
    "cancel_activation": "took back a run of", "cancel_execution": "cancelled a run of", "create": "made",
    "delete": "deleted", "delete_template": "deleted the template", "deploy": "deployed", "orphan": "orphaned",
    "pause": "paused", "restore": "restored", "resume": "resumed", "retry_execution": "retried a run of",
    "set_template": "set the template", "skip_next": "skipped the next tick of", "trigger": "ran",
    "undeploy": "undeployed", "update": "changed",
}  # fmt: skip


class Happened(NamedTuple):
    """`subject`: the member, job, deployment or template. `detail`: the verb's error message, which only some callers
    may see.

    `number`: its execution's or action's id; 0: none.
    """

    at: int
    kind: str
    subject: str
    text: str
    job: str = ""
    execution_id: int = 0
    number: int = 0
    detail: str = ""

    @property
    def position(self) -> tuple[int, str]:
        """Sorts by time, and is unique, so that a page can go on behind it."""
        return self.at, f"{self.kind} {self.subject} {self.number}"


class BadRun(NamedTuple):
    """A run without success. `recovered_...`: of the job's next run, if that completed; id 0: none has."""

    execution_id: int
    job: str
    tick: int
    ended_at: int
    outcome: str
    error_type: str
    error_message: str
    before_outcome: str
    recovered_id: int
    recovered_at: int | None


class Deed(NamedTuple):
    """What somebody did in one transaction, to `times` subjects of one kind. `subjects`: the first of them, in order.

    `number`: the id of its last action. `job` and `execution_id`: which one it was done to; "" and 0: to none.
    """

    number: int
    at: int
    action: str
    actor: str
    note: str
    times: int
    subjects: Sequence[str]
    job: str
    execution_id: int


def of_deeds(deeds: Iterable[Deed]) -> Iterator[Happened]:
    """What people did. `deeds`: the newest first. A call in bulk takes several transactions, and is told once."""
    last: Deed | None = None
    for deed in deeds:
        if last is not None and _is_one_call(last, deed):
            last = last._replace(times=last.times + deed.times, subjects=deed.subjects)
            continue
        if last is not None:
            yield _of_deed(last)
        last = deed
    if last is not None:
        yield _of_deed(last)


def _is_one_call(later: Deed, deed: Deed) -> bool:
    alike = (later.action, later.actor, later.note) == (deed.action, deed.actor, deed.note)
    return alike and later.times > 1 and deed.times > 1 and later.at - deed.at <= _CALL_US


def _of_deed(deed: Deed) -> Happened:
    done = _DONE.get(deed.action, f"{deed.action.replace('_', ' ')}:")
    more = f" and {deed.times - len(deed.subjects):,} more" if deed.times > len(deed.subjects) else ""
    note = f": {deed.note}" if deed.note else "."
    text = f"{deed.actor or 'Somebody'} {done} {', '.join(deed.subjects)}{more}{note}"
    job, execution_id = (deed.job, deed.execution_id) if deed.times == 1 else ("", 0)
    return Happened(deed.at, deed.action, deed.subjects[0], text, job, execution_id, deed.number)


def of_lives(lives: Sequence[Life]) -> Iterator[Happened]:
    """Which members came and went. An outage of all controllers is told once, and not for each of them."""
    outages = gaps(lives)
    yield from _of_outages(outages, lives)
    by_member: dict[tuple[str, str], list[Life]] = defaultdict(list)
    for life in sorted(lives, key=lambda life: life.from_at):
        by_member[life.kind, life.member].append(life)
    for (kind, member), own in by_member.items():
        before: Life | None = None
        for life in own:
            if before is None or not (kind == CONTROLLER and _is_shared(outages, life.from_at, before.until_at)):
                yield _came(life, before)
            if life.until_at is not None:
                following = next((each.from_at for each in own if each.from_at >= life.until_at), None)
                if not (kind == CONTROLLER and not life.departed and _is_shared(outages, following, life.until_at)):
                    yield _went(kind, member, life.until_at, life)
            before = life


def _is_shared(outages: Iterable[LeaseGap], came_at: int | None, went_at: int | None) -> bool:
    """Whether a controller was away just while no controller held a lease."""
    if came_at is None or went_at is None:
        return False
    return any(
        abs(gap.from_at - went_at) <= _AROUND_US and gap.until_at is not None
        and abs(gap.until_at - came_at) <= _AROUND_US
        for gap in outages
    )  # fmt: skip


def _of_outages(outages: Iterable[LeaseGap], lives: Sequence[Life]) -> Iterator[Happened]:
    members = [life for life in lives if life.kind == CONTROLLER]
    for gap in outages:
        went = {life.member for life in members if life.until_at is not None and _near(life.until_at, gap.from_at)}
        came = {life.member for life in members if gap.until_at is not None and _near(life.from_at, gap.until_at)}
        lasted = "" if gap.until_at is None else f" for {length(gap.until_at - gap.from_at)}"
        cause = "PostgreSQL was away, or all of them stood still" if went & came else "all of them had gone"
        yield Happened(gap.from_at, "no_lease", "", f"No controller held a lease{lasted}: {cause}.")
        if gap.until_at is not None:
            yield Happened(
                gap.until_at, "lease_again", "",
                f"Controllers held leases again: {', '.join(sorted(came))}. What was overdue follows on_missed.",
            )  # fmt: skip


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= _AROUND_US


def _came(life: Life, before: Life | None) -> Happened:
    name = life.kind.capitalize()
    if before is None or before.until_at is None:
        what = f"{name} {life.member} joined."
        return Happened(life.from_at, f"{life.kind}_joined", life.member, what)
    away = length(life.from_at - before.until_at)
    held = "held a lease again" if life.kind == CONTROLLER else "was heard again"
    return Happened(life.from_at, f"{life.kind}_back", life.member, f"{name} {life.member} {held}, after {away}.")


def _went(kind: str, member: str, at: int, life: Life) -> Happened:
    name = kind.capitalize()
    if life.departed:
        return Happened(at, f"{kind}_left", member, f"{name} {member} left.")
    how = "its lease ran out" if kind == CONTROLLER else "nobody heard of it any more"
    return Happened(at, f"{kind}_lost", member, f"{name} {member} was lost: {how}.")


def of_troubles(troubles: Iterable[BadRun]) -> Iterator[Happened]:
    """Which jobs began to fail, and which recovered: one entry for all failures in a row."""
    in_a_row: dict[str, int] = defaultdict(int)
    for run in sorted(troubles, key=lambda run: (run.tick, run.execution_id)):
        in_a_row[run.job] += 1
        if run.before_outcome not in FAILURES:
            what = run.error_type or run.outcome.replace("_", " ")
            yield Happened(
                run.ended_at, "failing", run.job, f"{run.job} began to fail: {what}.", run.job, run.execution_id,
                run.execution_id, run.error_message.strip().partition("\n")[0],
            )  # fmt: skip
        if run.recovered_at is not None:
            count = in_a_row.pop(run.job)
            runs = "1 run" if count == 1 else f"{count:,} runs"
            yield Happened(
                run.recovered_at, "recovered", run.job, f"{run.job} completed again, after {runs} without success.",
                run.job, run.recovered_id, run.recovered_id,
            )  # fmt: skip
