"""What a verb may do to jobs: `ctx.jobs`. Each call is done once, through the run's own runner; docs/ctx-jobs.md."""

from __future__ import annotations

import json
import math
import select
from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from cronring.declare import json_instant, read_options, require_text

if TYPE_CHECKING:
    from typing_extensions import Unpack  # known to every type checker, and never imported

    from cronring.declare import Instant, Options

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LOOK_S = 0.2  # another thread may read this thread's answer: how often this thread looks for it
_REQUEST_BYTES_MAX = 256 * 1024
_WITHIN_MAX = timedelta(hours=1)
WITHIN = 30.0  # seconds
_OWN = object()

Result = TypeVar("Result")


class JobsError(Exception):
    """A call of `ctx.jobs` has failed. `reason` is the API's word for why: "CONFLICT", "INVALID", ..."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class JobNotFound(JobsError):
    """There is no such job, verb or template. Nothing was changed."""


class JobRefused(JobsError):
    """The call is not possible now, or not allowed. Nothing was changed. The message says what has to be different."""


class JobsUnavailable(JobsError):
    """Mostly: no controller has answered in time. The message says whether the call may have been done all the same."""


class JobKey(str):
    """A job's key, `module.verb:name`. Awaiting a key gives the key, so that async verbs can `await` each call."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, JobKey]:
        """What an async verb's call is for type checkers."""
        return self
        yield


class JobInfo(NamedTuple):
    """A job as it was when `get` was called. Awaiting it gives it, as with JobKey."""

    key: str
    schedule: str  # "0 6 1 * *", "every 30m", "at 2026-03-01T08:00:00Z", "manual"
    status: str  # as `cronring jobs list` shows it: "scheduled", "running", "paused"...
    source: str  # "api": made by hand, or by ctx.jobs; "annotation": declared, and only changed, in its module
    paused: bool
    next_tick: datetime | None
    payload: Any  # None: none
    labels: dict[str, str]
    template: str  # the template that it was made from; "": none
    last_outcome: str  # the outcome of its last run that has ended; "": no run has

    def __await__(self) -> Generator[Any, None, JobInfo]:
        """What an async verb's call is for type checkers."""
        return self
        yield


class ToldAnswer(NamedTuple):
    """What the runner says of a call. `reason` "": it was done, and `value` is JSON."""

    value: str
    reason: str
    problem: str

    def result(self) -> Any:
        """Raises JobsError."""
        if not self.reason:
            return json.loads(self.value)
        kind = _ERRORS.get(self.reason, JobRefused)
        raise kind(self.problem, self.reason)


_ERRORS: dict[str, type[JobsError]] = {
    "NOT_FOUND": JobNotFound,
    **dict.fromkeys(("UNAVAILABLE", "TOO_MANY", "UNEXPECTED", "STATEMENT_REFUSED"), JobsUnavailable),
}


class JobsAsker(Protocol):
    """How a run asks its runner. For async verbs `ask` is a coroutine; for sync verbs it blocks."""

    def ask(
        self, execution_id: int, method: str, request: dict[str, Any], within_ms: int, convert: Callable[[Any], Result]
    ) -> Any:
        """Returns `convert(result)`. Raises JobsError."""
        ...


class Jobs:
    """Creates, changes and triggers jobs of this run's namespace. In an async verb, `await` each call.

    A call is done once, even if the runner has to send it several times. Another attempt at the same tick is another
    execution, and makes its calls again: docs/ctx-jobs.md says how to write such verbs.

    `within`: how long to wait for an answer, in seconds or as a timedelta, up to an hour. Every method raises
    JobNotFound, JobRefused or JobsUnavailable; TypeError and ValueError for arguments that can't be sent.
    """

    __slots__ = ("_asker", "_execution_id")

    def __init__(self, asker: JobsAsker, execution_id: int) -> None:
        self._asker = asker
        self._execution_id = execution_id

    def create(
        self,
        verb: str,
        name: str,
        *,
        cron: str | None = None,
        every: str | None = None,
        at: Instant | None = None,
        anchor: Instant | None = None,
        labels: Mapping[str, str] | None = None,
        template: str = "",
        run_now: bool = False,
        note: str = "",
        within: float | timedelta = WITHIN,
        **options: Unpack[Options],
    ) -> JobKey:
        """Make the job `verb:name`, and return its key. If the same job exists already, nothing changes.

        `verb`: "module.verb". Give one of `cron`, `every` and `at` at most. Without any, the job runs when it is
        triggered, or as its `template` says. `options`: those of the decorators. Raises JobRefused if a different job
        has that name.
        """
        _require_name("create", "verb", verb, "billing.invoice")
        if "." not in verb:
            raise ValueError(f'ctx.jobs.create: {verb!r} names no verb of a module; write verb="billing.invoice"')
        _require_name("create", "name", name, "customer-7")
        request = {"verb": verb, "name": name, "template": template, "run_now": bool(run_now)}
        request.update(_spec("create", cron, every, at, anchor, labels, dict(options)))
        if "schedule" not in request and not template:
            request["schedule"] = "manual"
        return self._ask("create", request, note, within, JobKey)

    def update(
        self,
        key: str,
        *,
        cron: str | None = None,
        every: str | None = None,
        at: Instant | None = None,
        anchor: Instant | None = None,
        labels: Mapping[str, str | None] | None = None,
        note: str = "",
        within: float | timedelta = WITHIN,
        **options: Unpack[Options],
    ) -> JobKey:
        """Change only what is given. None removes an option or a label.

        Only jobs that were made by `create`, or through the API, can be changed here; declared jobs in their module.
        """
        _require_name("update", "key", key, "billing.invoice:customer-7")
        given = dict(options)
        request: dict[str, Any] = {"key": key, **_spec("update", cron, every, at, anchor, labels, given)}
        request["options"] = {**request["options"], **{name: None for name, value in given.items() if value is None}}
        if not (request["options"] or request["labels"] or "schedule" in request or "anchor" in request):
            raise ValueError(
                'ctx.jobs.update: nothing is given to change; write cron="0 7 * * *", retries=3, labels=...'
            )
        return self._ask("update", request, note, within, JobKey)

    def delete(self, key: str, *, note: str = "", within: float | timedelta = WITHIN) -> JobKey:
        """Remove a job that was made by `create`, or through the API. Its present runs go on to their end."""
        _require_name("delete", "key", key, "billing.invoice:customer-7")
        return self._ask("delete", {"key": key}, note, within, JobKey)

    def pause(self, key: str, *, note: str = "", within: float | timedelta = WITHIN) -> JobKey:
        """Skip the job's ticks until `resume`. A job that is paused already stays paused."""
        _require_name("pause", "key", key, "billing.invoice:customer-7")
        return self._ask("pause", {"key": key}, note, within, JobKey)

    def resume(self, key: str, *, note: str = "", within: float | timedelta = WITHIN) -> JobKey:
        """End a pause. A job that isn't paused stays as it is."""
        _require_name("resume", "key", key, "billing.invoice:customer-7")
        return self._ask("resume", {"key": key}, note, within, JobKey)

    def run(self, key: str, *, payload: Any = _OWN, note: str = "", within: float | timedelta = WITHIN) -> JobKey:
        """Run the job once, as soon as it may run; don't wait for the run. `payload` replaces the job's own."""
        _require_name("run", "key", key, "billing.invoice:customer-7")
        request: dict[str, Any] = {"key": key}
        if payload is not _OWN:
            request["payload"] = read_options("ctx.jobs.run", {"payload": payload}).get("payload")
        return self._ask("trigger", request, note, within, JobKey)

    def get(self, key: str, *, within: float | timedelta = WITHIN) -> JobInfo:
        """The job as it stands."""
        _require_name("get", "key", key, "billing.invoice:customer-7")
        return self._ask("get", {"key": key}, "", within, _info)

    def _ask(
        self,
        method: str,
        request: dict[str, Any],
        note: str,
        within: float | timedelta,
        convert: Callable[[Any], Result],
    ) -> Result:
        if note:
            require_text("ctx.jobs", "note", note, 'note="new customer"')
            request["note"] = note
        size = len(json.dumps(request))
        if size > _REQUEST_BYTES_MAX:
            raise ValueError(f"ctx.jobs: this call has {size} bytes; at most {_REQUEST_BYTES_MAX} are passed on")
        answer: Result = self._asker.ask(self._execution_id, method, request, _within_ms(within), convert)
        return answer


class NoAsker:
    """The asker of a Context that belongs to no run."""

    def ask(self, execution_id: int, method: str, *_: object) -> Any:  # noqa: ARG002  # as JobsAsker has it
        """Raises RuntimeError."""
        raise RuntimeError(
            f"ctx.jobs.{method}: this Context is of no run, so nobody can be asked; cronring.testing runs verbs with "
            "one that can"
        )


class Mailbox(Protocol):
    """Where a sync verb's answers come in."""

    def fileno(self) -> int: ...
    def send(self, execution_id: int, method: str, request: dict[str, Any], within_ms: int) -> int:
        """The call's number."""
        ...

    def taken(self, execution_id: int, number: int) -> ToldAnswer | None:
        """None: it is not here yet."""
        ...


class WaitingAsker:
    """For sync verbs: waits here, in a file that VerbStopped may be raised in (cronring/child/stopping.py)."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def ask(
        self, execution_id: int, method: str, request: dict[str, Any], within_ms: int, convert: Callable[[Any], Result]
    ) -> Result:
        """Raises JobsError."""
        mailbox = self._mailbox
        number = mailbox.send(execution_id, method, request, within_ms)
        while True:
            answer = mailbox.taken(execution_id, number)
            if answer is not None:
                return convert(answer.result())
            select.select([mailbox.fileno()], [], [], _LOOK_S)


def _spec(
    method: str,
    cron: str | None,
    every: str | None,
    at: Instant | None,
    anchor: Instant | None,
    labels: Mapping[str, str | None] | None,
    options: dict[str, Any],
) -> dict[str, Any]:
    who = f"ctx.jobs.{method}"
    schedules = {name: value for name, value in (("cron", cron), ("every", every), ("at", at)) if value is not None}
    if len(schedules) > 1:
        raise ValueError(f"{who}: {' and '.join(schedules)} exclude each other; give one of them")
    spec: dict[str, Any] = {"options": read_options(who, options), "labels": _labels(who, labels)}
    for name, value in schedules.items():
        if name == "at":
            spec["schedule"] = f"at {json_instant(who, name, value)}"
        else:
            require_text(who, name, value, 'cron="0 6 1 * *"' if name == "cron" else 'every="30m"')
            spec["schedule"] = value if name == "cron" else f"every {value}"
    if anchor is not None:
        spec["anchor"] = json_instant(who, "anchor", anchor)
    return spec


def _labels(who: str, labels: Mapping[str, str | None] | None) -> dict[str, str | None]:
    found = dict(labels or {})
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, (str, type(None))):
            raise TypeError(f"{who} takes labels as texts, not {key!r}: {value!r}")
    return found


def _require_name(method: str, what: str, value: object, example: str) -> None:
    require_text(f"ctx.jobs.{method}", what, value, f'{what}="{example}"')
    if not value:
        raise ValueError(f'ctx.jobs.{method}: its {what} is empty; write {what}="{example}"')


def _within_ms(within: float | timedelta) -> int:
    seconds = within.total_seconds() if isinstance(within, timedelta) else within
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"ctx.jobs takes within as seconds or a timedelta, not {within!r}")
    if not math.isfinite(seconds) or not 0 < seconds <= _WITHIN_MAX.total_seconds():
        raise ValueError(f"ctx.jobs: within={within!r} is no time to wait: it must be above 0, and an hour at most")
    return max(1, round(seconds * 1_000))


def _info(job: dict[str, Any]) -> JobInfo:
    next_tick_us, payload = job.pop("next_tick_us"), job.pop("payload_json")
    return JobInfo(
        **job,
        next_tick=None if next_tick_us is None else _EPOCH + timedelta(microseconds=next_tick_us),
        payload=json.loads(payload) if payload else None,
    )
