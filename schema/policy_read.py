"""From what somebody wrote for a policy field, a JSON value, to its canonical value."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from cronring.schema.after import canonical_after
from cronring.schema.duration import DurationError, format_duration, parse_duration
from cronring.schema.execution import FAILURES
from cronring.schema.fields import shown
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.jitter import JitterError, parse_jitter
from cronring.schema.nearest import nearest
from cronring.schema.policy_model import (
    COMPLETES,
    DST_GAP,
    DST_OVERLAP,
    FIELDS,
    ON_MISSED,
    OVERLAP,
    Policy,
    PolicyError,
    PolicyField,
)
from cronring.schema.retry import BACKOFF_LIMIT_MS
from cronring.schema.size import SizeError, format_size, parse_size
from cronring.schema.window import WindowError, canonical_window
from cronring.schema.zone import ZoneError, load_zone

MISSED_AFTER_MS: Final = 10_000
LATE_AFTER_LEAST_MS: Final = 1_000
# A child process that has imported nothing but the SDK holds about 24 MiB (CPython 3.11 on Linux).
MEMORY_LIMIT_LEAST: Final = 32 << 20
MEMORY_LIMIT_MOST: Final = 64 << 40
# A runner looks 20 times a second, and Linux counts CPU time in hundredths.
CPU_LIMIT_LEAST_MS: Final = 100
_INDEXES: Final = {field.name: index for index, field in enumerate(FIELDS)}
_DURATIONS: Final = frozenset({"backoff", "catch_up_window", "late_after", "cpu_limit", "history"})
_NAMES_LIMIT: Final = 50
_NAME_LIMIT: Final = 200
_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_DIGITS: Final = re.compile(r"-?[0-9]{1,12}", re.ASCII)
# Other schedulers' words for the same, and what people call it.
_SYNONYMS: Final = {
    "completes": {"enqueue": "enqueued", "sent": "enqueued", "consume": "consumed", "done": "consumed"},
    "overlap": {
        "forbid": "skip", "queue": "buffer_one", "replace": "cancel_running", "cancel_other": "cancel_running",
        "terminate": "cancel_running", "terminate_other": "cancel_running", "parallel": "allow", "concurrent": "allow",
        "allow_all": "allow", "buffer": "buffer_one",
    },
    "on_missed": {
        "coalesce": "run_last", "run_once": "run_last", "once": "run_last", "last": "run_last", "latest": "run_last",
        "all": "run_all", "catch_up": "run_all", "catchup": "run_all", "ignore": "skip", "none": "skip",
    },
    "dst_gap": {"run": "run_after", "after": "run_after", "none": "skip"},
    "dst_overlap": {"once": "first", "twice": "both", "last": "second", "earlier": "first", "later": "second"},
}  # fmt: skip


class Reading(NamedTuple):
    """The policy of all that is right, and every value that isn't: in the order of FIELDS, then unknown names."""

    policy: Policy
    errors: tuple[PolicyError, ...]

    @property
    def unread(self) -> frozenset[str]:
        """Fields whose values are wrong: about what they stand for nothing is known."""
        return frozenset(error.field for error in self.errors)


_NOTHING: Final = Reading(Policy(), ())


def read_each(raw: Mapping[str, object]) -> Reading:
    """Instants without an offset are in UTC where the time zone is wrong. Raises nothing."""
    if not raw:  # as of most jobs
        return _NOTHING
    values: dict[str, str | int | tuple[str, ...]] = {}
    errors: list[PolicyError] = []
    for name in sorted(_INDEXES.keys() & raw, key=_INDEXES.__getitem__):
        field, value = FIELDS[_INDEXES[name]], raw[name]
        if value is None:  # JSON's null, and an argument that an author left at None: not given
            continue
        try:
            values[field.name] = _read(field, value, str(values.get("timezone", "")))
        except PolicyError as error:
            errors.append(error)
    errors += [_unknown(name) for name in raw if name not in Policy.__dataclass_fields__]
    return Reading(Policy(**values), tuple(errors))  # type: ignore[arg-type]  # each by the kind of its own field


def _read(field: PolicyField, value: object, timezone: str) -> str | int | tuple[str, ...]:
    match field.kind:
        case "count":
            return _count(field, value)
        case "names":
            return _names(field, value)
        case _:
            text = _text(field, value)
            return _canonical(field.name, text, timezone) if text else ""


def _unknown(name: str) -> PolicyError:
    names = [field.name for field in FIELDS]
    close = nearest(name.lower().replace("-", "_"), names)
    message = f"there is no policy {shown(name)}; there are {', '.join(names)}"
    return PolicyError(name[:_NAME_LIMIT], message, 0, close)


def _count(field: PolicyField, value: object) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():  # JSON of other languages knows but one kind of number
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(field.name, f"{shown(str(value))} is not a number; it is a whole one, like 3")
    if not field.lowest <= value <= field.highest:
        nearest = str(field.lowest if value < field.lowest else field.highest)
        unset = "0 is the default" if field.default == 0 else "for the default, leave it out"
        message = f"{value} is outside {field.lowest} to {field.highest} ({unset})"
        raise PolicyError(field.name, message, 0, nearest if value else None)
    return value


def _names(field: PolicyField, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name for name in re.split(r"[\s,]+", value) if name]
    if isinstance(value, bytes) or not isinstance(value, Sequence):
        raise PolicyError(field.name, f"{shown(str(value))} is no list of names, like ConnectionError, lost")
    if len(value) > _NAMES_LIMIT:
        raise PolicyError(field.name, f"{len(value)} names are too many; at most {_NAMES_LIMIT} are allowed")
    names: dict[str, None] = {}
    position = 0
    for name in value:
        if not isinstance(name, str) or not _DOTTED.fullmatch(name) or len(name) > _NAME_LIMIT:
            message = f"{shown(str(name))} is no exception's name, like ConnectionError or requests.Timeout"
            raise PolicyError(field.name, message, position, None)
        names[_outcome_word(field, name, position)] = None
        position += len(name) + 2  # as the text form lists them
    return tuple(names)


def _outcome_word(field: PolicyField, name: str, position: int) -> str:
    """A name in small letters is an outcome's, unless it has a dot: then it is an exception's, of whatever spelling."""
    if name in FAILURES or name != name.lower() or "." in name:
        return name
    if name in {"completed", "cancelled", "canceled"}:
        raise PolicyError(field.name, f"a run that was {name} is never retried", position)
    close = nearest(name.replace("-", "_"), FAILURES, cutoff=0.7)
    if close:
        raise PolicyError(field.name, f"{shown(name)} is no outcome; {', '.join(FAILURES)} are", position, close)
    return name


def _text(field: PolicyField, value: object) -> str:
    if field.name == "jitter" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _jitter_number(value)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        if field.name in _DURATIONS:
            raise PolicyError(field.name, f"{value} has no unit", 0, f"{value}s" if value > 0 else None)
        if field.name == "memory_limit" and value >= 0:
            return str(value)  # which has no unit either: what is meant, its reader says
    raise PolicyError(field.name, f"{shown(str(value))} is not a text")


def _jitter_number(value: float) -> str:
    if 0 <= value < 1 or (value == 1 and isinstance(value, float)):
        return f"{value * 100:.2f}%"
    whole = int(value) if value == value and abs(value) < 1e9 else 0  # noqa: PLR0124 - NaN
    # An integer of JSON may be one that no float holds.
    number = "such a number" if abs(value) >= 1e15 else f"{value:g}"
    message = f"{number} has no unit; a share of the gap between ticks is below 1, like 0.1"
    raise PolicyError("jitter", message, 0, f"{whole}s" if whole > 0 else None)


def _canonical(name: str, text: str, timezone: str) -> str:
    """The canonical spelling of a text that isn't empty. Raises PolicyError."""
    reader = _READERS[name]
    try:
        return reader(text, timezone)
    except (ZoneError, InstantError, WindowError, JitterError, DurationError, SizeError) as error:
        raise PolicyError(name, error.message, error.position, error.suggestion) from None


def _timezone(text: str, _: str) -> str:
    name = load_zone(text).name
    return "" if name == "UTC" else name


def _start_at(text: str, timezone: str) -> str:
    return format_instant(parse_instant(text, timezone))


def _end_at(text: str, timezone: str) -> str:
    return format_instant(parse_instant(text, timezone, end_of_day=True))


def _window(text: str, _: str) -> str:
    return canonical_window(text)


def _jitter(text: str, _: str) -> str:
    return parse_jitter(text).text


def _at_least(text: str, least_ms: int, why: str) -> str:
    """`why` names it as {least}."""
    length_ms = parse_duration(text)
    if length_ms < least_ms:
        least = format_duration(least_ms)
        raise DurationError(why.format(least=least), 0, least)
    return format_duration(length_ms)


def _catch_up_window(text: str, _: str) -> str:
    why = "within {least} a tick is not late, so it is at least that (on_missed=skip drops what is later)"
    return _at_least(text, MISSED_AFTER_MS, why)


def _backoff(text: str, _: str) -> str:
    length_ms = parse_duration(text)
    if length_ms > BACKOFF_LIMIT_MS:
        limit = format_duration(BACKOFF_LIMIT_MS)
        raise DurationError(f"a retry waits at most {limit}", 0, limit)
    return format_duration(length_ms)


def _late_after(text: str, _: str) -> str:
    return _at_least(text, LATE_AFTER_LEAST_MS, "a start within {least} is on time, so it is at least that")


def _memory_limit(text: str, _: str) -> str:
    size = parse_size(text)
    if size < MEMORY_LIMIT_LEAST:
        least = format_size(MEMORY_LIMIT_LEAST)
        raise SizeError(f"a Python process alone takes about 24 MiB, so it is at least {least}", 0, least)
    if size > MEMORY_LIMIT_MOST:
        most = format_size(MEMORY_LIMIT_MOST)
        raise SizeError(f"it is at most {most}", 0, most)
    return format_size(size)


def _cpu_limit(text: str, _: str) -> str:
    return _at_least(text, CPU_LIMIT_LEAST_MS, "CPU time is looked at in steps of 50ms, so it is at least {least}")


def _history(text: str, _: str) -> str:
    return format_duration(parse_duration(text))


def _word(name: str, words: tuple[str, ...], default: str = "") -> Callable[[str, str], str]:
    """A reader of one of some words. The default one says nothing, so it is left out."""

    def read(text: str, _: str) -> str:
        if text in words:
            return "" if text == default else text
        plain = re.sub(r"[\s-]+", "_", text.lower())
        suggestion: str | None = plain if plain in words else _SYNONYMS[name].get(plain)
        if suggestion is None:
            suggestion = nearest(plain, words)
        raise PolicyError(name, f"{shown(text)} is none of {', '.join(words)}", 0, suggestion)

    return read


_READERS: Final[dict[str, Callable[[str, str], str]]] = {
    "timezone": _timezone,
    "dst_gap": _word("dst_gap", DST_GAP),
    "dst_overlap": _word("dst_overlap", DST_OVERLAP),
    "start_at": _start_at,
    "end_at": _end_at,
    "window": _window,
    "jitter": _jitter,
    "on_missed": _word("on_missed", ON_MISSED),
    "catch_up_window": _catch_up_window,
    "overlap": _word("overlap", OVERLAP, "skip"),
    "backoff": _backoff,
    "history": _history,
    "late_after": _late_after,
    "after": lambda text, _: canonical_after(text),
    "memory_limit": _memory_limit,
    "cpu_limit": _cpu_limit,
    "completes": _word("completes", COMPLETES, "enqueued"),
}
