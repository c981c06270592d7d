"""What a verb is told about the execution it is part of."""

from __future__ import annotations

import json
import logging
import math
import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from cronring.jobs import Jobs, JobsAsker, NoAsker

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DURATION = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII)
_NEXT_IN_MAX = timedelta(days=36_500)
METRICS_BYTES_MAX = 4096
_METRIC_TEXT_MAX = 200


class VerbStopped(BaseException):
    """Raised inside a verb that must stop now: its deadline has passed, or it was cancelled.

    Sync verbs get it wherever they are; an async verb gets asyncio.CancelledError instead, unless it blocks its event
    loop. It is no Exception, so that `except Exception` doesn't swallow it. Clean up within two seconds and let it
    pass: a verb that goes on is killed.
    """


class RunFacts(NamedTuple):
    """An execution as the runner describes it. Instants are microseconds since 1970 in PostgreSQL's clock."""

    execution_id: int
    job: str
    tick_us: int
    run_at_us: int
    deadline_us: int
    attempt: int
    trigger: str
    started_us: int
    missed: int = 0
    previous_tick_us: int = 0  # 0: there is none, as below
    previous_success_us: int = 0
    payload_json: str = ""  # "": none
    timezone: str = ""  # IANA name; "": UTC
    utc_offset_s: int | None = None  # of that zone at the tick; None: not known
    interval: bool = False  # it is an @every job


class Context:
    """One execution. Instants are aware datetimes in UTC, by PostgreSQL's clock."""

    __slots__ = ("_asker", "_facts", "_moved", "_reported")

    def __init__(
        self,
        facts: RunFacts,
        moved: dict[int, int] | None = None,
        reported: dict[int, dict[str, Any]] | None = None,
        asker: JobsAsker | None = None,
    ) -> None:
        """By execution id, `moved` takes what `next_in` says in milliseconds, and `reported` what `report` says.

        `asker`: whom `jobs` asks.
        """
        self._facts = facts
        self._moved = {} if moved is None else moved
        self._reported = {} if reported is None else reported
        self._asker: JobsAsker = NoAsker() if asker is None else asker

    @property
    def job(self) -> str:
        """The job's key: `module.verb`, or `namespace/module.verb`."""
        return self._facts.job

    @property
    def execution_id(self) -> int:
        return self._facts.execution_id

    @property
    def fence(self) -> int:
        """A number that grows with every claim of the job.

        Another execution may run in place of one that was taken for dead. With this number, a handler's own
        transaction or another system can refuse the old one: docs/fencing.md says how.
        """
        return self._facts.execution_id

    @property
    def traceparent(self) -> str:
        """This execution by W3C Trace Context: `00-TRACE-SPAN-01`.

        Begin your spans below it, and send it as the header `traceparent`. Then everything that the run does is one
        trace, and the execution shows its id as `trace_id`.
        """
        from cronring.trace import traceparent  # noqa: PLC0415  # few verbs ask, and hashlib takes memory

        return traceparent(self._facts.execution_id, self._facts.job, self._facts.tick_us)

    @property
    def attempt(self) -> int:
        """1 for the first attempt at this tick."""
        return self._facts.attempt

    @property
    def trigger(self) -> str:
        """Why it runs: "schedule", "catch_up", "backfill", "retry", "manual" or "after".

        "schedule": its tick has come. "catch_up": the tick is run late, or ticks before it were missed. "after": the
        job that it follows has succeeded for this tick.
        """
        return self._facts.trigger

    @property
    def tick(self) -> datetime:
        """The nominal instant, exactly on the schedule. A job that follows another one has the ticks of that job."""
        return _instant(self._facts.tick_us)

    @property
    def timezone(self) -> str:
        """The zone of the job's schedule, by its IANA name; "UTC" if it has none."""
        return self._facts.timezone or "UTC"

    @property
    def local_tick(self) -> datetime:
        """The tick as the clocks of the job's zone show it, with that zone (or its offset, where there is no data)."""
        return self.tick.astimezone(_zone(self._facts))

    @property
    def run_at(self) -> datetime:
        """When it was to start: the tick and its jitter."""
        return _instant(self._facts.run_at_us)

    @property
    def deadline(self) -> datetime:
        """When the soft timeout cancels it."""
        return _instant(self._facts.deadline_us)

    @property
    def lateness(self) -> timedelta:
        """Actual start minus run_at."""
        return timedelta(microseconds=self._facts.started_us - self._facts.run_at_us)

    @property
    def missed(self) -> int:
        """How many ticks were missed since the previous run (superseded, missed_policy, no_runner)."""
        return self._facts.missed

    @property
    def previous_tick(self) -> datetime | None:
        """The tick of the previous run, however that run ended; None for the first run."""
        return _instant(self._facts.previous_tick_us) if self._facts.previous_tick_us else None

    @property
    def previous_success(self) -> datetime | None:
        """The tick of the latest run that completed; None if none has. Work up to that tick is done."""
        return _instant(self._facts.previous_success_us) if self._facts.previous_success_us else None

    @property
    def payload(self) -> Any:
        """The JSON value that it was given; None for none."""
        return json.loads(self._facts.payload_json) if self._facts.payload_json else None

    def next_in(self, delay: str | timedelta) -> None:
        """Start the next run of this job `delay` ("5m", "1h30m", a timedelta) after the end of this run.

        The interval then counts from there. The last call of a run counts, and only if the run completes. After a run
        that fails, times out or is cancelled, the interval goes on as before, and retries come as the policy says.

        Raises RuntimeError in a job that isn't declared by @every. Raises ValueError for a delay that can't be read, is
        not above zero, or is longer than 36,500 days.
        """
        if not self._facts.interval:
            raise RuntimeError(
                f"{self.job} has no interval that could be moved: only jobs declared by @every may call ctx.next_in"
            )
        self._moved[self._facts.execution_id] = _delay_ms(delay)

    def report(self, **metrics: float | str | bool) -> None:
        """Keep figures of this run with its execution: `ctx.report(items_crawled=25)`. The last value of a name counts.

        Raises TypeError for a value that is neither a number nor a text. Raises ValueError for a number that is not
        finite, a text of more than 200 characters, or more than 4 KiB of JSON in all. After an error, the figures that
        were reported before stay.
        """
        for name, value in metrics.items():
            _check_metric(name, value)
        together = {**self._reported.get(self._facts.execution_id, {}), **metrics}
        size = len(json.dumps(together, separators=(",", ":")))
        if size > METRICS_BYTES_MAX:
            raise ValueError(f"ctx.report: that makes {size} bytes of JSON; a run keeps {METRICS_BYTES_MAX} at most")
        self._reported[self._facts.execution_id] = together

    @property
    def jobs(self) -> Jobs:
        """Creates, changes and triggers jobs of this run's namespace, each call once: docs/ctx-jobs.md."""
        return Jobs(self._asker, self._facts.execution_id)

    @property
    def log(self) -> logging.Logger:
        """A logger under the job's name. Its lines are kept with the execution, like anything printed."""
        return logging.getLogger(self._facts.job)

    def __repr__(self) -> str:
        return f"<Context {self.job} tick={self.tick.isoformat()} attempt={self.attempt} execution={self.execution_id}>"


def _instant(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _zone(facts: RunFacts) -> tzinfo:
    """The job's zone. If this machine's zone data is absent or older, the offset that the cluster sent counts."""
    if not facts.timezone:
        return timezone.utc
    offset = None if facts.utc_offset_s is None else timedelta(seconds=facts.utc_offset_s)
    try:
        import zoneinfo  # noqa: PLC0415  # few verbs ask

        zone = zoneinfo.ZoneInfo(facts.timezone)
    except (ImportError, OSError, ValueError, KeyError):  # no data here, or none for this name
        if offset is None:
            raise
    else:
        if offset is None or _instant(facts.tick_us).astimezone(zone).utcoffset() == offset:
            return zone
    return timezone(offset, facts.timezone)


def _check_metric(name: str, value: object) -> None:
    if isinstance(value, str):
        if len(value) > _METRIC_TEXT_MAX:
            raise ValueError(
                f"ctx.report: {name} has {len(value)} characters; print it, or cut it to {_METRIC_TEXT_MAX}"
            )
    elif not isinstance(value, (int, float)):
        raise TypeError(f"ctx.report: {name} is {value!r}; it must be a number or a text")
    elif isinstance(value, float) and not math.isfinite(value):  # an integer is, and may be one that no float holds
        raise ValueError(f"ctx.report: {name} is {value!r}; it must be finite")


def _delay_ms(delay: str | timedelta) -> int:
    if isinstance(delay, str):
        parts = _DURATION.fullmatch(delay)
        if parts is None or not delay:
            raise ValueError(f'{delay!r} is no length of time: write ctx.next_in("5m"), "1h30m" or a timedelta')
        days, hours, minutes, seconds, milliseconds = (int(part or 0) for part in parts.groups())
        delay = timedelta(days, seconds, 0, milliseconds, minutes, hours)
    if not isinstance(delay, timedelta):
        raise TypeError(f'ctx.next_in takes a text or a timedelta, not {delay!r}: write ctx.next_in("5m")')
    delay_ms = delay // timedelta(milliseconds=1)
    if delay_ms < 1 or delay > _NEXT_IN_MAX:
        raise ValueError(f"{delay} is no delay: it must be from 1 ms to 36500 days")
    return delay_ms
