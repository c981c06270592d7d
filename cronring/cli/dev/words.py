"""Instants and durations as people read them at a glance."""

from datetime import datetime


def countdown(seconds: float) -> str:
    """The time until something: "due", "2.4 s", "42 s", "12:34", "5 h 12 min", "3 d 4 h"."""
    if seconds <= 0:
        return "due"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def lateness(value_ms: float | None) -> str:
    """With its sign, as it is a difference."""
    if value_ms is None:
        return "-"
    return f"{value_ms / 1000:+.2f} s" if abs(value_ms) >= 1000 else f"{value_ms:+.1f} ms"


def duration(value_ms: float | None) -> str:
    if value_ms is None:
        return "-"
    if value_ms < 1000:
        return f"{value_ms:.1f} ms"
    return f"{value_ms / 1000:.2f} s"


def time_of_day(moment: datetime | None) -> str:
    """To the millisecond, UTC."""
    return moment.strftime("%H:%M:%S.%f")[:-3] if moment is not None else "-"


def bar(share: float, width: int) -> str:
    """`share` (0..1) of `width` cells, in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(width)
