"""One verb of a child's dump: its schedule and policies, and whether its signature fits them."""

import re
from typing import Any, Final, NamedTuple

from cronring.schema.declaration_values import (
    Report,
    is_context,
    is_none,
    json_text,
    line,
    listed,
    mapping,
    shown,
    text,
    type_text,
)
from cronring.schema.duration import DurationError, parse_duration
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.module import DEFAULT_POLICY, Verb
from cronring.schema.policy import PolicyError, Reading, policy_faults, read_each
from cronring.schema.schedule import ScheduleError, check_interval, check_schedule
from cronring.schema.types import ANY, UNIT
from cronring.schema.validate import ON_DISCONNECT, clean_doc, name_fault
from cronring.schema.zone import ZoneError

_DECORATORS: Final = ("cron", "every", "once", "manual")
_BY_POSITION: Final = frozenset({"positional", None})


class _Parameter(NamedTuple):
    name: str
    annotation: str | None
    type: str
    kind: str | None
    has_default: bool

    @property
    def is_context(self) -> bool:
        return is_context(self.annotation or "")

    @property
    def is_about_context(self) -> bool:
        """Such as `Context | None`, for tests that have none."""
        words = re.split(r"[^A-Za-z0-9_]+", self.annotation or "")
        return not self.is_context and "Context" in words


class VerbReader:
    """`report` takes what the author has to mend. Raises Malformed for what no child says."""

    def __init__(self, dump: dict[str, Any], report: Report) -> None:
        self._dump = dump
        self._report_at = report
        self._name = text(dump, "name") or ""
        self._line = line(dump)
        self._decorators = [name for name in _DECORATORS if dump.get(name) not in (None, False)]

    def read(self) -> Verb:
        fault = name_fault(self._name)
        if fault is not None:
            self._report_at(self._line, self._name[:100], f"its name {fault}", "rename the function")
        reading = self._policy()
        policy, timezone = reading.policy, reading.policy.timezone
        schedule = self._schedule(timezone)
        if schedule and policy != DEFAULT_POLICY:
            self._find_contradictions(reading, schedule)
        parameters = [_parameter(mapping(each, "a parameter")) for each in listed(self._dump, "params")]
        payload = json_text(self._dump, "payload")
        request = self._request(parameters)
        if self._decorators:
            self._check_signature(parameters)
            self._check_payload(request, payload, follows=bool(policy.after))
        returns = text(self._dump, "returns")
        return Verb(
            name=self._name,
            request=UNIT if request is None else request.type,
            response=UNIT if self._decorators else type_text(text(self._dump, "returns_type") or returns, UNIT),
            schedule=schedule,
            timeout_ms=self._timeout(),
            on_disconnect=self._on_disconnect(),
            is_async=self._dump.get("is_async") is True,
            doc=clean_doc(text(self._dump, "doc") or ""),
            line=self._line,
            policy=policy,
            anchor=self._anchor(schedule, timezone),
            request_optional=request is not None and request.has_default,
            payload=payload,
        )

    def _report(self, message: str, remedy: str) -> None:
        self._report_at(self._line, self._name, message, remedy)

    # When

    def _schedule(self, timezone: str) -> str:
        if len(self._decorators) > 1:
            names = " and ".join(f"@{name}" for name in self._decorators)
            both = "both " if len(self._decorators) == 2 else ""
            self._report(f"it has {both}{names}", "keep one: a verb has one schedule")
            return ""
        cron, every, once = (text(self._dump, name) for name in ("cron", "every", "once"))
        if self._dump.get("manual") is True:
            return "manual"
        if once is not None:
            instant = self._instant(f'@once("{shown(once)}")', '@once("{}")', once, timezone)
            return f"at {instant}" if instant else ""
        try:
            if cron is not None:
                return self._pattern(cron)
            return "" if every is None else check_interval(every)
        except ScheduleError as error:
            decorator, given = ("every", every) if cron is None else ("cron", cron)
            # A pattern's message says which character itself.
            where = f", character {error.position + 1}" if cron is None else ""
            message = f'@{decorator}("{shown(given or "")}"){where}: {error.message}'
            remedy = f'write @{decorator}("{error.suggestion}")' if error.suggestion is not None else ""
            self._report(message, remedy or "the dialect stands in docs/schedules.md")
            return ""

    def _pattern(self, cron: str) -> str:
        schedule = check_schedule(cron)
        word, _, amount = schedule.partition(" ")
        other = {"every": f'@every("{amount}")', "at": f'@once("{amount}")', "manual": "@manual"}.get(word)
        if other is not None:
            self._report(f"@cron takes a pattern, not {cron!r:.60}", f"write {other}")
        return schedule

    def _anchor(self, schedule: str, timezone: str) -> str:
        anchor = text(self._dump, "anchor")
        if anchor is None:
            return ""
        if schedule and not schedule.startswith("every "):
            self._report("anchor is where an interval counts from, and it has none", "leave it out, or write @every")
        return self._instant(f'anchor="{shown(anchor)}"', 'anchor="{}"', anchor, timezone)

    def _instant(self, written: str, remedy: str, value: str, timezone: str) -> str:
        """The canonical text of an instant; "" for none, which is reported."""
        try:
            return format_instant(parse_instant(value, timezone))
        except (InstantError, ZoneError) as error:
            better = error.suggestion or "2026-03-01 09:00"
            self._report(
                f"{written}, character {error.position + 1}: {error.message}", f"write {remedy.format(better)}"
            )
            return ""

    # How

    def _policy(self) -> Reading:
        """The policies, of which each that is wrong is told."""
        raw = mapping(self._dump.get("policy") or {}, "the policy")
        reading = read_each(raw)
        for error in reading.errors:
            self._report_policy(error, raw.get(error.field))
        return reading

    def _report_policy(self, error: PolicyError, value: object) -> None:
        quotes = '"' if isinstance(value, str) else ""
        where = f", character {error.position + 1}" if isinstance(value, str) else ""
        remedy = "docs/schedules.md says what it may be"
        if error.suggestion is not None:
            remedy = f"write {error.field}={quotes}{error.suggestion}{quotes}"
        self._report(f"{error.field}={quotes}{shown(str(value))}{quotes}{where}: {error.message}", remedy)

    def _find_contradictions(self, reading: Reading, schedule: str) -> None:
        for field, message in policy_faults(reading.policy, schedule, reading.unread):
            what, _, remedy = message.rpartition("; ")
            self._report(f"{field}: {what or message}", remedy if what else "leave it out")

    def _timeout(self) -> int | None:
        value = text(self._dump, "timeout")
        if value is None:
            return None
        try:
            return parse_duration(value)
        except DurationError as error:
            remedy = 'write timeout="5m", for example'
            if error.suggestion is not None:
                remedy = f'write timeout="{error.suggestion}"'
            self._report(f'timeout="{shown(value)}", character {error.position + 1}: {error.message}', remedy)
            return None

    def _on_disconnect(self) -> str:
        value = text(self._dump, "on_disconnect")
        if value is None:
            return "stop"
        if value not in ON_DISCONNECT:
            message = f'on_disconnect="{shown(value)}" is neither "stop" nor "finish"'
            self._report(message, 'write on_disconnect="finish" to let a run go on without controllers')
            return "stop"
        return value

    # With what

    def _request(self, parameters: list[_Parameter]) -> _Parameter | None:
        """The one parameter beside the Context."""
        others = [parameter for parameter in parameters if not parameter.is_context]
        if len(others) > 1:
            names = ", ".join(shown(parameter.name) for parameter in others)
            message = f"a verb takes at most a Context and one payload, not {len(others)} ({names[:200]})"
            self._report(message, "put them together in one type, a dataclass for example")
            return None
        return others[0] if others else None

    def _check_signature(self, parameters: list[_Parameter]) -> None:
        """Of a job: a Context and a payload, both or one or none of them; nobody receives what it returns."""
        for parameter in parameters:
            shown_name = shown(parameter.name)
            if parameter.kind not in _BY_POSITION and (parameter.is_context or parameter.kind != "keyword"):
                message = f"its parameter {shown_name} is not positional, but it is given by position"
                self._report(message, f"write `def {self._name}(ctx: Context) -> None`")
            elif parameter.annotation is None:
                message = f"its parameter {shown_name} has no type, so it may be the Context or a payload"
                self._report(message, f"write `{shown_name}: Context`, with `from cronring import Context`")
            elif parameter.is_about_context:
                message = f"its parameter {shown_name} is a {shown(parameter.annotation)}; it always gets a Context"
                self._report(message, f"write `{shown_name}: Context`")
        returns = text(self._dump, "returns")
        if returns is not None and not is_none(returns):
            message = f"it returns {shown(returns)}, but nobody receives what a verb with a schedule returns"
            self._report(message, "return None, and say so: `-> None`")

    def _check_payload(self, request: _Parameter | None, payload: str, *, follows: bool) -> None:
        if request is None and payload:
            message = "it is given a payload, but has no parameter for it"
            self._report(message, f"write `def {self._name}(ctx: Context, payload: dict)`, or leave payload= out")
        if request is None or payload or request.has_default or (self._decorators == ["manual"] and not follows):
            return
        if (
            request.annotation is not None
            and not request.is_about_context
            and request.kind in {*_BY_POSITION, "keyword"}
        ):
            name = shown(request.name)
            message = f"its parameter {name} is a {shown(request.annotation)}, and its schedule has none to give"
            decorator = "cron" if follows else self._decorators[0]
            remedy = f"write `{name}: Context`, or give it a default, or write @{decorator}(…, payload=…)"
            self._report(message, remedy)


def _parameter(dump: dict[str, Any]) -> _Parameter:
    annotation = text(dump, "annotation")
    written = text(dump, "type") or annotation
    kind = text(dump, "kind")
    return _Parameter(
        text(dump, "name") or "?", annotation, type_text(written, absent=ANY), kind, dump.get("has_default") is True
    )
