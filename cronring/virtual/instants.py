"""Instants and lengths of time as callers of a virtual cluster write them."""

from datetime import UTC, datetime, timedelta
from typing import Final

from cronring.schema.duration import parse_duration
from cronring.schema.instant import parse_instant

Instant = str | datetime
Length = str | timedelta

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def instant_us(instant: Instant) -> int:
    """`"2026-03-29T01:00"` (UTC unless it names an offset), or an aware datetime. Raises ValueError."""
    if isinstance(instant, str):
        return parse_instant(instant)
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} names no time zone: write datetime(..., tzinfo=UTC), or a text")
    return (instant - _EPOCH) // timedelta(microseconds=1)


def length_us(length: Length) -> int:
    """`"2h"`, `"1d12h"`, or a timedelta. Raises ValueError unless it is above zero."""
    if isinstance(length, str):
        return parse_duration(length) * 1_000
    length_us = length // timedelta(microseconds=1)
    if length_us <= 0:
        raise ValueError(f"{length} is no length of time above zero")
    return length_us


def moment(at_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at_us)
