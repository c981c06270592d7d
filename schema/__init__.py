"""The language that users speak: schedules and modules. Pure: no clock, no I/O, nothing of the rest of cronring."""

from cronring.schema.pattern import CronPattern, PatternError

__all__ = ["CronPattern", "PatternError"]
