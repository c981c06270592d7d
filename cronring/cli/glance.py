"""Instants and durations as people read them at a glance."""

from datetime import datetime

from cronring.schema.duration import measured


def countdown(seconds: float) -> str:
    """The time until something, or `due`."""
    return "due" if seconds <= 0 else measured(seconds * 1_000)


def time_of_day(moment: datetime | None) -> str:
    """To the millisecond, UTC."""
    return moment.strftime("%H:%M:%S.%f")[:-3] if moment is not None else "-"


def bar(share: float, width: int) -> str:
    """`share` (0..1) of `width` cells, in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width)
