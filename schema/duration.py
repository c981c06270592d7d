"""Lengths of time in text: `30s`, `25m`, `6h`, `1d`, `1h30m`, `500ms`. Whole milliseconds, as timeouts are stored."""

import re
from typing import Final

_UNIT_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_STEPS_MS: Final = (
    (10, 0.1), (1_000, 1), (60_000, 100), (3_600_000, 1_000), (86_400_000, 60_000), (float("inf"), 3_600_000),
)  # fmt: skip
_ORDER: Final = tuple(_UNIT_MS)
_PART: Final = re.compile(r"([0-9]{1,15})([A-Za-z]+)")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_FILLING: Final = re.compile(r"[ \t,]+|and")
_OTHER_NAMES: Final = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "min": "m",
    "mins": "m",
    "minute": "m",
    "minutes": "m",
    "hr": "h",
    "hrs": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
}
_TEXT_LIMIT: Final = 100
DURATION_LIMIT_MS: Final = 36_500 * _UNIT_MS["d"]


class DurationError(ValueError):
    """A text that is no length of time.

    `message` says what is wrong, `position` where (0-based offset in the text). `suggestion` is what to write instead,
    or None if there is no equal text.
    """

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["DurationError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


def parse_duration(text: str) -> int:
    """Milliseconds, above 0 and at most 36,500 days. Units from large to small, each once. Raises DurationError."""
    try:
        return _read(text)
    except DurationError as error:
        raise DurationError(error.message, error.position, _mended(text)) from None


def format_duration(duration_ms: int) -> str:
    """The shortest text of whole milliseconds: `1h30m` for 5,400,000. The inverse of parse_duration above zero."""
    if duration_ms <= 0:
        raise ValueError(f"{duration_ms} ms is not above zero")
    parts = []
    for unit, size in _UNIT_MS.items():
        amount, duration_ms = divmod(duration_ms, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts)


def measured(length_ms: float, *, signed: bool = False) -> str:
    """For people, rounded to two units at most: `4.2ms`, `850ms`, `3.2s`, `1m5s`, `2h10m`, `3d4h`.

    `signed`: with a + too, as it is a difference. Programs get numbers, in fields named `..._ms`.
    """
    text = _rounded(abs(length_ms))
    sign = "-" if length_ms < 0 and text != "0ms" else "+" if signed else ""
    return sign + text


def _rounded(length_ms: float) -> str:
    for below_ms, step_ms in _STEPS_MS:
        rounded = round(length_ms / step_ms) * step_ms
        if rounded < below_ms:
            break
    if rounded < 1_000:
        return f"{rounded:.3g}ms"
    return f"{rounded / 1_000:g}s" if rounded < 60_000 else format_duration(int(rounded))


def duration_words(duration_ms: int) -> str:
    """In words: `1 hour and 30 minutes`; `second` alone for one second, so that it reads after `every`."""
    names = {"d": "day", "h": "hour", "m": "minute", "s": "second", "ms": "millisecond"}
    parts = []
    for unit, size in _UNIT_MS.items():
        amount, duration_ms = divmod(duration_ms, size)
        if amount:
            parts.append((amount, names[unit]))
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    texts = [f"{amount} {name}" if amount == 1 else f"{amount} {name}s" for amount, name in parts]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _read(text: str) -> int:
    if len(text) > _TEXT_LIMIT:
        raise DurationError(f"{len(text)} characters are too many for a length of time", _TEXT_LIMIT)
    if not text:
        raise DurationError("the length of time is empty; `30s`, `25m`, `6h`, `1d` and `1h30m` are some", 0)
    total = position = 0
    smallest = -1
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[2] not in _UNIT_MS:
            raise _malformed(text, position)
        order = _ORDER.index(part[2])
        if order <= smallest:
            raise DurationError("units go from large to small, each of them once, like `1h30m`", part.start(2))
        smallest = order
        total += int(part[1]) * _UNIT_MS[part[2]]
        position = part.end()
    if not 0 < total <= DURATION_LIMIT_MS:
        raise DurationError("a length of time is above zero and at most 36500 days", 0)
    return total


def _malformed(text: str, position: int) -> DurationError:
    """What is wrong with the part that starts at `position`."""
    offset = position
    while offset < len(text) and text[offset] in "0123456789":
        offset += 1
    if offset == len(text):
        what = "a unit is missing"
    elif offset == position:
        what = "a number is missing"
    else:
        what = f"{text[offset]!r} starts no unit"
    return DurationError(f"{what}; units are d, h, m, s and ms, as in `1h30m`", offset)


def _mended(text: str) -> str | None:
    """The text without spaces, capitals, long unit names or a missing unit, if that was all that was wrong."""
    if len(text) > _TEXT_LIMIT:
        return None
    short = _LETTERS.sub(lambda name: _OTHER_NAMES.get(name[0].lower(), name[0].lower()), text)
    candidate = _FILLING.sub("", short)
    if candidate.isdecimal():
        candidate += "s"
    try:
        _read(candidate)
    except DurationError:
        return None
    return candidate
