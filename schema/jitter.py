"""Jitter: how far from its tick a run starts, so that jobs of one schedule don't all start at once. None unless asked.

The offset is a hash of (job, tick), so that every controller and every restart agree. Runs are only delayed, and never
up to the next tick. But an interval's jitter may go both ways (`±10%`, `±30s`), by less than half an interval, so that
runs keep their order. Text forms: `off`; `10%` of the gap to the next tick; `30s`; or by that gap, `5m:3s 1h:10s`: from
5 minutes on at most 3 seconds, from an hour on at most 10. `auto` is AUTO, by the schedule's shortest gap.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from cronring.schema.duration import DurationError, format_duration, parse_duration

AUTO: Final = "5m:3s 1h:10s 1d:30s 7d:1m"
"""What `auto` stands for. It never changes: rows say `auto`, and every controller of every release has to agree."""
_MS: Final = 1_000  # in microseconds
_AUTO_WORD: Final = "auto"
_BOTH: Final = "±"
_BOTH_WAYS: Final = re.compile(r"(?:±|\+/?-)\s*")  # as keyboards have it, too
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) ?%", re.ASCII)
_FRACTION: Final = re.compile(r"(?:[01]\.[0-9]{1,9}|0|1)", re.ASCII)
_OFF: Final = ("off", "none", "no", "false", "0s", "0ms")
_WHOLE: Final = 10_000  # 100 % in hundredths of a percent
_BUCKETS_LIMIT: Final = 16
_TEXT_LIMIT: Final = 300
_RULES_CACHED: Final = 1_024


class JitterError(ValueError):
    """A text that is no jitter: `message`, `position` (0-based offset in the text), `suggestion` (or None)."""

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["JitterError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


class Bucket(NamedTuple):
    """Where the gap between two ticks is at least `gap_ms`, a run is off by at most `most_ms`."""

    gap_ms: int
    most_ms: int


class JitterRule(NamedTuple):
    """One of: a share of the gap in hundredths of a percent, a fixed time, or buckets by the gap. Else: none.

    `both_ways`: before the tick as well as after it. `is_auto`: the buckets are those of `auto`.
    """

    share: int = 0
    fixed_ms: int = 0
    buckets: tuple[Bucket, ...] = ()
    both_ways: bool = False
    is_auto: bool = False

    @property
    def text(self) -> str:
        sign = _BOTH if self.both_ways else ""
        if self.is_auto:
            return _AUTO_WORD
        if self.share:
            return f"{sign}{self.share / 100:g}%"
        if self.fixed_ms:
            return f"{sign}{format_duration(self.fixed_ms)}"
        if self.buckets:
            return " ".join(f"{format_duration(gap)}:{format_duration(most)}" for gap, most in self.buckets)
        return "off"

    def most_us(self, gap: int | None) -> int:
        """The largest offset at a tick, in microseconds. `gap`: microseconds to the next tick.

        `gap` None: no tick comes after it. Then a share gives 0, and the largest bucket applies.
        """
        if self.share:
            return 0 if gap is None else gap * self.share // _WHOLE
        if self.fixed_ms:
            return self.fixed_ms * _MS
        for bucket in reversed(self.buckets):
            if gap is None or bucket.gap_ms * _MS <= gap:
                return bucket.most_ms * _MS
        return 0


def delay(key: str, tick: int, most: int, gap: int | None) -> int:
    """How long after a tick its run starts: from 0 to `most`, and before the next tick. All in microseconds."""
    most_ms = most // _MS
    if gap is not None:
        most_ms = min(most_ms, gap // _MS - 1)
    return _hash(key, tick) % (most_ms + 1) * _MS if most_ms > 0 else 0


def shift(key: str, tick: int, most: int, interval: int) -> int:
    """How long after (negative: before) its tick the run of an interval starts that asks for it: -most to most, in us.

    And by less than half an interval.
    """
    most_ms = min(most // _MS, (interval // _MS - 1) // 2)
    return (_hash(key, tick) % (2 * most_ms + 1) - most_ms) * _MS if most_ms > 0 else 0


def _hash(key: str, tick: int) -> int:
    return int.from_bytes(blake2b(f"{key} {tick}".encode(), digest_size=8).digest())


@lru_cache(maxsize=_RULES_CACHED)
def parse_jitter(text: str) -> JitterRule:
    """Raises JitterError."""
    stripped = text.strip()
    if len(text) > _TEXT_LIMIT:
        raise JitterError(f"{len(text)} characters are too many for a jitter", _TEXT_LIMIT)
    if not stripped:
        raise JitterError("the jitter is empty; `auto`, `10%`, `30s` and `off` are some", 0)
    sign = _BOTH_WAYS.match(stripped)
    if sign is not None:
        return _both_ways(text, len(text) - len(text.lstrip()) + sign.end())
    return _one_way(text)


def _both_ways(text: str, start: int) -> JitterRule:
    """What stands behind the sign, up to `start`."""
    what = f"`{_BOTH}` stands before a share or a time, like {_BOTH}10% or {_BOTH}30s"
    if not text[start:].strip():
        raise JitterError(what, start)
    try:
        rule = _one_way(text[start:])
    except JitterError as error:
        suggestion = None if error.suggestion in {None, "off"} else f"{_BOTH}{error.suggestion}"
        raise JitterError(error.message, start + error.position, suggestion) from None
    if rule.buckets:
        raise JitterError(f"{what}; `auto` and buckets only delay", start)
    return rule if rule == JitterRule() else rule._replace(both_ways=True)


def _one_way(text: str) -> JitterRule:
    stripped = text.strip()
    if stripped.lower() in _OFF:
        return JitterRule()
    if stripped.lower() == _AUTO_WORD:
        return _buckets(AUTO)._replace(is_auto=True)
    percent = _PERCENT.fullmatch(stripped)
    if percent is not None:
        return _share(round(float(percent[1]) * 100), text)
    if _FRACTION.fullmatch(stripped):
        return _share(round(float(stripped) * _WHOLE), text)
    if ":" in stripped:
        return _buckets(text)
    try:
        return JitterRule(fixed_ms=parse_duration(stripped))
    except DurationError as error:
        position = len(text) - len(text.lstrip()) + error.position
        message = (
            f"{error.message} (a jitter is `auto`, `off`, a time, `10%`, {_BOTH}10%, or by the gap `5m:3s 1h:10s`)"
        )
        raise JitterError(message, position, error.suggestion) from None


def _share(share: int, text: str) -> JitterRule:
    if share > _WHOLE:
        raise JitterError("a start is never moved past the next tick, so a jitter is at most 100%", 0, "100%")
    if share == 0 and text.strip("0.% "):
        raise JitterError("a jitter of less than 0.01% is none", 0, "off")
    return JitterRule(share=share)


def _buckets(text: str) -> JitterRule:
    buckets: list[Bucket] = []
    for match in re.finditer(r"[^\s,]+", text):
        word, start = match[0], match.start()
        gap_text, colon, most_text = word.partition(":")
        if not colon:
            raise JitterError("a bucket is a gap and a jitter, like `1h:10s`", start)
        bucket = Bucket(_part(text, gap_text, start), _part(text, most_text, start + len(gap_text) + 1))
        if bucket.most_ms >= bucket.gap_ms:
            turned = len(text.split()) == 1 and bucket.most_ms > bucket.gap_ms
            what = "a bucket is written gap:jitter, and its jitter is shorter than its gap"
            raise JitterError(what, start, f"{most_text}:{gap_text}" if turned else None)
        if any(bucket.gap_ms == other.gap_ms for other in buckets):
            raise JitterError(f"there are two buckets from {gap_text} on", start)
        buckets.append(bucket)
    if len(buckets) > _BUCKETS_LIMIT:
        raise JitterError(f"{len(buckets)} buckets are too many; at most {_BUCKETS_LIMIT} are allowed", 0)
    return JitterRule(buckets=tuple(sorted(buckets)))


def _part(text: str, duration: str, start: int) -> int:
    try:
        return parse_duration(duration)
    except DurationError as error:
        suggestion = None
        if error.suggestion is not None:
            suggestion = f"{text[:start]}{error.suggestion}{text[start + len(duration) :]}"
        raise JitterError(error.message, start + error.position, suggestion) from None
