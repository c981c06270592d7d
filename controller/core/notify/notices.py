"""Which events the books make, and which webhooks want them.

Pure: rows that are new since the last look go in, notices come out. A notice has a key that says what it is about, and
its id is derived from the key. So a row that is read twice, even by two controllers, makes the same event.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from cronring.schema.duration import parse_duration
from cronring.schema.execution import OF_A_TICK
from cronring.schema.instant import format_instant
from cronring.schema.pages import execution_page, job_page
from cronring.schema.policy import parse_policy
from cronring.schema.window import parse_window

ERROR_LENGTH_MAX: Final = 4_000
# The part of its timeout after which webhooks hear that an execution comes near it.
NEAR_PERCENT: Final = 90


class Event(StrEnum):
    """What webhooks may be told of."""

    FAILED = "failed"  # a tick's last attempt ended without success
    COMPLETED = "completed"  # an execution; told only to webhooks that name this event
    RECOVERED = "recovered"  # the first success after that
    LATE = "late"  # a tick hasn't begun within its job's `late_after`
    TIMEOUT_NEAR = "timeout_near"  # an execution has used NEAR_PERCENT of its timeout
    SKIPPED = "skipped"  # ticks that don't run, a range for one reason
    PAUSED = "paused"  # a job, by its `pause_after_failures`
    ORPHANED = "orphaned"  # a job that somebody made by hand has lost its verb
    BROUGHT_BACK = "brought_back"  # it has that again
    TEST = "test"  # somebody tries whether letters arrive


# What a webhook can ask for.
EVENTS: Final = tuple(event.value for event in Event if event is not Event.TEST)


class NoticeJob(NamedTuple):
    """The job that a notice is about."""

    job_id: int
    key: str
    namespace: str
    module: str
    verb: str
    labels: Mapping[str, str]
    policy: str


class NoticeRun(NamedTuple):
    """An execution that is new, or has ended since. Instants are microseconds since 1970."""

    job: NoticeJob
    execution_id: int
    tick: int
    run_at: int
    attempt: int
    trigger: str
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    outcome: str | None
    error_type: str | None
    error_message: str | None
    retry_at: int | None
    controller_id: str
    runner_id: str


class Passed(NamedTuple):
    """A range of ticks in the books that don't run."""

    job: NoticeJob
    reason: str
    first_tick: int
    last_tick: int
    ticks: int
    decided_at: int


class OverdueTick(NamedTuple):
    """A job whose next tick should have begun."""

    job: NoticeJob
    tick: int
    run_at: int


class Paused(NamedTuple):
    job: NoticeJob
    paused_at: int
    failures: int
    note: str


class Orphaning(NamedTuple):
    """A job was orphaned, or brought back. `deployment`: the one that was deployed or removed."""

    job: NoticeJob
    action_id: int
    action: str
    at: int
    deployment: str
    actor: str
    note: str


class GivenUp(NamedTuple):
    """The tick's last attempt, as its planned retry will not come. `last_success`: the job's latest successful tick."""

    run: NoticeRun
    last_success: int | None


class Failing(NamedTuple):
    """The execution by which a job came to be failing."""

    execution_id: int
    tick: int


class Notice(NamedTuple):
    """`key` names it among all events of the cluster. `at`: when it happened. `data` goes to receivers."""

    event: Event
    job: NoticeJob
    key: str
    at: int
    data: dict[str, Any]


class Decided(NamedTuple):
    """`failing`: jobs whose state has changed, with their new state (None: well). `retrying`: failed attempts whose
    retry is awaited.
    """

    notices: list[Notice]
    failing: dict[int, Failing | None]
    retrying: list[NoticeRun]


class Subscription(NamedTuple):
    """What a webhook wants to be told of. An empty field means all; empty `events`: all but COMPLETED. `since`: only
    what happened from then on. `outcomes`: only failures that ended so.
    """

    events: tuple[str, ...]
    reasons: tuple[str, ...]
    namespace: str
    module: str
    job: str
    labels: Mapping[str, str]
    since: int
    outcomes: tuple[str, ...] = ()

    def wants(self, notice: Notice) -> bool:
        job = notice.job
        return (
            notice.at >= self.since
            and (notice.event.value in self.events or (not self.events and notice.event is not Event.COMPLETED))
            and (not self.outcomes or notice.event is not Event.FAILED or notice.data["outcome"] in self.outcomes)
            and (not self.reasons or notice.event is not Event.SKIPPED or notice.data["reason"] in self.reasons)
            and self.namespace in {"", job.namespace}
            and self.module in {"", job.module}
            and self.job in {"", job.key}
            and all(job.labels.get(name) == value for name, value in self.labels.items())
        )


def decide(
    runs: Sequence[NoticeRun], given_up: Sequence[GivenUp], failing: Mapping[int, Failing], late_after: int = 0
) -> Decided:
    """Notices of failures, successes, recoveries and late starts. `failing`: jobs of these runs that failed before.

    `late_after`: the cluster's default in microseconds, for jobs without one of their own; 0: none.
    """
    notices = [late_start(run, late_after) for run in runs]
    now: dict[int, Failing | None] = dict(failing)
    retrying: list[NoticeRun] = []
    told: list[Notice] = []
    for run in sorted(runs, key=_ended):
        match run.outcome:
            case None | "cancelled":
                pass  # it still runs, or somebody cancelled it: neither a failure nor a success
            case "completed":
                told.append(_completed(run))
                before = now.get(run.job.job_id)
                # Only a run that was claimed after the failure. Runs may overlap and ends may come late, so a success
                # may be the older one.
                if before is not None and run.execution_id > before.execution_id:
                    told.append(_recovered(run, before))
                    now[run.job.job_id] = None
            case _ if run.retry_at is not None:
                retrying.append(run)
            case _:
                told.append(_failed(run))
                now[run.job.job_id] = _later(now.get(run.job.job_id), run)
    for run, last_success in given_up:
        told.append(_failed(run))
        if last_success is not None and last_success > run.tick:  # the job has succeeded meanwhile
            told.append(_recovered_meanwhile(run, last_success))
        else:
            now[run.job.job_id] = _later(now.get(run.job.job_id), run)
    changed = {job_id: state for job_id, state in now.items() if state != failing.get(job_id)}
    return Decided([notice for notice in notices if notice is not None] + told, changed, retrying)


def _ended(run: NoticeRun) -> tuple[int, int]:
    return (run.ended_at or 0, run.execution_id)


def _later(before: Failing | None, run: NoticeRun) -> Failing:
    if before is not None and before.execution_id > run.execution_id:
        return before
    return Failing(run.execution_id, run.tick)


def late_after_us(policy: str, late_after: int) -> int:
    """A job's `late_after` in microseconds, by its policy's text; without one, the cluster's. 0: none."""
    text = parse_policy(policy).late_after
    return parse_duration(text) * 1_000 if text else late_after


def late_start(run: NoticeRun, late_after: int) -> Notice | None:
    """The notice of a run by schedule that began too late. Until its start is reported, its claim counts as such."""
    limit = late_after_us(run.job.policy, late_after)
    began = run.claimed_at if run.started_at is None else run.started_at
    if not limit or run.trigger not in OF_A_TICK or began - run.run_at <= limit:
        return None
    return _late(run.job, run.tick, run.run_at, limit, began, run)


def overdue(row: OverdueTick, now: int, late_after: int = 0) -> Notice | None:
    """The notice of a next tick that nobody has claimed in time. A tick outside the window won't run: it isn't late."""
    policy = parse_policy(row.job.policy)
    limit = late_after_us(row.job.policy, late_after)
    if not limit or now - row.run_at <= limit:
        return None
    if policy.window and not parse_window(policy.window, policy.timezone).contains(row.tick):
        return None
    return _late(row.job, row.tick, row.run_at, limit, now, None)


def _late(job: NoticeJob, tick: int, run_at: int, limit: int, reached: int, run: NoticeRun | None) -> Notice:
    data = {
        "tick": format_instant(tick),
        "run_at": _exact(run_at),
        "started": run is not None,
        "lateness_ms": (reached - run_at) // 1_000,
        "late_after_ms": limit // 1_000,
    }
    if run is not None:
        data |= {"execution_id": run.execution_id, "attempt": run.attempt, "trigger": run.trigger}
    return Notice(Event.LATE, job, f"late:{job.job_id}:{tick}", run_at + limit, data)


def timeout_near(run: NoticeRun, timeout_ms: int) -> Notice:
    """The notice of an execution that has used NEAR_PERCENT of `timeout_ms`, counted from its claim."""
    data = {
        "tick": format_instant(run.tick),
        "run_at": _exact(run.run_at),
        "attempt": run.attempt,
        "trigger": run.trigger,
        "execution_id": run.execution_id,
        "claimed_at": _exact(run.claimed_at),
        "timeout_ms": timeout_ms,
        "timeout_at": _exact(run.claimed_at + timeout_ms * 1_000),
        "running": run.outcome is None,
        "controller": run.controller_id,
        "runner": run.runner_id,
    }
    at = run.claimed_at + timeout_ms * NEAR_PERCENT // 100 * 1_000
    return Notice(Event.TIMEOUT_NEAR, run.job, f"timeout_near:{run.execution_id}", at, data)


def skipped(row: Passed) -> Notice:
    """The notice of a skipped range. A range that grows keeps its beginning, so it is told once."""
    data = {
        "reason": row.reason,
        "first_tick": format_instant(row.first_tick),
        "last_tick": format_instant(row.last_tick),
        "ticks": row.ticks,
    }
    # Without its id or its end: a range that grows gets new ones, and would be told each time.
    key = f"skipped:{row.job.job_id}:{row.reason}:{row.first_tick}"
    return Notice(Event.SKIPPED, row.job, key, row.decided_at, data)


def paused(row: Paused) -> Notice:
    data = {"failures": row.failures, "reason": row.note}
    return Notice(Event.PAUSED, row.job, f"paused:{row.job.job_id}:{row.paused_at}", row.paused_at, data)


def orphaning_notice(row: Orphaning) -> Notice:
    event = Event.ORPHANED if row.action == "orphan" else Event.BROUGHT_BACK
    data = {"deployment": row.deployment, "by": row.actor, "note": row.note}
    return Notice(event, row.job, f"{event.value}:{row.action_id}", row.at, data)


def _failed(run: NoticeRun) -> Notice:
    assert run.ended_at is not None, "it has ended"
    return Notice(Event.FAILED, run.job, f"failed:{run.execution_id}", run.ended_at, _of_run(run))


def _completed(run: NoticeRun) -> Notice:
    assert run.ended_at is not None, "it has ended"
    return Notice(Event.COMPLETED, run.job, f"completed:{run.execution_id}", run.ended_at, _of_run(run))


def _recovered(run: NoticeRun, before: Failing) -> Notice:
    assert run.ended_at is not None, "it has ended"
    data = _of_run(run) | {
        "failed_execution_id": before.execution_id,
        "failed_tick": format_instant(before.tick) if before.tick else None,
    }
    return Notice(Event.RECOVERED, run.job, f"recovered:{run.execution_id}", run.ended_at, data)


def _recovered_meanwhile(run: NoticeRun, last_success: int) -> Notice:
    assert run.ended_at is not None, "it has ended"
    data = {
        "tick": format_instant(last_success),
        "failed_execution_id": run.execution_id,
        "failed_tick": format_instant(run.tick),
    }
    return Notice(Event.RECOVERED, run.job, f"recovered:after:{run.execution_id}", run.ended_at, data)


def _of_run(run: NoticeRun) -> dict[str, Any]:
    began = run.claimed_at if run.started_at is None else run.started_at
    return {
        "tick": format_instant(run.tick),
        "run_at": _exact(run.run_at),
        "attempt": run.attempt,
        "trigger": run.trigger,
        "outcome": run.outcome,
        "error_type": run.error_type or "",
        "error_message": (run.error_message or "")[:ERROR_LENGTH_MAX],
        "execution_id": run.execution_id,
        "started_at": _exact(began),
        "ended_at": _exact(run.ended_at or began),
        "lateness_ms": (began - run.run_at) // 1_000,
        "controller": run.controller_id,
        "runner": run.runner_id,
    }


def _exact(instant: int) -> str:
    """To the microsecond: only ticks are whole seconds."""
    return f"{format_instant(instant)[:-1]}.{instant % 1_000_000:06}Z"


class Letter(NamedTuple):
    """A notice as it is sent: the same id and the same body for every receiver and every try.

    The body is what Standard Webhooks recommends: `type`, `timestamp` and `data`; and the id, as in the header.
    """

    event_id: str
    event: str
    job: str
    body: str


def event_id(cluster: str, key: str) -> str:
    return f"evt_{hashlib.blake2b(f'{cluster}:{key}'.encode(), digest_size=16).hexdigest()}"


def letter(cluster: str, notice: Notice, console_url: str) -> Letter:
    """`console_url`: where browsers find the console."""
    own_id = event_id(cluster, notice.key)
    job = notice.job
    execution_id = notice.data.get("execution_id")
    page = job_page(job.key) if execution_id is None else execution_page(execution_id)
    data = {
        "cluster": cluster,
        "job": job.key,
        "namespace": job.namespace,
        "module": job.module,
        "verb": job.verb,
        "labels": dict(job.labels),
        "url": f"{console_url}{page}",
        **notice.data,
    }
    body = _body(own_id, f"job.{notice.event.value}", notice.at, data)
    return Letter(own_id, notice.event.value, job.key, body)


def trial_letter(cluster: str, webhook: str, now: int) -> Letter:
    """A letter by which somebody tries a webhook."""
    own_id = event_id(cluster, f"test:{webhook}:{now}")
    data = {
        "cluster": cluster,
        "webhook": webhook,
        "message": "This is what cronring sends when somebody wants to see whether it arrives.",
    }
    return Letter(own_id, Event.TEST.value, "", _body(own_id, f"webhook.{Event.TEST.value}", now, data))


def _body(own_id: str, kind: str, at: int, data: Mapping[str, Any]) -> str:
    body = {"id": own_id, "type": kind, "timestamp": _exact(at), "data": data}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def addressed(
    cluster: str, subscriptions: Mapping[int, Subscription], notices: Iterable[Notice], console_url: str
) -> list[tuple[int, Letter]]:
    """(webhook id, letter) of everything that some webhook wants."""
    found: list[tuple[int, Letter]] = []
    for notice in notices:
        wanting = [webhook_id for webhook_id, subscription in subscriptions.items() if subscription.wants(notice)]
        if wanting:
            told = letter(cluster, notice, console_url)
            found += [(webhook_id, told) for webhook_id in wanting]
    return found
