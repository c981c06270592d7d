"""Targets: what people write. Each reader takes a text, or refuses it with its own error, at a position."""

from typing import Final

from cronring.controller.core.notify.delivering import retry_after_ms
from cronring.schema.convert import interval_of, pattern_of
from cronring.schema.crontab import read_crontab
from cronring.schema.crontab_module import crontab_schema, crontab_source
from cronring.schema.duration import DurationError, format_duration, parse_duration
from cronring.schema.explain import explain
from cronring.schema.filters import FilterError, parse_execution_query, parse_job_query
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.jitter import JitterError, parse_jitter
from cronring.schema.pattern import CronPattern, PatternError
from cronring.schema.policy import Policy
from cronring.schema.schedule import ScheduleError, check_schedule, parse_schedule
from cronring.schema.size import SizeError, format_size, parse_size
from cronring.schema.text import SchemaError, parse_module, print_module
from cronring.schema.validate import validate
from cronring.schema.window import WindowError, canonical_window, parse_window
from cronring.schema.zone import ZoneError, load_zone
from tests.fuzz.bounds import Misbehaved, as_text, placed

_NOW: Final = 1_767_225_600_000_000  # 2026-01-01, in microseconds
_END: Final = 4_102_444_800  # 2100, in seconds


def filters(data: bytes) -> None:
    """A line is a filter of executions, or of jobs, or refused in few words; what was taken is the same again."""
    text = as_text(data)
    for parse in (lambda line: parse_execution_query(line, _NOW), parse_job_query):
        try:
            found = parse(text)
        except FilterError as error:
            if not str(error) or len(str(error)) > 1_000:
                raise Misbehaved(f"{text[:80]!r} is refused in {len(str(error))} characters") from error
            continue
        if parse(f" {text} ") != found:
            raise Misbehaved(f"{text!r} is another filter with spaces around it")


def retry_after(data: bytes) -> None:
    """A header of a webhook's receiver: it is a wait, or nothing."""
    wait_ms = retry_after_ms(as_text(data), _NOW // 1_000)
    if wait_ms is not None and wait_ms < 0:
        raise Misbehaved(f"{as_text(data)!r} is a wait of {wait_ms} ms")


def pattern(data: bytes) -> None:
    """Parsed as written and as printed it is the same; its ticks ascend; what a refusal suggests is a pattern."""
    text = as_text(data)
    try:
        found = CronPattern.parse(text)
    except PatternError as error:
        placed(error, text)
        if error.suggestion is not None:
            CronPattern.parse(error.suggestion)
        return
    if CronPattern.parse(found.text).sets != found.sets or CronPattern.parse(" ".join(found.fields)).sets != found.sets:
        raise Misbehaved(f"{text!r} is another pattern when it is printed")
    first = found.next_second(-1)
    if first is None:
        raise Misbehaved(f"{text!r} was taken, and never fires")
    after = found.next_second(first)
    if after is not None and (after <= first or found.last_second(after - 1) != first):
        raise Misbehaved(f"{text!r}: {first} and {after} are no neighbours")
    if found.count_seconds(-1, first) != 1 or found.count_seconds(-1, _END) < 1:
        raise Misbehaved(f"{text!r}: ticks are counted wrong")
    interval_of(found)


def schedule(data: bytes) -> None:
    """Any of the four kinds; canonical is canonical; it can be explained."""
    text = as_text(data)
    try:
        canonical = check_schedule(text)
    except ScheduleError as error:
        placed(error, text)
        return
    if check_schedule(canonical) != canonical:
        raise Misbehaved(f"{canonical!r} is not canonical")
    found = parse_schedule(canonical, _NOW)
    tick = found.next_after(_NOW)
    if tick is not None and (tick <= _NOW or found.count_between(_NOW, tick) != 1):
        raise Misbehaved(f"{canonical!r}: {tick} is not the next tick")
    explain(found, Policy(), _NOW, 2)


def duration(data: bytes) -> None:
    text = as_text(data)
    try:
        length_ms = parse_duration(text)
    except DurationError as error:
        placed(error, text)
        if error.suggestion is not None:
            parse_duration(error.suggestion)
        return
    if parse_duration(format_duration(length_ms)) != length_ms:
        raise Misbehaved(f"{text!r} is {length_ms} ms, which is printed as another")
    if length_ms % 1_000 == 0:
        pattern_of(length_ms // 1_000)


def instant(data: bytes) -> None:
    """The first word is a zone, if it is one's name."""
    text = as_text(data)
    zone, _, rest = text.partition(" ")
    try:
        load_zone(zone)
    except ZoneError:
        zone, rest = "", text
    for end_of_day in (False, True):
        try:
            found = parse_instant(rest, zone, end_of_day=end_of_day)
        except InstantError as error:
            placed(error, rest)
            continue
        if parse_instant(format_instant(found)) != found:
            raise Misbehaved(f"{rest!r} in {zone!r} is {found}, which is printed as another instant")


def timezone(data: bytes) -> None:
    text = as_text(data)
    try:
        zone = load_zone(text)
    except ZoneError as error:
        placed(error, text)
        if error.suggestion is not None:
            load_zone(error.suggestion)
        return
    zone.offset_at(0)


def window(data: bytes) -> None:
    text = as_text(data)
    try:
        canonical = canonical_window(text)
    except WindowError as error:
        placed(error, text)
        if error.suggestion is not None:
            canonical_window(error.suggestion)
        return
    if canonical_window(canonical) != canonical:
        raise Misbehaved(f"{text!r}: {canonical!r} is not canonical")
    found = parse_window(canonical)
    opens, closes = found.next_open_after(_NOW), found.next_close_after(_NOW)
    if (opens is None) != (closes is None):
        raise Misbehaved(f"{canonical!r} opens at {opens} and closes at {closes}")
    if opens is not None and (opens <= _NOW or not found.contains(opens)):
        raise Misbehaved(f"{canonical!r} is not open at {opens}, when it opens")


def jitter(data: bytes) -> None:
    text = as_text(data)
    try:
        rule = parse_jitter(text)
    except JitterError as error:
        placed(error, text)
        return
    if parse_jitter(rule.text) != rule:
        raise Misbehaved(f"{text!r}: {rule.text!r} is another jitter")


def size(data: bytes) -> None:
    text = as_text(data)
    try:
        found = parse_size(text)
    except SizeError as error:
        placed(error, text)
        if error.suggestion is not None:
            parse_size(error.suggestion)
        return
    if parse_size(format_size(found)) != found:
        raise Misbehaved(f"{text!r} is {found} bytes, which are printed as others")


def schema_text(data: bytes) -> None:
    """Read, printed and read again it is the same module, and nothing is wrong with it."""
    text = as_text(data)
    try:
        module = parse_module(text)
    except SchemaError as error:
        lines = text.split("\n")
        for fault in error.every:
            if not fault.message or not 1 <= fault.line <= len(lines):
                raise Misbehaved(f"{fault!r} is not in the text of {len(lines)} lines") from error
            if not 1 <= fault.column <= len(lines[fault.line - 1]) + 1:
                raise Misbehaved(f"{fault!r} is not in its line of {len(lines[fault.line - 1])}") from error
        return
    flaws = validate(module)
    if flaws:
        raise Misbehaved(f"what was read is not valid: {flaws[:3]}")
    printed = print_module(module)
    again = parse_module(printed)
    if again != module:
        raise Misbehaved(f"printed and read again it is another module: {printed!r}")
    if print_module(again) != printed:
        raise Misbehaved(f"printed again it is another text: {printed!r}")


def crontab(data: bytes) -> None:
    """Never raises; what comes of it is a module that is valid, whose source compiles."""
    text = as_text(data)
    for system in (False, True):
        found = read_crontab(text, system=system)
        lines = text.count("\n") + 1
        if any(not 1 <= remark.line <= lines or not remark.message for remark in found.remarks):
            raise Misbehaved(f"a remark without a place: {found.remarks}")
        if not found.entries:
            continue
        module = crontab_schema(found, "imported", "crontab", "default")
        flaws = validate(module)
        if flaws:
            raise Misbehaved(f"the module of {text!r} is not valid: {flaws[:3]}")
        if parse_module(print_module(module)).name != "imported":
            raise Misbehaved("the module has another name in its text")
        compile(crontab_source(found, "crontab"), "imported.py", "exec")
