"""Ticks that were decided before they came."""

from typing import Final

from cronring.schema.execution import SkipReason

AHEAD: Final = (SkipReason.PAUSED, SkipReason.CANCELLED, SkipReason.OUTSIDE_WINDOW)
"""For these reasons ticks are skipped ahead of their time. If a job's books close, skips of ticks still to come are
taken back.
"""
