"""A job's policies: what there is to set, and the canonical values. `cronring.schema.policy` reads and judges them."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from cronring.schema.duration import parse_duration
from cronring.schema.size import parse_size

RawValue = str | int | list[str]

ON_MISSED: Final = ("run_last", "skip", "run_all")
OVERLAP: Final = ("skip", "buffer_one", "buffer_all", "cancel_running", "allow")
DST_GAP: Final = ("run_after", "skip")
DST_OVERLAP: Final = ("first", "both", "second")
CONSUMED: Final = "consumed"
COMPLETES: Final = ("enqueued", CONSUMED)
MAX_CONCURRENT: Final = 10


class PolicyError(ValueError):
    """A value that is none of its field's.

    `field` names it, `message` says what is wrong, `position` where: a 0-based offset in the value's text. `suggestion`
    is what to write instead, None where nothing says the same.
    """

    def __init__(self, field: str, message: str, position: int = 0, suggestion: str | None = None) -> None:
        text = f"{field}: {message}"
        super().__init__(text if suggestion is None else f"{text}; write {suggestion!r}")
        self.field = field
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def told(self, value: object) -> str:
        """Everything but the field's name, for who sees no text with a mark in it. `value`: what was written.

        A number has no characters, and a list's items are named by themselves.
        """
        where = f" (at character {self.position + 1})" if isinstance(value, str) and value else ""
        return f"{self.message}{where}" + ("" if self.suggestion is None else f"; write {self.suggestion!r}")

    def __reduce__(self) -> tuple[type["PolicyError"], tuple[str, str, int, str | None]]:
        return type(self), (self.field, self.message, self.position, self.suggestion)


class PolicyField(NamedTuple):
    """`kind` is text, count or names; `help` is one line, for --help and the docs."""

    name: str
    kind: str
    default: str | int | tuple[str, ...] | None  # None: of a count of which 0 would be a value of its own
    help: str
    lowest: int = 0  # of a count
    highest: int = 0  # of a count


FIELDS: Final = (
    PolicyField("timezone", "text", "", "IANA time zone of the schedule, like Europe/Berlin; UTC if unset"),
    PolicyField("dst_gap", "text", "", "fixed times that the clocks skip: run_after (once, when they go on) or skip"),
    PolicyField("dst_overlap", "text", "", "fixed times that the clocks show twice: first, both or second"),
    PolicyField("start_at", "text", "", "no tick before this instant, like 2026-03-01T08:00 (in the job's time zone)"),
    PolicyField("end_at", "text", "", "no tick after this instant; of a date alone, none after that day"),
    PolicyField("window", "text", "", "ticks outside are skipped: Mon-Fri 08:00-18:00 (and a zone, if not the job's)"),
    PolicyField(
        "jitter",
        "text",
        "",
        "delay starts by up to 10% (of the gap), 30s, 5m:3s 1h:10s (by the gap); auto; off; ±10%: both ways",
    ),
    PolicyField("on_missed", "text", "", "ticks missed in an outage: run_last (the latest of them), skip or run_all"),
    PolicyField("catch_up_window", "text", "", "a missed tick that is older than this, like 6h, does not run any more"),
    PolicyField("overlap", "text", "", "a tick during a run: skip, buffer_one, buffer_all, cancel_running or allow"),
    PolicyField("max_concurrent", "count", None, "with overlap=allow, so many runs at once; 10 if unset", 1, 10_000),
    PolicyField(
        "retries",
        "count",
        None,
        "further attempts at a tick whose run failed; 0: none, whatever the cluster's default is",
        0,
        100,
    ),
    PolicyField("backoff", "text", "", "wait before the first retry, 10s if unset; doubles with each one, up to 1h"),
    PolicyField("retry_on", "names", (), "retry only these: exception names, or failed, timed_out, lost, ..."),
    PolicyField(
        "pause_after_failures",
        "count",
        0,
        "pause the job when so many ticks in a row have had no success",
        0,
        1_000_000,
    ),
    PolicyField(
        "late_after", "text", "", "webhooks are told of a tick that has not started so long after its time, like 5m"
    ),
    PolicyField("after", "text", "", "run for each tick of this job that has succeeded, like billing.close_month"),
    PolicyField(
        "priority",
        "count",
        0,
        "-100 to 100: goes first where places are short; a level is worth a second of waiting",
        -100,
        100,
    ),
    PolicyField("memory_limit", "text", "", "a run whose processes hold more memory is ended, like 256MiB or 1GiB"),
    PolicyField("cpu_limit", "text", "", "a run whose processes take more CPU time is ended, like 30s or 5m"),
    PolicyField("history", "text", "", "keep executions for so long at least, like 90d; the cluster's 30d if unset"),
    PolicyField(
        "history_runs",
        "count",
        None,
        "keep so many of the newest ones whatever their age; the cluster's 100 if unset",
        1,
        1_000_000,
    ),
    PolicyField("completes", "text", "", "of a queue's job, when a tick is completed: once enqueued, or consumed"),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """Canonical values; a field's default ("", 0, () or None) says nothing. `read_policy` makes one of what is read."""

    timezone: str = ""
    dst_gap: str = ""
    dst_overlap: str = ""
    start_at: str = ""
    end_at: str = ""
    window: str = ""
    jitter: str = ""
    on_missed: str = ""
    catch_up_window: str = ""
    overlap: str = ""
    max_concurrent: int | None = None
    retries: int | None = None
    backoff: str = ""
    retry_on: tuple[str, ...] = ()
    pause_after_failures: int = 0
    late_after: str = ""
    after: str = ""
    priority: int = 0
    memory_limit: str = ""
    cpu_limit: str = ""
    history: str = ""
    history_runs: int | None = None
    completes: str = ""

    @property
    def concurrency(self) -> int:
        """How many executions may run at once under overlap=allow; 0 for any other: one at a time."""
        return (self.max_concurrent or MAX_CONCURRENT) if self.overlap == "allow" else 0

    def retries_by(self, default: int) -> int:
        """In force. `default`: the cluster's, for who doesn't say it."""
        return default if self.retries is None else self.retries

    @property
    def memory_limit_bytes(self) -> int:
        """0: none."""
        return parse_size(self.memory_limit) if self.memory_limit else 0

    @property
    def cpu_limit_us(self) -> int:
        """0: none."""
        return parse_duration(self.cpu_limit) * 1_000 if self.cpu_limit else 0

    @property
    def text(self) -> str:
        """Canonical JSON of what is not the default, in the order of FIELDS; "" when all is."""
        if self == _UNSAID:  # as most jobs' are
            return ""
        raw = self.raw()
        return json.dumps(raw, separators=(",", ":"), ensure_ascii=False) if raw else ""

    def raw(self) -> dict[str, RawValue]:
        """What is not the default, in the order of FIELDS, as JSON values."""
        raw: dict[str, RawValue] = {}
        for field in FIELDS:
            value = getattr(self, field.name)
            if value != field.default:
                raw[field.name] = list(value) if isinstance(value, tuple) else value
        return raw


_UNSAID: Final = Policy()
