"""Instants and lengths of time as callers of a virtual cluster write them."""

from datetime import datetime, timedelta

from cronring.schema.duration import parse_duration
from cronring.schema.instant import parse_instant, to_us

Instant = str | datetime
Length = str | timedelta


def instant_us(instant: Instant) -> int:
    """`"2026-03-29T01:00"` (UTC unless it names an offset), or an aware datetime. Raises ValueError."""
    if isinstance(instant, str):
        return parse_instant(instant)
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} names no time zone: write datetime(..., tzinfo=UTC), or a text")
    return to_us(instant)


def length_us(length: Length) -> int:
    """`"2h"`, `"1d12h"`, or a timedelta. Raises ValueError unless it is above zero."""
    if isinstance(length, str):
        return parse_duration(length) * 1_000
    length_us = length // timedelta(microseconds=1)
    if length_us <= 0:
        raise ValueError(f"{length} is no length of time above zero")
    return length_us
